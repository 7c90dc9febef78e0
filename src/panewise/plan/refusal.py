"""Why the engine does not answer a query; `pw.run` then answers it by its meaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A plan that does not exist, and the reason as the end of a sentence."""

    reason: str
