"""Which windows are served together: frames, the groups they form, and the manager that keeps them."""

from panewise.plan.rules.group_windows.groups import GroupNode, WindowGroup, WindowRole
from panewise.plan.rules.group_windows.manager import GroupingPolicy, WindowManager
from panewise.plan.rules.group_windows.shapes import WindowShape

__all__ = ["GroupNode", "GroupingPolicy", "WindowGroup", "WindowManager", "WindowRole", "WindowShape"]
