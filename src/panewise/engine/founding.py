"""Which family answers a query from panes or rows: what its window is decided by."""

from __future__ import annotations

from panewise.algebra import Host
from panewise.engine.family import Family
from panewise.engine.rows_family import CountedFamily
from panewise.engine.session_family import SessionFamily
from panewise.engine.time_family import TimeFamily
from panewise.plan import PanePlan
from panewise.slicing import GroupingPolicy
from panewise.time import Boundary
from panewise.window import Rows, Session


def create_family(plan: PanePlan, boundary: Boundary, host: Host, policy: GroupingPolicy) -> Family:
    """A new family for queries like this one."""
    match plan.window:
        case Session():
            return SessionFamily(plan, boundary, host)
        case Rows():
            return CountedFamily(plan, boundary, host)
    return TimeFamily(plan, boundary, host, policy)
