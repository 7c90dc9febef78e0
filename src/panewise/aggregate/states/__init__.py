"""Aggregates in arrays: states of many groups at once."""

from panewise.aggregate.states.base import (
    FusedOperation,
    Int64Array,
    Items,
    StateArrays,
    StateWords,
    bytes_of,
    concat_states,
    put,
    runs,
    states_at,
)
from panewise.aggregate.states.objects import ObjectStates

__all__ = [
    "FusedOperation",
    "Int64Array",
    "Items",
    "ObjectStates",
    "StateArrays",
    "StateWords",
    "bytes_of",
    "concat_states",
    "put",
    "runs",
    "states_at",
]
