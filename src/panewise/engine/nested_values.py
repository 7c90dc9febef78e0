"""Whether values of lists and structs are equal, pair by pair, without looking at any of them in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array

Flags: TypeAlias = npt.NDArray[np.bool_]
#: Whether the values of an array at some places equal those at others.
EqualAt: TypeAlias = Callable[[pa.Array, Int64Array, Int64Array], Flags]


def equal_lists(values: pa.ListArray, one: Int64Array, other: Int64Array, equal_at: EqualAt) -> Flags:
    """Whether pairs of lists are equal; `equal_at` compares their elements."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    if values.null_count:
        # No list has this size, so that NULL equals NULL alone; its elements do not count.
        sizes[values.is_null().to_numpy(zero_copy_only=False)] = -1
    equal: Flags = sizes[one] == sizes[other]
    open_ = np.flatnonzero(equal & (sizes[one] > 0) & (offsets[one] != offsets[other]))
    counts = sizes[one[open_]]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    left, right = (np.repeat(offsets[side[open_]], counts) + within for side in (one, other))
    equal[np.repeat(open_, counts)[~equal_at(values.values, left, right)]] = False
    return equal


def equal_structs(values: pa.StructArray, one: Int64Array, other: Int64Array, equal_at: EqualAt) -> Flags:
    """Whether pairs of structs are equal; `equal_at` compares their fields."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    equal = np.ones(len(one), bool)
    for field in values.flatten():
        equal &= equal_at(field, one, other)
    return np.asarray((equal | missing[one]) & (missing[one] == missing[other]))
