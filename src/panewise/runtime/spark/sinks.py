"""Sinks: addresses to which the results of a batch are written.

A batch that is replayed after a failure has the same number and the same results. Files and Delta tables take it once:
files by replacing the folder of that batch, Delta by the number in its transaction log.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from panewise.algebra.result_columns import free_name
from panewise.core.errors import SourceProblem
from panewise.runtime.atomic_files import clear_drafts, draft_path
from panewise.runtime.dead_letters import DeadLetter, DeadLetterFolder
from panewise.runtime.pane_log import PaneLog
from panewise.runtime.spark.sources import first_line, resolve_path, split_address, topic_of

log = logging.getLogger("panewise.pipeline")

#: An address, a function of a DataFrame and the number of its batch, or several of them.
Target: TypeAlias = "str | Callable[[DataFrame, int], None] | Sequence[str | Callable[[DataFrame, int], None]]"


#: Texts keep what Spark would cut off: microseconds, and white space around strings.
_TIME_FORMATS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_CSV = {"header": "true", "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}


def batch_column(names: Sequence[str]) -> str:
    """The column that holds the number of the batch; its name changes if a query has a column of that name."""
    return free_name("batch", names)


@dataclass(frozen=True, eq=False)
class BatchResults:
    """The results of one channel in a batch, and the Parquet files in which they are already, if they are."""

    columns: Sequence[str]
    read: Callable[[], DataFrame]
    files: tuple[Path, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame) -> BatchResults:
        return cls(frame.columns, lambda: frame)


class Sink(ABC):
    """Takes the results of batches."""

    @property
    def read_count(self) -> int:
        """How often it reads the results of a batch."""
        return 1

    @abstractmethod
    def write(self, results: BatchResults, batch: int) -> None:
        """Write the results of one batch, which may have been written before."""


@dataclass(frozen=True)
class FileSink(Sink):
    """A folder with one folder for each batch, `batch=7`, replaced as a whole."""

    format: str
    path: str

    def write(self, results: BatchResults, batch: int) -> None:
        name = batch_column(results.columns)
        if results.files and self.format == "parquet" and "://" not in self.path:
            self._adopt(results.files, f"{name}={batch}")
            return
        frame = results.read().withColumn(name, F.lit(batch).cast("bigint"))
        writer = frame.write.mode("overwrite").format(self.format)
        options = {"partitionOverwriteMode": "dynamic"} | (_CSV if self.format == "csv" else {})
        options |= {} if self.format == "parquet" else _TIME_FORMATS
        writer.options(**options).partitionBy(name).save(self.path)

    def _adopt(self, files: Sequence[Path], name: str) -> None:
        """Replace the folder of a batch by one with these files."""
        target = Path(self.path) / name
        draft, old = draft_path(target), draft_path(target)
        draft.mkdir(parents=True)
        try:
            for file in files:
                _link_or_copy(file, draft / file.name)
            if target.exists():
                target.rename(old)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)

    def clear_drafts(self) -> None:
        """Remove the drafts of killed runs; a folder has one writer, since batches differ only by their numbers."""
        if "://" not in self.path:
            clear_drafts(Path(self.path))


def _link_or_copy(file: Path, target: Path) -> None:
    """Give a file a second name, or copy it to another file system."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


@dataclass(frozen=True)
class PaneLogSink(FileSink):
    """A pane log; readers see a batch once it is sealed."""

    def write(self, results: BatchResults, batch: int) -> None:
        log = PaneLog(Path(self.path))
        log.unseal(batch)
        super().write(results, batch)
        log.seal(batch)


@dataclass(frozen=True)
class DeltaSink(Sink):
    """A Delta table; its log records which batches of which writer it has."""

    path: str
    writer: str

    def write(self, results: BatchResults, batch: int) -> None:
        once = {"txnAppId": self.writer, "txnVersion": str(batch)}
        results.read().write.format("delta").mode("append").options(**once).save(self.path)


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A topic of JSON objects. At least once: by the header `batch` readers can drop batches that they have read
    already."""

    servers: str
    topic: str

    def write(self, results: BatchResults, batch: int) -> None:
        header = F.array(F.struct(F.lit("batch").alias("key"), F.lit(str(batch)).cast("binary").alias("value")))
        rows = results.read().select(F.to_json(F.struct("*"), _TIME_FORMATS).alias("value"), header.alias("headers"))
        options = {"kafka.bootstrap.servers": self.servers, "topic": self.topic}
        rows.write.format("kafka").options(**options).save()


@dataclass(frozen=True)
class ConsoleSink(Sink):
    """The first rows of every batch on standard output."""

    name: str

    def write(self, results: BatchResults, batch: int) -> None:
        print(f"{self.name}, batch {batch}:")
        results.read().show(20, truncate=False)


@dataclass(frozen=True)
class NoopSink(Sink):
    """Computes all results and writes nothing: for measuring."""

    def write(self, results: BatchResults, batch: int) -> None:
        if not results.files:
            results.read().write.format("noop").mode("overwrite").save()


@dataclass(frozen=True)
class FunctionSink(Sink):
    """Calls a user's function; exactly once only if that function records the number of the batch."""

    function: Callable[[DataFrame, int], None]

    def write(self, results: BatchResults, batch: int) -> None:
        self.function(results.read(), batch)


#: Results that cannot be computed, and batches that are stopped, are not faults of the sink.
_NOT_SINK_ERRORS = re.compile(r"panewise\.core\.errors\.|cancelled|Interrupt")


@dataclass(frozen=True)
class SuspendableSink(Sink):
    """The sinks of one query. Once one fails, results wait in the dead letters until the query is resumed."""

    query: str
    sinks: tuple[Sink, ...]
    letters: DeadLetterFolder

    @property
    def read_count(self) -> int:
        return len(self.sinks)

    def write(self, results: BatchResults, batch: int) -> None:
        if self.letters.sink_suspension(self.query) is not None:
            self._waiting_results.write(results, batch)
            return
        try:
            self._deliver(results, batch)
        except Exception as problem:
            self._suspend(results, batch, problem)

    def _deliver(self, results: BatchResults, batch: int) -> None:
        for sink in self.sinks:
            sink.write(results, batch)

    def _suspend(self, results: BatchResults, batch: int, problem: Exception) -> None:
        if _NOT_SINK_ERRORS.search(str(problem)):
            raise problem
        try:
            # Fails in the same way if it was not the sink that failed.
            self._waiting_results.write(results, batch)
        except Exception:
            raise problem from None
        letter = DeadLetter(self.query, f"its sink fails: {type(problem).__name__}: {first_line(problem)}", batch=batch)
        self.letters.suspend_sink(letter)
        log.warning("the results of %r wait in '%s': %s", self.query, self._waiting_results.path, letter.reason)

    @property
    def _waiting_results(self) -> FileSink:
        return FileSink("parquet", str(self.letters.waiting_results(self.query)))

    def deliver_waiting(self, session: SparkSession) -> None:
        """Write the waiting batches in their order; each is removed once it has been written."""
        folders = {int(path.name.partition("=")[2]): path for path in Path(self._waiting_results.path).glob("batch*=*")}
        for batch, folder in sorted(folders.items()):
            self._deliver(BatchResults.of(session.read.parquet(str(folder))), batch)
            shutil.rmtree(folder)
        self.letters.resume_sink(self.query)


def sinks_of(
    name: str, target: Target, base: Path, writer: str, memory: Path, shared: bool = False
) -> tuple[Sink, ...]:
    """The sinks that a target names. `writer` names the pipeline, `memory` is the folder for `memory:`.

    If several sets of columns go to one address, each has its own folder there, called `name`.
    """
    targets = [target] if isinstance(target, str) or callable(target) else list(target)
    return tuple(_sink(name, each, base, writer, memory, f"/{name}" if shared else "") for each in targets)


def _sink(
    name: str, target: str | Callable[[DataFrame, int], None], base: Path, writer: str, memory: Path, below: str
) -> Sink:
    if not isinstance(target, str):
        return FunctionSink(target)
    scheme, rest = split_address(target)
    match scheme:
        case "parquet" | "csv" | "json":
            return FileSink(scheme, resolve_path(rest, base) + below)
        case "delta":
            return DeltaSink(resolve_path(rest, base) + below, f"{writer} {name}")
        case "kafka":
            return KafkaSink(*topic_of(rest))
        case "console":
            return ConsoleSink(name)
        case "memory":
            return FileSink("parquet", str(memory))
        case "noop":
            return NoopSink()
    raise SourceProblem(
        f"{target!r} is no sink Panewise knows",
        fix="use parquet:, csv:, json:, delta:, kafka:server/topic, console:, memory:, noop: or a function",
    )
