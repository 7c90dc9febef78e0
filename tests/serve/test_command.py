"""`panewise serve` and `panewise lookup` as a user meets them."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

import panewise as pw
from panewise.cli.output import Output
from panewise.cli.serving import read_token, serve_logs, show_lookup
from panewise.core.errors import PanewiseError, SourceProblem

from .logs import QUERY, TOKEN, Writer, ask, ordered
from .test_faults import free_port, serving

pytestmark = pytest.mark.slow

TEXT = QUERY.replace("RANGE 20", "RANGE 10")


def test_serve_tells_its_address_and_ends_in_peace(writer: Writer) -> None:
    port = free_port()
    process = serving(writer.folder, port, PANEWISE_TOKEN=TOKEN)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == f"serving {writer.folder} at http://127.0.0.1:{port}"
        assert ask(f"http://127.0.0.1:{port}", "/queries/q/lookup", at=70).status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("query", [None, "q", TEXT])
def test_lookup_with_a_server_and_without(
    writer: Writer, url: str, query: str | None, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = []
    for place in (url, url + "/", str(writer.folder)):
        for output in (Output.JSON, Output.ARROW):
            show_lookup(Console(), place, query, ["60", "70"], None, [], output, None)
            data = capsysbinary.readouterr().out
            found.append(json.loads(data) if output is Output.JSON else pa.ipc.open_stream(data).read_all().to_pylist())
    body = {"query": query or "q", "at": [60, 70]}
    assert all(ordered(each) == ordered(ask(url, "/lookup", "POST", body).rows) for each in found)


def test_lookup_prints_a_table(writer: Writer, url: str) -> None:
    for place in (url, str(writer.folder)):
        console = Console(file=io.StringIO(), width=100)
        show_lookup(console, place, "q", ["70"], "20", ["k1"], Output.TABLE, None)
        assert isinstance(console.file, io.StringIO)
        assert "k1" in console.file.getvalue()
        assert "k2" not in console.file.getvalue()


def test_what_goes_wrong_is_said(writer: Writer, url: str, tmp_path: Path) -> None:
    def refused(place: str, query: str | None = None, key: str | None = None) -> str:
        with pytest.raises(PanewiseError) as problem:
            show_lookup(Console(), place, query, [], None, [key] if key else [], Output.JSON, None)
        return str(problem.value)

    assert refused(url, "none").startswith("the server refuses: there is no query 'none'; GET /queries")
    assert "cannot be reached" in refused(f"http://127.0.0.1:{free_port()}")
    assert refused(str(tmp_path)) == f"'{tmp_path}' is no pane log; name the folder that PANES INTO writes"
    assert refused(url, TEXT, "k1").startswith("--key goes with the name of a query")
    with pytest.raises(PanewiseError, match="there is no token"):
        serve_logs(Console(), [writer.folder], "0.0.0.0", 0, None, None, 0.5)


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert read_token(tmp_path / "token") == TOKEN
    monkeypatch.setenv("PANEWISE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    with pytest.raises(SourceProblem, match="cannot be read"):
        read_token(tmp_path / "nothing")


def test_the_token_reaches_the_server(writer: Writer, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with pw.serve.LookupServer(writer.folder, host="0.0.0.0", token=TOKEN) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        show_lookup(Console(), url, None, [], None, ["k1"], Output.JSON, TOKEN)
        assert len(json.loads(capsysbinary.readouterr().out)) == 1
        with pytest.raises(PanewiseError, match="the token is missing or wrong"):
            show_lookup(Console(), url, None, [], None, [], Output.JSON, None)
