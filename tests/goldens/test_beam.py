"""Beam's trigger transcripts, as far as a window speaks once when it is final and again when late data revises it.

A transcript says by itself where the watermark stands. Our watermark is the newest item, so each mark becomes an item
of that time, a *tick*, which the query leaves out. Allowed lateness is LATE REVISE. Beam writes the window `[0, 10)`
as `[0, 9]`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw

#: A window's start and end, how often it has spoken before, and the times of the items in it.
Pane = tuple[int, int, int, tuple[int, ...]]

#: What keeps a transcript from being asked in CQL.
NOT_OURS = {
    "early_late_sessions": "fires early, by count",
    "discarding_early_fixed": "fires early, by count, and forgets what it fired",
    "garbage_collection": "fires by count and looks at Beam's own state",
    "bad_output": "tests Beam's reader of transcripts",
    "bad_expected_values": "tests Beam's reader of transcripts",
    "bad_expected_window": "tests Beam's reader of transcripts",
    "missing_output": "tests Beam's reader of transcripts",
    "missing_output_at_end": "tests Beam's reader of transcripts",
}

#: Beam's timestamp of a pane as a column of ours; OUTPUT_AT_EARLIEST_TRANSFORMED is code of a window function.
TIMESTAMPS = {"OUTPUT_AT_EARLIEST": "MIN(t)", "OUTPUT_AT_LATEST": "MAX(t)", "OUTPUT_AT_EOW": "last_tick"}


@dataclass(frozen=True)
class Transcript:
    text: str

    @property
    def name(self) -> str:
        return str(self.field("name"))

    @property
    def holds_watermark(self) -> bool:
        """Whether items arrive behind a watermark that has not closed their window: they do not move the timestamp."""
        return self.name.startswith("known_late_data")

    def field(self, key: str) -> str | None:
        found = re.search(rf"^{key}: *([^#\n]+)", self.text, re.MULTILINE)
        return found[1].strip() if found else None

    @property
    def window(self) -> str:
        size = re.fullmatch(r"(?:CustomTimestamping)?FixedWindows(?:WindowFn)?\((\d+)\)", str(self.field("window_fn")))
        if not size:
            raise ValueError(f"no window for {self.field('window_fn')}")
        return f"[RANGE {size[1]} SLIDE {size[1]}]"

    @property
    def late(self) -> str:
        patience = self.field("allowed_lateness")
        return f"LATE REVISE {patience}" if patience else ""

    @property
    def stream(self) -> pw.Stream:
        """Items and ticks in the order of the transcript."""
        rows: list[dict[str, Any]] = []
        for kind, numbers in re.findall(r"- (input|watermark): *([^#\n]+)", self.text):
            rows += [{"t": t, "tick": kind == "watermark"} for t in _numbers(numbers)]
        return pw.Stream(pa.Table.from_pylist(rows), time="t", delay=0)

    def expected(self) -> Iterator[tuple[Pane, int | None]]:
        """Every pane with its timestamp, in order."""
        spoken: Counter[tuple[int, int]] = Counter()
        for line in re.findall(r"\{(window:[^}]+)\}", self.text):
            first, last = _numbers(_after("window", line))
            pane = (first, last + 1, spoken[first, last], tuple(_numbers(_after("values", line))))
            spoken[first, last] += 1
            timestamp = re.search(r"timestamp: *(\d+)", line)
            yield pane, int(timestamp[1]) if timestamp else None


@pytest.mark.filterwarnings("ignore:.*came too late:panewise.PanewiseWarning")
def test_panes_of_every_transcript(goldens: Path, subtests: pytest.Subtests) -> None:
    for transcript in _transcripts(goldens):
        with subtests.test(transcript.name):
            query = f"SELECT t FROM S {transcript.window} WHERE NOT tick {transcript.late}"
            found: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
            for row in _run(query, transcript):
                found[row["w_start"], row["w_end"], row.get("revision", 0)].append(row["t"])
            panes = Counter((*window, tuple(sorted(times))) for window, times in found.items())
            assert panes == Counter(pane for pane, _ in transcript.expected())


@pytest.mark.filterwarnings("ignore:.*came too late:panewise.PanewiseWarning")
def test_timestamps_of_panes(goldens: Path, subtests: pytest.Subtests) -> None:
    """Beam may give a pane the time of its first item, of its last one, or the last tick of the window."""
    for transcript in _transcripts(goldens):
        column = TIMESTAMPS.get(transcript.field("timestamp_combiner") or "OUTPUT_AT_EOW")
        if column is None or transcript.holds_watermark:
            continue
        with subtests.test(transcript.name):
            rows = _run(f"SELECT MIN(t), MAX(t) FROM S {transcript.window} WHERE NOT tick", transcript)
            found = {row["w_end"]: (row | {"last_tick": row["w_end"] - 1})[column] for row in rows}
            expected = {pane[1]: timestamp for pane, timestamp in transcript.expected() if timestamp is not None}
            assert expected.items() <= found.items()


def _transcripts(goldens: Path) -> list[Transcript]:
    text = (goldens / "beam" / "trigger_transcripts.yaml").read_text()
    everything = [Transcript(part) for part in re.split(r"^---$", text, flags=re.MULTILINE)]
    return [transcript for transcript in everything if transcript.name not in NOT_OURS]


def _run(query: str, transcript: Transcript) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pw.run(query, {"S": transcript.stream}, boundary="[)").to_pylist()
    return rows


def _after(key: str, line: str) -> str:
    found = re.search(rf"{key}: *(\[[^\]]*\])", line)
    return found[1] if found else ""


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
