"""Sessions found by the kernel, in parts and in any order, against `Session.assign`, which says what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise import kernels, reference
from panewise.aggregate import Int64Array
from panewise.core.time import Boundary
from panewise.engine.intake import NO_MARK
from panewise.kernels import Flags
from panewise.runtime.local.embedded import execute
from panewise.window import Contents, Session

#: Times as they arrive, and which rows of the order are the first of a part.
ARRIVALS = st.lists(st.integers(0, 25), min_size=1, max_size=14)
NONE = np.zeros(0, np.int64)


def spans(firsts: Int64Array, ends: Int64Array, joined: Flags) -> list[tuple[int, int] | None]:
    """The span of the session of each item."""
    return [(int(a), int(b)) if c else None for a, b, c in zip(firsts, ends, joined, strict=True)]


@settings(max_examples=300)
@given(ARRIVALS, st.integers(0, 6), st.integers(1, 5), st.sampled_from(list(Boundary)), st.booleans(), st.data())
def test_the_order_of_sight_gives_the_sessions_of_the_order_of_arrival(
    arrivals: list[int], delay: int, gap: int, boundary: Boundary, by_sight: bool, data: st.DataObject
) -> None:
    """Both orders of replaying give the sessions that the window says, also in parts that follow each other."""
    times = np.array(arrivals, np.int64)
    marks = np.append(NO_MARK, np.maximum.accumulate(times)[:-1] - delay)
    marks = np.where(marks > times, marks, NO_MARK)
    late = marks > NO_MARK
    needs = np.where(late, marks + boundary.shift, times)
    order = np.argsort(times, kind="stable")
    wanted = Session(gap).assign(Contents(times[order], order, marks[order]), boundary)
    visible = np.where(late, marks, times) + boundary.shift
    replayed = np.argsort(visible, kind="stable") if by_sight else np.arange(len(times))
    known, numbers = (NONE, NONE, NONE), np.zeros(0, np.int64)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(times)), max_size=3)))
    for part in np.split(replayed, cuts):
        fresh, moved, known = kernels.session_numbers(
            np.zeros(len(part), np.int64), times[part], needs[part], gap, 1, known
        )
        numbers = np.append(np.append(moved, -1)[numbers], fresh)
    found = np.full(len(times), -1, np.int64)
    found[replayed] = numbers
    firsts, ends = np.append(known[1], 0)[found], np.append(known[2] + gap, 0)[found]
    assert spans(firsts[order], ends[order], found[order] >= 0) == spans(*wanted)


@st.composite
def late_streams(draw: st.DrawFn) -> pw.Stream:
    times = draw(st.lists(st.integers(0, 20), min_size=1, max_size=9))
    table = pa.table({"t": pa.array(times, pa.int64()), "v": pa.array(range(len(times)), pa.int64())})
    return pw.Stream(table, time="t", delay=draw(st.integers(0, 4)))


@settings(max_examples=150)
@given(late_streams(), late_streams(), st.sampled_from(["(]", "[)"]))
@pytest.mark.parametrize("selected", ["COUNT(*) AS n, SUM(v) AS s", "v"])
def test_united_streams_keep_their_own_watermarks(selected: str, s: pw.Stream, t: pw.Stream, boundary: str) -> None:
    """A row on time may be older than the watermark that a late row of the other stream met."""
    query = f"SELECT {selected} FROM (SELECT * FROM S UNION ALL SELECT * FROM T) AS U [SESSION 2]"
    given_streams = {"S": s, "T": t}
    wanted = reference.execute(query, given_streams, boundary=boundary)
    found = execute(query, given_streams, boundary=boundary)
    assert sorted(map(str, found.table.to_pylist())) == sorted(map(str, wanted.table.to_pylist()))
