"""The kernels of the variance of decimals of up to 38 digits: exact sums of values of 128 bits and of their squares.

Sums are digits to the base of 2**32, the lowest first, each in an int64 that has room for 2**28 values.
"""

from __future__ import annotations

import numpy as np

from panewise.kernels import Float64Array, Int64Array, helper, kernel
from panewise.kernels.regression_float import Pair, over, plus, times

#: The digits of a value and of its square; and so many hold a product of two sums.
SUM_DIGITS, SQUARE_DIGITS = 4, 8
_ROOM = 14
_LOW, _BASE = 0xFFFFFFFF, 2.0**32


@kernel
def variance_add_wide(slots: Int64Array, values: Int64Array, words: Int64Array) -> None:
    """Add values, each by its lower and upper 64 bits, to the groups they belong to; `words` has a row for each."""
    digits = np.empty(SUM_DIGITS, np.int64)
    for i in range(len(slots)):
        slot, low, high = slots[i], values[i, 0], values[i, 1]
        words[slot, 0] += 1
        words[slot, 1] += low & _LOW
        words[slot, 2] += (low >> 32) & _LOW
        words[slot, 3] += high & _LOW
        words[slot, 4] += high >> 32
        if high < 0:
            # The square is that of the amount.
            low = -low
            high = -high - (1 if low != 0 else 0)
        digits[0], digits[1], digits[2], digits[3] = low & _LOW, (low >> 32) & _LOW, high & _LOW, high >> 32
        for one in range(SUM_DIGITS):
            for other in range(SUM_DIGITS):
                product = np.uint64(digits[one]) * np.uint64(digits[other])
                words[slot, 5 + one + other] += np.int64(product & np.uint64(_LOW))
                words[slot, 6 + one + other] += np.int64(product >> np.uint64(32))


@helper
def _carry(digits: Int64Array) -> None:
    """Digits with all but the highest from 0 to before 2**32."""
    for place in range(_ROOM - 1):
        digits[place + 1] += digits[place] >> 32
        digits[place] &= _LOW


@helper
def _add_product(total: Int64Array, a: Int64Array, b: Int64Array, sign: int) -> None:
    """Add a product of two numbers without a sign, whose digits are settled."""
    for one in range(_ROOM):
        if a[one]:
            for other in range(_ROOM - 1 - one):
                product = np.uint64(a[one]) * np.uint64(b[other])
                total[one + other] += sign * np.int64(product & np.uint64(_LOW))
                total[one + other + 1] += sign * np.int64(product >> np.uint64(32))


@helper
def _to_pair(digits: Int64Array) -> Pair:
    found, power = (0.0, 0.0), 1.0
    for place in range(_ROOM):
        found = plus(found, (np.float64(digits[place]) * power, 0.0))
        power *= _BASE
    return found


@kernel
def variance_answers_wide(words: Int64Array, freedom: int, root: bool, unit: Pair) -> Float64Array:
    """The variance of each group over a unit, or its square root; 0 where there are too few values."""
    out = np.zeros(len(words))
    total, squares = np.zeros(_ROOM, np.int64), np.zeros(_ROOM, np.int64)
    count, apart = np.zeros(_ROOM, np.int64), np.zeros(_ROOM, np.int64)
    for i in range(len(words)):
        many = words[i, 0]
        if many <= freedom:
            continue
        total[:], squares[:], apart[:] = 0, 0, 0
        total[:SUM_DIGITS], squares[:SQUARE_DIGITS] = words[i, 1 : 1 + SUM_DIGITS], words[i, 1 + SUM_DIGITS :]
        _carry(total)
        if total[_ROOM - 1] < 0:
            total[:] = -total
            _carry(total)
        _carry(squares)
        count[0], count[1] = many & _LOW, many >> 32
        _add_product(apart, count, squares, 1)
        _add_product(apart, total, total, -1)
        _carry(apart)
        number = np.float64(many)
        divisor = times(times((number, 0.0), (np.float64(many - freedom), 0.0)), unit)
        found = over(_to_pair(apart), divisor)[0]
        out[i] = np.sqrt(found) if root else found
    return out
