"""What a running pipeline tells of itself, batch by batch: heard from Spark, kept as JSON lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Metrics:
    """The state of a pipeline after its last batch. Rows are counted over its whole life: in = used + late + rejected.

    `late` rows were too late for every window that wanted them, `partly_late` ones, among the used, for some.
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
    #: The last batch whose rows and whose results have been counted.
    batches: dict[str, int] = field(default_factory=dict)


class Listener(StreamingQueryListener):
    """Hears the progress of one Spark query."""

    def __init__(self, path: Path, timed: bool) -> None:
        self.path, self.timed = path, timed
        self.last = _last(path)
        self.query: str | None = None
        self.ended = threading.Event()
        self._lock = threading.Lock()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to count yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """What was counted stays; nothing more will be heard."""
        if str(event.id) == self.query:
            self.ended.set()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if str(event.progress.id) == self.query:
            self.hear(event.progress)

    def hear(self, progress: Any) -> None:
        """Count a batch, once."""
        batch, at, phases = int(progress.batchId), progress.timestamp, progress.durationMs
        observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
        with self._lock:
            if (rows := [row for name, row in observed.items() if name != "panewise"]) and self._fresh("rows", batch):
                self.last = replace(self._read(rows, phases), at=at)
                self._write()
        if "panewise" in observed:
            self.answered(batch, observed["panewise"], phases)

    def answered(self, batch: int, said: Mapping[str, Any], phases: Mapping[str, int] | None = None) -> None:
        """Count what the shards said in a batch, once."""
        with self._lock:
            if self._fresh("shards", batch):
                self.last = self._answered(batch, said, dict(phases or self.last.milliseconds))
                self._write()

    def _fresh(self, what: str, batch: int) -> bool:
        if batch <= self.last.batches.get(what, -1):
            return False
        self.last = replace(self.last, batches=self.last.batches | {what: batch})
        return True

    def _write(self) -> None:
        with open(self.path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(self.last)) + "\n")

    def _read(self, streams: Sequence[Mapping[str, Any]], phases: Mapping[str, int]) -> Metrics:
        rows, rejected = (sum(row[name] for row in streams) for name in ("rows_in", "rejected"))
        spent = max(phases.get("triggerExecution", 0), 1)
        return self._balanced(
            rows_in=self.last.rows_in + rows,
            rejected=self.last.rejected + rejected,
            batch_rows_in=rows,
            milliseconds=dict(phases),
            rows_per_second=round(1000 * rows / spent, 1),
        )

    def _answered(self, batch: int, said: Mapping[str, Any], phases: dict[str, int]) -> Metrics:
        return self._balanced(
            batch=batch,
            watermark=self._shown(said["mark"]),
            lag_seconds=self._lag(said["mark"]),
            late=said["late"] or 0,
            partly_late=said["partly_late"] or 0,
            rows_out=self.last.rows_out + (said["rows"] or 0),
            state_bytes=said["state_bytes"] or 0,
            batch_rows_out=said["rows"] or 0,
            milliseconds=phases,
        )

    def _balanced(self, **changes: Any) -> Metrics:
        changed = replace(self.last, **changes)
        return replace(changed, used=changed.rows_in - changed.late - changed.rejected)

    def _shown(self, mark: int | None) -> str | int | None:
        if mark is None or not self.timed:
            return mark
        return (_EPOCH + timedelta(microseconds=mark)).isoformat()

    def _lag(self, mark: int | None) -> float | None:
        if mark is None or not self.timed:
            return None
        return round(datetime.now(UTC).timestamp() - mark / 1e6, 3)


def _last(path: Path) -> Metrics:
    """What was counted before a restart; a line that was cut off does not count."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return Metrics()
    for line in reversed(lines):
        try:
            return Metrics(**json.loads(line))
        except (ValueError, TypeError):
            continue
    return Metrics()
