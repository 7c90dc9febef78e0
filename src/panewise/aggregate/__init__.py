"""Every aggregate, one concept a file. `AGGREGATES` maps SQL names to them."""

from panewise.aggregate.aged import AgedAvg, AgedCount, AgedSum
from panewise.aggregate.average import Avg
from panewise.aggregate.base import AGGREGATES, Aggregate, Invertible, Laws
from panewise.aggregate.columns import StateArrays, FusedOperation, Items, Int64Array, ObjectStates, StateWords, bytes_of, concat_states, states_at, put, runs
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
from panewise.aggregate.view import LevelView

__all__ = [
    "AGGREGATES",
    "AgedAvg",
    "AgedCount",
    "AgedSum",
    "Aggregate",
    "ApproxDistinct",
    "Avg",
    "StateArrays",
    "Count",
    "CountAll",
    "CountDistinct",
    "First",
    "FusedOperation",
    "Invertible",
    "Items",
    "Last",
    "Laws",
    "Int64Array",
    "Max",
    "Median",
    "Min",
    "ObjectStates",
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
    "LevelView",
    "StateWords",
    "bytes_of",
    "concat_states",
    "states_at",
    "put",
    "runs",
]
