"""Aggregates in arrays: states of many groups at once."""

from panewise.aggregate.columns.base import Columns, Fused, Items, Longs, Words, bytes_of, joined, placed, put, runs
from panewise.aggregate.columns.objects import Objects

__all__ = ["Columns", "Fused", "Items", "Longs", "Objects", "Words", "bytes_of", "joined", "placed", "put", "runs"]
