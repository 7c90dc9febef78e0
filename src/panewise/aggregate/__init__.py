"""Every aggregate, one concept a file. `AGGREGATES` maps SQL names to them."""

from panewise.aggregate.aged import AgedAvg, AgedCount, AgedSum
from panewise.aggregate.average import Avg
from panewise.aggregate.base import AGGREGATES, Aggregate, Invertible, Laws
from panewise.aggregate.count import Count, CountAll
from panewise.aggregate.count_distinct import CountDistinct
from panewise.aggregate.first_last import First, Last
from panewise.aggregate.min_max import Max, Min
from panewise.aggregate.positional import Positional
from panewise.aggregate.quantile import Median, Quantile
from panewise.aggregate.recurring import Recurring, RecurringCounts
from panewise.aggregate.regression import RegrForecast, RegrIntercept, RegrR2, RegrSlope
from panewise.aggregate.sketches import ApproxDistinct, TopK
from panewise.aggregate.states import (
    FusedOperation,
    Int64Array,
    Items,
    ObjectStates,
    StateArrays,
    StateWords,
    bytes_of,
    concat_states,
    put,
    runs,
    states_at,
)
from panewise.aggregate.sum import Sum
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
    "Count",
    "CountAll",
    "CountDistinct",
    "First",
    "FusedOperation",
    "Int64Array",
    "Invertible",
    "Items",
    "Last",
    "Laws",
    "LevelView",
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
    "StateArrays",
    "StateWords",
    "StddevPop",
    "StddevSamp",
    "Sum",
    "TopK",
    "VarPop",
    "VarSamp",
    "bytes_of",
    "concat_states",
    "put",
    "runs",
    "states_at",
]
