"""The demo: a generated stream, a script of queries, and their answers, live on local Spark or at once."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from panewise.cli.network import connections
from panewise.cli.show import result_table
from panewise.cql import BoundScript
from panewise.runtime.local import HOST
from panewise.runtime.local.script import answer, load, shared_pool

#: Files that the stream is cut into; Spark takes one after the other.
PARTS = 10
#: A query that is registered while the others are running.
LATECOMER = (
    "SELECT remote_host, COUNT(*) AS n, SUM(sent + received) AS bytes, MAX(received) AS largest "
    "FROM conn [RANGE 2 MINUTES SLIDE 30 SECONDS] GROUP BY remote_host HAVING COUNT(*) >= 40"
)


def demo(console: Console, rows: int, seed: int, embedded: bool) -> None:
    """Generate, explain, answer: on local Spark, or in this process if there is no PySpark or the user prefers it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="panewise-demo-") as name:
        folder = Path(name)
        console.print(f"[bold]1. A stream[/bold]: {rows:,} network connections in {PARTS} parts, some of them late")
        _write_parts(connections(rows, seed), folder / "connections")
        text = files("panewise.cli").joinpath("demo.cql").read_text(encoding="utf-8")
        (folder / "demo.cql").write_text(text, encoding="utf-8")
        console.print("[bold]2. A script[/bold] of standing queries:")
        console.print(text, style="dim", markup=False)
        script = load(folder / "demo.cql")
        console.print("[bold]3. What they share[/bold]:")
        console.print(shared_pool(script, HOST).explain(), markup=False, highlight=False, soft_wrap=True)
        if embedded or find_spec("pyspark") is None:
            _answer_here(console, script, folder)
        else:
            _answer_on_spark(LiveResults(console, began), script, folder, rows)


def _answer_here(console: Console, script: BoundScript, folder: Path) -> None:
    """All answers at once, in this process."""
    console.print("[bold]4. The answers[/bold], in this process:")
    answers = answer(script, folder, HOST, boundary="[)")
    for each in answers:
        console.print(result_table(each.query.name, _newest_rows(each.outcome.table).slice(0, 6), clock=True))
    account = answers[0].outcome.accounting["conn"]
    console.print(
        f"[bold]5. In the end[/bold]: {account.rows_in:,} rows in = {account.used:,} used + {account.late:,} late + "
        f"{account.rejected:,} rejected"
    )
    if find_spec("pyspark") is None:
        console.print("To watch the answers come on Spark: pip install 'panewise\\[spark]'", highlight=False)


def _answer_on_spark(answers: LiveResults, script: BoundScript, folder: Path, rows: int) -> None:
    """Start, show results, register and revoke a query, finish."""
    from panewise import spark
    from panewise.runtime.spark.script import start_script

    console = answers.console
    console.print("[bold]4. The answers[/bold], as Spark Structured Streaming gives them:")
    with console.status("starting Spark"):
        session = spark.local_session(folder / "spark.log")
        pipeline = start_script(
            script,
            session,
            checkpoint=folder / "checkpoint",
            base=folder,
            boundary="[)",
            per_batch=1,
            sinks={name: answers.sink_for(name) for name in (*script.queries, "*")},
        )
    _watch(answers, pipeline)
    pipeline.finish()
    _show_summary(console, answers, pipeline, rows)


def _newest_rows(table: pa.Table) -> pa.Table:
    """The answers of the last instant."""
    return table.filter(pc.equal(table["w_end"], pc.max(table["w_end"])))


def _write_parts(table: pa.Table, folder: Path) -> None:
    """The stream as files, in the order of arrival."""
    folder.mkdir()
    size = -(-table.num_rows // PARTS)
    for number in range(PARTS):
        path = folder / f"{number:03d}.parquet"
        pa.parquet.write_table(table.slice(number * size, size), path)
        os.utime(path, (1_767_600_000 + number, 1_767_600_000 + number))


class LiveResults:
    """The newest results of the queries, shown live on a terminal."""

    def __init__(self, console: Console, began: float) -> None:
        self.console, self.began = console, began
        self.first: float | None = None
        self.latest: dict[str, pa.Table] = {}
        self.rows: dict[str, int] = {}
        self._lock = threading.Lock()

    def sink_for(self, name: str) -> Any:
        """The sink of a query."""

        def sink(results: Any, batch: int) -> None:
            table = results.toArrow()
            if not table.num_rows:
                return
            with self._lock:
                self.first = self.first or time.monotonic() - self.began
                newest = _newest_rows(table)
                self.latest["latecomer" if name == "*" else name] = newest.drop_columns(
                    [c for c in ("query",) if c in newest.column_names]
                )
                self.rows[name] = self.rows.get(name, 0) + table.num_rows

        return sink

    def render(self, title: str) -> Group:
        with self._lock:
            tables = [result_table(name, table.slice(0, 6), clock=True) for name, table in self.latest.items()]
        return Group(Text(title, style="bold"), *tables)


def _watch(answers: LiveResults, pipeline: Any) -> None:
    """Show answers until all parts have been read; meanwhile a query is registered and revoked again."""
    with Live(console=answers.console, refresh_per_second=4, vertical_overflow="crop", transient=True) as live:
        while pipeline.metrics.batch < PARTS - 1:
            batch = pipeline.metrics.batch
            if batch >= PARTS // 3 and "latecomer" not in pipeline.list() and "*" not in answers.rows:
                pipeline.register("latecomer", LATECOMER)
            if "*" in answers.rows and "latecomer" in pipeline.list():
                pipeline.revoke("latecomer")
            watermark = str(pipeline.metrics.watermark or "the beginning").removesuffix("+00:00")
            live.update(answers.render(f"part {batch + 1} of {PARTS}, time has come to {watermark}"))
            # Raises what went wrong, if something did.
            if pipeline.await_end(timeout=0.25):
                return


def _show_summary(console: Console, answers: LiveResults, pipeline: Any, rows: int) -> None:
    console.print(answers.render("the last answers of each query"))
    metrics = pipeline.metrics
    console.print(
        f"[bold]5. In the end[/bold]: {metrics.rows_in:,} rows in = {metrics.used:,} used + {metrics.late:,} late + "
        f"{metrics.rejected:,} rejected; {metrics.rows_out:,} rows out; first result after {answers.first or 0:.0f} s"
    )
    if metrics.rows_in != rows:
        raise SystemExit(f"{rows - metrics.rows_in:,} rows were not read")
