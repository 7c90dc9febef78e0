"""The expressions of queries over a stream, as Spark SQL over its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from panewise.algebra import Project, Select
from panewise.core.scalar import Scalar
from panewise.core.schema import StreamSchema
from panewise.core.time import MAX_TICK, MIN_TICK, Domain
from panewise.cql import inline_columns
from panewise.engine.panes.grouping import expiry_column
from panewise.plan import PanePlan, RowStep
from panewise.plan.rules.share_panes import family_kind
from panewise.runtime.spark.types import quote_name, spark_type

#: Times outside these years are rejected and counted.
EARLIEST, LATEST = -5_364_662_400_000_000, 10_413_792_000_000_000  # 1800-01-01, 2300-01-01


def source_columns(plan: PanePlan) -> dict[str, str]:
    """The columns of a source under the names they have in Spark."""
    return {
        column.name: quote_name(column.name.removeprefix(f"{plan.source.alias}.")) for column in plan.source.columns
    }


def apply_projections(steps: Sequence[RowStep], columns: dict[str, str]) -> dict[str, str]:
    """Columns after some steps, as expressions over the source."""
    for step in steps:
        if isinstance(step, Project):
            columns = {name: _expression_sql(scalar, columns) for name, scalar in step.items}
    return columns


def _expression_sql(scalar: Scalar, columns: Mapping[str, str]) -> str:
    sql = inline_columns(scalar.sql, columns)
    # The types of results were fixed when the query was bound; Spark may infer others for the same expression.
    return sql if scalar.column is not None else f"CAST({sql} AS {spark_type(scalar.type)})"


def filter_sql(plan: PanePlan, sliced: bool) -> str | None:
    """The condition that rows must meet: all filters below the group, or only those below the window for unsliced
    rows. A filter is evaluated for rows that pass those before it only: it may fail on the others."""
    columns, found = source_columns(plan), []
    for step in (*plan.before, *plan.between) if sliced else plan.before:
        match step:
            case Select(predicate=predicate):
                found.append(f"COALESCE({inline_columns(predicate.sql, columns)}, FALSE)")
            case Project():
                columns = apply_projections([step], columns)
    return reduce(lambda before, last: f"IF({before}, {last}, FALSE)", found) if found else None


def columns_used(plans: Sequence[PanePlan]) -> list[str]:
    """The columns of the source that queries read, where rows are sent unsliced."""
    plan = plans[0]
    prefix = f"{plan.source.alias}."
    known = [column.name for column in plan.source.columns]
    texts = " ".join(map(family_signature, plans))
    wanted = [name.removeprefix(prefix) for name in known if quote_name(name.removeprefix(prefix)) in texts]
    time = plan.source.time.removeprefix(prefix)
    return list(dict.fromkeys([time, *wanted]))


def columns_needed(read: Iterable[Iterable[str]], schema: StreamSchema) -> tuple[str, ...]:
    wanted = {schema.time, *(name for names in read for name in names)}
    return tuple(name for name in schema.schema.names if name in wanted)


def family_signature(plan: PanePlan) -> str:
    """A text that distinguishes a family from others and is the same in every run."""
    before = apply_projections(plan.before, source_columns(plan))
    grouped = apply_projections(plan.between, before)
    asked = [(c.aggregate, [grouped[a] for a in c.arguments]) for c in plan.group.calls]
    calls = [f"{type(kind).__name__}({', '.join([*given, *map(str, kind.literals)])})" for kind, given in asked]
    keys = [grouped[key] for key in plan.group.keys]
    parts = [before[name] for name in plan.window.partition_by]
    filters = [filter_sql(plan, sliced) for sliced in (False, True)]
    properties = (
        plan.source.stream,
        filters,
        keys,
        calls,
        family_kind(plan),
        parts,
        plan.window.time_span,
        expiry_column(plan),
        plan.repeats_on_change,
    )
    return " | ".join(map(str, properties))


def time_sql(schema: StreamSchema) -> str:
    kind, name = schema.schema.field(schema.time).type, quote_name(schema.time)
    if schema.domain is Domain.INTEGER:
        return f"CAST({name} AS BIGINT)"
    if kind.tz:
        return f"UNIX_MICROS({name})"
    return f"TIMESTAMPDIFF(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {name})"


def usable_time_sql(time: str, domain: Domain) -> str:
    low, high = (EARLIEST, LATEST) if domain is Domain.TIMESTAMP else (MIN_TICK, MAX_TICK)
    return f"COALESCE({time} > {low} AND {time} < {high}, FALSE)"
