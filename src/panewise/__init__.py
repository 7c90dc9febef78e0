"""Panewise: continuous window queries over data streams."""

from importlib import import_module
from typing import Any

from panewise import reference, window
from panewise.algebra.framing_function import register_framing
from panewise.engine import Engine, Pool
from panewise.errors import PanewiseError
from panewise.runtime.local import run
from panewise.schema import Stream, StreamSchema

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`pw.spark` and `pw.serve` are found when first used: Panewise works without PySpark and FastAPI."""
    if name == "serve":
        return import_module("panewise.serve")
    if name != "spark":
        raise AttributeError(f"module 'panewise' has no attribute {name!r}")
    try:
        return import_module("panewise.runtime.spark")
    except ModuleNotFoundError as problem:
        raise PanewiseError(
            f"pw.spark needs the package {problem.name!r}", fix="pip install 'panewise[spark]'"
        ) from None


__all__ = [
    "Engine",
    "PanewiseError",
    "Pool",
    "Stream",
    "StreamSchema",
    "__version__",
    "reference",
    "register_framing",
    "run",
    "window",
]
