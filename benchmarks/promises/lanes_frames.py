"""The lanes that the rolling windows of pandas and Polars answer, where these are installed.

Both are given a frame of their own, which is made before the clock runs. Polars is told to use one thread, which only
works where it was not imported before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from benchmarks.promises.lanes_queries import RANGE, Lane

#: The methods of rolling windows, with their arguments.
PANDAS: dict[str, tuple[str, tuple[float, ...]]] = {
    "SUM": ("sum", ()),
    "COUNT": ("count", ()),
    "AVG": ("mean", ()),
    "MIN": ("min", ()),
    "MAX": ("max", ()),
    "VAR": ("var", ()),
    "STDDEV": ("std", ()),
    "MEDIAN": ("median", ()),
    "QUANTILE": ("quantile", (0.9,)),
}
POLARS: dict[str, tuple[str, tuple[float, ...]]] = PANDAS | {
    "COUNT": ("len", ()),
    "FIRST": ("first", ()),
    "LAST": ("last", ()),
    "COUNT(DISTINCT)": ("n_unique", ()),
    "APPROX_DISTINCT": ("approx_n_unique", ()),
}


def pandas_work(lane: Lane, rows: pa.Table) -> Callable[[], Any] | None:
    """Answers a lane by pandas, or None where it has no such window or aggregate."""
    if find_spec("pandas") is None or lane.asked not in PANDAS:
        return None
    name, arguments = PANDAS[lane.asked]
    frame = rows.to_pandas()
    match lane.window:
        case "continuous":
            frame["time"] = frame["t"].astype("datetime64[s]")
            return lambda: getattr(frame.groupby("k").rolling(f"{RANGE}s", on="time")["v"], name)(*arguments)
        case "partitioned":
            return lambda: getattr(frame.groupby("k")["v"].rolling(100, min_periods=1), name)(*arguments)
        case "landmark":
            return lambda: getattr(frame.groupby("k")["v"].expanding(), name)(*arguments)
    return None


def polars_work(lane: Lane, rows: pa.Table) -> Callable[[], Any] | None:
    """Answers a lane by Polars, or None where it has no such window or aggregate."""
    if find_spec("polars") is None or lane.asked not in POLARS:
        return None
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    pl = import_module("polars")
    name, arguments = POLARS[lane.asked]
    frame, value = pl.from_arrow(rows), pl.col("v")
    answer = getattr(value, name)(*arguments).alias("a")
    match lane.window:
        case "sliding" | "tumbling":
            period = {"sliding": RANGE, "tumbling": 60}[lane.window]
            window = {"every": "60i", "period": f"{period}i", "closed": "right", "label": "right", "group_by": "k"}
            return lambda: frame.group_by_dynamic("t", **window).agg(answer)
        case "continuous":
            return lambda: frame.rolling("t", period=f"{RANGE}i", group_by="k").agg(answer)
        case "partitioned" if hasattr(value, f"rolling_{name}"):
            rolling = getattr(value, f"rolling_{name}")(*arguments, window_size=100, min_samples=1)
            return lambda: frame.select("k", "t", rolling.over("k").alias("a"))
    return None
