"""The parts that clauses with several levels have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from panewise.core.errors import SyntaxProblem, WindowProblem
from panewise.cql.clauses.base import ClauseBinder
from panewise.cql.tokens import Cursor

T = TypeVar("T")


def read_slides(cursor: Cursor, read: Callable[[], T], name: str, count: int) -> tuple[T, ...]:
    """The slides of so many levels, whose ranges were listed under a name."""
    cursor.expect("SLIDES")
    slides = cursor.comma_list(read)
    if len(slides) != count:
        raise SyntaxProblem(
            f"there are {count} {name} but {len(slides)} SLIDES",
            fix="give one slide for each range" if name == "RANGES" else "give one slide for each number of rows",
            place=cursor.place(),
        )
    return slides


def check_levels(
    binder: ClauseBinder, name: str, ranges: Sequence[tuple[int, object]], slides: Sequence[tuple[int, object]]
) -> None:
    """Check levels here, with lengths as they were written; the window would report ticks."""
    for (wider, before), (narrower, after) in pairwise(ranges):
        if narrower >= wider:
            raise WindowProblem(
                f"{name} {after} is not narrower than {before} before it",
                fix=f"list the {'ranges' if name == 'RANGES' else 'numbers of rows'} from the widest to the narrowest",
                place=binder.place_of(after),
            )
    for (coarser, before), (finer, after) in pairwise(slides):
        if finer > coarser:
            raise WindowProblem(
                f"SLIDES {after} is longer than {before} before it",
                fix="let slides shrink, or stay, towards narrower ranges",
                place=binder.place_of(after),
            )
