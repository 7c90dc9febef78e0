"""What a substream filter means, literal and slow ("Resource sharing" section 2, SSF operators)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

#: The code of a substream, a time, and a value.
Element = tuple[int, int, int]

AGGREGATES: dict[str, Callable[[list[int]], int]] = {"COUNT": len, "SUM": sum, "MIN": min, "MAX": max}


def windows(elements: Iterable[Element], now: int, length: int) -> dict[int, list[int]]:
    """The values of each substream in `(now - length, now]`; none of a substream that has no element there."""
    found: dict[int, list[int]] = {}
    for code, time, value in elements:
        if now - length < time <= now:
            found.setdefault(code, []).append(value)
    return found


def aggregates(elements: Iterable[Element], aggregate: str, now: int, length: int) -> dict[int, int]:
    """The aggregate of each substream over its window."""
    return {code: AGGREGATES[aggregate](values) for code, values in windows(elements, now, length).items()}


def above(elements: Iterable[Element], aggregate: str, now: int, length: int, threshold: float) -> set[int]:
    """The substreams whose aggregate is above a threshold."""
    return {code for code, value in aggregates(elements, aggregate, now, length).items() if value > threshold}


def below(elements: Iterable[Element], aggregate: str, now: int, length: int, threshold: float) -> set[int]:
    """The substreams whose aggregate is below it."""
    return {code for code, value in aggregates(elements, aggregate, now, length).items() if value < threshold}
