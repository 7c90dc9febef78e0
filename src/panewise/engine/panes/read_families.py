"""Lets several families read the same rows: for few rows, what they compute is computed together.

A host takes long to begin: thousands of families would each wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from panewise.algebra import Host
from panewise.core.errors import PanewiseError
from panewise.core.scalar import Scalar
from panewise.engine.intake import Arrivals
from panewise.engine.panes.family import MANY_ROWS, EnteringRows, Family
from panewise.engine.row_steps import evaluate_scalars


def read_families(
    families: Iterable[Family], arrivals: Arrivals, host: Host
) -> list[tuple[Family, EnteringRows | Arrivals | None]]:
    """What enters each family, or the rows themselves where they may wait for its next report.

    Of rows that wait it is known that no expression fails on them.
    """
    asked = [(family, family.may_wait(arrivals)) for family in families]
    readers = [family for family, waits in asked if (family.fallible_scalars if waits else family.first_scalars)]
    known = dict(_evaluate_together(readers, arrivals, host)) if readers else {}
    return [
        (family, arrivals if waits and known.keys() >= set(family.fallible_scalars) else family.read(arrivals, known))
        for family, waits in asked
    ]


def _evaluate_together(
    families: Sequence[Family], arrivals: Arrivals, host: Host
) -> Iterator[tuple[Scalar, pa.ChunkedArray]]:
    """The first expressions of some families; none where one of them fails, so that its family raises the error."""
    wanted: dict[tuple[str, ...], dict[Scalar, None]] = {}
    for family in families if len(arrivals) <= MANY_ROWS else ():
        names = tuple([column.name for column in family.plan.source.columns])
        wanted.setdefault(names, {}).update(dict.fromkeys(family.first_scalars))
    for names, scalars in wanted.items():
        try:
            found = evaluate_scalars(list(scalars), arrivals.table.rename_columns(names), host)
        except PanewiseError:
            continue
        yield from zip(scalars, found, strict=True)
