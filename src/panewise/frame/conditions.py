"""The conditions of frames beside their kind: how long they are, how they lie beside each other, how data are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from panewise.core.time import Domain, duration_text

#: The words before each condition, in the order in which conditions are printed; some conditions are words themselves.
CONDITION_WORDS = {
    "some": "WITH SOME",
    "least": "FOR AT LEAST",
    "most": "FOR AT MOST",
    "span": "",
    "scheme": "",
    "overlap": "",
    "choice": "",
    "partition_by": "PARTITION BY",
    "extent": "EXTENT",
    "reading": "AS",
    "every": "EVERY",
    "missing": "MISSING",
    "duplicates": "DUPLICATES",
    "fragments": "FRAGMENTS EVERY",
}


def condition_texts(given: Mapping[str, object]) -> Iterator[str]:
    """The text of each condition that was given; those that are None, 0 or empty were not."""
    return (f"{words} {given[name]}".lstrip() for name, words in CONDITION_WORDS.items() if given[name])


@dataclass(frozen=True)
class FrameLength:
    """A duration in ticks, or a number of rows."""

    amount: int
    rows: bool = False

    def text(self, domain: Domain) -> str:
        return f"{self.amount} ROWS" if self.rows else duration_text(self.amount, domain)


class Span(Enum):
    """Which stretches count: those that contain no other, those that no other contains, or the longest of all."""

    MINIMAL = "MINIMAL"
    MAXIMAL = "MAXIMAL"
    MAXIMUM = "MAXIMUM"


class Scheme(Enum):
    """How frames lie beside each other."""

    PARTITION = "PARTITION"  # each begins where the one before ended
    COVER = "COVER"  # every item is in some frame
    ADJACENT = "ADJACENT"  # each begins so long before the end of the one before
    ADVANCING = "ADVANCING"  # begins and ends move on
    DISJOINT = "DISJOINT"  # no item is in two frames
    UNCONSTRAINED = "UNCONSTRAINED"


class Saturation(Enum):
    """Of the sets of frames that satisfy all conditions: one that cannot be enlarged, or one that cannot be reduced."""

    SATURATED = "SATURATED"
    DRAINED = "DRAINED"


class Missing(Enum):
    """What a report that did not come counts as; a frame never starts with one."""

    FAILS = "FAILS"
    QUALIFIES = "QUALIFIES"
    NEIGHBOURS = "NEIGHBOURS"  # it qualifies where reports on both sides do


@dataclass(frozen=True)
class Schedule:
    """Each group reports at a fixed interval, counted from its first report."""

    every: int
    missing: Missing = Missing.FAILS


class Duplicates(Enum):
    """What several items of a group at one time mean."""

    KEEP = "KEEP"  # each counts, in the order of arrival
    ERROR = "ERROR"
    FIRST = "FIRST"
    LAST = "LAST"
    AVG = "AVG"  # one item with the mean of the values that the frame reads, and so on
    MIN = "MIN"
    MAX = "MAX"
    SUM = "SUM"
