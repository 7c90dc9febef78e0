"""COUNT(DISTINCT x): how many different values there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from panewise.aggregate.multiset import Multiset


class CountDistinct(Multiset):
    """Holistic: remembers values with their multiplicity, so that expiry can forget them one by one."""

    names = ("COUNT_DISTINCT",)

    def result_type(self) -> pa.DataType:
        return pa.int64()

    def meaning(self, values: Sequence[Any]) -> int:
        return len(set(values))
