"""Which windows are served together: frames, the groups they form, and the manager that keeps them."""

from panewise.plan.rules.group_windows.groups import GroupNode, WindowGroup, WindowRole
from panewise.plan.rules.group_windows.manager import GroupingPolicy, WindowManager
from panewise.plan.rules.group_windows.shapes import WindowShape
from panewise.plan.rules.rule import Rule

RULE = Rule("group_windows", "windows of different lengths and slides share one chain of panes")

__all__ = ["RULE", "GroupNode", "GroupingPolicy", "WindowGroup", "WindowManager", "WindowRole", "WindowShape"]
