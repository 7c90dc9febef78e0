"""Processes that tests start: each leads a group, which is killed at the end whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.spark.broker import stop

#: A small application takes half a minute where nothing else runs.
PATIENCE = 300


@contextmanager
def server(
    command: Sequence[str], folder: Path, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command in `folder`, where Spark's servers leave files, with everything it says in `log`.

    Its children are killed with it: a worker of Python outlives a server that ends amid a query.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(env or {})}, stdout=output, stderr=output, start_new_session=True
        )
        try:
            yield process
        finally:
            stop(process)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def completed(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None, patience: float = PATIENCE
) -> None:
    """Runs a command to its end; one that fails or takes too long is an error that shows what it said last."""
    log = folder / "said.log"
    with server(command, folder, log, env) as process:
        try:
            code: int | str = process.wait(patience)
        except subprocess.TimeoutExpired:
            code = f"no end within {patience} seconds"
    # DuckDB complains about its own bindings whenever a Python that used it ends.
    said = [line for line in log.read_text().splitlines() if "leaked" not in line]
    assert code == 0, "\n".join([f"{command[0]} gave {code}:", *said[-60:]])
