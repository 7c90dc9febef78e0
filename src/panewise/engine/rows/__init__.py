"""Joins, distincts, unions, differences and the operators above them: relations whose rows have lifetimes."""

from panewise.engine.rows.row_engine import RowEngine, RowInputKey

__all__ = ["RowEngine", "RowInputKey"]
