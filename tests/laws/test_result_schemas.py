"""The schema of a result is a property of the query: the engine and the reference give tables of that schema."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.algebra.result_columns import instant_type, result_schema
from panewise.core.errors import BindProblem, WindowProblem

from . import test_frames as frames
from . import test_relations as relations
from .strategies import KINDS, SCHEMA, Aggregated, aggregated, on_timestamps, stretched, table

pytestmark = pytest.mark.slow

ROWS = table([(1, "a", 2, 0.5, None), (2, "b", None, 1.0, None), (2, "a", 3, None, None), (9, "a", 1, 0.1, None)])
PAIRS = pa.table({"t": [1, 2, 2, 9], "k": ["a", "b", "a", "a"], "v": [2, 1, 3, 1]}, schema=relations.SCHEMA)
REPORTS = frames.reports([(1, "a", 2, 0.5), (2, "b", None, 1.0), (3, "a", 3, None), (9, "a", 4, 0.1)])


def has_schema_of_its_query(cql: str, streams: Mapping[str, pa.Table]) -> None:
    """Tables with rows and tables without any have the schema that is known beforehand."""
    pool = pw.Pool({name: pw.StreamSchema(rows.schema, "t") for name, rows in streams.items()}, bounded=True)
    try:
        pool.register("q", cql)
    except (BindProblem, WindowProblem):
        reject()
    query = pool.queries["q"].plan.query
    wanted = result_schema(query, instant_type(query, pool.streams))
    engine = pw.Engine(pool)
    for name, rows in streams.items():
        engine.feed(name, rows)
    early, late, again = engine.advance(), engine.finish(), engine.advance()
    assert [each["q"].schema for each in (early, late, again)] == [wanted] * 3
    shared = pa.schema([("query", pa.string()), *wanted])
    assert all(found.schema == shared for each in (early, late) if (found := each.combined_table(["q"])) is not None)
    assert pw.reference.run(cql, dict(streams), time="t").schema == wanted
    nothing = {name: rows.slice(0, 0) for name, rows in streams.items()}
    assert pw.reference.run(cql, nothing, time="t").schema == wanted


@settings(max_examples=150)
@given(aggregated(revising=True, silent=True))
def test_results_from_panes(query: Aggregated) -> None:
    has_schema_of_its_query(query.cql, {"S": ROWS})


@settings(max_examples=40)
@given(
    aggregated(tuple(kind for kind in KINDS if kind not in ("varying", "predicate"))),
    st.sampled_from([pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("s")]),
)
def test_results_on_timestamps(query: Aggregated, kind: pa.DataType) -> None:
    has_schema_of_its_query(on_timestamps(query).cql, {"S": stretched(ROWS, kind)})


@settings(max_examples=100)
@given(relations.queries())
def test_results_from_rows(query: str) -> None:
    has_schema_of_its_query(query, {"S": PAIRS, "T": PAIRS})


@settings(max_examples=100)
@given(frames.queries())
def test_results_from_frames(query: str) -> None:
    has_schema_of_its_query(query, {"S": REPORTS})


@pytest.mark.filterwarnings("ignore:.*names of added ones")
@pytest.mark.parametrize("column", ["ts", "w_start", "w_end", "w_level", "sign", "expires_at", "revision"])
def test_added_columns_give_way_to_selected_ones(column: str) -> None:
    streams = {"S": ROWS.rename_columns([column if name == "v" else name for name in SCHEMA.names])}
    has_schema_of_its_query(f"SELECT {column}, k FROM S [RANGES 4, 2 SLIDES 4, 2]", streams)
    has_schema_of_its_query(f"SELECT ISTREAM {column}, COUNT(*) AS n FROM S [ROWS 2] GROUP BY {column}", streams)
