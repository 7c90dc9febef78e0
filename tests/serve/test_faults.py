"""Logs that are damaged or written anew, and a server that is restarted: old answers perhaps, wrong ones never."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import panewise as pw
from panewise.runtime.pane_log import HEADER

from .logs import QUERY, Writer, ask, ordered, rows
from .test_lookups import until

pytestmark = pytest.mark.slow

SERVE = "import sys; from panewise.cli import main; main()"


def test_a_damaged_batch_stops_the_log_and_not_the_server(folder: Path) -> None:
    """Nothing after a batch that cannot be read is answered, since something would be missing from it."""
    writer = Writer(folder).write(rows(0, 40)).write(rows(40, 80)).write(rows(80, 120))
    file = next((folder / "batch=1").glob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        assert ask(server.url, "/queries/q").json["final"] == 35
        assert ask(server.url, "/health").json["status"] == "degraded"
        (problem,) = ask(server.url, "/queries").json["problems"]
        assert "cannot be read" in problem
        assert "restore the files from a copy" in problem
        found = ask(server.url, "/queries/q/lookup", at=35).rows
        assert ordered(found) == ordered([row for row in writer.results() if row["w_end"] == 35])
        file.write_bytes(whole)
        until(lambda: ask(server.url, "/health").json["status"] == "ok")
        assert ask(server.url, "/queries/q").json["final"] == 115


def test_a_damaged_header(folder: Path) -> None:
    Writer(folder).write(rows(0, 40))
    (folder / HEADER).write_text("{")
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        assert ask(server.url, "/health").json["status"] == "degraded"
        assert "is damaged" in ask(server.url, "/queries").json["problems"][0]
    (folder / HEADER).write_text(json.dumps({"name": "q", "pool": {}, "writer": "", "format": 99}))
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        assert "has format 99" in ask(server.url, "/queries").json["problems"][0]


def test_a_batch_is_replaced_and_a_log_is_begun_anew(folder: Path) -> None:
    """A batch that is done again has the same panes; another log has others, whatever the numbers of its batches."""
    writer = Writer(folder).write(rows(0, 40)).write(rows(40, 80))
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        before = ask(server.url, "/queries/q/lookup", at=[35, 75]).rows
        batch = writer.log.batches()[1].read(writer.tap._format_of("q").schema)
        writer.log.write(batch, 1)
        (folder / ".draft-of-somebody").mkdir()
        time.sleep(0.2)
        assert ask(server.url, "/queries/q/lookup", at=[35, 75]).rows == before
        shutil.rmtree(folder)
        time.sleep(0.1)
        assert ask(server.url, "/queries/q/lookup", at=[35, 75]).rows == before
        other = Writer(folder, QUERY.replace("RANGE 20", "RANGE 10")).write(rows(0, 30))
        until(lambda: ask(server.url, "/queries/q").json["final"] == 25)
        found = ask(server.url, "/queries/q/lookup", at=25).rows
        assert ordered(found) == ordered([row for row in other.results() if row["w_end"] == 25])


def test_two_logs_of_one_name_and_others(folder: Path, tmp_path: Path) -> None:
    Writer(folder).write(rows(0, 40))
    Writer(tmp_path / "other", name="other").write(rows(0, 60))
    Writer(tmp_path / "again").write(rows(0, 20))
    with pw.serve.LookupServer(folder, tmp_path / "other") as server:
        assert ask(server.url, "/health").json["status"] == "ok"
        assert [q["name"] for q in ask(server.url, "/queries").json["queries"]] == ["q", "other"]
        assert ask(server.url, "/queries/other").json["final"] == 55
    with pw.serve.LookupServer(folder, tmp_path / "again") as server:
        assert ask(server.url, "/queries").json["problems"] == ["several logs hold a query 'q'; serve them apart"]
        assert ask(server.url, "/queries/q").json["final"] == 35


def serving(folder: Path, port: int, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SERVE, "serve", str(folder), "--port", str(port)]
    environment = {**os.environ, "COLUMNS": "200", **environment}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_restart_under_load(writer: Writer) -> None:
    """Clients see right answers or none; afterwards they see the same ones."""
    results: dict[int, list[dict[str, Any]]] = {}
    for row in writer.results():
        results.setdefault(row["w_end"], []).append(row)
    instants = sorted(results)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    wrong: list[Any] = []
    right: list[Any] = []
    lost: list[int] = []
    running = threading.Event()

    def load(number: int) -> None:
        while not running.is_set():
            instant = instants[number % len(instants)]
            number += 1
            try:
                reply = ask(url, "/queries/q/lookup", at=instant)
            except (OSError, http.client.HTTPException):
                lost.append(instant)
                time.sleep(0.01)
                continue
            good = reply.status == 200 and ordered(reply.rows) == ordered(results[instant])
            (right if good else wrong).append((instant, reply))

    process = serving(writer.folder, port)
    clients = [threading.Thread(target=load, args=(n,)) for n in range(3)]
    try:
        for client in clients:
            client.start()
        until(lambda: len(right) > 30)
        process.kill()
        until(lambda: len(lost) > 5)
        process.wait()
        with pw.serve.LookupServer(writer.folder, port=port):
            served = len(right)
            until(lambda: len(right) > served + 30)
    finally:
        running.set()
        for client in clients:
            client.join()
        process.kill()
        process.communicate()
    assert not wrong


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def test_a_log_that_has_gone_is_told_by_health(folder: Path) -> None:
    """Answers go on from what was read; health says that nothing more will come."""
    writer = Writer(folder).write(rows(0, 40))
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        assert ask(server.url, "/health").json["status"] == "ok"
        kept = folder.rename(folder.with_name("elsewhere"))
        until(lambda: ask(server.url, "/health").json["status"] == "degraded")
        assert "has gone" in ask(server.url, "/queries").json["problems"][0]
        found = ask(server.url, "/queries/q/lookup", at=35).rows
        assert ordered(found) == ordered([row for row in writer.results() if row["w_end"] == 35])
        kept.rename(folder)
        until(lambda: ask(server.url, "/health").json["status"] == "ok")


def test_a_header_that_is_replaced_is_told_by_health(folder: Path) -> None:
    """Also long after the last batch, when nothing else of the folder changes."""
    Writer(folder).write(rows(0, 40))
    long_ago = time.time() - 60
    header = folder / HEADER
    before = header.read_text()
    os.utime(header, (long_ago, long_ago))
    os.utime(folder, (long_ago, long_ago))
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        time.sleep(0.2)
        header.write_text("{}")
        until(lambda: ask(server.url, "/health").json["status"] == "degraded")
        header.write_text(before)
        until(lambda: ask(server.url, "/health").json["status"] == "ok")


def test_a_log_that_cannot_be_looked_at_is_told_by_health(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that hangs: the server goes on with what it has, says so, and can be stopped."""
    monkeypatch.setattr("panewise.serve.app.STUCK_SECONDS", 0.2)
    Writer(folder).write(rows(0, 40))
    hanging = threading.Event()
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        assert ask(server.url, "/health").json["status"] == "ok"
        monkeypatch.setattr(server._readers.logs[0], "poll", lambda: hanging.wait(30))
        until(lambda: ask(server.url, "/health").json["status"] == "degraded")
        assert ask(server.url, "/queries/q/lookup", at=35).status == 200
        start = time.monotonic()
    assert time.monotonic() - start < 10
    hanging.set()
