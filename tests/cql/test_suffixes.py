"""ISTREAM, EMIT and their like are refused where they would be dropped without a word."""

from __future__ import annotations

import pytest

import panewise as pw
from panewise.core.errors import SyntaxProblem
from panewise.cql import bind_script, parse_query


def test_istream_on_one_side_of_a_union_is_refused() -> None:
    """It used to be dropped without a word."""
    with pytest.raises(SyntaxProblem, match="one side of a set operator"):
        parse_query("SELECT k FROM S UNION ALL SELECT ISTREAM k FROM T")


def test_a_suffix_in_a_view_is_not_dropped_silently() -> None:
    script = """CREATE STREAM S (t BIGINT) TIME t;
      CREATE VIEW tally AS SELECT COUNT(*) AS n FROM S [RANGE 1 SLIDE 1] EMIT EMPTY;
      SELECT n FROM tally"""
    with pytest.raises(pw.PanewiseError, match="EMIT EMPTY cannot be used in a view"):
        bind_script(script)
