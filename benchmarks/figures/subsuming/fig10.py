""" "Subsuming windows" figure 10: how many groups there are, and how long grouping takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.data.windows import CLASSES, random_frames
from benchmarks.harness.figure import Figure, Finding, Points, Row
from benchmarks.harness.timing import timed
from panewise.plan.rules.group_windows import GroupingPolicy, WindowManager, WindowShape


@dataclass(frozen=True)
class Settings:
    windows: tuple[int, ...]
    repeats: int


DIFFERENT = "different windows, abrupt"


def measure(settings: Settings) -> Iterator[Row]:
    for count in settings.windows:
        workloads = {name: random_frames(count, slide) for name, slide in CLASSES.items()}
        yield Row(DIFFERENT, count, len(set(workloads["abrupt"])))
        for policy in GroupingPolicy:
            times = []
            for name, frames in workloads.items():
                yield Row(f"{name}, {policy.value}", count, len(WindowManager(policy, frames).groups))
                times.append(grouping(policy, frames, settings.repeats))
            yield Row(f"ms, {policy.value}", count, 1000 * max(times))


def grouping(policy: GroupingPolicy, frames: list[WindowShape], repeats: int) -> float:
    """Seconds to group windows from nothing."""
    return median(timed(lambda _: WindowManager(policy, frames), 1) for _ in range(repeats))


def findings(points: Points) -> Iterator[Finding]:
    groups = {(name, p): points.of(f"{name}, {p.value}") for name in CLASSES for p in GroupingPolicy}
    paper = [count for (_, policy), counts in groups.items() if policy is GroupingPolicy.PAPER for count in counts]
    cost = [count for (_, policy), counts in groups.items() if policy is GroupingPolicy.COST for count in counts]
    yield Finding(
        "Few groups hold all windows, in any setting",
        f"{min(paper):.0f} to {max(paper):.0f} by Algorithm 1, {min(cost):.0f} to {max(cost):.0f} by cost",
        max(paper) <= 50,
    )
    smooth, abrupt = (groups[name, GroupingPolicy.PAPER] for name in ("smooth", "abrupt"))
    yield Finding(
        "The number depends on how much slides vary",
        f"by Algorithm 1, abrupt windows make {min(a / s for a, s in zip(abrupt, smooth, strict=True)):.1f} to "
        f"{max(a / s for a, s in zip(abrupt, smooth, strict=True)):.1f} times as many groups as smooth ones",
        all(a >= s for a, s in zip(abrupt, smooth, strict=True)),
    )
    slowest = {policy.value: max(points.of(f"ms, {policy.value}")) for policy in GroupingPolicy}
    yield Finding(
        "Grouping takes hardly any time, however many windows there are",
        "at most " + ", ".join(f"{ms:.1f} ms by {name}" for name, ms in slowest.items()),
        max(slowest.values()) < 100,
    )


FIGURE = Figure(
    title="Subsuming windows, figure 10: groups, and the time to make them",
    claim="thousands of windows fall into few groups within milliseconds, and into fewer ones when cost decides",
    paper="1000, 2000, 5000 and 10,000 random windows with ranges up to 60 and slides up to 10 (smooth), 20 (medium) "
    "or 30 (abrupt), always shorter than the range; Xeon, 2.13 GHz, C++. The bars have no numbers in the text. With "
    "such limits at most 1335 windows differ, so more windows may make fewer groups: once a slide of one tick is there "
    "for each range, all others ride on it. Ours: Algorithm 1 (paper), and packing by cost",
    x="windows",
    y="groups; ms where it says so, of the slowest class",
    baseline=DIFFERENT,
    sizes={
        "smoke": Settings(windows=(100, 1000), repeats=1),
        "seconds": Settings(windows=(1000, 2000, 5000, 10_000), repeats=5),
        "full": Settings(windows=(1000, 2000, 5000, 10_000), repeats=25),
    },
    measure=measure,
    findings=findings,
    log=frozenset("xy"),
)
