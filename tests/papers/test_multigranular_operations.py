"""Paper "Multi-granular windows" section IV: aging aggregates (A) and recurring items (C) over nested windows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw

pytestmark = pytest.mark.slow

#: Figure 4: ranges and slides of three levels, finest first.
FIGURE_4 = ((4, 1), (8, 2), (16, 4))
#: The instant of the figure: all levels have just slid.
NOW = 16


def clause(levels: tuple[tuple[int, int], ...]) -> str:
    ranges, slides = (", ".join(str(level[part]) for level in reversed(levels)) for part in (0, 1))
    return f"RANGES {ranges} SLIDES {slides}"


def stream(occurrences: dict[Any, list[int]]) -> pa.Table:
    rows = sorted((time, item) for item, times in occurrences.items() for time in times)
    return pa.table({"t": [time for time, _ in rows], "item": [item for _, item in rows]})


def answers(cql: str, s: pa.Table, name: str = "r") -> dict[tuple[int, int], Any]:
    """The answers of engine and reference, which agree, by level and instant."""
    ours, theirs = (
        {(row["w_level"], row["w_end"]): row[name] for row in run(cql, {"S": s}, time="t").to_pylist()}
        for run in (pw.run, pw.reference.run)
    )
    assert ours == (theirs if any(isinstance(answer, list) for answer in theirs.values()) else pytest.approx(theirs))
    return ours


# ---- IV.C: recurring items -------------------------------------------------------------------------------------------


@dataclass
class Chain:
    """The bitmap chain of one item, as the paper has it: core nodes of bits, and buffers that wait to be coalesced.

    A bit enters as the least significant one of the finest level. A level that slides takes what waits in its buffer
    as one bit, and gives its most significant ones to the buffer of the next. For slides that divide each other, and
    intervals of whole granules: otherwise the oldest bit speaks of items that are in no interval any more.
    """

    levels: tuple[tuple[int, int], ...]
    cores: list[deque[bool]] = field(default_factory=list)
    buffers: list[list[bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cores = [deque() for _ in self.levels]
        self.buffers = [[] for _ in self.levels]

    def tick(self, now: int, present: bool) -> None:
        self.buffers[0].append(present)
        inner = 0
        for number, (reach, slide) in enumerate(self.levels):
            if now % slide:
                return
            if self.buffers[number]:
                self.cores[number].append(any(self.buffers[number]))
                self.buffers[number] = []
            # Every level slides by its own pace, so that several bits may leave a finer one before.
            while len(self.cores[number]) * slide > reach - inner:
                leaving = self.cores[number].popleft()
                if number + 1 < len(self.levels):
                    self.buffers[number + 1].append(leaving)
            inner = reach

    def recurring(self, level: int) -> bool:
        return all(any(core) for core in self.cores[: level + 1])


def chained(levels: tuple[tuple[int, int], ...], s: pa.Table, last: int) -> dict[tuple[int, int], list[Any]]:
    """What the chains of all items say at every instant of every level."""
    times: dict[Any, set[int]] = {}
    for row in s.to_pylist():
        times.setdefault(row["item"], set()).add(row["t"])
    chains = {item: Chain(levels) for item in sorted(times)}
    found: dict[tuple[int, int], list[Any]] = {}
    for now in range(1, last + 1):
        for item, chain in chains.items():
            chain.tick(now, now in times[item])
        for level, (_, slide) in enumerate(levels):
            if now % slide == 0:
                found[level, now] = [item for item, chain in chains.items() if chain.recurring(level)]
    return found


def test_figure_4_value_4_recurs_and_7_does_not() -> None:
    """4 has a bit in each of the three bitmaps, 7 is missing in the middle one: nothing from 9 to 12."""
    s = stream({4: [2, 7, 10, 13, 15], 7: [1, 6, 8, 14, 16], 5: [16]})
    found = answers(f"SELECT RECURRING(item) AS r FROM S [{clause(FIGURE_4)}]", s)
    assert found[0, NOW] == [4, 5, 7]
    assert found[1, NOW] == [4]
    assert found[2, NOW] == [4]


def test_figure_4_the_bitmaps_themselves() -> None:
    """Four granules of one, two of two and two of four timestamps: the sizes of the cells in the figure."""
    chain = Chain(FIGURE_4)
    for now in range(1, NOW + 1):
        chain.tick(now, now in (2, 7, 10, 13, 15))
    assert [len(core) for core in chain.cores] == [4, 2, 2]
    assert [list(core) for core in chain.cores] == [[True, False, True, False], [True, False], [True, True]]
    assert chain.buffers == [[], [], []]


def test_recurring_items_are_in_every_interval_between_rear_bounds() -> None:
    """The definition itself: at least once in [t_k, t_(k-1)) for every k, and in [t_0, t_c]."""
    random = Random(4)
    s = stream({item: sorted(random.sample(range(1, 60), 14)) for item in "abcdefgh"})
    found = answers(f"SELECT RECURRING(item) AS r FROM S [{clause(FIGURE_4)}]", s)
    held = [(row["t"], row["item"]) for row in s.to_pylist()]
    for (level, now), recurring in found.items():
        bounds = [now + 1, *(now - now % slide - reach + 1 for reach, slide in FIGURE_4[: level + 1])]
        parts = [{item for time, item in held if rear <= time < front} for front, rear in pairwise(bounds)]
        assert recurring == sorted(set.intersection(*parts)), (level, now)


@pytest.mark.parametrize("levels", [FIGURE_4, ((2, 1), (6, 2), (14, 4), (38, 12)), ((3, 3), (9, 3), (18, 9))], ids=str)
def test_recurring_items_are_what_bitmap_chains_say(levels: tuple[tuple[int, int], ...]) -> None:
    """Append, shift and coalesce, item by item, against bits over all items."""
    random, last = Random(7), 72
    s = stream({item: [t for t in range(1, last + 1) if random.random() < 0.3] for item in range(12)})
    found = answers(f"SELECT RECURRING(item) AS r FROM S [{clause(levels)}]", s)
    wanted = chained(levels, s, last)
    assert {key: said for key, said in found.items() if key[1] <= last} == {key: wanted[key] for key in wanted}


def test_counts_rank_what_recurs() -> None:
    """Frequencies instead of bits, for ranking: over the whole window, equals by value."""
    s = stream({4: [2, 7, 10, 13, 15], 9: [1, 3, 4, 9, 9, 12, 16], 8: [5, 6, 11, 14, 15], 7: [1, 6, 14, 16]})
    cql = f"SELECT RECURRING_COUNTS(item) AS r, RECURRING_COUNTS(item, 1) AS most FROM S [{clause(FIGURE_4)}]"
    assert answers(cql, s)[2, NOW] == [
        {"item": 9, "count": 7},
        {"item": 4, "count": 5},
        {"item": 8, "count": 5},
    ]
    assert answers(cql, s, "most")[2, NOW] == [{"item": 9, "count": 7}]


# ---- IV.A: aging -----------------------------------------------------------------------------------------------------


def test_a_fixed_weight_for_each_level() -> None:
    """Figure 4's windows over one item a timestamp: 4 in the finest, 4 more in the next, 8 more in the widest."""
    s = pa.table({"t": list(range(1, NOW + 1)), "item": [1] * NOW})
    cql = f"SELECT AGED_SUM(item, 1, 0.5, 0.1) AS r, AGED_COUNT(item) AS halved FROM S [{clause(FIGURE_4)}]"
    found, halved = answers(cql, s), answers(cql, s, "halved")
    assert [found[level, NOW] for level in range(3)] == pytest.approx([4, 6, 6.8])
    assert [halved[level, NOW] for level in range(3)] == [4, 6, 8]


def test_weights_that_diminish_bias_towards_recent_items() -> None:
    """A mean that rises late: the aged one is closer to the recent values than the plain one."""
    s = pa.table({"t": list(range(1, NOW + 1)), "item": [0] * 12 + [10] * 4})
    cql = f"SELECT AGED_AVG(item) AS r, AVG(item) AS plain FROM S [{clause(FIGURE_4)}]"
    assert answers(cql, s)[2, NOW] == pytest.approx(40 / 8)
    assert answers(cql, s, "plain")[2, NOW] == pytest.approx(40 / 16)


def test_decay_counts_the_age_of_granules() -> None:
    """At 16: granules of the finest level end at 13 to 16, of the next at 10 and 12, of the widest at 4 and 8."""
    s = pa.table({"t": list(range(1, NOW + 1)), "item": [1] * NOW})
    cql = f"SELECT AGED_SUM(item, 'EXPONENTIAL', 4) AS r FROM S [{clause(FIGURE_4)}]"
    ages = [0, 1, 2, 3, 4, 4, 6, 6, *[8] * 4, *[12] * 4]
    assert answers(cql, s)[2, NOW] == pytest.approx(sum(2 ** (-age / 4) for age in ages))
