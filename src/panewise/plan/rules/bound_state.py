"""Whether the windows of a query bound what it must remember."""

from __future__ import annotations

from panewise.algebra import Derived, Distinct, Emit, Except, Group, Join, Node, Query, Windowed
from panewise.window import Window, WindowRetention


def unbounded_state_reason(query: Query) -> str | None:
    """Why the state of a relational query grows for ever; None where its windows bound it."""
    for node in query.root.walk():
        if isinstance(node, Derived) and (reason := unbounded_state_reason(node.query)):
            return reason
        if (reason := _memory_text(node)) and (window := next(filter(None, map(_endless_window, node.children)), None)):
            return f"{reason} [{window.text(query.domain)}]"
    window = _endless_window(query.root)
    if query.emit is Emit.RSTREAM and window is not None:
        return f"RSTREAM repeats everything that was ever in [{window.text(query.domain)}]"
    return None


def unbounded_keys_reason(query: Query) -> str | None:
    """Why every key that ever came is remembered; None where none is for the sake of its last rows."""
    for node in query.root.walk():
        if isinstance(node, Derived) and (reason := unbounded_keys_reason(node.query)):
            return reason
        if (
            isinstance(node, Windowed)
            and node.window.retention is WindowRetention.COUNTS_ROWS
            and node.window.partition_by
        ):
            keys = ", ".join(node.window.partition_by)
            return f"the last rows of every different {keys} are kept in [{node.window.text(query.domain)}]"
    return None


def _memory_text(node: Node) -> str | None:
    match node:
        case Join():
            return "the join keeps every row of"
        case Distinct():
            return "DISTINCT remembers every different row of"
        case Except():
            return "EXCEPT ALL remembers every different row of"
        case Group():
            return "the groups keep every row of"
    return None


def _endless_window(node: Node) -> Window | None:
    """A window from which the rows of a node never leave."""
    match node:
        case Windowed(window=window):
            return window if window.unbounded else None
        case Join(left, right):
            # A pair leaves with its first part.
            return _endless_window(left) and _endless_window(right)
        case Except(left):
            return _endless_window(left)
    return next(filter(None, map(_endless_window, node.children)), None)
