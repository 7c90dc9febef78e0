"""Structures that keep the states of consecutive panes, so that windows over them are answered."""
