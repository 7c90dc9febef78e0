"""Warnings about queries that have a meaning, but perhaps not the one that was intended."""

from __future__ import annotations

import re

import pyarrow as pa

from panewise.algebra.result_columns import renamed_columns_hint
from panewise.algebra.tree import Emit, Group, Project, Query, Source
from panewise.core.time import UNITS
from panewise.window import Landmark


def hints(query: Query) -> list[str]:
    """The warnings for the author of a query, one sentence each."""
    return [hint for hint in (renamed_columns_hint(query), _time_bucket_hint(query)) if hint]


def _time_bucket_hint(query: Query) -> str | None:
    """Groups by a part of the time and no window: each arrival then changes a group, and every change is reported."""
    if query.emit is not Emit.CHANGES or any(node.window != Landmark() for node in query.windows):
        return None
    times = {node.time for node in query.root.walk() if isinstance(node, Source)}
    for node in query.root.walk():
        if isinstance(node, Group) and isinstance(node.child, Project):
            keys = [scalar for name, scalar in node.child.items if name in node.keys and scalar.column is None]
            parts = [s.sql for s in keys if times & set(s.inputs) and not pa.types.is_boolean(s.type)]
            if found := next(iter(parts), None):
                return (
                    f"{_plain(found)} groups by time without a window, so that every change of a group is reported; "
                    f"write {_window_text(found)} after the stream to get each group once"
                )
    return None


def _plain(sql: str) -> str:
    return re.sub(r"`(?:[^`.]*\.)?([^`]*)`", r"\1", sql)


def _window_text(sql: str) -> str:
    unit = re.match(r"DATE_TRUNC\('(\w+)'", sql, re.IGNORECASE)
    length = f"1 {unit[1].upper()}" if unit and unit[1].upper() in UNITS else "..."
    return f"[RANGE {length} SLIDE {length}]"
