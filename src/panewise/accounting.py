"""The account of a stream, where every row went, and what a bounded run amounts to."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Accounting:
    """Where the rows of a stream went: `rows_in = used + late + rejected`.

    `late` rows found every instant that wanted them already final; `partly_late` ones, which are among the used,
    only some of them.
    """

    rows_in: int = 0
    used: int = 0
    late: int = 0
    rejected: int = 0
    partly_late: int = 0

    def counted(self, rows: int, late: int, rejected: int, partly_late: int) -> Accounting:
        """The account after so many more rows."""
        return Accounting(
            self.rows_in + rows,
            self.used + rows - late - rejected,
            self.late + late,
            self.rejected + rejected,
            self.partly_late + partly_late,
        )


@dataclass(frozen=True)
class Outcome:
    """A bounded run: its results, the account of every stream, and the rows that came too late."""

    table: pa.Table
    accounting: dict[str, Accounting]
    late: dict[str, pa.Table]
