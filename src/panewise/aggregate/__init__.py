"""Every aggregate, one concept a file. `AGGREGATES` maps SQL names to them."""

from panewise.aggregate.average import Avg
from panewise.aggregate.base import AGGREGATES, Aggregate, Invertible, Laws
from panewise.aggregate.columns import Columns, Fused, Items, Longs, Objects, Words, bytes_of, joined, placed, put, runs
from panewise.aggregate.count import Count, CountAll
from panewise.aggregate.count_distinct import CountDistinct
from panewise.aggregate.ends import First, Last
from panewise.aggregate.extremes import Max, Min
from panewise.aggregate.quantile import Median, Quantile
from panewise.aggregate.regression import RegrIntercept, RegrSlope
from panewise.aggregate.total import Sum
from panewise.aggregate.variance import StddevPop, StddevSamp, VarPop, VarSamp

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "Avg",
    "Columns",
    "Count",
    "CountAll",
    "CountDistinct",
    "First",
    "Fused",
    "Invertible",
    "Items",
    "Last",
    "Laws",
    "Longs",
    "Max",
    "Median",
    "Min",
    "Objects",
    "Quantile",
    "RegrIntercept",
    "RegrSlope",
    "StddevPop",
    "StddevSamp",
    "Sum",
    "VarPop",
    "VarSamp",
    "Words",
    "bytes_of",
    "joined",
    "placed",
    "put",
    "runs",
]
