"""Frames: windows that follow the data, as specifications."""
