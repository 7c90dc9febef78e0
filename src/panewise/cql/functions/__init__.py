"""The list of scalar functions and operators, one module for each family; every module adds its own entries."""

from importlib import import_module
from pkgutil import iter_modules

from panewise.cql.functions.catalogue import (
    FUNCTIONS,
    INSTEAD,
    MACROS,
    MARK,
    NODES,
    ScalarFunction,
    TypedSql,
    unit_of,
    without_units,
)

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")

__all__ = ["FUNCTIONS", "INSTEAD", "MACROS", "MARK", "NODES", "ScalarFunction", "TypedSql", "unit_of", "without_units"]
