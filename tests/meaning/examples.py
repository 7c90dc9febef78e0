"""A small stream, streams by their columns, and answers as tuples."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import panewise as pw

S = pa.table({"t": [1, 2, 2, 4, 7], "k": list("abaab"), "v": [10, 20, 5, 40, 7]})


def late(delay: int, **columns: list[Any]) -> pw.Stream:
    return pw.Stream(pa.table(columns), time="t", delay=delay)


def rows(query: str, streams: dict[str, Any] | None = None, *columns: str) -> list[tuple[Any, ...]]:
    table = pw.run(query, streams or {"S": S}, time="t")
    return list(zip(*(table[c].to_pylist() for c in columns or table.column_names), strict=True))


def keyed(times: list[int], keys: str) -> pa.Table:
    columns = {"i": (range(len(times)), pa.int64()), "t": (times, pa.int64()), "k": (keys, pa.string())}
    return pa.table({name: pa.array(list(values), kind) for name, (values, kind) in columns.items()})
