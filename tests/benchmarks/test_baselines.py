"""What the papers compare with answers like what we compare it with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures.consistent.joins import CountedJoin, NegativeJoin, OrderedJoin
from benchmarks.figures.resource_sharing.baselines import Baseline, MaterialiseAll, MaterialiseNone, SearchTree
from panewise.aggregate import Count
from panewise.stores.arrays import BaseArrays


@given(values=st.lists(st.integers(-99, 99), min_size=1, max_size=40), reach=st.integers(1, 12), data=st.data())
def test_baselines_answer_like_a_store(values: list[int], reach: int, data: st.DataObject) -> None:
    column = Count(pa.int64()).state_arrays()
    stores: list[Baseline] = [SearchTree(column, reach), MaterialiseNone(column, reach), MaterialiseAll(column, reach)]
    judge = BaseArrays(column, reach)
    for value in values:
        judge.append((np.array([value]),))
        for store in stores:
            store.append((np.array([value]),))
        first = np.array([data.draw(st.integers(judge.forgotten_until + 1, judge.length + 1))])
        last = np.array([data.draw(st.integers(int(first[0]) - 1, judge.length))])
        newest = np.array([judge.length])
        for store in stores:
            end = newest if isinstance(store, MaterialiseAll) else last
            assert store.lookup(first, end)[0].tolist() == judge.lookup(first, end)[0].tolist(), store.name


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 1), st.none() | st.integers(0, 3)), max_size=40), limit=st.integers(1, 6)
)
def test_joins_of_counted_windows_remember_the_pairs_that_are_there(
    arrivals: list[tuple[int, int | None]], limit: int
) -> None:
    joins: list[CountedJoin] = [NegativeJoin(limit), OrderedJoin(limit)]
    windows: tuple[list[tuple[int, int | None]], list[tuple[int, int | None]]] = ([], [])
    for serial, (side, key) in enumerate(arrivals, 1):
        windows[side].append((serial, key))
        del windows[side][:-limit]
        pairs = {(a, b) for a, left in windows[0] for b, right in windows[1] if left is not None and left == right}
        for join in joins:
            join.arrive(side, key)
            assert join.results() == pairs


def test_results_lie_in_lists_of_so_many_entries() -> None:
    join = NegativeJoin(limit=4)
    assert join.entries() == 1
    for side, key in ((0, 1), (1, 1), (1, 1), (0, 2), (1, 2)):
        join.arrive(side, key)
    assert join.entries() == (2 * 2 + 1) / 3  # two results of one key, one of the other
