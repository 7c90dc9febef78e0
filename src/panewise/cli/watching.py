"""Shows a running pipeline: a bar on a terminal, a line for each batch elsewhere, and results as they are written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from panewise.cql import BoundScript
from panewise.runtime.checkpoint import Checkpoint
from panewise.runtime.results import ResultFiles

if TYPE_CHECKING:
    import pyarrow as pa

#: What is printed of a pipeline after a batch.
ProgressCallback: TypeAlias = Callable[[Any], None]


def show_start(console: Console, script: BoundScript, checkpoint: Path) -> None:
    """Print one line about the pipeline that was started."""
    streams = ", ".join(f"{name} from {script.sources[name]}" for name in script.streams if name in script.sources)
    queries = ", ".join(script.queries)
    _print_line(console, f"started: {streams}; queries {queries}; checkpoint {checkpoint}")


@contextmanager
def log_to_console(console: Console) -> Iterator[None]:
    """Print meanwhile what pipelines log: queries that join, leave or are suspended, and why."""

    class ConsoleHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _print_line(console, record.getMessage())

    logger, handler = logging.getLogger("panewise"), ConsoleHandler(logging.INFO)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def watch(console: Console, pipeline: Any, total: int | None, arrived: Callable[[], None]) -> None:
    """Wait for the end of a pipeline, and print its batches; `arrived` is called to show new results."""
    with _progress_bar(console, total) if console.is_terminal else _progress_lines(console) as show:
        while not pipeline.await_end(timeout=0.5):
            show(pipeline.metrics)
            arrived()
        show(pipeline.metrics)
        arrived()


@contextmanager
def _progress_bar(console: Console, total: int | None) -> Iterator[ProgressCallback]:
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=total)
        yield lambda metrics: progress.update(task, completed=metrics.rows_in, description=f"batch {metrics.batch + 1}")


@contextmanager
def _progress_lines(console: Console) -> Iterator[ProgressCallback]:
    last = -1

    def show(metrics: Any) -> None:
        nonlocal last
        if metrics.batch > last:
            last = metrics.batch
            behind = "" if metrics.lag_seconds is None else f", {metrics.lag_seconds:,.0f} s behind"
            _print_line(
                console,
                f"batch {metrics.batch}: {metrics.rows_in:,} rows in, {metrics.rows_out:,} out; "
                f"watermark {metrics.watermark}{behind}",
            )

    yield show


def _print_line(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


class NewResults:
    """Returns results of some queries as their batches are written."""

    def __init__(self, checkpoint: Path, names: Sequence[str], show: Callable[[str, pa.Table], None]) -> None:
        self.checkpoint, self.names, self.show = Checkpoint(checkpoint), names, show
        # Results of earlier runs were shown by those runs.
        self.seen = {batch for name in names for batch in self._batches(name)}

    def _batches(self, name: str) -> list[Path]:
        return ResultFiles(name, "parquet", self.checkpoint.results(name), shared=False).batches()

    def __call__(self) -> None:
        for name in self.names:
            for batch in self._batches(name):
                if batch not in self.seen:
                    self.seen.add(batch)
                    self.show(name, ResultFiles(name, "parquet", batch.parent, shared=False).read(batch))
