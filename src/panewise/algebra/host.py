"""The host: the engine of another system that evaluates scalar expressions.

Panewise has no scalar engine of its own. DuckDB is the host in one process, and Spark SQL on a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from panewise.core.hosting import host_in_use
from panewise.core.scalar import Scalar


class Host(Protocol):
    """What a host can do. Implementations must be pure: same input, same answer."""

    def evaluate(self, scalars: Sequence[Scalar], table: pa.Table) -> list[pa.ChunkedArray]:
        """Each expression for every row of the table, in the order of the rows."""


def default_host() -> Host:
    found: Host = host_in_use()
    return found
