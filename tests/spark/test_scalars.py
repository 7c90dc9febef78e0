"""Scalars mean the same on both hosts: every entry of the list against Spark, over the edges of every type it takes.

A case agrees if type and value are the same, or if both hosts fail. Spark evaluates all cases of a name in one query,
in which rows that fail here are NULLs; some of those rows are then asked alone, and must fail there too. Fractions are
compared exactly, but for the functions whose entry allows a distance in units of the last place.

`pytest -k "test_scalar[UPPER"` asks for one name; `-m soak` tries every combination of types.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panewise.core.errors import PanewiseError
from panewise.core.scalar import Scalar
from panewise.cql import inline_columns, scalar_type
from panewise.cql.data_types import exchange_type
from panewise.runtime.local import HOST

from .scalar_cases import Case, cases
from .spark_literals import spark_literal

SEED, COMBINATIONS, PROBES = 14, 12, 2


def by_name(seed: int, combinations: int) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = defaultdict(list)
    for case in cases(seed, combinations):
        found[case.name].append(case)
    return dict(found)


SOME = by_name(SEED, COMBINATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_scalar(spark: SparkSession, name: str) -> None:
    assert differences(spark, SOME[name]) == []


@pytest.mark.soak
def test_every_combination_of_types(spark: SparkSession) -> None:
    everything = by_name(SEED + 1, 10_000)
    count = sum(len(case.rows) for group in everything.values() for case in group)
    print(f"{len(everything)} functions, {sum(map(len, everything.values()))} expressions, {count} values")
    assert [line for group in everything.values() for line in differences(spark, group)] == []


def differences(spark: SparkSession, group: Sequence[Case]) -> list[str]:
    """What the hosts disagree about, a line each."""
    found: list[str] = []
    for start in range(0, len(group), 12):
        part = group[start : start + 12]
        ours = [Answers(case) for case in part]
        for case, answers in zip(part, ours, strict=True):
            if answers.refused:
                found.append(f"{case.text} over {list(map(str, case.types))} is refused: {answers.refused}")
        pairs = [(case, answers) for case, answers in zip(part, ours, strict=True) if not answers.refused]
        found += _judged(spark, pairs) if pairs else []
    return found


class Answers:
    """What the embedded host makes of a case: a type and values, of which some are errors."""

    def __init__(self, case: Case) -> None:
        self.case, self.refused, self.kind = case, "", pa.null()
        self.errors: dict[int, str] = {}
        columns = {f"a{n}": kind for n, kind in enumerate(case.types)}
        try:
            self.kind = scalar_type(case.text, columns)
        except PanewiseError as problem:
            self.refused = str(problem)
            return
        try:
            self.values = self._values(case.rows)
        except PanewiseError:
            self.values = [self._alone(number) for number in range(len(case.rows))]

    def _values(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(self.case.types)]
        table = pa.table([pa.array(range(len(rows))), *columns], ["#row", *(f"a{n}" for n in range(len(columns)))])
        (found,) = HOST.evaluate([Scalar(self.case.text, (), self.kind)], table)
        return plain(found)

    def _alone(self, number: int) -> Any:
        try:
            return self._values([self.case.rows[number]])[0]
        except PanewiseError as problem:
            self.errors[number] = str(problem)
            return None


def plain(values: pa.ChunkedArray) -> list[Any]:
    """Values as Python ones; times as numbers, so that no calendar can overflow."""
    return list(values.cast(_numbers(values.type)).to_pylist())


def _numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(_numbers(kind.key_type), _numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_numbers(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _numbers(f.type)) for f in kind])
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    return pa.int32() if kind == pa.date32() else kind


def _judged(spark: SparkSession, pairs: Sequence[tuple[Case, Answers]]) -> Iterator[str]:
    asked = [(case, [None if n in answers.errors else n for n in range(len(case.rows))]) for case, answers in pairs]
    try:
        theirs = _ask(spark, asked)
    except PySparkException:
        if len(pairs) > 1:
            for pair in pairs:
                yield from _judged(spark, [pair])
            return
        yield from _one_by_one(spark, *pairs[0])
        return
    for (case, answers), (kind, values) in zip(pairs, theirs, strict=True):
        yield from _compared(case, answers, kind, values)
        yield from _probed(spark, case, answers)


def _ask(
    spark: SparkSession, asked: Sequence[tuple[Case, Sequence[int | None]]]
) -> list[tuple[pa.DataType, list[Any]]]:
    """What Spark makes of rows of several cases, side by side; a row of None is NULLs."""
    height = max(len(rows) for _, rows in asked)
    lines = []
    for at in range(height):
        cells = [str(at)]
        for case, rows in asked:
            chosen = rows[at] if at < len(rows) else None
            row = case.rows[chosen] if chosen is not None else [None] * len(case.types)
            cells += [spark_literal(value, kind) for value, kind in zip(row, case.types, strict=True)]
        lines.append(f"({', '.join(cells)})")
    names, texts = ["at"], []
    for number, (case, _) in enumerate(asked):
        names += [f"c{number}_{n}" for n in range(len(case.types))]
        texts.append(f"{_renamed(case, number)} AS r{number}")
    table = spark.sql(
        f"SELECT at, {', '.join(texts)} FROM VALUES {', '.join(lines)} AS t({', '.join(names)})"
    ).toArrow()
    columns = [table.column(n + 1) for n in range(len(asked))]
    return [(column.type, plain(column)[: len(rows)]) for column, (_, rows) in zip(columns, asked, strict=True)]


def _renamed(case: Case, number: int) -> str:
    """The text as Spark gets it from us, over columns of its own."""
    return inline_columns(case.text, {f"a{n}": f"c{number}_{n}" for n in range(len(case.types))})


def _one_by_one(spark: SparkSession, case: Case, answers: Answers) -> Iterator[str]:
    """Where Spark refuses or fails for rows that we answer: which, and why."""
    for number in range(len(case.rows)):
        try:
            ((kind, values),) = _ask(spark, [(case, [number])])
        except PySparkException as problem:
            if number not in answers.errors:
                yield f"{_shown(case, number)}: {answers.values[number]!r}, Spark fails: {_first(problem)}"
        else:
            if number in answers.errors:
                yield f"{_shown(case, number)} fails: {answers.errors[number]}, Spark: {values[0]!r}"
            else:
                yield from _compared(case, answers, kind, values, number)


def _compared(case: Case, answers: Answers, kind: pa.DataType, values: list[Any], first: int = 0) -> Iterator[str]:
    if exchange_type(kind) != exchange_type(answers.kind) or (pa.types.is_timestamp(kind) and kind != answers.kind):
        yield f"{case.text} over {list(map(str, case.types))} is {answers.kind}, Spark: {kind}"
        return
    for number, theirs in enumerate(values, first):
        if number not in answers.errors and not same(answers.values[number], theirs, case.ulps):
            yield f"{_shown(case, number)}: {answers.values[number]!r}, Spark: {theirs!r}"


def _probed(spark: SparkSession, case: Case, answers: Answers) -> Iterator[str]:
    for number in list(answers.errors)[:PROBES]:
        try:
            ((_, values),) = _ask(spark, [(case, [number])])
        except PySparkException:
            continue
        if case.stricter or (values == [None] and None in case.rows[number]):
            continue  # Spark may not look at a bad argument where another one is NULL
        yield f"{_shown(case, number)} fails: {answers.errors[number]}, Spark: {values[0]!r}"


def _shown(case: Case, number: int) -> str:
    row = ", ".join(f"{value!r} {kind}" for value, kind in zip(case.rows[number], case.types, strict=True))
    return f"{case.text} of ({row[:300]})"


def _first(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0][:200]


def same(ours: Any, theirs: Any, ulps: int) -> bool:
    """Whether two values are one; NaN is, and zero is not minus zero."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return abs(_ordered(ours) - _ordered(theirs)) <= ulps
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k], ulps) for k in ours)
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(same(a, b, ulps) for a, b in zip(ours, theirs, strict=True))
    return type(ours) is type(theirs) and bool(ours == theirs)


def _ordered(value: float) -> int:
    """Fractions as numbers in their order, next to each other where the fractions are."""
    bits = int.from_bytes(struct.pack(">d", value), signed=True)
    return bits if bits >= 0 else -(2**63) - bits - 1
