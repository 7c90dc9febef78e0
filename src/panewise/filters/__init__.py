"""Substream filters: which groups have an aggregate beyond a threshold, without a pass over all groups."""

from __future__ import annotations

from panewise.filters.base import Filter
from panewise.filters.ci_count import CICount
from panewise.filters.ci_sum import CISum
from panewise.filters.exact import Exact
from panewise.filters.extremes import MaxIndex, MinIndex

__all__ = ["CICount", "CISum", "Exact", "Filter", "MaxIndex", "MinIndex"]
