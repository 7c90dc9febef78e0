"""Which index answers lookups over kept panes or rows: the cheapest for the present rates of these and of lookups."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2
from typing import Generic, TypeVar

import numpy as np

from panewise.aggregate import Int64Array, StateArrays
from panewise.plan.rules.rule import Rule, RulesOff
from panewise.stores.arrays import BaseArrays
from panewise.stores.arrays.landmarks import partition_widths
from panewise.stores.dense import BaseArrayIndex, LandmarkIndex, RunningIndex
from panewise.stores.indexes import BaseIntervalIndex, PaneIndex, RecomputeIndex
from panewise.stores.ranked import QuantileIndex, RowQuantileIndex
from panewise.stores.row_indexes import RowBaseIndex, RowIndex, RowLevelIndex, RowRecomputeIndex, RowRunningIndex

RULE = Rule("choose_index", "kept panes and rows are indexed for the windows that lookups ask for")

#: Arrays over all groups and panes may have so many cells, and must be filled to this share.
MOST_CELLS, LEAST_FILLED = 1 << 24, 0.125
#: States in arrays cost so much less than states one by one.
VECTOR_SPEEDUP = 8
#: Another index must be this much cheaper than the present one, so that the choice does not change too often.
SWITCH_FACTOR = 2.0
#: Different widths that are remembered; windows with more of them are taken to be of any width.
MAX_WIDTHS = 32

AnyIndex = TypeVar("AnyIndex", bound=PaneIndex | RowIndex | RowQuantileIndex)


@dataclass
class LookupUsage:
    """What has been asked and what has come since the last decision."""

    updates: int = 0
    lookups: int = 0
    panes: int = 0
    groups: int = 0
    #: How many groups there are: arrays have room for all, however few are asked for.
    size: int = 0
    widths: set[int] = field(default_factory=set)
    _last: tuple[int, int] = (0, 0)

    def record_lookups(self, widths: Int64Array, groups: int, size: int) -> None:
        self.lookups += len(widths)
        self.panes += int(widths.sum())
        self.groups, self.size = max(self.groups, groups), size
        if len(self.widths) <= MAX_WIDTHS:
            self.widths.update(np.unique(widths).tolist()[: MAX_WIDTHS + 1])

    def is_due(self, patience: int) -> bool:
        """Whether there were enough lookups or panes to choose again."""
        updates, lookups = self._last
        return self.updates - updates >= patience or self.lookups - lookups >= patience

    def halve_counts(self) -> None:
        """Halve all counts, so that recent lookups count more than old ones."""
        self.updates, self.lookups, self.panes = self.updates // 2, self.lookups // 2, self.panes // 2
        self._last = self.updates, self.lookups

    @property
    def width(self) -> float:
        """The mean width of the windows asked for, in panes."""
        return max(self.panes / max(self.lookups, 1), 1.0)


@dataclass(frozen=True)
class IndexChoice(Generic[AnyIndex]):
    """A decision and its reason, in one sentence."""

    index: type[AnyIndex]
    reason: str


def choose_index(
    column: StateArrays,
    usage: LookupUsage,
    panes: int,
    cells: int,
    current: IndexChoice[PaneIndex] | None = None,
    rules_off: RulesOff = frozenset(),
) -> IndexChoice[PaneIndex]:
    """The index for one column of states, kept in `panes` panes with `cells` states altogether."""
    if RULE in rules_off:
        return IndexChoice(RecomputeIndex, f"{RULE} is switched off")
    best = _cheapest(_costs(column, usage, panes, cells), current)
    return IndexChoice(best, f"{best.name}: {_reason(column, usage, 'panes')} new panes")


def choose_row_index(
    column: StateArrays,
    usage: LookupUsage,
    partitioned: bool,
    current: IndexChoice[RowIndex | RowQuantileIndex] | None = None,
    rules_off: RulesOff = frozenset(),
) -> IndexChoice[RowIndex | RowQuantileIndex]:
    """The index for one column of states over kept rows; `usage` counts rows where it says panes.

    L-INT is not among them: rows that come later are kept apart for a while, which cuts windows to any width.
    """
    if RULE in rules_off:
        return IndexChoice(RowRecomputeIndex, f"{RULE} is switched off")
    depth = 2 * log2(usage.width) + 1
    costs: dict[type[RowIndex | RowQuantileIndex], float] = {RowRecomputeIndex: usage.panes}
    if QuantileIndex.accepts(column):
        # States grow with the width, so that combining them is not better; rows of a partition do not lie together.
        if not partitioned:
            costs[RowQuantileIndex] = usage.updates * depth + usage.lookups * depth**2
    else:
        costs[RowBaseIndex if RowBaseIndex.accepts(column) else RowLevelIndex] = (
            2 * usage.updates + usage.lookups * depth
        )
    if RowRunningIndex.accepts(column):
        costs[RowRunningIndex] = usage.updates + 2 * usage.lookups
    best = _cheapest(costs, current)
    return IndexChoice(best, f"{best.name}: {_reason(column, usage, 'rows')} rows that were new or moved")


def _cheapest(costs: dict[type[AnyIndex], float], current: IndexChoice[AnyIndex] | None) -> type[AnyIndex]:
    """The index that costs least; the current one unless it costs much more."""
    best = min(costs, key=lambda index: costs[index])
    if current is not None and current.index in costs and costs[current.index] < SWITCH_FACTOR * costs[best]:
        return current.index
    return best


def _costs(column: StateArrays, usage: LookupUsage, panes: int, cells: int) -> dict[type[PaneIndex], float]:
    """States combined for what came and was asked, by each index that laws and memory allow."""
    groups = max(cells / max(panes, 1), 1.0)
    asked = usage.lookups * max(min(usage.groups, groups), 1.0)
    arrival = usage.updates * groups
    depth = 2 * log2(usage.width) + 1
    costs: dict[type[PaneIndex], float] = {
        RecomputeIndex: asked * usage.width,
        BaseIntervalIndex: arrival + asked * depth,
    }
    if QuantileIndex.accepts(column):
        costs[QuantileIndex] = 2 * (arrival + cells) + asked * depth / VECTOR_SPEEDUP
    size = max(usage.size, 1) * panes
    numbers = not any(word.dtype.hasobject for word in column.identity(0))
    if not (numbers and BaseArrays.accepts(column)) or size > MOST_CELLS or cells < LEAST_FILLED * size:
        return costs
    build = (arrival + cells) / VECTOR_SPEEDUP
    costs[BaseArrayIndex] = 2 * build + asked * depth / VECTOR_SPEEDUP
    if column.exact:
        costs[RunningIndex] = build + 2 * asked / VECTOR_SPEEDUP
    elif len(usage.widths) <= MAX_WIDTHS:
        spread = len(partition_widths(sorted(usage.widths - {0}))) if usage.widths - {0} else 1
        costs[LandmarkIndex] = 4 * spread * build + 2 * asked / VECTOR_SPEEDUP
    return costs


def _reason(column: StateArrays, usage: LookupUsage, units: str) -> str:
    law = "can be subtracted exactly" if column.exact else "cannot be subtracted"
    lookups = f"{usage.lookups} lookups of {usage.width:.0f} {units} on average"
    return f"states {law}; {lookups} met {usage.updates}"
