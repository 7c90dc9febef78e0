"""Tables of states, a row a position and a column a group, in circles of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panewise.aggregate import Columns, Fused, Words


def blank(column: Columns, rows: int, width: int) -> Words:
    """A table of identities."""
    return tuple(word.reshape(rows, width) for word in column.identity(rows * width))


def widened(column: Columns, table: Words, width: int) -> Words:
    """The same rows with more groups, which hold identities."""
    wide = blank(column, len(table[0]), width)
    for new, old in zip(wide, table, strict=True):
        new[:, : old.shape[1]] = old
    return wide


def lengthened(column: Columns, table: Words, rows: int) -> Words:
    """The same rows at the same places, with more of them."""
    long = blank(column, rows, table[0].shape[1])
    for new, old in zip(long, table, strict=True):
        new[: len(old)] = old
    return long


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


def combined(column: Columns, left: Words, right: Words) -> Words:
    """The states of two tables of one shape, place by place."""
    found = column.combine(flat(left), flat(right))
    return tuple(word.reshape(part.shape) for word, part in zip(found, left, strict=True))


def fold(column: Columns, table: Words, rows: slice, more: Words) -> None:
    """Combine states into some rows of a table, in place. `more` has as many rows, or one that goes into each."""
    held = tuple(word[rows] for word in table)
    if column.fused is Fused.ADDED:
        for part, word in zip(held, more, strict=True):
            part += word
        return
    more = tuple(np.broadcast_to(word, part.shape) for word, part in zip(more, held, strict=True))
    for part, word in zip(held, combined(column, held, more), strict=True):
        part[...] = word


def total(column: Columns, table: Words) -> Words:
    """The states of all rows together, as one row: halves are combined until one is left."""
    while (rows := len(table[0])) > 1:
        half = rows // 2
        both = combined(column, tuple(word[:half] for word in table), tuple(word[half : 2 * half] for word in table))
        table = tuple(np.concatenate((pair, word[2 * half :])) for pair, word in zip(both, table, strict=True))
    return table


def scanned(column: Columns, table: Words) -> Words:
    """For each row, the states of all rows up to it. Words may have further axes; the first is the one that is scanned.

    Neighbours are combined, those are scanned, and the rows between them follow: two combinations a row, in few calls.
    """
    if column.fused is Fused.ADDED:
        return tuple(np.cumsum(word, axis=0) for word in table)
    if column.fused is Fused.GREATEST:
        return np.maximum.accumulate(table[0], axis=0), np.logical_or.accumulate(table[1], axis=0)
    out = tuple(word.copy() for word in table)
    rows = len(out[0])
    if rows > 1:
        early, late = (tuple(word[start : rows & -2 : 2] for word in table) for start in (0, 1))
        pairs = scanned(column, combined(column, early, late))
        between = tuple(word[2::2] for word in table)
        follow = combined(column, tuple(word[: (rows - 1) // 2] for word in pairs), between)
        for word, pair, rest in zip(out, pairs, follow, strict=True):
            word[1::2], word[2::2] = pair, rest
    return out
