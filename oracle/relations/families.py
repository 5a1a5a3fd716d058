"""Importing this module imports every file of this package, which registers the relations of every family."""

from importlib import import_module
from pkgutil import iter_modules

import oracle.relations

for _module in iter_modules(oracle.relations.__path__):
    import_module(f"oracle.relations.{_module.name}")
