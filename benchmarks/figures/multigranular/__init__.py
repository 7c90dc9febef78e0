"""Figures of "Multi-granular windows"."""
