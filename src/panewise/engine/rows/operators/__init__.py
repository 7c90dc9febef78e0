"""Relational operators over rows with lifetimes."""
