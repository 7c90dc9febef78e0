"""Joins, distincts, unions, differences and what stands above them: relations whose rows know when they are there."""

from panewise.engine.rows.row_engine import RowEngine, RowInputKey

__all__ = ["RowEngine", "RowInputKey"]
