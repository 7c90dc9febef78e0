"""Frames: windows that follow the data, followed row by row."""

from panewise.engine.frames.part import FramePart, FrameReading

__all__ = ["FramePart", "FrameReading"]
