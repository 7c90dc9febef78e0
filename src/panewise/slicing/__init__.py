"""Which windows are served together: frames, the groups they form, and the manager that keeps them."""

from panewise.slicing.frames import WindowShape
from panewise.slicing.groups import WindowGroup, GroupNode, WindowRole
from panewise.slicing.manager import GroupingPolicy, WindowManager

__all__ = ["WindowShape", "WindowGroup", "GroupNode", "GroupingPolicy", "WindowRole", "WindowManager"]
