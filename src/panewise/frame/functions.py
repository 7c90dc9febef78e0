"""Framing functions that users write: when a frame opens, whether an item belongs to it, and whether it counts."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from panewise.core.errors import BindProblem, did_you_mean


class FramingFunction(Protocol):
    """A framing function. It must be pure: after a restart it is called again with the items of an open frame."""

    def open(self, time: int, value: Any) -> Any:
        """The state of a frame that begins with an item, or None where none does."""

    def update(self, state: Any, time: int, value: Any) -> Any:
        """The state with one item more, or None where the frame ended before it."""


_REGISTERED: dict[str, Callable[[], FramingFunction]] = {}


def register_framing(name: str, function: Callable[[], FramingFunction]) -> None:
    """Make a framing function known to `[FRAME USING 'name' OF value]` in this process."""
    _REGISTERED[name] = function


def framing_function(name: str) -> FramingFunction:
    """The function of a name that was registered, or that can be imported as `package.module:Class`."""
    if name in _REGISTERED:
        return _create_function(name, _REGISTERED[name])
    module, _, attribute = name.partition(":")
    if not attribute:
        fix = did_you_mean(name, [*_REGISTERED, "package.module:Class"], "register it, or write {}")
        raise BindProblem(f"there is no framing function {name!r}", fix=fix)
    try:
        maker = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as problem:
        raise BindProblem(
            f"the framing function {name!r} cannot be imported: {problem}", fix="check its module"
        ) from None
    return _create_function(name, maker)


def _create_function(name: str, maker: Callable[[], FramingFunction]) -> FramingFunction:
    """The function, if it has the methods that it must have; otherwise it is refused."""
    made: FramingFunction | None = maker() if isinstance(maker, type) else None
    if not all(callable(getattr(made, method, None)) for method in ("open", "update")):
        raise BindProblem(f"the framing function {name!r} has no open and update", fix="name a class that has both")
    assert made is not None
    return made
