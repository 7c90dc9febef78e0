"""States of different sizes: words that hold them behave as arrays do, and they compute the meaning of aggregates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise import kernels
from panewise.aggregate import (
    Aggregate,
    ApproxDistinct,
    CountDistinct,
    First,
    Items,
    Last,
    Max,
    Median,
    Min,
    Quantile,
    StateArrays,
    StateWords,
    TopK,
    dictionary,
    put,
    ragged,
    states_at,
)
from panewise.aggregate.multisets import DistinctStates, MultisetStates
from panewise.aggregate.ragged import RaggedArray
from panewise.core.values import to_arrow, to_python

from .strategies import ARGUMENTS
from .test_aggregates import VARIANTS, alike
from .test_kernels import twins_in_use

pytestmark = pytest.mark.slow

GROUPS = 5
#: Types that are not among those of all aggregates: bytes, some of one length, and decimals that int64 does not hold.
MORE_TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.binary(): st.binary(max_size=3),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.decimal128(25, 2): st.decimals("-99999999999999999999.99", "99999999999999999999.99", places=2),
}
RAGGED = [a for a in VARIANTS if isinstance(a.state_arrays().identity(0)[0], RaggedArray)]
RAGGED += [kind(some) for kind in (Min, Max, CountDistinct, ApproxDistinct) for some in MORE_TYPES]
RAGGED += [make(some) for make in (partial(Quantile, phi="0.4"), partial(TopK, k="2")) for some in MORE_TYPES]
RAGGED += [Median(pa.decimal128(25, 2))]
RUNS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=GROUPS, max_size=GROUPS)
PLACES = st.one_of(
    st.sets(st.integers(0, GROUPS - 1)).map(sorted),
    st.just(slice(None)),
    st.builds(slice, st.integers(0, 2), st.integers(2, GROUPS)),
)


def word(runs: Sequence[Sequence[int]]) -> RaggedArray:
    sizes = np.array([len(run) for run in runs], np.int64)
    entries = np.array([entry for run in runs for entry in run], np.int64)
    return RaggedArray.of(np.stack([np.cumsum(sizes) - sizes, sizes], axis=1), (entries,))


def lists(runs: Any) -> list[list[int]]:
    return [runs.entries[0][start : start + size].tolist() for start, size in runs.runs]


@settings(max_examples=200)
@given(first=RUNS, steps=st.lists(st.tuples(RUNS, PLACES), max_size=12), spare=st.sampled_from([0, 4096]))
def test_a_ragged_word_is_written_and_read_like_any_other(first: Any, steps: Any, spare: int) -> None:
    """What was taken out before stays as it was, also when the block is made anew since too little of it is in use."""
    held, model = word(first), np.empty(GROUPS, object)
    model[:] = [list(run) for run in first]
    taken: list[tuple[RaggedArray, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ragged, "SPARE_ENTRIES", spare)
        for runs, where in steps:
            fresh = np.empty(GROUPS, object)
            fresh[:] = runs
            where = np.array(where, np.int64) if isinstance(where, list) else where
            taken += [(held[where], model[where].copy()), (held.copy(), model.copy())]
            held[where] = word(runs)[where]
            model[where] = fresh[where]
            assert lists(held) == list(model)
        assert all(lists(part) == list(wanted) for part, wanted in taken)
        whole = np.concatenate([part for part, _ in taken] + [held])
        assert lists(whole) == [run for _, wanted in taken for run in wanted] + list(model)
        assert lists(held.compact()) == list(model)


def items_of(values: Sequence[Any], kind: pa.DataType) -> Items:
    return Items((to_arrow(values, kind),), np.zeros(len(values), np.int64), np.zeros(len(values), np.int64))


def plain(answers: pa.Array) -> list[Any]:
    """Python values; those inside lists stand beside how long the lists are, since times there may be out of range."""
    if not pa.types.is_list(answers.type):
        return to_python(answers)
    inside = answers.flatten()
    columns = inside.flatten() if pa.types.is_struct(inside.type) else [inside]
    return [answers.value_lengths().to_pylist(), *map(to_python, columns)]


def gathered(columns: StateArrays, rows: Sequence[tuple[int, Any]], kind: pa.DataType) -> StateWords:
    slots = np.array([group for group, _ in rows], np.int64)
    return columns.gather(slots, items_of([value for _, value in rows], kind), GROUPS)


@pytest.mark.parametrize("aggregate", RAGGED, ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_states_compute_the_meaning(aggregate: Aggregate[Any], data: st.DataObject) -> None:
    """However rows are split, and whether states are combined, taken out, moved, written or settled before."""
    (kind,) = aggregate.types
    rows = st.lists(
        st.tuples(st.integers(0, GROUPS - 1), st.one_of(st.none(), (ARGUMENTS | MORE_TYPES)[kind])), max_size=12
    )
    parts = data.draw(st.lists(rows, min_size=1, max_size=4))
    gone = data.draw(rows)
    kept = [to_python(to_arrow([v for part in parts for g, v in part if g == group], kind)) for group in range(GROUPS)]
    wanted = [aggregate.meaning([value for value in values if value is not None]) for values in kept]
    for context in (nullcontext(), twins_in_use("runs", "sketch")):
        with context:
            columns = aggregate.state_arrays()
            total = columns.identity(GROUPS)
            for part in parts:
                words = gathered(columns, part, kind)
                where = np.array([2, 0, 3]) if data.draw(st.booleans()) else slice(1, 4)
                rest = np.setdiff1d(np.arange(GROUPS), np.arange(GROUPS)[where])
                for some in (where, rest):
                    put(total, some, columns.combine(states_at(words, some), states_at(total, some)))
            if columns.exact:
                extra = gathered(columns, gone, kind)
                total = columns.invert(columns.combine(total, extra), extra)
            written = columns.write(total)
            assert written is not None
            other = aggregate.state_arrays()
            gathered(other, gone, kind)  # where values have codes, the other ones have other codes
            for column, states in ((columns, total), (columns, columns.settle(total)), (other, other.read(written))):
                assert alike(plain(column.lower(states)), plain(to_arrow(wanted, aggregate.result)), ulps=0)


@pytest.mark.parametrize("kind", [pa.string(), *MORE_TYPES], ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_first_and_last_values_are_those_of_all_parts(kind: pa.DataType, data: st.DataObject) -> None:
    """However rows are split, and whether states are written before."""
    value = st.one_of(st.none(), (ARGUMENTS | MORE_TYPES)[kind])
    rows = data.draw(st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 4), value), max_size=12))
    cuts = sorted(data.draw(st.lists(st.integers(0, 12), max_size=3)))
    numbered = [(group, time, number, given) for number, (group, time, given) in enumerate(rows)]
    for aggregate in (First(kind), Last(kind)):
        columns = aggregate.state_arrays()
        total = columns.identity(GROUPS)
        for low, high in pairwise([0, *cuts, 12]):
            slots, times, order = (np.array([row[n] for row in numbered[low:high]], np.int64) for n in range(3))
            values = to_arrow([row[3] for row in numbered[low:high]], kind)
            part = columns.gather(slots, Items((values,), times, order), GROUPS)
            written = columns.write(part)
            assert written is not None
            total = columns.combine(columns.read(written), total)
        kept = [sorted((t, n, v) for g, t, n, v in numbered if g == group and v is not None) for group in range(GROUPS)]
        wanted = to_arrow([aggregate.meaning([v for _, _, v in some]) for some in kept], kind)
        assert to_python(columns.lower(total)) == to_python(wanted)


MULTISETS = st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=GROUPS, max_size=GROUPS)


def multisets(groups: Sequence[Sequence[int]]) -> Any:
    slots = np.repeat(np.arange(GROUPS), [len(values) for values in groups])
    return kernels.runs_gather(slots, np.array([value for values in groups for value in values], np.int64), GROUPS)


def counters(runs: Any, keys: Any, counts: Any) -> list[dict[int, int]]:
    return [dict(zip(*(each[at : at + size].tolist() for each in (keys, counts)), strict=True)) for at, size in runs]


@given(MULTISETS, MULTISETS)
def test_common_keys_are_counted_together(one: list[list[int]], other: list[list[int]]) -> None:
    for context in (nullcontext(), twins_in_use("runs")):
        with context:
            found = counters(*kernels.runs_common(*multisets(one), *multisets(other)))
        pairs = zip(one, other, strict=True)
        wanted = [{v: n for v, n in sorted(Counter(a + b).items()) if v in a and v in b} for a, b in pairs]
        assert found == wanted


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([1, 2**7, 2**20, 2**40, 2**62]), st.integers(500, 1200), st.booleans())
def test_many_keys_are_sorted_as_few_are(seed: int, width: int, count: int, extremes: bool) -> None:
    """By their digits: also where they are further apart than int64 can say."""
    keys = np.random.default_rng(seed).integers(-width, width, count)
    if extremes:
        keys[:2] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for context in (nullcontext(), twins_in_use("runs")):
        with context:
            found = kernels.runs_gather(np.zeros(count, np.int64), keys, 1)
        assert [list(some.items()) for some in counters(*found)] == [sorted(Counter(keys.tolist()).items())]


@given(MULTISETS, st.sampled_from([None, 1, 3]))
def test_many_of_the_heaviest_are_ranked_as_few_are(groups: list[list[int]], most: int | None) -> None:
    """Whether by insertion or by sorting."""
    runs, *entries = multisets(groups)
    held, columns = RaggedArray.of(runs, tuple(entries)), DistinctStates(pa.int64())
    with pytest.MonkeyPatch.context() as patch:
        for limit in (0, 512):
            patch.setattr("panewise.aggregate.multisets.MOST_INSERTED", limit)
            found = columns.heaviest(held, most)
            keys, counts = found.own_entries()
            wanted = [sorted(Counter(some).items(), key=lambda entry: (-entry[1], entry[0]))[:most] for some in groups]
            assert found.sizes.tolist() == list(map(len, wanted))
            pairs = zip(keys.tolist(), counts.tolist(), strict=True)
            assert list(pairs) == [entry for some in wanted for entry in some]


@pytest.mark.parametrize(
    "call", ["COUNT(DISTINCT v)", "QUANTILE(v, 0.5)", "TOP_K(v, 2)", "MAX(v)", "MEDIAN(d)", "RECURRING(v)"]
)
@pytest.mark.parametrize("window", ["RANGE 12 SLIDE 3", "RANGES 12, 6, 3 SLIDES 3, 2, 1"])
def test_values_that_are_gone_are_forgotten(call: str, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary most of whose values no window holds is followed by another; states of both are combined."""
    monkeypatch.setattr(dictionary, "SMALL_DICTIONARY", 16)
    times = np.repeat(np.arange(240), 4)
    values = pa.array(times // 5 * 10 + np.tile([0, 1, 1, 3], 240) + times % 2)
    columns = {"t": times, "k": np.tile([0, 1, 0], 320), "v": values.cast(pa.string())}
    s = pa.table(columns | {"d": values.cast(pa.decimal128(25, 1))})
    cql = f"SELECT k, {call} AS r FROM S [{window}] GROUP BY k"
    pool = pw.Pool({"S": pw.StreamSchema(s.schema, "t", 0)})
    pool.register("q", cql)
    engine, said = pw.Engine(pool), []
    for start in range(0, len(s), 42):
        engine.feed("S", s.slice(start, 42))
        said.append(engine.advance()["q"])
        if start == 420:
            engine = pw.Engine.restore(engine.snapshot())
    said.append(engine.finish()["q"])
    order = [(name, "ascending") for name in said[0].column_names if name.startswith("w_") or name == "k"]
    wanted = pw.reference.run(cql, {"S": s}, time="t").sort_by(order)
    assert pa.concat_tables(said).sort_by(order).to_pylist() == wanted.to_pylist()
    (family,) = engine._families.values()
    column = family.columns[1]
    if isinstance(column, MultisetStates):
        assert column.dictionary is not None
        assert column.dictionary.generation > 0
        assert len(column.dictionary) < len(values.unique()) / 2
