"""What the kernels of frames compare, for callers that do not wait for the compiler."""

from __future__ import annotations

from typing import TypeAlias

from panewise.kernels import Float64Array, Int64Array

#: Aggregates that need more than a few numbers, after those of `kernels.frames`.
DISTINCT, RANKED, SPREAD = 9, 10, 11

#: What is compared: an aggregate, an operator (> 0, >= 1, < 2, <= 3) and a limit; and two parameters of the aggregate.
#: For RANKED they are the share of values below the one that counts, as a fraction, or 0 for the median; for SPREAD
#: the freedom, and whether the root is taken.
Comparison: TypeAlias = tuple[int, int, float, int, int]
#: The value of each item, NaN where it has none; for aggregates that only grow, where the frame that begins with each
#: ends, and for ranks a tree; and levels of running sums. See `kernels.frames_searches`.
Material: TypeAlias = tuple[Float64Array, Int64Array, Float64Array]
