"""Every aggregate, one file each with its states in arrays. `AGGREGATES` maps SQL names to them."""

from panewise.aggregate.aged import AgedAvg, AgedCount, AgedSum
from panewise.aggregate.approx_distinct import ApproxDistinct
from panewise.aggregate.base import AGGREGATES, Aggregate, Fold, Invertible, Laws, ObjectStates
from panewise.aggregate.count import Count, CountAll, CountStates
from panewise.aggregate.count_distinct import CountDistinct
from panewise.aggregate.first_last import First, Last
from panewise.aggregate.min_max import Max, Min
from panewise.aggregate.moving import MovingRanges, moving_states, running_states
from panewise.aggregate.positional import LevelView, Positional, PositionalStates
from panewise.aggregate.quantile import Median, Quantile
from panewise.aggregate.recurring import Recurring, RecurringCounts
from panewise.aggregate.regression import RegrForecast, RegrIntercept, RegrR2, RegrSlope
from panewise.aggregate.states import (
    FusedOperation,
    Int64Array,
    Items,
    RankedValues,
    StateArrays,
    StateWords,
    TotalStates,
    bytes_of,
    concat_states,
    nullable_array,
    put,
    runs,
    states_at,
)
from panewise.aggregate.stretches import RowStretches, stretch_states
from panewise.aggregate.sum import Avg, Sum
from panewise.aggregate.top_k import TopK
from panewise.aggregate.variance import StddevPop, StddevSamp, VarPop, VarSamp

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
    "CountStates",
    "First",
    "Fold",
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
    "MovingRanges",
    "ObjectStates",
    "Positional",
    "PositionalStates",
    "Quantile",
    "RankedValues",
    "Recurring",
    "RecurringCounts",
    "RegrForecast",
    "RegrIntercept",
    "RegrR2",
    "RegrSlope",
    "RowStretches",
    "StateArrays",
    "StateWords",
    "StddevPop",
    "StddevSamp",
    "Sum",
    "TopK",
    "TotalStates",
    "VarPop",
    "VarSamp",
    "bytes_of",
    "concat_states",
    "moving_states",
    "nullable_array",
    "put",
    "running_states",
    "runs",
    "states_at",
    "stretch_states",
]
