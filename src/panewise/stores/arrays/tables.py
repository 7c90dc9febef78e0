"""Tables of states, a row a position and a column a group, in circles of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panewise.aggregate import FusedOperation, StateArrays, StateWords


def identity_table(column: StateArrays, rows: int, width: int) -> StateWords:
    """A table of identities."""
    return tuple(word.reshape(rows, width) for word in column.identity(rows * width))


def widen_rows(column: StateArrays, table: StateWords, width: int) -> StateWords:
    """The same rows with more groups, which hold identities."""
    wide = identity_table(column, len(table[0]), width)
    for new, old in zip(wide, table, strict=True):
        new[:, : old.shape[1]] = old
    return wide


def lengthen_rows(column: StateArrays, table: StateWords, rows: int) -> StateWords:
    """The same rows at the same places, with more of them."""
    long = identity_table(column, rows, table[0].shape[1])
    for new, old in zip(long, table, strict=True):
        new[: len(old)] = old
    return long


def flatten(table: StateWords) -> StateWords:
    """The states of a table as `StateArrays` take them, row by row."""
    return tuple(word.reshape(-1) for word in table)


def to_rows(words: StateWords, width: int) -> StateWords:
    """The other way: flat states as rows of so many groups."""
    return tuple(word.reshape(-1, width) for word in words)


def capacity_for(rows: int) -> int:
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


def combine_tables(column: StateArrays, left: StateWords, right: StateWords) -> StateWords:
    """The states of two tables of one shape, place by place."""
    found = column.combine(flatten(left), flatten(right))
    return tuple(word.reshape(part.shape) for word, part in zip(found, left, strict=True))


def fold_into(column: StateArrays, table: StateWords, rows: slice, more: StateWords) -> None:
    """Combine states into some rows of a table, in place. `more` has as many rows, or one that goes into each."""
    held = tuple(word[rows] for word in table)
    if column.fused is FusedOperation.ADDED:
        for part, word in zip(held, more, strict=True):
            part += word
        return
    more = tuple(np.broadcast_to(word, part.shape) for word, part in zip(more, held, strict=True))
    for part, word in zip(held, combine_tables(column, held, more), strict=True):
        part[...] = word


def combine_rows(column: StateArrays, table: StateWords) -> StateWords:
    """The states of all rows together, as one row: halves are combined until one is left."""
    while (rows := len(table[0])) > 1:
        half = rows // 2
        both = combine_tables(
            column, tuple(word[:half] for word in table), tuple(word[half : 2 * half] for word in table)
        )
        table = tuple(np.concatenate((pair, word[2 * half :])) for pair, word in zip(both, table, strict=True))
    return table


def scan_rows(column: StateArrays, table: StateWords) -> StateWords:
    """For each row, the states of all rows up to it. Words may have further axes; the first is the one that is scanned.

    Neighbours are combined, those are scanned, and the rows between them follow: two combinations a row, in few calls.
    """
    if column.fused is FusedOperation.ADDED:
        return tuple(np.cumsum(word, axis=0) for word in table)
    if column.fused is FusedOperation.GREATEST:
        return np.maximum.accumulate(table[0], axis=0), np.logical_or.accumulate(table[1], axis=0)
    out = tuple(word.copy() for word in table)
    rows = len(out[0])
    if rows > 1:
        early, late = (tuple(word[start : rows & -2 : 2] for word in table) for start in (0, 1))
        pairs = scan_rows(column, combine_tables(column, early, late))
        between = tuple(word[2::2] for word in table)
        follow = combine_tables(column, tuple(word[: (rows - 1) // 2] for word in pairs), between)
        for word, pair, rest in zip(out, pairs, follow, strict=True):
            word[1::2], word[2::2] = pair, rest
    return out
