"""How long work takes: seconds of one run, and operations a second over several."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median


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
