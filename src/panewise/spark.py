"""`pw.spark`: bounded DataFrames (`batch`) and streaming ones (`stream`), for those who have PySpark."""

from panewise.core.errors import require_extra

with require_extra("spark", "panewise.spark"):
    from panewise.runtime.spark.batch import batch
    from panewise.runtime.spark.dataframes import declared
    from panewise.runtime.spark.metrics import Metrics
    from panewise.runtime.spark.pipeline import Pipeline
    from panewise.runtime.spark.session import local_session
    from panewise.runtime.spark.sources import source
    from panewise.runtime.spark.streaming import stream

__all__ = ["Metrics", "Pipeline", "batch", "declared", "local_session", "source", "stream"]
