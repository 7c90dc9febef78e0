"""Paper "Multi-granular windows": nested time frames, their scopes, and what is computed over them."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.errors import PanewiseError, WindowProblem
from panewise.core.time import Boundary, Instant
from panewise.window import Contents, MultiGranular, Pattern, Sliding

some = settings(max_examples=60, deadline=None, derandomize=True)

#: The clause of section I and the three windows it stands for, finest first.
CLAUSE = "RANGES 1 HOUR, 10 MINUTES, 1 MINUTE SLIDES 5 MINUTES, 1 MINUTE, 1 SECOND"
LEVELS = (
    "RANGE 1 MINUTE SLIDE 1 SECOND",
    "RANGE 10 MINUTES SLIDE 1 MINUTE",
    "RANGE 1 HOUR SLIDE 5 MINUTES",
)


@st.composite
def hierarchies(draw: st.DrawFn, origin: int | None = None, aligned: bool = False) -> MultiGranular:
    """Two to four levels whose slides never shrink and whose ranges grow, each range made of whole granules."""
    slide, size, levels = 1, 0, []
    for _ in range(draw(st.integers(2, 4))):
        slide = slide * draw(st.integers(1, 3)) if aligned else slide + draw(st.integers(0, 3))
        size = (size // slide + draw(st.integers(1, 3))) * slide
        levels.append(Sliding(size, slide, origin=None if origin is None else Instant(origin)))
    return MultiGranular(tuple(levels))


def bounds(level: Sliding, at: int) -> tuple[int, int]:
    low, high = level.scope(np.array([at], np.int64), Boundary.RIGHT)
    return int(low[0]), int(high[0])


def state(window: Sliding | MultiGranular, times: list[int], at: int) -> set[int]:
    contents = Contents.of(np.array([t for t in times if t <= at], np.int64))
    return {int(place) for place in window.members(contents, at, Boundary.RIGHT)}


arrivals = st.lists(st.integers(0, 60), min_size=1, max_size=30).map(sorted)


# ---- I and III.A: specification -------------------------------------------------------------------------------------


def trades(seed: int, size: int = 30) -> pa.Table:
    random, start = Random(seed), datetime(2026, 1, 31, 9, 0)
    times = sorted(start + timedelta(seconds=random.randint(0, 3000)) for _ in range(size))
    columns = [random.choice("ab") for _ in times], [random.randint(1, 100) for _ in times]
    return pa.table({"t": times, "k": columns[0], "v": columns[1]})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS c, AVG(v) AS mean, MAX(v) AS high FROM S [{window}] GROUP BY k",
        "SELECT DISTINCT v FROM S [{window}] WHERE v > 50",
    ],
)
def test_the_clause_of_section_1_is_its_three_sliding_windows(query: str) -> None:
    """Section I: one clause of three ranges and slides says what three separate queries say, level by level."""
    streams = {"S": trades(1)}
    together = pw.run(query.format(window=CLAUSE), streams, time="t").to_pylist()
    for number, clause in enumerate(LEVELS):
        alone = pw.run(query.format(window=clause), streams, time="t").to_pylist()
        level = [{n: v for n, v in row.items() if n != "w_level"} for row in together if row["w_level"] == number]
        assert level == alone
        assert alone
    assert {row["w_level"] for row in together} == {0, 1, 2}


@some
@given(hierarchy=hierarchies(origin=7), at=st.integers(7, 120))
def test_scope_of_each_level(hierarchy: MultiGranular, at: int) -> None:
    """Section III.A: both bounds lag mod(tc - t0, slide) behind the present; none lies before the initiation time."""
    for level in hierarchy.levels:
        late = (at - 7) % level.step
        assert bounds(level, at) == (max(7, at - late - level.range + 1), at - late)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((Sliding(4, 1), Sliding(4, 2)), "range 4 of level 1 is not wider than 4"),
        ((Sliding(4, 1), Sliding(8, 2), Sliding(6, 3)), "range 6 of level 2 is not wider than 8"),
        ((Sliding(4, 2), Sliding(8, 1)), "slide 1 of level 1 is shorter than 2"),
        ((Sliding(4), Sliding(8, 2)), "a level has no slide"),
        ((), "no levels"),
    ],
)
def test_hierarchies_grow_from_level_to_level(levels: tuple[Sliding, ...], message: str) -> None:
    """Section III.A: from each level to the next slides do not shrink and ranges grow; anything else is refused."""
    with pytest.raises(WindowProblem, match=message) as refused:
        MultiGranular(levels)
    assert refused.value.fix


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("RANGES 4, 8 SLIDES 1, 1", "8 .* 4"),
        ("RANGES 8, 4 SLIDES 1, 2", "2 .* 1"),
        ("RANGES 8, 4, 2 SLIDES 2, 1", "3 RANGES .* 2 SLIDES"),
        ("RANGES 8, 4", "SLIDES"),
    ],
)
def test_a_wrong_clause_is_refused_where_it_stands(clause: str, message: str) -> None:
    """Section III.A: the message names line and column, what is wrong, and what to write instead."""
    with pytest.raises(PanewiseError, match=message) as refused:
        pw.run(f"SELECT COUNT(*)\nFROM S [{clause}]", {"S": pa.table({"t": [1]})}, time="t")
    assert str(refused.value).startswith("line 2, column ")
    assert refused.value.fix


def test_equal_slides_are_allowed() -> None:
    """Section III.A: only ranges must differ from level to level."""
    assert len(MultiGranular((Sliding(4, 2), Sliding(8, 2))).levels) == 2


@some
@given(hierarchy=hierarchies(aligned=True), times=arrivals, at=st.integers(0, 90))
def test_an_item_of_a_level_is_in_all_coarser_levels_that_have_slid(
    hierarchy: MultiGranular, times: list[int], at: int
) -> None:
    """Section III.A: frames are nested, except for items that a coarser level has not slid over yet."""
    for finer, coarser in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        fresh = {i for i, t in enumerate(times) if t > bounds(coarser, at)[1]}
        assert state(finer, times, at) - fresh <= state(coarser, times, at)
        if at % coarser.step == 0:
            assert state(finer, times, at) <= state(coarser, times, at)


@some
@given(hierarchy=hierarchies(aligned=True), steps=st.integers(-3, 12))
def test_when_a_level_slides_so_do_all_finer_ones(hierarchy: MultiGranular, steps: int) -> None:
    """Section III.A, symmetric shift: slides that are multiples of each other leave all front bounds at the present."""
    for number, level in enumerate(hierarchy.levels):
        at = steps * level.step
        assert {bounds(finer, at)[1] for finer in hierarchy.levels[: number + 1]} == {at}


@some
@given(hierarchy=hierarchies(), times=arrivals, at=st.integers(0, 90))
def test_the_overall_state_is_the_union_of_all_levels(hierarchy: MultiGranular, times: list[int], at: int) -> None:
    """Section III.A: an item is gone once it has left the widest frame."""
    assert state(hierarchy, times, at) == set().union(*(state(level, times, at) for level in hierarchy.levels))
    widest = hierarchy.levels[-1]
    assert all(times[place] >= bounds(widest, at)[0] for place in state(hierarchy, times, at))


def test_every_level_is_weakest_non_monotonic() -> None:
    """Section III.B: each frame is refreshed like an ordinary sliding window."""
    assert MultiGranular((Sliding(4, 1), Sliding(12, 2), Sliding(24, 4))).pattern is Pattern.WEAKEST


# ---- IV.A: multi-grained aggregation --------------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", ["(]", "[)"])
def test_multi_grained_aggregates(boundary: str) -> None:
    """Section IV.A: progressive and retrospective aggregates, at each level reported every slide of that level."""
    random = Random(4)
    items = [(t, random.randint(1, 50)) for t in sorted(random.randint(1, 60) for _ in range(40))]
    table = pa.table({"t": [t for t, _ in items], "v": [v for _, v in items]})
    calls = "SUM(v) AS s, COUNT(*) AS c, AVG(v) AS a, MIN(v) AS low, MAX(v) AS high"
    query = f"SELECT {calls} FROM S [RANGES 24, 12, 4 SLIDES 8, 4, 1]"
    found = pw.run(query, {"S": table}, time="t", boundary=boundary).to_pylist()
    expected = {}
    for number, (size, slide) in enumerate([(4, 1), (12, 4), (24, 8)]):
        for at in range(0, 100, slide):
            inside = [v for t, v in items if (at - size < t <= at if boundary == "(]" else at - size <= t < at)]
            if inside:
                mean = sum(inside) / len(inside)
                expected[number, at] = (sum(inside), len(inside), mean, min(inside), max(inside))
    shown = {(r["w_level"], r["w_end"]): (r["s"], r["c"], r["a"], r["low"], r["high"]) for r in found}
    assert shown == expected
    assert len(found) == len(expected)


# ---- IV.B: regression -----------------------------------------------------------------------------------------------


def fit(points: list[tuple[int, int]]) -> tuple[Fraction, Fraction]:
    """Slope and intercept by equations 2 to 4, with both forms of the slope in equation 2."""
    count = len(points)
    mean_t, mean_s = Fraction(sum(t for t, _ in points), count), Fraction(sum(s for _, s in points), count)
    slope = sum((t - mean_t) * (s - mean_s) for t, s in points) / sum((t - mean_t) ** 2 for t, _ in points)
    assert slope == sum((t - mean_t) * s for t, s in points) / sum((t - mean_t) * t for t, _ in points)
    return Fraction(slope), mean_s - Fraction(slope) * mean_t


def shared_fit(points: list[tuple[int, int]], now: int, extent: int) -> tuple[Fraction, Fraction]:
    """Slope and intercept by equations 5 to 7: distributive sums, and the mean time in closed form."""
    mean_t = now - Fraction(extent - 1, 2)
    total = sum(s for _, s in points)
    slope = (sum(t * s for t, s in points) - mean_t * total) / (sum(t * t for t, _ in points) - extent * mean_t**2)
    return slope, Fraction(total, extent) - slope * mean_t


@pytest.mark.parametrize("seed", [1, 2])
def test_figure_3_trend_lines_at_three_horizons(seed: int) -> None:
    """Section IV.B, equations 2 to 7 and figure 3: extents 4, 12 and 24 with one value at every instant."""
    random = Random(seed)
    series = {t: random.randint(-20, 60) + 2 * t for t in range(1, 61)}
    table = pa.table({"t": list(series), "v": list(series.values())})
    query = "SELECT REGR_SLOPE(v) AS slope, REGR_INTERCEPT(v) AS intercept FROM S [RANGES 24, 12, 4 SLIDES 4, 2, 1]"
    found = pw.run(query, {"S": table}, time="t", until=60).to_pylist()
    checked: Counter[int] = Counter()
    for row in found:
        now, extent = row["w_end"], row["w_end"] - row["w_start"]
        if now < extent:  # not full yet: the closed form of the mean time does not hold
            continue
        points = [(t, series[t]) for t in range(now - extent + 1, now + 1)]
        slope, intercept = fit(points)
        assert Fraction(sum(t for t, _ in points), extent) == now - Fraction(extent - 1, 2)
        assert (slope, intercept) == shared_fit(points, now, extent)
        assert row["slope"] == pytest.approx(float(slope), rel=1e-12)
        assert row["intercept"] == pytest.approx(float(intercept), rel=1e-12)
        checked[row["w_level"]] += 1
    assert checked == {0: 57, 1: 25, 2: 10}


def test_trend_lines_with_missing_and_concurrent_values() -> None:
    """Section IV.B, equations 2 and 3, over the items themselves: the paper fills gaps before, a query need not."""
    items = [(1, 5), (1, 7), (4, 20), (9, 11)]
    table = pa.table({"t": [t for t, _ in items], "v": [v for _, v in items]})
    query = "SELECT REGR_SLOPE(v) AS slope, REGR_INTERCEPT(v) AS intercept FROM S [RANGE 10 SLIDE 10]"
    (row,) = pw.run(query, {"S": table}, time="t").to_pylist()
    slope, intercept = fit(items)
    assert row["slope"] == pytest.approx(float(slope), rel=1e-12)
    assert row["intercept"] == pytest.approx(float(intercept), rel=1e-12)


# ---- IV.C: recurring items ------------------------------------------------------------------------------------------

#: For W0 = <4, 1>, W1 = <8, 2> and W2 = <16, 4> at the instants at which all three have just slid forward: the bands
#: between one rear bound and the next are lagged windows, and recurring is to be found in each of them.
RECURRING = """
SELECT DISTINCT a.v
FROM S AS a [RANGE 4 SLIDE 4], S AS b [RANGE 4 SLIDE 4 LAG 4], S AS c [RANGE 8 SLIDE 4 LAG 8]
WHERE a.v = b.v AND b.v = c.v
"""


def recurring(items: list[tuple[int, int]]) -> dict[int, set[int]]:
    table = pa.table({"t": [t for t, _ in items], "v": [v for _, v in items]})
    found: dict[int, set[int]] = {}
    for row in pw.run(RECURRING, {"S": table}, time="t").to_pylist():
        found.setdefault(row["w_end"], set()).add(row["v"])
    return found


def test_figure_4_value_4_recurs_and_value_7_does_not() -> None:
    """Section IV.C, figure 4: 4 has appeared in every band of the three levels, 7 is missing in one of them."""
    fours = [(2, 4), (7, 4), (11, 4), (14, 4), (16, 4)]
    sevens = [(1, 7), (5, 7), (13, 7), (15, 7)]
    assert recurring(sorted(fours + sevens))[16] == {4}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_recurring_items_are_in_every_band(seed: int) -> None:
    """Section IV.C: present at least once between each two successive rear bounds, and since the finest one."""
    random = Random(seed)
    items = [(t, random.randint(1, 6)) for t in range(1, 41) for _ in range(random.randint(0, 2))]
    found = recurring(items)
    for now in range(0, 60, 4):
        rears = [now - extent + 1 for extent in (4, 8, 16)]
        edges: list[Any] = [now + 1, *rears]
        bands = [{v for t, v in items if low <= t < high} for high, low in itertools.pairwise(edges)]
        assert found.get(now, set()) == set.intersection(*bands)
