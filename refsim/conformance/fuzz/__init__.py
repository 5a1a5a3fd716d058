"""Fuzzing: hypothesis draws the structure of cases, steers them toward the bound, and shrinks what fails."""
