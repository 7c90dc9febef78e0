"""The state of an engine as bytes: Arrow IPC with a format version, a fingerprint of the plan and a checksum.

Objects say what they are as trees of plain values, tables and panes; this module turns such trees into bytes and back.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panewise.aggregate import Columns, Words
from panewise.engine.codec import from_text, to_text
from panewise.errors import StateProblem
from panewise.stores.pane import Pane

FORMAT = 1

Tree = dict[str, Any]


def packed(tree: Tree, plan: Tree) -> bytes:
    """A tree of states as bytes. `plan` says what it belongs to."""
    parts: list[bytes] = []
    body = json.dumps(_stored(tree, parts))
    header = {"format": FORMAT, "fingerprint": fingerprint(plan), "plan": plan, "crc": _checksum(body, parts)}
    metadata = {"panewise": json.dumps(header), "tree": body}
    table = pa.table({"part": pa.array(parts, pa.large_binary())}).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> tuple[Tree, Tree]:
    """The tree and the plan; a clear refusal when the bytes are not what `packed` wrote."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        header = json.loads(table.schema.metadata[b"panewise"])
        body = table.schema.metadata[b"tree"].decode()
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        raise StateProblem("this is not a snapshot of Panewise", fix="pass what Engine.snapshot() returned") from None
    if header["format"] != FORMAT:
        raise StateProblem(
            f"the snapshot has format {header['format']}, this version reads format {FORMAT}",
            fix="restore it with the version that wrote it",
        )
    parts = [part.as_buffer() for part in table.column("part").combine_chunks()]
    if header["crc"] != _checksum(body, parts) or header["fingerprint"] != fingerprint(header["plan"]):
        raise StateProblem("the snapshot is damaged: its checksum is wrong", fix="use an older one")
    return _loaded(json.loads(body), parts), header["plan"]


def fingerprint(plan: Tree) -> str:
    """Equal for equal plans."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


def _checksum(body: str, parts: Sequence[Any]) -> int:
    sum_ = zlib.crc32(body.encode())
    for part in parts:
        sum_ = zlib.crc32(part, sum_)
    return sum_


def _stored(value: Any, parts: list[bytes]) -> Any:
    """Plain values as they are; tables are put aside and referred to by number."""
    match value:
        case dict():
            return {key: _stored(each, parts) for key, each in value.items()}
        case list() | tuple():
            return [_stored(each, parts) for each in value]
        case pa.Table():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, value.schema) as writer:
                writer.write_table(value)
            parts.append(bytes(sink.getvalue()))
            return {"#table": len(parts) - 1}
    return value


def _loaded(value: Any, parts: Sequence[Any]) -> Any:
    match value:
        case {"#table": number}:
            return pa.ipc.open_stream(parts[number]).read_all()
        case dict():
            return {key: _loaded(each, parts) for key, each in value.items()}
        case list():
            return [_loaded(each, parts) for each in value]
    return value


# ---- panes -----------------------------------------------------------------------------------------------------


def pane_tree(columns: Sequence[Columns], panes: Sequence[Pane]) -> Tree:
    """Panes as two tables: one row a pane, and one row for each group of each."""
    heads = pa.table(
        {
            "start": pa.array([p.start for p in panes], pa.int64()),
            "end": pa.array([p.end for p in panes], pa.int64()),
            "size": pa.array([len(p.codes) for p in panes], pa.int64()),
        }
    )
    cells = [pa.array(np.concatenate([p.codes for p in panes] or [np.zeros(0, np.int64)]))]
    for number, column in enumerate(columns):
        empty = column.identity(0)
        for place in range(len(empty)):
            words = [p.states[number][place] for p in panes] or [empty[place]]
            cells.append(_word_array(np.concatenate(words)))
    return {"heads": heads, "cells": pa.table(cells, names=[str(i) for i in range(len(cells))])}


def panes_from(columns: Sequence[Columns], tree: Tree) -> list[Pane]:
    """What `pane_tree` wrote."""
    cells = iter(tree["cells"].columns)
    codes = next(cells).to_numpy()
    states: list[Words] = [tuple(_word(next(cells), s.dtype) for s in column.identity(0)) for column in columns]
    found, offset = [], 0
    for head in tree["heads"].to_pylist():
        where = slice(offset, offset + head["size"])
        offset = where.stop
        part = tuple(tuple(word[where] for word in words) for words in states)
        found.append(Pane(head["start"], head["end"], codes[where], part))
    return found


def _word_array(word: Any) -> pa.Array:
    return pa.array([to_text(state) for state in word], pa.large_string()) if word.dtype.hasobject else pa.array(word)


def _word(array: pa.ChunkedArray, dtype: Any) -> Any:
    if dtype.hasobject:
        out = np.empty(len(array), object)
        out[:] = [from_text(text) for text in array.to_pylist()]
        return out
    # Copied, because states are written in place and Arrow's memory is not ours.
    return np.array(array.to_numpy(), dtype)
