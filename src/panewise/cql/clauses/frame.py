"""The frame clause: a kind, and conditions in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from panewise.core.errors import PanewiseError, Place, WindowProblem
from panewise.core.time import Duration
from panewise.cql.clauses.base import ClauseBinder, WindowClause
from panewise.cql.clauses.frame_conditions import LengthSyntax, read_condition
from panewise.cql.clauses.frame_kinds import KindSyntax, bind_predicate, read_kind
from panewise.cql.dialect import name_text
from panewise.cql.syntax import Expr
from panewise.cql.tokens import Cursor
from panewise.frame.conditions import condition_texts
from panewise.frame.frame import Duplicates, Frame, FrameLength, Missing, Saturation, Schedule, Scheme, Span


@dataclass(frozen=True)
class FrameClause(WindowClause, words=("FRAME",)):
    """FRAME, its kind, and the conditions after it.

    Beside the places of durations and names, `places` has that of the kind as `#kind`, and that of each condition under
    the name of its field.
    """

    kind: KindSyntax
    partition_by: tuple[str, ...] = ()
    some: Expr | None = None
    least: LengthSyntax | None = None
    most: LengthSyntax | None = None
    span: str | None = None
    scheme: str | None = None
    choice: str | None = None
    overlap: Duration | None = None
    extent: str | None = None
    reading: str | None = None
    every: Duration | None = None
    missing: str | None = None
    duplicates: str | None = None
    fragments: LengthSyntax | None = None

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> FrameClause:
        kind = read_kind(cursor)
        given: dict[str, Any] = {}
        while cursor.token is not None:
            read_condition(cursor, given)
        return cls(kind, **given)

    def bind(self, binder: ClauseBinder) -> Frame:
        try:
            return self._frame(binder)
        except PanewiseError as problem:
            raise problem.at(self._contradiction_place(binder)) from None

    def _contradiction_place(self, binder: ClauseBinder) -> Place | None:
        """The place of the last condition without which the others do not contradict each other; otherwise that of the
        kind."""
        given = [key.removeprefix("#") for key in self.places if key.startswith("#")]
        for name in reversed(given):
            without: dict[str, Any] = {name: None}
            try:
                if name not in ("kind", "partition_by"):
                    replace(self, **without)._frame(binder)
                    return self.places[f"#{name}"]
            except PanewiseError:
                continue
        return self.places.get("#kind")

    def _frame(self, binder: ClauseBinder) -> Frame:
        schedule = None
        if self.every is not None:
            schedule = Schedule(binder.length("EVERY", self.every), Missing(self.missing or "FAILS"))
        return Frame(
            self.kind.bind(binder),
            tuple(dict.fromkeys(map(binder.column, self.partition_by))),
            bind_predicate(binder, self.some, "WITH SOME") if self.some else None,
            _bind_length(binder, "AT LEAST", self.least),
            _bind_length(binder, "AT MOST", self.most),
            Span(self.span) if self.span else None,
            Scheme(self.scheme) if self.scheme else None,
            Saturation(self.choice) if self.choice else None,
            0 if self.overlap is None else binder.length("ADJACENT", self.overlap),
            self.extent == "LIBERAL",
            self.reading == "INTERVALS",
            schedule,
            Duplicates(self.duplicates or ("ERROR" if self.every else "KEEP")),
            _bind_length(binder, "FRAGMENTS EVERY", self.fragments),
        )

    def text(self) -> str:
        columns = ", ".join(map(name_text, self.partition_by))
        given = vars(self) | {"some": self.some and self.some.sql, "partition_by": columns}
        return " ".join(("FRAME", self.kind.text(), *condition_texts(given)))


def _bind_length(binder: ClauseBinder, name: str, length: LengthSyntax | None) -> FrameLength | None:
    if length is None:
        return None
    if not isinstance(length.amount, int):
        return FrameLength(binder.length(name, length.amount))
    if length.amount <= 0:
        place = binder.place_of(length.amount)
        raise WindowProblem(f"{name} {length} is not positive", fix="use more than zero", place=place)
    return FrameLength(length.amount, rows=True)
