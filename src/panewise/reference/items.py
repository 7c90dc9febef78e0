"""The items of frames: those of one group in the order of time, each time only once if duplicates are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from panewise.aggregate.sum import exact_sum, float_sum
from panewise.core.errors import SchemaProblem
from panewise.frame.frame import Duplicates, Frame


@dataclass(frozen=True)
class GroupItem:
    """One item of a group: the values of `frame.scalars` in their order, None for NULL; NaN counts as None."""

    time: int
    values: tuple[Any, ...]


def merge_duplicates(frame: Frame, items: Sequence[GroupItem]) -> list[tuple[GroupItem, list[int]]]:
    """The items of a frame after duplicates were treated, each with the places of the items from which it was made."""
    found = []
    for _, same in groupby(range(len(items)), key=lambda place: items[place].time):
        found += _merge_one_time(frame.duplicates, items, list(same))
    return found


def _merge_one_time(
    duplicates: Duplicates, items: Sequence[GroupItem], places: list[int]
) -> list[tuple[GroupItem, list[int]]]:
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
            merged = tuple(_merge_values(duplicates, column) for column in columns)
            return [(_without_nan(replace(items[places[0]], values=merged)), places)]
    return [(_without_nan(items[place]), [place]) for place in places]


def _merge_values(duplicates: Duplicates, values: Sequence[Any]) -> Any:
    known = [value for value in map(_nan_as_none, values) if value is not None]
    if not known:
        return None
    if all(isinstance(value, bool) for value in known):
        return _merge_conditions(duplicates, known)
    if duplicates in (Duplicates.MIN, Duplicates.MAX):
        return min(known) if duplicates is Duplicates.MIN else max(known)
    total = float_sum(known) if any(isinstance(value, float) for value in known) else exact_sum(known)
    return total / len(known) if duplicates is Duplicates.AVG else total


def _merge_conditions(duplicates: Duplicates, known: list[bool]) -> bool:
    """The mean of conditions is the value that most of them have."""
    match duplicates:
        case Duplicates.MIN:
            return all(known)
        case Duplicates.AVG:
            return 2 * sum(known) > len(known)
        case _:
            return any(known)


def _without_nan(item: GroupItem) -> GroupItem:
    return replace(item, values=tuple(map(_nan_as_none, item.values)))


def _nan_as_none(value: Any) -> Any:
    """The value, or None for NaN, which is the only value that differs from itself."""
    return value if value == value else None
