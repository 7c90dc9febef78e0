"""Settings shared by every test: one Hypothesis profile, the same cases each time in CI."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

#: Shrinking a failure of a whole engine takes minutes; without it the first one found is shown at once.
_PHASES = (Phase.explicit, Phase.generate) if os.environ.get("NO_SHRINK") else tuple(Phase)

settings.register_profile(
    "panewise",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    phases=_PHASES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("panewise")
