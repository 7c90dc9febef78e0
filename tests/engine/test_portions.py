"""Many rows are evaluated in portions, however many of them have the same time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw
from panewise.engine import portions

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])


@pytest.mark.parametrize(
    ("query", "changes"),
    [
        ("SELECT k FROM S [RANGE 2]", 42),
        ("SELECT DISTINCT k FROM S [RANGE 2]", 2),
        ("SELECT k, COUNT(*) AS n FROM S [RANGE 2] GROUP BY k", 6),
    ],
)
def test_an_instant_with_more_rows_than_a_portion(query: str, changes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A portion ended before the last instant of its rows, which had been answered: the row engine never came on."""
    monkeypatch.setattr(portions, "PORTION_ROWS", 3)
    pool = pw.Pool({"S": pw.StreamSchema(SCHEMA, "t")})
    pool.register("q", query)
    engine = pw.Engine(pool)
    engine.feed("S", pa.table({"t": np.repeat([5, 6], [20, 1]), "k": np.zeros(21, np.int64)}, schema=SCHEMA))
    assert engine.finish()["q"].num_rows == changes
