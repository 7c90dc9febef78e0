"""Where figures are found.

A figure is a module that defines `FIGURE`, in `promises` or in the folder of a paper under `figures`. A promise has the
name of its module; a figure of a paper has the names of its folder and of its module: `consistent_fig06`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from benchmarks.harness.figure import Figure

PAPERS, PROMISES = "benchmarks.figures", "benchmarks.promises"


def figures() -> dict[str, Figure[Any]]:
    """Every figure, by name."""
    return figures_of_papers() | promises()


def figures_of_papers() -> dict[str, Figure[Any]]:
    """The figures of every paper, by name."""
    return {
        f"{paper}_{name}": figure
        for paper in _names(PAPERS)
        for name, figure in _figures_in(f"{PAPERS}.{paper}").items()
    }


def promises() -> dict[str, Figure[Any]]:
    """Our own claims, by name."""
    return _figures_in(PROMISES)


def _figures_in(package: str) -> dict[str, Figure[Any]]:
    """The figures among the modules of a package, by the names of their modules."""
    modules = {name: importlib.import_module(f"{package}.{name}") for name in _names(package)}
    return {name: module.FIGURE for name, module in modules.items() if hasattr(module, "FIGURE")}


def _names(package: str) -> list[str]:
    """The modules and packages within a package."""
    return sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))
