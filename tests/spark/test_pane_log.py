"""A pipeline logs the panes it finishes, each once, also where a batch is done again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import panewise as pw
from panewise.core.errors import BindProblem, StateProblem
from panewise.runtime.pane_log import PaneLog, rows_of
from panewise.serve.encoding import ARROW
from tests.serve.logs import ask

from .streams import parts, plain, reader, stream, written

pytestmark = pytest.mark.slow

QUERY = "SELECT k, SUM(v) AS s, MAX(w) AS w, AVG(x) AS x FROM S [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY k"


def seconds(table: pa.Table) -> pa.Table:
    """The same stream in timestamps."""
    times = pa.array([1_767_600_000 + t for t in table["t"].to_pylist()], pa.timestamp("s", "UTC"))
    return table.set_column(0, "t", times.cast(pa.timestamp("us", "UTC")))


def test_panes_are_logged_once(spark: SparkSession, tmp_path: Path) -> None:
    table = seconds(stream())
    pieces = parts(table, 4)

    def run(first: int, text: str = QUERY) -> pw.spark.Pipeline:
        pool = pw.Pool({"S": pw.StreamSchema(table.schema, time="t", delay="1 second")}, "[)")
        pool.register("q", text)
        source = written(tmp_path / "in", pieces[first : first + 2], first)
        return pw.spark.stream(
            pool,
            {"S": reader(spark, source, table.schema)},
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            shards=2,
            panes={"q": f"parquet:{tmp_path / 'panes'}"},
        )

    run(0).await_end()
    before = PaneLog(tmp_path / "panes").batches()[1].version
    assert all((tmp_path / name).stat().st_mode & 0o777 == 0o700 for name in ("checkpoint", "panes"))
    staging = [tmp_path / "panes" / ".spark-staging-1", *(tmp_path / "checkpoint/results").glob("*/")]
    staging[1:] = [folder / ".spark-staging-2" for folder in staging[1:]]
    for folder in staging:
        folder.mkdir()
    # As if the driver had been killed after it wrote the last batch, and before Spark took note of that.
    for path in (tmp_path / "checkpoint/spark/commits").glob("*1*"):
        path.unlink()
    with run(2) as pipeline:
        with pytest.raises(BindProblem, match="the name 'q' is taken"):
            pipeline.register("q", QUERY)
        pipeline.finish()
    assert len(staging) > 1
    assert not any(folder.exists() for folder in staging)
    log = PaneLog(tmp_path / "panes")
    header = log.header()
    assert header is not None
    rows = rows_of(header.build_pool(), "q")
    panes = pa.concat_tables([t for batch in log.batches().values() if (t := batch.read(rows.schema)) is not None])
    assert len(log.batches()) > 2
    assert log.batches()[1].version != before
    assert sum(panes["count"].to_pylist()) == table.num_rows
    slots = panes.select(["pane_start", "pane_end", "k"]).to_pylist()
    assert len({tuple(slot.values()) for slot in slots}) == len(slots)
    assert pipeline.metrics.rows_out == pipeline.results("q").count()
    results = pipeline.results("q").toArrow()
    alone = pw.execute(QUERY, {"S": pw.Stream(table, time="t", delay="1 second")}, boundary="[)")
    assert plain(results) == plain(alone.table)
    final = pc.max(panes["pane_end"])
    known = results.filter(pc.less_equal(results["w_end"], final))
    with pw.serve.LookupServer(tmp_path / "panes") as server:
        instants = [at.isoformat() for at in known["w_end"].unique().to_pylist()]
        assert plain(ask(server.url, "/queries/q/lookup", accept=ARROW, at=instants).table) == plain(known)
    with pytest.raises(StateProblem, match="another query"):
        PaneLog(tmp_path / "panes").claim(type(header)("other", header.pool, header.writer))
