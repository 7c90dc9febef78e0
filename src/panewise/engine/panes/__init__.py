"""Queries that are answered from panes."""
