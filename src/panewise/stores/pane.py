"""A pane: the states of all groups over one stretch of the stream, kept sparse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from panewise.aggregate import Int64Array, StateArrays, StateWords, bytes_of, put, states_at


@dataclass(frozen=True, eq=False)
class Pane:
    """Groups with items in `(start, end]`: their codes, ascending, and for each aggregate their states."""

    start: int
    end: int
    codes: Int64Array
    states: tuple[StateWords, ...]

    @property
    def where(self) -> Any:
        """The codes as an index."""
        return index_of(self.codes)

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + sum(map(bytes_of, self.states))

    def with_codes(self, codes: Int64Array) -> Pane:
        """The same pane after groups got new codes; `codes[old]` is the new one."""
        fresh = codes[self.codes]
        order = np.argsort(fresh)
        return Pane(self.start, self.end, fresh[order], tuple(states_at(words, order) for words in self.states))


@dataclass(frozen=True, eq=False)
class PaneSpans:
    """The stretches `(start, end]` of several panes."""

    starts: Int64Array
    ends: Int64Array

    @classmethod
    def of(cls, panes: Iterable[Pane]) -> PaneSpans:
        starts, ends = np.array([(pane.start, pane.end) for pane in panes], np.int64).reshape(-1, 2).T
        return cls(starts, ends)


def index_of(codes: Int64Array) -> Any:
    """Ascending codes as an index; those that follow each other are a slice, which arrays serve much faster."""
    if len(codes) and codes[-1] - codes[0] == len(codes) - 1:
        return slice(int(codes[0]), int(codes[-1]) + 1)
    return codes


def merge_panes(columns: Sequence[StateArrays], panes: Sequence[Pane]) -> Pane:
    """Several panes as one that spans them all."""
    if len(panes) == 1:
        return panes[0]
    start, end = min(p.start for p in panes), max(p.end for p in panes)
    codes, ranks = _union([p.codes for p in panes])
    states = []
    for number, column in enumerate(columns):
        words = column.identity(len(codes))
        for pane, at in zip(panes, ranks, strict=True):
            put(words, at, column.combine(states_at(words, at), pane.states[number]))
        states.append(words)
    return Pane(start, end, codes, tuple(states))


def _union(codes: list[Int64Array]) -> tuple[Int64Array, list[Any]]:
    """All codes, ascending, each once, and where those of each part are among them.

    By marking where codes are dense, since sorting and searching cost more.
    """
    top = max((int(c[-1]) for c in codes if len(c)), default=-1) + 1
    if top > 8 * sum(map(len, codes)):
        whole = np.unique(np.concatenate(codes))
        return whole, [np.searchsorted(whole, each) for each in codes]
    marks = np.zeros(top, bool)
    for each in codes:
        marks[each] = True
    whole = np.flatnonzero(marks)
    places = np.cumsum(marks) - 1
    return whole, [slice(None) if len(each) == len(whole) else places[each] for each in codes]
