"""Panewise: continuous window queries over data streams."""

from panewise import reference, window
from panewise.engine import Engine, Pool
from panewise.errors import PanewiseError
from panewise.runtime.local import run
from panewise.schema import Stream, StreamSchema

__version__ = "0.1.0"

__all__ = ["Engine", "PanewiseError", "Pool", "Stream", "StreamSchema", "__version__", "reference", "run", "window"]
