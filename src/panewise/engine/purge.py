"""When rows that have expired are dropped from what an operator keeps."""

from __future__ import annotations

from enum import Enum


class Purge(Enum):
    """At once, or many together: results are the same, eager state is smaller, lazy state is touched less often."""

    EAGER = "eager"
    LAZY = "lazy"

    def due(self, alive: int, kept: int) -> bool:
        """Whether rows are to be dropped now, given how many of the kept rows are still alive."""
        return alive < kept if self is Purge.EAGER else 2 * alive <= kept
