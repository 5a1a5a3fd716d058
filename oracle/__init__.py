"""The oracle: what an operator is to compute, and how far an honest implementation may be off."""
