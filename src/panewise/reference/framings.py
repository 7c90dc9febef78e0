"""Queries that report frames: the frames of every group of a whole history, each filled with its own items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.algebra import Framed, Group, Node, Project, Query, Select
from panewise.reference.evaluate import Bag, Evaluation, answer
from panewise.reference.framing import Found, Item, framed, treated
from panewise.reference.history import NO_MARK, History, Row
from panewise.values import to_arrow


@dataclass(frozen=True, eq=False)
class Filled:
    """A frame that is reported: the group it belongs to, and its items."""

    key: tuple[Any, ...]
    found: Found
    bag: Bag


def framing_table(query: Query, evaluation: Evaluation, last: int | None, instants: pa.DataType) -> pa.Table:
    """All frames of a query over items up to a time, with the columns that were asked for."""
    node = query.framed
    assert node is not None
    filled = list(_filled(node, evaluation, last))
    rows = [(row, filled[place]) for place, row in _rows(query.root, filled, evaluation)]
    columns: dict[str, pa.Array] = {}
    for place, column in enumerate(query.root.columns):
        columns[column.name] = to_arrow([row.values[place] for row, _ in rows], column.type)
    for name, (values, kind) in _added(node, [each.found for _, each in rows], instants).items():
        while name in columns:
            name += "_"
        columns[name] = to_arrow(values, kind)
    return pa.table(list(columns.values()), names=list(columns))


def late_arrivals(query: Query, evaluation: Evaluation) -> set[int]:
    """Which rows of the stream came when their place in time had been passed."""
    node = query.framed
    assert node is not None
    contents = evaluation.history(node.child).contents
    return set(contents.arrivals[contents.marks > NO_MARK].tolist())


def _filled(node: Framed, evaluation: Evaluation, last: int | None) -> Iterator[Filled]:
    history = evaluation.history(node.child)
    names = [column.name for column in node.columns]
    positions = tuple(names.index(name) for name in node.frame.partition_by)
    timely = (history.contents.marks == NO_MARK) & (last is None or history.contents.times <= last)
    for key, part in history.part(np.flatnonzero(timely)).split(positions).items():
        yield from _of_group(node, key, part, evaluation)


def _of_group(node: Framed, key: tuple[Any, ...], part: History, evaluation: Evaluation) -> Iterator[Filled]:
    values = evaluation.scalars(list(node.frame.scalars), node.child, part.rows)
    items = [Item(row.time, each) for row, each in zip(part.rows, values, strict=True)]
    stands_for = [places for _, places in treated(node.frame, items)]
    for found in framed(node.frame, items):
        places = [place for places in stands_for[found.first : found.last + 1] for place in places]
        yield Filled(key, found, [part.rows[place] for place in places])


def _rows(root: Node, filled: list[Filled], evaluation: Evaluation) -> Iterator[tuple[int, Row]]:
    """The rows of each frame, with its place."""
    for place, bag in enumerate(_bags(root, filled, evaluation)):
        yield from ((place, row) for row in bag)


def _bags(node: Node, filled: list[Filled], evaluation: Evaluation) -> list[Bag]:
    """What an operator says of each frame."""
    match node:
        case Framed():
            return [each.bag for each in filled]
        case Select(child, predicate):
            return evaluation.selected(child, predicate, _bags(child, filled, evaluation))
        case Project(child, items):
            return evaluation.projected(child, [s for _, s in items], _bags(child, filled, evaluation))
        case Group(child):
            bags = _bags(child, filled, evaluation)
            return [_grouped(node, each, bag) for each, bag in zip(filled, bags, strict=True)]
    raise TypeError(f"no meaning for {type(node).__name__} over frames")


def _grouped(node: Group, filled: Filled, bag: Bag) -> Bag:
    """The groups inside a frame; one that has no keys of its own is there even if it holds nothing."""
    names = [column.name for column in node.child.columns]
    inner = [names.index(key) for key in node.keys[len(filled.key) :]]
    groups: dict[tuple[Any, ...], Bag] = {} if inner else {(): []}
    for row in bag:
        groups.setdefault(tuple(row.values[place] for place in inner), []).append(row)
    return [
        Row(filled.key + key + tuple(answer(call, names, rows) for call in node.calls), filled.found.end)
        for key, rows in groups.items()
    ]


def _added(node: Framed, found: list[Found], instants: pa.DataType) -> dict[str, tuple[list[Any], pa.DataType]]:
    added: dict[str, tuple[list[Any], pa.DataType]] = {
        "frame_id": ([each.number for each in found], pa.int64()),
        "w_start": ([each.start for each in found], instants),
        "w_end": ([each.end for each in found], instants),
        "duration": ([each.end - each.start for each in found], pa.int64()),
        "count": ([each.count for each in found], pa.int64()),
    }
    if node.frame.schedule:
        added["missing"] = [each.missing for each in found], pa.int64()
    return added | {"final": ([each.final for each in found], pa.bool_())}
