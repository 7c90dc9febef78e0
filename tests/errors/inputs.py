"""The streams that the queries of the case files run over, and the names that their Python expressions see."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import panewise as pw
from panewise import window
from panewise.core.time import Domain, Duration, Instant
from panewise.cql import bind_query

#: Integer time.
S = pa.table(
    {
        "t": pa.array([1, 2, 4, 4]),
        "k": pa.array(["a", "b", "a", None]),
        "v": pa.array([10, 20, 40, None]),
        "price": pa.array([1.5, 2.5, None, 4.5]),
        "tags": pa.array([["x"], [], None, ["y", "z"]]),
        "seen": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
    }
)
#: Integer time, fewer columns.
T = pa.table({"t": [1, 3], "k": ["a", "b"], "w": [5, 6]})
#: Timestamps.
E = pa.table({"ts": pa.array([0, 60_000_000], pa.timestamp("us", "UTC")), "k": ["a", "b"], "v": [1, 2]})
#: A column whose name has a dot.
D = pa.table({"t": [1, 3], "id.orig_h": ["a", "b"]})

STREAMS: dict[str, Any] = {
    "S": pw.Stream(S, "t"),
    "T": pw.Stream(T, "t"),
    "E": pw.Stream(E, "ts"),
    "D": pw.Stream(D, "t"),
}
COUNT = "SELECT COUNT(*) AS n FROM S [RANGE 2 SLIDE 1]"
NAMES: dict[str, Any] = {
    "COUNT": COUNT,
    "Domain": Domain,
    "Duration": Duration,
    "E": E,
    "Instant": Instant,
    "QUERY": bind_query(COUNT, {"S": STREAMS["S"].schema}),
    "S": S,
    "STREAMS": STREAMS,
    "T": T,
    "pa": pa,
    "pw": pw,
    "window": window,
}
