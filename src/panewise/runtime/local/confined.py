"""The program inside a sandbox: a process that evaluates the requests it reads, and ends when it takes too much."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from panewise.core.errors import LimitExceeded, PanewiseError
from panewise.core.scalar import Scalar
from panewise.engine.state.sealed import table_buffer
from panewise.runtime.local.host import DuckDBHost
from panewise.runtime.local.sandbox import read_frame, write_frame

#: Other processes have priority.
NICE = 10
#: Rows that are evaluated at once, at first and at most: small slices make large answers known early.
FIRST_ROWS, MAX_ROWS = 8, 1 << 14
#: A process that has grown by this many bytes is replaced by another.
MAX_GROWTH = 64 << 20


def main() -> None:
    """Answer one request after the other, until there are no more."""
    memory, answer = (int(word) for word in sys.argv[1:3])
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # no other output gets between the answers
        os.nice(NICE)
        host = DuckDBHost()
        host.evaluate([Scalar("1 + 1", (), pa.int32())], pa.table({"#row": [0]}))
        before = limit_memory(memory)
        write_frame(out, b"")
        while (request := read_frame(sys.stdin.buffer)) is not None:
            types, rows = read_frame(sys.stdin.buffer), read_frame(sys.stdin.buffer)
            if types is None or rows is None:
                return
            answer_head, answer_rows = answer_request(host, json.loads(request), types, rows, answer)
            answer_head["last"] = writable_bytes() > before + MAX_GROWTH
            write_frame(out, json.dumps(answer_head).encode())
            write_frame(out, answer_rows)
            if answer_head["last"]:
                return


def limit_memory(memory: int) -> int:
    """Bound the memory that may be taken beyond the present use; returns the present use."""
    before = writable_bytes()
    if before:
        resource.setrlimit(resource.RLIMIT_DATA, (before + memory, before + memory))
    return before


def writable_bytes() -> int:
    """Bytes that this process may write to; zero where the system does not report them."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:")), 0)


def answer_request(host: DuckDBHost, request: Any, types: bytes, rows: bytes, most: int) -> tuple[dict[str, Any], Any]:
    """The reply to a request, and the table of values that it asked for."""
    kinds = pa.ipc.read_schema(pa.py_buffer(types)).types
    scalars = [Scalar(sql, tuple(names), kind) for (sql, names), kind in zip(request["scalars"], kinds, strict=True)]
    # At the bound the system ends this process, whatever it is doing.
    signal.setitimer(signal.ITIMER_REAL, max(request["seconds"], 0.001))
    try:
        return {}, table_buffer(evaluate_in_slices(host, scalars, pa.ipc.open_stream(rows).read_all(), most))
    except LimitExceeded as problem:
        return {"limit": problem.message, "fix": problem.fix}, b""
    except MemoryError:
        return {"limit": "it takes too much memory", "fix": "compute less at once"}, b""
    except PanewiseError as problem:
        return {"error": problem.message, "fix": problem.fix}, b""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def evaluate_in_slices(host: DuckDBHost, scalars: list[Scalar], table: pa.Table, most: int) -> pa.Table:
    """The expressions, slice by slice, for as long as the answer is not too large."""
    names, found = [str(number) for number in range(len(scalars))], list[pa.Table]()
    size, start, count = 0, 0, FIRST_ROWS
    while start < table.num_rows or not found:
        found.append(pa.table(host.evaluate(scalars, table.slice(start, count)), names=names))
        size += found[-1].nbytes
        if size > most:
            raise LimitExceeded(f"the answer has more than {most:,} bytes", fix="ask for fewer windows or groups")
        start, count = start + count, min(4 * count, MAX_ROWS)
    return pa.concat_tables(found)
