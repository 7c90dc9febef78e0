"""Framing functions as users write them."""

from __future__ import annotations

from typing import Any


class Alternating:
    """A framing function: a frame goes on while values alternate between even and odd."""

    def open(self, time: int, value: Any) -> Any:
        return value

    def update(self, state: Any, time: int, value: Any) -> Any:
        return value if (value - state) % 2 else None
