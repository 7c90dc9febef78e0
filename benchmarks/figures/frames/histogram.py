""" "Data-driven windows" figures 2, 4, 6 and 7: histograms of windowed and of framed averages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

import panewise as pw
from benchmarks.harness.figure import Figure, Finding, Points, Row

Doubles = npt.NDArray[np.float64]

#: A cast of a probe from the surface to the ground, 24 scans a second.
CAST = Path(__file__).parents[4] / "shared" / "data" / "ctd_meteor" / "ctd_meteor_20110401.csv.gz"
SCHEMA = pa.schema([("scan", pa.int64()), ("pressure_db", pa.float64()), ("fluorescence", pa.float64())])
WINDOWS = "windows"
#: Kinds of frames, each with one number that decides how many there are.
FRAMES = {
    "delta": "[FRAME DELTA fluorescence > {}]",
    "boundary": "[FRAME EVERY {} OF pressure_db]",
    "aggregate": "[FRAME SUM(fluorescence) >= {}]",
}
#: Numbers of segments are about equal where they differ by no more than this.
NEAR = 0.1


@dataclass(frozen=True)
class Settings:
    #: Scans of the cast, from the beginning.
    scans: int
    segments: tuple[int, ...]


def measure(settings: Settings) -> Iterator[Row]:
    cast = read(settings.scans)
    raw = np.sort(cast["fluorescence"].to_numpy())
    for count in settings.segments:
        width = max(round(len(raw) / count), 1)
        yield Row(WINDOWS, count, distance(raw, *averages(cast, f"[RANGE {width} SLIDE {width}]")))
        for name, clause in FRAMES.items():
            means, weights = closest(count, cast, clause)
            if abs(len(means) - count) <= NEAR * count:
                yield Row(name, count, distance(raw, means, weights))


def closest(count: int, cast: pa.Table, clause: str) -> tuple[Doubles, Doubles]:
    """The averages of frames that are nearest in number to `count`: the greater the limit, the fewer there are."""
    low, high = 1e-6, 1e6
    best = averages(cast, clause.format(high))
    for _ in range(30):
        middle = (low * high) ** 0.5
        found = averages(cast, clause.format(f"{middle:.9f}"))
        best = min(best, found, key=lambda each: abs(len(each[0]) - count))
        if len(found[0]) == count:
            break
        low, high = (middle, high) if len(found[0]) > count else (low, middle)
    return best


def averages(cast: pa.Table, clause: str) -> tuple[Doubles, Doubles]:
    """The average of each segment, and how many scans it stands for."""
    pool = pw.Pool({"tow": pw.StreamSchema(SCHEMA, "scan", 0)})
    pool.register("q", f"SELECT AVG(fluorescence) AS mean, COUNT(*) AS scans FROM tow {clause}")
    engine = pw.Engine(pool)
    engine.feed("tow", cast)
    told = pa.concat_tables([engine.advance()["q"], engine.finish()["q"]])
    return told["mean"].to_numpy(), told["scans"].to_numpy().astype(np.float64)


def distance(raw: Doubles, means: Doubles, weights: Doubles) -> float:
    """Earth mover's distance of weighted averages from sorted values: the area between both distributions."""
    order = np.argsort(means)
    means, heights = means[order], np.append(0.0, np.cumsum(weights[order]) / weights.sum())
    edges = np.sort(np.concatenate((raw, means)))
    ours = heights[np.searchsorted(means, edges[:-1], side="right")]
    theirs = np.searchsorted(raw, edges[:-1], side="right") / len(raw)
    return float((np.abs(ours - theirs) * np.diff(edges)).sum())


def read(scans: int) -> pa.Table:
    """The cast, where it is present; otherwise one like it."""
    if not CAST.exists():
        return generated(scans)
    types = {field.name: field.type for field in SCHEMA}
    options = csv.ConvertOptions(column_types=types, include_columns=SCHEMA.names)
    return csv.read_csv(CAST, convert_options=options).slice(0, scans).combine_chunks()


def generated(scans: int) -> pa.Table:
    """A descent at an even speed, with a layer of much fluorescence in the upper part and noise everywhere."""
    rng, depth = np.random.default_rng(2), np.linspace(6.0, 2000.0, scans)
    layer = 0.6 * np.exp(-(((depth - 110) / 35) ** 2)) + 0.1 * np.exp(-depth / 150) + 0.05
    values = layer * rng.lognormal(0, 0.05, scans)
    return pa.table([np.arange(1, scans + 1), depth + rng.normal(0, 0.02, scans), values], schema=SCHEMA)


def findings(points: Points) -> Iterator[Finding]:
    for name in FRAMES:
        held = {x: y for x in points.xs if (y := points.get(name, x)) is not None}
        ratios = {x: y / (points.get(WINDOWS, x) or 1.0) for x, y in held.items()}
        told = ", ".join(f"{ratio:.2f} ({x})" for x, ratio in ratios.items())
        odd = len(points.xs) - len(held)
        yield Finding(
            f"{name} frames are closer to the raw data than as many windows: distance over that of windows (segments)",
            told + (f"; no limit gives the other {odd} numbers of frames" if odd else ""),
            bool(ratios) and max(ratios.values()) < 1,
        )
    for name in points.series:
        yield Finding(
            f"(our bound) The more segments, the closer: {name}",
            f"from {points.of(name)[0]:.3g} to {points.of(name)[-1]:.3g}",
            points.growth(name) < 1,
        )


FIGURE = Figure(
    title="Data-driven windows, figures 6 and 7: histograms of averages",
    claim="averages of frames are distributed more like the raw data than averages of as many windows",
    paper="histograms of the fluorescence that a towed probe measured: of raw data, of averages of fixed windows and "
    "of frames; the earth mover's distance of frames is the smaller one, relative to windows. We have the captions of "
    "these figures only, not their text, numbers or data. Ours is a cast of RV Meteor of 2011 with 24 scans a second, "
    "or one like it where that is absent; averages count by the scans they stand for. For each number of segments the "
    "limit of frames is searched for that gives as many, within 10 %; windows divide the cast evenly",
    x="segments",
    y="earth mover's distance from the raw data",
    baseline=WINDOWS,
    sizes={
        "smoke": Settings(scans=3000, segments=(20, 60)),
        "seconds": Settings(scans=71_325, segments=(50, 200, 800)),
        "full": Settings(scans=71_325, segments=(25, 50, 100, 200, 400, 800, 1600, 3200)),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
