"""Frames in words: when one is known, when it is certain that it will be one, and what is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from panewise.algebra.framing import Between, Custom, Density, Duplicates, Frame, Span, Trend
from panewise.time import Domain


def frame_facts(frame: Frame, domain: Domain) -> Iterator[str]:
    """One fact a line."""
    yield f"a frame is known {_known(frame)}, and {_certain(frame, domain)}"
    yield _awaited(frame)


def _known(frame: Frame) -> str:
    """When all of a frame can be told."""
    match frame.kind:
        case _ if frame.spans is Span.MAXIMUM:
            return "when the stream has ended"
        case Custom():
            return "when its function says so"
        case Density():
            return "when no item can join it any more"
        case _ if frame.liberal or frame.lasting:
            return "with the item after it, to which it reaches"
        case Between():
            return "with the item that ends it"
        case _ if frame.sudden:
            return "with its last item"
    return "with the first item that is not in it"


def _certain(frame: Frame, domain: Domain) -> str:
    """When it is sure that there is a frame at all, which is sooner than its end is known."""
    if frame.spans is Span.MAXIMUM or frame.most or frame.sudden:
        return "certain at its end only"
    conditions = []
    if frame.least:
        conditions.append(f"it has {'' if frame.least.rows else 'lasted '}{frame.least.text(domain)}")
    if frame.some:
        conditions.append(f"{frame.some.sql.replace('`', '')} held once")
    sure = f"certain when {' and '.join(conditions)}" if conditions else f"certain with its {_opening(frame)} item"
    return f"{sure}, then told whenever it has grown by {frame.fragments.text(domain)}" if frame.fragments else sure


def _opening(frame: Frame) -> str:
    return "second" if isinstance(frame.kind, Trend) else "first"


def _awaited(frame: Frame) -> str:
    if frame.schedule and frame.duplicates in (Duplicates.ERROR, Duplicates.FIRST):
        return "reports on schedule are taken at once, those after a gap wait for the watermark"
    return "rows wait for the watermark, and are taken in the order of time"
