"""Importing this module imports every file of this package, which registers the variants of every family."""

from importlib import import_module
from pkgutil import iter_modules

import oracle.variants

for _module in iter_modules(oracle.variants.__path__):
    import_module(f"oracle.variants.{_module.name}")
