"""Traces of network connections, in the schema that "Consistent results" queries.

The paper replays LBL-CONN-7, which we do not have. We generate a trace, and read KDD99 where it is present:

- KDD99 has no addresses. The bytes that a side sent stand for the host that sent them, `localIP` for the source and
  `remoteIP` for the destination, and are numbered as LBL numbers hosts; a side that sent nothing is unknown, and
  agrees with no other. A tuple then finds some 13 partners in a window of 100 K tuples of the other stream.
- Most of its rows belong to floods of one and the same connection that last for 100 K rows. In the order of the file,
  windows would hold nothing else, or nothing of it. We deal the rows out, so that those of any window are spread over
  the whole file.
- Whoever has LBL-CONN-7 puts it to where FILES says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from benchmarks.data.streams import durations

#: A connection; durations are in seconds in KDD99, in milliseconds elsewhere.
CONNECTION = pa.schema(
    [
        ("duration", pa.int64()),
        ("protocol", pa.string()),
        ("payload_sent", pa.int64()),
        ("payload_received", pa.int64()),
        ("localIP", pa.int64()),
        ("remoteIP", pa.int64()),
        ("status", pa.string()),
        ("flags", pa.string()),
    ]
)
#: At most so many rows, from the beginning of a file.
Loader: TypeAlias = Callable[[Path, int], pa.Table]

GOLDEN = (5**0.5 - 1) / 2
HOSTS = 20_000
CONVERSATIONS = 20_000
#: The more a protocol is used, the further it is to the left.
PROTOCOLS = np.array(["smtp", "nntp", "http", "ftp-data", "telnet", "finger", "domain", "login"])


def generated(rows: int, seed: int = 5) -> pa.Table:
    """Hosts that talk to each other again and again, some much more than others.

    Local hosts differ in how often they appear, remote hosts do not: an address meets one in HOSTS on average.
    """
    rng = np.random.default_rng(seed)
    protocol = (len(PROTOCOLS) * rng.random(CONVERSATIONS) ** 2).astype(np.int64)
    local = 1 + (HOSTS * rng.random(CONVERSATIONS) ** 3).astype(np.int64)
    remote = rng.integers(1, HOSTS + 1, CONVERSATIONS)
    which = (CONVERSATIONS * rng.random(rows) ** 2).astype(np.int64)
    sent, received = (rng.lognormal(7, 2, rows).astype(np.int64) for _ in range(2))
    status = np.array(["SF", "REJ", "S0"])[(3 * rng.random(rows) ** 3).astype(np.int64)]
    flags = np.array(["L", ""])[rng.integers(0, 2, rows)]
    columns = (durations(rows), PROTOCOLS[protocol[which]], sent, received, local[which], remote[which], status, flags)
    return pa.table([pa.array(column) for column in columns], schema=CONNECTION)


def kdd99(path: Path, rows: int) -> pa.Table:
    """The rows of the KDD Cup 1999: 42 columns without a header."""
    numbers, words = {"f0": "duration", "f4": "sent", "f5": "received"}, {"f1": "protocol", "f3": "status", "f11": "in"}
    types = dict.fromkeys(numbers, pa.int64()) | dict.fromkeys(words, pa.string())
    reader = csv.open_csv(
        path,
        csv.ReadOptions(autogenerate_column_names=True, use_threads=False),
        convert_options=csv.ConvertOptions(column_types=types, include_columns=list(types)),
    )
    batches, found = [], 0
    while found < rows and (batch := next(reader, None)) is not None:
        batches.append(batch)
        found += len(batch)
    table = pa.Table.from_batches(batches).slice(0, rows)
    duration, sent, received, protocol, status, logged_in = table.columns
    return pa.table([duration, protocol, sent, received, *_hosts(sent, received), status, logged_in], schema=CONNECTION)


def _hosts(sent: pa.ChunkedArray, received: pa.ChunkedArray) -> list[pa.Array]:
    """Numbers for hosts on both sides: the same for those that sent equally much, none for those that sent nothing."""
    sizes = np.concatenate((sent.to_numpy(), received.to_numpy()))
    _, numbers = np.unique(np.append(sizes, 0), return_inverse=True)
    return [pa.array(side, mask=side == 0) for side in np.split(numbers[:-1], 2)]


def lbl(path: Path, rows: int) -> pa.Table:
    """LBL-CONN-7: a line a connection, `?` for what is unknown; a line may end without flags."""
    with path.open(encoding="ascii") as lines:
        read = [[None if field == "?" else field for field in line.split()] for line in islice(lines, rows)]
    _, seconds, protocol, sent, received, local, remote, status, *_ = zip(*read, strict=False)
    flags = [" ".join(field or "?" for field in fields[8:]) for fields in read]
    milliseconds = [None if duration is None else round(1000 * float(duration)) for duration in seconds]
    numbers = [[None if n is None else int(n) for n in column] for column in (sent, received, local, remote)]
    return pa.table([milliseconds, protocol, *numbers, status, flags], schema=CONNECTION)


_SHARED = Path(__file__).parents[3] / "shared" / "data"
FILES: dict[str, tuple[Path, Loader]] = {
    "KDD99": (_SHARED / "kdd99" / "kddcup.data_10_percent.gz", kdd99),
    "LBL": (_SHARED / "lbl_conn_7" / "lbl-conn-7", lbl),
}
GENERATED = "generated"


@lru_cache(maxsize=2)
def traces(rows: int) -> dict[str, pa.Table]:
    """Every trace there is, in the order in which it was recorded; at most so many rows of each."""
    found = {name: load(path, rows) for name, (path, load) in FILES.items() if path.exists()}
    return {GENERATED: generated(rows)} | found


def dealt(trace: pa.Table) -> pa.Table:
    """The same rows, so that any few of them in succession come from all over the trace.

    Multiples of the golden section, modulo 1, are spread most evenly, and so are those in any interval.
    """
    return trace.take(pa.array(np.argsort(np.arange(len(trace)) * GOLDEN % 1))).combine_chunks()


def populated(trace: pa.Table, count: int) -> pa.Table:
    """The rows of the most used protocols."""
    used = trace["protocol"].value_counts().to_pylist()
    most = sorted(used, key=lambda each: -each["counts"])[:count]
    return trace.filter(pc.is_in(trace["protocol"], pa.array([each["values"] for each in most])))
