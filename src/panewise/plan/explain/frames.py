"""Frames in words: when one is known, when it is certain that it will be one, and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from panewise.core.time import Domain
from panewise.frame.frame import BetweenFrames, CustomFrames, DensityFrames, Duplicates, Frame, Span, TrendFrames


def frame_facts(frame: Frame, domain: Domain) -> Iterator[str]:
    """One fact a line."""
    yield f"a frame is known {_known_text(frame)}, and {_certain_text(frame, domain)}"
    yield _wait_text(frame)


def _known_text(frame: Frame) -> str:
    """When all of a frame can be told."""
    match frame.kind:
        case _ if frame.effective_span is Span.MAXIMUM:
            return "when the stream has ended"
        case CustomFrames():
            return "when its function says so"
        case DensityFrames():
            return "when no item can join it any more"
        case _ if frame.liberal or frame.lasting:
            return "with the item after it, to which it reaches"
        case BetweenFrames():
            return "with the item that ends it"
        case _ if frame.certain_at_end:
            return "with its last item"
    return "with the first item that is not in it"


def _certain_text(frame: Frame, domain: Domain) -> str:
    """When it is sure that there is a frame at all, which is sooner than its end is known."""
    if frame.effective_span is Span.MAXIMUM or frame.most or frame.certain_at_end:
        return "certain at its end only"
    conditions = []
    if frame.least:
        conditions.append(f"it has {'' if frame.least.rows else 'lasted '}{frame.least.text(domain)}")
    if frame.some:
        conditions.append(f"{frame.some.sql.replace('`', '')} held once")
    sure = f"certain when {' and '.join(conditions)}" if conditions else f"certain with its {_opening_item(frame)} item"
    return f"{sure}, then told whenever it has grown by {frame.fragments.text(domain)}" if frame.fragments else sure


def _opening_item(frame: Frame) -> str:
    return "second" if isinstance(frame.kind, TrendFrames) else "first"


def _wait_text(frame: Frame) -> str:
    if frame.schedule and frame.duplicates in (Duplicates.ERROR, Duplicates.FIRST):
        return "reports on schedule are taken at once, those after a gap wait for the watermark"
    return "rows wait for the watermark, and are taken in the order of time"
