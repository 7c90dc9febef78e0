"""What a running pipeline tells of itself, batch by batch: heard from Spark, kept as JSON lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
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


class Listener(StreamingQueryListener):
    """Hears the progress of one Spark query."""

    def __init__(self, path: Path, timed: bool) -> None:
        self.path, self.timed = path, timed
        self.last = _last(path)
        self.query: str | None = None
        self._lock = threading.Lock()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to count yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """What was counted stays."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        if str(event.progress.id) == self.query:
            self.hear(event.progress)

    def hear(self, progress: Any) -> None:
        """Count a batch, once."""
        batch, at, phases = int(progress.batchId), progress.timestamp, progress.durationMs
        observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
        with self._lock:
            if batch <= self.last.batch or "panewise" not in observed:
                return
            self.last = self._counted(batch, at, observed, dict(phases))
            with open(self.path, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(self.last)) + "\n")

    def _counted(self, batch: int, at: str, observed: Mapping[str, Any], phases: dict[str, int]) -> Metrics:
        said = observed["panewise"]
        streams = [row for name, row in observed.items() if name.startswith("panewise ")]
        rows_in = sum(row["rows_in"] for row in streams)
        rejected = self.last.rejected + sum(row["rejected"] for row in streams)
        late, mark = said["late"] or 0, said["mark"]
        total = self.last.rows_in + rows_in
        spent = max(phases.get("triggerExecution", 0), 1)
        return replace(
            self.last,
            batch=batch,
            at=at,
            watermark=self._shown(mark),
            lag_seconds=self._lag(mark),
            rows_in=total,
            used=total - late - rejected,
            late=late,
            partly_late=said["partly_late"] or 0,
            rejected=rejected,
            rows_out=self.last.rows_out + (said["rows"] or 0),
            state_bytes=said["state_bytes"] or 0,
            batch_rows_in=rows_in,
            batch_rows_out=said["rows"] or 0,
            rows_per_second=round(1000 * rows_in / spent, 1),
            milliseconds=phases,
        )

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
