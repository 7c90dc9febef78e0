"""Paper "Consistent results", queries Q1 to Q6: read, bound and run, and checked against small recomputations.

Q1 to Q3 run over weather stations with timestamps; Q4 to Q6, of the experiments in section 6, over generated network
traces with several window signatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import panewise as pw
from panewise.algebra import pattern
from panewise.core.schema import StreamSchema
from panewise.cql import bind_query
from panewise.window import Pattern

Row = dict[str, Any]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DAWN = datetime(2026, 1, 31, 6, 0)


def weather(seed: int, measured: str, low: int, high: int, size: int = 40) -> list[Row]:
    """Readings of three stations between 06:00 and 09:30, to the second."""
    random = Random(seed)
    offsets = sorted(random.randint(0, 3 * 3600 + 1800) for _ in range(size))
    return [
        {
            "at": DAWN + timedelta(seconds=o),
            "stationID": random.choice("abc"),
            measured: float(random.randint(low, high)),
        }
        for o in offsets
    ]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def ends(rows: list[Row]) -> list[datetime]:
    """Every whole minute from the first reading until the last one has been in an hour's window."""
    first = min(r["at"] for r in rows).replace(second=0)
    return [first + n * MINUTE for n in range(int((max(r["at"] for r in rows) - first) / MINUTE) + 62)]


READINGS = weather(1, "Temperature", 24, 36)


def test_query_1_average_of_the_past_hour_every_minute() -> None:
    """Section 1, Q1: one average a minute over the readings of the past hour, and none where there are none."""
    query = "SELECT AVG(Temperature) FROM Readings [RANGE 60 MINUTES SLIDE 1 MINUTE]"
    found = pw.run(query, {"Readings": table(READINGS)}, time="at").to_pylist()
    expected = {}
    for end in ends(READINGS):
        held = [r["Temperature"] for r in READINGS if end - HOUR < r["at"] <= end]
        if held:
            expected[end] = sum(held) / len(held)
    assert [row["w_end"] for row in found] == sorted(expected)
    for row in found:
        assert row["AVG(Temperature)"] == pytest.approx(expected[row["w_end"]], rel=1e-12)
        assert row["w_end"] - row["w_start"] == HOUR


def test_query_2_without_a_window_is_append_only() -> None:
    """Section 2.2, Q2: warm readings one by one as they arrive, valid for ever."""
    query = "SELECT * FROM Readings WHERE Temperature >= 30"
    found = pw.run(query, {"Readings": table(READINGS)}, time="at")
    warm = [r for r in READINGS if r["Temperature"] >= 30]
    assert [{name: row[name] for name in READINGS[0]} for row in found.to_pylist()] == warm
    assert set(found.column("sign").to_pylist()) == {1}
    schema = {"Readings": StreamSchema(table(READINGS).schema, "at")}
    assert pattern(bind_query(query, schema).root) is Pattern.MONOTONIC


def test_query_2_with_a_window_forgets_after_an_hour() -> None:
    """Section 4.1, Q2': the same selection over a sliding hour is weakest non-monotonic."""
    query = "SELECT * FROM Readings [RANGE 60 MINUTES SLIDE 1 MINUTE] WHERE Temperature >= 30"
    streams = {"Readings": table(READINGS)}
    found = pw.run(query, streams, time="at").to_pylist()
    for end in ends(READINGS):
        held = [r for r in READINGS if end - HOUR < r["at"] <= end and r["Temperature"] >= 30]
        shown = [{name: row[name] for name in READINGS[0]} for row in found if row["w_end"] == end]
        assert sorted(shown, key=str) == sorted(held, key=str)
    schema = {"Readings": StreamSchema(streams["Readings"].schema, "at")}
    assert pattern(bind_query(query, schema).root) is Pattern.WEAKEST
    gone = pw.run(query.replace("SELECT", "SELECT DSTREAM"), streams, time="at").column("at").to_pylist()
    assert gone == sorted(gone)


Q3 = """
SELECT P.stationID, MAX(P.humidity), AVG(S.temperature)
FROM P [UNBOUNDED START AT '07:00:00'],
     S [RANGE 60 MINUTES SLIDE 1 MINUTE]
WHERE P.stationID = S.stationID AND S.Temperature >= 30
GROUP BY P.stationID
"""


def test_query_3_heat_index_from_a_landmark_and_a_sliding_window() -> None:
    """Section 4.4, Q3: peak humidity since seven in the morning beside the heat of the past hour, by station."""
    humid, warm = weather(2, "humidity", 30, 90), weather(3, "temperature", 24, 36)
    found = pw.run(Q3, {"P": table(humid), "S": table(warm)}, time="at").to_pylist()
    seven = DAWN.replace(hour=7)
    expected = {}
    for end in ends(warm):
        for station in "abc":
            peaks = [r["humidity"] for r in humid if r["stationID"] == station and seven <= r["at"] <= end]
            heat = [r["temperature"] for r in warm if r["stationID"] == station and end - HOUR < r["at"] <= end]
            heat = [t for t in heat if t >= 30]
            if peaks and heat:
                expected[end, station] = (max(peaks), sum(heat) / len(heat))
    assert {(row["w_end"], row["stationID"]) for row in found} == set(expected)
    assert len(found) == len(expected)
    for row in found:
        peak, mean = expected[row["w_end"], row["stationID"]]
        assert row["MAX(P.humidity)"] == peak
        assert row["AVG(S.temperature)"] == pytest.approx(mean, rel=1e-12)


# ---- network traces, section 6 --------------------------------------------------------------------------------------

State = Callable[[list[Row], int], list[Row]]


def of_each_protocol(trace: list[Row], at: int) -> list[Row]:
    seen = [r for r in trace if r["timestamp"] <= at]
    return [r for p in sorted({r["protocol"] for r in seen}) for r in [s for s in seen if s["protocol"] == p][-3:]]


#: The signatures of section 6.3 at a smaller scale, each with its state.
SIGNATURES: dict[str, State] = {
    "RANGE 10 SLIDE 1": lambda trace, at: [r for r in trace if at - 10 < r["timestamp"] <= at],
    "RANGE 10 SLIDE 5": lambda trace, at: [r for r in trace if at - 10 < r["timestamp"] <= at],
    "RANGE 10 SLIDE 10": lambda trace, at: [r for r in trace if at - 10 < r["timestamp"] <= at],
    "RANGE 10 SLIDE 15": lambda trace, at: [r for r in trace if at - 10 < r["timestamp"] <= at],
    "RANGE 10": lambda trace, at: [r for r in trace if at - 10 < r["timestamp"] <= at],
    "ROWS 12": lambda trace, at: [r for r in trace if r["timestamp"] <= at][-12:],
    "PARTITION BY protocol ROWS 3": of_each_protocol,
    "UNBOUNDED": lambda trace, at: [r for r in trace if r["timestamp"] <= at],
}
every_signature = pytest.mark.parametrize("signature", SIGNATURES)


def net_trace(seed: int, size: int = 60) -> list[Row]:
    """Sessions in waves: several tuples share a timestamp, few hosts talk to each other over few protocols."""
    random = Random(seed)
    return [
        {
            "timestamp": n // 3 + n // 20 * 4,
            "duration": random.randint(0, 300),
            "protocol": random.choice(["nntp", "smtp", "ftp", "telnet"]),
            "payload_sent": random.choice([None, random.randint(0, 5000)]),
            "payload_received": random.randint(0, 5000),
            "localIP": random.randint(1, 6),
            "remoteIP": random.randint(1, 6),
            "status": random.choice(["SF", "REJ"]),
            "flags": random.choice(["L", "N", None]),
        }
        for n in range(size)
    ]


def observed(cql: str, streams: dict[str, list[Row]]) -> tuple[list[int], dict[int, Counter[tuple[Any, ...]]]]:
    """Instants and the relation at each of them: whole states, or changes added up."""
    result = pw.run(cql, {name: table(rows) for name, rows in streams.items()}, time="timestamp")
    added = {"w_start", "w_end", "ts", "sign", "expires_at", "expires_order"}
    names = [n for n in result.column_names if n not in added]
    found: dict[int, Counter[tuple[Any, ...]]] = {}
    bag: Counter[tuple[Any, ...]] = Counter()
    for row in result.to_pylist():
        at = row.get("w_end", row.get("ts"))
        if "sign" not in row:
            found.setdefault(at, Counter())[tuple(row[n] for n in names)] += 1
        else:
            bag[tuple(row[n] for n in names)] += row["sign"]
            found[at] = +bag
    return sorted(found), found


def compare(
    cql: str, streams: dict[str, list[Row]], signature: str, expected: Callable[[int], Counter[tuple[Any, ...]]]
) -> None:
    instants, found = observed(cql, streams)
    step = int(signature.rpartition("SLIDE")[2]) if "SLIDE" in signature else 1
    last: Counter[tuple[Any, ...]] = Counter()
    for at in range(0, 60, step):
        last = found.get(at, Counter() if "SLIDE" in signature else last)
        assert last == expected(at), f"at {at}"
    assert all(at % step == 0 for at in instants)


@every_signature
def test_query_4_distinct_connections(signature: str) -> None:
    """Section 6.3, Q4: duplicate elimination on protocol and both addresses."""
    trace = net_trace(4)
    compare(
        f"SELECT DISTINCT protocol, localIP, remoteIP FROM NetTrace [{signature}];",
        {"NetTrace": trace},
        signature,
        lambda at: Counter({(r["protocol"], r["localIP"], r["remoteIP"]) for r in SIGNATURES[signature](trace, at)}),
    )


@every_signature
@pytest.mark.parametrize(("name", "function"), [("SUM", sum), ("MAX", max)])
def test_query_5_aggregate_by_local_host(signature: str, name: str, function: Callable[[list[int]], int]) -> None:
    """Section 6.3, Q5: a progressive and a retrospective aggregate of the duration by local address."""
    trace = net_trace(5)

    def expected(at: int) -> Counter[tuple[Any, ...]]:
        groups: dict[int, list[int]] = {}
        for r in SIGNATURES[signature](trace, at):
            groups.setdefault(r["localIP"], []).append(r["duration"])
        return Counter((host, function(durations)) for host, durations in groups.items())

    query = f"SELECT localIP, {name}(duration) FROM NetTrace [{signature}] GROUP BY localIP;"
    compare(query, {"NetTrace": trace}, signature, expected)


@every_signature
def test_query_6_join_of_two_traces(signature: str) -> None:
    """Section 6.3, Q6: sessions whose local host is the remote host of the other trace, all attributes of both."""
    a, b, state = net_trace(6, 45), net_trace(7, 45), SIGNATURES[signature]
    query = f"SELECT * FROM TraceA [{signature}], TraceB [{signature}] WHERE TraceA.localIP = TraceB.remoteIP;"

    def expected(at: int) -> Counter[tuple[Any, ...]]:
        pairs = ((x, y) for x in state(a, at) for y in state(b, at) if x["localIP"] == y["remoteIP"])
        return Counter((*x.values(), *y.values()) for x, y in pairs)

    compare(query, {"TraceA": a, "TraceB": b}, signature, expected)
