"""A query that fails is suspended, with its row; so are sinks that fail. The others go on, and miss nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import panewise as pw
from panewise.core.errors import BindProblem, StateProblem
from panewise.runtime.spark.failures import failing_queries
from panewise.runtime.spark.transfer.native import plan_native_panes
from panewise.runtime.spark.transfer.plan import plan_transfer

from .shards import Shards
from .streams import parts, plain, pooled, reader, written

SUMS = "SELECT k, SUM(v) AS s FROM S [RANGE 20 SLIDE 10] GROUP BY k"
GOOD = {"sums": SUMS, "wide": SUMS.replace("20", "40"), "sunk": SUMS.replace("SUM", "MAX")}
BAD = {
    "cast": "SELECT k, COUNT(*) AS s FROM S [RANGE 20 SLIDE 10] WHERE CAST(c AS INT) > 1 GROUP BY k",
    "product": "SELECT k, MAX(v) * MAX(v) AS s FROM S [RANGE 20 SLIDE 10] GROUP BY k",
}
#: The pieces in which the queries fail; one of them in the batch in which it joins.
NO_NUMBER, GIANT = 0, 4


def rows() -> pa.Table:
    """Eight pieces of 50 rows; a text that is no number in one of them, and a number too great in another."""
    count = 400
    texts = [str(n % 7) for n in range(count)]
    texts[NO_NUMBER * 50 + 7] = "oops"
    numbers = [n % 11 for n in range(count)]
    numbers[GIANT * 50 + 9] = 2**62
    keys = [f"k{n % 3}" for n in range(count)]
    return pa.table({"t": range(count), "k": keys, "c": texts, "v": numbers})


class Sink:
    """Collects results, unless it is out of order."""

    def __init__(self) -> None:
        self.taken: dict[int, list[str]] = {}
        self.broken: Callable[[int], bool] = lambda batch: False

    def __call__(self, results: DataFrame, batch: int) -> None:
        if self.broken(batch):
            raise ConnectionError("nobody listens")
        self.taken[batch] = plain(results.toArrow())


@pytest.mark.slow
@pytest.mark.parametrize("state", ["rocksdb", "files"])
def test_failing_queries_and_sinks_are_suspended_and_the_others_miss_nothing(
    spark: SparkSession, tmp_path: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    table, sink = rows(), Sink()
    pieces = parts(table, 8)

    def start() -> pw.spark.Pipeline:
        return pw.spark.stream(
            pooled(table.schema, GOOD | BAD),
            {"S": reader(spark, tmp_path / "in", table.schema)},
            checkpoint=tmp_path / "checkpoint",
            sinks={"sunk": sink, "*": "memory:"},
            trigger={"availableNow": True},
            shards=2,
            state=state,
        )

    written(tmp_path / "in", pieces[:6])
    sink.broken = lambda batch: batch >= 3
    pipeline = start()
    pipeline.await_end()
    assert set(pipeline.suspended) == {"cast", "product", "sunk"}
    cast, product = pipeline.suspended["cast"], pipeline.suspended["product"]
    assert (cast.batch, product.batch) == (NO_NUMBER, GIANT)
    assert "'oops'" in cast.reason
    assert cast.row["c"] == "'oops'"
    assert str(2**62) in product.row.values()
    assert "ConnectionError: nobody listens" in pipeline.suspended["sunk"].reason
    assert set(pipeline.list()) == {"sums", "wide", "sunk"}
    assert pipeline.metrics.suspended == {name: str(letter) for name, letter in pipeline.suspended.items()}
    (letter,) = (tmp_path / "checkpoint" / "dead_letters" / "cast").glob("*.json")
    assert json.loads(letter.read_text())["text"] == BAD["cast"]
    pipeline.stop()

    with caplog.at_level("INFO", logger="panewise.pipeline"):
        pipeline = start()
    assert "'cast' stays suspended: " in caplog.text
    pipeline.await_end()
    with pytest.raises(StateProblem, match="the sink of 'sunk' fails again: nobody listens; mend it; its results are"):
        pipeline.resume("sunk")
    sink.broken = lambda batch: False
    pipeline.resume("sunk")
    written(tmp_path / "in", pieces[6:], 6)
    pipeline.resume("cast")
    with pytest.raises(BindProblem, match="query 'sums' is not suspended"):
        pipeline.resume("sums")
    pipeline.finish()
    assert set(pipeline.suspended) == {"product"}
    for name in ("sums", "wide"):
        assert plain(pipeline.results(name).toArrow()) == plain(pw.run(GOOD[name], {"S": table}, time="t")), name
    wanted = plain(pw.run(GOOD["sunk"], {"S": table}, time="t"))
    assert sorted(row for batch in sink.taken.values() for row in batch) == wanted
    again = [row for row in pipeline.results("cast").toArrow().to_pylist() if row["w_start"] >= 300]
    assert again
    healthy = table.set_column(2, "c", pa.array([c if c != "oops" else "0" for c in table["c"].to_pylist()]))
    assert all(row in pw.run(BAD["cast"], {"S": healthy}, time="t").to_pylist() for row in again)


@pytest.mark.slow
def test_results_of_the_only_query_wait_for_its_sink_too(spark: SparkSession, tmp_path: Path) -> None:
    """They are read once only where all is well, so that shards work twice where it is not."""
    table, sink = rows(), Sink()
    sink.broken = lambda batch: batch == 1
    pipeline = pw.spark.stream(
        pooled(table.schema, {"sums": SUMS}),
        {"S": reader(spark, written(tmp_path / "in", parts(table, 3)), table.schema)},
        checkpoint=tmp_path / "checkpoint",
        sinks={"sums": sink},
        trigger={"availableNow": True},
        shards=2,
    )
    pipeline.await_end()
    assert sorted(sink.taken) == [0]
    sink.broken = lambda batch: False
    pipeline.resume("sums")
    pipeline.finish()
    wanted = plain(pw.run(SUMS, {"S": table}, time="t"))
    assert sorted(row for batch in sink.taken.values() for row in batch) == wanted


@pytest.mark.parametrize("joins_late", [False, True])
def test_a_batch_is_done_again_without_the_query_that_failed_in_it(joins_late: bool) -> None:
    """Also where it had joined in that very batch; and when it is resumed, it goes on."""
    table, queries = rows(), GOOD | {"product": BAD["product"]}
    pieces = parts(table, 8)
    shards = Shards(pooled(table.schema, queries), 2)
    joining = {"op": "register", "name": "product", "text": BAD["product"], "start": "backfill"}
    if joins_late:
        shards.commands.pop()
    failed = []
    for number, piece in enumerate(pieces):
        before, commands = shards.memory(), list(shards.commands)
        if joins_late and number == GIANT:
            commands = shards.commands = [joining]
        if number == 7:
            shards.commands = [{"op": "suspend", "name": "product", "reason": "?"}, joining]
        try:
            shards.batch(S=[piece])
        except StateProblem as problem:
            failed += [(letter.query, number) for letter in failing_queries(problem)]
            shards.remember(before, suspensions={"product": number + 1.5})
            shards.commands = commands
            shards.batch(S=[piece])
    assert failed == [("product", GIANT)]
    shards.finish()
    for name in GOOD:
        assert plain(shards.results(name)) == plain(pw.run(GOOD[name], {"S": table}, time="t"))
    wanted = pw.run(BAD["product"], {"S": pieces[7]}, time="t")
    assert _after(350, shards.results("product")) == _after(350, wanted)
    assert not [row for row in shards.results("product").to_pylist() if 210 <= row["w_end"] < 350]


def _after(time: int, found: pa.Table) -> list[str]:
    return sorted(repr(row) for row in found.to_pylist() if row["w_start"] > time)


def test_a_stream_is_read_on_when_the_last_query_over_it_is_suspended() -> None:
    """Spark does not go on with other sources, and its rows are still accounted for."""
    table = rows()
    pool = pooled(table.schema, {})
    layout = plan_transfer(pool, 2, always=["S"])
    (transfer,) = layout.transfers
    assert transfer.family_transfers == ()
    assert plan_native_panes(layout, transfer, (0, 1)) is None
    shards = Shards(pool, 2, always=["S"])
    for piece in parts(table, 2):
        shards.batch(S=[piece])
    shards.finish()
