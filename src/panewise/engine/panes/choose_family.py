"""Chooses the kind of family for a query, by its window: time, count or sessions."""

from __future__ import annotations

from panewise.algebra import Host
from panewise.core.time import Boundary
from panewise.engine.panes.family import Family
from panewise.engine.panes.landmark_family import LandmarkFamily
from panewise.engine.panes.row_family import RowFamily
from panewise.engine.panes.session_family import SessionFamily
from panewise.engine.panes.time_family import TimeFamily
from panewise.plan import PanePlan
from panewise.plan.rules.group_windows import GroupingPolicy
from panewise.window import WindowRetention


def create_family(plan: PanePlan, boundary: Boundary, host: Host, policy: GroupingPolicy) -> Family:
    """A new family for queries like this one."""
    if plan.keeps_rows:
        return RowFamily(plan, boundary, host)
    if plan.keeps_totals:
        return LandmarkFamily(plan, boundary, host)
    match plan.window.retention:
        case WindowRetention.FOLLOWS_SESSIONS:
            return SessionFamily(plan, boundary, host)
        case WindowRetention.SLIDES | WindowRetention.ACCUMULATES | WindowRetention.LOOKS_BACK:
            return TimeFamily(plan, boundary, host, policy)
        case WindowRetention.COUNTS_ROWS | WindowRetention.REFERENCE_ONLY:
            raise plan.window.unsupported_retention()
