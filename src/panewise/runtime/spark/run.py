"""One run of a pipeline as a Spark query.

`StoredRun` keeps the state of shards in Spark's state store. `FiledRun` keeps it in files: then a batch is a bounded
job, in which Spark can aggregate panes itself before anything crosses into Python.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from panewise.errors import BindProblem, SourceProblem, StateProblem
from panewise.runtime.checkpoint import Checkpoint, Plan
from panewise.runtime.control import NUMBERED
from panewise.runtime.lease import Fence
from panewise.runtime.spark.course import Channel, Course
from panewise.runtime.spark.frames import BoundedSlicing, messages, unpacked
from panewise.runtime.spark.layout import Crossing
from panewise.runtime.spark.metrics import COUNTED, Listener
from panewise.runtime.spark.shard import SAID, ShardProcessor
from panewise.runtime.spark.sinks import Sink
from panewise.runtime.spark.slicing import MESSAGES
from panewise.runtime.spark.sources import vanished
from panewise.runtime.spark.state_files import Agenda, StateFiles, first_missing, last_batch
from panewise.runtime.spark_log import check_log
from panewise.runtime.whole import create_whole, read_number
from panewise.time import Domain

log = logging.getLogger("panewise.pipeline")

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
Sinks: TypeAlias = tuple[tuple[Sink, ...], ...]


@dataclass(frozen=True, eq=False)
class Setting:
    """What all runs of a pipeline have in common."""

    session: SparkSession
    checkpoint: Checkpoint
    plan: Plan
    frames: Mapping[str, DataFrame]
    trigger: Mapping[str, Any]
    skew: int | None
    name: str

    @property
    def bounded(self) -> bool:
        """Whether the run ends once it has read what there is."""
        return "availableNow" in self.trigger or "once" in self.trigger

    def skewed(self, crossing: Crossing) -> int | None:
        return self.skew if crossing.schema.domain is Domain.TIMESTAMP else None


class Run(ABC):
    """A Spark query from the sources to the sinks."""

    def __init__(self, setting: Setting, course: Course, sinks: Sinks, listener: Listener) -> None:
        self.setting, self.course, self.sinks, self.listener = setting, course, sinks, listener
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
        with configured(setting.session, settings):
            writer = self._writer().outputMode("append").queryName(setting.name)
            writer = writer.option("checkpointLocation", str(setting.checkpoint.spark))
            self.query = (writer.trigger(**setting.trigger) if setting.trigger else writer).start()

    @property
    def busy(self) -> bool:
        """Whether a batch is running."""
        return bool(self.query.isActive and self.query.status.get("isTriggerActive"))

    def over(self, patience: float) -> bool:
        """Whether the run ends by itself within so many seconds."""
        query: Any = self.query
        # Seconds need not be whole, whatever the signature says.
        return bool(query.awaitTermination(patience))

    @property
    def sources(self) -> dict[str, DataFrame]:
        """What Spark reads, in its order."""
        return {crossing.stream: self.setting.frames[crossing.stream] for crossing in self.course.layout.crossings}

    def _delivery(self) -> Delivery:
        return Delivery(self.course.channels, self.sinks, str(self.setting.checkpoint.folder), self.fence)

    @abstractmethod
    def _writer(self) -> DataStreamWriter:
        """What is to be started."""

    @abstractmethod
    def heard(self) -> None:
        """Wait until the shards have followed all commands, with or without rows."""


class StoredRun(Run):
    """Rows are cut into panes in Python; shards are a stateful operator of Spark."""

    def _writer(self) -> DataStreamWriter:
        everything = self._commands()
        for crossing in self.course.layout.crossings:
            everything = everything.union(self._sent(crossing))
        said = everything.groupBy("shard").transformWithStateInPandas(
            ShardProcessor(self.course), outputStructType=SAID, outputMode="Append", timeMode="None"
        )
        return said.observe("panewise", *_totals()).writeStream.foreachBatch(self._delivery())

    def _sent(self, crossing: Crossing) -> DataFrame:
        frame, labels = self.setting.frames[crossing.stream], self.setting.plan.labels
        return messages(frame, self.course.layout, crossing, labels, self.setting.skewed(crossing))

    @property
    def sources(self) -> dict[str, DataFrame]:
        return {"#commands": self._log(), **super().sources}

    def _log(self) -> DataFrame:
        """The control log as a stream."""
        files = self.setting.session.readStream.format("text").options(wholetext="true", pathGlobFilter=NUMBERED)
        return files.load(str(self.setting.checkpoint.control.commands))

    def _commands(self) -> DataFrame:
        """The same, copied to every shard."""
        rows = self._log()
        every = F.explode(F.array(*(F.lit(label).cast("int") for label in self.setting.plan.labels)))
        place, payload = F.lit(-1).cast("bigint"), F.col("value").cast("binary")
        return rows.select(every.alias("shard"), place.alias("place"), payload.alias("payload"))

    def heard(self) -> None:
        if self.setting.bounded:
            self.query.awaitTermination()
        else:
            self.query.processAllAvailable()


class FiledRun(Run):
    """A batch is a bounded job: Spark aggregates panes, Python workers read and write the state of shards."""

    def _writer(self) -> DataStreamWriter:
        if "connect" in type(self.setting.session).__module__:
            raise BindProblem("state='files' needs a classic session: it works in the driver", fix="use 'rocksdb'")
        if len(self.course.layout.crossings) != 1:
            raise BindProblem("state='files' serves queries over one stream", fix="use state='rocksdb'")
        (crossing,) = self.course.layout.crossings
        self._check()
        self.slicing = BoundedSlicing(self.course.layout, crossing, self.setting.plan.labels)
        #: Commands up to this one have been followed by every shard.
        self.followed = 0
        rows = self.slicing.rows(self.setting.frames[crossing.stream], self.setting.skewed(crossing))
        return rows.writeStream.foreachBatch(self._answered)

    def _check(self) -> None:
        """Refuse to go on with less than there was: a shard without state would begin anew."""
        checkpoint = self.setting.checkpoint
        missing = first_missing(checkpoint.state, self.setting.plan.labels)
        if missing is not None and checkpoint.begun.exists():
            raise StateProblem(
                f"the state in '{missing}' is missing",
                fix="restore the checkpoint from a copy, or start with an empty one",
            )

    def _answered(self, rows: DataFrame, batch: int) -> None:
        last = self._finishing()
        if last is not None and batch >= last:
            raise StateProblem("rows came after the pipeline was finished", fix="start one with an empty checkpoint")
        self._work(self.slicing.messages(rows), batch)

    def _work(self, sent: DataFrame | None, batch: int) -> None:
        self.fence.check()
        history = self.setting.checkpoint.control.history()
        upto = Agenda(self.setting.checkpoint.agenda).last_command(batch, max((n for n, _ in history), default=0))
        log = [entry for entry in history if self.followed < entry[0] <= upto]
        entries = [json.dumps({"number": number, "commands": commands}).encode() for number, commands in log]
        told = [(label, -1, entry) for label in self.setting.plan.labels for entry in entries]
        everything = sent
        if everything is None or told:
            # In the session of the batch, whose settings are those of the run.
            session = self.setting.session if sent is None else sent.sparkSession
            commands = session.createDataFrame(told, MESSAGES)
            everything = commands if sent is None else commands.union(sent)
        shards = everything.repartition(self.setting.plan.shards, "shard").sortWithinPartitions("shard", "place")
        work = StateFiles(self.course, str(self.setting.checkpoint.state), batch, self.fence)
        totals = self._delivery().observed(shards.mapInArrow(work, SAID), batch)
        self.followed = max([self.followed, *(number for number, _ in log)])
        if first_missing(self.setting.checkpoint.state, self.setting.plan.labels) is None:
            self.setting.checkpoint.begun.touch()
        self.listener.answered(batch, totals)

    def heard(self) -> None:
        if self.setting.bounded:
            self.query.awaitTermination()
        else:
            self.query.processAllAvailable()
        history = self.setting.checkpoint.control.history()
        if history and history[-1][0] > self.followed:
            self._finish()

    def _finish(self) -> None:
        """A batch without rows. Its number is written down first: who is killed in it does the same one again."""
        checkpoint, batch = self.setting.checkpoint, self._finishing()
        if batch is None:
            batch = last_batch(checkpoint.state, Agenda(checkpoint.agenda)) + 1
            create_whole(checkpoint.finishing, str(batch).encode())
        self._work(None, batch)

    def _finishing(self) -> int | None:
        path = self.setting.checkpoint.finishing
        return read_number(path) if path.exists() else None


@dataclass(frozen=True)
class Delivery:
    """The function of `foreachBatch` of the shards: results of a batch to the sinks of their channels."""

    channels: tuple[Channel, ...]
    sinks: Sinks
    checkpoint: str
    fence: Fence

    def __call__(self, said: DataFrame, batch: int) -> None:
        self._check()
        if self._alone:
            self._written(said, batch, [0])
        else:
            self._shared(said, batch)

    def observed(self, said: DataFrame, batch: int) -> Mapping[str, Any]:
        """The same, and what all shards together tell of the batch."""
        self._check()
        if not self._alone:
            return self._shared(said, batch)
        observation = Observation("panewise")
        self._written(said.observe(observation, *_totals()), batch, [0])
        return observation.get

    def _shared(self, said: DataFrame, batch: int) -> Mapping[str, Any]:
        """Results that are read several times, and so kept; observing them would keep Spark from seeing that."""
        kept = said.persist()
        try:
            (row,) = kept.agg(
                *_totals(), F.collect_set(F.when(F.length("payload") > 0, F.col("channel"))).alias("spoken")
            ).collect()
            self._written(kept, batch, sorted(row["spoken"]))
            return row.asDict()
        finally:
            kept.unpersist()

    def _check(self) -> None:
        """Refuse a batch that is not ours to deliver, or from which Spark has left out a file that is not there."""
        self.fence.check()
        checkpoint = Checkpoint(self.checkpoint)
        for lost in vanished(checkpoint.spark):
            if not checkpoint.excused(lost):
                raise SourceProblem(f"the file {lost} has vanished", fix="put it back and start again")
            log.warning("the file %s could not be read and has been removed: going on without its rows", lost)

    @property
    def _alone(self) -> bool:
        """Whether results are read once only."""
        return len(self.channels) == 1 and sum(sink.reads for sink in self.sinks[0]) == 1

    def _written(self, said: DataFrame, batch: int, channels: Sequence[int]) -> None:
        for number in channels:
            results = unpacked(said, number, self.channels[number].schema)
            for sink in self.sinks[number]:
                self.fence.check()
                sink.write(results, batch)


def _totals() -> list[Column]:
    """What all shards together tell of a batch."""
    sums = [F.sum(name).alias(name) for name in COUNTED]
    return [*sums, F.min("mark").alias("mark")]


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session for as long as a query is started, which keeps them; the user's come back."""
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
