"""Paper "Resource sharing", sections 1 to 3: historical windows, classes of aggregates, and queries."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import floor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panewise as pw
from panewise.aggregate import AGGREGATES, Aggregate, Avg, Count, Invertible, Max, Median, Min, Quantile, Sum
from panewise.algebra import Query
from panewise.core.errors import AggregateProblem, WindowProblem
from panewise.core.time import Boundary
from panewise.cql import bind_script
from panewise.window import Contents, historical, historical_rows

some = settings(max_examples=60, deadline=None, derandomize=True)
numbers = st.lists(st.integers(-50, 50), max_size=15)
Row = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"

# ---- 2: windows -----------------------------------------------------------------------------------------------------


@some
@given(left=st.integers(1, 20), right=st.integers(0, 19), length=st.integers(0, 40))
def test_tuple_based_windows_by_formula(left: int, right: int, length: int) -> None:
    """Section 2: of a stream of length r, S[NL, NR] holds tuples max(r - NL + 1, 1) to r - NR."""
    if right >= left:
        with pytest.raises(WindowProblem, match="empty"):
            historical_rows(left, right)
        return
    contents = Contents.of(np.arange(1, length + 1, dtype=np.int64))  # the i-th tuple arrives at time i
    held = historical_rows(left, right).members(contents, length, Boundary.RIGHT)
    assert [int(place) + 1 for place in held] == list(range(max(length - left + 1, 1), length - right + 1))


@some
@given(
    left=st.integers(1, 20),
    right=st.integers(0, 19),
    times=st.lists(st.integers(0, 40), max_size=25).map(sorted),
    now=st.integers(0, 60),
)
def test_time_based_windows_by_formula(left: int, right: int, times: list[int], now: int) -> None:
    """Section 2: at time t, S[TL, TR] holds the tuples with t - TL + 1 <= time <= t - TR."""
    if right >= left:
        with pytest.raises(WindowProblem, match="empty"):
            historical(left, right)
        return
    contents = Contents.of(np.array([t for t in times if t <= now], np.int64))
    held = historical(left, right).members(contents, now, Boundary.RIGHT)
    assert held.tolist() == [i for i, t in enumerate(times) if now - left + 1 <= t <= now - right]


def test_substreams_keep_their_order() -> None:
    """Section 2: tuples with one key form a substream, in the order of the stream; windows apply to each by itself."""
    table = pa.table({"t": [1, 2, 3, 4, 5], "k": ["a", "b", "a", "a", "b"], "v": [1, 2, 3, 4, 5]})
    query = "RSTREAM(SELECT k, FIRST(v) AS a, LAST(v) AS b FROM S [PARTITION BY k ROWS 2] GROUP BY k)"
    found = [row for row in pw.run(query, {"S": table}, time="t").to_pylist() if row["ts"] == 5]
    assert {(row["k"], row["a"], row["b"]) for row in found} == {("a", 3, 4), ("b", 2, 5)}


# ---- 2 and 3: aggregates --------------------------------------------------------------------------------------------


def synopsis(aggregate: Aggregate[Any], values: list[int]) -> Any:
    found = aggregate.identity()
    for value in values:
        found = aggregate.combine(found, aggregate.lift(value))
    return found


INT = pa.int64()
#: How the result of two bags follows from the results of each.
DISTRIBUTIVE: dict[str, Callable[[Any, Any], Any]] = {
    "SUM": lambda a, b: b if a is None else a if b is None else a + b,
    "COUNT": lambda a, b: a + b,
    "MAX": lambda a, b: b if a is None else a if b is None else max(a, b),
    "MIN": lambda a, b: b if a is None else a if b is None else min(a, b),
}


@pytest.mark.parametrize("name", DISTRIBUTIVE)
@some
@given(one=numbers, other=numbers)
def test_distributive_aggregates(name: str, one: list[int], other: list[int]) -> None:
    """Section 2: SUM, COUNT, MAX and MIN of a union come from their values on the parts."""
    aggregate = AGGREGATES[name](INT)
    parts = DISTRIBUTIVE[name](aggregate.meaning(one), aggregate.meaning(other))
    assert aggregate.meaning(one + other) == parts
    assert aggregate.laws.bounded


@pytest.mark.parametrize("kind", [Sum, Count, Max, Min, Avg])
@some
@given(one=numbers, other=numbers)
def test_algebraic_aggregates(kind: type[Aggregate[Any]], one: list[int], other: list[int]) -> None:
    """Section 2: the result comes from a synopsis of constant size, that of a union from those of its parts.

    AVG is algebraic without being distributive: its synopsis holds SUM and COUNT.
    """
    aggregate = kind(INT)
    both = aggregate.combine(synopsis(aggregate, one), synopsis(aggregate, other))
    assert aggregate.lower(both) == aggregate.meaning(one + other)
    assert aggregate.laws.bounded


def test_the_average_is_not_distributive() -> None:
    """Section 2: equal averages of parts say nothing about the average of the whole."""
    average = Avg(INT)
    one, other, longer = [1], [4], [4, 4]
    assert average.meaning(other) == average.meaning(longer)
    assert average.meaning(one + other) != average.meaning(one + longer)


def test_holistic_aggregates() -> None:
    """Section 2: QUANTILE has no synopsis of constant size; neither have MEDIAN and COUNT(DISTINCT)."""
    holistic = {name for name, kind in AGGREGATES.items() if not kind.laws.bounded}
    assert {"QUANTILE", "MEDIAN", "COUNT(DISTINCT)"} <= holistic
    assert not holistic & {"SUM", "COUNT", "MAX", "MIN", "AVG"}
    quantile = Quantile(INT, phi="0.5")
    assert len(synopsis(quantile, list(range(100)))) == 100
    assert not Median.laws.bounded


@pytest.mark.parametrize(
    ("kind", "subtractable"), [(Sum, True), (Count, True), (Avg, True), (Max, False), (Min, False)]
)
@some
@given(part=numbers, rest=numbers)
def test_subtractable_aggregates(
    kind: type[Aggregate[Any]], subtractable: bool, part: list[int], rest: list[int]
) -> None:
    """Section 3.2: of SUM, COUNT and AVG a part can be taken out again; of MAX and MIN it cannot."""
    aggregate = kind(INT)
    assert aggregate.laws.invertible is isinstance(aggregate, Invertible) is subtractable
    if isinstance(aggregate, Invertible):
        left = aggregate.invert(synopsis(aggregate, part + rest), synopsis(aggregate, part))
        assert aggregate.lower(left) == aggregate.meaning(rest)


@some
@given(values=numbers, percent=st.integers(1, 100))
def test_quantile_is_the_element_at_a_position(values: list[int], percent: int) -> None:
    """Section 3.3: QUANTILE(phi) of N elements is the one at position floor(phi * N) of their sorted sequence.

    Positions count from one. Where phi * N is below one the paper names no element; we take the first.
    """
    quantile = Quantile(INT, phi=f"{percent / 100:.2f}")
    position = max(floor(Fraction(percent, 100) * len(values)), 1)
    assert quantile.meaning(values) == (sorted(values)[position - 1] if values else None)


@pytest.mark.parametrize("phi", ["0", "-0.1", "1.01", "most"])
def test_quantile_parameter_is_in_the_half_open_unit_interval(phi: str) -> None:
    """Section 3.3: phi lies in (0, 1]."""
    with pytest.raises(AggregateProblem, match="phi"):
        Quantile(INT, phi=phi)


def test_quantiles_with_different_parameters_over_one_window() -> None:
    """Section 3.3: operators over one window may differ in phi."""
    table = pa.table({"t": list(range(1, 101)), "v": list(range(100, 0, -1))})
    query = "SELECT QUANTILE(v, 0.29) AS a, QUANTILE(v, 0.5) AS b, QUANTILE(v, 1.0) AS c FROM S [RANGE 100 SLIDE 100]"
    (row,) = pw.run(query, {"S": table}, time="t", until=100).to_pylist()
    assert (row["a"], row["b"], row["c"]) == (29, 50, 100)


# ---- 2: operators ---------------------------------------------------------------------------------------------------


def substreams(seed: int) -> list[Row]:
    random = Random(seed)
    times = sorted(random.randint(0, 900) for _ in range(80))
    return [{"t": t, "K": random.choice("abcd"), "A": random.randint(1, 400)} for t in times]


def current(cql: str, items: list[Row]) -> Iterator[tuple[int, set[tuple[Any, ...]]]]:
    """The answer after each change, until the next one."""
    result = pw.run(cql, {"S": pa.Table.from_pylist(items)}, time="t")
    names = result.column_names[: result.column_names.index("ts")]
    changes = result.to_pylist()
    answer: set[tuple[Any, ...]] = set()
    for at in range(1300):
        came, went = (
            {tuple(c[n] for n in names) for c in changes if c["ts"] == at and c["sign"] == s} for s in (1, -1)
        )
        assert went <= answer
        answer = answer - went | came
        yield at, answer


def test_example_2_1_average_over_the_last_120_time_units() -> None:
    """Example 2.1: AVG over S[120, 0] is the average of the tuples of the last 120 time units, at any time."""
    items = substreams(1)
    for at, answer in current("SELECT AVG(A) AS mean FROM S [RANGE 120]", items):
        held = [r["A"] for r in items if at - 120 + 1 <= r["t"] <= at]
        assert answer == ({(sum(held) / len(held),)} if held else set())


def test_example_2_1_substreams_whose_sum_passes_a_threshold() -> None:
    """Example 2.1: the substream filter with HAVING.

    The words say "at least 1000", the range (1000, infinity) and the query say "more than 1000"; so does this.
    """
    items = substreams(2)
    query = "Select K, SUM (A) From S [Range 300] Group By K Having SUM(A) > 1000"
    seen = set()
    for at, answer in current(query, items):
        sums = {k: sum(r["A"] for r in items if r["K"] == k and at - 300 + 1 <= r["t"] <= at) for k in "abcd"}
        assert answer == {(k, total) for k, total in sums.items() if total > 1000}
        seen |= answer
    assert seen


# ---- 1: examples ----------------------------------------------------------------------------------------------------

OPENING = datetime(2026, 1, 30, 14, 30)


def test_example_1_1_last_10_000_trades() -> None:
    """Example 1.1, a suffix window over tuples: average number of shares in the last 10,000 trades."""
    random = Random(1)
    waves = [(OPENING + timedelta(seconds=20 * n), random.randint(1, 900)) for n in range(13) for _ in range(1000)]
    table = pa.table({"at": [t for t, _ in waves], "shares": [s for _, s in waves]})
    found = pw.run("RSTREAM(SELECT AVG(shares) AS mean FROM S [ROWS 10000])", {"S": table}, time="at").to_pylist()
    assert len(found) == 13
    for row in found:
        last = [s for t, s in waves if t <= row["ts"]][-10_000:]
        assert row["mean"] == sum(last) / len(last)


def test_example_1_1_between_one_and_two_minutes_ago() -> None:
    """Example 1.1, a historical window over time: average number of shares traded between 1 and 2 minutes ago."""
    random = Random(2)
    trades = sorted((OPENING + timedelta(seconds=random.randint(0, 600)), random.randint(1, 900)) for _ in range(80))
    table = pa.table({"at": [t for t, _ in trades], "shares": [s for _, s in trades]})
    query = "SELECT AVG(shares) AS mean FROM S [RANGE 1 MINUTE SLIDE 1 SECOND LAG 1 MINUTE]"
    found = {row["w_end"]: row for row in pw.run(query, {"S": table}, time="at").to_pylist()}
    minute = timedelta(minutes=1)
    for second in range(740):
        now = OPENING + timedelta(seconds=second)
        held = [s for t, s in trades if now - 2 * minute < t <= now - minute]
        row = found.pop(now - minute, None)  # w_end is the end of the scope: a minute before the instant
        assert (row["mean"] if row else None) == (sum(held) / len(held) if held else None)
        assert row is None or row["w_start"] == now - 2 * minute
    assert not found


@pytest.mark.parametrize("minutes", [2, 5])
@pytest.mark.parametrize("threshold", [200, 400])
def test_example_1_2_stocks_whose_volume_passes_a_threshold(minutes: int, threshold: int) -> None:
    """Example 1.2: all stocks whose trading volume during a window exceeds a threshold, for several of both."""
    random = Random(3)
    trades = [(OPENING + timedelta(seconds=9 * n), random.choice("ABC"), random.randint(1, 60)) for n in range(80)]
    table = pa.table(
        {"at": [t for t, _, _ in trades], "symbol": [s for _, s, _ in trades], "v": [v for _, _, v in trades]}
    )
    query = f"""SELECT symbol, SUM(v) AS volume FROM S [RANGE {minutes} MINUTES SLIDE 30 SECONDS]
                GROUP BY symbol HAVING SUM(v) > {threshold}"""
    found = pw.run(query, {"S": table}, time="at").to_pylist()
    expected = set()
    for step in range(50):
        now = OPENING + timedelta(seconds=30 * step)
        for symbol in "ABC":
            volume = sum(v for t, s, v in trades if s == symbol and now - timedelta(minutes=minutes) < t <= now)
            if volume > threshold:
                expected.add((now, symbol, volume))
    assert {(row["w_end"], row["symbol"], row["volume"]) for row in found} == expected
    assert len(found) == len(expected)


# ---- 1.1.2: the two queries of the Traderbot site -------------------------------------------------------------------

PIPELINE = bind_script((EXAMPLES / "traderbot.cql").read_text(encoding="utf-8"))


def market(seed: int) -> list[Row]:
    """An hour of trades. Symbols differ in exchange, price, trend, nervousness and in whether volume surges."""
    random, rows = Random(seed), []
    start = OPENING.replace(tzinfo=UTC)
    listed = [  # symbol, exchange, opening price, drift a minute, noise, minute of the surge
        ("ACME", "NASDAQ", 100.0, -0.25, 0.5, 99),
        ("BOLT", "NASDAQ", 60.0, 0.0, 0.25, 99),
        ("CORE", "NYSE", 90.0, -0.5, 0.5, 99),
        ("DIME", "NASDAQ", 19.0, -0.05, 0.25, 35),
        ("EDGE", "NYSE", 50.0, 0.0, 1.5, 40),
        ("FLUX", "NYSE", 150.0, 0.0, 0.25, 40),
    ]
    for symbol, exchange, opening, drift, noise, surge in listed:
        for second in range(0, 3600, 20):
            if random.random() < 0.2:
                continue
            minute = second / 60
            price = round(4 * (opening + drift * minute + random.uniform(-noise, noise))) / 4
            low, high = random.choice([(0.25, 0.5), (0.5, 0.25), (0.75, 0.25)])
            busy = 12 if surge <= minute < surge + 6 else 1
            at = start + timedelta(seconds=second + random.randint(0, 19))
            quote = {
                "price": price,
                "bid": price - low,
                "ask": price + high,
                "volume": 100 * random.randint(1, 4) * busy,
            }
            rows.append({"at": at, "symbol": symbol, "exchange": exchange, **quote})
    return sorted(rows, key=lambda r: (r["at"], r["symbol"]))


def example() -> list[Row]:
    """The trades that come with the example script."""
    with (EXAMPLES / "trades.csv").open(encoding="utf-8", newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        row["at"] = datetime.fromisoformat(row["at"])
        row |= {name: float(row[name]) for name in ("price", "bid", "ask")}
        row["volume"] = int(row["volume"])
    return rows


MARKETS: dict[str, Callable[[], list[Row]]] = {"example": example, "one": lambda: market(1), "two": lambda: market(2)}
every_market = pytest.mark.parametrize("rows", [pytest.param(make, id=name) for name, make in MARKETS.items()])


def answers(query: Query, rows: list[Row]) -> set[tuple[Any, ...]]:
    schema = PIPELINE.streams["trades"].schema
    found = pw.reference.run(query, {"trades": pa.Table.from_pylist(rows, schema)}, time="at").to_pylist()
    shown = {tuple(v for name, v in row.items() if name != "w_start") for row in found}
    assert len(shown) == len(found)
    return shown


def windows(rows: list[Row]) -> Iterator[tuple[datetime, str, Callable[[int, int], list[Row]]]]:
    """Every minute and symbol, with the symbol's trades between some minutes ago and some fewer minutes ago."""
    first = rows[0]["at"].replace(second=0)
    for minute in range(100):
        now = first + timedelta(minutes=minute)
        for symbol in sorted({r["symbol"] for r in rows}):
            own = [r for r in rows if r["symbol"] == symbol]

            def between(left: int, right: int, own: list[Row] = own, now: datetime = now) -> list[Row]:
                low, high = now - timedelta(minutes=left), now - timedelta(minutes=right)
                return [r for r in own if low < r["at"] <= high]

            yield now, symbol, between


@every_market
def test_traderbot_short_term_downward_momentum(rows: Callable[[], list[Row]]) -> None:
    """Section 1.1.2, query 1: down more than 2% in 20 minutes under buying pressure in the last 2.

    Moved down: the last price against the first one of the window. Toward the ask: nearer to it than to the bid.
    """
    expected = set()
    for now, symbol, between in windows(rows()):
        long, short = between(20, 0), between(2, 0)
        if not short or long[0]["exchange"] != "NASDAQ":
            continue
        opened, price = long[0]["price"], long[-1]["price"]
        bought = sum(r["volume"] for r in short if r["ask"] - r["price"] < r["price"] - r["bid"])
        traded = sum(r["volume"] for r in short)
        if 20 <= price <= 200 and (opened - price) / opened > 0.02 and 10 * bought >= 7 * traded:
            expected.add((symbol, opened, price, bought, traded, now))
    assert answers(PIPELINE.queries["downward_momentum"].query, rows()) == expected
    assert {symbol for symbol, *_ in expected} == {"ACME"}


@every_market
def test_traderbot_high_volatility_with_recent_volume_surge(rows: Callable[[], list[Row]]) -> None:
    """Section 1.1.2, query 2: a spread above 3% in 30 minutes, and volume up by more than 300% in the last 5.

    Up by more than 300% is more than four times the average volume of a trade in the 25 minutes before.
    """
    expected = set()
    for now, symbol, between in windows(rows()):
        long, recent, before = between(30, 0), between(5, 0), between(30, 5)
        if not recent or not before:
            continue
        high, low, price = max(r["price"] for r in long), min(r["price"] for r in long), long[-1]["price"]
        surged, usual = (sum(r["volume"] for r in part) / len(part) for part in (recent, before))
        if 20 <= price <= 200 and high - low > 0.03 * price and surged > 4 * usual:
            expected.add((symbol, high, low, price, surged, usual, now))
    assert answers(PIPELINE.queries["volume_surge"].query, rows()) == expected
    assert "EDGE" in {symbol for symbol, *_ in expected}
    assert not {"DIME", "FLUX"} & {symbol for symbol, *_ in expected}
