"""Where frames end by a variance: running sums tell that of any stretch, but for those that are near the limit."""

from __future__ import annotations

import numpy as np

from panewise.kernels import Float64Array, Int64Array, helper, kernel
from panewise.kernels.frame_comparisons import Comparison

#: The rows of the levels: of each place the running sums of differences from a value of its group, of their squares and
#: of their amounts, the greatest amount, and how many values are known.
_SUM, _SQUARES, _AMOUNT, _GREATEST, _KNOWN = range(5)
#: What is less than this part of all sums of a group from the limit is near it.
_NEAR, _LEAST = 2.0**-42, 1e-290


@kernel
def frame_spread_levels(begins: Int64Array, stops: Int64Array, values: Float64Array) -> Float64Array:
    """The levels of VAR and STDDEV."""
    levels = np.zeros((5, len(values)))
    for group in range(len(begins)):
        anchor = total = squares = amount = greatest = known = 0.0
        for place in range(begins[group], stops[group]):
            if not np.isnan(values[place]):
                if known == 0:
                    anchor = values[place]
                apart = values[place] - anchor
                total, squares, known = total + apart, squares + apart * apart, known + 1.0
                amount, greatest = amount + abs(apart), max(greatest, abs(apart))
            levels[_SUM, place], levels[_SQUARES, place] = total, squares
            levels[_AMOUNT, place], levels[_GREATEST, place], levels[_KNOWN, place] = amount, greatest, known
    return levels


@helper
def flip_spread_far(begin: int, first: int, stop: int, comparison: Comparison, levels: Float64Array) -> int:
    """Where a frame ends by a variance, `stop` if nowhere, and -1 if that is too near the limit to be known here."""
    _, _, limit, freedom, root = comparison
    many = levels[_KNOWN, stop - 1]
    sums = levels[_SQUARES, stop - 1] + levels[_AMOUNT, stop - 1] * levels[_GREATEST, stop - 1]
    square = limit * limit if root > 0 else limit
    near = many * _NEAR * (sums + abs(square) * many) + _LEAST
    if limit < 0 or not near < np.inf:
        return -1
    total = squares = known = 0.0
    if first > begin:
        total, squares, known = levels[_SUM, first - 1], levels[_SQUARES, first - 1], levels[_KNOWN, first - 1]
    for place in range(first, stop):
        count = levels[_KNOWN, place] - known
        if count > freedom:
            mine = levels[_SUM, place] - total
            over = levels[_SQUARES, place] - squares - mine * mine / count - square * (count - freedom)
            if over > near:
                return place
            if over > -near:
                return -1
    return stop
