"""Traffic reports as "Data-driven windows" has them, generated: detectors that report every 20 seconds.

Free flow drifts about a little more than 50 miles an hour, rush hours on weekdays slow it down, and at night some
reports have no speed, since nobody passed. The constants were searched for so that the conditions of table 1 select
about what they select in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import panewise as pw

Doubles = npt.NDArray[np.float64]
#: Detector, start and end of each frame, a row each, in the order of these.
Periods = npt.NDArray[np.int64]

#: Seconds from one report of a detector to the next.
EVERY = 20
REPORTS_A_DAY = 86_400 // EVERY
#: The least length of a frame, in reports: 5 minutes of them.
LEAST = 15
SCHEMA = pa.schema([("t", pa.int64()), ("detector", pa.int32()), ("speed", pa.float64()), ("vehicles", pa.int32())])
#: The specifications of table 1, the condition of each and how windows of that length recognise it.
SPECIFICATIONS = {
    "Short": ("speed <= 30", "MAX(speed) <= 30"),
    "Medium": ("speed >= 50", "MIN(speed) >= 50"),
    "Long": ("speed >= 30", "MIN(speed) >= 30"),
}
#: Miles an hour of free flow, how far it drifts, how much of the drift is there a report later, and the noise.
FREE, DRIFT, KEPT, NOISE = 53.0, 6.5, 0.942, 0.3
#: The deepest slow-down; hours of the day at which it is worst, and how long it lasts.
SLOWEST, RUSH = 41.0, ((8.0, 0.8), (17.2, 1.1))
#: Share of reports without a speed in the middle of the night.
UNSEEN = 0.022


def days(count: int, detectors: int, seed: int = 11) -> Iterator[pa.Table]:
    """Reports of some days, a table a day, in the order of time."""
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, DRIFT, detectors)
    names = np.tile(np.arange(detectors, dtype=np.int32), REPORTS_A_DAY)
    hours = np.arange(REPORTS_A_DAY)[:, None] * EVERY / 3600
    for day in range(count):
        speeds = rng.normal(0, DRIFT * (1 - KEPT**2) ** 0.5, (REPORTS_A_DAY, detectors))
        for report in speeds:
            drift = report[:] = KEPT * drift + report
        drift = drift.copy()
        speeds += FREE + rng.normal(0, NOISE, speeds.shape) - _slowed(hours, detectors, day, rng)
        unseen = rng.random(speeds.shape) < UNSEEN * np.exp(-(((hours - 3) / 2) ** 2))
        vehicles = np.where(unseen, 0, 1 + rng.poisson(8 * np.exp(-(((hours - 13) / 5) ** 2)), speeds.shape))
        times = day * 86_400 + np.repeat(np.arange(REPORTS_A_DAY) * EVERY, detectors)
        known = pa.array(speeds.clip(3).ravel(), mask=unseen.ravel())
        yield pa.table([times, names, known, vehicles.ravel().astype(np.int32)], schema=SCHEMA)


def _slowed(hours: Doubles, detectors: int, day: int, rng: np.random.Generator) -> Doubles:
    """By how much traffic is slower than free flow: rush hours from Monday to Friday, not the same everywhere."""
    total = np.zeros((len(hours), detectors))
    for middle, length in RUSH if day % 7 < 5 else ():
        depths, middles = SLOWEST * rng.random(detectors) ** 0.5, middle + rng.normal(0, 0.3, detectors)
        total += depths * np.exp(-(((hours - middles) / length) ** 2))
    return total


def frames_of(condition: str) -> str:
    return f"SELECT detector FROM loops [FRAME WHILE {condition} FOR AT LEAST {LEAST} ROWS PARTITION BY detector]"


def windows_like(extreme: str) -> str:
    """Windows as long as the shortest frame that move on with each report: those in which a condition always holds."""
    return (
        f"SELECT detector, COUNT(*) AS n FROM loops [RANGE {LEAST * EVERY} SLIDE {EVERY}] GROUP BY detector "
        f"HAVING {extreme} AND COUNT(speed) = {LEAST}"
    )


def answered(query: str, tables: Iterable[pa.Table]) -> tuple[float, pa.Table]:
    """Seconds that a query takes for tables that come one after the other, and all that it says."""
    pool = pw.Pool({"loops": pw.StreamSchema(SCHEMA, "t", 0)})
    pool.register("q", query)
    engine, taken, said = pw.Engine(pool), 0.0, []
    for table in tables:
        began = perf_counter()
        engine.feed("loops", table)
        said.append(engine.advance()["q"])
        taken += perf_counter() - began
    began = perf_counter()
    said.append(engine.finish()["q"])
    return taken + perf_counter() - began, pa.concat_tables(said)


def periods(frames: pa.Table) -> Periods:
    """What frames span."""
    return _sorted(*(frames[name].to_numpy() for name in ("detector", "w_start", "w_end")))


def coalesced(windows: pa.Table) -> Periods:
    """Windows that follow each other as one period, from the first report of the first to the last of the last."""
    detectors, ends = _sorted(windows["detector"].to_numpy(), windows["w_end"].to_numpy()).T
    fresh = np.ones(len(ends), bool)
    fresh[1:] = (np.diff(detectors) != 0) | (np.diff(ends) != EVERY)
    firsts = np.flatnonzero(fresh)
    lasts = np.append(firsts[1:], len(ends))[: len(firsts)] - 1
    return _sorted(detectors[firsts], ends[firsts] - (LEAST - 1) * EVERY, ends[lasts])


def _sorted(*columns: npt.NDArray[np.int64]) -> Periods:
    order = np.lexsort(columns[1::-1])
    return np.stack([np.asarray(column, np.int64)[order] for column in columns], axis=1)
