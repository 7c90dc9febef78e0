"""Stairs: what the stairwise chain of a group retains, and its cost.

Any frames can be served by one chain. Let r_1 < r_2 < ... be their ranges. What is at least r_(k-1) and less than r_k
ticks old is kept in panes of width G_k, the greatest common divisor of the slides and ranges of all frames at least
r_k wide: only those look that far back. G_k divides G_(k+1), so panes become wider with age, and wherever they do, a
buffer collects narrow panes until a wide one is full. The groups of "Subsuming windows" section 3.2 are the special
case in which each slide divides the next.

Neighbouring levels of one granule make up one *stair*. Every range of a stair is a multiple of its granule, so the
number of its panes depends on its two ends only, and the few stairs of a group, never more than the binary digits of
its widest granule, say all about its cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TypeAlias

from panewise.plan.rules.group_windows.shapes import WindowShape

#: (granule, reach) of each stair, from the narrowest; the reach is the widest range on it. Both grow strictly.
Stairs: TypeAlias = tuple[tuple[int, int], ...]


def single_stair(frame: WindowShape) -> Stairs:
    """The one stair of a frame on its own."""
    return ((frame.granule, frame.range),)


def stairs_of(granules: Iterable[int], ranges: Iterable[int]) -> Stairs:
    """The stairs of levels given in the order of their ranges."""
    # Equal granules stand side by side, and of those the dictionary keeps the last range.
    return tuple(dict(zip(granules, ranges, strict=True)).items())


def merge_stairs(one: Stairs, other: Stairs) -> Stairs:
    """The stairs of two groups as one: at every depth the common divisor of the two granules."""
    reaches: dict[int, int] = {}
    i = j = 0
    while i < len(one) and j < len(other):
        (granule, reach), (other_granule, other_reach) = one[i], other[j]
        reaches[gcd(granule, other_granule)] = min(reach, other_reach)
        i += reach <= other_reach
        j += other_reach <= reach
    reaches.update(one[i:])
    reaches.update(other[j:])
    return tuple(reaches.items())


def cost_of(stairs: Stairs) -> int:
    """Panes retained on all stairs, and one more for the buffer between each two.

    >>> cost_of(((1, 8), (2, 20)))  # eight panes of one tick, six of two, one buffer
    15
    """
    below, panes = 0, 0
    for granule, reach in stairs:
        panes += reach // granule - below // granule
        below = reach
    return panes + len(stairs) - 1 if stairs else 0


def least_merged_cost(one: Stairs, other: Stairs) -> int:
    """A bound that the cost of two groups as one cannot stay below, quickly: the panes of their lowest stair."""
    (granule, reach), (other_granule, other_reach) = one[0], other[0]
    return min(reach, other_reach) // gcd(granule, other_granule)
