"""Real disorder: a resolver's log whose lines are up to eleven minutes late."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

import panewise as pw

LOG = Path(__file__).parents[2].parent / "shared" / "data" / "zeek_dns" / "dns.log.gz"
QUERY = "SELECT host, COUNT(*) AS lookups FROM dns [RANGE 10 MINUTES SLIDE 5 MINUTES] GROUP BY host"


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """The log, in the order in which it was written."""
    if not LOG.exists():
        pytest.skip(f"the real streams are not at {LOG.parent}")
    with gzip.open(LOG, "rt", encoding="utf-8") as text:
        lines = [line.rstrip("\n").split("\t") for line in text]
    names = next(line[1:] for line in lines if line[0] == "#fields")
    rows = [dict(zip(names, line, strict=True)) for line in lines if not line[0].startswith("#")]
    times = [round(float(row["ts"]) * 1e6) for row in rows]
    hosts = [row["id.orig_h"] for row in rows]
    return pa.table({"ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")), "host": hosts})


def test_enough_delay_loses_nothing(log: pa.Table) -> None:
    patient = pw.reference.execute(QUERY, {"dns": pw.Stream(log, time="ts", delay="1 day")})
    order = [("w_end", "ascending"), ("host", "ascending")]
    complete = pw.run(QUERY, {"dns": log}, time="ts")
    assert patient.table.sort_by(order).equals(complete.sort_by(order))
    assert patient.accounting["dns"].used == log.num_rows


def test_no_delay_accounts_for_every_row(log: pa.Table) -> None:
    hasty = pw.reference.execute(QUERY, {"dns": pw.Stream(log, time="ts")})
    account = hasty.accounting["dns"]
    assert account.rows_in == account.used + account.late + account.rejected == log.num_rows
    assert account.partly_late + account.late > 0
    assert hasty.late["dns"].num_rows == account.late
    assert sum(hasty.table["lookups"].to_pylist()) < sum(pw.run(QUERY, {"dns": log}, time="ts")["lookups"].to_pylist())
