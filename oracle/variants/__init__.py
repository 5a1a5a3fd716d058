"""Variants: honest and wrong implementations of each operator in NumPy, on which the judge itself is tried.

Controls compute as honest float32 kernels do, each in an order or form of its own: the judge must accept them on every
case. Mutants have one fault each: some case, or some relation, must refuse them. One file per family.
"""

from oracle.variants.variant import VARIANTS, Variant, control, mutant, variants_of

__all__ = ["VARIANTS", "Variant", "control", "mutant", "variants_of"]
