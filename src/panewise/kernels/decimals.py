"""The kernels of decimals: sums as digits to the base of 2**32, and what they are divided by a number."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from panewise.kernels import Flags, Int64Array, helper, kernel

#: The digits of the sum of each group, the highest first, which alone has a sign; they may be larger than the base.
Digits: TypeAlias = tuple[Int64Array, ...]

_LOW = 0xFFFFFFFF
#: Digits of a number with all that may happen to it, and those of 10**38, which decimals do not reach: lowest first.
_ROOM = 6
_LIMIT = tuple(10**38 >> 32 * place & _LOW for place in range(_ROOM))


@kernel
def decimal_add(slots: Int64Array, words: Int64Array, digits: Digits) -> None:
    """Add numbers of 128 bits, of which `words` has the lower and the upper half, to the groups they belong to."""
    for i in range(len(slots)):
        slot, low, high = slots[i], words[i, 0], words[i, 1]
        digits[0][slot] += high >> 32
        digits[1][slot] += high & _LOW
        digits[2][slot] += low >> 32 & _LOW
        digits[3][slot] += low & _LOW


@kernel
def decimal_answers(digits: Digits, factor: int, divisors: Int64Array) -> tuple[Int64Array, Flags]:
    """Sums times a factor below 2**31, divided by numbers below 2**31: rounded, halves away from zero.

    As the lower and the upper 64 bits of each; and whether decimals can have as many digits.
    """
    out, fits = np.zeros((len(divisors), 2), np.int64), np.ones(len(divisors), np.bool_)
    number = np.zeros(_ROOM, np.int64)
    for i in range(len(divisors)):
        if not divisors[i]:
            continue
        negative = _spread(digits, i, number)
        if negative:
            _negate(number)
        carry = 0
        for place in range(_ROOM):
            carry += number[place] * factor
            number[place], carry = carry & _LOW, carry >> 32
        rest = 0
        for place in range(_ROOM - 1, -1, -1):
            rest = rest << 32 | number[place]
            number[place], rest = rest // divisors[i], rest % divisors[i]
        carry = int(2 * rest >= divisors[i])
        for place in range(_ROOM):
            carry += number[place]
            number[place], carry = carry & _LOW, carry >> 32
        fits[i] = _is_below_limit(number)
        if negative:
            _negate(number)
        out[i, 0], out[i, 1] = number[1] << 32 | number[0], number[3] << 32 | number[2]
    return out, fits


@helper
def _spread(digits: Digits, i: int, number: Int64Array) -> bool:
    """The digits of a sum, lowest first and each below the base, as those of a negative number in two's complement."""
    count, carry = len(digits), np.int64(0)
    for place in range(count):
        carry += digits[count - 1 - place][i]
        if place < count - 1:
            number[place], carry = carry & _LOW, carry >> 32
    negative = carry < 0
    for place in range(count - 1, _ROOM):
        number[place], carry = carry & _LOW, carry >> 32
    return bool(negative)


@helper
def _negate(number: Int64Array) -> None:
    carry = 1
    for place in range(_ROOM):
        carry += number[place] ^ _LOW
        number[place], carry = carry & _LOW, carry >> 32


@helper
def _is_below_limit(number: Int64Array) -> bool:
    for place in range(_ROOM - 1, -1, -1):
        if number[place] != _LIMIT[place]:
            return bool(number[place] < _LIMIT[place])
    return False
