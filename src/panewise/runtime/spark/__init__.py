"""Panewise on Spark: bounded DataFrames (`batch`) and streaming ones (`stream`)."""

from panewise.runtime.spark.batch import batch

__all__ = ["batch"]
