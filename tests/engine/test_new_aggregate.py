"""A new aggregate is one class with its state arrays: parser, reference, engine and shards know it at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise.aggregate import AGGREGATES, Aggregate, Int64Array, Items, Last, Laws, StateArrays, StateWords
from panewise.aggregate.base import numeric_type
from panewise.runtime.spark.transfer.plan import plan_transfer

from ..laws.test_engine import same
from ..spark.shards import Shards

_LEAST = np.iinfo(np.int64).min

KEYS = ["a", "b", "a", None, "b", "a", "a", "b", "a", "b"]
TICKS = pa.table({"t": [1, 3, 4, 4, 9, 12, 2, 15, 21, 22], "k": KEYS, "v": [5, -3, None, 7, 0, 12, -20, 4, 1, None]})
#: Keys of 32 bits and timestamps, so that shards get key and pane in one number.
STAMPS = pa.table(
    {
        "t": pa.array([datetime(2024, 1, 1) + timedelta(seconds=each) for each in TICKS["t"].to_pylist()]),
        "k": pa.array([each and ord(each) for each in KEYS], pa.int32()),
        "v": TICKS["v"],
    }
)


@pytest.fixture(autouse=True)
def registered() -> Iterator[type[Aggregate[Any]]]:
    """The aggregate SPREAD, which exists as long as a test of this module runs."""
    known = dict(AGGREGATES)

    class Spread(Aggregate["tuple[int, int] | None"]):
        """The difference between the greatest and the least integer."""

        names: ClassVar[tuple[str, ...]] = ("SPREAD",)
        laws = Laws(idempotent=True)

        def result_type(self) -> pa.DataType:
            numeric_type(self)
            return pa.int64()

        def meaning(self, values: Sequence[Any]) -> int | None:
            return max(values) - min(values) if values else None

        def identity(self) -> tuple[int, int] | None:
            return None

        def lift(self, value: Any) -> tuple[int, int]:
            return value, value

        def combine(self, left: tuple[int, int] | None, right: tuple[int, int] | None) -> tuple[int, int] | None:
            if left is None or right is None:
                return right if left is None else left
            return min(left[0], right[0]), max(left[1], right[1])

        def lower(self, state: tuple[int, int] | None) -> int | None:
            return None if state is None else state[1] - state[0]

        def state_arrays(self) -> StateArrays:
            return SpreadStates()

    yield Spread
    AGGREGATES.clear()
    AGGREGATES.update(known)


class SpreadStates(StateArrays):
    """The greatest value and the greatest complement of a value."""

    needs_time = False
    gathered = 0

    def identity(self, size: int) -> StateWords:
        return np.full(size, _LEAST), np.full(size, _LEAST)

    def _gather(self, slots: Int64Array, items: Items, into: StateWords) -> None:
        type(self).gathered += len(items)
        values = items.arguments[0].to_numpy(zero_copy_only=False)
        np.maximum.at(into[0], slots, values)
        np.maximum.at(into[1], slots, ~values)

    def combine(self, left: StateWords, right: StateWords) -> StateWords:
        return np.maximum(left[0], right[0]), np.maximum(left[1], right[1])

    def lower(self, words: StateWords) -> pa.Array:
        return pa.array(words[0] - ~words[1], mask=words[0] == _LEAST)

    def spark_sql(self, value: str) -> list[str]:
        return [f"MAX({value})", f"MAX(~{value})"]

    def from_spark(self, found: Sequence[pa.Array]) -> StateWords:
        return tuple(array.fill_null(_LEAST).to_numpy() for array in found)


#: Lengths are followed by a unit on timestamps.
WINDOWS = (
    "[RANGE 10{} SLIDE 5{}]",
    "[RANGES 12{}, 6{}, 3{} SLIDES 6{}, 3{}, 3{}]",
    "[UNBOUNDED SLIDE 5{}]",
    "[ROWS 3]",
    "[SESSION 2{}]",
)


@pytest.mark.parametrize(("rows", "unit"), [(TICKS, ""), (STAMPS, " SECONDS")], ids=["ticks", "stamps"])
@pytest.mark.parametrize("window", WINDOWS)
def test_engine_and_shards_answer_as_it_means(window: str, rows: pa.Table, unit: str) -> None:
    window = window.replace("{}", unit)
    cql = f"SELECT k, SPREAD(v) AS s FROM S {window} GROUP BY k HAVING SPREAD(v) >= 0"
    wanted = pw.reference.run(cql, {"S": rows}, time="t")
    assert len(set(wanted["s"].to_pylist())) > 1
    same(pw.run(cql, {"S": rows}, time="t"), wanted)
    for restarts in (False, True):
        shards = Shards(pool_of(rows, cql), 2, restarts)
        shards.batch(S=[rows.slice(0, 2), rows.slice(2, 4)])
        shards.batch(S=[rows.slice(6)])
        shards.finish()
        same(shards.results("q"), wanted)


def pool_of(rows: pa.Table, cql: str) -> pw.Pool:
    pool = pw.Pool({"S": pw.StreamSchema(rows.schema, "t")})
    pool.register("q", cql)
    return pool


@pytest.mark.parametrize(("call", "packed"), [("SPREAD(v)", True), ("LAST(v)", False)])
def test_rows_leave_spark_without_their_time_if_states_do_not_need_it(call: str, packed: bool) -> None:
    pool = pool_of(STAMPS, f"SELECT k, {call} AS s FROM S [RANGE 2 DAYS SLIDE 1 DAY] GROUP BY k")
    (transfer,) = plan_transfer(pool, 2).transfers
    assert (transfer.packing is not None) == packed


def test_its_arrays_are_used() -> None:
    before = SpreadStates.gathered
    pw.run("SELECT k, SPREAD(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k", {"S": TICKS}, time="t")
    assert SpreadStates.gathered - before == TICKS["v"].drop_null().length()


@pytest.mark.parametrize(
    "cql",
    [
        "SELECT A.k, SPREAD(B.v) AS s FROM S [RANGE 9] A, S [RANGE 5] B WHERE A.k = B.k GROUP BY A.k",
        "SELECT k, SPREAD(v) AS s FROM S [FRAME SPREAD(v) >= 10 PARTITION BY k] GROUP BY k",
        "SELECT ISTREAM k, SPREAD(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k",
    ],
    ids=["join", "frame", "changes"],
)
def test_the_row_engine_and_frames_answer_as_it_means(cql: str) -> None:
    wanted = pw.reference.run(cql, {"S": TICKS}, time="t")
    assert wanted.num_rows
    same(pw.run(cql, {"S": TICKS}, time="t"), wanted)


def test_lookups_answer_as_it_means() -> None:
    cql = "SELECT k, SPREAD(v) AS s FROM S [RANGE 20 SLIDE 5] GROUP BY k"
    engine = pw.Engine(pool_of(TICKS, cql))
    engine.feed("S", TICKS)
    engine.advance()
    found = engine.lookup(cql, at=20)
    same(found, pw.reference.lookup(cql, {"S": TICKS}, at=20, time="t"))


def test_states_from_spark_are_those_from_items() -> None:
    states, slots = SpreadStates(), np.array([0, 2, 0])
    values, order = pa.array([4, -1, 9]), np.arange(3)
    wanted = states.gather(slots, Items((values,), order, order), 3)
    found = states.from_spark([pa.array([9, None, -1]), pa.array([~4, None, ~-1])])
    assert [word.tolist() for word in found] == [word.tolist() for word in wanted]
    assert states.lower(found).to_pylist() == [5, None, 0]


def test_explain_names_it_and_its_laws() -> None:
    pool = pool_of(TICKS, "SELECT k, SPREAD(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k")
    assert "SPREAD is associative, commutative, idempotent, constant state" in pool.explain()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("SPREAD(k)", "SPREAD takes numbers, not STRING"),
        ("SPREAD(v, v)", r"SPREAD\(v, v\) has 2 arguments"),
        ("SPREAD(*)", r"SPREAD\(\*\) makes no sense"),
    ],
)
def test_calls_that_do_not_fit_are_refused_by_name(call: str, message: str) -> None:
    with pytest.raises(pw.PanewiseError, match=message):
        pw.run(f"SELECT {call} AS s FROM S [RANGE 10]", {"S": TICKS}, time="t")


def test_an_ordered_aggregate_is_refused_by_name_where_streams_meet() -> None:
    class Newest(Last):
        names = ("NEWEST", "NEWEST_VALUE")

    cql = "SELECT A.k, NEWEST(B.v) AS s FROM S [RANGE 9] A, S [RANGE 5] B WHERE A.k = B.k GROUP BY A.k"
    with pytest.raises(pw.PanewiseError, match="NEWEST needs rows in the order of one stream"):
        pool_of(TICKS, cql)


def test_an_ordered_aggregate_needs_arrays_that_carry_the_order() -> None:
    """States are combined in any order, so those of an ordered aggregate cannot be its plain objects."""

    class Newest(Last):
        names = ("NEWEST", "NEWEST_VALUE")

        def state_arrays(self) -> StateArrays:
            return Aggregate.state_arrays(self)

    with pytest.raises(TypeError, match="Newest is ordered"):
        pw.run("SELECT NEWEST(v) AS s FROM S [RANGE 10 SLIDE 5]", {"S": TICKS}, time="t")
