"""The update pattern of a query tree ("Consistent results", propositions 6 to 9 and table 1)."""

from __future__ import annotations

from panewise.algebra.tree import Derived, Distinct, Except, Group, Join, Node, Project, Select, Source, Union, Windowed
from panewise.window import Pattern


def pattern(node: Node) -> Pattern:
    """How the results of a node change: never beyond what its operator and its strongest input force on it."""
    strongest = max((pattern(child) for child in node.children), default=Pattern.MONOTONIC)
    match node:
        case Source() | Derived():
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
