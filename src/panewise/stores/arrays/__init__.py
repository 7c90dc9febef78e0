"""Stores over arrays: the states of many positions and groups at once, and the answers of many windows."""

from panewise.stores.arrays.base import ArrayStore, PositionStore
from panewise.stores.arrays.base_intervals import BaseArrays
from panewise.stores.arrays.landmarks import LandmarkArrays
from panewise.stores.arrays.quantiles import QuantileArrays
from panewise.stores.arrays.running import RunningArrays

#: From the cheapest lookup to the most general.
ARRAY_STORES: tuple[type[ArrayStore], ...] = (RunningArrays, LandmarkArrays, BaseArrays)

__all__ = [
    "ARRAY_STORES",
    "ArrayStore",
    "BaseArrays",
    "LandmarkArrays",
    "PositionStore",
    "QuantileArrays",
    "RunningArrays",
]
