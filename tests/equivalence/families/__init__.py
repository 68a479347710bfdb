# SPDX-License-Identifier: Apache-2.0
"""Lists the families of ops that the equivalence tester knows: the classes in
this folder's modules that have `ops`."""
import importlib
import pkgutil

from families.family import Family


def found():
    for name in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"families.{name}")
        yield from (value() for value in vars(module).values()
                    if isinstance(value, type) and issubclass(value, Family)
                    and value.__module__ == module.__name__ and value.ops)


FAMILIES = list(found())


def family_of(case):
    return next(f for f in FAMILIES if case["op"] in f.ops)
