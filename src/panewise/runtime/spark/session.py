"""A Spark session for people who have none: local, quiet, in UTC."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panewise.core.errors import SourceProblem
from panewise.runtime.atomic_files import private_folder

#: What a local session is started with; whatever the user has configured otherwise wins.
_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "panewise",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
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


#: What expressions mean depends on these settings; with them Spark means what the embedded engine does.
_REQUIRED_SETTINGS = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.session.timeZone": ("UTC", "Etc/UTC", "GMT", "Z", "+00:00"),
}


def check_session(session: SparkSession) -> SparkSession:
    """The session, if scalar expressions mean in it what they mean everywhere."""
    for key, wanted in _REQUIRED_SETTINGS.items():
        if (found := session.conf.get(key)) not in wanted:
            raise SourceProblem(
                f"{key} is {found!r} in this Spark session, where expressions would mean something else",
                fix=f"set it to {wanted[0]!r}",
            )
    return session


@contextmanager
def _redirect_errors(log: Path | None) -> Iterator[None]:
    """Let processes that are started meanwhile print their errors into a file."""
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
