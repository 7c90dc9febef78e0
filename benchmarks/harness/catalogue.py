"""Where figures are found.

A figure is a module that defines `FIGURE`, in `promises` or in the folder of a paper under `figures`. A promise has the
name of its module; a figure of a paper has the names of its folder and of its module: `consistent_fig06`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from benchmarks import figures as papers
from benchmarks import promises
from benchmarks.harness.figure import Figure


def figures() -> dict[str, Figure[Any]]:
    """Every figure, by name: those of the papers first, then the promises."""
    return figures_of_papers() | _figures_in(promises.__name__)


def figures_of_papers() -> dict[str, Figure[Any]]:
    """The figures of every paper, by name."""
    folders = [module.name for module in pkgutil.iter_modules(papers.__path__)]
    return {
        f"{folder}_{name}": figure
        for folder in sorted(folders)
        for name, figure in _figures_in(f"{papers.__name__}.{folder}").items()
    }


def _figures_in(package: str) -> dict[str, Figure[Any]]:
    """The figures among the modules of a package, by the names of their modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))
    modules = {name: importlib.import_module(f"{package}.{name}") for name in names}
    return {name: module.FIGURE for name, module in modules.items() if hasattr(module, "FIGURE")}
