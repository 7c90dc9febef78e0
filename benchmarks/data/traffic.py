"""Traffic reports as "Data-driven windows" has them, generated: detectors that report every 20 seconds.

Free flow drifts about a little more than 50 miles an hour, rush hours on weekdays slow it down, and at night some
reports have no speed, since nobody passed. The constants were searched for so that the conditions of table 1 select
about what they select in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Doubles = npt.NDArray[np.float64]

#: Seconds from one report of a detector to the next.
EVERY = 20
REPORTS_A_DAY = 86_400 // EVERY
SCHEMA = pa.schema([("t", pa.int64()), ("detector", pa.int32()), ("speed", pa.float64()), ("vehicles", pa.int32())])
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
