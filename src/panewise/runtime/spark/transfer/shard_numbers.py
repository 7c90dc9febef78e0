"""Numbers for shards: one for each partition that Spark's hash can send a row to."""

from __future__ import annotations

from itertools import count

_MASK = 0xFFFFFFFF
#: The seed of Spark's hash partitioning.
_SEED = 42


def labels_of(shards: int) -> tuple[int, ...]:
    """Numbers that Spark's hash sends to as many different partitions; with 0, 1, 2 ... some would share a
    partition.

    >>> labels_of(2)
    (2, 0)
    """
    found: dict[int, int] = {}
    for label in count():
        found.setdefault(spark_hash(label) % shards, label)
        if len(found) == shards:
            return tuple(found[place] for place in range(shards))
    raise AssertionError


def spark_hash(number: int) -> int:
    """The hash that Spark SQL has for an INT: Murmur3 with 32 bits, as a signed number."""
    mixed = _SEED ^ (_rotate((number & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK)
    mixed = (_rotate(mixed, 13) * 5 + 0xE6546B64) & _MASK
    # The length in bytes, then the bits are spread.
    mixed ^= 4
    mixed = (mixed ^ (mixed >> 16)) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ (mixed >> 13)) * 0xC2B2AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotate(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (32 - bits))) & _MASK
