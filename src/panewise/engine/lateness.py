"""What happens to late rows: to which instants they belong, and which of those were open when they arrived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Int64Array
from panewise.core.time import Boundary
from panewise.window import LogicalWindow

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Verdict:
    """For late rows, by arrival: whether they belong to some instant, to an open one, and to one that was final."""

    order: Int64Array
    wanted: Flags
    seen: Flags
    missed: Flags


def late_verdict(
    window: LogicalWindow,
    boundary: Boundary,
    order: Int64Array,
    times: Int64Array,
    visible: Int64Array,
    patience: int = 0,
) -> Verdict:
    """The verdict of one window; rows are visible from an instant on, or earlier if instants may be revised."""
    enter, leave = window.lifetimes(times, boundary)
    wanted: Flags = enter < leave
    first_seen = np.maximum(enter, window.instants_from(visible - patience))
    return Verdict(order, wanted, wanted & (first_seen < leave), wanted & (enter < visible))


def visible_lifetimes(
    window: LogicalWindow, times: Int64Array, visible: Int64Array, boundary: Boundary
) -> tuple[Int64Array, Int64Array]:
    """When items enter a window and leave it; late ones enter with the first instant at which they are visible."""
    enter, leave = window.lifetimes(times, boundary)
    late = visible > times + boundary.shift
    if not late.any():
        return enter, leave
    return np.where(late, np.maximum(enter, window.instants_from(visible)), enter), leave


class Ledger:
    """Collects the verdicts of all windows of a stream for one batch."""

    def __init__(self) -> None:
        #: Verdicts, and the queries whose windows they are of.
        self.entries: list[tuple[tuple[str, ...], Verdict]] = []

    def add(self, verdict: Verdict, queries: Iterable[str]) -> None:
        self.entries.append((tuple(queries), verdict))

    @property
    def late(self) -> Int64Array:
        """Rows that are wholly late for every window to which they belong, in arrival order."""
        return _wholly_late([verdict for _, verdict in self.entries])

    @property
    def partly_late(self) -> Int64Array:
        """Rows that are in some window and that were too late for some instant."""
        if not self.entries:
            return np.zeros(0, np.int64)
        seen = _flagged_rows([(verdict.order, verdict.seen) for _, verdict in self.entries])
        missed = _flagged_rows([(verdict.order, verdict.missed) for _, verdict in self.entries])
        return np.intersect1d(seen, missed, assume_unique=True)

    def late_by_query(self) -> dict[str, Int64Array]:
        """For each query, the rows that are wholly late for all of its windows to which they belong."""
        verdicts: dict[str, list[Verdict]] = {}
        for queries, verdict in self.entries:
            for name in queries:
                verdicts.setdefault(name, []).append(verdict)
        return {name: late for name, some in verdicts.items() if len(late := _wholly_late(some))}


def _wholly_late(verdicts: Sequence[Verdict]) -> Int64Array:
    if not verdicts:
        return np.zeros(0, np.int64)
    wanted, seen = (
        _flagged_rows([(v.order, v.wanted) for v in verdicts]),
        _flagged_rows([(v.order, v.seen) for v in verdicts]),
    )
    return np.setdiff1d(wanted, seen, assume_unique=True)


def _flagged_rows(chosen: Sequence[tuple[Int64Array, Flags]]) -> Int64Array:
    """The different rows that are flagged anywhere, ascending."""
    if not chosen:
        return np.zeros(0, np.int64)
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(order[flags] for order, flags in chosen)]))
