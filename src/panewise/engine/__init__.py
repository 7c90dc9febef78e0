"""The embedded engine: Arrow in, Arrow out, incrementally."""

from panewise.engine.engine import Engine
from panewise.engine.pool import Pool

__all__ = ["Engine", "Pool"]
