"""Which filters a row passes, as one number for each combination of filters that occurs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from panewise.aggregate import Int64Array

Flags = npt.NDArray[np.bool_]

#: So many filters are packed into one number at a time.
FILTERS_PER_WORD = 60


class FilterCombinations:
    """The combinations of filters among the rows of a task, numbered in the order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    @property
    def combinations(self) -> list[list[int]]:
        return [list(filters) for filters in self._numbers]

    def number_rows(self, passing: Sequence[Flags], rows: int) -> Int64Array:
        """For each row the number of its combination; `passing` has the rows that pass each filter."""
        codes: Int64Array = np.zeros(rows, np.int64)
        found: list[tuple[int, ...]] = [()]
        for start in range(0, len(passing), FILTERS_PER_WORD):
            word = np.zeros(rows, np.int64)
            for bit, flags in enumerate(passing[start : start + FILTERS_PER_WORD]):
                word |= flags.astype(np.int64) << bit
            words, places = _distinct_values(word)
            pairs, codes = _distinct_values(codes * len(words) + places)
            found = [
                found[pair // len(words)] + _set_bits(int(words[pair % len(words)]), start) for pair in pairs.tolist()
            ]
        return np.array([self._numbers.setdefault(filters, len(self._numbers)) for filters in found])[codes]


def _distinct_values(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The different values, and for each value its index among them."""
    if (values == values[0]).all():
        return values[:1], np.zeros(len(values), np.int64)
    return np.unique(values, return_inverse=True)


def _set_bits(word: int, first: int) -> tuple[int, ...]:
    return tuple(first + bit for bit in range(FILTERS_PER_WORD) if word >> bit & 1)


def count_by_pane(ends: Int64Array, wanted: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Row counts by the end of the pane and by filter combination."""
    width = int(wanted.max()) + 1
    panes, places = np.unique(ends, return_inverse=True)
    pairs, rows = np.unique(places * width + wanted, return_counts=True)
    return panes[pairs // width], pairs % width, rows
