"""DuckDB computes with the rows it is given, and reaches nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import panewise as pw
from panewise.runtime.local import HOST
from panewise.runtime.local.database import MEMORY_VARIABLE, open_database


@pytest.fixture(scope="module")
def database() -> Iterator[Any]:
    with open_database() as opened:
        yield opened


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_blob('/etc/hostname')",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM parquet_scan('/etc/hostname')",
        "COPY (SELECT 1) TO '/tmp/panewise-never.csv'",
        "EXPORT DATABASE '/tmp/panewise-never'",
        "ATTACH '/tmp/panewise-never.db'",
        "SELECT getenv('HOME')",
        "CREATE SECRET (TYPE s3)",
        "CALL enable_logging()",
        "SELECT * FROM HOST",
    ],
)
def test_files_environment_and_variables_cannot_be_reached(database: Any, statement: str) -> None:
    with database.cursor() as cursor, pytest.raises(duckdb.Error):
        cursor.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "INSTALL excel",
        "LOAD excel",
        "LOAD '/tmp/panewise-never.duckdb_extension'",
        "SELECT excel_text(1, '0')",
        "SELECT sql_auto_complete('se')",
        "FROM sql_auto_complete('se')",
        "SELECT load_aws_credentials()",
        "CALL load_aws_credentials()",
        "SELECT current_setting('s3_secret_access_key')",
    ],
)
def test_no_extension_is_installed_or_loaded(database: Any, statement: str) -> None:
    with database.cursor() as cursor, pytest.raises(duckdb.Error) as caught:
        cursor.execute(statement)
    # What it says where it has tried to fetch one.
    assert "automatically install" not in str(caught.value)
    assert "Failed to download" not in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 8",
        "PRAGMA threads = 8",
        "RESET memory_limit",
        "SET memory_limit = '90GB'",
        "SET lock_configuration = false",
        "SET enable_external_access = true",
        "SET TimeZone = 'Europe/Berlin'",
    ],
)
def test_the_configuration_is_locked(database: Any, statement: str) -> None:
    with database.cursor() as cursor, pytest.raises(duckdb.Error, match=r"locked|cannot be enabled"):
        cursor.execute(statement)


def test_memory_and_threads_are_bounded_and_every_cursor_is_in_utc(database: Any) -> None:
    settings = ("threads", "memory_limit", "TimeZone", "secret_directory")
    listed = ", ".join(f"current_setting('{name}')" for name in settings)
    found: list[Any] = []

    def look() -> None:
        with database.cursor() as cursor:
            found.extend(cursor.execute(f"SELECT {listed}").fetchone())

    beside = threading.Thread(target=look)
    beside.start()
    beside.join()
    assert found == [1, "953.6 MiB", "UTC", "none"]
    with database.cursor() as cursor, pytest.raises(duckdb.OutOfMemoryException):
        cursor.execute("SELECT max(length(x)) FROM (SELECT repeat(i::VARCHAR, 9000000) AS x FROM range(2000) r(i))")


def test_the_memory_of_duckdb_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "64MB")
    with open_database() as opened:
        assert opened.execute("SELECT current_setting('memory_limit')").fetchone() == ("61.0 MiB",)
    monkeypatch.setenv(MEMORY_VARIABLE, "plenty")
    with pytest.raises(pw.PanewiseError, match="PANEWISE_DUCKDB_MEMORY is 'plenty'; set it to a size"):
        open_database()


def test_the_host_uses_the_database_that_is_alone() -> None:
    with HOST._database.cursor() as cursor, pytest.raises(duckdb.Error, match="locked"):
        cursor.execute("SET threads = 8")
