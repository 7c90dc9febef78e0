"""Frames: windows that follow the data, followed row by row."""

from panewise.engine.frames.part import FrameQuery, FrameBatch

__all__ = ["FrameQuery", "FrameBatch"]
