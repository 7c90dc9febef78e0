"""Stores for the states of consecutive panes, chosen by law and cost."""

from typing import Any

from panewise.stores.base import Store
from panewise.stores.base_intervals import BaseIntervals
from panewise.stores.recompute import Recompute
from panewise.stores.running_intervals import RunningIntervals

#: From the cheapest lookup to the most general.
STORES: tuple[type[Store[Any]], ...] = (RunningIntervals, BaseIntervals, Recompute)

__all__ = ["STORES", "BaseIntervals", "Recompute", "RunningIntervals", "Store"]
