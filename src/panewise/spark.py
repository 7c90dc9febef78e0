"""`pw.spark`: bounded DataFrames (`batch`) and streaming ones (`stream`), for those who have PySpark."""

from panewise.core.errors import require_extra

with require_extra("spark", "panewise.spark"):
    from panewise.runtime.spark import Metrics, Pipeline, batch, declared, local_session, source, stream

__all__ = ["Metrics", "Pipeline", "batch", "declared", "local_session", "source", "stream"]
