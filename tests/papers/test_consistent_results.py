"""Paper "Consistent results", sections 2 and 3: streams, continuous queries, and the scope of every window.

Formulas are written here the way the paper writes them, recursion included, and compared with the window specs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.errors import WindowProblem
from panewise.core.time import Boundary, Instant, Ticks
from panewise.window import (
    NOW,
    Contents,
    Landmark,
    LogicalWindow,
    Pattern,
    Rows,
    Sliding,
    Varying,
    Window,
    tumbling,
)

some = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
few = settings(some, max_examples=15)

#: Arrival times of a stream in timestamp order, several items at one instant included.
times = st.lists(st.integers(0, 40), min_size=1, max_size=25).map(sorted)
lengths = st.integers(1, 12)

Scope = tuple[int, int]


def scopes(window: LogicalWindow, instants: range) -> dict[int, Scope | None]:
    """The scope at every instant; None where it is empty."""
    low, high = window.scope(np.array(instants, np.int64), Boundary.RIGHT)
    found = zip(instants, low.tolist(), high.tolist(), strict=True)
    return {t: (a, b) if a <= b else None for t, a, b in found}


def state(window: Window, arrived: list[int], at: int) -> list[int]:
    """Places, in arrival order, of the items in the window's state."""
    contents = Contents.of(np.array([t for t in arrived if t <= at], np.int64))
    return [int(place) for place in window.members(contents, at, Boundary.RIGHT)]


def stream(arrived: list[int], **columns: list[Any]) -> pa.Table:
    return pa.table({"t": pa.array(arrived, pa.int64()), "i": pa.array(range(len(arrived)), pa.int64()), **columns})


def states(cql: str, table: pa.Table) -> dict[int, list[int]]:
    """What an RSTREAM query shows at each instant, as item numbers."""
    found: dict[int, list[int]] = {}
    for row in pw.run(cql, {"S": table}, time="t").to_pylist():
        found.setdefault(row["ts"], []).append(row["i"])
    return found


# ---- 2.1 a relational representation for stream items ---------------------------------------------------------------


def test_definition_1_tuples_share_one_schema_of_named_typed_attributes() -> None:
    """Section 2.1, definition 1: every tuple is an instance of one schema of finite arity."""
    schema = pa.schema([("t", pa.int64()), ("station", pa.string()), ("reading", pa.float64())])
    table = pa.table({"t": [1], "station": ["a"], "reading": [0.5]}, schema)
    result = pw.run("RSTREAM(SELECT * FROM S [UNBOUNDED])", {"S": table}, time="t")
    assert [(f.name, f.type) for f in result.schema][:3] == [(f.name, f.type) for f in schema]


@some
@given(at=st.integers(-50, 50), extent=lengths)
def test_definition_2_an_interval_holds_every_instant_between_its_bounds(at: int, extent: int) -> None:
    """Section 2.1, definition 2: time is discrete, and the extent of an interval is the count of its instants."""
    scope = scopes(Sliding(extent), range(at, at + 1))[at]
    assert scope is not None
    assert len(range(scope[0], scope[1] + 1)) == extent


def test_definition_3_an_instant_may_hold_none_one_or_many_identical_tuples() -> None:
    """Section 2.1, definition 3: a stream is a multiset of tuples at each instant."""
    table = pa.table({"t": [1, 1, 3], "v": [7, 7, 7]})
    result = pw.run("RSTREAM(SELECT v FROM S [NOW])", {"S": table}, time="t").to_pylist()
    assert Counter(row["ts"] for row in result) == {1: 2, 3: 1}


@few
@given(arrived=times)
def test_definition_4_current_contents_are_all_tuples_up_to_now(arrived: list[int]) -> None:
    """Section 2.1, definition 4: S(t) holds the tuples whose timestamp is not after t."""
    found = states("RSTREAM(SELECT i FROM S [UNBOUNDED])", stream(arrived))
    assert found == {at: [i for i, t in enumerate(arrived) if t <= at] for at in set(arrived)}


@few
@given(arrived=times)
def test_definition_5_the_current_instance_is_the_now_window(arrived: list[int]) -> None:
    """Section 2.1, definition 5, and section 3.2: `[NOW]` is the scope of extent 1 and step 1."""
    assert scopes(NOW, range(60)) == scopes(Sliding(1, slide=1), range(60)) == {t: (t, t) for t in range(60)}
    found = states("RSTREAM(SELECT i FROM S [NOW])", stream(arrived))
    assert found == {at: [i for i, t in enumerate(arrived) if t == at] for at in set(arrived)}


def test_definition_6_every_tuple_has_a_timestamp() -> None:
    """Section 2.1, definition 6, existence: a tuple without a timestamp has no place in the stream."""
    table = pa.table({"t": [1, None, 2], "v": [1, 2, 3]})
    outcome = pw.reference.execute("RSTREAM(SELECT v FROM S [NOW])", {"S": table}, time="t")
    assert outcome.table.column("v").to_pylist() == [1, 3]
    account = outcome.accounting["S"]
    assert (account.rows_in, account.used, account.late, account.rejected) == (3, 2, 0, 1)


@few
@given(arrived=times, seed=st.randoms(use_true_random=False))
def test_definition_6_tuples_are_taken_in_timestamp_order(arrived: list[int], seed: Any) -> None:
    """Section 2.1, definition 6, monotonicity: timestamps alone order a complete stream."""
    places = list(range(len(arrived)))
    seed.shuffle(places)
    shuffled = stream(arrived).take(pa.array(places))
    result = pw.run("SELECT t, i FROM S [UNBOUNDED]", {"S": shuffled}, time="t")
    assert result.column("t").to_pylist() == arrived
    assert result.column("ts").to_pylist() == arrived


# ---- 2.2 continuous queries -----------------------------------------------------------------------------------------

READINGS = st.lists(st.tuples(st.integers(0, 20), st.integers(25, 35)), min_size=1, max_size=15).map(sorted)
Q2 = "SELECT i FROM S WHERE temperature >= 30"


def warm(readings: list[tuple[int, int]], at: int) -> set[int]:
    """The one-time query behind Q2 over the contents at an instant."""
    return {i for i, (t, temperature) in enumerate(readings) if t <= at and temperature >= 30}


@few
@given(readings=READINGS)
def test_definition_7_results_are_the_union_of_one_time_queries(readings: list[tuple[int, int]]) -> None:
    """Section 2.2, definition 7: results at t are the union of the query over all contents up to t."""
    table = stream([t for t, _ in readings], temperature=[v for _, v in readings])
    result = pw.run(Q2, {"S": table}, time="t").to_pylist()
    for at in range(21):
        union = set().union(*(warm(readings, earlier) for earlier in range(at + 1)))
        assert {row["i"] for row in result if row["ts"] <= at} == union


def test_definition_7_distinct_rows_of_chunks_are_not_distinct_rows_of_the_stream() -> None:
    """Section 2.2: duplicates survive when distinct items are taken from disjoint chunks and put together."""
    table = stream([1, 2, 5], v=["a", "a", "a"])
    chunks = pw.run("SELECT DISTINCT v FROM S [RANGE 4 SLIDE 4]", {"S": table}, time="t")
    whole = pw.run("SELECT DISTINCT v FROM S [UNBOUNDED]", {"S": table}, time="t")
    assert chunks.column("v").to_pylist() == ["a", "a"]
    assert whole.column("v").to_pylist() == ["a"]


@few
@given(readings=READINGS)
def test_definition_8_a_monotonic_query_only_ever_adds(readings: list[tuple[int, int]]) -> None:
    """Section 2.2, definition 8: contents that grow give results that grow, so Q2 never takes anything back."""
    table = stream([t for t, _ in readings], temperature=[v for _, v in readings])
    result = pw.run(Q2, {"S": table}, time="t").to_pylist()
    assert all(row["sign"] == 1 for row in result)
    assert all(warm(readings, at) <= warm(readings, at + 1) for at in range(20))
    assert {row["i"] for row in result} == warm(readings, 20)


# ---- 3.1 windows ----------------------------------------------------------------------------------------------------

WINDOWS: list[Window] = [
    NOW,
    Sliding(5),
    Sliding(7, slide=3),
    Sliding(4, slide=2, lag=3),
    Sliding(9, slide=4, origin=Instant(6)),
    tumbling(5),
    Landmark(),
    Landmark(lower=Instant(10)),
    Landmark(upper=Instant(20)),
    Landmark(Instant(8), Instant(25)),
    Rows(4),
    Rows(3, lag=2),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@few
@given(arrived=times)
def test_definition_9_a_window_is_a_finite_part_of_the_contents(window: Window, arrived: list[int]) -> None:
    """Section 3.1, definition 9: a state holds the items of S(t) that meet a condition, each at most once."""
    for at in range(-2, 45):
        held = state(window, arrived, at)
        assert held == sorted(set(held))
        assert all(arrived[i] <= at for i in held)


@some
@given(arrived=st.lists(st.integers(-9000, 9000), max_size=25).map(sorted), at=st.integers(-9000, 12_000))
def test_state_formula_of_query_1(arrived: list[int], at: int) -> None:
    """Section 3.1: one hour every minute, in seconds, is the state between 60 * floor(t / 60) - 3600 and its end."""
    end = 60 * (at // 60)
    expected = [i for i, t in enumerate(arrived) if t <= at and end - 3600 < t <= end]
    assert state(Sliding(3600, slide=60), arrived, at) == expected


# ---- 3.2 logical windows --------------------------------------------------------------------------------------------


def sliding_scope(start: int, extent: int, step: int, at: int) -> Scope:
    """The paper's three branches: half-filled, full, and as it was one instant ago."""
    if (at - start) % step:
        return sliding_scope(start, extent, step, at - 1)
    return (start, at) if at < start + extent else (at - extent + 1, at)


@some
@given(start=st.integers(-20, 20), extent=lengths, step=lengths)
def test_scope_of_sliding_windows(start: int, extent: int, step: int) -> None:
    """Section 3.2: the recursive scope of sliding windows, half-filled from `START AT`; nothing before it."""
    window = Sliding(extent, slide=step, origin=Instant(start))
    after = range(start, start + 3 * (extent + step))
    assert scopes(window, after) == {t: sliding_scope(start, extent, step, t) for t in after}
    before = range(start - 5, start)
    assert scopes(window, before) == dict.fromkeys(before)


@some
@given(extent=lengths, step=lengths, at=st.integers(-60, 60))
def test_scope_of_sliding_windows_that_have_always_run(extent: int, step: int, at: int) -> None:
    """Section 3.2: without `START AT` the grid goes through the epoch and windows are full at once."""
    long_ago = -step * 60
    assert scopes(Sliding(extent, slide=step), range(at, at + 1))[at] == sliding_scope(long_ago, extent, step, at)


def test_half_filled_window_in_a_query() -> None:
    """Section 3.2, first branch: a window of extent 4 started at 3 holds one, two, three, then four instants."""
    table = stream(list(range(10)))
    result = pw.run("SELECT COUNT(*) AS n FROM S [RANGE 4 SLIDE 1 START AT 3]", {"S": table}, time="t", until=8)
    assert [(row["w_end"], row["n"]) for row in result.to_pylist()] == [(3, 1), (4, 2), (5, 3), (6, 4), (7, 4), (8, 4)]


@some
@given(extent=lengths, step=lengths, lag=lengths, at=st.integers(-30, 60))
def test_scope_with_a_lag(extent: int, step: int, lag: int, at: int) -> None:
    """Section 3.2, the remark on a delayed upper bound: a lag moves both bounds back and keeps the extent."""
    shifted, plain = Sliding(extent, slide=step, lag=lag), Sliding(extent, slide=step)
    low, high = scopes(plain, range(at, at + 1))[at] or (0, 0)
    assert scopes(shifted, range(at, at + 1))[at] == (low - lag, high - lag)


@some
@given(arrived=times, extent=lengths, step=lengths, steps=st.integers(-2, 12))
def test_proposition_1_successive_states_share_what_both_scopes_cover(
    arrived: list[int], extent: int, step: int, steps: int
) -> None:
    """Section 3.2, proposition 1: states one step apart have zero or more common tuples.

    The number itself says nothing; which tuples they are does: those of the last `extent - step` instants.
    """
    window, at = Sliding(extent, slide=step), steps * step
    common = set(state(window, arrived, at)) & set(state(window, arrived, at + step))
    assert common == {i for i, t in enumerate(arrived) if at + step - extent < t <= at}


def test_proposition_1_no_common_tuples_is_possible_too() -> None:
    """Section 3.2, proposition 1: an overlap of scopes may happen to hold nothing, or something."""
    window = Sliding(4, slide=2)
    assert not set(state(window, [1, 6], 4)) & set(state(window, [1, 6], 6))
    assert set(state(window, [1, 4, 6], 4)) & set(state(window, [1, 4, 6], 6)) == {1}


def leaving(window: Window, arrived: list[int]) -> list[int]:
    found = window.expires_at(np.array(arrived, np.int64), Boundary.RIGHT)
    assert found is not None
    return [int(t) for t in found]


@some
@given(arrived=times, extent=lengths, step=st.none() | lengths)
def test_expiration_time_is_the_end_of_membership(arrived: list[int], extent: int, step: int | None) -> None:
    """Section 3.2: an item of time t leaves at t + extent, with a slide at the first instant from there on."""
    window = Sliding(extent, slide=step)
    for place, (entered, expires) in enumerate(zip(arrived, leaving(window, arrived), strict=True)):
        assert expires >= entered + extent
        assert step is not None or expires == entered + extent
        last_in = [at for at in range(entered, expires + 20) if place in state(window, arrived, at)]
        assert not last_in or (last_in[-1] == expires - 1)


@some
@given(arrived=times, extent=lengths, step=st.none() | lengths, at=st.integers(0, 50))
def test_proposition_2_sliding_windows_are_first_in_first_out(
    arrived: list[int], extent: int, step: int | None, at: int
) -> None:
    """Section 3.2, proposition 2: inside a state, time order is expiration order.

    The paper's expiration t + extent is exact for a step of one. A longer step takes several instants out together,
    so equal expirations no longer say equal times; the order itself still holds.
    """
    window = Sliding(extent, slide=step)
    expires = leaving(window, arrived)
    held = state(window, arrived, at)
    for a in held:
        for b in held:
            if (step or 1) == 1:
                assert (arrived[a] <= arrived[b]) == (expires[a] <= expires[b])
            else:
                assert arrived[a] > arrived[b] or expires[a] <= expires[b]


@some
@given(start=st.integers(-10, 10), extent=lengths)
def test_scope_of_tumbling_windows(start: int, extent: int) -> None:
    """Section 3.2, tumbling: the sliding scope with step = extent; scopes follow each other without gap or overlap."""
    window = tumbling(extent, Instant(start))
    after = range(start, start + 5 * extent)
    assert scopes(window, after) == {t: sliding_scope(start, extent, extent, t) for t in after}
    ends = list(after)[::extent]
    found = scopes(window, after)
    bounds = [found[t] for t in ends]
    for earlier, later in itertools.pairwise(bounds):
        assert earlier is not None
        assert later is not None
        assert later[0] == earlier[1] + 1


@some
@given(arrived=times, extent=lengths, number=st.integers(0, 10))
def test_proposition_3_tumbling_states_are_disjoint(arrived: list[int], extent: int, number: int) -> None:
    """Section 3.2, proposition 3: successive states have nothing in common."""
    window, at = tumbling(extent), number * extent
    assert not set(state(window, arrived, at)) & set(state(window, arrived, at + extent))


@some
@given(arrived=times, start=st.integers(0, 10), extent=lengths)
def test_tumbling_states_expire_as_a_whole(arrived: list[int], start: int, extent: int) -> None:
    """Section 3.2, tumbling: the k-th state since the start has one expiration time, start + k * step."""
    window = tumbling(extent, Instant(start))
    expires = leaving(window, arrived)
    for k in range(1, 12):
        assert {expires[i] for i in state(window, arrived, start + (k - 1) * extent)} <= {start + k * extent}
    assert window.pattern is Pattern.WEAK


def night_and_day(instants: Ticks) -> Ticks:
    return np.where(instants % 24 < 8, 6, 2).astype(np.int64)


def test_time_varying_extent() -> None:
    """Section 3.2, tumbling: the extent may be a function of time, long in the quiet hours and short at the peak."""
    found = scopes(Varying(night_and_day, slide=2), range(48))
    for at in range(48):
        end = at - at % 2
        extent = 6 if end % 24 < 8 else 2
        assert found[at] == (end - extent + 1, end)


@some
@given(mark=st.integers(-20, 20))
def test_scope_of_landmark_windows(mark: int) -> None:
    """Section 3.2, lower-bounded landmark: empty before the landmark, everything since then afterwards."""
    found = scopes(Landmark(lower=Instant(mark)), range(-30, 40))
    assert found == {t: (mark, t) if mark <= t else None for t in range(-30, 40)}


@some
@given(arrived=times, mark=st.integers(0, 40), earlier=st.integers(0, 45), wait=st.integers(0, 10))
def test_proposition_4_landmark_states_are_nested(arrived: list[int], mark: int, earlier: int, wait: int) -> None:
    """Section 3.2, proposition 4: a later state holds every earlier one."""
    window = Landmark(lower=Instant(mark))
    assert set(state(window, arrived, earlier)) <= set(state(window, arrived, earlier + wait))
    assert window.expires_at(np.array(arrived, np.int64), Boundary.RIGHT) is None


@some
@given(arrived=times, lower=st.none() | st.integers(0, 20), upper=st.integers(20, 40))
def test_upper_bounded_and_fixed_band_windows_freeze(arrived: list[int], lower: int | None, upper: int) -> None:
    """Section 3.2, figure 2b: the state grows until the upper bound is reached and then stays as it is."""
    window = Landmark(None if lower is None else Instant(lower), Instant(upper))
    grown = [set(state(window, arrived, at)) for at in range(60)]
    assert all(a <= b for a, b in itertools.pairwise(grown))
    assert all(frozen == grown[upper] for frozen in grown[upper:])
    assert grown[upper] == {i for i, t in enumerate(arrived) if (lower or 0) <= t <= upper}
    assert window.pattern is Pattern.MONOTONIC


# ---- 3.3 physical windows -------------------------------------------------------------------------------------------


def counted_state(arrived: list[int], size: int, at: int) -> list[int]:
    """The paper's formula: the longest run of whole instants back from now that holds at most `size` items."""
    seen = [t for t in arrived if t <= at]
    if len(seen) <= size:
        return list(range(len(seen)))
    starts = [start for start in range(min(seen), at + 2) if sum(start <= t for t in seen) <= size]
    return [i for i, t in enumerate(seen) if t >= min(starts)]


@some
@given(arrived=st.sets(st.integers(0, 40), min_size=1).map(sorted), size=lengths, at=st.integers(0, 45))
def test_state_of_count_based_windows(arrived: list[int], size: int, at: int) -> None:
    """Section 3.3, count-based: the formula, on streams with one item an instant."""
    assert state(Rows(size), arrived, at) == counted_state(arrived, size, at)


@some
@given(arrived=times, size=lengths, at=st.integers(0, 45))
def test_ties_of_count_based_windows_are_broken_by_arrival(arrived: list[int], size: int, at: int) -> None:
    """Section 3.3: where whole instants do not add up to n, part of one instant fills the rest; ours, the newest."""
    held, whole = state(Rows(size), arrived, at), counted_state(arrived, size, at)
    seen = [t for t in arrived if t <= at]
    assert held == list(range(len(seen)))[-size:]
    assert set(whole) <= set(held)
    assert len({arrived[i] for i in held if i not in whole}) <= 1


@some
@given(arrived=times, size=lengths)
def test_proposition_5_count_based_windows_are_first_in_first_out(arrived: list[int], size: int) -> None:
    """Section 3.3, proposition 5: item number r leaves as number r + n is admitted, so both orders agree."""
    window = Rows(size)
    orders = window.expires_order(np.arange(1, len(arrived) + 1))
    assert orders is not None
    assert orders.tolist() == [number + size for number in range(1, len(arrived) + 1)]
    contents = Contents.of(np.arange(len(arrived), dtype=np.int64))
    for admitted in range(1, len(arrived) + 1):
        held = window.members(contents, admitted - 1, Boundary.RIGHT).tolist()
        assert held == [i for i in range(admitted) if orders[i] > admitted]


KEYED = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc")), min_size=1, max_size=20)


@few
@given(items=KEYED.map(lambda items: sorted(items, key=lambda item: item[0])), size=st.integers(1, 4))
def test_partitioned_windows_are_unions_of_count_based_ones(items: list[tuple[int, str]], size: int) -> None:
    """Section 3.3, partitioned: the n newest of every substream together; no attributes is one partition."""
    table = stream([t for t, _ in items], k=[k for _, k in items])
    found = states(f"RSTREAM(SELECT i FROM S [PARTITION BY k ROWS {size}])", table)
    for at in {t for t, _ in items}:
        parts = [[i for i, (t, k) in enumerate(items) if t <= at and k == key][-size:] for key in "abc"]
        assert Counter(found[at]) == Counter(i for part in parts for i in part)
    assert Rows(size).pattern is Pattern.WEAKEST
    assert Rows(size, partition_by=("S.k",)).pattern is Pattern.WEAK


def test_partitioned_windows_do_not_expire_in_insertion_order() -> None:
    """Section 3.3, partitioned: a quiet partition keeps an item that is older than those leaving elsewhere."""
    table = stream([1, 2, 3, 4], k=["a", "b", "b", "b"])
    result = pw.run("SELECT DSTREAM i FROM S [PARTITION BY k ROWS 1]", {"S": table}, time="t")
    assert result.column("i").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "make", [lambda: Sliding(0), lambda: Sliding(5, slide=0), lambda: Rows(0), lambda: Sliding(1, lag=-1)]
)
def test_signatures_without_extent_are_refused(make: Any) -> None:
    """Section 3.1: bounds, extent and progression must make a window; the message says what would."""
    with pytest.raises(WindowProblem, match="; "):
        make()
