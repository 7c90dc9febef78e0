"""Many rows are evaluated in portions, so that arrays stay small enough for the processor's caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from panewise.aggregate import Int64Array
from panewise.kernels.ranges import OPEN

#: Rows of a portion, unless a turn has to look at more rows anyway.
PORTION_ROWS = 1 << 16


def portion_slices(count: int) -> Iterator[slice]:
    """So many rows in portions."""
    return (slice(start, min(start + PORTION_ROWS, count)) for start in range(0, count, PORTION_ROWS))


def portion_limit(parts: Iterable[Int64Array], after: int, limit: int, held: int = 0) -> int:
    """The instant later than `after` and up to `limit` before the last one of a portion's rows.

    Rows of that one may be in the next portion, too. A part is the instants at which its rows are visible. A turn looks
    at `held` rows besides, so that a portion has no fewer.
    """
    count, latest = 0, -OPEN
    for visible in parts:
        if count >= max(PORTION_ROWS, held):
            return min(max(latest - 1, after + 1), limit)
        count, latest = count + len(visible), max(latest, int(visible.max(initial=-OPEN)))
    return limit
