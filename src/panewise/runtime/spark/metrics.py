"""The metrics of a running pipeline, batch by batch: received from Spark, kept as JSON lines."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from panewise.core.errors import StateProblem
from panewise.runtime.checkpoint import Checkpoint

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Metrics:
    """The state of a pipeline after its last batch. Rows are counted since its beginning: in = used + late + rejected.

    `late` rows were too late for every window they belong to; `partly_late` rows, which count as used, for some.
    `lag_seconds` is how far the watermark is behind the wall clock; `milliseconds` is the time of each phase of the
    last batch.
    """

    batch: int = -1
    at: str = ""
    watermark: str | int | None = None
    lag_seconds: float | None = None
    rows_in: int = 0
    used: int = 0
    late: int = 0
    partly_late: int = 0
    rejected: int = 0
    rows_out: int = 0
    state_bytes: int = 0
    batch_rows_in: int = 0
    batch_rows_out: int = 0
    rows_per_second: float = 0.0
    milliseconds: dict[str, int] = field(default_factory=dict)
    #: Queries that are suspended, or whose sinks are, and why.
    suspended: dict[str, str] = field(default_factory=dict)
    #: For each query, the rows that belong to it and could be used at no instant.
    late_by_query: dict[str, int] = field(default_factory=dict)


#: What shards report of a batch, summed over all of them.
COUNTED_COLUMNS = (
    "rows",
    "rows_in",
    "batch_rows_in",
    "rejected",
    "late",
    "partly_late",
    "rows_out",
    "state_bytes",
)


class ProgressListener(StreamingQueryListener):
    """Receives the progress of one Spark query. Totals come from the status rows of shards."""

    def __init__(self, checkpoint: Checkpoint, timed: bool) -> None:
        self.checkpoint, self.timed = checkpoint, timed
        self.last = _last_metrics(checkpoint.metrics)
        self.query: str | None = None
        self.ended = threading.Event()
        #: The last batch of which shards reported; files may report another one.
        self._last_batch = -1
        self._lock = threading.Lock()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to count yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The counts stay; no further progress comes."""
        if str(event.id) == self.query:
            self.ended.set()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if str(event.progress.id) == self.query:
            self.record_progress(event.progress)

    def record_progress(self, progress: Any) -> None:
        """Record what Spark reports of a batch: the time of its phases, and the status of shards where Spark observes
        it."""
        batch, phases = int(progress.batchId), dict(progress.durationMs)
        observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
        if "panewise" in observed:
            self.record_batch(batch, observed["panewise"])
        with self._lock:
            if batch == self._last_batch and phases != self.last.milliseconds:
                speed = round(1000 * self.last.batch_rows_in / max(phases.get("triggerExecution", 0), 1), 1)
                self._append(replace(self.last, at=progress.timestamp, milliseconds=phases, rows_per_second=speed))

    def record_batch(self, batch: int, totals: Mapping[str, Any]) -> None:
        """Record what the shards reported in a batch; nothing where it had no messages for them."""
        with self._lock:
            # Spark leaves out what is NULL.
            if totals.get("rows_in") is not None and batch > self._last_batch:
                self._last_batch = batch
                self._append(self._batch_metrics(batch, totals))

    def record_suspensions(self, suspended: Mapping[str, str]) -> None:
        """Record which queries are suspended now."""
        with self._lock:
            if dict(suspended) != self.last.suspended:
                self._append(replace(self.last, suspended=dict(suspended)))

    def _append(self, metrics: Metrics) -> None:
        self.last = metrics
        # A process that has lost the checkpoint must not write to it.
        with suppress(StateProblem):
            self.checkpoint.lease.fence.check()
            with open(self.checkpoint.metrics, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(metrics)) + "\n")

    def _batch_metrics(self, batch: int, totals: Mapping[str, Any]) -> Metrics:
        counts = {name: totals[name] for name in COUNTED_COLUMNS if name != "rows"}
        return replace(
            self.last,
            **counts,
            batch=batch,
            at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            used=totals["rows_in"] - totals["late"] - totals["rejected"],
            batch_rows_out=totals["rows"],
            watermark=self._watermark(totals.get("mark")),
            lag_seconds=self._lag(totals.get("mark")),
            late_by_query=read_late_by_query(self.checkpoint.lateness),
        )

    def _watermark(self, mark: int | None) -> str | int | None:
        if mark is None or not self.timed:
            return mark
        return (_EPOCH + timedelta(microseconds=mark)).isoformat()

    def _lag(self, mark: int | None) -> float | None:
        if mark is None or not self.timed:
            return None
        return round(datetime.now(UTC).timestamp() - mark / 1e6, 3)


def read_late_by_query(folder: Path) -> dict[str, int]:
    """The late rows by query, summed over all shards; a shard file that cannot be read counts as empty."""
    counts: Counter[str] = Counter()
    for path in folder.glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            counts.update(json.loads(path.read_bytes()))
    return dict(counts)


def _last_metrics(path: Path) -> Metrics:
    """The metrics before a restart; an incomplete line is ignored."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return Metrics()
    for line in reversed(lines):
        with suppress(ValueError, TypeError):
            return Metrics(**json.loads(line))
    return Metrics()
