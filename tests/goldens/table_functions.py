"""Windows as Flink and Calcite call them, TUMBLE(...) and its kin, in the words of CQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

EPOCH = datetime(1970, 1, 1)
SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600}


def window_clause(call: str) -> str:
    """The clause for the brackets.

    >>> window_clause("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '40' MINUTE, INTERVAL '1' HOUR)")
    "RANGE 3600 SECONDS SLIDE 2400 SECONDS START AT '1970-01-01 00:20:00'"
    """
    name = call.partition("(")[0].strip()
    lengths = [_seconds(value, unit) for value, unit in re.findall(r"INTERVAL '([\d:.]+)' (\w+(?: TO \w+)?)", call)]
    match name, lengths:
        case "TUMBLE", [size, *offset]:
            return _sliding(size, size, offset)
        case "HOP", [slide, size, *offset]:
            return _sliding(size, slide, offset)
        case "CUMULATE", [step, size, *offset]:
            return f"CUMULATE {_text(size)} STEP {_text(step)}{_start(sum(offset, Decimal()))}"
        case "SESSION", [gap]:
            return f"{_partition(call)}SESSION {_text(gap)}"
    raise ValueError(f"no window for {call}")


def time_column(call: str) -> str:
    """The column that the first DESCRIPTOR names."""
    return _descriptors(call)[0]


def _sliding(size: Decimal, slide: Decimal, offset: Sequence[Decimal]) -> str:
    # Their windows start on the grid of the slide, ours end on it; both agree when the slide divides the size.
    origin = (sum(offset, Decimal()) + size) % slide
    return f"RANGE {_text(size)} SLIDE {_text(slide)}{_start(origin)}"


def _start(origin: Decimal) -> str:
    return f" START AT '{EPOCH + timedelta(seconds=float(origin))}'" if origin else ""


def _partition(call: str) -> str:
    """Flink says PARTITION BY, Calcite names the key in a second DESCRIPTOR."""
    keys = re.findall(r"PARTITION BY (\w+)", call) or _descriptors(call)[1:]
    return f"PARTITION BY {keys[0]} " if keys else ""


def _descriptors(call: str) -> list[str]:
    return re.findall(r"DESCRIPTOR\((\w+)\)", call)


def _seconds(value: str, unit: str) -> Decimal:
    """`'20:10.525' MINUTE TO SECOND` is 1210.525."""
    finest = SECONDS[unit.rpartition(" ")[2].removesuffix("S")]
    places = (Decimal(part) * 60**power for power, part in enumerate(reversed(value.split(":"))))
    return finest * sum(places, Decimal())


def _text(seconds: Decimal) -> str:
    return f"{seconds.normalize():f} SECONDS"
