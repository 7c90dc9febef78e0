"""Stores for the states of consecutive panes, chosen by law and cost."""

from typing import Any

from panewise.stores.base import LookupKind, Store
from panewise.stores.base_intervals import BaseIntervals
from panewise.stores.landmark_intervals import LandmarkIntervals
from panewise.stores.recompute import Recompute
from panewise.stores.running_intervals import RunningIntervals
from panewise.stores.two_stacks import TwoStacks

#: From the cheapest lookup to the most general.
STORES: tuple[type[Store[Any]], ...] = (RunningIntervals, TwoStacks, LandmarkIntervals, BaseIntervals, Recompute)

__all__ = [
    "STORES",
    "BaseIntervals",
    "LandmarkIntervals",
    "LookupKind",
    "Recompute",
    "RunningIntervals",
    "Store",
    "TwoStacks",
]
