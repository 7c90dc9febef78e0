"""What becomes of late rows: which instants wanted them, and which of those were still open when they arrived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        #: Verdicts, and the queries whose windows they are of.
        self.entries: list[tuple[tuple[str, ...], Verdict]] = []

    def add(self, verdict: Verdict, queries: Iterable[str]) -> None:
        self.entries.append((tuple(queries), verdict))

    @property
    def late(self) -> Longs:
        """Rows that every window that wanted them missed altogether, in arrival order."""
        return _lost([verdict for _, verdict in self.entries])

    @property
    def partly_late(self) -> Longs:
        """Rows that some windows saw and some instants missed."""
        seen = _rows([(verdict.order, verdict.seen) for _, verdict in self.entries])
        missed = _rows([(verdict.order, verdict.missed) for _, verdict in self.entries])
        return np.intersect1d(seen, missed, assume_unique=True)

    def late_by_query(self) -> dict[str, Longs]:
        """For each query the rows that all of its windows that wanted them missed altogether."""
        verdicts: dict[str, list[Verdict]] = {}
        for queries, verdict in self.entries:
            for name in queries:
                verdicts.setdefault(name, []).append(verdict)
        return {name: late for name, some in verdicts.items() if len(late := _lost(some))}


def _lost(verdicts: Sequence[Verdict]) -> Longs:
    wanted, seen = _rows([(v.order, v.wanted) for v in verdicts]), _rows([(v.order, v.seen) for v in verdicts])
    return np.setdiff1d(wanted, seen, assume_unique=True)


def _rows(chosen: Sequence[tuple[Longs, Flags]]) -> Longs:
    """The different rows that are flagged anywhere, ascending."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(order[flags] for order, flags in chosen)]))
