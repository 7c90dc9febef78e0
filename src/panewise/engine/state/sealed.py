"""Bytes under a seal: their length and checksum, which are checked before the bytes are read.

Arrow does not check its input: some damaged bytes end the process. The seal protects against accidents, such as a full
disk or an incomplete copy; it does not protect against forgery.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pyarrow as pa

from panewise.core.errors import StateProblem

_MARK = b"panewise"
#: The mark, the length and the checksum of what follows; in whole words, so that Arrow finds its numbers aligned.
_SEAL = struct.Struct("<8sQQ")


def seal(data: Any) -> bytes:
    """Some bytes under a seal."""
    content = memoryview(data)
    return b"".join([_SEAL.pack(_MARK, content.nbytes, zlib.crc32(content)), content])


def unseal(data: Any, what: str, fix: str) -> memoryview:
    """The bytes under a seal; a refusal names `what` they should have been."""
    view = memoryview(data)
    if bytes(view[: len(_MARK)]) != _MARK or view.nbytes < _SEAL.size:
        raise StateProblem(f"{what} was not written by Panewise, or its beginning is damaged", fix=fix)
    _, length, checksum = _SEAL.unpack(view[: _SEAL.size])
    content = view[_SEAL.size :]
    if content.nbytes != length:
        lacking = "it is cut off" if content.nbytes < length else "something follows it"
        raise StateProblem(f"{what} is damaged: {lacking}", fix=fix)
    if zlib.crc32(content) != checksum:
        raise StateProblem(f"{what} is damaged: its checksum is wrong", fix=fix)
    return content


def table_buffer(table: pa.Table) -> pa.Buffer:
    """A table as Arrow sends it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def seal_table(table: pa.Table) -> bytes:
    return seal(table_buffer(table))


def unseal_table(data: Any, what: str, fix: str) -> pa.Table:
    return pa.ipc.open_stream(unseal(data, what, fix)).read_all()
