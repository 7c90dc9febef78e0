"""Answers on demand, from what is kept."""
