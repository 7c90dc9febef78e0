"""Time as int64 ticks: microseconds on timestamps, plain numbers on integer columns.

Negative ticks are ordinary: the grid of a slide is found by floor division, never by truncation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from enum import Enum
from fractions import Fraction
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from panewise.core.errors import TimeProblem, did_you_mean

Ticks: TypeAlias = npt.NDArray[np.int64]
TickOrTicks: TypeAlias = int | Ticks
#: A length of time in Python: `"5 minutes"`, a number on integer time, or a timedelta of Python, NumPy or pandas.
DurationLike: TypeAlias = str | int | timedelta | np.timedelta64

#: Bounds of usable time. Leaving two bits of headroom keeps `instant + range` from ever overflowing int64.
MIN_TICK, MAX_TICK = -(2**61), 2**61

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
#: The spellings of units, in capitals.
UNIT_SPELLINGS = {
    **{name: name for name in UNITS},
    **{f"{name}S": name for name in UNITS},
    **dict.fromkeys(("US",), "MICROSECOND"),
    **dict.fromkeys(("MS",), "MILLISECOND"),
    **dict.fromkeys(("S", "SEC", "SECS"), "SECOND"),
    **dict.fromkeys(("MIN", "MINS"), "MINUTE"),
    **dict.fromkeys(("H", "HR", "HRS"), "HOUR"),
    **dict.fromkeys(("D",), "DAY"),
}
#: Microseconds of the units of NumPy that are always equally long.
_NUMPY_UNITS = {
    **dict(zip(("us", "ms", "s", "m", "h", "D", "W"), map(Fraction, UNITS.values()), strict=True)),
    **{name: Fraction(1, 1000**n) for n, name in enumerate(("ns", "ps", "fs", "as"), 1)},
}
#: Units of the calendar, whose length depends on when they begin.
_CALENDAR = {"MONTH": 30, "QUARTER": 90, "YEAR": 365}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A duration as people write it, with or without a unit.
DURATION = re.compile(r"\s*(?P<count>[-+]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[A-Za-z]+)?\s*", re.ASCII)
#: More digits of a second than there are ticks.
_FINE = re.compile(r"[.,]\d{6}\d*[1-9]")


class Domain(Enum):
    """What one tick of a stream is."""

    TIMESTAMP = "timestamp"
    INTEGER = "integer"


class Boundary(Enum):
    """Which end of a scope is included: `(t - w, t]` as in the papers, or `[t - w, t)` as in Spark and Flink."""

    RIGHT = "(]"
    LEFT = "[)"

    @property
    def shift(self) -> int:
        """Ticks between an item's time and the first instant whose scope can hold it."""
        return 0 if self is Boundary.RIGHT else 1

    def is_final(self, instant: TickOrTicks, mark: TickOrTicks) -> Any:
        """Whether an instant was final when the watermark was `mark`; both may be arrays.

        No item older than the watermark is missing. Under `(]` the scope holds the instant itself, so the watermark
        must have passed it; under `[)` it is enough that the watermark has reached it.
        """
        return mark >= instant + 1 - self.shift

    @classmethod
    def of(cls, value: str | Boundary) -> Boundary:
        try:
            return cls(value)
        except ValueError:
            raise TimeProblem(
                f"boundary {value!r} is unknown", fix="use '(]' (the papers) or '[)' (Spark, Flink)"
            ) from None


@dataclass(frozen=True)
class Duration:
    """A length of time as written: a count and, on timestamps, a unit.

    >>> Duration.parse("5 minutes").ticks(Domain.TIMESTAMP)
    300000000
    >>> Duration.parse("5").ticks(Domain.INTEGER)
    5
    """

    count: Fraction
    unit: str | None = None

    @classmethod
    def parse(cls, length: DurationLike) -> Duration:
        if isinstance(length, timedelta | np.timedelta64):
            return cls._of_timedelta(length)
        match = DURATION.fullmatch(str(length))
        if not match or len(match["count"]) > 40:
            raise TimeProblem(
                f"{str(length)[:40]!r} is not a duration", fix="write a number and a unit, such as '5 SECONDS'"
            )
        return cls.of(match["count"], match["unit"])

    @classmethod
    def _of_timedelta(cls, length: timedelta | np.timedelta64) -> Duration:
        """A duration of exactly this length; `ticks` refuses parts of a microsecond."""
        if isinstance(length, timedelta):
            finer = Fraction(int(getattr(length, "nanoseconds", 0)), 1000)  # only those of pandas have them
            return cls.from_microseconds(length // timedelta(microseconds=1) + finer)
        unit, steps = np.datetime_data(length.dtype)
        if np.isnat(length) or unit not in _NUMPY_UNITS:
            raise TimeProblem(f"{length!r} has no fixed length", fix="give it a unit such as 's' or 'D'")
        return cls.from_microseconds(int(length.astype(np.int64)) * steps * _NUMPY_UNITS[unit])

    @classmethod
    def from_microseconds(cls, microseconds: Fraction) -> Duration:
        """A duration in the longest unit of which it is a whole number."""
        unit = next((name for name in reversed(UNITS) if microseconds % UNITS[name] == 0), "MICROSECOND")
        return cls(microseconds / UNITS[unit], unit)

    @classmethod
    def of(cls, count: str, unit: str | None) -> Duration:
        return cls(Fraction(count), None if unit is None else unit_name(unit))

    def ticks(self, domain: Domain) -> int:
        """The length in ticks of that domain, which must be a whole number."""
        if domain is Domain.INTEGER and self.unit:
            raise TimeProblem(
                f"duration '{self}' has a unit, but the time column is an integer", fix=f"write {self._number()} alone"
            )
        if domain is Domain.TIMESTAMP and not self.unit:
            raise TimeProblem(
                f"duration '{self}' has no unit, but the time column is a timestamp", fix=f"write {self} SECONDS"
            )
        length = self.count * UNITS[self.unit] if self.unit else self.count
        if length.denominator != 1:
            fix = "write a whole number" if domain is Domain.INTEGER else "write it in whole MICROSECONDS"
            raise TimeProblem(f"duration '{self}' is not a whole number of ticks", fix=fix)
        if not MIN_TICK < (ticks := length.numerator) < MAX_TICK:
            raise TimeProblem(f"duration '{self}' is longer than time itself", fix="use a shorter one")
        return ticks

    def _number(self) -> str:
        exact = self.count.denominator == 1
        return str(self.count.numerator) if exact else str(float(self.count))

    def __str__(self) -> str:
        if not self.unit:
            return self._number()
        return f"{self._number()} {self.unit}{'' if self.count == 1 else 'S'}"


def unit_name(word: str) -> str:
    """The canonical name of a unit of time: 'minutes' is MINUTE."""
    name = word.upper()
    if days := _CALENDAR.get(name.removesuffix("S")):
        raise TimeProblem(f"a {name.removesuffix('S')} has no fixed length", fix=f"count days, such as {days} DAYS")
    if name not in UNIT_SPELLINGS:
        otherwise = "write MIN for minutes" if name == "M" else "use one of {}"
        raise TimeProblem(f"{word!r} is not a unit of time", fix=did_you_mean(name.removesuffix("S"), UNITS, otherwise))
    return UNIT_SPELLINGS[name]


def duration_text(ticks: int, domain: Domain) -> str:
    """The shortest exact way to write a length: 300000000 is '5 MINUTES'."""
    if domain is Domain.INTEGER:
        return str(ticks)
    return str(Duration.from_microseconds(Fraction(ticks)))


def instant_text(tick: int, domain: Domain) -> str:
    """A tick as a person writes it: a number, or an ISO timestamp in UTC."""
    if domain is Domain.INTEGER:
        return str(tick)
    return f"'{np.datetime64(tick, 'us')}'".replace("T", " ")


@dataclass(frozen=True)
class Instant:
    """A point in time as written: a tick, or a time of day whose day is not known yet.

    A time of day without a date means that time on the day (UTC) of the stream's first item.
    """

    tick: int
    of_day: bool = False

    @classmethod
    def parse(cls, value: str | int, domain: Domain) -> Instant:
        if domain is Domain.INTEGER:
            return cls(_parse_integer_instant(value))
        if not isinstance(value, str):
            raise TimeProblem(
                f"instant {value} is a number, but the time column is a timestamp",
                fix="write it in quotes, such as '2026-01-31 07:00:00'",
            )
        return cls._timestamp(value)

    @classmethod
    def _timestamp(cls, text: str) -> Instant:
        if _FINE.search(text):
            raise TimeProblem(f"instant {text!r} is finer than a microsecond", fix="write at most six digits")
        for reader in (_parse_timestamp, _parse_time_of_day):
            try:
                return reader(text)
            except (ValueError, OverflowError):
                continue
        raise TimeProblem(f"{text!r} is not an instant", fix="write '2026-01-31 07:00:00' or '07:00:00'")

    def text(self, domain: Domain) -> str:
        """The instant as a person writes it."""
        if self.of_day:
            return f"'{np.datetime64(self.tick, 'us').item():%H:%M:%S}'"
        return instant_text(self.tick, domain)

    def on_day_of(self, first: int) -> int:
        """The tick itself, or this time of day on the day of tick `first`."""
        return first - first % UNITS["DAY"] + self.tick if self.of_day else self.tick


def _parse_integer_instant(value: str | int) -> int:
    try:
        tick = int(value) if isinstance(value, str) else index(value)
    except (TypeError, ValueError):
        raise TimeProblem(
            f"instant {value!r} is not a whole number, but the time column is an integer", fix="write a plain number"
        ) from None
    if not MIN_TICK < tick < MAX_TICK:
        raise TimeProblem(f"instant {tick} is outside of time", fix=f"stay between {MIN_TICK} and {MAX_TICK}")
    return tick


def _parse_timestamp(text: str) -> Instant:
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    whole = moment - _EPOCH
    return Instant((whole.days * 86_400 + whole.seconds) * 1_000_000 + whole.microseconds)


def _parse_time_of_day(text: str) -> Instant:
    at = clock.fromisoformat(text)
    return Instant(((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond, of_day=True)


def floor_to_grid(instants: Ticks, origin: int, step: int) -> Ticks:
    """The latest grid point `origin + k * step` that is not after each instant."""
    return origin + (instants - origin) // step * step


def on_grid(position: int, origin: int, step: int) -> int:
    """The first grid point that is not before a position."""
    return origin - (origin - position) // step * step


def ceil_to_grid(instants: Ticks, origin: int, step: int) -> Ticks:
    """The first grid point `origin + k * step` that is not before each instant."""
    if step == 1:
        return instants
    return origin - (origin - instants) // step * step


def grid_between(first: Ticks, last: Ticks, origin: int, step: int) -> Ticks:
    """Every grid point inside any of the closed intervals `[first[i], last[i]]`, ascending, each once."""
    lows, highs = _grid_runs(first, last, origin, step)
    if not len(lows):
        return np.empty(0, np.int64)
    return origin + step * np.concatenate([np.arange(a, b + 1) for a, b in zip(lows, highs, strict=True)])


def refuse_many_instants(first: Ticks, last: Ticks, origin: int, step: int) -> None:
    """Refuse more instants inside these intervals than a query can reasonably report."""
    _grid_runs(first, last, origin, step)


def _grid_runs(first: Ticks, last: Ticks, origin: int, step: int) -> tuple[Ticks, Ticks]:
    """First and last number of every run of grid points inside any of the intervals."""
    low = -((origin - first) // step)  # ceiling division
    high = (last - origin) // step
    keep = low <= high
    if not keep.any():
        return low[keep], high[keep]
    low, high = low[keep], high[keep]
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    start = np.concatenate(([True], low[1:] > high[:-1] + 1))
    runs = np.flatnonzero(start)
    ends = np.concatenate((high[runs[1:] - 1], high[-1:]))
    _refuse_count(int((ends - low[runs] + 1).sum()))
    return low[runs], ends


def _refuse_count(count: int) -> None:
    limit = 20_000_000
    if count > limit:
        raise TimeProblem(
            f"this input would be reported at {count:,} instants",
            fix="use a longer SLIDE, or drop items with absurd timestamps",
        )
