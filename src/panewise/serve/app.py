"""The paths of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from panewise.errors import BindProblem, PanewiseError
from panewise.runtime.json_text import json_bytes
from panewise.runtime.tailing import Tails, Unknown
from panewise.serve.answering import Answering, refuse_long
from panewise.serve.asking import Ask, info
from panewise.serve.desk import Desk, beside
from panewise.serve.encoding import ARROW, instant_value
from panewise.serve.events import HEARTBEAT, EventStream, Hub
from panewise.serve.limits import Busy, Limits, TooLarge
from panewise.serve.models import Found, Health, Lookup, Problem, Queries, QueryInfo, Registration
from panewise.serve.pages import Pages

log = logging.getLogger("panewise.serve")

#: Seconds without a look at the logs, beyond some that were to be, after which something is wrong.
STUCK = 5.0

Name = Annotated[str, Path(min_length=1, max_length=200)]
Instants = Annotated[list[str] | None, Query(max_length=100_000, description="Instants; the newest final one if none.")]
Window = Annotated[str | None, Query(max_length=64, description="How far back, instead of the query's own window.")]
Keys = Annotated[
    list[str] | None, Query(max_length=100_000, description="Groups; JSON lists where there are several keys.")
]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "the body cannot be read",
        401: "the token is missing or wrong",
        404: "there is no such query",
        413: "the request or its answer is too large",
        421: "the server is reached by another name",
        422: "the request cannot be understood or answered",
        503: "more is asked than can be done just now",
    }.items()
}
_FOUND: dict[int | str, dict[str, Any]] = _REFUSALS | {
    200: {"model": Found, "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}}
}
_WRITES: dict[int | str, dict[str, Any]] = _REFUSALS | {
    403: {"model": Problem, "description": "the server has no token"},
    409: {"model": Problem, "description": "the name is taken"},
}
_WRITER = [Depends(HTTPBearer(auto_error=False, description="The token that the server was started with."))]


def application(
    tails: Tails, hub: Hub, desk: Desk, limits: Limits, poll: float, heartbeat: float = HEARTBEAT
) -> FastAPI:
    """The server as an ASGI application: it follows its logs for as long as it runs."""

    @asynccontextmanager
    async def following(_: FastAPI) -> AsyncIterator[None]:
        await beside(tails.poll)
        task = asyncio.create_task(_followed(tails, hub, poll))
        try:
            yield
        finally:
            task.cancel()
            desk.close()

    app = FastAPI(
        title="Panewise lookups",
        summary="Any window of standing queries, from the panes that their pipelines have finished.",
        version="1",
        lifespan=following,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    _handle(app)
    _read(app, tails, hub, desk, poll)
    _write(app, tails, desk, limits)
    answering = Answering(tails, limits, desk, Pages())
    _look(app, tails, answering)
    _listen(app, tails, hub, answering, heartbeat)
    return app


async def _followed(tails: Tails, hub: Hub, poll: float) -> None:
    """Read what is new, again and again, and tell those who listen."""
    while True:
        await asyncio.sleep(poll)
        try:
            if await beside(tails.poll):
                await hub.publish()
        except Exception:
            log.exception("the logs could not be followed this time")


# ---- what is there -------------------------------------------------------------------------------------------------


def _read(app: FastAPI, tails: Tails, hub: Hub, desk: Desk, poll: float) -> None:
    @app.get("/health", tags=["server"])
    async def health() -> Health:
        """How the server is."""
        stuck = monotonic() - tails.polled > STUCK + 10 * poll
        begun = all(tail.name is not None for tail in tails.tails)
        status: Literal["ok", "waiting", "degraded", "overloaded"] = "ok" if begun else "waiting"
        status = "degraded" if stuck or tails.problems else "overloaded" if desk.full else status
        return Health(status=status, listeners=len(hub.listeners), texts=desk.waiting)

    @app.get("/queries", tags=["queries"], responses=_REFUSALS)
    def queries() -> Queries:
        """All queries that can be looked up."""
        found = []
        for name in tails.names:
            try:
                found.append(_shown(info(tails, name)))
            except PanewiseError as problem:
                log.debug("%s cannot be answered just now: %s", name, problem)
        return Queries(queries=found, problems=[str(problem) for problem in tails.problems])

    @app.get("/queries/{name}", tags=["queries"], responses=_REFUSALS)
    def query(name: Name) -> QueryInfo:
        """One query."""
        return _shown(info(tails, _known(tails, name)))


def _shown(found: dict[str, Any]) -> QueryInfo:
    domain = found.pop("domain")
    return QueryInfo(**found | {"final": instant_value(found["final"], domain)})


def _known(tails: Tails, name: str) -> str:
    """A name that stands; a text is none."""
    if name not in tails.names:
        raise Unknown(f"there is no query {name!r}", fix="GET /queries lists them")
    return name


def _write(app: FastAPI, tails: Tails, desk: Desk, limits: Limits) -> None:
    @app.put("/queries/{name}", tags=["queries"], responses=_WRITES, dependencies=_WRITER)
    async def register(request: Request, name: Name, registration: Registration) -> QueryInfo:
        """Let a query be answered under a name, until it is revoked or the server stops."""
        text = registration.query
        if name in tails.names and tails.named.get(name) != text:
            raise Taken(f"the name {name!r} is taken", fix="revoke it first, or choose another one")
        if len(tails.named) >= limits.queries:
            raise BindProblem("too many queries are registered", fix="revoke one first")
        refuse_long(text, limits)
        await desk.text(lambda _: tails.answering(text), request.receive)
        tails.named[name] = text
        return _shown(info(tails, name))

    @app.delete("/queries/{name}", tags=["queries"], responses=_WRITES, dependencies=_WRITER, status_code=204)
    def revoke(name: Name) -> None:
        """Let a query go that was registered here."""
        if tails.named.pop(_known(tails, name), None) is None:
            raise Taken(f"{name!r} is the query of a pane log", fix="revoke it from its pipeline")


# ---- lookups -------------------------------------------------------------------------------------------------------


def _look(app: FastAPI, tails: Tails, answering: Answering) -> None:
    @app.get("/queries/{name}/lookup", tags=["lookups"], responses=_FOUND)
    async def lookup(
        request: Request, name: Name, at: Instants = None, window: Window = None, key: Keys = None
    ) -> Response:
        """A query at some instants, for some groups or all."""
        ask = Ask(_known(tails, name), at or None, window, texts=key or None)
        return await answering.answer(ask, request)

    @app.post("/lookup", tags=["lookups"], responses=_FOUND)
    async def look(request: Request, wanted: Lookup) -> Response:
        """Any query over the same rows and groups, by its text, or one that stands, by its name."""
        ask = Ask(wanted.query, _several(wanted.at), wanted.window, _several(wanted.since), wanted.keys)
        return await answering.answer(ask, request)


def _several(value: Any) -> Sequence[Any] | None:
    return value if value is None or isinstance(value, list) else [value]


# ---- events --------------------------------------------------------------------------------------------------------


def _listen(app: FastAPI, tails: Tails, hub: Hub, answering: Answering, heartbeat: float) -> None:
    events: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}

    @app.get("/queries/{name}/events", tags=["lookups"], responses=_REFUSALS | events, response_class=Response)
    async def listen(
        name: Name,
        key: Keys = None,
        last_event_id: Annotated[str | None, Header(pattern="^-?[0-9]{1,19}$")] = None,
    ) -> Response:
        """The answer at each instant that becomes final, from the newest one on, or from the last one heard of."""
        ask = Ask(_known(tails, name), texts=key or None)
        await answering.event(ask)

        async def encode(instant: int) -> bytes:
            return await _event(answering, ask, instant)

        listener = await hub.join(name, None if last_event_id is None else int(last_event_id))
        return EventStream(hub, listener, encode, heartbeat)


async def _event(answering: Answering, ask: Ask, instant: int) -> bytes:
    """One event: the instant names it, so that a client that comes back can say where it stopped."""
    try:
        body, kind = await answering.event(ask, instant), b"result"
    except PanewiseError as problem:
        body, kind = json_bytes(_problem(problem)), b"problem"
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (instant, kind, body)


# ---- refusals ------------------------------------------------------------------------------------------------------


class Taken(BindProblem):
    """A name belongs to somebody else."""


def _handle(app: FastAPI) -> None:
    """Whatever goes wrong is said in one shape, and without anything of the inside."""

    @app.exception_handler(PanewiseError)
    async def refused(_: Request, problem: PanewiseError) -> Response:
        found = _refusal(_status(problem), _problem(problem))
        if isinstance(problem, Busy):
            found.headers["retry-after"] = "2"
        return found

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        where = " ".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return _refusal(422, {"error": f"{where or 'the request'}: {first['msg']}", "fix": "see /openapi.json"})

    @app.exception_handler(HTTPException)
    async def failed(_: Request, problem: HTTPException) -> Response:
        return _refusal(problem.status_code, {"error": str(problem.detail), "fix": "see /openapi.json"})

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> Response:
        # Starlette raises it again, so that it is logged.
        return _refusal(500, {"error": "the server failed", "fix": "see its log"})


def _status(problem: PanewiseError) -> int:
    for kind, status in _STATUS:
        if isinstance(problem, kind):
            return status
    return 422


_STATUS: tuple[tuple[type[PanewiseError], int], ...] = ((Unknown, 404), (Taken, 409), (TooLarge, 413), (Busy, 503))


def _problem(problem: PanewiseError) -> dict[str, Any]:
    place = {"line": problem.place.line, "column": problem.place.column} if problem.place else {}
    return {"error": problem.message, "fix": problem.fix, **place}


def _refusal(status: int, body: dict[str, Any]) -> Response:
    return Response(json_bytes(body), status, media_type="application/json")
