"""Answers on demand, from kept panes and rows."""
