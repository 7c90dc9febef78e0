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

from panewise.core.errors import BindProblem, PanewiseError
from panewise.runtime.json_text import json_bytes
from panewise.runtime.log_readers import LogReaders, UnknownQuery
from panewise.serve.answers import LookupService, refuse_long
from panewise.serve.encoding import ARROW, instant_value
from panewise.serve.events import HEARTBEAT, EventHub, EventStream
from panewise.serve.limits import Busy, Limits, TooLarge
from panewise.serve.models import Health, Lookup, LookupResponse, Problem, Queries, QueryInfo, Registration
from panewise.serve.page_cache import PageCache
from panewise.serve.requests import LookupRequest, query_info
from panewise.serve.scheduler import LookupScheduler, run_in_thread

log = logging.getLogger("panewise.serve")

#: If the logs were not polled for this many seconds longer than planned, the server is overloaded.
STUCK_SECONDS = 5.0

NameParameter = Annotated[str, Path(min_length=1, max_length=200)]
InstantsParameter = Annotated[
    list[str] | None, Query(max_length=100_000, description="Instants; the newest final one if none.")
]
WindowParameter = Annotated[
    str | None, Query(max_length=64, description="How far back, instead of the query's own window.")
]
KeysParameter = Annotated[
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
_LOOKUP_RESPONSES: dict[int | str, dict[str, Any]] = _REFUSALS | {
    200: {"model": LookupResponse, "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}}
}
_WRITE_RESPONSES: dict[int | str, dict[str, Any]] = _REFUSALS | {
    403: {"model": Problem, "description": "the server has no token"},
    409: {"model": Problem, "description": "the name is taken"},
}
_WRITE_TOKEN = [Depends(HTTPBearer(auto_error=False, description="The token that the server was started with."))]


def application(
    readers: LogReaders,
    hub: EventHub,
    scheduler: LookupScheduler,
    limits: Limits,
    poll: float,
    heartbeat: float = HEARTBEAT,
) -> FastAPI:
    """The server as an ASGI application: it reads its logs as long as it runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_thread(readers.poll)
        task = asyncio.create_task(_follow_logs(readers, hub, poll))
        try:
            yield
        finally:
            task.cancel()
            scheduler.close()

    app = FastAPI(
        title="Panewise lookups",
        summary="Any window of standing queries, from the panes that their pipelines have finished.",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    _add_error_handlers(app)
    _add_query_routes(app, readers, hub, scheduler, poll)
    _add_registration_routes(app, readers, scheduler, limits)
    answering = LookupService(readers, limits, scheduler, PageCache())
    _add_lookup_routes(app, readers, answering)
    _add_event_route(app, readers, hub, answering, heartbeat)
    return app


async def _follow_logs(readers: LogReaders, hub: EventHub, poll: float) -> None:
    """Poll the logs again and again, and publish new instants to event clients."""
    while True:
        await asyncio.sleep(poll)
        try:
            if await run_in_thread(readers.poll):
                await hub.publish()
        except Exception:
            log.exception("the pane logs could not be read; the next attempt follows")


# ---- queries --------------------------------------------------------------------------------------------------------


def _add_query_routes(
    app: FastAPI, readers: LogReaders, hub: EventHub, scheduler: LookupScheduler, poll: float
) -> None:
    @app.get("/health", tags=["server"])
    async def health() -> Health:
        """The condition of the server."""
        stuck = monotonic() - readers.polled > STUCK_SECONDS + 10 * poll
        begun = all(reader.name is not None for reader in readers.logs)
        status: Literal["ok", "waiting", "degraded", "overloaded"] = "ok" if begun else "waiting"
        status = "degraded" if stuck or readers.problems else "overloaded" if scheduler.full else status
        return Health(status=status, listeners=len(hub.listeners), texts=scheduler.waiting)

    @app.get("/queries", tags=["queries"], responses=_REFUSALS)
    def queries() -> Queries:
        """All queries that can be looked up."""
        found = []
        for name in readers.names:
            try:
                found.append(_info_model(query_info(readers, name)))
            except PanewiseError as problem:
                log.debug("%s cannot be answered just now: %s", name, problem)
        return Queries(queries=found, problems=[str(problem) for problem in readers.problems])

    @app.get("/queries/{name}", tags=["queries"], responses=_REFUSALS)
    def query(name: NameParameter) -> QueryInfo:
        """One query."""
        return _info_model(query_info(readers, _check_name(readers, name)))


def _info_model(found: dict[str, Any]) -> QueryInfo:
    domain = found.pop("domain")
    return QueryInfo(**found | {"final": instant_value(found["final"], domain)})


def _check_name(readers: LogReaders, name: str) -> str:
    """Refuse a name that is no registered query, such as a text."""
    if name not in readers.names:
        raise UnknownQuery(f"there is no query {name!r}", fix="GET /queries lists them")
    return name


def _add_registration_routes(app: FastAPI, readers: LogReaders, scheduler: LookupScheduler, limits: Limits) -> None:
    @app.put("/queries/{name}", tags=["queries"], responses=_WRITE_RESPONSES, dependencies=_WRITE_TOKEN)
    async def register(request: Request, name: NameParameter, registration: Registration) -> QueryInfo:
        """Register a query under a name, until it is revoked or the server stops."""
        text = registration.query
        if name in readers.names and readers.named.get(name) != text:
            raise NameTaken(f"the name {name!r} is taken", fix="revoke it first, or choose another one")
        if len(readers.named) >= limits.queries:
            raise BindProblem("too many queries are registered", fix="revoke one first")
        refuse_long(text, limits)
        await scheduler.run_text(lambda _: readers.find_log_for_text(text), request.receive)
        readers.named[name] = text
        return _info_model(query_info(readers, name))

    @app.delete(
        "/queries/{name}", tags=["queries"], responses=_WRITE_RESPONSES, dependencies=_WRITE_TOKEN, status_code=204
    )
    def revoke(name: NameParameter) -> None:
        """Revoke a query that was registered here."""
        if readers.named.pop(_check_name(readers, name), None) is None:
            raise NameTaken(f"{name!r} is the query of a pane log", fix="revoke it from its pipeline")


# ---- lookups -------------------------------------------------------------------------------------------------------


def _add_lookup_routes(app: FastAPI, readers: LogReaders, answering: LookupService) -> None:
    @app.get("/queries/{name}/lookup", tags=["lookups"], responses=_LOOKUP_RESPONSES)
    async def lookup(
        request: Request,
        name: NameParameter,
        at: InstantsParameter = None,
        window: WindowParameter = None,
        key: KeysParameter = None,
    ) -> Response:
        """The answer of a query at some instants, for some groups or all."""
        lookup_request = LookupRequest(_check_name(readers, name), at or None, window, texts=key or None)
        return await answering.answer(lookup_request, request)

    @app.post("/lookup", tags=["lookups"], responses=_LOOKUP_RESPONSES)
    async def look(request: Request, wanted: Lookup) -> Response:
        """The answer of any query over the same rows and groups, by its text, or of a registered query, by its name."""
        lookup_request = LookupRequest(
            wanted.query, _as_list(wanted.at), wanted.window, _as_list(wanted.since), wanted.keys
        )
        return await answering.answer(lookup_request, request)


def _as_list(value: Any) -> Sequence[Any] | None:
    return value if value is None or isinstance(value, list) else [value]


# ---- events --------------------------------------------------------------------------------------------------------


def _add_event_route(
    app: FastAPI, readers: LogReaders, hub: EventHub, answering: LookupService, heartbeat: float
) -> None:
    events: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}

    @app.get("/queries/{name}/events", tags=["lookups"], responses=_REFUSALS | events, response_class=Response)
    async def listen(
        name: NameParameter,
        key: KeysParameter = None,
        last_event_id: Annotated[str | None, Header(pattern="^-?[0-9]{1,19}$")] = None,
    ) -> Response:
        """The answer at each instant that becomes final, from the newest one on, or from the last one the client
        received."""
        lookup_request = LookupRequest(_check_name(readers, name), texts=key or None)
        await answering.event_content(lookup_request)

        async def encode(instant: int) -> bytes:
            return await _encode_event(answering, lookup_request, instant)

        listener = await hub.join(name, None if last_event_id is None else int(last_event_id))
        return EventStream(hub, listener, encode, heartbeat)


async def _encode_event(answering: LookupService, lookup_request: LookupRequest, instant: int) -> bytes:
    """One event; its identity is the instant, so that a client that connects again can name the last one it
    received."""
    try:
        body, kind = await answering.event_content(lookup_request, instant), b"result"
    except PanewiseError as problem:
        body, kind = json_bytes(_problem_body(problem)), b"problem"
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (instant, kind, body)


# ---- refusals ------------------------------------------------------------------------------------------------------


class NameTaken(BindProblem):
    """The name belongs to another query."""


def _add_error_handlers(app: FastAPI) -> None:
    """Give all errors one shape, without internal details."""

    @app.exception_handler(PanewiseError)
    async def on_panewise_error(_: Request, problem: PanewiseError) -> Response:
        found = _refusal(_status(problem), _problem_body(problem))
        if isinstance(problem, Busy):
            found.headers["retry-after"] = "2"
        return found

    @app.exception_handler(RequestValidationError)
    async def on_invalid_request(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        where = " ".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return _refusal(422, {"error": f"{where or 'the request'}: {first['msg']}", "fix": "see /openapi.json"})

    @app.exception_handler(HTTPException)
    async def on_http_error(_: Request, problem: HTTPException) -> Response:
        return _refusal(problem.status_code, {"error": str(problem.detail), "fix": "see /openapi.json"})

    @app.exception_handler(Exception)
    async def on_exception(_: Request, __: Exception) -> Response:
        # Starlette raises it again, so that it is logged.
        return _refusal(500, {"error": "the server failed", "fix": "see its log"})


def _status(problem: PanewiseError) -> int:
    for kind, status in _STATUS:
        if isinstance(problem, kind):
            return status
    return 422


_STATUS: tuple[tuple[type[PanewiseError], int], ...] = (
    (UnknownQuery, 404),
    (NameTaken, 409),
    (TooLarge, 413),
    (Busy, 503),
)


def _problem_body(problem: PanewiseError) -> dict[str, Any]:
    place = {"line": problem.place.line, "column": problem.place.column} if problem.place else {}
    return {"error": problem.message, "fix": problem.fix, **place}


def _refusal(status: int, body: dict[str, Any]) -> Response:
    return Response(json_bytes(body), status, media_type="application/json")
