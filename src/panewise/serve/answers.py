"""From a lookup request to the bytes of its answer: short lookups run at once, long ones in the lookup scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from panewise.runtime.log_readers import LogReaders
from panewise.serve.encoding import ARROW, arrow_bytes, describe_columns, instant_value, json_answer
from panewise.serve.limits import Limits, TooLarge
from panewise.serve.page_cache import PageCache
from panewise.serve.requests import LookupAnswer, LookupRequest, ResolvedLookup
from panewise.serve.scheduler import LookupScheduler, Receive, RequestBudget, run_in_thread

#: How many events are kept for all clients, and how many bytes each may have.
MAX_EVENTS, MAX_EVENT_BYTES = 64, 1 << 20
#: Bytes of an answer that are sent at once; other clients are served between two pieces.
PIECE_BYTES = 1 << 18

Content = bytes | bytearray


@dataclass(frozen=True)
class LookupService:
    """Answers the lookups of one server."""

    readers: LogReaders
    limits: Limits
    scheduler: LookupScheduler
    pages: PageCache
    _events: dict[Hashable, asyncio.Future[Content]] = field(default_factory=dict)

    async def answer(self, wanted: LookupRequest, request: Request) -> Response:
        """The answer to one request."""
        arrow = ARROW in (request.headers.get("accept") or "")
        content = await self.encode_answer(wanted, arrow=arrow, receive=request.receive)
        return _response(content, ARROW if arrow else "application/json")

    async def encode_answer(
        self, wanted: LookupRequest, instant: int | None = None, arrow: bool = False, receive: Receive | None = None
    ) -> Content:
        """The answer as bytes, for the requested instants or for one instant."""
        name = next((reader.name for reader in self.readers.logs if reader.name == wanted.query), None)
        if name is None:
            refuse_long(wanted.query, self.limits)
            return await self.scheduler.run_text(
                lambda budget: self._encode(ResolvedLookup(wanted, self.readers, self.limits), budget, instant, arrow),
                receive,
            )
        resolved = ResolvedLookup(wanted, self.readers, self.limits, self.pages)
        if resolved.is_light and resolved.is_free:
            return self._encode(resolved, RequestBudget(), instant, arrow)
        if resolved.is_light:
            return await run_in_thread(lambda: self._encode(resolved, RequestBudget(), instant, arrow))
        return await self.scheduler.run_lookup(lambda budget: self._encode(resolved, budget, instant, arrow), receive)

    async def event_content(self, wanted: LookupRequest, instant: int | None = None) -> Content:
        """The content of an event, which is made once for all clients with the same request and kept until newer events
        come."""
        edition = self.readers.find_log(wanted.query)[0].begun_contents.edition
        key = (edition, wanted.query, tuple(wanted.texts or ()), instant)
        known = self._events.get(key)
        if known is None or (known.done() and (known.cancelled() or known.exception() is not None)):
            while len(self._events) >= MAX_EVENTS:
                del self._events[next(iter(self._events))]
            known = self._events[key] = asyncio.ensure_future(self.encode_answer(wanted, instant))
        found = await asyncio.shield(known)
        if len(found) > MAX_EVENT_BYTES:
            self._events.pop(key, None)
        return found

    def _encode(self, resolved: ResolvedLookup, budget: RequestBudget, instant: int | None, arrow: bool) -> Content:
        answer = resolved.answer(budget, instant)
        if not arrow:
            return json_answer(_head(answer), answer.table, self.limits.bytes, budget.check)
        content = arrow_bytes(answer.table)
        if len(content) > self.limits.bytes:
            raise TooLarge(
                f"the answer has more than {self.limits.bytes:,} bytes", fix="ask for fewer windows or groups"
            )
        return content


def _response(content: Content, kind: str) -> Response:
    """A response with the whole content, or in pieces where copying it would keep other clients waiting."""
    if len(content) <= PIECE_BYTES:
        return Response(bytes(content), media_type=kind)
    return StreamingResponse(_pieces(content), media_type=kind, headers={"content-length": str(len(content))})


async def _pieces(content: Content) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE_BYTES):
        yield bytes(content[start : start + PIECE_BYTES])


def refuse_long(text: str, limits: Limits) -> None:
    """Refuse a text that is too long before it is parsed."""
    if len(text) > limits.text:
        raise TooLarge(f"the query has {len(text):,} characters, more than {limits.text:,}", fix="ask for less at once")


def _head(answer: LookupAnswer) -> dict[str, Any]:
    return {
        "query": answer.query,
        "final": instant_value(answer.final, answer.domain),
        "columns": describe_columns(answer.table),
    }
