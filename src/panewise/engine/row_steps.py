"""Row-wise operators over Arrow tables: plain columns are copied, the host computes the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panewise.algebra import Host, Project, Select
from panewise.core.errors import PanewiseError
from panewise.core.scalar import Scalar
from panewise.core.time import Ticks
from panewise.engine.blame import with_row
from panewise.plan import RowStep

#: What expressions are for each row of a table.
KnownValues: TypeAlias = Mapping[Scalar, pa.ChunkedArray]


def apply_steps(
    steps: Sequence[RowStep], table: pa.Table, host: Host, known: KnownValues = MappingProxyType({})
) -> tuple[pa.Table, Ticks | None]:
    """The table after all steps, and which rows of the input are left; None where all are.

    Of the first step, some expressions may be `known`.
    """
    kept: Ticks | None = None
    for number, step in enumerate(steps):
        match step:
            case Select(predicate=predicate):
                (truth,) = evaluate_scalars([predicate], table, host, {} if number else known)
                flags = (pc.fill_null(truth, False) if truth.null_count else truth).to_numpy()
                if not flags.all():
                    places = np.flatnonzero(flags)
                    kept = places if kept is None else kept[places]
                    table = table.take(pa.array(places)) if len(places) else table.slice(0, 0)
            case Project(items=items) if items and all(scalar.column is not None for _, scalar in items):
                chosen = table.select([scalar.column for _, scalar in items])
                table = chosen.rename_columns([name for name, _ in items])
            case Project(items=items):
                arrays = evaluate_scalars([scalar for _, scalar in items], table, host, {} if number else known)
                rows = table.num_rows
                table = pa.Table.from_arrays(arrays, [name for name, _ in items]) if arrays else _bare_rows(rows)
    return table, kept


def step_scalars(step: RowStep) -> list[Scalar]:
    """The expressions of a step."""
    return [step.predicate] if isinstance(step, Select) else [scalar for _, scalar in step.items]


def evaluate_scalars(
    scalars: Sequence[Scalar], table: pa.Table, host: Host, known: KnownValues = MappingProxyType({})
) -> list[pa.ChunkedArray]:
    """Each expression for every row; those that are `known` are not computed again."""
    if known and all(s.column is not None or s in known for s in scalars):
        return [known[s] if s.column is None else table.column(s.column) for s in scalars]
    computed = [s for s in scalars if s.column is None]
    try:
        answers = iter(_evaluate_on_host(computed, table, host))
    except PanewiseError as problem:
        raise with_row(problem, table, lambda some: _evaluate_on_host(computed, some, host)) from None
    return [table.column(s.column) if s.column is not None else next(answers) for s in scalars]


def _evaluate_on_host(computed: Sequence[Scalar], table: pa.Table, host: Host) -> list[pa.ChunkedArray]:
    """The values of each expression, computed by the host."""
    if not computed:
        return []
    needed = sorted({name for s in computed for name in s.inputs})
    # A table without columns has no rows: the row number keeps constant expressions as long as the table.
    return host.evaluate(computed, table.select(needed) if needed else _bare_rows(table.num_rows))


def _bare_rows(rows: int) -> pa.Table:
    """Rows without columns, as COUNT(*) wants them."""
    return pa.table({"#row": np.arange(rows)})
