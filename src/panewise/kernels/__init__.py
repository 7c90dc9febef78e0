"""The hot loops: plain functions over arrays, compiled by Numba, each with a NumPy twin that says the same.

Nothing here knows what a window or an aggregate is. Callers say `kernels.count(...)`; `PANEWISE_KERNELS=numpy`
answers with the twins, which the tests compare.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

#: Every kernel, in the order of the data: times to panes, keys to codes, rows to states, to each other, to frames,
#: states to answers and to indexes.
KERNELS = (
    "pane_numbers",
    "dense_slots",
    "table_codes",
    "hash_codes",
    "count",
    "add_integers",
    "add_floats",
    "add_pairs",
    "take_greatest",
    "take_greatest_floats",
    "take_latest",
    "line_points",
    "line_combine",
    "line_slopes",
    "line_values",
    "line_fits",
    "line_series",
    "line_series_end",
    "power_whole",
    "power_whole_near",
    "power_real",
    "power_real_near",
    "power_add",
    "power_moments",
    "bucket_order",
    "overlap_join",
    "frame_flags",
    "frame_reports",
    "frame_labels",
    "frame_delta",
    "frame_trend",
    "frame_reach",
    "frame_between",
    "frame_extents",
    "frame_numbers",
    "interval_outside",
    "interval_run",
    "interval_add",
    "interval_choose",
    "interval_differences",
    "interval_sums",
    "interval_sums_of_all",
    "interval_greatest",
    "interval_greatest_of_all",
    "quantile_merge",
    "quantile_sizes",
    "quantile_select",
    "level_count",
    "level_add",
    "level_lookup",
    "running_append",
    "running_confirm",
    "peak_update",
    "peak_build",
    "peak_lookup",
)

#: Where kernels live whose one text serves both twins, by the first word of their names; the others are in `plain`.
KERNEL_MODULES = {
    "frame": "frames",
    "interval": "intervals",
    "level": "levels",
    "running": "running",
    "peak": "max_index",
    "quantile": "quantiles",
    "line": "regression_float",
    "power": "regression_int",
}


def __getattr__(name: str) -> Any:
    """Kernels are found when first used, so that importing Panewise does not wait for the compiler."""
    if name not in KERNELS:
        raise AttributeError(name)
    twin = "compiled"
    if os.environ.get("PANEWISE_KERNELS") == "numpy":
        twin = KERNEL_MODULES.get(name.partition("_")[0], "plain")
    kernel = getattr(import_module(f"panewise.kernels.{twin}"), name)
    globals()[name] = kernel
    return kernel
