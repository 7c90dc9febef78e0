"""Who is to blame when an expression fails: the row it fails on, and the queries that asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from panewise.core.errors import Failure, PanewiseError, QueryProblem


def first_failing(count: int, attempt: Callable[[int, int], object]) -> int:
    """The first of some things that an attempt fails on, which is made over stretches of them; over all it fails."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(low, middle)
        except PanewiseError:
            high = middle
        else:
            low = middle
    return low


def with_row(problem: PanewiseError, table: pa.Table, attempt: Callable[[pa.Table], object]) -> PanewiseError:
    """The problem that an attempt has with a table, with the first row it has it with."""
    if problem.row is None and table.num_rows:
        place = first_failing(table.num_rows, lambda low, high: attempt(table.slice(low, high - low)))
        (row,) = table.slice(place, 1).to_pylist()
        problem.row = {name: value for name, value in row.items() if not name.startswith("#")}
    return problem


@contextmanager
def blame_queries(queries: Iterable[str]) -> Iterator[None]:
    """Whatever fails meanwhile, these queries asked for it."""
    try:
        yield
    except QueryProblem:
        raise
    except PanewiseError as problem:
        raise QueryProblem([Failure(name, problem) for name in queries]) from problem


def find_failures(queries: Iterable[str], attempt: Callable[[str], object]) -> list[Failure]:
    """Those of some queries for which alone an attempt fails."""
    found = []
    for name in queries:
        try:
            attempt(name)
        except PanewiseError as problem:
            found.append(Failure(name, problem))
    return found
