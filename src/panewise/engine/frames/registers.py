"""A few numbers for each group, in arrays that grow with the number of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panewise.aggregate import Int64Array


class Registers:
    """Arrays by name, each with the value that new groups have in it."""

    def __init__(self, fills: Mapping[str, int | float]) -> None:
        self._fills = dict(fills)
        self._arrays = {name: np.full(0, fill) for name, fill in fills.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def fit(self, groups: int) -> None:
        """Make room for `groups` groups."""
        for name, array in self._arrays.items():
            if len(array) < groups:
                more = np.full(max(groups, 2 * len(array)), self._fills[name], array.dtype)
                more[: len(array)] = array
                self._arrays[name] = more

    def recode(self, codes: Int64Array) -> None:
        """Replace the codes of groups; those with code -1 are dropped."""
        self.fit(len(codes))
        kept, before = np.flatnonzero(codes >= 0), self._arrays
        self._arrays = {name: np.full(0, fill) for name, fill in self._fills.items()}
        self.fit(int(codes.max(initial=-1)) + 1)
        for name, array in before.items():
            self._arrays[name][codes[kept]] = array[kept]

    def state(self) -> pa.Table:
        return pa.table({name: pa.array(array) for name, array in self._arrays.items()})

    def restore(self, state: pa.Table) -> None:
        self._arrays = {name: np.array(state.column(name).to_numpy()) for name in state.column_names}
