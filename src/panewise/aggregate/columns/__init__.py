"""Aggregates in arrays: states of many groups at once."""

from panewise.aggregate.columns.base import StateArrays, FusedOperation, Items, Int64Array, StateWords, bytes_of, concat_states, states_at, put, runs
from panewise.aggregate.columns.objects import ObjectStates

__all__ = ["StateArrays", "FusedOperation", "Items", "Int64Array", "ObjectStates", "StateWords", "bytes_of", "concat_states", "states_at", "put", "runs"]
