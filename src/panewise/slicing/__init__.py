"""Which windows are served together: frames, the groups they form, and the manager that keeps them."""

from panewise.slicing.frames import Frame
from panewise.slicing.groups import Group, Node, Role
from panewise.slicing.manager import Policy, WindowManager

__all__ = ["Frame", "Group", "Node", "Policy", "Role", "WindowManager"]
