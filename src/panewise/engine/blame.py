"""Finds the row on which an expression fails, and the queries that use the expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from panewise.core.errors import Failure, PanewiseError, QueryProblem


def first_failing(count: int, attempt: Callable[[int, int], object]) -> int:
    """The first of `count` places at which an attempt fails; it is made over stretches, and fails over all."""
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
    """The problem of an attempt over a table, together with the first row that causes it."""
    if problem.row is None and table.num_rows:
        place = first_failing(table.num_rows, lambda low, high: attempt(table.slice(low, high - low)))
        (row,) = table.slice(place, 1).to_pylist()
        problem.row = {name: value for name, value in row.items() if not name.startswith("#")}
    return problem


@contextmanager
def blame_queries(queries: Iterable[str]) -> Iterator[None]:
    """Name these queries in every error that is raised inside the `with` block."""
    try:
        yield
    except QueryProblem:
        raise
    except PanewiseError as problem:
        raise QueryProblem([Failure(name, problem) for name in queries]) from problem


def find_failures(queries: Iterable[str], attempt: Callable[[str], object]) -> list[Failure]:
    """The queries for which an attempt fails when it is made for that query alone."""
    found = []
    for name in queries:
        try:
            attempt(name)
        except PanewiseError as problem:
            found.append(Failure(name, problem))
    return found
