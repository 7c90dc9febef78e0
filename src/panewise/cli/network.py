"""A seeded stream of network connections, shaped like a wide-area trace: bursts, few busy hosts, long tails."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

#: Layout of a trace: one row a connection.
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("duration", pa.float64()),
        ("protocol", pa.string()),
        ("sent", pa.int64()),
        ("received", pa.int64()),
        ("local_host", pa.string()),
        ("remote_host", pa.string()),
        ("status", pa.string()),
        ("flags", pa.string()),
    ]
)
_START = 1_767_600_000_000_000  # 2026-01-05 08:00:00 UTC
_PROTOCOLS = ("smtp", "http", "nntp", "ftp-data", "ftp", "telnet", "finger", "other")
_SHARES = (0.32, 0.24, 0.12, 0.11, 0.08, 0.06, 0.04, 0.03)
_SIZES = {
    "smtp": 7.2,
    "http": 8.4,
    "nntp": 8.9,
    "ftp-data": 9.6,
    "ftp": 6.2,
    "telnet": 6.8,
    "finger": 4.8,
    "other": 6.5,
}


def connections(rows: int, seed: int, minutes: float = 15.0) -> pa.Table:
    """That many connections over that many minutes, in arrival order; a few of them arrive up to 4 s late.

    In the middle one host is scanned: many short, refused connections from one remote address.
    """
    rng = np.random.default_rng(seed)
    times = _arrivals(rng, rows, minutes)
    protocol = rng.choice(_PROTOCOLS, rows, p=_SHARES)
    scale = np.array([_SIZES[p] for p in protocol])
    sent = np.exp(rng.normal(scale - 1.0, 1.4)).astype(np.int64)
    received = np.exp(rng.normal(scale, 1.7)).astype(np.int64)
    local = _hosts(rng, rows, 60, 1.4, "10.1.0.")
    remote = _hosts(rng, rows, 900, 1.2, "203.0.")
    status = rng.choice(["SF", "REJ", "S0", "RSTO"], rows, p=[0.93, 0.03, 0.02, 0.02])
    scan = (times > _at(minutes, 0.55)) & (times < _at(minutes, 0.62)) & (rng.random(rows) < 0.6)
    sent[scan], received[scan] = 60, 0
    local[scan], remote[scan], status[scan] = "10.1.0.3", "203.0.113.66", "REJ"
    flags = np.where(rng.random(rows) < 0.08, "L", np.where(rng.random(rows) < 0.02, "N", ""))
    duration = np.where(scan, 0.0, np.round(rng.exponential(received / 2500 + 0.4), 3))
    columns = [times, duration, protocol, sent, received, local, remote, status, flags]
    arrays = [
        pa.array(c, pa.int64()).cast(f.type) if f.name == "ts" else pa.array(c, f.type)
        for c, f in zip(columns, SCHEMA, strict=True)
    ]
    late = times + np.where(rng.random(rows) < 0.02, rng.integers(0, 4_000_000, rows), 0)
    return pa.table(arrays, schema=SCHEMA).take(pa.array(np.argsort(late, kind="stable")))


def _arrivals(rng: np.random.Generator, rows: int, minutes: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Arrival times whose rate rises and falls, with bursts."""
    calm = rng.random(rows)
    waves = 0.5 + 0.5 * np.sin(calm * 12.0)
    bursts = rng.choice(rng.random(12), rows) + rng.normal(0, 0.004, rows)
    place = np.where(rng.random(rows) < 0.25 * waves, bursts, calm) % 1.0
    scan = rng.random(rows) < 0.12
    place = np.where(scan, 0.55 + 0.07 * rng.random(rows), place)
    return np.sort(_START + (place * minutes * 60e6).astype(np.int64))


def _at(minutes: float, share: float) -> int:
    return _START + int(share * minutes * 60e6)


def _hosts(
    rng: np.random.Generator, rows: int, count: int, skew: float, prefix: str
) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """Addresses, of which a few occur much more often."""
    ranks = np.minimum(rng.zipf(skew, rows), count)
    if prefix.count(".") == 3:
        return np.array([f"{prefix}{r}" for r in ranks], object)
    return np.array([f"{prefix}{r // 200}.{r % 200}" for r in ranks], object)
