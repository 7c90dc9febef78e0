"""`panewise serve` and `panewise lookup`: pane logs over HTTP, and lookups in them, with a server or without."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa
from rich.console import Console
from rich.markup import escape

from panewise import serve
from panewise.cli.output import Output, write_result
from panewise.cli.show import result_table
from panewise.core.errors import PanewiseError, SourceProblem
from panewise.runtime.json_text import json_bytes
from panewise.runtime.log_readers import LogReaders
from panewise.serve.encoding import ARROW
from panewise.serve.limits import Limits
from panewise.serve.requests import LookupRequest, ResolvedLookup
from panewise.serve.scheduler import RequestBudget

#: The environment variable that holds the token, so that no list of processes shows it.
TOKEN_VARIABLE = "PANEWISE_TOKEN"

#: No limits, for a user who reads a log directly.
_NO_LIMITS = Limits(windows=1 << 40, keys=1 << 40, cells=1 << 40, rows=1 << 40, bytes=1 << 60)


def read_token(file: Path | None) -> str | None:
    """The token in a file, or else in the environment."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE)
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise SourceProblem(f"the token in '{file}' cannot be read: {reason}", fix="check the path") from None


def serve_logs(
    console: Console, logs: Sequence[Path], host: str, port: int, token: str | None, keep: str | None, poll: float
) -> None:
    """Serve pane logs until interrupted."""
    server = serve.LookupServer(*logs, host=host, port=port, token=token, keep=keep, poll=poll)
    server.listen()
    names = ", ".join(str(log) for log in logs)
    console.print(f"serving {escape(names)} at {server.url}", soft_wrap=True, highlight=False)
    server.run()


def show_lookup(
    console: Console,
    place: str,
    query: str | None,
    at: Sequence[str],
    window: str | None,
    keys: Sequence[str],
    output: Output,
    token: str | None,
) -> None:
    """Ask a server, or read a log directly, and show the answer."""
    remote = place.startswith(("http://", "https://"))
    lookup = LookupRequest(query or "", list(at) or None, window, texts=list(keys) or None)
    table = _look_up_on_server(place, lookup, token) if remote else _look_up_in_log(Path(place), lookup)
    if output is Output.TABLE:
        console.print(result_table(query or place, table))
    else:
        write_result(table, output)


def _look_up_in_log(folder: Path, lookup: LookupRequest) -> pa.Table:
    """The answer from a log, without a server."""
    readers = LogReaders([folder])
    readers.poll()
    for problem in readers.problems:
        raise problem
    (reader,) = readers.logs
    if reader.contents is None:
        raise SourceProblem(f"'{folder}' is no pane log", fix="name the folder that PANES INTO writes")
    named = lookup if lookup.query else LookupRequest(str(reader.name), lookup.at, lookup.window, texts=lookup.texts)
    return ResolvedLookup(named, readers, _NO_LIMITS).answer(RequestBudget()).table


def _look_up_on_server(url: str, lookup: LookupRequest, token: str | None) -> pa.Table:
    """The answer from a server."""
    name = lookup.query or _only_query(url, token)
    if len(name.split()) > 1:
        if lookup.texts is not None:
            raise PanewiseError("--key goes with the name of a query, not with its text", fix="leave one of them out")
        body = {
            "query": name,
            "at": lookup.at and [_number_or_text(str(each)) for each in lookup.at],
            "window": lookup.window,
        }
        return pa.ipc.open_stream(_fetch(f"{_base_url(url)}/lookup", token, body)).read_all()
    given = {"at": lookup.at, "window": lookup.window, "key": lookup.texts}
    parameters = urlencode({key: value for key, value in given.items() if value is not None}, doseq=True)
    path = f"{_base_url(url)}/queries/{quote(name, safe='')}/lookup{'?' if parameters else ''}{parameters}"
    return pa.ipc.open_stream(_fetch(path, token)).read_all()


def _number_or_text(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


def _only_query(url: str, token: str | None) -> str:
    """The query of a server that has only one."""
    names = [query["name"] for query in json.loads(_fetch(f"{_base_url(url)}/queries", token))["queries"]]
    if len(names) != 1:
        known = ", ".join(names) or "none yet"
        raise PanewiseError(f"the server has {len(names)} queries", fix=f"name one of them with --query: {known}")
    return str(names[0])


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _fetch(url: str, token: str | None, body: Any = None) -> bytes:
    headers = {"Accept": f"{ARROW}, application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Content-Type": "application/json"} if body is not None else {}
    request = urllib.request.Request(url, None if body is None else json_bytes(body), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            found: bytes = reply.read()
            return found
    except urllib.error.HTTPError as problem:
        with problem:
            refusal = _parse_refusal(problem.read())
        raise PanewiseError(
            f"the server refuses: {refusal.get('error', problem.reason)}", fix=refusal.get("fix")
        ) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "reason", problem)
        raise SourceProblem(
            f"the server at {_base_url(url)} cannot be reached: {reason}", fix="check its address"
        ) from None


def _parse_refusal(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
