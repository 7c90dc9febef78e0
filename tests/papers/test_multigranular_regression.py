"""ICDE 2012 workshop paper "Multi-granular windows", section IV.B: lines over series at every level.

The expected side writes the series out instant by instant and asks NumPy for the line.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panewise as pw

pytestmark = pytest.mark.slow

#: Figure 3: extents of 4, 12 and 24 units.
WINDOW = "[RANGES 24, 12, 4 SLIDES 4, 2, 1]"
LINES = (
    "REGR_SLOPE({0}) AS slope, REGR_INTERCEPT({0}) AS intercept, REGR_R2({0}) AS fit, REGR_FORECAST(v, 6{1}) AS soon"
)

Items = list[tuple[int, float]]
Series = dict[int, float]


def items(seed: int) -> Items:
    """Now and then several items an instant, and gaps of up to five instants."""
    random = Random(seed)
    return sorted(
        (t, random.gauss(3 * t, 20)) for t in random.sample(range(1, 80), 45) for _ in range(random.choice([1, 1, 3]))
    )


def averaged(some: Items) -> Series:
    """Several items of an instant as one value."""
    values: dict[int, list[float]] = {}
    for t, v in some:
        values.setdefault(t, []).append(v)
    return {t: sum(vs) / len(vs) for t, vs in values.items()}


def filled(series: Series, end: int) -> Series:
    """Missing instants have the latest value received; before the first there is none."""
    out: Series = {}
    for t in range(min(series), end + 1):
        out[t] = series.get(t, out.get(t - 1, 0.0))
    return out


def asked(form: str, table: pa.Table) -> list[dict[str, Any]]:
    literal = f", '{form}'" if form else ""
    query = f"SELECT {LINES.format('v' + literal, literal)} FROM S {WINDOW}"
    return list(pw.run(query, {"S": table}, time="t", until=90).to_pylist())


@pytest.mark.parametrize("form", ["", "SKIPPED", "FILLED"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lines_at_three_horizons_are_numpys(form: str, seed: int) -> None:
    stream = items(seed)
    table = pa.table({"t": [t for t, _ in stream], "v": [v for _, v in stream]})
    checked: Counter[int] = Counter()
    for row in asked(form, table):
        end, start = int(row["w_end"]), int(row["w_start"])
        inside = [(t, v) for t, v in stream if start < t <= end]
        series = averaged(inside)
        points = inside if not form else sorted((filled(series, end) if form == "FILLED" else series).items())
        if len({t for t, _ in points}) < 2:
            assert [row["slope"], row["soon"]] == [None, None]
            continue
        x, y = np.array(points).T
        slope, intercept = np.polyfit(x, y, 1)
        left, whole = ((y - slope * x - intercept) ** 2).sum(), ((y - y.mean()) ** 2).sum()
        assert row["slope"] == pytest.approx(slope, rel=1e-9, abs=1e-9)
        assert row["intercept"] == pytest.approx(intercept, rel=1e-9, abs=1e-8)
        assert row["soon"] == pytest.approx(slope * (end + 6) + intercept, rel=1e-9, abs=1e-8)
        assert row["fit"] == pytest.approx(1 - left / whole if np.ptp(y) else 1.0, abs=1e-9)
        checked[int(row["w_level"])] += 1
    assert min(checked[level] for level in range(3)) > 10


@pytest.mark.parametrize("extent", [4, 12, 24])
def test_equations_5_to_7(extent: int) -> None:
    """Over a full window of a filled series the mean time and both sums of squares have closed forms."""
    stream = items(7)
    table = pa.table({"t": [t for t, _ in stream], "v": [v for _, v in stream]})
    query = f"SELECT REGR_SLOPE(v, 'FILLED') AS s, REGR_INTERCEPT(v, 'FILLED') AS x FROM S [RANGE {extent} SLIDE 1]"
    full = 0
    for row in pw.run(query, {"S": table}, time="t", until=80).to_pylist():
        now = row["w_end"]
        series = averaged([(t, v) for t, v in stream if now - extent < t <= now])
        if now - extent + 1 not in series:
            continue
        values = filled(series, now)
        mean = now - (extent - 1) / 2  # equation 5
        assert mean == sum(values) / extent
        total, product = sum(values.values()), sum(t * v for t, v in values.items())
        squares = sum(t * t for t in values)
        slope = (product - mean * total) / (squares - extent * mean**2)  # equation 6
        assert row["s"] == pytest.approx(slope, rel=1e-9, abs=1e-9)
        assert row["x"] == pytest.approx(total / extent - slope * mean, rel=1e-9, abs=1e-9)  # equation 7
        full += 1
    assert full > 20


def test_instants_of_timestamps_are_steps() -> None:
    """Seconds: items at .2 and .7 are one value at the end of their second, and the minute's end is 10 seconds away."""
    base = datetime(2024, 1, 1, tzinfo=UTC)
    at, values = [0.2, 0.7, 3.5, 4.0, 8.1], [1.0, 3.0, 5.0, 6.0, 2.0]
    times = pa.array([base + timedelta(seconds=s) for s in at], pa.timestamp("us", "UTC"))
    table = pa.table({"t": times, "v": values})
    lines = "REGR_SLOPE(v, 'FILLED', '1 SECOND') AS s, REGR_FORECAST(v, '5 SECONDS', 'FILLED', '1 SECOND') AS f"
    (row,) = pw.run(f"SELECT {lines} FROM S [RANGE 10 SECONDS SLIDE 10 SECONDS]", {"S": table}, time="t").to_pylist()
    series = filled({1: 2.0, 4: 5.5, 9: 2.0}, 10)
    slope, intercept = np.polyfit(list(series), list(series.values()), 1)
    assert row["s"] == pytest.approx(slope, rel=1e-9)
    assert row["f"] == pytest.approx(slope * 15 + intercept, rel=1e-9)


def test_microseconds_since_1970_cost_no_digits() -> None:
    """Squares of such times need 102 bits; a line over a thousandth of a second is still exact to the last digits."""
    base = datetime(2024, 5, 5, tzinfo=UTC)
    table = pa.table(
        {
            "t": pa.array([base + timedelta(microseconds=10 * n) for n in range(1, 101)], pa.timestamp("us", "UTC")),
            "v": [5 + 2e-5 * n for n in range(1, 101)],
        }
    )
    query = "SELECT REGR_SLOPE(v) AS s, REGR_R2(v) AS r FROM S [RANGE 1 MILLISECOND SLIDE 1 MILLISECOND]"
    (row,) = pw.run(query, {"S": table}, time="t").to_pylist()
    assert row["s"] == pytest.approx(2.0, rel=1e-11)  # as exact as the values, which have 16 digits themselves
    assert row["r"] == pytest.approx(1.0, rel=1e-12)


def test_a_long_gap_is_filled_without_counting_it() -> None:
    """Two items a day apart, in steps of a millisecond: 86.4 million instants, of which all but one are flat."""
    base = datetime(2024, 5, 5, tzinfo=UTC)
    day = timedelta(days=1)
    table = pa.table(
        {"t": pa.array([base + timedelta(hours=1), base + day], pa.timestamp("us", "UTC")), "v": [0.0, 1.0]}
    )
    query = "SELECT REGR_SLOPE(v, 'FILLED', '1 MILLISECOND') AS s FROM S [RANGE 1 DAY SLIDE 1 DAY]"
    (row,) = pw.run(query, {"S": table}, time="t", until=base + day).to_pylist()
    n = 23 * 3_600_000 + 1
    assert row["s"] == pytest.approx(1000 * 6 / (n * (n + 1)), rel=1e-12)
