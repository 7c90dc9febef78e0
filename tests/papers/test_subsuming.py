"""Paper "Subsuming windows", sections 2.1 and 3.1: the sliding window, and when one window fits inside another."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.core.time import Boundary
from panewise.window import Contents, Sliding

some = settings(max_examples=100, deadline=None, derandomize=True)
windows = st.builds(Sliding, st.integers(1, 30), st.integers(1, 12))


def scope(window: Sliding, at: int) -> range:
    low, high = window.scope(np.array([at], np.int64), Boundary.RIGHT)
    return range(int(low[0]), int(high[0]) + 1)


def subsumable(inner: Sliding, outer: Sliding) -> bool:
    """Definition 1, word by word."""
    return outer.step % inner.step == 0 and outer.range >= inner.range


def test_figure_1_range_8_slide_2() -> None:
    """Section 2.1, figure 1: two successive states share six of their eight instants."""
    window = Sliding(8, slide=2)
    for now in range(8, 40, 2):
        before, after = scope(window, now), scope(window, now + 2)
        assert (before.start, before.stop) == (now - 7, now + 1)
        assert (after.start, after.stop) == (now - 5, now + 3)
        assert len(set(before) & set(after)) == 6
        assert scope(window, now + 1) == before


def test_figure_1_with_two_items_an_instant() -> None:
    """Section 2.1, figure 1: at two items an instant a full state holds sixteen, of which four are fresh."""
    times = [t for t in range(1, 21) for _ in range(2)]
    window = Sliding(8, slide=2)
    contents = Contents.of(np.array(times, np.int64))
    held = {at: set(window.members(contents, at, Boundary.RIGHT).tolist()) for at in (12, 14)}
    assert len(held[12]) == len(held[14]) == 16
    assert len(held[14] - held[12]) == len(held[12] - held[14]) == 4
    found = pw.run("SELECT COUNT(*) AS c FROM S [RANGE 8 SLIDE 2]", {"S": pa.table({"t": times})}, time="t")
    assert {row["w_end"]: row["c"] for row in found.to_pylist()}[14] == 16


@some
@given(window=windows, at=st.integers(-50, 100))
def test_items_qualify_after_the_rear_bound_up_to_the_present(window: Sliding, at: int) -> None:
    """Section 2.1: of the present tc, a multiple of the slide, the scope is (tc - range, tc]."""
    now = at - at % window.step
    assert scope(window, at) == range(now - window.range + 1, now + 1)


@some
@given(inner=windows, outer=windows, steps=st.integers(-10, 20))
def test_definition_1_a_subsumable_window_lies_inside_and_ends_together(
    inner: Sliding, outer: Sliding, steps: int
) -> None:
    """Section 3.1, definition 1: whenever the wider window slides, the narrower one slides too, inside it."""
    inner = Sliding(min(inner.range, outer.range), inner.step)
    outer = Sliding(outer.range, outer.step * inner.step)
    assert subsumable(inner, outer)
    narrow, wide = scope(inner, steps * outer.step), scope(outer, steps * outer.step)
    assert narrow.stop == wide.stop
    assert narrow.start >= wide.start


@some
@given(inner=windows, outer=windows)
def test_definition_1_without_it_the_nesting_breaks(inner: Sliding, outer: Sliding) -> None:
    """Section 3.1, definition 1: if and only if; otherwise some instant of the wider window shows the difference."""
    assume(not subsumable(inner, outer))
    instants = [outer.step * n for n in range(inner.step + 1)]
    pairs = [(scope(inner, at), scope(outer, at)) for at in instants]
    assert any(narrow.stop != wide.stop or narrow.start < wide.start for narrow, wide in pairs)


@some
@given(a=windows, b=windows, c=windows)
def test_definition_1_is_a_partial_order(a: Sliding, b: Sliding, c: Sliding) -> None:
    """Section 3.1, definition 1: windows can be lined up one inside the other."""
    assert subsumable(a, a)
    assert a == b or not (subsumable(a, b) and subsumable(b, a))
    assert subsumable(a, c) or not (subsumable(a, b) and subsumable(b, c))


@pytest.mark.parametrize("aggregate", ["SUM(v)", "MAX(v)", "COUNT(DISTINCT v)"])
def test_figure_6_a_piggybacked_window_repeats_its_host(aggregate: str) -> None:
    """Section 3.2, figure 6: of equal ranges, the window with the doubled slide says the same, every other time."""
    random = Random(6)
    times = [random.randint(0, 40) for _ in range(40)]
    table = pa.table({"t": times, "v": [random.randint(1, 9) for _ in times]})

    def answers(clause: str) -> dict[int, int]:
        found = pw.run(f"SELECT {aggregate} AS a FROM S [{clause}]", {"S": table}, time="t").to_pylist()
        return {row["w_end"]: row["a"] for row in found}

    host, guest = answers("RANGE 8 SLIDE 2"), answers("RANGE 8 SLIDE 4")
    assert guest == {at: answer for at, answer in host.items() if at % 4 == 0}
