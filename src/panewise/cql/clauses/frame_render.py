"""Writes a frame clause as text."""

from __future__ import annotations

from collections.abc import Iterator

from panewise.cql.clauses.frame_syntax import (
    BetweenSyntax,
    BoundarySyntax,
    CustomSyntax,
    DeltaSyntax,
    DensitySyntax,
    FrameClause,
    KindSyntax,
    ReachSyntax,
    TrendSyntax,
    WhileSyntax,
)
from panewise.cql.quoting import name_text, string_text


def frame_text(clause: FrameClause) -> str:
    """The clause without its brackets."""
    return " ".join(["FRAME", _kind(clause.kind), *_conditions(clause)])


def _kind(kind: KindSyntax) -> str:
    match kind:
        case WhileSyntax(condition):
            return f"WHILE {condition.sql}"
        case BoundarySyntax(value, step, marks):
            return f"EVERY {step} OF {value.sql}" if step else f"AT ({', '.join(marks)}) OF {value.sql}"
        case DeltaSyntax(comparison):
            return f"DELTA {comparison.sql}"
        case ReachSyntax(comparison):
            return comparison.sql
        case TrendSyntax(direction, value, tolerance):
            return f"{direction} {value.sql}" + (f" WITHIN {tolerance}" if tolerance else "")
        case DensitySyntax(count, per, chance, expected):
            return f"DENSITY {count} PER {per}" + (f" CHANCE {chance} EXPECTED {expected}" if chance else "")
        case BetweenSyntax(start, end, policy):
            return f"START WHEN {start.sql} END WHEN {end.sql}" + (f" ON START {policy}" if policy else "")
        case CustomSyntax(name, value):
            return f"USING {string_text(name)} OF {value.sql}"


def _conditions(clause: FrameClause) -> Iterator[str]:
    """The conditions that were given, in a fixed order."""
    if clause.some:
        yield f"WITH SOME {clause.some.sql}"
    yield from (f"FOR AT LEAST {clause.least}",) if clause.least else ()
    yield from (f"FOR AT MOST {clause.most}",) if clause.most else ()
    yield from filter(None, (clause.span, clause.scheme))
    yield from (str(clause.overlap),) if clause.overlap else ()
    yield from filter(None, (clause.choice,))
    if clause.partition_by:
        yield f"PARTITION BY {', '.join(map(name_text, clause.partition_by))}"
    for word, said in (("EXTENT", clause.extent), ("AS", clause.reading), ("EVERY", clause.every)):
        yield from (f"{word} {said}",) if said else ()
    for word, said in (("MISSING", clause.missing), ("DUPLICATES", clause.duplicates)):
        yield from (f"{word} {said}",) if said else ()
    if clause.fragments:
        yield f"FRAGMENTS EVERY {clause.fragments}"
