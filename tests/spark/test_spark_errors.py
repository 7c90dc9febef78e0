"""Spark's reasons in our words."""

from __future__ import annotations

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
