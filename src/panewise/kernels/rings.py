"""The rings of `running`, as kernels and whoever calls them agree on them; to read it needs no compiler."""

from __future__ import annotations

from typing import TypeAlias

from panewise.kernels.plain import Int64Array

#: The pool's times, and sums (none where elements are counted); then what is known of each ring.
Rings: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]
#: The columns of that: they lie together, since a lookup needs them all.
START, ROOM, OLDEST, NEXT, TOTAL = range(5)
FIELDS = 5
