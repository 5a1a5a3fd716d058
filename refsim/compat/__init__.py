"""Proofs of compatibility: what other projects test about themselves, run on the simulator."""
