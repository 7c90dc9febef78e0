"""States of aggregates as text and back, without pickle: the few Python types that states are made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from panewise.aggregate.sum import Pair

_MAKERS: dict[str, Callable[[Any], Any]] = {
    "pair": lambda parts: Pair(*parts),
    "tuple": lambda parts: tuple(map(_from_plain, parts)),
    "fraction": lambda parts: Fraction(*parts),
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "counter": lambda pairs: Counter({_from_plain(value): count for value, count in pairs}),
}


def to_text(state: Any) -> str:
    return json.dumps(_to_plain(state), separators=(",", ":"))


def from_text(text: str) -> Any:
    return _from_plain(json.loads(text))


def _to_plain(state: Any) -> Any:
    """A state as JSON values; a type that JSON does not have becomes an object with one key, its kind."""
    match state:
        case None | bool() | int() | float() | str():
            return state
        case Pair():
            return {"pair": list(state)}
        case tuple():
            return {"tuple": [_to_plain(part) for part in state]}
        case Fraction():
            return {"fraction": [state.numerator, state.denominator]}
        case Decimal():
            return {"decimal": str(state)}
        case bytes():
            return {"bytes": state.hex()}
        case Counter():
            return {"counter": [[_to_plain(value), count] for value, count in state.items()]}
    raise TypeError(f"no text for a state of type {type(state).__name__}")


def _from_plain(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    return _MAKERS[kind](content)
