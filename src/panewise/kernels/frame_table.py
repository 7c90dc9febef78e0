"""What is known of frames, as the kernels and whoever calls them agree on it; to read it needs no compiler."""

from __future__ import annotations

import numpy as np

#: No time at all.
NO_TIME = np.iinfo(np.int64).min

#: What is known of a frame: a row of a table with these columns.
GROUP, FIRST, LAST, COUNT, MISSING, BEFORE, AFTER, SOME, WHOLE, NUMBER, REPORTED_AT, REPORTED_ROWS = range(12)
FIELDS = 12

#: What a row says of whole frames: it completes its own, the one before it in its group, or undoes that one.
COMPLETES, COMPLETES_LAST, UNDOES_LAST = 1, 2, 3

#: Aggregates that frames follow without help.
SUM, COUNT_ROWS, MINIMUM, MAXIMUM, MEAN = range(5)
