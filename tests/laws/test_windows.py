"""Windows against their scalar definition: scopes, instants and expiry, tick by tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.time import Boundary, Instant
from panewise.window import (
    Contents,
    Cumulate,
    Landmark,
    LogicalWindow,
    MultiGranular,
    RowHierarchy,
    Rows,
    Sliding,
    Window,
)

from .strategies import (
    CONTINUOUS,
    COUNTED,
    COUNTED_SLIDING,
    CUMULATING,
    LANDMARKS,
    PERIODIC_LANDMARKS,
    SLIDING,
    TUMBLING,
    Count,
    Grow,
    Mark,
    Slide,
    Spec,
)

SPAN = range(-30, 45)
BOUNDS = st.sampled_from(list(Boundary))
TIMES = st.lists(st.integers(-15, 15), max_size=8).map(sorted)
#: Far from the epoch on both sides, where a rounding towards zero or an overflow would show.
ANYWHERE = st.one_of(st.integers(-60, 60), st.integers(-(2**60), 2**60))
TIMED: st.SearchStrategy[Spec] = st.one_of(SLIDING, TUMBLING, CONTINUOUS, CUMULATING, LANDMARKS, PERIODIC_LANDMARKS)
ANY_COUNTED = st.one_of(COUNTED, COUNTED_SLIDING)


def made(spec: Spec) -> Window:
    """The window of the package that a spec describes."""
    match spec:
        case Slide(size, slide, lag, start):
            return Sliding(size, slide, lag, _instant(start))
        case Count(count, lag, by_key, slide):
            return Rows(count, lag, ("k",) if by_key else (), slide)
        case Mark(lower, upper, slide):
            return Landmark(_instant(lower), _instant(upper), slide)
        case Grow(step, steps, start):
            return Cumulate(step * steps, step, _instant(start))


def timed(spec: Spec) -> LogicalWindow:
    window = made(spec)
    assert isinstance(window, LogicalWindow)
    return window


def _instant(tick: int | None) -> Instant | None:
    return None if tick is None else Instant(tick)


def contents(times: Sequence[int]) -> Contents:
    return Contents.of(np.array(times, np.int64))


def held(window: Window, times: Sequence[int], at: int, boundary: Boundary) -> list[int]:
    """Positions in the window at an instant, out of the items that have come by then."""
    come = [t for t in times if t + boundary.shift <= at]
    return [int(p) for p in window.members(contents(come), at, boundary)]


# ---- scalar definitions --------------------------------------------------------------------------------------------


def scope_of(spec: Spec, at: int, boundary: Boundary) -> tuple[int, int] | None:
    """First and last tick in scope at one instant, None when nothing is: the papers' definitions, case by case."""
    match spec:
        case Slide(size, slide, lag, start):
            return sliding_scope(size, slide or 1, lag, start, at, boundary)
        case Mark(lower, upper, slide):
            last = at - (at - (lower or 0)) % (slide or 1) - boundary.shift
            last = last if upper is None else min(last, upper - boundary.shift)
            return _scope(-(2**61) if lower is None else lower, last)
        case Grow(_, _, start):
            if start is not None and at < start:
                return None
            while (at - (start or 0)) % spec.step:
                at -= 1
            first = at - 1
            while (first - (start or 0)) % spec.size:
                first -= 1
            low = first + 1 - boundary.shift
            return _scope(low if start is None else max(low, start), at - boundary.shift)
    raise TypeError(f"{spec} has no scope in time")


def sliding_scope(
    size: int, step: int, lag: int, start: int | None, at: int, boundary: Boundary
) -> tuple[int, int] | None:
    """ "Consistent results" section 3.2: the scope at an instant off the grid is the scope one tick before."""
    if start is not None and at < start:
        return None
    if (at - (start or 0)) % step:
        return sliding_scope(size, step, lag, start, at - 1, boundary)
    high = at - lag - boundary.shift
    low = high - size + 1
    return _scope(low if start is None else max(low, start), high)


def _scope(low: int, high: int) -> tuple[int, int] | None:
    return (low, high) if low <= high else None


@settings(max_examples=400)
@given(TIMED, st.lists(ANYWHERE, min_size=1, max_size=20), BOUNDS)
def test_scopes_are_their_definition(spec: Spec, instants: list[int], boundary: Boundary) -> None:
    """Vectorised over many instants at once, on both sides of the epoch."""
    low, high = timed(spec).scope(np.array(instants, np.int64), boundary)
    found = [_scope(int(a), int(b)) for a, b in zip(low, high, strict=True)]
    assert found == [scope_of(spec, at, boundary) for at in instants]


@settings(max_examples=300)
@given(TIMED, TIMES, st.integers(-30, 40), BOUNDS)
def test_members_are_the_items_in_scope(spec: Spec, times: list[int], at: int, boundary: Boundary) -> None:
    scope = scope_of(spec, at, boundary)
    wanted = [n for n, t in enumerate(times) if scope and scope[0] <= t <= scope[1]]
    assert held(made(spec), times, at, boundary) == wanted


@settings(max_examples=200)
@given(ANY_COUNTED, TIMES, st.integers(-30, 40), BOUNDS)
def test_counted_windows_hold_the_newest(spec: Count, times: list[int], at: int, boundary: Boundary) -> None:
    come = [n for n, t in enumerate(times) if t + boundary.shift <= at]
    while len(come) % (spec.slide or 1):
        come.pop()
    newest_first = come[::-1][spec.lag : spec.lag + spec.count]
    assert held(made(spec), times, at, boundary) == newest_first[::-1]


# ---- instants ------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.one_of(TIMED, ANY_COUNTED), TIMES, BOUNDS)
def test_instants_are_complete(spec: Spec, times: list[int], boundary: Boundary) -> None:
    """The state changes at no tick but an instant, or, on a grid, at the point after one."""
    window = made(spec)
    instants = window.instants(contents(times), boundary)
    assert list(instants) == sorted(set(instants.tolist()))
    told = set(instants.tolist()) | set(window.next_instants(instants).tolist())
    for at in SPAN:
        if held(window, times, at, boundary) != held(window, times, at - 1, boundary):
            assert at in told


@settings(max_examples=300)
@given(st.one_of(SLIDING, TUMBLING, CUMULATING), TIMES, BOUNDS)
def test_instants_are_the_grid_points_with_items(spec: Slide | Grow, times: list[int], boundary: Boundary) -> None:
    window = made(spec)
    origin = spec.start or 0
    wanted = [at for at in SPAN if (at - origin) % (spec.slide or 1) == 0 and held(window, times, at, boundary)]
    assert window.instants(contents(times), boundary).tolist() == wanted


@settings(max_examples=100)
@given(PERIODIC_LANDMARKS, TIMES, BOUNDS)
def test_landmarks_speak_until_nothing_more_enters(spec: Mark, times: list[int], boundary: Boundary) -> None:
    window = made(spec)
    instants = window.instants(contents(times), boundary).tolist()
    states = [held(window, times, at, boundary) for at in instants]
    assert all(states)
    assert all(b - a == spec.slide for a, b in pairwise(instants))
    if instants:
        assert states[-1] == held(window, times, SPAN[-1], boundary)
        assert states[-1] != held(window, times, instants[-1] - 1, boundary)


# ---- expiry --------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.one_of(SLIDING, TUMBLING, CONTINUOUS, CUMULATING), st.integers(-15, 15), BOUNDS)
def test_expiry_is_exact(spec: Slide | Grow, time: int, boundary: Boundary) -> None:
    """An item that is ever in leaves at `expires_at` and not a tick before, and never comes back."""
    window = made(spec)
    inside = [at for at in SPAN if held(window, [time], at, boundary)]
    expires = window.expires_at(np.array([time], np.int64), boundary)
    assert expires is not None
    if inside:
        assert int(expires[0]) == inside[-1] + 1
        assert inside == list(range(inside[0], inside[-1] + 1))


@settings(max_examples=200)
@given(ANY_COUNTED, st.integers(1, 12))
def test_order_of_expiry_is_exact(spec: Count, size: int) -> None:
    """Item n leaves with the admission of the item whose number is its order of expiry."""
    window = made(replace(spec, by_key=False))
    orders = window.expires_order(np.arange(1, size + 1))
    assert orders is not None
    for number, order in enumerate(orders.tolist(), start=1):
        inside = [n for n in range(1, 40) if number - 1 in held(window, list(range(n)), n, Boundary.RIGHT)]
        assert order == inside[-1] + 1 if inside else spec.slide


@settings(max_examples=150)
@given(TIMES, st.one_of(CONTINUOUS, SLIDING, CUMULATING), BOUNDS)
def test_results_expire_when_they_say(times: list[int], spec: Spec, boundary: Boundary) -> None:
    """What ISTREAM says will leave, DSTREAM says has left, at that instant."""
    s = pa.table({"i": pa.array(range(len(times)), pa.int64()), "t": pa.array(times, pa.int64())})
    came, went = (
        pw.run(f"SELECT {word} i FROM S {spec.cql}", {"S": s}, time="t", boundary=boundary)
        for word in ("ISTREAM", "DSTREAM")
    )
    promised = zip(came["i"].to_pylist(), came["expires_at"].to_pylist() if came.num_rows else [], strict=True)
    assert sorted(promised) == sorted(zip(went["i"].to_pylist(), went["ts"].to_pylist(), strict=True))


# ---- conventions -----------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.one_of(TIMED, ANY_COUNTED), TIMES, st.integers(-30, 40))
def test_conventions_differ_by_one_tick(spec: Spec, times: list[int], at: int) -> None:
    """`[t - w, t)` over items is `(t - w, t]` over the same items one tick later, unless a bound stands still."""
    if getattr(spec, "start", None) is None and not (
        isinstance(spec, Mark) and (spec.lower, spec.upper) != (None, None)
    ):
        window, later = made(spec), [t + 1 for t in times]
        assert held(window, times, at, Boundary.LEFT) == held(window, later, at, Boundary.RIGHT)
        mine, theirs = (window.instants(contents(ts), b) for ts, b in ((times, Boundary.LEFT), (later, Boundary.RIGHT)))
        assert mine.tolist() == theirs.tolist()


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=4),
    st.integers(1, 4),
    TIMES,
    st.integers(-30, 40),
    BOUNDS,
    st.booleans(),
)
def test_levels_hold_what_their_windows_hold(
    growth: list[tuple[int, int]], slide: int, times: list[int], at: int, boundary: Boundary, counted: bool
) -> None:
    shapes = list(accumulate(growth, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, slide)))[1:]
    window: Window = MultiGranular(tuple(Sliding(*shape) for shape in shapes))
    if counted:
        window = RowHierarchy(tuple(Rows(count, slide=slide) for count, slide in shapes))
    alone = {p for level in window.levels for p in held(level, times, at, boundary)}
    assert held(window, times, at, boundary) == sorted(alone)


@pytest.mark.parametrize("boundary", Boundary)
def test_the_papers_example(boundary: Boundary) -> None:
    """ "Consistent results" section 3.2: `[t - w + 1, t]` on integers, half-filled from its origin on."""
    window = Sliding(10, 5, origin=Instant(3))
    low, high = window.scope(np.array([2, 3, 7, 8, 13, 18]), boundary)
    s = boundary.shift
    assert list(zip(low.tolist(), high.tolist(), strict=True))[1:] == [
        (3, 3 - s),
        (3, 3 - s),
        (3, 8 - s),
        (4 - s, 13 - s) if not s else (3, 12),
        (9 - s, 18 - s),
    ]
