"""What the engine does with input that is wrong: one clear sentence or a counted rejection, and nothing lost."""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64())])
COUNT = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [RANGE 10 SLIDE 5] GROUP BY k"


def engine(delay: int | None = 0, **queries: str) -> pw.Engine:
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, time="t", delay=delay)})
    for name, text in (queries or {"q": COUNT}).items():
        pool.register(name, text)
    return pw.Engine(pool)


def rows(*found: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*found, strict=True)) if found else [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def test_a_batch_with_another_schema_is_refused_and_nothing_of_it_is_taken() -> None:
    e = engine()
    e.feed("S", rows((1, "a", 1, 0.0)))
    with pytest.raises(pw.PanewiseError, match="column 'v' is DOUBLE in this batch, but was declared BIGINT"):
        e.feed("S", rows((2, "a", 1, 0.0)).set_column(2, "v", pa.array([1.0])))
    with pytest.raises(pw.PanewiseError, match="the batch has no column 'k'"):
        e.feed("S", rows((2, "a", 1, 0.0)).drop_columns(["k"]))
    assert e.accounting["S"].rows_in == 1
    assert e.finish()["q"].column("n").to_pylist() == [1, 1]


def test_columns_may_come_in_another_order_and_with_others_beside_them() -> None:
    e = engine()
    e.feed("S", rows((1, "a", 1, 0.0)).select(["x", "v", "k", "t"]).append_column("more", pa.array([1])))
    assert e.finish()["q"].num_rows == 2


def test_an_unknown_stream_and_an_unknown_query() -> None:
    e = engine()
    with pytest.raises(pw.PanewiseError, match="there is no stream 'T'; use S"):
        e.feed("T", rows())
    with pytest.raises(pw.PanewiseError, match="there is no query 'p'"):
        e.pool.revoke("p")
    with pytest.raises(pw.PanewiseError, match="the name 'q' is taken"):
        e.pool.register("q", COUNT)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT DISTINCT k FROM S [UNBOUNDED]", "DISTINCT remembers every different row of [UNBOUNDED]"),
        ("SELECT a.v FROM S AS a [UNBOUNDED], S AS b [RANGE 5] WHERE a.k = b.k", "the join keeps every row of"),
        ("SELECT k FROM S [WHERE v > 1] EXCEPT ALL SELECT k FROM S [RANGE 5]", "EXCEPT ALL remembers"),
        ("SELECT RSTREAM v FROM S [UNBOUNDED SLIDE 3]", "RSTREAM repeats everything that was ever in"),
    ],
)
def test_a_state_that_grows_for_ever_must_be_allowed(text: str, reason: str) -> None:
    pool = engine().pool
    with pytest.raises(pw.PanewiseError, match="grows for ever: " + re.escape(reason)):
        pool.register("endless", text)
    pool.register("endless", f"{text} ALLOW UNBOUNDED")
    pool.register("bounded", "SELECT ISTREAM v FROM S [UNBOUNDED]")


def test_a_query_the_engine_does_not_answer_is_refused_with_the_reason() -> None:
    e = engine()
    for text, reason in (
        ("SELECT ISTREAM COUNT(*) AS n FROM S [RANGE (ABS(now) % 4) SLIDE 2]", "varying range"),
        ("SELECT a.v FROM S AS a [RANGE 5 SLIDE 2], S AS b [NOW] LATE REVISE 3", "LATE REVISE revises"),
        ("SELECT v FROM S [RANGE (ABS(now) % 4) SLIDE 2]", "is not a grouped aggregate"),
        ("SELECT COUNT(*) AS n FROM S [RANGE 4] EMIT EMPTY", "EMIT EMPTY needs"),
        ("SELECT COUNT(*) AS n FROM S [UNBOUNDED SLIDE 2] LATE REVISE 3", "LATE REVISE needs"),
    ):
        with pytest.raises(pw.PanewiseError, match=reason):
            e.pool.register("x", text)
    assert list(e.pool.queries) == ["q"]


def test_batches_of_zero_rows() -> None:
    e = engine()
    e.feed("S", rows())
    assert e.advance()["q"].num_rows == 0
    e.feed("S", rows((1, "a", 1, 0.0)))
    e.feed("S", rows())
    assert e.finish()["q"].num_rows == 2
    assert engine().finish()["q"].schema.names == ["k", "n", "s", "w_start", "w_end"]


def test_poison_times_are_rejected_and_never_move_the_watermark() -> None:
    e = engine()
    e.feed("S", rows((1, "a", 1, 0.0), (None, "a", 1, 0.0), (2**62, "a", 1, 0.0), (2, "a", 1, 0.0)))
    account = e.accounting["S"]
    assert (account.rows_in, account.used, account.rejected) == (4, 2, 2)
    assert e.advance()["q"].num_rows == 0
    assert e.finish()["q"].column("n").to_pylist() == [2, 2]


def test_rows_beyond_the_delay_are_late_counted_and_kept_apart() -> None:
    e = engine()
    e.feed("S", rows((100, "a", 1, 0.0), (3, "a", 1, 0.0)))
    account = e.accounting["S"]
    assert (account.rows_in, account.used, account.late) == (2, 1, 1)
    assert e.late("S").column("t").to_pylist() == [3]
    assert e.late("S").num_rows == 0


def test_a_sum_that_overflows_is_an_error_that_costs_no_other_query_its_results() -> None:
    total = "SELECT SUM(v) AS s FROM S [RANGE 10 SLIDE 10]"
    e = engine(None, total=total, rows="SELECT COUNT(*) AS n FROM S [RANGE 10 SLIDE 10]")
    e.feed("S", rows((1, "a", 2**62, 0.0), (2, "a", 2**62, 0.0)))
    for _ in range(2):
        with pytest.raises(pw.PanewiseError, match=f"SUM overflows BIGINT with {2**63}"):
            e.advance(20)
    e.pool.revoke("total")
    assert e.advance()["rows"].column("n").to_pylist() == [2]
    assert e.finish()["rows"].num_rows == 0


def test_sums_inside_a_window_may_leave_the_range_of_integers_and_come_back() -> None:
    e = engine(None, q="SELECT SUM(v) AS s, AVG(v) AS a FROM S [RANGE 10 SLIDE 10]")
    e.feed("S", rows((1, "a", 2**62, 0.0), (2, "a", 2**62, 0.0), (3, "a", -(2**62), 0.0)))
    assert e.finish()["q"].column("s").to_pylist() == [2**62]


def test_nan_and_infinities_come_and_go() -> None:
    e = engine(None, q="SELECT SUM(x) AS s, MAX(x) AS high, MIN(x) AS low FROM S [RANGE 10 SLIDE 10]")
    e.feed("S", rows((5, "a", 0, math.nan), (15, "a", 0, math.inf), (25, "a", 0, 1e300), (25, "a", 0, 1.0)))
    e.feed("S", rows((35, "a", 0, 1.0), (36, "a", 0, -math.inf), (37, "a", 0, math.inf), (45, "a", 0, -0.0)))
    found = e.finish()["q"].to_pylist()
    assert [repr(row["s"]) for row in found] == ["nan", "inf", "1e+300", "nan", "0.0"]
    assert [repr(row["high"]) for row in found] == ["nan", "inf", "1e+300", "inf", "0.0"]
    assert [repr(row["low"]) for row in found] == ["nan", "inf", "1.0", "-inf", "0.0"]


def test_what_stood_beside_a_giant_is_not_lost_when_the_giant_leaves() -> None:
    """A running total subtracted from would say 0 here."""
    e = engine(None, q="SELECT SUM(x) AS s FROM S [RANGE 10 SLIDE 5]")
    e.feed("S", rows((1, "a", 0, 1e300), (6, "a", 0, 1.5)))
    assert e.finish()["q"].column("s").to_pylist() == [1e300, 1e300, 1.5]


def test_an_absurd_range_is_refused_before_anything_is_computed() -> None:
    e = engine(None, q="SELECT COUNT(*) AS n FROM S [RANGE 1000000000000 SLIDE 1]")
    e.feed("S", rows((1, "a", 1, 0.0)))
    with pytest.raises(pw.PanewiseError, match="would be reported at"):
        e.finish()
    assert e.finish(until=3)["q"].column("n").to_pylist() == [1, 1, 1]


def test_streams_must_be_declared() -> None:
    with pytest.raises(pw.PanewiseError, match="streams are not declared"):
        pw.Pool({"S": pa.table({"t": [1]})})
    with pytest.raises(pw.PanewiseError, match="policy 'best' is unknown"):
        pw.Pool({}, policy="best")
    with pytest.raises(pw.PanewiseError, match="purge 'never' is unknown; use 'eager' or 'lazy'"):
        pw.Pool({}, purge="never")
