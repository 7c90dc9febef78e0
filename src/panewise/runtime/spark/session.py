"""A Spark session for users who have none: local, quiet, in UTC."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from panewise.core.errors import SourceProblem
from panewise.runtime.atomic_files import private_folder

#: The settings of a local session; settings of the user come first.
_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "panewise",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.python.daemon.module": "panewise.runtime.spark.worker_daemon",
}


def local_session(log: Path | None = None, **settings: str) -> SparkSession:
    """The session of this process, started with defaults for one machine where there is none yet.

    With `log`, what Spark and its workers print goes to that file instead of standard error.
    """
    # Workers must run in the same environment as this process, or they would not find Panewise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for key, value in (_DEFAULTS | settings).items():
        builder = builder.config(key, value)
    try:
        with _redirect_errors(log):
            return builder.getOrCreate()
    except (PySparkException, RuntimeError) as problem:
        raise SourceProblem(
            f"Spark cannot be started: {str(problem).splitlines()[0]}", fix="install Java 17 or 21 and set JAVA_HOME"
        ) from None


def session_of(inputs: Iterable[object]) -> SparkSession:
    """The session of the DataFrames among some inputs; if there are none, the active one, or a local one."""
    frames = (given for given in inputs if isinstance(given, DataFrame))
    found = next((frame.sparkSession for frame in frames), None) or SparkSession.getActiveSession()
    return found or local_session()


#: The meaning of expressions depends on these settings; with them Spark agrees with the embedded engine.
_REQUIRED_SETTINGS = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.session.timeZone": ("UTC", "Etc/UTC", "GMT", "Z", "+00:00"),
}


def check_session(session: SparkSession) -> SparkSession:
    """The session, if scalar expressions have the same meaning in it as in the embedded engine."""
    for key, wanted in _REQUIRED_SETTINGS.items():
        if (found := session.conf.get(key)) not in wanted:
            raise SourceProblem(
                f"{key} is {found!r} in this Spark session, where expressions would mean something else",
                fix=f"set it to {wanted[0]!r}",
            )
    _use_this_python(session)
    return session


def _use_this_python(session: SparkSession) -> None:
    """Let the workers of a local session run the Python of this process, unless its user has chosen another one: Spark
    would take the first `python3` on the path, which need not have Panewise."""
    chosen = "PYSPARK_PYTHON" in os.environ or session.conf.get("spark.pyspark.python", None)
    # None where the session is one of Spark Connect.
    context = SparkContext._active_spark_context
    if context is not None and not chosen and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable


def is_classic(session: SparkSession) -> bool:
    """Whether the driver is this process; otherwise the session is one of Spark Connect."""
    return "connect" not in type(session).__module__


@contextmanager
def _redirect_errors(log: Path | None) -> Iterator[None]:
    """Let processes that are started meanwhile print their errors to a file."""
    if log is None:
        yield
        return
    private_folder(log.parent)
    ours = os.dup(2)
    try:
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
