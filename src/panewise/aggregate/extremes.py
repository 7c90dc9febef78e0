"""MIN and MAX of anything that can be ordered. NaN is the largest number, as in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import Laws, orderable
from panewise.aggregate.chosen import Chosen
from panewise.aggregate.columns import Columns
from panewise.aggregate.columns.chosen import Extremes
from panewise.aggregate.columns.longs import fits
from panewise.aggregate.multiset import order_key


class Max(Chosen):
    """Idempotent and not invertible: once the maximum leaves, only the rest can say what follows it.

    "Consistent results" section 4.2, retrospective.
    """

    names = ("MAX",)
    laws = Laws(idempotent=True)

    def result_type(self) -> pa.DataType:
        return orderable(self)

    def meaning(self, values: Sequence[Any]) -> Any:
        return max(values, key=order_key, default=None)

    def columns(self) -> Columns:
        return Extremes(self.result, least=self.names == Min.names) if fits(self.result) else super().columns()


class Min(Max):
    """The mirror of MAX."""

    names = ("MIN",)

    def meaning(self, values: Sequence[Any]) -> Any:
        return min(values, key=order_key, default=None)
