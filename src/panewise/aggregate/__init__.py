"""Every aggregate, one concept a file. `AGGREGATES` maps SQL names to them."""

from panewise.aggregate.aged import AgedAvg, AgedCount, AgedSum
from panewise.aggregate.average import Avg
from panewise.aggregate.base import AGGREGATES, Aggregate, Invertible, Laws
from panewise.aggregate.columns import Columns, Fused, Items, Longs, Objects, Words, bytes_of, joined, placed, put, runs
from panewise.aggregate.count import Count, CountAll
from panewise.aggregate.count_distinct import CountDistinct
from panewise.aggregate.ends import First, Last
from panewise.aggregate.extremes import Max, Min
from panewise.aggregate.positional import Positional
from panewise.aggregate.quantile import Median, Quantile
from panewise.aggregate.recurring import Recurring, RecurringCounts
from panewise.aggregate.regression import RegrForecast, RegrIntercept, RegrR2, RegrSlope
from panewise.aggregate.sketches import ApproxDistinct, TopK
from panewise.aggregate.total import Sum
from panewise.aggregate.variance import StddevPop, StddevSamp, VarPop, VarSamp
from panewise.aggregate.view import View

__all__ = [
    "AGGREGATES",
    "AgedAvg",
    "AgedCount",
    "AgedSum",
    "Aggregate",
    "ApproxDistinct",
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
    "Positional",
    "Quantile",
    "Recurring",
    "RecurringCounts",
    "RegrForecast",
    "RegrIntercept",
    "RegrR2",
    "RegrSlope",
    "StddevPop",
    "StddevSamp",
    "Sum",
    "TopK",
    "VarPop",
    "VarSamp",
    "View",
    "Words",
    "bytes_of",
    "joined",
    "placed",
    "put",
    "runs",
]
