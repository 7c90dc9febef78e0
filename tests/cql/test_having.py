"""Aliases of SELECT in HAVING, as Spark and DuckDB understand them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.core.errors import BindProblem
from panewise.cql import bind_query

ROWS = pa.table({"t": [1, 2, 3], "k": [1, 1, 2], "v": [10, 20, 1], "n": [5, 5, 5]})


def ask(text: str) -> Any:
    table = pw.run(text.replace("FROM S", "FROM S [RANGE 4 SLIDE 4]"), {"S": ROWS}, time="t")
    return [tuple(row.values())[:-2] for row in table.to_pylist()]


def test_an_alias_stands_for_what_is_selected() -> None:
    assert ask("SELECT k, COUNT(*) AS m FROM S GROUP BY k HAVING m > 1") == [(1, 2)]
    assert ask("SELECT k, COUNT(*) AS m FROM S GROUP BY k HAVING M > 1 AND NOT m = 3") == [(1, 2)]
    assert ask("SELECT k, SUM(v) - 1 AS m FROM S GROUP BY k HAVING m * 2 > 1") == [(1, 29)]
    assert ask("SELECT COUNT(*) AS m FROM S HAVING m > 2") == [(3,)]


def test_an_alias_is_as_good_as_what_it_stands_for() -> None:
    query = "SELECT k, COUNT(*) AS m FROM S [RANGE 4 SLIDE 4] GROUP BY k HAVING {} > 1"
    one, other = (
        bind_query(query.format(said), {"S": pw.StreamSchema(ROWS.schema, "t")}) for said in ("m", "COUNT(*)")
    )
    assert one == other


def test_an_alias_of_a_key_is_that_key() -> None:
    assert ask("SELECT k + 1 AS kk, COUNT(*) AS m FROM S GROUP BY k HAVING kk > 2") == [(3, 1)]
    assert ask("SELECT k + 1 AS kk, COUNT(*) AS m FROM S GROUP BY kk HAVING kk > 2") == [(3, 1)]


def test_an_alias_wins_over_a_column_that_is_not_grouped() -> None:
    assert ask("SELECT k, COUNT(*) AS n FROM S GROUP BY k HAVING n > 1") == [(1, 2)]


def test_a_key_wins_over_an_alias() -> None:
    assert ask("SELECT SUM(v) AS s, COUNT(*) AS k FROM S GROUP BY k HAVING k > 1") == [(1, 1)]


def test_inside_an_aggregate_a_name_is_a_column() -> None:
    assert ask("SELECT k, COUNT(*) AS n FROM S GROUP BY k HAVING MAX(n) > 4") == [(1, 2), (2, 1)]


def test_aliases_may_be_compared_with_each_other() -> None:
    assert ask("SELECT k, COUNT(*) AS m, COUNT(*) + 1 AS more FROM S GROUP BY k HAVING more > m") == [
        (1, 2, 3),
        (2, 1, 2),
    ]


def test_an_alias_that_is_given_twice_is_refused() -> None:
    with pytest.raises(BindProblem, match="'m' is selected twice"):
        ask("SELECT k, COUNT(*) AS m, SUM(v) AS m FROM S GROUP BY k HAVING m > 1")


def test_frames_are_kept_by_alias() -> None:
    query = "SELECT COUNT(*) AS m FROM S [FRAME WHILE v > 5 PARTITION BY k] HAVING m > 1"
    assert pw.run(query, {"S": ROWS}, time="t").column("m").to_pylist() == [2]
