"""Session windows: items that follow each other closely, reported once no item has come for the length of the gap.

Items exactly the gap apart belong to one session. A session ends at its last item plus the gap: that is its instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from panewise.core.time import Boundary, Domain, Ticks, duration_text
from panewise.window.base import Contents, Pattern, Window, WindowRetention, require_positive

Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Session(Window):
    """`[PARTITION BY columns SESSION gap]`.

    Arrivals are replayed: an item joins the sessions within the gap that are still open when it arrives, and is late
    when even the joined session has ended by then. What has been reported never grows again.
    """

    gap: int
    partition_by: tuple[str, ...] = ()

    retention = WindowRetention.FOLLOWS_SESSIONS

    def __post_init__(self) -> None:
        require_positive("gap", self.gap)

    @property
    def pattern(self) -> Pattern:
        """A session leaves as a whole at a known time, like a tumbling state."""
        return Pattern.WEAK

    @property
    def periodic(self) -> bool:
        return True

    @property
    def logical(self) -> bool:
        """Selecting before or after a session window differs: a removed item may have bridged two sessions."""
        return False

    def assign(self, contents: Contents, boundary: Boundary) -> tuple[Ticks, Ticks, Flags]:
        """First time and end of each item's session, and which items came in time for one."""
        if not len(contents) or contents.marks.max() == np.iinfo(np.int64).min:
            return self._runs(contents.times)
        sessions: list[tuple[int, int, list[int]]] = []
        for place in np.argsort(contents.arrivals, kind="stable"):
            time, mark = int(contents.times[place]), int(contents.marks[place])
            near = [s for s in sessions if s[0] - self.gap <= time <= s[1] and not boundary.is_final(s[1], mark)]
            first = min([time, *(s[0] for s in near)])
            end = max([time + self.gap, *(s[1] for s in near)])
            if boundary.is_final(end, mark):
                continue
            sessions = [s for s in sessions if s not in near]
            sessions.append((first, end, [int(place), *(p for s in near for p in s[2])]))
        return _columns(sessions, len(contents))

    def _runs(self, times: Ticks) -> tuple[Ticks, Ticks, Flags]:
        """Where nothing can be late, sessions are the runs between pauses that are longer than the gap."""
        cuts = np.flatnonzero(np.diff(times) > self.gap) + 1
        starts, stops = np.concatenate(([0], cuts)), np.concatenate((cuts, [len(times)]))
        sizes = stops - starts
        if not len(times):
            return times, times, np.zeros(0, bool)
        return np.repeat(times[starts], sizes), np.repeat(times[stops - 1] + self.gap, sizes), np.ones(len(times), bool)

    def members(self, contents: Contents, at: int, boundary: Boundary) -> Ticks:
        _, ends, joined = self.assign(contents, boundary)
        return np.flatnonzero(joined & (ends == at)).astype(np.int64)

    def instants(self, contents: Contents, boundary: Boundary) -> Ticks:
        _, ends, joined = self.assign(contents, boundary)
        return np.unique(ends[joined])

    def next_instants(self, instants: Ticks) -> Ticks:
        return instants + 1

    def spans(self, instants: Ticks) -> tuple[Ticks | None, Ticks]:
        return None, instants

    def text(self, domain: Domain) -> str:
        parts = f"PARTITION BY {', '.join(f'`{c}`' for c in self.partition_by)} " if self.partition_by else ""
        return f"{parts}SESSION {duration_text(self.gap, domain)}"


def _columns(sessions: list[tuple[int, int, list[int]]], size: int) -> tuple[Ticks, Ticks, Flags]:
    first, end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    joined = np.zeros(size, bool)
    for start, stop, places in sessions:
        first[places], end[places], joined[places] = start, stop, True
    return first, end, joined
