"""Panes that are still being filled: rows enter in any order; a pane is closed once time has passed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from panewise import kernels
from panewise.aggregate import Int64Array, Items, StateArrays, StateWords, states_at
from panewise.engine.state.snapshot import Tree, pane_tree, panes_from
from panewise.plan.cuts import Cuts
from panewise.stores.pane import Pane, merge_panes

#: Parts of one pane that are kept apart before they are merged; merging each at once would cost a pass a batch.
MANY_PARTS = 8


@dataclass(frozen=True)
class Era:
    """Positions in `(since, until]`, and how they are cut."""

    since: int
    until: int
    cuts: Cuts


@dataclass(frozen=True)
class LatePanes:
    """Late rows as panes, and the instant from which they count."""

    visible: int
    panes: list[Pane]


class OpenPanes:
    """Unfinished panes of one family. When windows join, cuts may change; panes that have begun keep theirs."""

    def __init__(self, columns: Sequence[StateArrays], cuts: Cuts) -> None:
        self.columns = columns
        #: The first position after which each set of cuts holds, oldest first.
        self.eras: list[tuple[int, Cuts]] = [(-(2**62), cuts)]
        self._parts: dict[tuple[int, int], list[Pane]] = {}

    @property
    def frontier(self) -> int:
        """The end of the newest pane that has begun; later positions may be cut in another way."""
        return max((end for _, end in self._parts), default=self.eras[-1][0])

    @property
    def ends(self) -> list[int]:
        """Where the unfinished panes end."""
        return [end for _, end in self._parts]

    def panes(self) -> list[Pane]:
        """All unfinished panes, oldest first."""
        self._parts = {key: [merge_panes(self.columns, parts)] for key, parts in self._parts.items()}
        return [self._parts[key][0] for key in sorted(self._parts, key=lambda key: key[1])]

    def recut(self, cuts: Cuts) -> None:
        """Use other cuts from the frontier on."""
        frontier = self.frontier
        self.eras = [era for era in self.eras if era[0] < frontier] + [(frontier, cuts)]

    def take(self, positions: Int64Array, codes: Int64Array, items: Sequence[Items], groups: int) -> None:
        """Add rows, with the inputs of each column of states; `groups` is how many codes there are."""
        if len(self.eras) == 1:
            self._fill(next(self._era_spans()), positions, codes, items, groups)
            return
        low, high = int(positions.min()), int(positions.max())
        for era in self._era_spans():
            if era.since < low and high <= era.until:
                self._fill(era, positions, codes, items, groups)
            elif era.since < high and low <= era.until:
                inside = (positions > era.since) & (positions <= era.until)
                if inside.any():
                    some = [each.take(inside) for each in items]
                    self._fill(era, positions[inside], codes[inside], some, groups)

    def take_numbered(self, numbers: Int64Array, codes: Int64Array, items: Sequence[Items], groups: int) -> None:
        """Add rows whose panes are known already, by the cuts that hold now."""
        cuts = self.eras[-1][1]
        for number, present, states in gather_panes(self.columns, numbers, codes, items, groups):
            self._add(Pane(cuts.start(number), cuts.end(number), present, states))

    def add(self, pane: Pane) -> None:
        """Add a pane that was cut elsewhere: it is merged into the pane here that contains it."""
        era = next(era for era in self._era_spans() if pane.end <= era.until)
        number = int(era.cuts.pane_numbers(np.array([pane.end], np.int64))[0])
        start, end = max(era.cuts.start(number), era.since), min(era.cuts.end(number), era.until)
        self._add(replace(pane, start=start, end=end))

    def close(self, upto: int | None) -> list[Pane]:
        """Remove and return the panes that end no later than a position, oldest first."""
        done = sorted((key for key in self._parts if upto is None or key[1] <= upto), key=lambda key: key[1])
        panes = [merge_panes(self.columns, self._parts.pop(key)) for key in done]
        while upto is not None and len(self.eras) > 1 and self.eras[1][0] <= upto:
            self.eras.pop(0)
        return panes

    def state(self) -> Tree:
        eras = [[since, cuts.origin, cuts.period, cuts.offsets.tolist()] for since, cuts in self.eras]
        return {"eras": eras, "panes": pane_tree(self.columns, self.panes())}

    def restore(self, state: Tree) -> None:
        self.eras = [(era[0], Cuts(era[1], era[2], np.array(era[3], np.int64))) for era in state["eras"]]
        self._parts = {(p.start, p.end): [p] for p in panes_from(self.columns, state["panes"])}

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups."""
        self._parts = {key: [part.with_codes(codes) for part in parts] for key, parts in self._parts.items()}

    def _era_spans(self) -> Iterator[Era]:
        ends = [since for since, _ in self.eras[1:]] + [2**62]
        return (Era(since, until, cuts) for (since, cuts), until in zip(self.eras, ends, strict=True))

    def _fill(self, era: Era, positions: Int64Array, codes: Int64Array, items: Sequence[Items], groups: int) -> None:
        cuts = era.cuts
        for number, present, states in gather_panes(self.columns, cuts.pane_numbers(positions), codes, items, groups):
            start, end = max(cuts.start(number), era.since), min(cuts.end(number), era.until)
            self._add(Pane(start, end, present, states))

    def _add(self, pane: Pane) -> None:
        parts = self._parts.setdefault((pane.start, pane.end), [])
        parts.append(pane)
        if len(parts) >= MANY_PARTS:
            parts[:] = [merge_panes(self.columns, parts)]


def gather_panes(
    columns: Sequence[StateArrays], numbers: Int64Array, codes: Int64Array, items: Sequence[Items], groups: int
) -> Iterator[tuple[int, Int64Array, tuple[StateWords, ...]]]:
    """Rows that belong to numbered panes: for each pane with rows its number, groups and states, in order."""
    first, span = int(numbers.min()), int(numbers.max() - numbers.min()) + 1
    slots = kernels.dense_slots(numbers, codes, first, groups)
    if span * groups <= 4 * len(slots) + 65536:
        states = _states(columns, slots, items, span * groups)
        places = np.flatnonzero(states[0][0])
        if len(places) < span * groups:
            states = [states_at(words, places) for words in states]
    else:
        places, ranks = compact_slots(slots)
        states = _states(columns, ranks, items, len(places))
    for number in range(span) if span <= len(places) else np.unique(places // groups).tolist():
        low, high = np.searchsorted(places, (number * groups, (number + 1) * groups))
        if low < high:
            part = tuple(states_at(words, slice(low, high)) for words in states)
            yield first + number, places[low:high] - number * groups, part


def _states(columns: Sequence[StateArrays], slots: Int64Array, items: Sequence[Items], size: int) -> list[StateWords]:
    return [column.gather(slots, each, size) for column, each in zip(columns, items, strict=True)]


def compact_slots(slots: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The different slots, ascending, and for each row the rank of its slot."""
    size = 1 << max(int(2 * len(slots) - 1).bit_length(), 1)
    table = (np.zeros(size, np.int64), np.full(size, -1, np.int64))
    uniques, codes = np.zeros(size // 2, np.int64), np.empty(len(slots), np.int64)
    known, _ = kernels.hash_codes(slots, table, uniques, 0, codes, 0)
    order = np.argsort(uniques[:known])
    ranks = np.empty(known, np.int64)
    ranks[order] = np.arange(known)
    return uniques[order], ranks[codes]
