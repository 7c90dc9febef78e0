"""The state of an engine in named parts, of which only those that changed are written again.

The *head* is a tree whose tables have been put aside under names. A part never changes, so a part that is still there
need not be written. Its name ends with a digest of its contents and has the *stamp* of its writer, so that it is never
used again for other contents. The names of parts that have an owner begin with `p`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from panewise.core.errors import StateProblem
from panewise.engine.state.sealed import seal, seal_table, unseal, unseal_table
from panewise.engine.state.snapshot import (
    FORMAT,
    PART_NAMES,
    StatePart,
    Tree,
    attach_tables,
    check_format,
    detach_tables,
)


@dataclass(frozen=True)
class StateChange:
    """The parts that have to be written and removed so that a state is kept."""

    head: bytes
    fresh: dict[str, bytes]
    gone: frozenset[str]


@dataclass
class StateParts:
    """The names of the parts that have been written."""

    known: frozenset[str] = frozenset()
    #: The bytes of every part, for metrics.
    sizes: dict[str, int] = field(default_factory=dict)

    def change(self, tree: Tree, note: Tree, stamp: str = "") -> StateChange:
        """How the kept state becomes this one. `note` is written into the head and can be read on its own."""
        names: set[str] = set()
        fresh: dict[str, bytes] = {}
        contents = {(name[0], _digest_of(name)): name for name in self.known}

        def write_part(kind: str, table: pa.Table) -> str:
            data = seal_table(table)
            digest = content_digest(data)
            if (kind, digest) not in contents:
                contents[kind, digest] = f"{kind}-{stamp}{digest}"
                fresh[contents[kind, digest]] = data
            return contents[kind, digest]

        def keep(leaf: pa.Table | StatePart) -> Any:
            name = self._write_owned(leaf, write_part) if isinstance(leaf, StatePart) else write_part("c", leaf)
            names.add(name)
            return {"#part": name}

        body = detach_tables(tree, keep)
        gone = self.known - names
        self.sizes = {n: size for n, size in self.sizes.items() if n in names} | {n: len(d) for n, d in fresh.items()}
        self.known = frozenset(names)
        header = {"format": FORMAT, "sizes": self.sizes, "note": note}
        return StateChange(_write_head(header, body), fresh, gone)

    def _write_owned(self, part: StatePart, written: Callable[[str, pa.Table], str]) -> str:
        names = PART_NAMES.setdefault(part.owner, {})
        if names.get(part.key) not in self.known:
            names[part.key] = written("p", part.make())
        return names[part.key]


def read_note(head: bytes) -> Tree:
    """The note of a head; refuses bytes that are no head, or are damaged."""
    note: Tree = _read_head(head)[0]["note"]
    return note


def part_names(head: bytes) -> list[str]:
    """The names of the parts that a head refers to."""
    return list(_read_head(head)[0]["sizes"])


def read_parts(head: bytes, read: Callable[[str], bytes | None]) -> tuple[Tree, StateParts]:
    """The tree of a head; `read` returns the bytes of a part."""
    header, body = _read_head(head)

    def find(name: str) -> pa.Table:
        data = read(name)
        if data is None or len(data) != header["sizes"].get(name):
            raise StateProblem(f"the state is damaged: its part {name} is missing or cut off", fix=_OLDER)
        table = unseal_table(data, f"part {name} of the state", _OLDER)
        return table.replace_schema_metadata({"part": name}) if name.startswith("p") else table

    tree = attach_tables(body, find)
    return tree, StateParts(frozenset(header["sizes"]), header["sizes"])


_OLDER = "start from an older copy of the checkpoint, or from an empty one"


def content_digest(data: bytes) -> str:
    """A digest of contents: equal bytes have equal digests, others have different ones."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _digest_of(name: str) -> str:
    return name.rpartition("-")[2]


def _write_head(header: Tree, body: Any) -> bytes:
    return seal(json.dumps([header, body], separators=(",", ":")).encode())


def _read_head(head: bytes) -> tuple[Tree, Any]:
    header, body = json.loads(bytes(unseal(head, "the state", _OLDER)))
    check_format(header)
    return header, body
