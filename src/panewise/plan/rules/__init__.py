"""What the planner decides, a file a rule."""
