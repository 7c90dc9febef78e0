"""`pw.run`: one SELECT over bounded input, embedded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from panewise import reference
from panewise.algebra import Query
from panewise.time import Boundary


def run(
    query: str | Query,
    streams: Mapping[str, Any],
    *,
    time: str | None = None,
    boundary: str | Boundary = "(]",
    until: int | str | datetime | None = None,
) -> pa.Table:
    """Answer one continuous SELECT over bounded streams and return all its results.

    `streams` maps names to pyarrow, pandas or polars tables, whose time column is `time`, or to `pw.Stream`s that
    know their own. The run ends when every item has been in all its windows, or at `until`.

    >>> import pyarrow as pa, panewise as pw
    >>> s = pa.table({"t": [1, 2, 4], "v": [10, 20, 40]})
    >>> pw.run("SELECT SUM(v) AS total FROM S [RANGE 3 SLIDE 2]", {"S": s}, time="t", until=4).to_pylist()
    [{'total': 30, 'w_start': -1, 'w_end': 2}, {'total': 60, 'w_start': 1, 'w_end': 4}]
    """
    return reference.run(query, streams, time=time, boundary=boundary, until=until)
