""" "Resource sharing" figure 12: CI-COUNT with exact answers, by the number of levels of each size.

The paper replays a day of trades (TAQ), which we do not have: `trades` generates one. Each batch of trades is followed
by as many lookups, so that updates and lookups are equally many. The naive approach has the same running counts in
compiled code; "naive, backwards" is kinder than the paper's: it looks at one element of each substream, the one as far
from the end as the threshold says, where R-INT looks for the beginning of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numba
import numpy as np

from benchmarks.data.streams import Longs
from benchmarks.data.trades import LONGEST, Questions, Trades
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import rate
from panewise.filters import CICount, Exact
from panewise.filters.base import LookupAnswers
from panewise.filters.running import RunningTotals
from panewise.kernels.running import NEXT, OLDEST, ROOM, START

NAIVE, BACKWARDS, OURS, SHARE = "naive", "naive, backwards", "CI-COUNT and R-INT", "share of symbols answered"


@dataclass(frozen=True)
class Settings:
    symbols: int
    trades: int
    batch: int
    p: tuple[int, ...]
    seconds: float
    repeats: int


@numba.njit(nogil=True)
def _each(rings: Any, cuts: Any, thresholds: Any, backwards: bool) -> Any:
    """Every substream asked at each lookup."""
    pool, _, known = rings
    keys = len(known)
    offsets, out = np.zeros(len(cuts) + 1, np.int64), np.empty(len(cuts) * keys, np.int64)
    total = 0
    for i in range(len(cuts)):
        cut, threshold = cuts[i], thresholds[i]
        for code in range(keys):
            first, mask, low, high = known[code, START], known[code, ROOM] - 1, known[code, OLDEST], known[code, NEXT]
            if backwards:
                place = high - threshold - 1
                above = place >= low and pool[first + (place & mask)] > cut
            else:
                while low < high:
                    middle = (low + high) >> 1
                    if pool[first + (middle & mask)] > cut:
                        high = middle
                    else:
                        low = middle + 1
                above = known[code, NEXT] - low > threshold
            out[total] = code
            total += above
        offsets[i + 1] = total
    return offsets, out[:total]


class Naive:
    """R-INT of each substream, and nothing else."""

    def __init__(self, backwards: bool) -> None:
        self.backwards, self.running, self.before = backwards, RunningTotals(summed=False), 0

    def update(self, codes: Longs, times: Longs) -> None:
        self.running.update(codes, times, None, self.before)

    def above_many(self, now: int, lengths: Longs, thresholds: Longs) -> LookupAnswers:
        offsets, codes = _each(self.running.rings, now - lengths, thresholds, self.backwards)
        return offsets, codes

    def forget(self, before: int) -> None:
        self.before = before


def measure(settings: Settings) -> Iterator[Row]:
    trades = Trades(settings.symbols, settings.trades)
    asked = trades.questions(64 * settings.batch)
    naive = {NAIVE: Naive(backwards=False), BACKWARDS: Naive(backwards=True)}
    _agree(trades, asked, settings.batch)
    rates = {name: _rate(each, trades, asked, settings) for name, each in naive.items()}
    for p in settings.p:
        for name, measured in rates.items():
            yield Row(name, p, measured)
        index = Exact(CICount(p))
        yield Row(OURS, p, _rate(index, trades, asked, settings))
        yield Row(SHARE, p, _share(index, asked, settings.symbols))


def _rate(filter: Any, trades: Trades, asked: Questions, settings: Settings) -> float:
    """Inputs a second, from the middle of the day on, so that all windows are filled."""
    batches = trades.batches(settings.batch)
    for codes, times in islice(batches, int(0.6 * settings.trades) // settings.batch):
        filter.update(codes, times)
    return rate(_inputs(filter, batches, asked, settings.batch), settings.seconds, settings.repeats, 2 * settings.batch)


def _inputs(
    filter: Any, batches: Iterator[tuple[Longs, Longs]], asked: Questions, size: int
) -> Callable[[int], object]:
    """Batches of updates and lookups, half of them each."""
    turn = 0

    def work(count: int) -> None:
        nonlocal turn
        for codes, times in islice(batches, max(count // (2 * size), 1)):
            some = slice(turn % 64 * size, turn % 64 * size + size)
            filter.update(codes, times)
            filter.above_many(int(times[-1]), asked.lengths[some], asked.thresholds[some])
            if turn % 64 == 0:
                filter.forget(int(times[-1]) - LONGEST)
            turn += 1

    return work


def _share(index: Exact, asked: Questions, symbols: int) -> float:
    """The mean share of symbols that a lookup answers."""
    offsets, codes = index.above_many(index.newest, asked.lengths, asked.thresholds)
    return len(codes) / (len(offsets) - 1) / symbols


def _agree(trades: Trades, asked: Questions, size: int) -> None:
    """Nothing is measured unless all answer alike."""
    filters = (Naive(backwards=False), Naive(backwards=True), Exact(CICount(4)))
    batches = list(islice(trades.batches(size), int(0.6 * len(trades.codes)) // size))
    for codes, times in batches:
        for each in filters:
            each.update(codes, times)
    now = int(batches[-1][1][-1])
    answers = [each.above_many(now, asked.lengths[:size], asked.thresholds[:size]) for each in filters]
    if not all(np.array_equal(mine, theirs) for a in answers for mine, theirs in zip(a, answers[0], strict=True)):
        raise AssertionError("the filters do not agree")


def findings(points: Points) -> Iterator[Finding]:
    best = max(points.of(OURS))
    p = next(row.x for row in points.rows if row.series == OURS and row.y == best)
    times = best / points.of(NAIVE)[0]
    yield Finding(
        "CI-COUNT with a good p has 25 times the rate of the naive approach; promised: 20",
        f"{times:.0f} times with p={p}, and {best / points.of(BACKWARDS)[0]:.0f} times that of looking backwards",
        times >= 20,
    )
    yield Finding("promised: 1 M inputs a second in batches", f"{best / 1e6:.2f} M with p={p}", best >= 1e6)
    shares = points.of(SHARE)
    yield Finding(
        "Thresholds have a selectivity of .03 to .05",
        f"lookups answer {min(shares):.3f} to {max(shares):.3f} of all symbols on average",
        min(shares) >= 0.025 and max(shares) <= 0.055,
    )
    worst = min(points.of(OURS))
    yield Finding(
        "p is a tradeoff: few levels leave many candidates to check, many make updates dear",
        f"p={p} has {best / worst:.1f} times the rate of the worst",
        best > points.of(OURS)[0] and best > points.of(OURS)[-1],
    )


FIGURE = Figure(
    title="Resource sharing, figure 12: CI-COUNT by the number of levels of each size",
    claim="a collective index answers which of 5,000 substreams are busy, at many times the rate of asking each",
    paper="One day of trades, about 5,000 symbols, suffix windows of 15 minutes to 3 hours, selectivity .03 to .05, "
    "lookups and updates equally interleaved: the naive approach processes 1,000 inputs a second, CI-COUNT with R-INT "
    "up to 25,000",
    x="p",
    y="inputs a second",
    baseline=NAIVE,
    sizes={
        "smoke": Settings(symbols=200, trades=5_000, batch=64, p=(1, 4), seconds=0.001, repeats=1),
        "seconds": Settings(
            symbols=5_000, trades=500_000, batch=1024, p=(1, 2, 4, 6, 8, 12, 16, 32), seconds=0.1, repeats=5
        ),
        "full": Settings(
            symbols=5_000,
            trades=2_000_000,
            batch=1024,
            p=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64),
            seconds=0.5,
            repeats=5,
        ),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
