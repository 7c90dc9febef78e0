"""The host: whoever reads query text and evaluates scalar expressions for us.

Panewise has no scalar engine. DuckDB plays this part in one process and Spark SQL on a cluster; the layers below
know only this contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from panewise.algebra.tree import Query
from panewise.core.hosting import host_in_use
from panewise.core.scalar import Scalar
from panewise.core.schema import StreamSchema


class Host(Protocol):
    """What a host can do. Implementations must be pure: same input, same answer."""

    def read(self, text: str, streams: Mapping[str, StreamSchema]) -> Query:
        """The bound query that a text over these streams means."""

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        """Each expression for every row of the table, in the order of the rows."""


def default_host() -> Host:
    found: Host = host_in_use()
    return found
