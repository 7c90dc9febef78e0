"""Tables of states, a row a position and a column a group, in circles of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panewise.aggregate import Columns, Fused, Words


def blank(column: Columns, rows: int, width: int) -> Words:
    """A table of identities."""
    return tuple(word.reshape(rows, width) for word in column.identity(rows * width))


def flat(table: Words) -> Words:
    """The states of a table as `Columns` take them, row by row."""
    return tuple(word.reshape(-1) for word in table)


def shaped(words: Words, width: int) -> Words:
    """The other way: flat states as rows of so many groups."""
    return tuple(word.reshape(-1, width) for word in words)


def rooms(rows: int) -> int:
    """The least power of two that holds so many rows, so that a place is found by a mask."""
    return 1 << (rows - 1).bit_length()


def pieces(start: int, stop: int, size: int) -> Iterator[tuple[int, int, int]]:
    """The runs of rows in which numbers from `start` up to `stop`, no more than a circle of `size` holds, lie.

    Each is the first number, the row it has, and how many follow each other from there.

    >>> list(pieces(6, 11, 8))
    [(6, 6, 2), (8, 0, 3)]
    """
    while start < stop:
        row = start & (size - 1)
        count = min(stop - start, size - row)
        yield start, row, count
        start += count


def fold(column: Columns, table: Words, rows: slice, more: Words) -> None:
    """Combine states into some rows of a table, in place. `more` has as many rows, or one that goes into each."""
    held = tuple(word[rows] for word in table)
    more = tuple(np.broadcast_to(word, part.shape) for word, part in zip(more, held, strict=True))
    for part, word in zip(held, column.combine(flat(held), flat(more)), strict=True):
        part[...] = word.reshape(part.shape)


def scanned(column: Columns, table: Words) -> Words:
    """For each row, the states of all rows up to it. Words may have further axes; the first is the one that is scanned.

    Of objects each is combined once, one row after the other. Of numbers, twice as many rows are combined in each
    round, which takes more work but far fewer calls.
    """
    if column.fused is Fused.ADDED:
        return tuple(np.cumsum(word, axis=0) for word in table)
    if column.fused is Fused.GREATEST:
        return np.maximum.accumulate(table[0], axis=0), np.logical_or.accumulate(table[1], axis=0)
    out = tuple(word.copy() for word in table)
    rows = len(out[0])
    if any(word.dtype.hasobject for word in out):
        for row in range(1, rows):
            fold(column, out, slice(row, row + 1), tuple(word[row - 1 : row] for word in out))
        return out
    apart = 1
    while apart < rows:
        fold(column, out, slice(apart, rows), tuple(word[: rows - apart].copy() for word in out))
        apart *= 2
    return out
