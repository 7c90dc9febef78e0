"""Figures of "Subsuming windows"."""
