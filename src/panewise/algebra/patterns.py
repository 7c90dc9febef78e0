"""The update pattern of a query tree ("Consistent results", propositions 6 to 9 and table 1)."""

from __future__ import annotations

from panewise.algebra.tree import (
    Derived,
    Distinct,
    Except,
    Filled,
    Framed,
    Group,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    Windowed,
)
from panewise.window import Pattern, WindowRetention


def pattern(node: Node) -> Pattern:
    """How the results of a node change: as its operator and its strongest input require."""
    strongest = max((pattern(child) for child in node.children), default=Pattern.MONOTONIC)
    match node:
        case Source() | Derived() | Framed() | Filled():  # a framing only ever grows
            return Pattern.MONOTONIC
        case Windowed(window=window):
            return max(strongest, window.pattern)
        case Select() | Project() | Union():  # neutral operators, proposition 6
            return strongest
        case Distinct() | Group() | Join():  # interfering operators, proposition 7
            return strongest if strongest is Pattern.MONOTONIC else max(strongest, Pattern.WEAK)
        case Except():  # inflexible, proposition 8
            return Pattern.NON_MONOTONIC
    raise TypeError(f"no update pattern for {type(node).__name__}")


def known_expiry(node: Node) -> tuple[bool, int]:
    """What is known beforehand of when results leave: whether a time is, and the number of orders of counted windows.

    Monotonic results never leave; of non-monotonic ones nothing is known beforehand.
    """
    return (False, 0) if pattern(node) is Pattern.NON_MONOTONIC else _known_expiry(node)


def _known_expiry(node: Node) -> tuple[bool, int]:
    match node:
        case Windowed(window=window):
            return window.expires_by_time, int(window.retention is WindowRetention.COUNTS_ROWS)
    below = [_known_expiry(child) for child in node.children]
    orders = [count for _, count in below]
    return any(by_time for by_time, _ in below), sum(orders) if isinstance(node, Join) else max(orders, default=0)
