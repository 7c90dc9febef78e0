"""Whoever asks wrongly, too much, or without leave gets one clear sentence, and nobody else notices."""

from __future__ import annotations

import http.client
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import panewise as pw
from panewise.core.errors import PanewiseError, SourceProblem, StateProblem
from panewise.serve import Limits

from .logs import QUERY, TOKEN, Writer, ask

pytestmark = pytest.mark.slow

PUT: dict[str, Any] = {"method": "PUT", "body": {"query": QUERY}}


@pytest.mark.parametrize(
    ("token", "status"), [(None, 401), ("wrong", 401), (TOKEN[:-1], 401), (TOKEN + "x", 401), (TOKEN, 200)]
)
def test_writing_needs_the_token(url: str, token: str | None, status: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert ask(url, "/queries/mine", token=token, **PUT).status == status
        assert ask(url, "/queries/mine", "DELETE", token=token).status == (204 if status == 200 else 401)
    assert TOKEN not in caplog.text


def test_without_a_token_nothing_can_be_changed(writer: Writer) -> None:
    with pw.serve.LookupServer(writer.folder) as server:
        assert ask(server.url, "/queries/mine", token="whatever-it-may-be", **PUT).status == 403
        assert ask(server.url, "/queries/q").status == 200


def test_other_machines_need_the_token_for_everything(writer: Writer) -> None:
    with pytest.raises(PanewiseError, match="can be reached from other machines, and there is no token"):
        pw.serve.LookupServer(writer.folder, host="0.0.0.0")
    with pytest.raises(PanewiseError, match="16 or more plain characters"):
        pw.serve.LookupServer(writer.folder, token="guess")
    with pw.serve.LookupServer(writer.folder, host="0.0.0.0", token=TOKEN) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        for path in ("/queries", "/queries/q/lookup", "/queries/q/events", "/openapi.json"):
            assert ask(url, path).status == 401
        assert ask(url, "/lookup", "POST", {"query": "q"}).status == 401
        assert ask(url, "/queries/q/lookup", token=TOKEN).status == 200
        assert ask(url, "/health").json["status"] == "ok"


def test_pages_of_other_sites_do_not_reach_this_machine(url: str) -> None:
    host = url.removeprefix("http://")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", "/queries", headers={"Host": "evil.example:80"})
    assert connection.getresponse().status == 421
    connection.close()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"query": "SELECT k FROM"}, 422, "the name of a stream is missing"),
        ({"query": "SELECT k, SUM(x) AS s FROM S [RANGE 5 SLIDE 5] GROUP BY k"}, 422, "x"),
        ({"query": "SELECT k, MIN(v) AS s FROM S [RANGE 5 SLIDE 5] GROUP BY k"}, 422, "can answer this"),
        ({"query": "SELECT SUM(v) AS s FROM S [RANGE 5 SLIDE 5]"}, 422, "it groups by other columns"),
        ({"query": "SELECT k, SUM(v) AS s FROM S [ROWS 5] GROUP BY k"}, 422, "not decided by time alone"),
        ({"query": "SELECT k FROM S [RANGE 5]"}, 422, "answered from rows"),
        ({"query": "SELECT k, SUM(v) AS s FROM S [RANGE 5 SLIDE 1] GROUP BY k", "at": 33}, 422, "inside the pane"),
        ({"query": "q", "at": "tomorrow"}, 422, "not a whole number"),
        ({"query": "q", "at": 75, "window": "5 minutes"}, 422, "has a unit"),
        ({"query": "q", "at": 75, "window": 0}, 422, "not above zero"),
        ({"query": "q", "at": [70, 75], "since": [1]}, 422, "as many beginnings"),
        ({"query": "q", "at": 2**70}, 422, "outside of time"),
        ({"query": "q", "keys": {"x": [1]}}, 422, "'x' is no key"),
        ({"query": "q", "keys": {"k": [1]}}, 422, "are no string"),
        ({"query": "q", "keys": {}}, 422, "no key is given"),
        ({"query": "q", "wherever": 1}, 422, "wherever"),
        ({"query": "none"}, 404, "there is no query 'none'"),
        (b"{", 422, "JSON"),
        (b"[" * 500_000, 400, "error parsing the body"),
    ],
)
def test_a_malformed_request_is_refused_in_one_sentence(url: str, body: Any, status: int, message: str) -> None:
    reply = ask(url, "/lookup", "POST", body)
    assert (reply.status, reply.type) == (status, "application/json")
    assert message in reply.json["error"]
    assert "Traceback" not in reply.body.decode()
    assert ask(url, "/health").json["status"] == "ok"


def test_the_place_in_the_text_is_said(url: str) -> None:
    reply = ask(url, "/lookup", "POST", {"query": "SELECT k,\n  SUM(nothing) AS s FROM S [RANGE 5 SLIDE 5] GROUP BY k"})
    assert (reply.json["line"], reply.json["column"]) == (2, 7)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_refused_with_and_without_its_length(url: str, chunked: bool) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    chunks = [b'{"query": "'] + [b"x" * 65536] * 32
    try:
        body: Any = iter(chunks) if chunked else b"".join(chunks)
        connection.request("POST", "/lookup", body, {"Content-Type": "application/json"}, encode_chunked=chunked)
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # It was told to stop sending before it had sent all.
    finally:
        connection.close()


def test_limits(writer: Writer) -> None:
    limits = Limits(windows=3, keys=2, rows=5, reach=30, queries=1)
    with pw.serve.LookupServer(writer.folder, limits=limits, token=TOKEN) as server:

        def status(**asked: Any) -> tuple[int, str]:
            reply = ask(server.url, "/lookup", "POST", {"query": "q", **asked})
            return reply.status, reply.json.get("error", "")

        assert status(at=[60, 65, 70, 75]) == (422, "4 windows are too many for one lookup")
        assert status(keys={"k": ["a", "b", "c"]}) == (422, "3 groups are too many for one lookup")
        assert status(at=[65, 70, 75]) == (413, "the answer has more than 5 rows")
        assert status(at=75, window=35)[0] == 422
        assert status(at=75, since=-(2**60))[0] == 422
        assert status(at=75, window=30)[0] == 200
        wide = "SELECT k, SUM(v) AS s FROM S [RANGE 1000000 SLIDE 5] GROUP BY k"
        reply = ask(server.url, "/lookup", "POST", {"query": wide})
        assert (reply.status, "reaches over more time" in reply.json["error"]) == (422, True)
        assert ask(server.url, "/queries/one", token=TOKEN, **PUT).status == 200
        assert ask(server.url, "/queries/two", token=TOKEN, **PUT).status == 422
    with pw.serve.LookupServer(writer.folder, limits=Limits(bytes=100)) as server:
        assert ask(server.url, "/queries/q/lookup").status == 413
    with pw.serve.LookupServer(writer.folder, limits=Limits(cells=8)) as server:
        assert ask(server.url, "/queries/q/lookup", at=[65, 70, 75]).json["error"].startswith("12 windows of groups")
    with pytest.raises(PanewiseError, match="limit rows is 0"):
        Limits(rows=0)


def test_a_server_that_cannot_be(writer: Writer) -> None:
    with pytest.raises(PanewiseError, match="no pane log to serve"):
        pw.serve.LookupServer()
    with pw.serve.LookupServer(writer.folder) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(SourceProblem, match="cannot be listened on"):
            pw.serve.LookupServer(writer.folder, port=port).start()
        with pytest.raises(StateProblem, match="listens already"):
            server.start()
    with pytest.raises(StateProblem, match="does not listen"):
        _ = server.url


def test_panewise_works_without_fastapi() -> None:
    code = """
import sys
import panewise as pw
assert not {"fastapi", "starlette", "uvicorn"} & set(sys.modules)
sys.modules["fastapi"] = sys.modules["starlette"] = sys.modules["uvicorn"] = None
try:
    pw.serve.LookupServer
except pw.PanewiseError as problem:
    print(problem)
"""
    source = str(Path(pw.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": source}
    )
    assert "pip install 'panewise[serve]'" in done.stdout
