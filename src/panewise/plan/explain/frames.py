"""Frames in words: when one is known, when it is certain that it will be one, and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from panewise.core.time import Domain
from panewise.frame.frame import Duplicates, Frame


def frame_facts(frame: Frame, domain: Domain) -> Iterator[str]:
    """One fact a line."""
    yield f"a frame is known {_known_text(frame)}, and {_certain_text(frame, domain)}"
    yield _wait_text(frame)


def _known_text(frame: Frame) -> str:
    """When all of a frame can be told."""
    if frame.known_at_end:
        return "when the stream has ended"
    return frame.kind.known_text(reaches=frame.liberal or frame.lasting)


def _certain_text(frame: Frame, domain: Domain) -> str:
    """When it is sure that there is a frame at all, which is sooner than its end is known."""
    if frame.known_at_end or frame.most or frame.kind.certain_at_end:
        return "certain at its end only"
    conditions = []
    if frame.least:
        conditions.append(f"it has {'' if frame.least.rows else 'lasted '}{frame.least.text(domain)}")
    if frame.some:
        conditions.append(f"{frame.some.sql.replace('`', '')} held once")
    opening = "first" if frame.kind.fewest_items == 1 else "second"
    sure = f"certain when {' and '.join(conditions)}" if conditions else f"certain with its {opening} item"
    return f"{sure}, then told whenever it has grown by {frame.fragments.text(domain)}" if frame.fragments else sure


def _wait_text(frame: Frame) -> str:
    if frame.schedule and frame.duplicates in (Duplicates.ERROR, Duplicates.FIRST):
        return "reports on schedule are taken at once, those after a gap wait for the watermark"
    return "rows wait for the watermark, and are taken in the order of time"
