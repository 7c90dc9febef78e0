"""Sums and differences of dates, times and intervals."""

from __future__ import annotations

from panewise.cql.data_types import DATE, DAYS, MONTHS, SPAN, TIMESTAMP
from panewise.cql.functions.catalogue import function, same_type
from panewise.cql.functions.kinds import (
    DATE_ONLY,
    DAY_SPAN,
    MOMENT,
    MONTH_SPAN,
    TIME_SPAN,
)

for _sign in "+-":
    _form = f"({{0}} {_sign} {{1}})"
    _moved = f"make_timestamp(epoch_us({{0}}) {_sign} {{1}})"
    function(_sign, takes=[MOMENT, TIME_SPAN], gives=same_type(), duckdb=_moved, form=_form)
    function(
        _sign,
        takes=[DATE_ONLY, DAY_SPAN],
        gives=DATE,
        duckdb=f"({{0}} {_sign} CAST({{1}} // 86400000000 AS INTEGER))",
        form=_form,
    )
    function(_sign, takes=[DATE_ONLY, TIME_SPAN], gives=TIMESTAMP, duckdb=_moved, form=_form)
    function(
        _sign, takes=[MOMENT, MONTH_SPAN], gives=same_type(), duckdb=f"({{0}} {_sign} to_months({{1}}))", form=_form
    )
    function(_sign, takes=[DATE_ONLY, MONTH_SPAN], gives=DATE, duckdb=f"({{0}} {_sign} to_months({{1}}))", form=_form)
    for _kind, _type in ((DAY_SPAN, DAYS), (TIME_SPAN, SPAN), (MONTH_SPAN, MONTHS)):
        function(_sign, takes=[_kind, _kind], gives=_type, duckdb=_form, form=_form)
for _kind in (DAY_SPAN, TIME_SPAN):
    function(
        "+", takes=[_kind, MOMENT], gives=same_type(1), duckdb="make_timestamp({0} + epoch_us({1}))", form="({0} + {1})"
    )
function(
    "+",
    takes=[DAY_SPAN, DATE_ONLY],
    gives=DATE,
    duckdb="({1} + CAST({0} // 86400000000 AS INTEGER))",
    form="({0} + {1})",
)
function("-", takes=[DATE_ONLY, DATE_ONLY], gives=DAYS, duckdb="(({0} - {1}) * 86400000000)", form="({0} - {1})")
function("-", takes=[MOMENT, MOMENT], gives=SPAN, duckdb="(epoch_us({0}) - epoch_us({1}))", form="({0} - {1})")
for _kind, _type in ((DAY_SPAN, SPAN), (TIME_SPAN, SPAN), (MONTH_SPAN, MONTHS)):
    function("negative", takes=[_kind], gives=_type, duckdb="(-{0})", form="(- {0})")
