"""Spark Connect: the client has no JVM, and tasks know less about where they run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import panewise
from tests.spark import answers, submitted
from tests.spark.processes import completed

#: What a client of Spark Connect does not have.
CLASSIC = re.compile(r"\b(sparkContext|_jvm|_jdf|_jsparkSession|_sc|rdd)\b")


@pytest.fixture(scope="module")
def answered(connect: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the application, run as a client."""
    folder = tmp_path_factory.mktemp("answered")
    answers.given(folder)
    completed(client(folder, "rocksdb"), folder, {"SPARK_REMOTE": connect})
    return folder


def client(folder: Path, state: str) -> list[str]:
    return [sys.executable, str(submitted.__file__), str(folder), state]


@pytest.mark.slow
def test_bounded_rows_are_answered_alike(answered: Path) -> None:
    answers.compare(answered, "whole")


@pytest.mark.slow
def test_streams_are_answered_alike(answered: Path) -> None:
    answers.compare(answered, "streamed")


@pytest.mark.slow
def test_state_in_files_is_refused(connect: str, tmp_path: Path) -> None:
    answers.given(tmp_path)
    with pytest.raises(AssertionError, match=r"gave 1:[\s\S]*use 'rocksdb'"):
        completed(client(tmp_path, "files"), tmp_path, {"SPARK_REMOTE": connect}, patience=30)


def test_nothing_needs_a_classic_session() -> None:
    (package,) = panewise.__path__
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(Path(package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if CLASSIC.search(line)
    ]
    assert not found
