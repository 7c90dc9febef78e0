"""The cases of `speed` that are about thousands of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

from benchmarks.data.streams import Longs, durations
from benchmarks.data.windows import CLASSES, LONGEST, random_frames
from benchmarks.harness.figure import Row
from benchmarks.harness.ticking import Run, all_memory
from benchmarks.harness.timing import timed
from benchmarks.promises.speed_rows import BESIDE, OURS, middle
from panewise.plan.rules.group_windows import GroupingPolicy, WindowManager, WindowShape

T = TypeVar("T")


@dataclass(frozen=True)
class WindowSettings:
    windows: int
    #: Tuples an instant.
    rate: int
    instants: int
    #: Windows that come and go.
    changes: int
    repeats: int


WIDEST = "[RANGE 60 SLIDE 1]"


def window_cases(settings: WindowSettings) -> Iterator[Row]:
    frames = random_frames(settings.windows, CLASSES["abrupt"])
    run = Run(map(text, frames))
    yield from answers(run, settings)
    yield from memory(frames)
    yield from managers(frames, settings)
    yield from changes(run, settings)


def answers(run: Run, settings: WindowSettings) -> Iterator[Row]:
    """b: thousands of windows beside one. The garbage collector may run, as it does for users."""
    values, one = durations(settings.rate), Run([WIDEST])
    first, _ = run.tick(values)
    for each in (run, one):
        each.fill(2 * LONGEST)
        each.tick(values)
    feeding, feeding_one = in_turns(run, one, values, settings.repeats)
    yield Row(OURS, "b1", feeding / feeding_one)
    ours, single = ([each.tick(values) for _ in range(settings.instants)] for each in (run, one))
    yield Row(OURS, "b2", 1000 * median(said for _, said in ours))
    yield Row(BESIDE, "b2", 1000 * median(said for _, said in single))
    yield Row(OURS, "b3", 1000 * max(said for _, said in ours))
    yield Row(BESIDE, "b3", 1000 * max(said for _, said in single))
    yield Row(OURS, "b4", 1000 * median(map(sum, ours)))
    yield Row(BESIDE, "b4", 1000 * median(map(sum, single)))
    emission = run.engine.advance(run.at + 1)
    yield Row(OURS, "b5", 1000 * timed(lambda _: [emission[name] for name in emission], 1))
    yield Row(OURS, "b6", 1000 * first)


def in_turns(run: Run, other: Run, values: Longs, rounds: int) -> tuple[float, float]:
    """Seconds that each takes for the rows of an instant, with nothing answered in between.

    An answer for many windows empties the cache, and whoever comes next would pay for it.
    """
    times: dict[Run, list[float]] = {run: [], other: []}
    for _ in range(rounds):
        for each, taken in times.items():
            each.take(values)
            taken += [each.take(values) for _ in range(10)]
            each.answer()
    return median(times[run]), median(times[other])


def memory(frames: list[WindowShape]) -> Iterator[Row]:
    """e: equal windows share a state, so each different one runs once."""
    different = [text(frame) for frame in sorted(set(frames))]
    held, alone = (most_states(Run(windows)) for windows in (different, [WIDEST]))
    yield Row(OURS, "e1", held / alone)
    held, alone = (all_memory(Run(windows), LONGEST) for windows in (different, [WIDEST]))
    yield Row(OURS, "e2", held / alone)


def managers(frames: list[WindowShape], settings: WindowSettings) -> Iterator[Row]:
    """f: the window manager on its own."""
    for case, policy in (("f1", GroupingPolicy.COST), ("f2", GroupingPolicy.PAPER)):
        yield Row(OURS, case, 1000 * middle(settings.repeats, WindowManager, policy, frames))
    manager, coming = WindowManager(GroupingPolicy.COST, frames), newcomers(settings.changes)
    yield from one_by_one("f3", "f4", manager.embed, coming)
    yield from one_by_one("f5", "f6", manager.revoke, coming)


def changes(run: Run, settings: WindowSettings) -> Iterator[Row]:
    """f: queries that join and leave a running engine, each with the next row fed and answered."""
    frames = newcomers(settings.changes)
    queries = [(f"new {n}", f"SELECT SUM(v) AS answer FROM S {text(frame)}") for n, frame in enumerate(frames)]
    row = durations(1)

    def join(query: tuple[str, str]) -> None:
        run.pool.register(*query)
        run.tick(row)

    def leave(query: tuple[str, str]) -> None:
        run.pool.revoke(query[0])
        run.tick(row)

    yield from one_by_one("f7", "f8", join, queries)
    yield from one_by_one("f9", "f10", leave, queries)


def one_by_one(usual: str, worst: str, work: Callable[[T], object], each: Iterable[T]) -> Iterator[Row]:
    """Milliseconds of single calls."""
    times = []
    for one in each:
        start = perf_counter()
        work(one)
        times.append(1000 * (perf_counter() - start))
    yield Row(OURS, usual, median(times))
    yield Row(OURS, worst, max(times))


def newcomers(count: int) -> list[WindowShape]:
    """Windows most of which nobody has asked for yet: twice as wide as the others, and one tick more."""
    return [WindowShape(2 * frame.range + 1, 2 * frame.slide - 1) for frame in random_frames(count, 30, seed=8)]


def most_states(run: Run) -> int:
    run.fill(LONGEST)
    return run.states(10)


def text(frame: WindowShape) -> str:
    return f"[RANGE {frame.range} SLIDE {frame.slide}]"
