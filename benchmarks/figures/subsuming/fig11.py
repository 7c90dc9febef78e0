""" "Subsuming windows" figure 11: memory of all window states, shared and not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.data.windows import CLASSES, LONGEST, random_frames
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.ticking import Run
from panewise.plan.rules.group_windows import GroupingPolicy, WindowManager, WindowShape


@dataclass(frozen=True)
class Settings:
    windows: tuple[int, ...]
    #: Timestamps after which the panes of a running engine are looked at.
    looks: int


UNSHARED, DISTINCT, RUNNING = "unshared", "unshared, equal ones once", "shared, in a running engine"


def measure(settings: Settings) -> Iterator[Row]:
    for count in settings.windows:
        frames = random_frames(count, CLASSES["medium"])
        yield Row(UNSHARED, count, sum(alone(frame) for frame in frames))
        yield Row(DISTINCT, count, sum(alone(frame) for frame in set(frames)))
        for policy in GroupingPolicy:
            yield Row(f"shared, {policy.value}", count, WindowManager(policy, frames).cost)
        yield Row(RUNNING, count, running(frames, settings.looks))


def alone(frame: WindowShape) -> int:
    """The panes that one window keeps on its own."""
    return frame.range // frame.granule


def running(frames: list[WindowShape], looks: int) -> float:
    """The most panes an engine holds that groups by cost. Queries with equal windows share one, so each runs once."""
    run = Run(f"[RANGE {frame.range} SLIDE {frame.slide}]" for frame in sorted(set(frames)))
    run.fill(1)
    pane = run.engine.nbytes
    run.fill(LONGEST)
    return run.states(looks) / pane


def findings(points: Points) -> Iterator[Finding]:
    saved = [u / s for u, s in zip(points.of(UNSHARED), points.of("shared, paper"), strict=True)]
    best = [u / s for u, s in zip(points.of(UNSHARED), points.of(RUNNING), strict=True)]
    yield Finding(
        "Sharing needs less memory by orders of magnitude",
        f"by Algorithm 1 {saved[0]:,.0f} to {saved[-1]:,.0f} times less, by cost {best[0]:,.0f} to {best[-1]:,.0f} "
        "times less",
        min(saved) > 10,
    )
    distinct = [d / s for d, s in zip(points.of(DISTINCT), points.of("shared, paper"), strict=True)]
    yield Finding(
        "(not in the paper) Part of it comes from windows that are equal",
        f"with each different window once, Algorithm 1 still saves a factor of {min(distinct):,.0f} to "
        f"{max(distinct):,.0f}",
        min(distinct) > 2.5,
    )
    yield Finding(
        "Shared memory is practically the same for any number of windows",
        f"by Algorithm 1 it swings by a factor of {points.swing('shared, paper'):.1f}, by cost of "
        f"{points.swing(RUNNING):.1f}",
        points.swing("shared, paper") < 2.5,
    )
    wider = float(points.xs[-1]) / float(points.xs[0])
    yield Finding(
        "Unshared memory grows linearly",
        f"windows grow {wider:.0f} times, memory {points.growth(UNSHARED):.1f} times",
        0.8 < points.growth(UNSHARED) / wider < 1.25,
    )
    extra = max(points.of(RUNNING)) / LONGEST
    yield Finding(
        "Shared memory is that of the widest window, plus buffers",
        f"a running engine holds {extra:.2f} times the {LONGEST} panes of the widest and finest window",
        extra <= 1.2,
    )


FIGURE = Figure(
    title="Subsuming windows, figure 11: memory of window states",
    claim="thousands of windows on one chain need about the panes of the widest of them",
    paper="the medium class of figure 10; 1000 to 10,000 windows; memory on a log scale, without numbers in the text. "
    "Ours: panes, each with one partial SUM; unshared is what every window would keep on its own, and shared counts "
    "panes and buffers of all groups. Totals beside the panes, one for each different range, are not counted",
    x="windows",
    y="panes",
    baseline=UNSHARED,
    sizes={
        "smoke": Settings(windows=(50, 150), looks=2),
        "seconds": Settings(windows=(1000, 2000, 5000, 10_000), looks=5),
        "full": Settings(windows=(1000, 2000, 5000, 10_000), looks=120),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
