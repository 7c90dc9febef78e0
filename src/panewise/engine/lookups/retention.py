"""How long panes are kept for lookups, and how finely they are cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from panewise.core.errors import PanewiseError, SchemaProblem, did_you_mean
from panewise.core.time import Duration, DurationLike
from panewise.engine.pool import Pool

#: A length of time for all streams, or for each by its name.
Lengths = DurationLike | Mapping[str, DurationLike]


@dataclass(frozen=True)
class Retention:
    """Ticks by stream. Streams without an entry keep what their windows need, cut as their windows need it."""

    keep: Mapping[str, int] = field(default_factory=dict)
    grain: Mapping[str, int] = field(default_factory=dict)

    def plain(self) -> list[dict[str, int]]:
        """Plain values from which `Retention(*...)` makes the same object."""
        return [dict(self.keep), dict(self.grain)]


def parse_retention(pool: Pool, keep: Lengths | None, grain: Lengths | None) -> Retention:
    """The lengths that users gave, in ticks; refuses lengths that make no sense."""
    if grain is not None and keep is None:
        raise PanewiseError("grain is given without keep", fix="say how long panes are kept, such as keep='1 hour'")
    found = Retention(_ticks(pool, "keep", keep), _ticks(pool, "grain", grain))
    if loose := [name for name in found.grain if name not in found.keep]:
        raise PanewiseError(f"stream {loose[0]!r} has a grain, but nothing of it is kept", fix="add it to keep")
    return found


def _ticks(pool: Pool, what: str, given: Lengths | None) -> dict[str, int]:
    if given is None:
        return {}
    lengths = given if isinstance(given, Mapping) else dict.fromkeys(pool.streams, given)
    for name in lengths:
        if name not in pool.streams:
            raise SchemaProblem(f"{what} names no stream {name!r}", fix=did_you_mean(name, pool.streams))
    found = {name: Duration.parse(length).ticks(pool.streams[name].domain) for name, length in lengths.items()}
    if wrong := [name for name, ticks in found.items() if ticks <= 0]:
        raise PanewiseError(f"{what}={lengths[wrong[0]]!r} is not positive", fix="use a length such as '1 hour'")
    return found
