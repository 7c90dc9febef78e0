"""What the kernels of frames compare, for callers that do not wait for the compiler."""

from __future__ import annotations

from typing import TypeAlias

from panewise.kernels import Float64Array, Int32Array, Int64Array

#: Aggregates that need more than a few numbers, after those of `kernels.frames`.
DISTINCT, RANKED, SPREAD = 9, 10, 11

#: What is compared: an aggregate, an operator (> 0, >= 1, < 2, <= 3) and a limit; and two parameters of the aggregate.
#: For RANKED they are the share of values below the one that counts, as a fraction, or 0 for the median; for SPREAD
#: the freedom, and whether the root is taken.
Comparison: TypeAlias = tuple[int, int, float, int, int]
#: The value of each item, NaN where it has none; its code or rank in its group, -1 where it has none; and room for
#: counting these, all of it 0. For RANKED, the values are sorted in each group.
Material: TypeAlias = tuple[Float64Array, Int64Array, Int32Array]
