"""How long work takes: seconds of one run, and operations a second over several."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median

#: A stream is measured over at most so many of its rows first, then over so many times as many.
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


def rate_of_first(
    prepare: Callable[[int], Callable[[], object] | None], rows: int, limit: float, repeats: int
) -> tuple[float, int]:
    """Rows a second over the first rows of a stream, and how many: all, if the runs do not exceed `limit` seconds.

    `prepare(n)` gives the work for the first n rows, and is not timed. n is taken four times as large again and again,
    so that work which grows faster than its rows ends soon after the limit; the first run warms up and is not counted.
    """

    def run(count: int) -> float:
        work = prepare(count)
        assert work is not None
        return timed(lambda _: work(), 1)

    counts = [rows]
    while counts[0] > _FEW:
        counts.insert(0, counts[0] // _GROWTH)
    run(counts[0])
    for count in counts:
        taken = [run(count)]
        if taken[0] * _GROWTH * repeats > limit:
            break
    while len(taken) < repeats and sum(taken) < limit:
        taken.append(run(count))
    return count / median(taken), count
