"""`panewise run --spark`: pipelines on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from rich.console import Console
from rich.markup import escape

from panewise.cli.output import Output, choose_queries, write_results
from panewise.cli.preflight import refuse_start
from panewise.cli.show import result_table, show_result
from panewise.cli.watching import NewResults, log_to_console, show_start, watch
from panewise.core.errors import BindProblem, StateProblem
from panewise.cql import BoundScript
from panewise.runtime.local.script import load


def run_on_spark(
    console: Console,
    errors: Console,
    path: Path,
    checkpoint: Path | None,
    follow: bool,
    boundary: str | None,
    until: str | None,
    rows: int,
    output: Output,
    query: str | None,
    settings: Mapping[str, str],
) -> None:
    """Run a script as a pipeline: over the existing input, or without end until it is interrupted."""
    from panewise import spark
    from panewise.runtime.spark.script import start_script

    script = load(path)
    printed = [name for name, each in script.queries.items() if not each.into]
    names = choose_queries(printed, printed, query, output)
    message_console = console if output is Output.TABLE else errors
    if follow and checkpoint is None:
        raise StateProblem("a pipeline that runs until interrupted needs a checkpoint", fix="add --checkpoint FOLDER")
    refuse_start(script, path.parent, checkpoint, boundary, settings)

    def show(name: str, table: pa.Table) -> None:
        if output is Output.TABLE:
            show_result(console, name, table, rows)
        else:
            write_results({name: table}, output)

    with ExitStack() as stack:
        folder = checkpoint or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panewise-")))
        stack.enter_context(log_to_console(message_console))
        coming = NewResults(folder, names if follow else [], show)
        with message_console.status("starting Spark"):
            session = spark.local_session(folder / "spark.log", **settings)
            pipeline = start_script(
                script,
                session,
                checkpoint=folder,
                base=path.parent,
                boundary=boundary,
                trigger=None if follow else {"availableNow": True},
            )
        show_start(message_console, script, folder)
        watch(message_console, pipeline, None if follow else _total_rows(script, path.parent), coming)
        if not follow:
            pipeline.finish(until)
        pipeline.stop()
        _show_summary(message_console, pipeline, script)
        if follow:
            coming()
        elif output is Output.TABLE:
            for name in names:
                console.print(result_table(name, pipeline.results(name).limit(rows).toArrow()))
        else:
            write_results({name: pipeline.results(name).toArrow() for name in names}, output)


def settings_of(packages: str | None, conf: Sequence[str]) -> dict[str, str]:
    """The settings with which Spark is started, besides its defaults."""
    found = {"spark.jars.packages": packages} if packages else {}
    for each in conf:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise BindProblem(f"--conf {each!r} is no setting", fix="write --conf KEY=VALUE")
        found[key] = value
    return found


def _total_rows(script: BoundScript, base: Path) -> int | None:
    """The number of rows to read, if Parquet files have it in their metadata."""
    total = 0
    for address in script.sources.values():
        scheme, _, rest = address.partition(":")
        folder = base / rest
        if scheme != "parquet" or "://" in rest:
            return None
        files = sorted(folder.rglob("*.parquet")) if folder.is_dir() else [folder]
        try:
            total += sum(pyarrow.parquet.ParquetFile(file).metadata.num_rows for file in files)
        except (OSError, pyarrow.ArrowException):
            return None
    return total


def _show_summary(console: Console, pipeline: Any, script: BoundScript) -> None:
    """Show the targets of results, and the account of the rows."""
    for name, query in script.queries.items():
        if query.into:
            console.print(f"[bold]{escape(name)}[/bold]: results in {escape(query.into)}")
    metrics = pipeline.metrics
    console.print(
        f"{metrics.rows_in:,} rows in = {metrics.used:,} used + {metrics.late:,} late + {metrics.rejected:,} rejected; "
        f"{metrics.rows_out:,} rows out"
    )
