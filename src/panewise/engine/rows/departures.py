"""Rows whose leaving instant is known, until they leave."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panewise.aggregate import Int64Array


class Departures:
    """A calendar of the instants at which rows leave."""

    def __init__(self) -> None:
        self.chunks: list[tuple[Int64Array, Int64Array]] = []

    def add(self, codes: Int64Array, leave: Int64Array) -> None:
        """Add rows of these codes, which leave at these instants."""
        if len(codes):
            order = np.argsort(leave, kind="stable")
            self.chunks.append((leave[order], codes[order]))
            if len(self.chunks) > 16:
                self._merge()

    def pop_until(self, limit: int) -> tuple[Int64Array, Int64Array]:
        """Remove and return the codes and instants of all rows that leave up to an instant."""
        gone, rest = [(np.zeros(0, np.int64), np.zeros(0, np.int64))], []
        for leave, codes in self.chunks:
            cut = int(np.searchsorted(leave, limit, side="right"))
            gone.append((codes[:cut], leave[:cut]))
            if cut < len(leave):
                rest.append((leave[cut:], codes[cut:]))
        self.chunks = rest
        return np.concatenate([c for c, _ in gone]), np.concatenate([at for _, at in gone])

    def recode(self, codes: Int64Array) -> None:
        self.chunks = [(leave, codes[some]) for leave, some in self.chunks]

    def _merge(self) -> None:
        leave, codes = (np.concatenate(words) for words in zip(*self.chunks, strict=True))
        order = np.argsort(leave, kind="stable")
        self.chunks = [(leave[order], codes[order])]

    def state(self) -> pa.Table:
        if len(self.chunks) > 1:
            self._merge()
        leave, codes = self.chunks[0] if self.chunks else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        return pa.table({"leave": leave, "codes": codes})

    def restore(self, table: pa.Table) -> None:
        if table.num_rows:
            leave, codes = (np.array(column.to_numpy(), np.int64) for column in table.columns)
            self.chunks = [(leave, codes)]
