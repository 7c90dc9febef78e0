"""Every window kind, as frozen specs with vectorised scope functions."""

from panewise.window.base import (
    ALL_TIME,
    FOREVER,
    Contents,
    Edges,
    LogicalWindow,
    Pattern,
    Window,
    WindowRetention,
)
from panewise.window.cumulate import Cumulate
from panewise.window.landmark import Landmark
from panewise.window.multigranular import MultiGranular, RowHierarchy
from panewise.window.predicate import Predicate
from panewise.window.rows import Rows, historical_rows
from panewise.window.session import Flags, Session
from panewise.window.sliding import NOW, Sliding, historical, tumbling
from panewise.window.varying import Extent, Varying

__all__ = [
    "ALL_TIME",
    "FOREVER",
    "NOW",
    "Contents",
    "Cumulate",
    "Edges",
    "Extent",
    "Flags",
    "Landmark",
    "LogicalWindow",
    "MultiGranular",
    "Pattern",
    "Predicate",
    "RowHierarchy",
    "Rows",
    "Session",
    "Sliding",
    "Varying",
    "Window",
    "WindowRetention",
    "historical",
    "historical_rows",
    "tumbling",
]
