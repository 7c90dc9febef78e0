"""Queries that report frames: the frames of every group of a whole history, each with what fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from panewise.algebra import Filled, Framed, Group, Node, Project, Query, Select
from panewise.algebra.result_columns import added_types, dated_table
from panewise.algebra.tree import inputs_of
from panewise.core.values import to_arrow
from panewise.reference.evaluate import Bag, Evaluation, aggregate_rows
from panewise.reference.framing import FrameResult, GroupItem, find_frames, merge_duplicates
from panewise.reference.history import NO_MARK, History, Row


@dataclass(frozen=True, eq=False)
class FrameBag:
    """A frame that is reported: the group it belongs to, and its items."""

    key: tuple[Any, ...]
    found: FrameResult
    bag: Bag


def framing_table(query: Query, evaluation: Evaluation, last: int | None, instants: pa.DataType) -> pa.Table:
    """All frames of a query over items up to a time, with the selected columns."""
    node = query.framed_node
    assert node is not None
    filled = list(_all_frames(node, evaluation, last))
    rows = [(row, filled[place]) for place, row in _rows(query.root, filled, evaluation)]
    selected = {
        column.name: to_arrow([row.values[place] for row, _ in rows], column.type)
        for place, column in enumerate(query.root.columns)
    }
    types = added_types(query, instants)
    added = {
        name: to_arrow([_ADDED_VALUES[name](each.found) for _, each in rows], kind) for name, kind in types.items()
    }
    return dated_table(selected, added, types)


#: The value of a frame in each added column.
_ADDED_VALUES: dict[str, Callable[[FrameResult], Any]] = {
    "frame_id": lambda frame: frame.number,
    "w_start": lambda frame: frame.start,
    "w_end": lambda frame: frame.end,
    "duration": lambda frame: frame.end - frame.start,
    "count": lambda frame: frame.count,
    "missing": lambda frame: frame.missing,
    "final": lambda frame: frame.final,
}


def late_arrivals(query: Query, stream: str, evaluation: Evaluation) -> set[int]:
    """Which rows of a stream came too late, at any place at which the query reads the stream."""
    streams = [node.child if isinstance(node, Framed) else node.right for node in query.root.walk() if _reads(node)]
    contents = [evaluation.history(node).contents for node in streams if node.streams == {stream}]
    return {int(a) for each in contents for a in each.arrivals[each.marks > NO_MARK]}


def _reads(node: Node) -> TypeGuard[Framed | Filled]:
    return isinstance(node, Framed | Filled)


def _all_frames(node: Framed, evaluation: Evaluation, last: int | None) -> Iterator[FrameBag]:
    history = evaluation.history(node.child)
    names = [column.name for column in node.columns]
    positions = tuple(names.index(name) for name in node.frame.partition_by)
    timely = (history.contents.marks == NO_MARK) & (last is None or history.contents.times <= last)
    for key, part in history.part(np.flatnonzero(timely)).split(positions).items():
        yield from _group_frames(node, key, part, evaluation)


def _group_frames(node: Framed, key: tuple[Any, ...], part: History, evaluation: Evaluation) -> Iterator[FrameBag]:
    values = evaluation.scalars(list(node.frame.scalars), node.child, part.rows)
    items = [GroupItem(row.time, each) for row, each in zip(part.rows, values, strict=True)]
    stands_for = [places for _, places in merge_duplicates(node.frame, items)]
    for found in find_frames(node.frame, items):
        places = [place for places in stands_for[found.first : found.last + 1] for place in places]
        yield FrameBag(key, found, [part.rows[place] for place in places])


def _rows(root: Node, filled: list[FrameBag], evaluation: Evaluation) -> Iterator[tuple[int, Row]]:
    """The rows of each frame, with its place."""
    bags = _bags(root, filled, evaluation)
    if not any(isinstance(node, Group) for node in root.walk()):
        bags = _new_rows(bags, filled)
    for place, bag in enumerate(bags):
        yield from ((place, row) for row in bag)


def _bags(node: Node, frames: list[FrameBag], evaluation: Evaluation, about: Filled | None = None) -> list[Bag]:
    """The rows of an operator for each frame; where there are several fillings, those of the filling `about`."""
    match node:
        case Framed():
            return [each.bag for each in frames]
        case Filled():
            return _fillings(node, about or node, frames, evaluation)
        case Select(child, predicate):
            bags = _bags(child, frames, evaluation, about)
            if about and (others := _filled_node(node).fillings_of(predicate.inputs)) and about not in others:
                return bags
            return evaluation.select(child, predicate, bags)
        case Project(child, items):
            return evaluation.project(child, [s for _, s in items], _bags(child, frames, evaluation, about))
        case Group(child):
            return _group_bags(node, frames, evaluation)
    raise TypeError(f"no meaning for {type(node).__name__} over frames")


def _filled_node(node: Node) -> Filled:
    return next(each for each in node.walk() if isinstance(each, Filled))


def _group_bags(node: Group, frames: list[FrameBag], evaluation: Evaluation) -> list[Bag]:
    """The groups inside of frames; where there are several fillings, each aggregate reads its own."""
    filled = next((each for each in node.walk() if isinstance(each, Filled)), None)
    if filled is None or len(filled.fillings) == 1:
        bags = _bags(node.child, frames, evaluation)
        return [_group_rows(node, each, bag) for each, bag in zip(frames, bags, strict=True)]
    own = {
        call: _bags(node.child, frames, evaluation, filled.fillings_of(inputs_of(node, call))[0]) for call in node.calls
    }
    names = [column.name for column in node.child.columns]
    return [
        [Row(each.key + tuple(aggregate_rows(call, names, own[call][n]) for call in node.calls), each.found.end)]
        for n, each in enumerate(frames)
    ]


def _fillings(whole: Filled, node: Filled, frames: list[FrameBag], evaluation: Evaluation) -> list[Bag]:
    """The rows of a stream that belong to each frame, beside its group; those of other fillings have no values."""
    history = evaluation.history(node.right)
    rows = [row for row, mark in zip(history.rows, history.contents.marks, strict=True) if mark == NO_MARK]
    names, groups = [c.name for c in node.right.columns], node.framed_node.frame.partition_by
    pairs = [(groups.index(left), names.index(right)) for left, right in node.on]
    before = [c for f in whole.fillings[: whole.fillings.index(node)] for c in f.right.columns]
    after = [c for f in whole.fillings[whole.fillings.index(node) + 1 :] for c in f.right.columns]

    def belongs(row: Row, frame: FrameBag) -> bool:
        time, found = row.time + node.offset, frame.found
        agrees = all(frame.key[a] is not None and frame.key[a] == row.values[b] for a, b in pairs)
        return agrees and found.start + node.lower <= time <= found.end + node.upper

    def beside(row: Row, frame: FrameBag) -> Row:
        return Row(frame.key + (None,) * len(before) + row.values + (None,) * len(after), row.time)

    return [[beside(row, each) for row in rows if belongs(row, each)] for each in frames]


def _new_rows(bags: list[Bag], frames: list[FrameBag]) -> list[Bag]:
    """Rows that were listed with an earlier fragment of a frame are not listed again."""
    seen: dict[tuple[Any, ...], int] = {}
    found = []
    for bag, frame in zip(bags, frames, strict=True):
        which = (frame.key, frame.found.number)
        found.append(bag[seen.get(which, 0) :])
        seen[which] = len(bag)
    return found


def _group_rows(node: Group, filled: FrameBag, bag: Bag) -> Bag:
    """The groups inside a frame; a group without keys of its own exists even if it is empty."""
    names = [column.name for column in node.child.columns]
    inner = [names.index(key) for key in node.keys[len(filled.key) :]]
    groups: dict[tuple[Any, ...], Bag] = {} if inner else {(): []}
    for row in bag:
        groups.setdefault(tuple(row.values[place] for place in inner), []).append(row)
    return [
        Row(filled.key + key + tuple(aggregate_rows(call, names, rows) for call in node.calls), filled.found.end)
        for key, rows in groups.items()
    ]
