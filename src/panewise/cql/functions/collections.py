"""Arrays and maps."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from panewise.core.errors import BindProblem
from panewise.core.schema import type_name
from panewise.cql.coercion import common_type
from panewise.cql.data_types import BIGINT, BOOLEAN, INT, STRING, is_array
from panewise.cql.functions.casts import convert
from panewise.cql.functions.catalogue import (
    NODES,
    Translation,
    TypedSql,
    error_call,
    function,
    same_type,
    suggest_instead,
)
from panewise.cql.functions.kinds import ALIKE, ANY, ARRAY, CONSTANT, MAP, WHOLE, WHOLES, ArgumentKind

# ---- elements ------------------------------------------------------------------------------------------------------


def _inner(arguments: Sequence[TypedSql]) -> pa.DataType:
    return arguments[0].type.value_type


def _element(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    """An element by its number from zero; an element that does not exist is an error."""
    array, place = arguments
    bad = error_call(f"{array.text}[{place.text}] is beyond the array", "use GET, which gives NULL")
    return (
        f"CASE WHEN {array.sql} IS NULL OR {place.sql} IS NULL THEN NULL "
        f"WHEN {place.sql} < 0 OR {place.sql} >= len({array.sql}) THEN {bad} "
        f"ELSE {array.sql}[CAST({place.sql} AS BIGINT) + 1] END"
    )


def _element_at(otherwise: str) -> Translation:
    """An element by its number from one, or from the end; the number 0 is an error."""

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        array, place = (a.sql for a in arguments)
        return (
            f"CASE WHEN {array} IS NULL OR {place} IS NULL THEN NULL WHEN {place} = 0 THEN {_ZEROTH} "
            f"WHEN abs(CAST({place} AS BIGINT)) > len({array}) THEN {otherwise} ELSE {array}[{place}] END"
        )

    return translate


_ZEROTH = error_call("an element 0 is asked for", "count from 1, or from -1 at the end")
_BEYOND = error_call("an element beyond the array is asked for", "use TRY_ELEMENT_AT")
_PLACES = [("?", place) for place in ("1", "-1", "3", "99", "0")]
function(
    "ARRAY",
    takes=[ALIKE],
    rest=True,
    gives=lambda args: pa.list_(args[0].type),
    duckdb=lambda args, kind: f"[{', '.join(a.sql for a in args)}]",
)
function("[]", takes=[ARRAY, WHOLE], gives=_inner, duckdb=_element, form="{0}[{1}]", made_up=False, edges=_PLACES)
function(
    "GET",
    takes=[ARRAY, WHOLE],
    gives=_inner,
    duckdb="CASE WHEN {1} >= 0 THEN {0}[CAST({1} AS BIGINT) + 1] END",
    made_up=False,
    edges=_PLACES,
)
NODES[exp.Bracket] = lambda found: ("[]", [found.this, *found.expressions])
function("ELEMENT_AT", takes=[ARRAY, WHOLE], gives=_inner, duckdb=_element_at(_BEYOND), made_up=False, edges=_PLACES)
function("TRY_ELEMENT_AT", takes=[ARRAY, WHOLE], gives=_inner, duckdb=_element_at("NULL"), made_up=False, edges=_PLACES)

# ---- whole arrays --------------------------------------------------------------------------------------------------

function("SIZE", "CARDINALITY", takes=[ARRAY], gives=INT, duckdb="len({0})")
function("SIZE", "CARDINALITY", takes=[MAP], gives=INT, duckdb="cardinality({0})")
function("ARRAY_SIZE", takes=[ARRAY], gives=INT, duckdb="len({0})")
#: The first of equal ones, since 0.0 and -0.0 are equal.
function("ARRAY_MAX", takes=[ARRAY], gives=_inner, duckdb="{0}[list_position({0}, list_max({0}))]")
function("ARRAY_MIN", takes=[ARRAY], gives=_inner, duckdb="{0}[list_position({0}, list_min({0}))]")
function("SORT_ARRAY", takes=[ARRAY], gives=same_type(), duckdb="list_sort({0}, 'ASC', 'NULLS FIRST')")
function("ARRAY_SORT", takes=[ARRAY], gives=same_type(), duckdb="list_sort({0}, 'ASC', 'NULLS LAST')")
function("REVERSE", takes=[ARRAY], gives=same_type(), duckdb="list_reverse({0})")
function("ARRAY_COMPACT", takes=[ARRAY], gives=same_type(), duckdb="list_filter({0}, lambda item: item IS NOT NULL)")
_TEXTS = ArgumentKind(
    "an array of text", lambda given: given if given == pa.list_(STRING) else None, (pa.list_(STRING),)
)


def _join_items(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
    array, between, *missing = (a.sql for a in arguments)
    items = f"list_transform({array}, lambda item: coalesce(item, {missing[0]}))" if missing else array
    return f"coalesce(array_to_string({items}, {between}), CASE WHEN {array} IS NOT NULL THEN '' END)"


function(
    "ARRAY_JOIN",
    takes=[_TEXTS, CONSTANT],
    gives=STRING,
    duckdb=_join_items,
    edges=[("?", "','"), ("ARRAY('a', 'b')", "''")],
)
function(
    "ARRAY_JOIN", takes=[_TEXTS, CONSTANT, CONSTANT], gives=STRING, duckdb=_join_items, edges=[("?", "','", "'none'")]
)


def _with_item(template: str) -> Translation:
    """A function of an array and a value of its elements' type."""

    def translate(arguments: Sequence[TypedSql], kind: pa.DataType) -> str:
        array, item = arguments
        inner = array.type.value_type
        if common_type([inner, item.type]) != inner:
            raise BindProblem(
                f"{item.text} is {type_name(item.type)}, but {array.text} holds {type_name(inner)}", fix="cast one"
            )
        return template.format(array.sql, convert(item, inner).sql)

    return translate


_ITEMS = [("?", "CAST(2 AS INT)"), ("ARRAY('a', NULL)", "'a'"), ("ARRAY(1, NULL)", "3"), ("ARRAY(1.5D)", "1.5D")]
_ARRAYS_OF_INT = ArgumentKind("an array", lambda given: given if is_array(given) else None, (pa.list_(INT),))
function(
    "ARRAY_CONTAINS",
    takes=[_ARRAYS_OF_INT, ANY],
    gives=BOOLEAN,
    duckdb=_with_item(
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN TRUE "
        "WHEN len(list_filter({0}, lambda item: item IS NULL)) > 0 THEN NULL ELSE FALSE END"
    ),
    made_up=False,
    edges=_ITEMS,
)
function(
    "ARRAY_POSITION",
    takes=[_ARRAYS_OF_INT, ANY],
    gives=BIGINT,
    duckdb=_with_item("CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN coalesce(list_position({0}, {1}), 0) END"),
    made_up=False,
    edges=_ITEMS,
)
function(
    "ARRAY_REMOVE",
    takes=[_ARRAYS_OF_INT, ANY],
    gives=same_type(),
    duckdb=_with_item("CASE WHEN {1} IS NOT NULL THEN list_filter({0}, lambda item: item IS NULL OR item <> {1}) END"),
    made_up=False,
    edges=_ITEMS,
)
for _name, _added in {"ARRAY_APPEND": "{0} || [{1}]", "ARRAY_PREPEND": "[{1}] || {0}"}.items():
    function(
        _name,
        takes=[_ARRAYS_OF_INT, ANY],
        gives=same_type(),
        duckdb=_with_item(f"CASE WHEN {{0}} IS NOT NULL THEN {_added} END"),
        made_up=False,
        edges=_ITEMS,
    )
_BEFORE_FIRST = error_call("SLICE begins at 0", "count from 1, or from -1 at the end")
_NEGATIVE = error_call("SLICE has a negative length", "use another length")
function(
    "SLICE",
    takes=[ARRAY, WHOLE, WHOLE],
    gives=same_type(),
    duckdb=f"""CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{1}} = 0 THEN {_BEFORE_FIRST}
    WHEN {{2}} < 0 THEN {_NEGATIVE} WHEN {{1}} < 0 AND 0 - {{1}} > len({{0}}) THEN {{0}}[1:0]
    WHEN {{1}} < 0 THEN list_slice({{0}}, len({{0}}) + {{1}} + 1, len({{0}}) + {{1}} + {{2}})
    ELSE list_slice({{0}}, {{1}}, {{1}} + {{2}} - 1) END""",
    made_up=False,
    edges=[("?", start, length) for start in ("1", "2", "-2", "-9", "0") for length in ("2", "0", "-1")],
)
_STILL = error_call("SEQUENCE takes steps that do not lead to its end", "change the sign of the step")
function(
    "SEQUENCE",
    takes=[WHOLES, WHOLES, WHOLES],
    least=2,
    gives=lambda args: pa.list_(common_type([a.type for a in args]) or BIGINT),
    duckdb=lambda args, kind: _sequence([f"CAST({a.sql} AS BIGINT)" for a in args]),
    made_up=False,
    edges=[("1", "5"), ("5", "1"), ("1", "9", "3"), ("1", "5", "-1"), ("NULL", "3"), ("3", "3"), ("1", "1", "0")],
)


def _sequence(values: Sequence[str]) -> str:
    first, last = values[:2]
    step = values[2] if len(values) > 2 else f"CASE WHEN {first} <= {last} THEN 1 ELSE -1 END"
    sound = f"(({step}) > 0 AND {first} <= {last}) OR (({step}) < 0 AND {first} >= {last}) OR {first} = {last}"
    return (
        f"CASE WHEN {first} IS NULL OR {last} IS NULL OR ({step}) IS NULL THEN NULL "
        f"WHEN {first} = {last} THEN [{first}] "
        f"WHEN {sound} THEN generate_series({first}, {last}, {step}) ELSE {_STILL} END"
    )


# ---- maps ----------------------------------------------------------------------------------------------------------

function("MAP_KEYS", takes=[MAP], gives=lambda args: pa.list_(args[0].type.key_type), duckdb="map_keys({0})")
function("MAP_VALUES", takes=[MAP], gives=lambda args: pa.list_(args[0].type.item_type), duckdb="map_values({0})")
suggest_instead(
    "compute it before the rows come here: functions of functions are not on the list",
    "TRANSFORM",
    "FILTER",
    "EXISTS",
    "AGGREGATE",
)
