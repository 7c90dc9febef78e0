"""What becomes of late rows: which instants wanted them, and which of those were still open when they arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Longs
from panewise.engine.feeds import Feed
from panewise.window import Cumulate, Sliding

Flags = npt.NDArray[np.bool_]

#: An instant after all others: a window that nothing leaves still wants its items then.
EVER = 2**62


@dataclass(frozen=True, eq=False)
class Verdict:
    """For late rows, by arrival: wanted by some instant, seen by one that was open, missed by one that was not."""

    order: Longs
    wanted: Flags
    seen: Flags
    missed: Flags


def judged(feed: Feed, order: Longs, positions: Longs, visible: Longs) -> Verdict:
    """The verdict of one window; rows are visible from an instant on."""
    first, last = presence(feed, positions)
    grid = feed.window.grid or (0, 1)
    patient = visible - (feed.revise or 0)
    return Verdict(
        order,
        _any(first, last, grid),
        _any(np.maximum(first, patient), last, grid),
        _any(first, np.minimum(last, visible - 1), grid),
    )


def presence(feed: Feed, positions: Longs) -> tuple[Longs, Longs]:
    """The first and last moment at which each position is in the window."""
    match feed.window:
        case Sliding(range=length, lag=lag):
            return positions + lag, positions + lag + length - 1
        case Cumulate(size=size, start=start):
            return positions, start + ((positions - 1 - start) // size + 1) * size
    return positions, np.full_like(positions, EVER)


def _any(first: Longs, last: Longs, grid: tuple[int, int]) -> Flags:
    """Whether a grid point lies in each closed interval."""
    origin, step = grid
    found: Flags = (last - origin) // step * step + origin >= first
    return found


class Ledger:
    """Adds up verdicts of all windows of a stream for one batch."""

    def __init__(self) -> None:
        self._wanted: set[int] = set()
        self._seen: set[int] = set()
        self._missed: set[int] = set()

    def add(self, verdict: Verdict) -> None:
        self._wanted.update(verdict.order[verdict.wanted].tolist())
        self._seen.update(verdict.order[verdict.seen].tolist())
        self._missed.update(verdict.order[verdict.missed].tolist())

    @property
    def late(self) -> list[int]:
        """Rows that every window that wanted them missed altogether, in arrival order."""
        return sorted(self._wanted - self._seen)

    @property
    def partly_late(self) -> int:
        return len(self._seen & self._missed)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many rows lie in which pane, and who wants them: bit n of `wanted` stands for the n-th set of families."""

    ends: Longs
    wanted: Longs
    rows: Longs

    @property
    def total(self) -> int:
        return int(self.rows.sum())

    @classmethod
    def of(cls, ends: Longs, wanted: Longs) -> Tally:
        """Rows one by one, counted."""
        pairs, rows = np.unique(np.stack((ends, wanted)), axis=1, return_counts=True)
        return cls(pairs[0], pairs[1], rows)

    def judged(self, families: Sequence[Sequence[Feed]], visible: int) -> tuple[int, int]:
        """How many rows are late for every window that wanted them, and for some of them only.

        All positions of a pane meet the same instants, so its end speaks for all its rows.
        """
        late = self.ends < visible
        ends, wanted, rows = self.ends[late], self.wanted[late], self.rows[late]
        if not len(rows):
            return 0, 0
        any_wanted, any_seen, any_missed = (np.zeros(len(rows), bool) for _ in range(3))
        for bit, feeds in enumerate(families):
            mine = (wanted >> bit) & 1 > 0
            for feed in feeds:
                verdict = judged(feed, ends, ends, np.full(len(ends), visible))
                any_wanted |= mine & verdict.wanted
                any_seen |= mine & verdict.seen
                any_missed |= mine & verdict.missed
        return int(rows[any_wanted & ~any_seen].sum()), int(rows[any_seen & any_missed].sum())
