"""Conditions that Arrow computes have the truth that DuckDB gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panewise.core.errors import BindProblem
from panewise.core.scalar import Scalar
from panewise.cql import translate_scalar
from panewise.cql.conditions import condition_of
from panewise.runtime.local.host import DuckDBHost

SCHEMA = pa.schema([("i", pa.int64()), ("j", pa.int8()), ("d", pa.float64())])
HOST = DuckDBHost()

whole = st.integers(-3, 3) | st.sampled_from([127, 128, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
doubles = st.sampled_from([0.0, -0.0, 0.1, 0.95, 2.5, math.nan, math.inf, -math.inf, 1e300]) | st.floats(-3, 3)
rows = st.fixed_dictionaries(
    {"i": st.none() | whole, "j": st.none() | st.integers(-128, 127), "d": st.none() | doubles}
)
numbers = st.one_of(
    whole.map(str),
    st.decimals(-3, 3, places=2).map(str),
    st.sampled_from(["0.1", "0.95", "2.50", "-0.5", "1e3", "-2.5e-1", "9007199254740993", "9223372036854775808.5"]),
)
columns = st.sampled_from(["`i`", "`j`", "`d`"])
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
simple = st.one_of(
    st.builds(lambda a, c, b: f"{a} {c} {b}", columns, comparisons, numbers),
    st.builds(lambda a, c, b: f"{b} {c} {a}", columns, comparisons, numbers),
    st.builds(lambda a, low, high: f"{a} BETWEEN {low} AND {high}", columns, numbers, numbers),
)
conditions = st.recursive(
    simple, lambda inner: st.builds(lambda a, o, b: f"({a} {o} {b})", inner, st.sampled_from(["AND", "OR"]), inner)
)


@given(st.lists(rows, max_size=5), conditions)
def test_arrow_and_duckdb_agree(items: list[dict[str, object]], sql: str) -> None:
    table = pa.Table.from_pylist(items, SCHEMA)
    scalar = Scalar(sql, ("i", "j", "d"), pa.bool_())
    assert HOST.evaluate([scalar], table)[0].to_pylist() == HOST.compute([scalar], table)[0].to_pylist()


@given(st.lists(rows, max_size=5), st.sampled_from(["`i`", "`j`", "`n`", "`d`"]), st.sampled_from("+-*%"), whole)
def test_arrow_and_duckdb_calculate_the_same(items: list[dict[str, Any]], name: str, operator: str, by: int) -> None:
    """Also where the result does not fit."""
    smaller = [row | {"n": None if row["i"] is None else row["i"] % 2**32 - 2**31} for row in items]
    table = pa.Table.from_pylist(smaller, SCHEMA.append(pa.field("n", pa.int32())))
    sql = f"{name} {operator} {by if by >= 0 else f'({by})'}"
    columns = tuple(zip(table.column_names, table.schema.types, strict=True))
    scalar = Scalar(sql, ("i", "j", "d", "n"), translate_scalar(sql, columns).type)
    assert outcome(HOST.evaluate, scalar, table) == outcome(HOST.compute, scalar, table)


def outcome(work: Callable[..., list[pa.ChunkedArray]], scalar: Scalar, table: pa.Table) -> tuple[object, str]:
    try:
        (found,) = work([scalar], table)
    except BindProblem as problem:
        return problem.message, ""
    return str(found.to_pylist()), str(found.type)


@pytest.mark.parametrize(
    ("sql", "by_arrow"),
    [
        ("`i` > 3 AND `d` <= 0.95", True),
        ("3 < `i` OR `j` = 2", True),
        ("`d` BETWEEN 1 AND 2.5", True),
        ("`d` > 0.1234567890123456", False),
        ("`i` > 1e3", False),
        ("`i` = 1.5", False),
        ("`i` > `j`", False),
        ("`i` + 1 > 3", False),
        ("NOT `i` > 3", False),
    ],
)
def test_which_conditions_arrow_computes(sql: str, by_arrow: bool) -> None:
    types = tuple(zip(SCHEMA.names, SCHEMA.types, strict=True))
    assert (condition_of(sql, types) is not None) == by_arrow
