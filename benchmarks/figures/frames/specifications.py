"""The frames of table 1 of "Data-driven windows", the windows that find the same periods, and what both answer."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import panewise as pw
from benchmarks.data.traffic import EVERY, SCHEMA

#: Detector, start and end of each frame, a row each, in the order of these.
Periods = npt.NDArray[np.int64]

#: The least length of a frame, in reports: 5 minutes of them.
LEAST = 15
#: The specifications of table 1, the condition of each and how windows of that length recognise it.
SPECIFICATIONS = {
    "Short": ("speed <= 30", "MAX(speed) <= 30"),
    "Medium": ("speed >= 50", "MIN(speed) >= 50"),
    "Long": ("speed >= 30", "MIN(speed) >= 30"),
}


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
