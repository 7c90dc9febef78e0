"""The clauses of windows that count rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from panewise.cql.clauses.base import ClauseBinder, WindowClause, errors_at
from panewise.cql.clauses.levels import check_levels, read_slides
from panewise.cql.dialect import name_text
from panewise.cql.tokens import Cursor
from panewise.window import RowHierarchy, Rows, Window


@dataclass(frozen=True)
class RowsClause(WindowClause, words=("ROWS",)):
    count: int
    slide: int | None = None
    lag: int = 0
    partition_by: tuple[str, ...] = ()

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> RowsClause | RowLevelsClause:
        first, count = cursor.at, cursor.integer("a number of rows")
        if cursor.peek(",") or cursor.peek("SLIDES"):
            cursor.at = first
            return RowLevelsClause.read(cursor, opening)
        slide = cursor.integer("a number of rows") if cursor.take("SLIDE") else None
        return cls(count, slide, cursor.integer("a number of rows") if cursor.take("LAG") else 0)

    def bind(self, binder: ClauseBinder) -> Window:
        wrong = next((n for n in (self.count, self.slide) if n is not None and n < 1), self.lag)
        with errors_at(binder.place_of(wrong)):
            return Rows(self.count, self.lag, tuple(map(binder.column, self.partition_by)), self.slide)

    def text(self) -> str:
        slide = "" if self.slide is None else f" SLIDE {self.slide}"
        lag = f" LAG {self.lag}" if self.lag else ""
        return f"{partition_text(self.partition_by)}ROWS {self.count}{slide}{lag}"


@dataclass(frozen=True)
class RowLevelsClause(WindowClause):
    """Several counts, from the widest to the narrowest, with a slide each; `RowsClause` reads the word ROWS."""

    counts: tuple[int, ...]
    slides: tuple[int, ...]
    partition_by: tuple[str, ...] = ()

    @classmethod
    def read(cls, cursor: Cursor, opening: str) -> RowLevelsClause:
        counts = cursor.comma_list(partial(cursor.integer, "a number of rows"))
        return cls(counts, read_slides(cursor, partial(cursor.integer, "a number of rows"), "ROWS", len(counts)))

    def bind(self, binder: ClauseBinder) -> Window:
        columns = tuple(map(binder.column, self.partition_by))
        levels = []
        for count, slide in zip(self.counts, self.slides, strict=True):
            with errors_at(binder.place_of(count if count < 1 else slide)):
                levels.append(Rows(count, partition_by=columns, slide=slide))
        check_levels(binder, "ROWS", [(n, n) for n in self.counts], [(n, n) for n in self.slides])
        return RowHierarchy(tuple(levels[::-1]))

    def text(self) -> str:
        counts, slides = ", ".join(map(str, self.counts)), ", ".join(map(str, self.slides))
        return f"{partition_text(self.partition_by)}ROWS {counts} SLIDES {slides}"


def partition_text(columns: tuple[str, ...]) -> str:
    return f"PARTITION BY {', '.join(map(name_text, columns))} " if columns else ""
