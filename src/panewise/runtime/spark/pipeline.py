"""`pw.spark.stream`: standing queries over streaming DataFrames, which join and leave while the pipeline runs."""

from __future__ import annotations

import logging
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from panewise.engine import Pool
from panewise.engine.pool import Standing
from panewise.engine.snapshot import fingerprint
from panewise.errors import BindProblem, PanewiseError, SchemaProblem, StateProblem, did_you_mean
from panewise.runtime.checkpoint import Checkpoint, Plan
from panewise.runtime.control import Registered
from panewise.runtime.spark.course import Channel, Course, result_schemas, shared_schema
from panewise.runtime.spark.failures import explained
from panewise.runtime.spark.frames import checked
from panewise.runtime.spark.metrics import Listener, Metrics
from panewise.runtime.spark.run import FiledRun, Run, Setting, StoredRun
from panewise.runtime.spark.sinks import Delta, Files, Sink, Target, batch_column, sinks_of
from panewise.runtime.spark.types import spark_schema
from panewise.time import Domain, Duration

log = logging.getLogger("panewise.pipeline")

#: All queries that have no sink of their own.
OTHERS = "*"
_POLL = 0.25


def stream(
    pool: Pool,
    streams: Mapping[str, DataFrame],
    *,
    checkpoint: str | Path,
    sinks: Target | Mapping[str, Target] = "memory:",
    trigger: Mapping[str, Any] | None = None,
    shards: int | None = None,
    max_skew: str | None = "1 hour",
    state: str = "rocksdb",
    base: str | Path = ".",
) -> Pipeline:
    """Start a pipeline that answers the queries of a pool over streaming DataFrames, and return it running.

    `checkpoint` is a folder that the driver and all workers see; started again with the same one, the pipeline goes
    on where it stopped. `sinks` maps queries to where their results go, and `"*"` to where those of all others go, by
    family and with a column `query`; a single sink is for all of them. `trigger` is Spark's. `shards` is fixed when a
    checkpoint is new; it defaults to `spark.sql.shuffle.partitions`. Times further than `max_skew` after the wall
    clock are rejected. `state` says where shards keep theirs: in Spark's own state store (`"rocksdb"`), or in files of
    the checkpoint (`"files"`), which serves one stream, lets Spark itself cut rows into panes and takes several times
    the rows per second.
    """
    named = dict(sinks) if isinstance(sinks, Mapping) else {OTHERS: sinks}
    for name in named:
        if name != OTHERS and name not in pool.queries:
            raise BindProblem(f"there is a sink for {name!r}, but no such query", fix=did_you_mean(name, pool.queries))
    skew = None if max_skew is None else Duration.parse(max_skew).ticks(Domain.TIMESTAMP)
    frames = {name: _streaming(name, streams, pool) for name in pool.streams if name in streams}
    if not frames:
        raise SchemaProblem("there is no DataFrame for any stream", fix=f"give one for {', '.join(pool.streams)}")
    pipeline = Pipeline(
        pool, frames, Checkpoint(checkpoint), named, dict(trigger or {}), shards, skew, Path(base), state
    )
    pipeline.start()
    return pipeline


def _streaming(name: str, streams: Mapping[str, DataFrame], pool: Pool) -> DataFrame:
    frame = checked(name, streams[name], pool.streams[name])
    if not frame.isStreaming:
        raise SchemaProblem(f"the DataFrame of stream {name!r} is bounded", fix="use pw.spark.batch, or readStream")
    return frame


class Pipeline:
    """A running pipeline. Leaving it as a context manager stops it."""

    def __init__(
        self,
        pool: Pool,
        frames: Mapping[str, DataFrame],
        checkpoint: Checkpoint,
        sinks: Mapping[str, Target],
        trigger: Mapping[str, Any],
        shards: int | None,
        skew: int | None,
        base: Path,
        state: str,
    ) -> None:
        self._session: SparkSession = next(iter(frames.values())).sparkSession
        self._checkpoint, self._targets, self._base = checkpoint, sinks, base
        self._scripted = {name: standing.text for name, standing in pool.queries.items()}
        plan = self._agreed(pool, shards, state)
        self._name = f"panewise-{plan.identity[:8]}"
        self._setting = Setting(self._session, checkpoint, plan, frames, trigger, skew, self._name)
        self._pool = plan.streams()
        timed = all(schema.domain is Domain.TIMESTAMP for schema in pool.streams.values())
        self._listener = Listener(checkpoint.metrics, timed)
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._run: Run | None = None
        self._listening = False
        self._course: Course | None = None
        self._problem: PanewiseError | None = None

    # ---- what can be asked -------------------------------------------------------------------------------------

    @property
    def query(self) -> StreamingQuery:
        """Spark's own query. Another one after a query has joined that needed other columns or panes."""
        return self._running.query

    @property
    def _running(self) -> Run:
        assert self._run is not None
        return self._run

    @property
    def metrics(self) -> Metrics:
        """What has been counted up to the last batch."""
        return self._listener.last

    def list(self) -> dict[str, str]:
        """The queries that stand, with their texts."""
        with self._lock:
            return {name: standing.text for name, standing in self._pool.queries.items()}

    def explain(self) -> str:
        """How the queries share panes, and which rows are sliced before they meet."""
        with self._lock:
            assert self._course is not None
            lanes = self._course.layout.lanes
            reasons = [
                f"rows travel as they are: {lane.reason}" if lane.reason else "rows are sliced" for lane in lanes
            ]
            numbered = [f"lane {number}: {reason}" for number, reason in enumerate(reasons, start=1)]
            return "\n".join([self._pool.explain(), *numbered])

    def results(self, name: str) -> DataFrame:
        """The results of a query whose sink is `memory:`, also of one that has left."""
        texts = [c["text"] for _, some in self._checkpoint.control.history() for c in some if _registers(c, name)]
        if not texts:
            raise BindProblem(f"there is no query {name!r}", fix=did_you_mean(name, self.list() or ["register"]))
        own = _schema_of(self._pool, self._pool.understood(name, texts[-1]))
        schema = own if name in self._targets else shared_schema(own)
        folder = self._checkpoint.results(name if name in self._targets else _folder(Channel(None, schema)))
        if not any(folder.glob("*/*.parquet")):
            return self._session.createDataFrame([], spark_schema(own))
        found = self._session.read.parquet(str(folder)).drop(batch_column(schema.names))
        if name in self._targets:
            return found
        mine = found.where(F.col("query") == name).drop("query")
        return mine.toDF(*own.names)

    # ---- queries come and go -----------------------------------------------------------------------------------

    def register(self, name: str, text: str, *, start: str = "backfill") -> None:
        """Let a query join. It sees the panes that are kept (`backfill`), or only what comes from `now` on."""
        self._do({"op": "register", "name": name, "text": text, "start": start})

    def revoke(self, name: str) -> None:
        """Let a query go."""
        self._do({"op": "revoke", "name": name})

    def finish(self, until: int | str | None = None) -> None:
        """Nothing more will come: wait until all rows have been read, answer everything, and stop."""
        if self._setting.bounded:
            self.await_end()
        else:
            self._guarded(self.query.processAllAvailable)
        with self._lock:
            self._do({"op": "finish"} | ({} if until is None else {"until": until}))
            if not self.query.isActive:
                self._launch()
        self._guarded(self._running.heard)
        self.stop()

    def _do(self, command: dict[str, Any]) -> None:
        """Follow a command: refuse it, or let the shards follow it too."""
        with self._lock:
            if self._checkpoint.control.finished:
                raise StateProblem("the pipeline is finished", fix="start another one with an empty checkpoint")
            relaunch = self._understood(command)
            if relaunch:
                self._halt()
            self._checkpoint.control.command([command])
            log.info("%s: %s %s", self._name, command["op"], command.get("name", ""))
            if relaunch:
                log.info("%s: starting again, since %s needs other columns or panes", self._name, command["name"])
                self._launch()

    def _understood(self, command: Mapping[str, Any]) -> bool:
        """Follow a command in this process; whether what crosses from Spark must change for it."""
        match command["op"]:
            case "register":
                if command["start"] not in ("backfill", "now"):
                    raise BindProblem(f"start {command['start']!r} is unknown", fix="use 'backfill' or 'now'")
                since = 0 if command["start"] == "now" else None
                standing = self._pool.understood(command["name"], command["text"], since)
                if standing.plan.source.stream not in self._setting.frames:
                    stream = standing.plan.source.stream
                    raise SchemaProblem(f"there is no DataFrame for stream {stream!r}", fix="restart with one")
                self._pool.adopt(standing)
                return self._course is not None and not self._prepared(command["name"])
            case "revoke":
                self._pool.revoke(command["name"])
        return False

    def _prepared(self, name: str) -> bool:
        """Whether slicers and sinks of this run can serve a query."""
        assert self._course is not None
        if not self._course.layout.covers(self._pool.queries[name].plan):
            return False
        schema = shared_schema(_schema_of(self._pool, self._pool.queries[name]))
        return self._course.channel_of(name, schema) is not None or OTHERS not in self._targets

    # ---- running -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring the control log up to the script, and start."""
        with self._lock:
            standing = self._checkpoint.control.standing()
            commands = list(self._changes(standing))
            if commands:
                self._checkpoint.control.command(commands)
            for name, query in self._checkpoint.control.standing().items():
                self._pool.register(name, query.text)
            self._launch()
        threading.Thread(target=self._watch, name=self._name, daemon=True).start()

    def _changes(self, standing: Mapping[str, Registered]) -> Iterator[dict[str, Any]]:
        """What the script changed since the checkpoint was written; queries that joined otherwise stay."""
        for name, query in standing.items():
            if query.scripted and self._scripted.get(name) != query.text:
                log.warning("%s: the state of %r is dropped: the script has changed", self._name, name)
                yield {"op": "revoke", "name": name}
        for name, text in self._scripted.items():
            before = standing.get(name)
            if before is None or (before.scripted and before.text != text):
                if standing:
                    log.info("%s: %r joins: the script has changed", self._name, name)
                yield {"op": "register", "name": name, "text": text, "start": "backfill", "scripted": True}

    def _agreed(self, pool: Pool, shards: int | None, state: str) -> Plan:
        if state not in ("rocksdb", "files"):
            raise BindProblem(f"state {state!r} is unknown", fix="use 'rocksdb' or 'files'")
        for name, text in self._scripted.items():
            if not text:
                raise StateProblem(f"query {name!r} has no text", fix="register it as CQL text")
        plan = self._checkpoint.plan()
        if plan is None:
            count = shards or int(self._session.conf.get("spark.sql.shuffle.partitions") or 1)
            return self._checkpoint.create(pool, labels_of(self._session, count), state)
        self._checkpoint.agreed(plan, pool, shards, state)
        return plan

    def _launch(self) -> None:
        course = self._course = Course.of(uuid.uuid4().hex, self._pool, self._setting.plan.shards, self._channels())
        kind = StoredRun if self._setting.plan.state == "rocksdb" else FiledRun
        self._listener.ended.clear()
        self._run = self._guarded(lambda: kind(self._setting, course, self._sinks(course), self._listener))
        self._listener.query = str(self.query.id)
        self._listen()

    def _listen(self) -> None:
        if not self._listening:
            self._listening = True
            self._session.streams.addListener(self._listener)

    def _unlisten(self) -> None:
        """Spark would go on speaking to a listener that is gone, and through Connect wait for it for ever."""
        if self._listening:
            self._listening = False
            self._listener.ended.wait(1.0)
            self._session.streams.removeListener(self._listener)

    def _channels(self) -> Sequence[Channel]:
        schemas = result_schemas(self._pool)
        own = [Channel(name, schema) for name, schema in schemas.items() if name in self._targets]
        shared: list[Channel] = []
        if OTHERS in self._targets:
            for name, schema in schemas.items():
                channel = Channel(None, shared_schema(schema))
                if name not in self._targets and channel not in shared:
                    shared.append(channel)
        return own + shared

    def _sinks(self, course: Course) -> tuple[tuple[Sink, ...], ...]:
        writer, found = self._setting.plan.identity, []
        for channel in course.channels:
            name = channel.query or _folder(channel)
            target = self._targets[channel.query or OTHERS]
            memory = self._checkpoint.results(name)
            found.append(sinks_of(name, target, self._base, writer, memory, shared=channel.query is None))
        paths = [sink.path for sinks in found for sink in sinks if isinstance(sink, Files | Delta)]
        for path in {path for path in paths if paths.count(path) > 1}:
            raise BindProblem(f"several queries would write to '{path}'", fix="give each a folder of its own")
        return tuple(found)

    def _watch(self) -> None:
        """Follow what other processes ask for."""
        while not self._stopped.wait(_POLL):
            try:
                for request in self._checkpoint.control.pending():
                    self._follow(request)
            except Exception as problem:
                log.exception("%s: the control log cannot be followed", self._name)
                self._problem = problem if isinstance(problem, PanewiseError) else StateProblem(str(problem))
                return

    def _follow(self, request: dict[str, Any]) -> None:
        command = {key: value for key, value in request.items() if key != "number"}
        with self._lock:
            standing = self._pool.queries.get(str(command.get("name")))
            if command["op"] == "register" and standing is not None and standing.text == command["text"]:
                # Asked for twice, by whoever was not sure that it was heard: it stands already.
                self._checkpoint.control.command([command])
                return
            try:
                self._do(command)
            except PanewiseError as problem:
                log.warning("%s: %s %s is refused: %s", self._name, command["op"], command.get("name"), problem)
                self._checkpoint.control.refuse(command["id"], str(problem))

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the pipeline ends by itself or is stopped; SIGINT and SIGTERM stop it after the running batch.

        False when it still runs after so many seconds. What made it fail is raised.
        """
        with _signals(self._gently):
            waited = 0.0
            while timeout is None or waited < timeout:
                step = _POLL if timeout is None else min(_POLL, timeout - waited)
                if self._ended(step):
                    return True
                waited += step
        return False

    def _ended(self, patience: float) -> bool:
        current = self._running
        over = self._guarded(lambda: current.over(patience))
        if over:
            self._catch_up()
            self._unlisten()
        if self._problem is not None:
            raise self._problem
        with self._lock:
            return bool(over) and self._running is current

    def _catch_up(self) -> None:
        """Hear of the last batches of queries that have ended before their listener was told."""
        for progress in self.query.recentProgress:
            self._listener.hear(progress)

    def _gently(self, *_: object) -> None:
        log.info("%s: stopping after the running batch", self._name)
        threading.Thread(target=self.stop, daemon=True).start()

    def stop(self, patience: float = 10.0) -> None:
        """Let the running batch end, and stop; the checkpoint remembers everything."""
        self._stopped.set()
        with self._lock:
            waited = 0.0
            while self._running.busy and waited < patience:
                time.sleep(_POLL)
                waited += _POLL
            self._halt()
            self._catch_up()
            self._unlisten()

    def _halt(self) -> None:
        if self._run is not None and self.query.isActive:
            self._guarded(self.query.stop)

    def _guarded(self, action: Any) -> Any:
        """Do something in Spark; what goes wrong is said in one sentence."""
        try:
            return action()
        except PySparkException as problem:
            raise explained(problem) from problem

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


def _folder(channel: Channel) -> str:
    """A name for queries with the same columns, the same in every run."""
    return "together-" + fingerprint({"columns": str(channel.schema)})[:8]


def _registers(command: Mapping[str, Any], name: str) -> bool:
    return bool(command["op"] == "register" and command["name"] == name)


def _schema_of(pool: Pool, standing: Standing) -> pa.Schema:
    """The columns of a query's results."""
    alone = Pool(pool.streams, pool.boundary, pool.policy, pool.host)
    alone.adopt(standing)
    return result_schemas(alone)[standing.name]


def labels_of(session: SparkSession, shards: int) -> tuple[int, ...]:
    """Numbers for shards that Spark's hash sends to as many different partitions."""
    numbers = session.range(64 * shards).select(F.col("id").cast("int").alias("label"))
    placed = numbers.select("label", F.expr(f"PMOD(HASH(label), {shards})").alias("place"))
    found: dict[int, int] = {}
    for row in placed.collect():
        found.setdefault(row["place"], row["label"])
    if len(found) < shards:
        raise StateProblem(f"{shards} shards cannot be spread", fix="use fewer")
    return tuple(found[place] for place in range(shards))


@contextmanager
def _signals(handler: Any) -> Iterator[None]:
    """Handle SIGINT and SIGTERM, where this thread may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
