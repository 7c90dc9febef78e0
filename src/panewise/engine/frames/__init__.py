"""Frames: windows that follow the data, followed row by row."""

from panewise.engine.frames.query import FrameBatch, FrameQuery

__all__ = ["FrameBatch", "FrameQuery"]
