"""The state of an engine as bytes: Arrow IPC with a format version and a fingerprint of the plan, under a seal.

The state of an object is a tree of plain values, tables and panes. `pack_state` writes such a tree whole;
`engine.state.parts` keeps it in parts, of which only those that changed are written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array, StateArrays, StateWords, concat_states
from panewise.core.errors import StateProblem
from panewise.engine.state.codec import from_text, to_text
from panewise.engine.state.sealed import seal_table, table_buffer, unseal_table
from panewise.stores.pane import Pane

FORMAT = 6

Tree = dict[str, Any]

#: Panes with fewer groups are written several together.
FEW_GROUPS = 64
#: About how many small panes are written together.
PANES_PER_PART = 256
#: The size of the blocks in which rows of a table that only grows are written.
ROWS_PER_PART = 8192


@dataclass(frozen=True, eq=False)
class StatePart:
    """A table in a tree that never changes once it has been made; `owner` and `key` say which one it is."""

    owner: object
    key: Hashable
    make: Callable[[], pa.Table]


#: Stores a leaf of a tree elsewhere, and returns the value that replaces it in the tree.
LeafWriter = Callable[[pa.Table | StatePart], Any]


def pack_state(tree: Tree, plan: Tree) -> bytes:
    """A tree of states as bytes. `plan` identifies the queries to which it belongs."""
    return serialize_tree(tree, {"format": FORMAT, "fingerprint": fingerprint(plan), "plan": plan})


def unpack_state(data: bytes) -> tuple[Tree, Tree]:
    """The tree and the plan; refuses bytes that `pack_state` did not write."""
    tree, header = deserialize_tree(data, "the snapshot", "pass what Engine.snapshot() returned, or an older one")
    if header["fingerprint"] != fingerprint(header["plan"]):
        raise StateProblem("the snapshot is damaged: its fingerprint is wrong", fix="use an older one")
    return tree, header["plan"]


def serialize_tree(tree: Tree, header: Tree) -> bytes:
    """A tree with all its tables as bytes."""
    parts: list[memoryview] = []

    def keep(leaf: pa.Table | StatePart) -> Any:
        parts.append(memoryview(table_buffer(leaf.make() if isinstance(leaf, StatePart) else leaf)))
        return {"#part": len(parts) - 1}

    metadata = {"tree": json.dumps(detach_tables(tree, keep)), "panewise": json.dumps(header)}
    return seal_table(pa.table({"part": pa.array(parts, pa.large_binary())}).replace_schema_metadata(metadata))


def deserialize_tree(data: Any, what: str, fix: str) -> tuple[Tree, Tree]:
    """The tree that `serialize_tree` wrote; a refusal names `what` it should have been."""
    table = unseal_table(data, what, fix)
    header = json.loads(table.schema.metadata[b"panewise"])
    check_format(header)
    parts = [part.as_buffer() for part in table.column("part").combine_chunks()]
    body = json.loads(table.schema.metadata[b"tree"])
    return attach_tables(body, lambda number: pa.ipc.open_stream(parts[number]).read_all()), header


def check_format(header: Tree) -> None:
    if header.get("format") != FORMAT:
        raise StateProblem(
            f"the snapshot has format {header.get('format')}, this version reads format {FORMAT}",
            fix="restore it with the version that wrote it",
        )


def fingerprint(plan: Tree) -> str:
    """Equal for equal plans."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


def detach_tables(value: Any, keep: LeafWriter) -> Any:
    """A tree as JSON values: plain values as they are, tables stored elsewhere."""
    match value:
        case dict():
            return {key: detach_tables(each, keep) for key, each in value.items()}
        case list() | tuple():
            return [detach_tables(each, keep) for each in value]
        case pa.Table() | StatePart():
            return keep(value)
    return value


def attach_tables(value: Any, find: Callable[[Any], pa.Table]) -> Any:
    """The tree from which `detach_tables` took the tables; `find` returns a stored table."""
    match value:
        case {"#part": where}:
            return find(where)
        case dict():
            return {key: attach_tables(each, find) for key, each in value.items()}
        case list():
            return [attach_tables(each, find) for each in value]
    return value


# ---- tables that only grow -------------------------------------------------------------------------------------


def append_only_parts(owner: object, rows: int, take: Callable[[Int64Array], pa.Table]) -> list[StatePart]:
    """Rows 0 to `rows` - 1 of a table that only grows, in blocks that are written once."""

    def block(start: int, stop: int) -> StatePart:
        return StatePart(owner, (start, stop), lambda: take(np.arange(start, stop)))

    return [block(start, min(start + ROWS_PER_PART, rows)) for start in range(0, rows, ROWS_PER_PART)]


# ---- panes -----------------------------------------------------------------------------------------------------


def pane_tree(columns: Sequence[StateArrays], panes: Sequence[Pane]) -> list[Tree]:
    """Panes in their order: large ones each on its own, small ones several together."""
    return [_entry(columns, run) for run in _pane_batches(list(panes))]


def panes_from(columns: Sequence[StateArrays], entries: Sequence[Tree]) -> list[Pane]:
    """What `pane_tree` wrote."""
    found: list[Pane] = []
    for entry in entries:
        fresh = list(read_panes(columns, entry))
        if len(fresh) == 1:
            remember_name(fresh[0], "cells", entry["cells"])
        found += fresh
    return found


def _pane_batches(panes: list[Pane]) -> Iterator[list[Pane]]:
    """Runs of panes that are written together.

    Small ones are divided at round positions, so that a run stays the same while other panes come and go.
    """
    spans = [p.end for p in panes]
    width = (max(spans) - min(spans)) * PANES_PER_PART // len(panes) if panes else 0
    bits = max(width, 1).bit_length()

    def run(numbered: tuple[int, Pane]) -> tuple[bool, int]:
        number, pane = numbered
        return (True, number) if len(pane.codes) >= FEW_GROUPS else (False, pane.end >> bits)

    for _, some in groupby(enumerate(panes), run):
        yield [pane for _, pane in some]


def pane_table(columns: Sequence[StateArrays], panes: Sequence[Pane]) -> Tree:
    """Panes as one table, with a head for each."""
    return {"heads": _heads(panes), "cells": _cells(columns, panes)}


def _entry(columns: Sequence[StateArrays], panes: list[Pane]) -> Tree:
    if len(panes) > 1:
        return pane_table(columns, panes)
    return {"heads": _heads(panes), "cells": StatePart(panes[0], "cells", lambda: _cells(columns, panes))}


def _heads(panes: Sequence[Pane]) -> list[list[int]]:
    return [[p.start, p.end, len(p.codes)] for p in panes]


def _cells(columns: Sequence[StateArrays], panes: Sequence[Pane]) -> pa.Table:
    """One row for each group of each pane."""
    cells = [pa.array(np.concatenate([p.codes for p in panes]))]
    for number, column in enumerate(columns):
        words = concat_states([p.states[number] for p in panes])
        written = column.write(words)
        cells += [_word_array(word) for word in words] if written is None else written
    return pa.table(cells, names=[str(i) for i in range(len(cells))])


def read_panes(columns: Sequence[StateArrays], entry: Tree) -> Iterator[Pane]:
    """What `pane_table` wrote."""
    cells = iter(entry["cells"].columns)
    codes = np.array(next(cells).to_numpy(), np.int64)
    states = [_words(column, cells) for column in columns]
    offset = 0
    for start, end, size in entry["heads"]:
        where = slice(offset, offset + size)
        offset = where.stop
        yield Pane(start, end, codes[where], tuple(tuple(word[where] for word in words) for words in states))


def _words(column: StateArrays, cells: Iterator[pa.ChunkedArray]) -> StateWords:
    """The states of one column, from as many cells as it has written."""
    nothing = column.identity(0)
    if (written := column.write(nothing)) is not None:
        return column.read([next(cells).combine_chunks() for _ in written])
    return tuple(_word(next(cells), word) for word in nothing)


def _word_array(word: Any) -> pa.Array:
    if word.dtype.hasobject:
        return pa.array([to_text(state) for state in word], pa.large_string())
    if word.ndim == 1:
        return pa.array(word)
    return pa.FixedSizeListArray.from_arrays(pa.array(word.ravel()), word.shape[1])


def _word(array: pa.ChunkedArray, like: Any) -> Any:
    if like.dtype.hasobject:
        out = np.empty(len(array), object)
        out[:] = [from_text(text) for text in array.to_pylist()]
        return out
    # Copied, because states are written in place and Arrow's memory is not ours.
    if like.ndim == 1:
        return np.array(array.to_numpy(), like.dtype)
    return np.array(array.combine_chunks().flatten().to_numpy(), like.dtype).reshape(len(array), *like.shape[1:])


# ---- names -----------------------------------------------------------------------------------------------------

#: The names under which parts have been written, by owner and key.
PART_NAMES: WeakKeyDictionary[object, dict[Hashable, str]] = WeakKeyDictionary()


def remember_name(owner: object, key: Hashable, table: pa.Table) -> None:
    """Remember that an owner's table came from a part with a name, so that it is not written again."""
    name = (table.schema.metadata or {}).get(b"part")
    if name is not None:
        PART_NAMES.setdefault(owner, {})[key] = name.decode()
