"""Conditions of frames that contradict each other, each with one sentence and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from panewise.core.schema import is_number
from panewise.frame.conditions import Duplicates, Saturation, Scheme, Span
from panewise.frame.kinds import BoundaryFrames, DeltaFrames, DensityFrames, ReachFrames, TrendFrames, WhileFrames

if TYPE_CHECKING:
    from panewise.frame.frame import Frame


def contradictions(frame: Frame) -> list[tuple[str, str]]:
    """Why no stream could satisfy a frame's conditions, or why they would say nothing."""
    return [*_lengths(frame), *_schemes(frame), *_reports(frame)]


def _lengths(frame: Frame) -> list[tuple[str, str]]:
    found = []
    for name, length in (("AT LEAST", frame.least), ("AT MOST", frame.most), ("FRAGMENTS EVERY", frame.fragments)):
        if length is not None and (length.amount < 0 or (length.amount == 0 and name != "AT LEAST")):
            found.append((f"{name} {length.amount} is not positive", "use more than zero"))
    least, most = frame.least, frame.most
    if least and most and least.rows == most.rows and least.amount > most.amount:
        found.append(("frames cannot last at least longer than they last at most", "exchange the two lengths"))
    if isinstance(frame.kind, DeltaFrames) and frame.kind.limit < 0:
        found.append((f"DELTA {frame.kind.limit:g} is negative", "use zero or more"))
    if isinstance(frame.kind, DeltaFrames) and frame.kind.open and frame.kind.limit == 0:
        found.append(("any two values are at least 0 apart", "use DELTA value > 0"))
    if isinstance(frame.kind, TrendFrames) and frame.kind.tolerance < 0:
        found.append((f"WITHIN {frame.kind.tolerance:g} is negative", "use zero or more"))
    if isinstance(frame.kind, BoundaryFrames):
        found += _boundaries(frame.kind)
    if isinstance(frame.kind, DensityFrames):
        found += _density(frame.kind)
    return found


def _boundaries(kind: BoundaryFrames) -> list[tuple[str, str]]:
    if kind.step is not None and not kind.step > 0:
        return [(f"a boundary every {kind.step:g} is not positive", "use more than zero")]
    if list(kind.marks) != sorted(set(kind.marks)):
        return [("the boundaries do not rise", "list each once, from the least to the greatest")]
    return []


def _density(kind: DensityFrames) -> list[tuple[str, str]]:
    if kind.count < 2:
        return [(f"a density of {kind.count} says nothing", "use at least 2 rows")]
    if kind.chance is not None and not 0 < kind.chance < 1:
        return [(f"CHANCE {kind.chance:g} is no probability", "use a number between 0 and 1")]
    if (kind.chance is None) != (kind.expected is None):
        return [("CHANCE and EXPECTED need each other", "say both or none")]
    if kind.expected is not None and not kind.expected > 0:
        return [(f"EXPECTED {kind.expected:g} is not positive", "use more than zero")]
    return []


def _schemes(frame: Frame) -> list[tuple[str, str]]:
    scheme, span = frame.effective_scheme, frame.effective_span
    found = []
    gapless = scheme in (Scheme.PARTITION, Scheme.COVER, Scheme.ADJACENT)
    if gapless and not frame.dividing:
        found.append((f"{scheme.value} wants every item in a frame, but some are in none", "use DISJOINT"))
    elif gapless and frame.selective:
        found.append((f"{scheme.value} wants every item in a frame, but conditions drop some", "use DISJOINT"))
    if isinstance(frame.kind, ReachFrames) and span is not Span.MAXIMUM and frame.kind.grows != (span is Span.MINIMAL):
        grows = "grow without end once they qualify" if frame.kind.grows else "hold a shorter one each"
        fix = "use MINIMAL" if frame.kind.grows else "use MAXIMAL"
        found.append((f"frames whose aggregate is {frame.kind.operator} a value {grows}", fix))
    if span is Span.MINIMAL and not isinstance(frame.kind, ReachFrames):
        found.append(("every single item would be a MINIMAL frame", "use MAXIMAL, or RANGE for short windows"))
    if scheme is Scheme.UNCONSTRAINED and frame.choice is Saturation.DRAINED:
        found.append(("no frame at all is DRAINED and UNCONSTRAINED", "use SATURATED, or another scheme"))
    if span is Span.MAXIMUM and frame.fragments:
        found.append(("the longest frame is known at the end only, so it has no fragments", "leave FRAGMENTS out"))
    return found


def _reports(frame: Frame) -> list[tuple[str, str]]:
    found = []
    if frame.most and frame.fragments:
        found.append(("a frame with AT MOST is certain only at its end, so it has no fragments", "leave one out"))
    if frame.certain_at_end and frame.fragments:
        found.append(("these frames are certain only at their end, so they have no fragments", "leave FRAGMENTS out"))
    if frame.overlapping and frame.fragments:
        found.append(("frames that overlap have no fragments", "use DISJOINT, or leave FRAGMENTS out"))
    if frame.duplicates in _MERGING and not all(_is_mergeable(scalar.type) for scalar in frame.scalars):
        how = frame.duplicates.value
        found.append((f"DUPLICATES {how} needs numbers, but frames follow something else", "use FIRST or LAST"))
    if frame.schedule and not isinstance(frame.kind, WhileFrames):
        found.append(("reports can be missing from WHILE frames only", "leave EVERY out"))
    if frame.schedule and frame.duplicates is Duplicates.KEEP:
        found.append(("EVERY expects one report at a time, but DUPLICATES KEEP allows more", "use DUPLICATES ERROR"))
    if frame.schedule and frame.schedule.every <= 0:
        found.append((f"EVERY {frame.schedule.every} is not positive", "use more than zero"))
    return found


#: How several items of one time become one by computing.
_MERGING = (Duplicates.AVG, Duplicates.MIN, Duplicates.MAX, Duplicates.SUM)


def _is_mergeable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or is_number(kind))
