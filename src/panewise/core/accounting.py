"""The account of a stream, which counts where every row went, and the outcome of a bounded run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

#: The key in the metadata of a result table under which the account of every stream is stored, as JSON.
METADATA_KEY = b"panewise.accounting"


@dataclass(frozen=True)
class Accounting:
    """Where the rows of a stream went: `rows_in = used + late + rejected`.

    For `late` rows every instant they belong to was already final; for `partly_late` rows, which count as used, only
    some of them.
    """

    rows_in: int = 0
    used: int = 0
    late: int = 0
    rejected: int = 0
    partly_late: int = 0

    @classmethod
    def of(cls, table: pa.Table) -> dict[str, Accounting]:
        """The account of every stream of a result table; empty if the table has none."""
        written = (table.schema.metadata or {}).get(METADATA_KEY)
        return {} if written is None else {name: cls(**counts) for name, counts in json.loads(written).items()}

    def with_rows(self, rows: int, late: int, rejected: int, partly_late: int) -> Accounting:
        """The account with more rows counted."""
        return Accounting(
            self.rows_in + rows,
            self.used + rows - late - rejected,
            self.late + late,
            self.rejected + rejected,
            self.partly_late + partly_late,
        )

    @property
    def loss_text(self) -> str:
        """The rows that are in no result, in words; empty if there are none."""
        late = f"{self.late:,} of {self.rows_in:,} rows came too late" if self.late else ""
        has = "has" if self.rejected == 1 else "have"
        rejected = f"{self.rejected:,} of {self.rows_in:,} rows {has} no usable time" if self.rejected else ""
        return ", ".join(filter(None, (late, rejected)))


@dataclass(frozen=True)
class Outcome:
    """A bounded run: its results, the account of every stream, and the rows that came too late."""

    table: pa.Table
    accounting: dict[str, Accounting]
    late: dict[str, pa.Table]

    def table_with_accounting(self) -> pa.Table:
        """The results with the account in their metadata, where `Accounting.of` finds it."""
        counts = json.dumps({name: asdict(account) for name, account in self.accounting.items()})
        return self.table.replace_schema_metadata({**(self.table.schema.metadata or {}), METADATA_KEY: counts})


def loss_report(accounting: Mapping[str, Accounting]) -> str | None:
    """The rows that are in no result, and what to do about it; None if every row was used.

    >>> loss_report({"S": Accounting(rows_in=3000, used=2999, rejected=1)})
    "stream 'S': 1 of 3,000 rows has no usable time; repair times that are NULL or too far away"
    """
    streams = [f"stream {name!r}: {lost}" for name, account in accounting.items() if (lost := account.loss_text)]
    if any(account.late for account in accounting.values()):
        streams.append("use a larger delay or LATE REVISE, and pw.execute to see the late rows")
    if any(account.rejected for account in accounting.values()):
        streams.append("repair times that are NULL or too far away")
    return "; ".join(streams) or None
