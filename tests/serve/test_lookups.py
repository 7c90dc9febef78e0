"""What the server answers is what the engine answers, as JSON and as Arrow, while its log grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panewise as pw
from panewise.runtime.json_text import json_rows
from panewise.serve.encoding import ARROW
from panewise.serve.page_cache import MIN_REQUESTS

from .logs import SCHEMA, TOKEN, Writer, ask, ordered, rows

pytestmark = pytest.mark.slow

OTHER = "SELECT k, MAX(v) - SUM(v) AS d FROM S [RANGE 10 SLIDE 10] GROUP BY k HAVING COUNT(*) > 1"


def until(truth: Callable[[], bool], patience: float = 10.0) -> None:
    """Wait for something to become true."""
    ending = time.monotonic() + patience
    while not truth():
        assert time.monotonic() < ending, "it did not come true"
        time.sleep(0.02)


def test_answers_are_those_of_the_query(writer: Writer, url: str) -> None:
    results = writer.results()
    instants = sorted({row["w_end"] for row in results})
    json = ask(url, "/queries/q/lookup", at=instants)
    arrow = ask(url, "/queries/q/lookup", accept=ARROW, at=instants)
    assert (json.status, json.type, arrow.type) == (200, "application/json", ARROW)
    assert ordered(json.rows) == ordered(arrow.table.to_pylist()) == ordered(results)
    assert json.json["columns"] == [{"name": f.name, "type": str(f.type)} for f in arrow.table.schema]
    newest = [row for row in results if row["w_end"] == instants[-1]]
    assert ordered(ask(url, "/queries/q/lookup").rows) == ordered(newest)
    assert ask(url, "/queries/q").json["final"] == instants[-1]


def test_groups_are_chosen_the_same_from_a_page_and_without(writer: Writer, url: str) -> None:
    """When an instant is asked for often, all groups are looked up at once."""
    for keys in (["k1"], ["k2"], ["k2", "k0"], ["nobody"]):
        wanted = [row for row in writer.results() if row["w_end"] == 60 and row["k"] in keys]
        for _ in range(MIN_REQUESTS):
            assert ordered(ask(url, "/queries/q/lookup", at=60, key=keys).rows) == ordered(wanted)


def test_other_windows_and_texts(writer: Writer, url: str) -> None:
    stream = pa.concat_tables(writer.fed)
    whole = pw.reference.lookup(
        "SELECT k, SUM(v) AS s FROM S [RANGE 45 SLIDE 5] GROUP BY k", {"S": stream}, 70, time="t"
    )
    for reply in (
        ask(url, "/queries/q/lookup", at=70, window=45),
        ask(url, "/lookup", "POST", {"query": "q", "at": 70, "since": 25}),
        ask(
            url, "/lookup", "POST", {"query": "SELECT k, SUM(v) AS s FROM S [RANGE 45 SLIDE 5] GROUP BY k", "at": [70]}
        ),
    ):
        assert ordered([{n: row[n] for n in ("k", "s", "w_start", "w_end")} for row in reply.rows]) == ordered(
            whole.to_pylist()
        )
    one = ask(url, "/lookup", "POST", {"query": OTHER, "at": [20, 30], "keys": {"k": ["k1"]}}, accept=ARROW).table
    both = pw.reference.lookup(OTHER, {"S": stream}, [20, 30], time="t")
    assert one.to_pylist() == both.filter(pc.equal(both["k"], "k1")).to_pylist()


def test_a_named_query_comes_and_goes(writer: Writer, url: str) -> None:
    assert ask(url, "/queries/other", "PUT", {"query": OTHER}, token=TOKEN).json["query"] == OTHER
    direct = ask(url, "/lookup", "POST", {"query": OTHER, "at": 30}).rows
    assert ask(url, "/queries/other/lookup", at=30).rows == direct
    assert [each["name"] for each in ask(url, "/queries").json["queries"]] == ["q", "other"]
    assert ask(url, "/queries/other", "PUT", {"query": writer.text}, token=TOKEN).status == 409
    assert ask(url, "/queries/q", "DELETE", token=TOKEN).status == 409
    assert ask(url, "/queries/other", "DELETE", token=TOKEN).status == 204
    assert ask(url, "/queries/other/lookup").status == 404


def test_the_log_grows_and_late_rows_count(folder: Path) -> None:
    """The log is not there at first; a late row is a part of a pane that was logged before."""
    with pw.serve.LookupServer(folder, poll=0.02) as server:
        assert ask(server.url, "/health").json["status"] == "waiting"
        assert ask(server.url, "/queries").json == {"queries": [], "problems": []}
        assert ask(server.url, "/lookup", "POST", {"query": OTHER}).status == 404
        writer = Writer(folder)
        for first in (0, 20, 40):
            writer.write(rows(first, first + 20))
            until(lambda: ask(server.url, "/queries/q/lookup").status == 200)
            until(lambda last=first + 15: ask(server.url, "/queries/q/lookup").json["final"] == last)  # type: ignore[misc]
        writer.write(pa.table({"t": [3, 18, 62], "k": ["k1", "new", "k2"], "v": [1000, 7, 1]}, schema=SCHEMA))
        until(lambda: ask(server.url, "/queries/q/lookup").json["final"] == 60)
        wanted = pw.reference.lookup(writer.text, {"S": pa.concat_tables(writer.fed)}, [10, 20, 40, 60], time="t")
        assert ordered(ask(server.url, "/queries/q/lookup", at=[10, 20, 40, 60]).rows) == ordered(wanted.to_pylist())


def test_only_what_is_kept_is_answered(writer: Writer) -> None:
    with pw.serve.LookupServer(writer.folder, keep=30) as server:
        assert ask(server.url, "/queries/q/lookup", at=70).status == 200
        refused = ask(server.url, "/queries/q/lookup", at=40)
        assert refused.status == 422
        assert "nothing up to 45 is kept" in refused.json["error"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("us", "UTC"), ["2026-01-05T08:00:00Z", None]),
        (pa.decimal128(8, 2), ["1.50", "2.25"]),
        (pa.bool_(), ["true", "false"]),
        (pa.float64(), ["0.5", "NaN"]),
    ],
)
def test_keys_of_every_type(folder: Path, kind: pa.DataType, values: list[str | None]) -> None:
    schema = pa.schema([("t", pa.int64()), ("a", kind), ("b", pa.int32()), ("v", pa.float64())])
    text = "SELECT a AS first, b, SUM(v) AS s, LAST(v) AS l FROM S [RANGE 10 SLIDE 5] GROUP BY a, b"
    keys = pa.array(values, pa.string()).cast(kind)
    writer = Writer(folder, text, schema=schema)
    table = pa.table(
        [[1, 2, 30], pa.concat_arrays([keys, keys[:1]]), [1, 2, 3], [0.1, float("inf"), 1.0]], schema=schema
    )
    writer.write(table)
    with pw.serve.LookupServer(folder) as server:
        both = ask(server.url, "/queries/q/lookup", at=5, accept=ARROW).table
        assert ordered(both.to_pylist()) == ordered([row for row in writer.results() if row["w_end"] == 5])
        assert ordered(ask(server.url, "/queries/q/lookup", at=5).rows) == ordered(json_rows(both))
        for place, value in enumerate(values):
            wanted = {"query": "q", "at": 5, "keys": {"first": [value], "b": [place + 1]}}
            assert len(ask(server.url, "/lookup", "POST", wanted).rows) == 1
            listed = "[null, 2]" if value is None else f'["{value}", {place + 1}]'
            assert len(ask(server.url, "/queries/q/lookup", at=5, key=listed).rows) == 1


def test_a_query_without_groups(folder: Path) -> None:
    writer = Writer(folder, "SELECT SUM(v) AS s, COUNT(*) AS n FROM S [RANGE 20 SLIDE 5]").write(rows(0, 40))
    with pw.serve.LookupServer(folder) as server:
        assert ask(server.url, "/queries/q/lookup", at=[20, 30]).rows == [
            row for row in writer.results() if row["w_end"] in (20, 30)
        ]
        assert ask(server.url, "/queries/q/lookup", key="k1").status == 422


def test_keys_are_forgotten_as_their_panes_go(folder: Path) -> None:
    """Ever new keys, and panes that are kept for a while: what is counted is what is there."""
    writer = Writer(folder)
    with pw.serve.LookupServer(folder, keep=40, poll=0.02, limits=pw.serve.Limits(cells=2500)) as server:
        for turn in range(16):
            writer.write(rows(100 * turn, 100 * turn + 100, groups=400, key=f"turn{turn}-"))
            until(lambda: ask(server.url, "/queries/q").json["final"] == writer.results()[-1]["w_end"])
        followed = server._readers.logs[0].contents
        assert followed is not None
        assert followed.group_count < 2500  # of about four thousand; few are not worth being tidied up
        assert ask(server.url, "/queries/q/lookup").status == 200
        assert ask(server.url, "/queries/q/lookup", key="turn15-1").status == 200


def test_head_says_what_get_would_without_the_body(url: str) -> None:
    for path in ("/health", "/queries", "/queries/q", "/queries/q/lookup", "/openapi.json"):
        got, head = ask(url, path), ask(url, path, "HEAD")
        assert (head.status, head.type, head.body) == (got.status, got.type, b"")
    assert ask(url, "/queries/none", "HEAD").status == 404
    assert ask(url, "/queries/q/events", "HEAD").status == 405
