"""Chunks of states as rows of keys and answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array, concat_states, runs
from panewise.core.errors import PanewiseError
from panewise.engine.blame import first_failing
from panewise.engine.group_changes import report_order
from panewise.engine.group_steps import GroupSteps
from panewise.engine.panes.chunks import ChangeRun, Chunk
from panewise.engine.panes.family import Family


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Grouped rows, by subscription and then by instant.

    Each belongs to a *turn*: one subscription at one instant, or at one revision of it. `present` is whether a group
    has items, `starts` the start of the window, if its items decide it, `oldest` the time of the oldest item, if
    results have an expiry; with `expires` it is the instant or the order at which that item leaves.
    """

    table: pa.Table
    subscriptions: Int64Array
    at: Int64Array
    codes: Int64Array
    turns: Int64Array
    present: npt.NDArray[np.bool_]
    revised: npt.NDArray[np.bool_]
    starts: Int64Array | None
    oldest: pa.Array | None
    expires: bool = False

    def __len__(self) -> int:
        return len(self.subscriptions)

    def take(self, places: Int64Array) -> GroupRows:
        index = pa.array(places)
        return GroupRows(
            self.table.take(index),
            self.subscriptions[places],
            self.at[places],
            self.codes[places],
            self.turns[places],
            self.present[places],
            self.revised[places],
            None if self.starts is None else self.starts[places],
            None if self.oldest is None else self.oldest.take(index),
            self.expires,
        )

    def by_turn(self) -> Iterator[range]:
        """The places of each turn's rows."""
        starts, stops = runs(self.turns)
        return (range(a, b) for a, b in zip(starts.tolist(), stops.tolist(), strict=True))


def lower_chunks(family: Family, pending: Sequence[Chunk | ChangeRun]) -> GroupRows:
    """All chunks as rows. States that several subscriptions share are lowered once."""
    if runs_of_changes := [each for each in pending if isinstance(each, ChangeRun)]:
        return _lower_runs(family, runs_of_changes)
    chunks = [each for each in pending if isinstance(each, Chunk)]
    subscriptions, at, origin = _turns(chunks)
    once = len(subscriptions) == len(chunks)
    if once:
        # If each chunk is used once, chunks are sorted before they are lowered, so that rows need not be moved.
        chunks, origin = [chunks[number] for number in origin], np.arange(len(chunks))
    sizes = np.array([len(chunk.codes) for chunk in chunks], np.int64)
    codes = np.concatenate([chunk.codes for chunk in chunks])
    states = [concat_states([chunk.states[n] for chunk in chunks]) for n in range(len(family.columns))]
    table, present, oldest = _answers(family, GroupSteps(codes, codes, family.columns, states))
    counts = sizes[origin]
    revised = np.array([chunk.revised for chunk in chunks], bool)
    rows = GroupRows(
        table,
        np.repeat(subscriptions, counts),
        np.repeat(at, counts),
        codes,
        np.repeat(np.arange(len(subscriptions)), counts),
        present,
        np.repeat(revised[origin], counts),
        None,
        oldest,
    )
    if once:
        return rows
    # The n-th row of a turn is the n-th row of the chunk it came from.
    firsts = (np.cumsum(sizes) - sizes)[origin]
    places = np.repeat(firsts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return replace(
        rows,
        table=table.take(pa.array(places)),
        codes=codes[places],
        present=present[places],
        oldest=None if oldest is None else oldest.take(pa.array(places)),
    )


def _lower_runs(family: Family, several: Sequence[ChangeRun]) -> GroupRows:
    """The same for runs of changes; the order of groups stays, and instants are ordered where states are whole."""
    found = [_answers(family, run.steps) for run in several]
    at, codes = (_concat([getattr(run.steps, name) for run in several]) for name in ("at", "codes"))
    subscriptions = _concat([run.subscriptions for run in several])
    oldest = [old for _, _, old in found if old is not None]
    decided = any(run.starts is not None for run in several)
    starts = [run.steps.at if run.starts is None else run.starts for run in several]
    rows = GroupRows(
        found[0][0] if len(found) == 1 else pa.concat_tables([table for table, _, _ in found]).combine_chunks(),
        subscriptions,
        at,
        codes,
        np.zeros(len(at), np.int64),
        _concat([present for _, present, _ in found]),
        np.zeros(len(at), bool),
        np.concatenate(starts) if decided else None,
        (oldest[0] if len(oldest) == 1 else pa.concat_arrays(oldest)) if oldest else None,
        expires=family.plan.keeps_rows,
    )
    whole = decided or family.plan.repeats_on_change
    return rows.take(report_order(subscriptions, at)) if whole else rows


def _concat(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def locate_overflow(family: Family, pending: Sequence[Chunk | ChangeRun]) -> None:
    """Lower chunks, and name the group for which that fails."""
    try:
        for each in pending:
            steps = each.steps if isinstance(each, ChangeRun) else _chunk_steps(family, each)
            _answers(family, steps)
    except PanewiseError as problem:
        place = first_failing(len(steps), lambda low, high: _answers(family, steps.at_places(slice(low, high))))
        keys = family.keys.take(steps.codes[place : place + 1])
        problem.row = {name: key[0].as_py() for name, key in zip(family.plan.group.keys, keys, strict=True)}
        raise


def _chunk_steps(family: Family, chunk: Chunk) -> GroupSteps:
    return GroupSteps(chunk.codes, np.full(len(chunk.codes), chunk.at), family.columns, chunk.states)


def _turns(chunks: Sequence[Chunk]) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The subscription, the instant and the chunk of every turn, ordered by these."""
    pairs = [(number, place) for place, chunk in enumerate(chunks) for number in chunk.subscriptions]
    subscriptions, origin = np.array(pairs, np.int64).T
    parts = [(subscriptions, np.array([chunk.at for chunk in chunks], np.int64)[origin], origin)]
    for place, chunk in enumerate(chunks):
        if times := len(chunk.again):
            parts += [(np.full(times, number), chunk.again, np.full(times, place)) for number in chunk.subscriptions]
    subscriptions, at, origin = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((origin, at, subscriptions))
    return subscriptions[order], at[order], origin[order]


def _answers(family: Family, steps: GroupSteps) -> tuple[pa.Table, npt.NDArray[np.bool_], pa.Array | None]:
    """Keys and answers of some states, whether groups have items, and the oldest item of each."""
    lower = [column.lower(words) for column, words in zip(steps.columns, steps.states, strict=True)]
    oldest = lower.pop() if family.expiry_column else None
    answers = [lower[place] for place in family.answer_places]
    arrays = [*family.keys.take(steps.codes), *answers, pa.array(steps.codes)]
    return pa.Table.from_arrays(arrays, family.answer_names), steps.states[0][0] > 0, oldest
