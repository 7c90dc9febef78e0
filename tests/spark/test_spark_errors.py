"""Spark's reasons in our words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from panewise.runtime.spark.failures import explain_failure, unreadable_file


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "java.io.FileNotFoundException: /ck/spark/offsets/.3.tmp (Permission denied)",
            "/ck/spark/offsets/.3.tmp cannot be written",
        ),
        ("PermissionError: [Errno 13] Permission denied: '/ck/state/0/head'", "/ck/state/0/head cannot be written"),
        ("OSError: [Errno 30] Read-only file system: '/ck/commands'", "/ck/commands cannot be written"),
        ("java.nio.file.AccessDeniedException: /ck/spark/commits/2", "/ck/spark/commits/2 cannot be written"),
        ("Malformed log file /ck/spark/commits/2", "the log of the checkpoint is damaged"),
        ("No space left on device", "the disk is full"),
    ],
)
def test_what_may_not_be_written_is_not_said_to_be_damaged(words: str, said: str) -> None:
    assert str(explain_failure(Exception(words))).startswith(said)


def test_a_file_that_cannot_be_read_is_known_by_its_path() -> None:
    words = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a%20b.parquet. SQLSTATE: KD001"
    assert unreadable_file(Exception(words)) == "/in/a b.parquet"
    assert str(explain_failure(Exception(words))).startswith(
        "the file /in/a b.parquet cannot be read; repair or remove it"
    )
    assert unreadable_file(Exception("No space left on device")) is None


def test_workers_without_panewise_are_explained() -> None:
    words = "pyspark.errors.PythonException: ModuleNotFoundError: No module named 'panewise'"
    assert "run another Python than this process" in str(explain_failure(Exception(words)))


_OWN_SESSION = """
import pyarrow as pa
import panewise as pw
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
rows = session.range(1, 4).selectExpr("id AS t", "id AS v")
print(pw.spark.batch("SELECT SUM(v) AS s FROM S [RANGE 4 SLIDE 4]", {"S": rows}, time="t").first()["s"])
"""


@pytest.mark.slow
def test_a_session_of_the_user_whose_python_is_another_one(tmp_path: Path) -> None:
    """Spark takes the first `python3` of the path where PYSPARK_PYTHON is not set."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    settings = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    settings["PATH"] = f"{tmp_path}:{settings['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", _OWN_SESSION], env=settings, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["6"]), done.stderr[-2000:]
