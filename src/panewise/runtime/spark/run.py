"""One run of a pipeline as a Spark query.

`StateStoreRun` keeps the state of shards in Spark's state store. `FileStateRun` keeps it in files: then a batch is a
bounded job, in which Spark can aggregate panes itself before anything is sent to Python.
"""

from __future__ import annotations

import json
import logging
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from panewise.core.errors import BindProblem, SourceProblem, StateProblem
from panewise.core.time import Domain
from panewise.runtime.atomic_files import create_atomic, read_number
from panewise.runtime.checkpoint import Checkpoint, PipelinePlan
from panewise.runtime.control import ENTRY_PATTERN
from panewise.runtime.lease import Fence
from panewise.runtime.spark.dataframes import BoundedTransfer, shard_messages, unpack_results
from panewise.runtime.spark.files.file_stream import FileStream
from panewise.runtime.spark.files.source import file_messages
from panewise.runtime.spark.metrics import COUNTED_COLUMNS, ProgressListener
from panewise.runtime.spark.outbox import Outbox
from panewise.runtime.spark.run_context import Channel, RunContext
from panewise.runtime.spark.session import is_classic
from panewise.runtime.spark.shard import OUTPUT_SCHEMA, ShardProcessor
from panewise.runtime.spark.sinks import BatchResults, Sink
from panewise.runtime.spark.sources import missing_files
from panewise.runtime.spark.state_files import BatchCommands, FileStateStage, first_missing_state, last_batch
from panewise.runtime.spark.transfer.layout import StreamTransfer
from panewise.runtime.spark.transfer.slice import MESSAGE_SCHEMA, SlicingStage
from panewise.runtime.spark.types import arrow_schema, spark_schema
from panewise.runtime.spark_log import check_log

log = logging.getLogger("panewise.pipeline")

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ChannelSinks: TypeAlias = tuple[tuple[Sink, ...], ...]
StreamInput: TypeAlias = DataFrame | FileStream


@dataclass(frozen=True, eq=False)
class PipelineSettings:
    """What all runs of a pipeline have in common."""

    session: SparkSession
    checkpoint: Checkpoint
    plan: PipelinePlan
    inputs: Mapping[str, StreamInput]
    trigger: Mapping[str, Any]
    skew: int | None
    name: str

    @property
    def bounded(self) -> bool:
        """Whether the run ends once it has read all input."""
        return "availableNow" in self.trigger or "once" in self.trigger

    @property
    def columnar(self) -> list[str]:
        """The streams whose files workers read."""
        return [name for name, given in self.inputs.items() if isinstance(given, FileStream)]

    def max_skew(self, transfer: StreamTransfer) -> int | None:
        return self.skew if transfer.schema.domain is Domain.TIMESTAMP else None


class Run(ABC):
    """A Spark query from the sources to the sinks."""

    def __init__(
        self, setting: PipelineSettings, context: RunContext, sinks: ChannelSinks, listener: ProgressListener
    ) -> None:
        self.setting, self.context, self.sinks, self.listener = setting, context, sinks, listener
        self.fence = setting.checkpoint.lease.fence
        self.fence.check()
        settings = {
            "spark.sql.shuffle.partitions": str(setting.plan.shards),
            "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
            # A batch always has the same shape; planning it again after each stage costs a tenth of it.
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }
        setting.checkpoint.clear_drafts()
        check_log(setting.checkpoint.spark)
        with temporary_settings(setting.session, settings):
            writer = self._writer().outputMode("append").queryName(setting.name)
            writer = writer.option("checkpointLocation", str(setting.checkpoint.spark))
            self.query = (writer.trigger(**setting.trigger) if setting.trigger else writer).start()

    @property
    def busy(self) -> bool:
        """Whether a batch is running."""
        return bool(self.query.isActive and self.query.status.get("isTriggerActive"))

    def ends_within(self, patience: float) -> bool:
        """Whether the run ends by itself within `patience` seconds."""
        query: Any = self.query
        # Seconds need not be whole, although the signature requires it.
        return bool(query.awaitTermination(patience))

    @property
    def sources(self) -> dict[str, DataFrame]:
        """The sources that Spark reads, in its order."""
        return {transfer.stream: self._source(transfer) for transfer in self.context.layout.transfers}

    def _source(self, transfer: StreamTransfer) -> DataFrame:
        """What Spark reads of a stream: its rows, or the messages that workers make of its files."""
        given = self.setting.inputs[transfer.stream]
        return self._file_messages(given, transfer) if isinstance(given, FileStream) else given

    def _messages(self, transfer: StreamTransfer) -> DataFrame:
        """The messages from the tasks that read a stream to the shards."""
        given = self.setting.inputs[transfer.stream]
        if isinstance(given, FileStream):
            return self._file_messages(given, transfer)
        return shard_messages(
            given, self.context.layout, transfer, self.setting.plan.labels, self.setting.max_skew(transfer)
        )

    def _file_messages(self, files: FileStream, transfer: StreamTransfer) -> DataFrame:
        setting, stage = self.setting, SlicingStage(self.context.layout, transfer, self.setting.plan.labels)
        return file_messages(setting.session, files, stage, str(setting.checkpoint.folder), setting.max_skew(transfer))

    def _delivery(self) -> Delivery:
        return Delivery(self.context.channels, self.sinks, str(self.setting.checkpoint.folder), self.fence)

    @abstractmethod
    def _writer(self) -> DataStreamWriter:
        """The writer of the Spark query to be started."""

    @abstractmethod
    def wait_for_commands(self) -> None:
        """Wait until the shards have applied all commands, with or without rows."""


class StateStoreRun(Run):
    """Rows are cut into panes in Python; shards are a stateful operator of Spark."""

    def _writer(self) -> DataStreamWriter:
        everything = self._commands()
        for transfer in self.context.layout.transfers:
            everything = everything.union(self._messages(transfer))
        output = everything.groupBy("shard").transformWithStateInPandas(
            ShardProcessor(self.context), outputStructType=OUTPUT_SCHEMA, outputMode="Append", timeMode="None"
        )
        return output.observe("panewise", *_total_columns()).writeStream.foreachBatch(self._delivery())

    @property
    def sources(self) -> dict[str, DataFrame]:
        return {"#commands": self._control_log(), **super().sources}

    def _control_log(self) -> DataFrame:
        """The control log as a stream."""
        files = self.setting.session.readStream.format("text").options(wholetext="true", pathGlobFilter=ENTRY_PATTERN)
        return files.load(str(self.setting.checkpoint.control.commands))

    def _commands(self) -> DataFrame:
        """The control log as a stream, copied to every shard."""
        rows = self._control_log()
        every = F.explode(F.array(*(F.lit(label).cast("int") for label in self.setting.plan.labels)))
        place, payload = F.lit(-1).cast("bigint"), F.col("value").cast("binary")
        return rows.select(every.alias("shard"), place.alias("place"), payload.alias("payload"))

    def wait_for_commands(self) -> None:
        if self.setting.bounded:
            self.query.awaitTermination()
        else:
            self.query.processAllAvailable()


class FileStateRun(Run):
    """A batch is a bounded job: Spark aggregates panes, Python workers read and write the state of shards."""

    def _writer(self) -> DataStreamWriter:
        if not is_classic(self.setting.session):
            raise BindProblem("state='files' needs a classic session: it works in the driver", fix="use 'rocksdb'")
        self._check()
        shutil.rmtree(self.setting.checkpoint.outbox, ignore_errors=True)
        self._schemas = tuple(arrow_schema(self.setting.session, c.schema) for c in self.context.channels)
        #: Every shard has applied the commands up to this one.
        self.applied = 0
        first, *others = self.context.layout.transfers
        given = self.setting.inputs[first.stream]
        if not others and isinstance(given, DataFrame):
            slicing = BoundedTransfer(self.context.layout, first, self.setting.plan.labels)
            rows = slicing.rows(given, self.setting.max_skew(first))
            return rows.writeStream.foreachBatch(lambda some, batch: self._answer_batch(slicing.messages(some), batch))
        everything = reduce(DataFrame.union, map(self._messages, self.context.layout.transfers))
        return everything.writeStream.foreachBatch(self._answer_batch)

    def _check(self) -> None:
        """Refuse to continue if state is missing: a shard without state would begin anew."""
        checkpoint = self.setting.checkpoint
        missing = first_missing_state(checkpoint.state, self.setting.plan.labels)
        if missing is not None and checkpoint.begun_file.exists():
            raise StateProblem(
                f"the state in '{missing}' is missing",
                fix="restore the checkpoint from a copy, or start with an empty one",
            )

    def _answer_batch(self, sent: DataFrame, batch: int) -> None:
        last = self._finishing_batch()
        if last is not None and batch >= last:
            raise StateProblem("rows came after the pipeline was finished", fix="start one with an empty checkpoint")
        self._run_batch(sent, batch)

    def _run_batch(self, sent: DataFrame | None, batch: int) -> None:
        self.fence.check()
        history = self.setting.checkpoint.control.history()
        upto = BatchCommands(self.setting.checkpoint.batch_commands).last_command(
            batch, max((n for n, _ in history), default=0)
        )
        log = [entry for entry in history if self.applied < entry[0] <= upto]
        entries = [json.dumps({"number": number, "commands": commands}).encode() for number, commands in log]
        rows = [(label, -1, entry) for label in self.setting.plan.labels for entry in entries]
        everything = sent
        if everything is None or rows:
            # In the session of the batch, whose settings are those of the run.
            session = self.setting.session if sent is None else sent.sparkSession
            commands = session.createDataFrame(rows, MESSAGE_SCHEMA)
            everything = commands if sent is None else commands.union(sent)
        shards = everything.repartition(self.setting.plan.shards, "shard").sortWithinPartitions("shard", "place")
        outbox = Outbox(str(self.setting.checkpoint.outbox / f"{batch}-{uuid.uuid4().hex}"), self._schemas)
        work = FileStateStage(self.context, str(self.setting.checkpoint.state), batch, self.fence, outbox)
        try:
            status = [row.asDict() for row in shards.mapInArrow(work, OUTPUT_SCHEMA).collect()]
            self._delivery().deliver_files(outbox, batch, self.setting.session)
        finally:
            outbox.remove()
        self.applied = max([self.applied, *(number for number, _ in log)])
        if first_missing_state(self.setting.checkpoint.state, self.setting.plan.labels) is None:
            self.setting.checkpoint.begun_file.touch()
        if status:
            marks = [row["mark"] for row in status if row["mark"] is not None]
            totals = {name: sum(row[name] for row in status) for name in COUNTED_COLUMNS}
            self.listener.record_batch(batch, totals | {"mark": min(marks, default=None)})

    def wait_for_commands(self) -> None:
        if self.setting.bounded:
            self.query.awaitTermination()
        else:
            self.query.processAllAvailable()
        history = self.setting.checkpoint.control.history()
        if history and history[-1][0] > self.applied:
            self._finish()

    def _finish(self) -> None:
        """Run the last batch, without rows. Its number is written first, so that after a crash the same batch is done
        again."""
        checkpoint, batch = self.setting.checkpoint, self._finishing_batch()
        if batch is None:
            batch = last_batch(checkpoint.state, BatchCommands(checkpoint.batch_commands)) + 1
            create_atomic(checkpoint.finishing_file, str(batch).encode())
        self._run_batch(None, batch)

    def _finishing_batch(self) -> int | None:
        path = self.setting.checkpoint.finishing_file
        return read_number(path) if path.exists() else None


@dataclass(frozen=True)
class Delivery:
    """The function of `foreachBatch` of the shards: results of a batch to the sinks of their channels."""

    channels: tuple[Channel, ...]
    sinks: ChannelSinks
    checkpoint: str
    fence: Fence

    def __call__(self, output: DataFrame, batch: int) -> None:
        self._check()
        if self._reads_once:
            self._write_channels(output, batch, [0])
        else:
            self._write_cached(output, batch)

    def deliver_files(self, outbox: Outbox, batch: int, session: SparkSession) -> None:
        """Write the results that shards have put into an outbox."""
        self._check()
        for number, channel in enumerate(self.channels):
            if files := outbox.files(number):
                read = partial(_read_files, session, files, channel.schema)
                self._write_channel(number, BatchResults(channel.schema.names, read, files), batch)

    def _write_cached(self, output: DataFrame, batch: int) -> None:
        """Write results that are read several times, and so cached."""
        kept = output.persist()
        try:
            filled = F.collect_set(F.when(F.length("payload") > 0, F.col("channel"))).alias("filled")
            (row,) = kept.agg(filled).collect()
            self._write_channels(kept, batch, sorted(row["filled"]))
        finally:
            kept.unpersist()

    def _check(self) -> None:
        """Refuse a batch of another owner, or one from which Spark has left out a missing file."""
        self.fence.check()
        checkpoint = Checkpoint(self.checkpoint)
        for lost in missing_files(checkpoint.spark):
            if not checkpoint.is_known_unreadable(lost):
                raise SourceProblem(f"the file {lost} has vanished", fix="put it back and start again")
            log.warning("the file %s could not be read and has been removed: going on without its rows", lost)

    @property
    def _reads_once(self) -> bool:
        """Whether results are read only once."""
        return len(self.channels) == 1 and sum(sink.read_count for sink in self.sinks[0]) == 1

    def _write_channels(self, output: DataFrame, batch: int, channels: Sequence[int]) -> None:
        for number in channels:
            results = unpack_results(output, number, self.channels[number].schema)
            self._write_channel(number, BatchResults.of(results), batch)

    def _write_channel(self, number: int, results: BatchResults, batch: int) -> None:
        for sink in self.sinks[number]:
            self.fence.check()
            sink.write(results, batch)


def _read_files(session: SparkSession, files: Sequence[Path], schema: pa.Schema) -> DataFrame:
    return session.read.schema(spark_schema(schema)).parquet(*map(str, files))


def _total_columns() -> list[Column]:
    """What all shards together report of a batch."""
    sums = [F.sum(name).alias(name) for name in COUNTED_COLUMNS]
    return [*sums, F.min("mark").alias("mark")]


@contextmanager
def temporary_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session while a query is started, which keeps them; afterwards the user's settings hold
    again."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, old)
