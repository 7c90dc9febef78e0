"""The items that frames are made of: one group's, in the order of time, each time once where that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from panewise.aggregate.total import exact_sum, float_sum
from panewise.algebra.framing import Duplicates, Frame
from panewise.errors import SchemaProblem


@dataclass(frozen=True)
class Item:
    """One item of a group: the values of `frame.scalars` in their order, None for NULL; NaN counts as None."""

    time: int
    values: tuple[Any, ...]


def treated(frame: Frame, items: Sequence[Item]) -> list[tuple[Item, list[int]]]:
    """The items a frame sees, each with the places of those it stands for, as its `duplicates` say."""
    found = []
    for _, same in groupby(range(len(items)), key=lambda place: items[place].time):
        found += _one_time(frame.duplicates, items, list(same))
    return found


def _one_time(duplicates: Duplicates, items: Sequence[Item], places: list[int]) -> list[tuple[Item, list[int]]]:
    match duplicates:
        case Duplicates.FIRST:
            places = places[:1]
        case Duplicates.LAST:
            places = places[-1:]
        case Duplicates.ERROR if len(places) > 1:
            raise SchemaProblem(
                f"two reports of one group have the time {items[places[0]].time}",
                fix="say DUPLICATES FIRST, LAST, AVG, MIN, MAX or SUM",
            )
        case Duplicates.AVG | Duplicates.MIN | Duplicates.MAX | Duplicates.SUM:
            columns = zip(*(items[place].values for place in places), strict=True)
            merged = tuple(_merged(duplicates, column) for column in columns)
            return [(_cleaned(replace(items[places[0]], values=merged)), places)]
    return [(_cleaned(items[place]), [place]) for place in places]


def _merged(duplicates: Duplicates, values: Sequence[Any]) -> Any:
    known = [value for value in map(_known, values) if value is not None]
    if not known:
        return None
    if all(isinstance(value, bool) for value in known):
        return _merged_truth(duplicates, known)
    if duplicates in (Duplicates.MIN, Duplicates.MAX):
        return min(known) if duplicates is Duplicates.MIN else max(known)
    total = float_sum(known) if any(isinstance(value, float) for value in known) else exact_sum(known)
    return total / len(known) if duplicates is Duplicates.AVG else total


def _merged_truth(duplicates: Duplicates, known: list[bool]) -> bool:
    """Conditions have no mean: most of them decide."""
    match duplicates:
        case Duplicates.MIN:
            return all(known)
        case Duplicates.AVG:
            return 2 * sum(known) > len(known)
        case _:
            return any(known)


def _cleaned(item: Item) -> Item:
    return replace(item, values=tuple(map(_known, item.values)))


def _known(value: Any) -> Any:
    """The value, or None for what is no number: that alone differs from itself."""
    return value if value == value else None
