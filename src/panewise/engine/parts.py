"""The state of an engine in named parts, of which only those that changed are written again.

The *head* is a tree whose tables have been put aside under names. A part never changes, so a part that is still there
need not be written: what an owner wrote once keeps its name, other tables are named after their contents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from panewise.engine.sealed import sealed, sealed_table, unsealed, unsealed_table
from panewise.engine.snapshot import FORMAT, NAMES, Part, Tree, check_format, loaded, stored
from panewise.errors import StateProblem


@dataclass(frozen=True)
class Change:
    """What has to be written and removed for a state to be kept."""

    head: bytes
    fresh: dict[str, bytes]
    gone: frozenset[str]


@dataclass
class Parts:
    """The names of the parts that have been written."""

    known: frozenset[str] = frozenset()
    serial: int = 0
    #: The bytes of every part, for metrics.
    sizes: dict[str, int] = field(default_factory=dict)

    def change(self, tree: Tree, note: Tree) -> Change:
        """How the kept state becomes this one. `note` is written into the head and can be read on its own."""
        names: set[str] = set()
        fresh: dict[str, bytes] = {}

        def keep(leaf: pa.Table | Part) -> Any:
            name = self._owned(leaf, fresh) if isinstance(leaf, Part) else _by_contents(leaf, fresh)
            names.add(name)
            return {"#part": name}

        body = stored(tree, keep)
        fresh = {name: data for name, data in fresh.items() if name not in self.known}
        gone = self.known - names
        self.sizes = {n: size for n, size in self.sizes.items() if n in names} | {n: len(d) for n, d in fresh.items()}
        self.known = frozenset(names)
        header = {"format": FORMAT, "serial": self.serial, "sizes": self.sizes, "note": note}
        return Change(_head(header, body), fresh, gone)

    def _owned(self, part: Part, fresh: dict[str, bytes]) -> str:
        names = NAMES.setdefault(part.owner, {})
        if names.get(part.key) not in self.known:
            self.serial += 1
            name = names[part.key] = f"p{self.serial}"
            fresh[name] = sealed_table(part.make())
        return names[part.key]


def read_note(head: bytes) -> Tree:
    """What was noted in a head; a clear refusal when it is none, or damaged."""
    note: Tree = _opened(head)[0]["note"]
    return note


def parts_of(head: bytes) -> list[str]:
    """The names of the parts that a head refers to."""
    return list(_opened(head)[0]["sizes"])


def read_parts(head: bytes, read: Callable[[str], bytes | None]) -> tuple[Tree, Parts]:
    """The tree that a head stands for; `read` brings a part."""
    header, body = _opened(head)

    def find(name: str) -> pa.Table:
        data = read(name)
        if data is None or len(data) != header["sizes"].get(name):
            raise StateProblem(f"the state is damaged: its part {name} is missing or cut off", fix=_OLDER)
        table = unsealed_table(data, f"part {name} of the state", _OLDER)
        return table.replace_schema_metadata({"part": name}) if name.startswith("p") else table

    tree = loaded(body, find)
    return tree, Parts(frozenset(header["sizes"]), header["serial"], header["sizes"])


_OLDER = "start from an older copy of the checkpoint, or from an empty one"


def _by_contents(table: pa.Table, fresh: dict[str, bytes]) -> str:
    data = sealed_table(table)
    name = hashlib.blake2b(data, digest_size=12).hexdigest()
    fresh[f"c{name}"] = data
    return f"c{name}"


def _head(header: Tree, body: Any) -> bytes:
    return sealed(json.dumps([header, body], separators=(",", ":")).encode())


def _opened(head: bytes) -> tuple[Tree, Any]:
    header, body = json.loads(bytes(unsealed(head, "the state", _OLDER)))
    check_format(header)
    return header, body
