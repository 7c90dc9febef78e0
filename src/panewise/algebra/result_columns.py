"""The columns that results have besides those that were selected, and what becomes of names that both have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from panewise.algebra.patterns import known_expiry
from panewise.algebra.tree import Emit, Query

T = TypeVar("T")

#: What added columns say.
COLUMN_MEANINGS = {
    "ts": "the instant of a result",
    "w_start": "the start of its window",
    "w_end": "the end of its window",
    "w_level": "the level of its window",
    "sign": "whether a row came or went",
    "expires_at": "when a row leaves",
    "expires_order": "which later row pushes a row out",
    "revision": "how often a result was revised",
    "frame_id": "the number of a frame",
    "duration": "the length of a frame",
    "count": "the number of items in a frame",
    "missing": "the number of reports that a frame lacks",
    "final": "whether a frame has ended",
}


def added_columns(query: Query) -> list[str]:
    """The names of the columns that results of a query get."""
    if query.framed_node is not None:
        missing = ["missing"] if query.framed_node.frame.schedule else []
        return ["frame_id", "w_start", "w_end", "duration", "count", *missing, "final"]
    found = ["w_start", "w_end"] if query.emit is Emit.RSTREAM and query.periodic else ["ts"]
    if any(node.window.levels for node in query.windows):
        found.append("w_level")
    if query.emit is Emit.CHANGES:
        found.append("sign")
    if query.emit in (Emit.CHANGES, Emit.ISTREAM):
        by_time, orders = known_expiry(query.root)
        found += ["expires_at"] * by_time + ["expires_order"] * bool(orders)
    return [*found, "revision"] if query.revise is not None else found


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with as many underscores as it needs to be another one than those that are taken."""
    known = {other.lower() for other in taken}
    while name.lower() in known:
        name += "_"
    return name


def combine_columns(selected: Mapping[str, T], added: Mapping[str, T]) -> dict[str, T]:
    """Selected columns first, then the added ones; an added name that is taken gets an underscore."""
    found = dict(selected)
    for name, values in added.items():
        found[free_name(name, found)] = values
    return found


def renamed_columns_hint(query: Query) -> str | None:
    """Which added columns are called otherwise, since a selected one has their name; None where none is."""
    selected = {column.name: None for column in query.root.columns}
    names = combine_columns(selected, dict.fromkeys(added_columns(query)))
    pairs = zip(added_columns(query), list(names)[len(selected) :], strict=True)
    moved = [f"{COLUMN_MEANINGS[name]} is called {shown!r}" for name, shown in pairs if name != shown]
    if not moved:
        return None
    return f"selected columns have the names of added ones, so that {', '.join(moved)}; give such columns an alias"
