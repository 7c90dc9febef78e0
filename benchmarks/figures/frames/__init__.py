"""Figures of "Data-driven windows"."""
