"""COUNT(DISTINCT x): how many different values there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from panewise.aggregate.base import Multiset
from panewise.aggregate.multisets import DistinctStates
from panewise.aggregate.states import StateArrays


class CountDistinct(Multiset):
    """Holistic: keeps values with their multiplicity, so that they can be taken out one by one."""

    names = ("COUNT(DISTINCT)",)  # no function can have this name: the language knows the word

    def result_type(self) -> pa.DataType:
        return pa.int64()

    def text(self, arguments: Sequence[str]) -> str:
        return f"COUNT(DISTINCT {', '.join(arguments)})"

    def meaning(self, values: Sequence[Any]) -> int:
        return len(set(values))

    def state_arrays(self) -> StateArrays:
        return DistinctStates(self.types[0])
