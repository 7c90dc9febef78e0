"""Frames: windows whose bounds depend on the data, found row by row."""

from panewise.engine.frames.query import FrameBatch, FrameQuery

__all__ = ["FrameBatch", "FrameQuery"]
