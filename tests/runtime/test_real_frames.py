"""Frames over real series: machines that cool down, traffic that slows down, a probe that sinks.

Each answer is computed a second time, with NumPy, from what the clause says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pytest

import panewise as pw
from panewise.core.errors import SchemaProblem
from tests.laws.test_engine import same

DATA = Path(__file__).parents[2].parent / "shared" / "data"
MINUTE = 60_000_000

Longs: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
#: First and last place of each frame.
Places: TypeAlias = tuple[Longs, Longs]


def real(name: str) -> pa.Table:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the real streams are not at {DATA}")
    return pyarrow.csv.read_csv(path)


def ticks(column: pa.ChunkedArray) -> Longs:
    instants = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
    return np.asarray(instants.cast(pa.int64()), np.int64)


def stretches(labels: npt.NDArray[Any]) -> Places:
    """Where neighbours are equal."""
    starts = np.flatnonzero(np.concatenate(([True], labels[1:] != labels[:-1])))
    return starts, np.concatenate((starts[1:], [len(labels)])) - 1


def holding(flags: Flags, times: Longs, least: int) -> Places:
    """Where a condition holds for at least so long."""
    first, last = stretches(flags)
    kept = flags[first] & (times[last] - times[first] >= least)
    return first[kept], last[kept]


def extents(found: pa.Table) -> list[tuple[int, int, int]]:
    return sorted(zip(ticks(found["w_start"]), ticks(found["w_end"]), found["count"].to_pylist(), strict=True))


def at(times: Longs, places: Places) -> list[tuple[int, int, int]]:
    first, last = places
    return list(zip(times[first], times[last], last - first + 1, strict=True))


# ---- machines --------------------------------------------------------------------------------------------------------

COLD = "SELECT MIN(value) AS low FROM machine [FRAME WHILE value < 55 FOR AT LEAST {} HOURS {}]"


@pytest.fixture(scope="module")
def machine() -> pa.Table:
    """A report every five minutes; once the clock was set back, so that twelve times come twice."""
    return real("nab/realKnownCause/machine_temperature_system_failure.csv.gz")


def last_reports(table: pa.Table) -> tuple[Longs, Doubles]:
    """Times that rise, each with the report that came last."""
    times, values = ticks(table["timestamp"]), table["value"].to_numpy()
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    kept = np.concatenate((times[1:] != times[:-1], [True]))
    return times[kept], values[kept]


@pytest.mark.parametrize("hours", [1, 2, 8])
@pytest.mark.parametrize("schedule", ["", "EVERY 5 MINUTES"])
def test_a_machine_that_cools_down(machine: pa.Table, hours: int, schedule: str) -> None:
    found = pw.run(COLD.format(hours, f"DUPLICATES LAST {schedule}"), {"machine": machine}, time="timestamp")
    times, values = last_reports(machine)
    first, last = holding(values < 55, times, hours * 60 * MINUTE)
    assert extents(found) == at(times, (first, last))
    assert sorted(found["low"].to_pylist()) == sorted(values[a : b + 1].min() for a, b in zip(first, last, strict=True))
    if schedule:
        assert set(found["missing"].to_pylist()) == {0}


def test_cold_machines_are_those_that_people_called_broken(machine: pa.Table) -> None:
    """Two hours of cold are in every interval that was labelled; eight hours are nowhere else."""
    labels = json.loads((DATA / "nab" / "combined_windows.json").read_text())
    broken = np.array(labels["realKnownCause/machine_temperature_system_failure.csv"], "datetime64[us]").astype(int)

    def meeting(hours: int) -> Flags:
        found = pw.run(COLD.format(hours, "DUPLICATES LAST"), {"machine": machine}, time="timestamp")
        starts, ends = ticks(found["w_start"]), ticks(found["w_end"])
        return (starts[:, None] <= broken[:, 1]) & (broken[:, 0] <= ends[:, None])

    assert meeting(2).any(axis=0).tolist() == [True] * 4
    assert meeting(8).any(axis=1).tolist() == [True] * 3


def test_times_that_come_twice_are_refused_or_treated(machine: pa.Table) -> None:
    with pytest.raises(SchemaProblem, match="two reports of one group have the time"):
        pw.run(COLD.format(2, "EVERY 5 MINUTES"), {"machine": machine}, time="timestamp")
    every = pw.run("SELECT * FROM machine [FRAME WHILE value > -100]", {"machine": machine}, time="timestamp")
    once = pw.run(
        "SELECT * FROM machine [FRAME WHILE value > -100 DUPLICATES AVG]", {"machine": machine}, time="timestamp"
    )
    times, _ = last_reports(machine)
    assert every["count"].to_pylist() == [machine.num_rows] == [len(times) + 12]
    assert once["count"].to_pylist() == [len(times)]


# ---- traffic ---------------------------------------------------------------------------------------------------------

DETECTORS = ("6005", "7578", "t4013")


@pytest.fixture(scope="module")
def traffic() -> pa.Table:
    """Three detectors, with gaps of days, and one time that comes twice."""
    parts = [(name, real(f"nab/realTraffic/speed_{name}.csv.gz")) for name in DETECTORS]
    return pa.concat_tables(
        part.append_column("detector", pa.array([name] * part.num_rows, pa.string())) for name, part in parts
    )


@pytest.mark.parametrize("treatment", ["MIN", "MAX", "FIRST"])
def test_slow_periods(traffic: pa.Table, treatment: str) -> None:
    """Of two reports at one time, both must be slow, or one, or the first."""
    cql = f"""SELECT detector, MIN(value) AS slowest FROM traffic
      [FRAME WHILE value < 60 FOR AT LEAST 10 MINUTES PARTITION BY detector DUPLICATES {treatment}]"""
    found = pw.run(cql, {"traffic": traffic}, time="timestamp")
    whole: dict[str, Callable[[list[bool]], bool]] = {"MIN": all, "MAX": any, "FIRST": lambda flags: flags[0]}
    assert found.num_rows > 20
    for name in DETECTORS:
        part = traffic.filter(pa.compute.equal(traffic["detector"], name))
        times, slow = ticks(part["timestamp"]), part["value"].to_numpy() < 60
        first, last = stretches(times)
        flags = np.array([whole[treatment](slow[a : b + 1].tolist()) for a, b in zip(first, last, strict=True)])
        own = found.filter(pa.compute.equal(found["detector"], name))
        assert extents(own) == at(times[first], holding(flags, times[first], 10 * MINUTE))
        assert own["frame_id"].to_pylist() == ticks(own["w_start"]).tolist()


# ---- a probe ---------------------------------------------------------------------------------------------------------

CAST = {
    "boundary": "SELECT MIN(temp_c) AS low, MAX(temp_c) AS high FROM cast [FRAME EVERY 1 OF pressure_db]",
    "delta": "SELECT MIN(fluorescence) AS low, MAX(fluorescence) AS high FROM cast [FRAME DELTA fluorescence > 0.05]",
    "aggregate": "SELECT SUM(fluorescence) AS total FROM cast [FRAME SUM(fluorescence) >= 10]",
}


@pytest.fixture(scope="module")
def cast() -> pa.Table:
    """A probe that is let down through a thousand metres of water, 24 scans a second."""
    return real("ctd_meteor/ctd_meteor_20110401.csv.gz")


@pytest.mark.parametrize("kind", CAST)
def test_the_engine_says_what_is_meant(cast: pa.Table, kind: str) -> None:
    head = cast.slice(0, 2000)
    same(pw.run(CAST[kind], {"cast": head}, time="scan"), pw.reference.run(CAST[kind], {"cast": head}, time="scan"))


def test_every_decibar(cast: pa.Table) -> None:
    found = pw.run(CAST["boundary"], {"cast": cast}, time="scan")
    first, last = stretches(np.floor(cast["pressure_db"].to_numpy()))
    assert extents(found) == at(ticks(cast["scan"]), (first, last))
    temperatures = cast["temp_c"].to_numpy()
    assert found["low"].to_pylist() == np.minimum.reduceat(temperatures, first).tolist()
    assert found["high"].to_pylist() == np.maximum.reduceat(temperatures, first).tolist()


def test_water_that_stays_alike(cast: pa.Table) -> None:
    values = cast["fluorescence"].to_numpy()

    def ends() -> Iterator[int]:
        start = 0
        while start < len(values):
            rest = values[start:]
            apart = np.maximum.accumulate(rest) - np.minimum.accumulate(rest) > 0.05
            start += int(np.argmax(apart)) if apart.any() else len(rest)
            yield start - 1

    found = pw.run(CAST["delta"], {"cast": cast}, time="scan")
    last = np.fromiter(ends(), np.int64)
    first = np.concatenate(([0], last[:-1] + 1))
    assert extents(found) == at(ticks(cast["scan"]), (first, last))
    assert found["low"].to_pylist() == np.minimum.reduceat(values, first).tolist()


def test_equal_amounts_of_fluorescence(cast: pa.Table) -> None:
    """In millionths, in which the sensor speaks, so that no sum is rounded."""
    values = np.rint(cast["fluorescence"].to_numpy() * 1e6).astype(np.int64)
    sums = np.cumsum(values)

    def ends() -> Iterator[int]:
        reached = 0
        while (last := int(np.searchsorted(sums, reached + 10_000_000))) < len(sums):
            yield last
            reached = int(sums[last])

    found = pw.run(CAST["aggregate"], {"cast": cast}, time="scan")
    last = np.fromiter(ends(), np.int64)
    first = np.concatenate(([0], last[:-1] + 1))
    assert extents(found) == at(ticks(cast["scan"]), (first, last))
    totals = np.add.reduceat(values[: last[-1] + 1], first) / 1e6
    np.testing.assert_allclose(found["total"].to_numpy(), totals, rtol=1e-12)
