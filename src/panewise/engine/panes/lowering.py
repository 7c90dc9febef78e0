"""Chunks of states as rows of keys and answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array, concat_states, runs, states_at
from panewise.core.errors import PanewiseError
from panewise.engine.blame import first_failing
from panewise.engine.panes.evaluators import Chunk
from panewise.engine.panes.family import Family


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Grouped rows, by subscription and then by instant.

    Each belongs to a *turn*: one subscription at one instant, or at one revision of it. `present` is whether a group
    has items, `starts` the start of the window, if its items decide it, `oldest` the time of the oldest item, if
    results have an expiry.
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
        )

    def by_turn(self) -> Iterator[range]:
        """The places of each turn's rows."""
        starts, stops = runs(self.turns)
        return (range(a, b) for a, b in zip(starts.tolist(), stops.tolist(), strict=True))


def lower_chunks(family: Family, chunks: Sequence[Chunk]) -> GroupRows:
    """All chunks as rows. States that several subscriptions share are lowered once."""
    subscriptions, at, origin = _turns(chunks)
    once = len(subscriptions) == len(chunks)
    if once:
        # If each chunk is used once, chunks are sorted before they are lowered, so that rows need not be moved.
        chunks, origin = [chunks[number] for number in origin], np.arange(len(chunks))
    sizes = np.array([len(chunk.codes) for chunk in chunks], np.int64)
    codes = np.concatenate([chunk.codes for chunk in chunks])
    table, present, oldest = _answers(family, chunks, codes)
    counts = sizes[origin]
    revised = np.array([chunk.revised for chunk in chunks], bool)
    decided = any(chunk.start is not None for chunk in chunks)
    starts = np.array([chunk.start or 0 for chunk in chunks], np.int64) if decided else None
    rows = GroupRows(
        table,
        np.repeat(subscriptions, counts),
        np.repeat(at, counts),
        codes,
        np.repeat(np.arange(len(subscriptions)), counts),
        present,
        np.repeat(revised[origin], counts),
        None if starts is None else np.repeat(starts[origin], counts),
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


def locate_overflow(family: Family, chunks: Sequence[Chunk]) -> None:
    """Lower chunks, and name the group for which that fails."""
    try:
        for chunk in chunks:
            _answers(family, [chunk], chunk.codes)
    except PanewiseError as problem:
        place = first_failing(len(chunk.codes), lambda low, high: _lower_slice(family, chunk, low, high))
        keys = family.keys.take(chunk.codes[place : place + 1])
        problem.row = {name: key[0].as_py() for name, key in zip(family.plan.group.keys, keys, strict=True)}
        raise


def _lower_slice(family: Family, chunk: Chunk, low: int, high: int) -> None:
    """Lower some groups of a chunk."""
    places = np.arange(low, high)
    states = [states_at(words, places) for words in chunk.states]
    _answers(family, [replace(chunk, states=states)], chunk.codes[low:high])


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


def _answers(
    family: Family, chunks: Sequence[Chunk], codes: Int64Array
) -> tuple[pa.Table, npt.NDArray[np.bool_], pa.Array | None]:
    """Keys and answers of all chunks, whether groups have items, and the oldest item of each."""
    states = [concat_states([chunk.states[n] for chunk in chunks]) for n in range(len(family.columns))]
    lower = [column.lower(words) for column, words in zip(family.columns, states, strict=True)]
    oldest = lower.pop() if family.expiry_column else None
    group = family.plan.group
    answers = [
        lower[1 + family.stored_calls.index(call)] if call in family.stored_calls else lower[0] for call in group.calls
    ]
    names = [*group.keys, *(call.name for call in group.calls), "#code"]
    table = pa.table([*family.keys.take(codes), *answers, pa.array(codes)], names=names)
    return table, states[0][0] > 0, oldest
