"""Bytes as accidents leave them."""

from __future__ import annotations

import random
from collections.abc import Iterator


def mutations(data: bytes, count: int, seed: int = 14) -> Iterator[bytes]:
    """So many damaged copies: bits flipped, bytes replaced, cut off, put in, put behind, set to zero, moved."""
    choice = random.Random(seed)
    found = 0
    while found < count:
        start = choice.randrange(len(data))
        stop = min(len(data), start + choice.choice((1, 2, 8, 64, 4096)))
        some = choice.randbytes(stop - start)
        damaged = choice.choice(
            (
                data[:start] + bytes([data[start] ^ 1 << choice.randrange(8)]) + data[start + 1 :],
                data[:start] + some + data[stop:],
                data[:start] + bytes(stop - start) + data[stop:],
                data[:start],
                data[start:],
                data[:start] + data[stop:],
                data[:start] + some + data[start:],
                data + some,
                data + data[start:stop],
                data[start:] + data[:start],
            )
        )
        if damaged != data:
            found += 1
            yield damaged
