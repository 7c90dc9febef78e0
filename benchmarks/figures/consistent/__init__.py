"""Figures of "Consistent results", and the queries over traces that they replay."""
