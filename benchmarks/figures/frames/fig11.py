""" "Data-driven windows" figure 11: the size of fragments and the latency of what frames are filled with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import panewise as pw
from benchmarks.data.traffic import EVERY
from benchmarks.harness.figure import Figure, Finding, Points, Row

SCHEMA = pa.schema([("t", pa.int64()), ("speed", pa.float64())])
WHOLE = "no fragments"


@dataclass(frozen=True)
class Settings:
    """Seconds: how long frames last, how much a fragment adds, and how often the stream says that time has passed."""

    frames: tuple[int, ...]
    fragments: tuple[int, ...]
    punctuations: tuple[int, ...]
    #: Frames of each length, one after another.
    count: int


def measure(settings: Settings) -> Iterator[Row]:
    for length in settings.frames:
        for punctuation in settings.punctuations:
            for fragment in (*settings.fragments, None):
                x = WHOLE if fragment is None else str(fragment)
                yield Row(series(length, punctuation), x, latency(length, fragment, punctuation, settings.count))


def series(length: int, punctuation: int) -> str:
    return f"frames of {length} s, punctuation every {punctuation} s"


def latency(length: int, fragment: int | None, punctuation: int, count: int) -> float:
    """Seconds of the stream from a report until it is covered by what a frame reports, on average of all in frames."""
    said = f"FRAGMENTS EVERY {fragment}" if fragment else ""
    pool = pw.Pool({"loops": pw.StreamSchema(SCHEMA, "t", 0)})
    pool.register("q", f"SELECT AVG(speed) AS mean FROM loops [FRAME WHILE speed < 40 {said}]")
    engine, table = pw.Engine(pool), reports(length, count)
    times = table["t"].to_numpy()
    covered = np.full(len(times), -1)
    last = -1
    for instant in range(punctuation, int(times[-1]) + punctuation + 1, punctuation):
        start, stop = np.searchsorted(times, (last, instant), side="right")
        if stop > start:
            engine.feed("loops", table.slice(start, stop - start))
        cover(covered, times, engine.advance(instant)["q"], instant)
        last = instant
    inside = table["speed"].to_numpy() < 40
    assert (covered[inside] >= 0).all()
    return float((covered - times)[inside].mean())


def cover(covered: npt.NDArray[np.int64], times: npt.NDArray[np.int64], told: pa.Table, instant: int) -> None:
    """Note the instant for all reports between start and end of what was told, unless they were told of before."""
    for first, end in zip(told["w_start"].to_pylist(), told["w_end"].to_pylist(), strict=True):
        start, stop = np.searchsorted(times, first, side="left"), np.searchsorted(times, end, side="right")
        part = covered[start:stop]
        part[part < 0] = instant


def reports(length: int, count: int) -> pa.Table:
    """Slow traffic for that long, then free flow for ten minutes, again and again."""
    slow, free = length // EVERY + 1, 30
    speeds = np.tile(np.repeat([25.0, 60.0], [slow, free]), count)
    return pa.table([EVERY * np.arange(1, len(speeds) + 1), speeds], schema=SCHEMA)


def findings(points: Points) -> Iterator[Finding]:
    names = points.series
    # Series come by the length of frames, then by punctuation, both from the least.
    each = sum(name.split(",")[0] == names[0].split(",")[0] for name in names)
    short, long = names[:each], names[-each:]
    least = points.get(long[0], points.xs[0]) or 1.0
    whole = points.get(long[0], WHOLE) or 0.0
    yield Finding(
        "Fragments cut the latency of long frames",
        f"{whole:,.0f} s without, {least:,.0f} s with those of {points.xs[0]} s: {whole / least:.0f} times less",
        whole > 2 * least,
    )
    yield Finding(
        "(our bound) Without fragments a report waits for half of its frame, on average",
        f"{whole:,.0f} s of {seconds(long[0]):,} s",
        0.8 < whole / (seconds(long[0]) / 2) < 1.25,
    )
    few, many = min(points.of(short[0])), max(points.of(short[0]))
    yield Finding(
        "Where frames are short, the size of fragments makes little difference (up to 2.5 times)",
        f"{many / few:.1f} times between sizes, {few:,.0f} to {many:,.0f} s; long frames: {points.swing(long[0]):.1f}",
        many / few <= 2.5,
    )
    yield Finding(
        "Where punctuation is frequent, the size of fragments makes little difference (up to 2.5 times)",
        f"{points.swing(long[0]):.1f} times between sizes; {points.swing(long[-1]):.1f} times where it is rarest",
        points.swing(long[0]) <= 2.5,
    )
    fragment = [x for x in points.xs if x != WHOLE][-1]
    often, seldom = (points.get(name, fragment) or 1.0 for name in (long[0], long[-1]))
    yield Finding(
        "Where fragments are long, frequent punctuation helps a lot (at least a quarter less)",
        f"fragments of {fragment} s: {often:,.0f} s instead of {seldom:,.0f} s",
        often <= 0.75 * seldom,
    )


def seconds(name: str) -> int:
    """How long the frames of a series last."""
    return int(name.split()[2])


FIGURE = Figure(
    title="Data-driven windows, figure 11: fragments and latency",
    claim="short fragments make the contents of long frames known early, as far as punctuation comes often enough",
    paper="frames filled with a stream of traffic reports by a join that frees tuples at each punctuation: the size of "
    "fragments makes little difference where frames are short or punctuations frequent, and short punctuation helps "
    "where fragments are long. Ours are filled with their own stream, a report every 20 s; punctuation is the engine's "
    "advance. Latency is stream time from a report until it lies in a reported row, the average of all in frames",
    x="seconds that a fragment adds",
    y="seconds of latency",
    baseline=series(21_600, 1800),
    sizes={
        "smoke": Settings((600, 21_600), (300, 3600), (300, 1800), count=1),
        "seconds": Settings((600, 21_600), (60, 300, 900, 3600), (20, 300, 1800), count=1),
        "full": Settings((600, 21_600), (60, 300, 900, 1800, 3600), (20, 60, 300, 1800), count=3),
    },
    measure=measure,
    findings=findings,
    log=frozenset("y"),
)
