"""Pane logs as a pipeline would write them, and what the engine says to the same rows."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa

import panewise as pw
from panewise.engine.state.pane_log import PaneCollector
from panewise.runtime.pane_log import Header, PaneLog

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
QUERY = "SELECT k, SUM(v) AS s, MAX(v) AS top, COUNT(*) AS n FROM S [RANGE 20 SLIDE 5] GROUP BY k"
TOKEN = "an-example-of-a-token"


def rows(first: int, last: int, groups: int = 3, key: str = "k") -> pa.Table:
    """Some rows an instant, in the order of time."""
    rng = np.random.default_rng(first)
    times = np.repeat(np.arange(first, last), 4)
    keys = pa.array([f"{key}{n}" for n in rng.integers(0, groups, len(times))])
    return pa.table({"t": times, "k": keys, "v": rng.integers(-50, 50, len(times))}, schema=SCHEMA)


@dataclass
class Writer:
    """An engine that logs its panes, one batch after another."""

    folder: Path
    text: str = QUERY
    name: str = "q"
    schema: pa.Schema = SCHEMA
    batch: int = 0
    #: Everything that has been fed, and everything that has been said.
    fed: list[pa.Table] = field(default_factory=list)
    said: list[pa.Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        pool = pw.Pool({"S": pw.StreamSchema(self.schema, time="t", delay=0)})
        pool.register(self.name, self.text)
        self.engine, self.log = pw.Engine(pool), PaneLog(self.folder)
        self.log.claim(Header.of(pool.queries[self.name], pool, "the test"))
        self.tap = PaneCollector(self.engine, [self.name])

    def write(self, table: pa.Table) -> Writer:
        self.engine.feed("S", table)
        self.fed.append(table)
        self.tap.open()
        self.said.append(self.engine.advance()[self.name])
        self.log.write(self.tap.collect()[self.name], self.batch)
        self.batch += 1
        return self

    def results(self) -> list[dict[str, Any]]:
        """What the query itself has reported."""
        found: list[dict[str, Any]] = pa.concat_tables(self.said).to_pylist()
        return found


def ordered(found: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, found))


@dataclass(frozen=True)
class Reply:
    status: int
    type: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json["rows"]
        return found

    @property
    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.body).read_all()


def ask(
    url: str,
    path: str,
    method: str = "GET",
    body: Any = None,
    token: str | None = None,
    accept: str | None = None,
    **parameters: Any,
) -> Reply:
    """One request, over real HTTP."""
    query = "?" + urlencode(parameters, doseq=True) if parameters else ""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data is not None else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Accept": accept} if accept else {}
    request = urllib.request.Request(url + path + query, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return Reply(reply.status, reply.headers.get_content_type(), reply.read())
    except urllib.error.HTTPError as problem:
        with problem:
            return Reply(problem.code, problem.headers.get_content_type(), problem.read())
