"""Conditions of frames that contradict each other, each with one sentence and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from panewise.core.schema import is_number
from panewise.frame.conditions import Duplicates, Saturation, Scheme, Span

if TYPE_CHECKING:
    from panewise.frame.frame import Frame


def contradictions(frame: Frame) -> list[tuple[str, str]]:
    """Why no stream could satisfy a frame's conditions, or why they would have no effect."""
    return [*_lengths(frame), *frame.kind.contradictions(), *_schemes(frame), *_reports(frame)]


def _lengths(frame: Frame) -> list[tuple[str, str]]:
    found = []
    for name, length in (("AT LEAST", frame.least), ("AT MOST", frame.most), ("FRAGMENTS EVERY", frame.fragments)):
        if length is not None and (length.amount < 0 or (length.amount == 0 and name != "AT LEAST")):
            found.append((f"{name} {length.amount} is not positive", "use more than zero"))
    least, most = frame.least, frame.most
    if least and most and least.rows == most.rows and least.amount > most.amount:
        found.append(("frames cannot last at least longer than they last at most", "exchange the two lengths"))
    return found


def _schemes(frame: Frame) -> list[tuple[str, str]]:
    scheme, span = frame.effective_scheme, frame.effective_span
    found = []
    gapless = scheme in (Scheme.PARTITION, Scheme.COVER, Scheme.ADJACENT)
    if gapless and not frame.kind.dividing:
        found.append((f"{scheme.value} wants every item in a frame, but some are in none", "use DISJOINT"))
    elif gapless and frame.selective:
        found.append((f"{scheme.value} wants every item in a frame, but conditions drop some", "use DISJOINT"))
    found += frame.kind.span_contradictions(span)
    if scheme is Scheme.UNCONSTRAINED and frame.choice is Saturation.DRAINED:
        found.append(("no frame at all is DRAINED and UNCONSTRAINED", "use SATURATED, or another scheme"))
    if span is Span.MAXIMUM and frame.fragments:
        found.append(("the longest frame is known at the end only, so it has no fragments", "leave FRAGMENTS out"))
    return found


def _reports(frame: Frame) -> list[tuple[str, str]]:
    found = []
    if frame.most and frame.fragments:
        found.append(("a frame with AT MOST is certain only at its end, so it has no fragments", "leave one out"))
    if frame.kind.certain_at_end and frame.fragments:
        found.append(("these frames are certain only at their end, so they have no fragments", "leave FRAGMENTS out"))
    if frame.overlapping and frame.fragments:
        found.append(("frames that overlap have no fragments", "use DISJOINT, or leave FRAGMENTS out"))
    if frame.duplicates in _MERGING and not all(_is_mergeable(scalar.type) for scalar in frame.scalars):
        how = frame.duplicates.value
        found.append((f"DUPLICATES {how} needs numbers, but frames follow something else", "use FIRST or LAST"))
    if frame.schedule and not frame.kind.takes_schedule:
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
