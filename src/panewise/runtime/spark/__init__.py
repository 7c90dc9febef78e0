"""Panewise on Spark: bounded DataFrames (`batch`) and streaming ones (`stream`)."""

from panewise.runtime.spark.batch import batch
from panewise.runtime.spark.metrics import Metrics
from panewise.runtime.spark.pipeline import Pipeline, stream

__all__ = ["Metrics", "Pipeline", "batch", "stream"]
