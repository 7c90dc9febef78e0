"""Scalar expressions of unknown clients, evaluated in a process of their own, which can be ended at any moment.

DuckDB can be interrupted between blocks of rows only, and its bound on memory does not include its results: one call of
a string function can take hours, or all memory there is. A process can be ended whatever it does, its memory is bounded
by the system, and with a lower priority it takes no time from other processes.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa

from panewise.core.errors import BindProblem, LimitExceeded, PanewiseError
from panewise.core.scalar import Scalar
from panewise.engine.state.sealed import table_buffer

_LENGTH = struct.Struct(">Q")
_CODE = "from panewise.runtime.local.confined import main; main()"
#: The environment variables that the process gets; no token, no credentials.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "HOME", "LANG", "TMPDIR")


class Sandbox:
    """A host whose process is started when it is first needed, and again after it has been ended.

    One thread may use it at a time; any thread may `kill` it meanwhile. `memory` bounds the memory that its process
    takes after its start, `answer` the size of a result, both in bytes.
    """

    def __init__(self, memory: int, answer: int) -> None:
        self.memory, self.answer = memory, answer
        self._process: subprocess.Popen[bytes] | None = None
        self._changing = threading.Lock()
        self._busy = False

    def start(self) -> None:
        """Start the process unless it runs; it is ready when this returns."""
        with self._changing:
            if self._process is not None and self._process.poll() is None:
                return
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE, str(self.memory), str(self.answer)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
                | {"PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,
            )
        if read_frame(self._process.stdout) is None:
            self.kill()
            raise PanewiseError("the process that evaluates expressions does not start", fix="see the memory there is")

    def kill(self) -> None:
        """End the process, whatever it does."""
        with self._changing:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            if not self._busy:
                _close(process)  # a thread that uses it closes it itself, so that nothing waits here

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table, seconds: float = 10.0) -> list[pa.ChunkedArray]:
        """Each expression for every row, within some seconds."""
        self._busy = True
        try:
            self.start()
            process = self._process
            if process is None:
                raise LimitExceeded("it was given up", fix="ask again")
            try:
                return self._answer(process, scalars, table, seconds)
            finally:
                if process is not self._process:
                    _close(process)
        finally:
            self._busy = False

    def _answer(
        self, process: subprocess.Popen[bytes], scalars: Sequence[Scalar], table: pa.Table, seconds: float
    ) -> list[pa.ChunkedArray]:
        types = pa.schema([(str(number), scalar.type) for number, scalar in enumerate(scalars)])
        request = {"seconds": seconds, "scalars": [[scalar.sql, list(scalar.inputs)] for scalar in scalars]}
        with suppress(BrokenPipeError):  # the reason is found below
            for frame in (json.dumps(request).encode(), types.serialize(), table_buffer(table)):
                write_frame(process.stdin, frame)
        head, rows = read_frame(process.stdout), read_frame(process.stdout)
        if head is None or rows is None:
            raise self._end_reason(process, seconds)
        answer = json.loads(head)
        if answer["last"]:
            self.kill()
        if "limit" in answer:
            raise LimitExceeded(answer["limit"], fix=answer["fix"])
        if "error" in answer:
            raise BindProblem(answer["error"], fix=answer["fix"])
        return list(pa.ipc.open_stream(rows).read_all().columns)

    def _end_reason(self, process: subprocess.Popen[bytes], seconds: float) -> LimitExceeded:
        """Why a process has ended before its answer."""
        self.kill()
        if process.wait() == -signal.SIGALRM:
            return LimitExceeded(f"it takes longer than {seconds:.1f} seconds", fix="compute less at once")
        return LimitExceeded("it takes too much memory", fix="compute less at once")


def _close(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended, and close its pipes."""
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def write_frame(pipe: IO[bytes] | None, frame: Any) -> None:
    """Write the length of some bytes, then the bytes."""
    assert pipe is not None
    pipe.write(_LENGTH.pack(len(frame)))
    pipe.write(frame)
    pipe.flush()


def read_frame(pipe: IO[bytes] | None) -> bytes | None:
    """The bytes that `write_frame` wrote; None where they are not complete."""
    assert pipe is not None
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    frame = pipe.read(length)
    return frame if len(frame) == length else None
