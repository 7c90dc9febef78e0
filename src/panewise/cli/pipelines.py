"""`panewise run --spark`, `register`, `revoke` and `list`: pipelines on Spark, and those that run elsewhere."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from panewise.cli.output import Output, chosen, write_results
from panewise.cli.show import result_table
from panewise.errors import BindProblem, SourceProblem, StateProblem, did_you_mean
from panewise.lang import Pipeline as Script
from panewise.runtime.checkpoint import Checkpoint, Plan
from panewise.runtime.local import HOST
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
) -> None:
    """Run a script as a pipeline: over what there is, or on and on until it is interrupted."""
    from panewise import spark

    script = load(path, HOST)
    printed = [name for name, each in script.queries.items() if not each.into]
    names = chosen(printed, printed, query, output)
    told = console if output is Output.TABLE else errors
    if follow and checkpoint is None:
        raise StateProblem("a pipeline that goes on needs a checkpoint", fix="add --checkpoint FOLDER")
    with ExitStack() as stack:
        folder = checkpoint or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panewise-")))
        with told.status("starting Spark"):
            session = spark.local_session(folder / "spark.log")
            pipeline = spark.launched(
                script,
                session,
                checkpoint=folder,
                base=path.parent,
                boundary=boundary,
                trigger=None if follow else {"availableNow": True},
            )
        _watched(told, pipeline, None if follow else _total(script, path.parent))
        if not follow:
            pipeline.finish(until)
        pipeline.stop()
        _tell(told, pipeline, script)
        if output is Output.TABLE:
            for name in names:
                console.print(result_table(name, pipeline.results(name).limit(rows).toArrow()))
        else:
            write_results({name: pipeline.results(name).toArrow() for name in names}, output)


def _watched(console: Console, pipeline: Any, total: int | None) -> None:
    """Wait for the end of a pipeline, with a bar where it is known how much there is to read."""
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=total)
        while not pipeline.await_end(timeout=0.5):
            metrics = pipeline.metrics
            progress.update(task, completed=metrics.rows_in, description=f"batch {metrics.batch + 1}")


def _total(script: Script, base: Path) -> int | None:
    """How many rows there are to read, where Parquet files tell it at a glance."""
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


def _tell(console: Console, pipeline: Any, script: Script) -> None:
    """Where results went, and what became of the rows."""
    for name, query in script.queries.items():
        if query.into:
            console.print(f"[bold]{escape(name)}[/bold]: results in {escape(query.into)}")
    metrics = pipeline.metrics
    console.print(
        f"{metrics.rows_in:,} rows in = {metrics.used:,} used + {metrics.late:,} late + {metrics.rejected:,} rejected; "
        f"{metrics.rows_out:,} rows out"
    )


def request(console: Console, folder: Path, op: str, patience: float, **arguments: Any) -> None:
    """Ask the pipeline of a checkpoint for something, and wait for its answer."""
    checkpoint = Checkpoint(folder)
    _checked(_plan(checkpoint), checkpoint, op, arguments)
    identity = checkpoint.control.request(op, **arguments)
    waited = 0.0
    while (fate := checkpoint.control.fate(identity)) is None and waited < patience:
        time.sleep(0.2)
        waited += 0.2
    if fate:
        raise BindProblem(f"the pipeline refuses: {fate}")
    done = {"register": "registered", "revoke": "revoked"}[op]
    after = "" if fate is not None else ", once the pipeline runs"
    console.print(f"{escape(str(arguments['name']))} is {done}{after}")


def _plan(checkpoint: Checkpoint) -> Plan:
    plan = checkpoint.plan()
    if plan is None:
        raise SourceProblem(f"'{checkpoint.folder}' is no checkpoint of a pipeline", fix="check the path")
    return plan


def _checked(plan: Plan, checkpoint: Checkpoint, op: str, arguments: dict[str, Any]) -> None:
    """Refuse at once what the pipeline would refuse anyway."""
    standing = checkpoint.control.standing()
    if op == "register":
        plan.streams().understood(arguments["name"], arguments["text"])
        other = standing.get(arguments["name"])
        if other is not None and other.text != arguments["text"]:
            raise BindProblem(f"the name {arguments['name']!r} is taken", fix="revoke it first, or choose another one")
    elif arguments["name"] not in standing and not any(
        asked.get("name") == arguments["name"] for asked in checkpoint.control.pending()
    ):
        name = arguments["name"]
        raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, standing or ["panewise register"]))


def listed(console: Console, folder: Path) -> None:
    """The queries of a pipeline, and what has been asked of it but not followed yet."""
    checkpoint = Checkpoint(folder)
    _plan(checkpoint)
    for name, query in checkpoint.control.standing().items():
        console.print(f"[bold]{escape(name)}[/bold]  {escape(query.text)}", highlight=False, soft_wrap=True)
    for asked in checkpoint.control.pending():
        console.print(f"{escape(str(asked.get('name')))}  waits to be {asked['op']}ed", style="dim", soft_wrap=True)
