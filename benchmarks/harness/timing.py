"""How long work takes: seconds of one run, and operations a second over several."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median

#: At most so many rows of a stream are tried first, then so many times as many.
_FEW, _GROWTH = 1000, 4


def rate(work: Callable[[int], object], seconds: float, repeats: int, least: int = 1) -> float:
    """Operations a second: the median of some runs of `work(n)`, which does n operations, for that many seconds each.

    n is doubled from `least` until one run takes long enough; these first runs warm up and are not counted.
    """
    count = least
    while (taken := timed(work, count)) < seconds / 2:
        count *= 2 if taken > seconds / 20 else 8
    return median(count / timed(work, count) for _ in range(repeats))


def timed(work: Callable[[int], object], count: int) -> float:
    """Seconds that `work(count)` takes, without the garbage collector."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        work(count)
        return max(time.perf_counter() - start, 1e-9)
    finally:
        if collecting:
            gc.enable()


def rows_within(limit: float, rows: int, run: Callable[[int], float]) -> int:
    """How many of the first rows of a stream take no more than about `limit` seconds; `run(n)` takes n of them.

    Four times as many are tried again and again, so that work which grows faster than its rows ends soon after the
    limit. The first run warms up; a run that seems too slow is repeated, since the machine may have been busy.
    """
    counts = [rows]
    while counts[0] > _FEW:
        counts.insert(0, counts[0] // _GROWTH)
    run(counts[0])
    for count in counts[:-1]:
        if run(count) * _GROWTH > limit and run(count) * _GROWTH > limit:
            return count
    return rows
