"""Exports: cases and their expected outputs as other projects keep them."""
