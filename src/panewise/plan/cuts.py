"""Where a stream is cut into panes, so that no window edge ever falls inside one.

Uniform panes are as wide as the greatest common divisor of all edges. Paired ones follow the edges themselves, which
are far fewer when a range is no multiple of its slide. Paper: "Subsuming windows" section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, lcm

import numpy as np

from panewise import kernels
from panewise.core.time import Domain, Ticks, duration_text
from panewise.window import Edges

#: A pattern of more edges than this is not worth remembering.
LONGEST_PATTERN = 100_000


@dataclass(frozen=True, eq=False)
class Cuts:
    """Panes `(c[i - 1], c[i]]` between cuts that repeat: `origin + k * period + offset`, offsets ascending from 0."""

    origin: int
    period: int
    offsets: Ticks

    @property
    def uniform(self) -> bool:
        return len(self.offsets) == 1

    def pane_numbers(self, positions: Ticks) -> Ticks:
        """The number of the pane that holds each position; numbers follow time."""
        if self.uniform:
            found: Ticks = kernels.pane_numbers(positions, self.origin, self.period)
            return found
        turns, rest = np.divmod(positions - self.origin - 1, self.period)
        return turns * len(self.offsets) + np.searchsorted(self.offsets, rest, side="right")

    def end(self, number: int) -> int:
        """The last position of a pane."""
        turn, place = divmod(number, len(self.offsets))
        return self.origin + turn * self.period + int(self.offsets[place])

    def start(self, number: int) -> int:
        """The position just before a pane."""
        return self.end(number - 1)

    def cover(self, edges: Iterable[Edges]) -> bool:
        """Whether panes end at all these edges already."""
        return all(map(self._ends_at, edges))

    def _ends_at(self, edge: Edges) -> bool:
        if self.uniform:
            return not edge.step % self.period and not (edge.residue - self.origin) % self.period
        if self.period % edge.step:
            return False
        wanted = np.arange((edge.residue - self.origin) % edge.step, self.period, edge.step, dtype=np.int64)
        return bool(np.isin(wanted, self.offsets).all())

    def text(self, domain: Domain) -> str:
        """What `explain` says."""
        length = duration_text(self.period, domain)
        return f"panes of {length}" if self.uniform else f"{len(self.offsets)} panes in every {length}"


def coarsest_cuts(edges: Iterable[Edges]) -> Cuts:
    """The coarsest panes that all edges agree with."""
    wanted = sorted(set(edges), key=lambda e: (e.step, e.residue))
    origin = wanted[0].residue
    width = gcd(*(n for e in wanted for n in (e.step, e.residue - origin)))
    uniform = Cuts(origin, width, np.zeros(1, np.int64))
    period = 1
    for edge in wanted:
        period = lcm(period, edge.step)
        if period // edge.step > LONGEST_PATTERN:
            return uniform
    if 2 * sum(period // e.step for e in {Edges(e.residue % e.step, e.step) for e in wanted}) > period // width:
        return uniform
    offsets = [np.arange((e.residue - origin) % e.step, period, e.step, dtype=np.int64) for e in wanted]
    return Cuts(origin, period, np.unique(np.concatenate(offsets)))
