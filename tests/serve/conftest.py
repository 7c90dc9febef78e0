"""A log that has grown a little, and a server for it, for tests that change neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import panewise as pw

from .logs import TOKEN, Writer, rows


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    return Writer(tmp_path_factory.mktemp("log") / "panes").write(rows(0, 40)).write(rows(40, 80))


@pytest.fixture(scope="module")
def url(writer: Writer) -> Iterator[str]:
    with pw.serve.LookupServer(writer.folder, token=TOKEN, poll=0.05) as server:
        yield server.url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "panes"
