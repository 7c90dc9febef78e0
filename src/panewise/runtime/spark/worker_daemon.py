"""Spark's daemon of Python workers, with our modules and kernels loaded before it forks workers.

A worker would otherwise load them itself, for more than a second, and Spark starts several at once. The setting
`spark.python.daemon.module` names this module; `local_session` sets it.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

#: What workers import for their stages.
_MODULES = ("pyspark.worker", "panewise.runtime.spark.files.source", "panewise.runtime.spark.state_files")
_QUERY = "SELECT k, SUM(v) AS s, COUNT(*) AS n, MAX(v) AS m FROM S [RANGES 4, 2 SLIDES 2, 1] GROUP BY k"


def load_modules() -> None:
    """Import what slicing and answering need.

    Nothing here may start a thread, which would not survive a fork: DuckDB is not opened, and linear algebra has one.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _MODULES:
        import_module(name)


def load_kernels() -> None:
    """Answer a query, which loads the kernels that most queries need."""
    import pyarrow as pa

    from panewise.core.schema import StreamSchema
    from panewise.engine import Engine, Pool

    rows = pa.table({"t": pa.array([1, 2], pa.int64()), "k": pa.array([1, 2], pa.int64()), "v": [1.0, 2.0]})
    pool = Pool({"S": StreamSchema(rows.schema, "t", 0)})
    pool.register("query", _QUERY)
    engine = Engine(pool)
    engine.feed("S", rows)
    engine.finish().table()


if __name__ == "__main__":
    from pyspark.daemon import manager

    load_modules()
    # Spark has daemons for planning, too.
    if sys.argv[1:] == ["pyspark.worker"]:
        load_kernels()
    gc.collect()
    # Spark collects garbage after every task; what is loaded now is never garbage.
    gc.freeze()
    manager()
