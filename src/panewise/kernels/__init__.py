"""The hot loops: functions over arrays, compiled by Numba, each with a twin that is not compiled and defines it.

Nothing here depends on windows or aggregates. Callers write `kernels.count(...)`; with `PANEWISE_KERNELS=numpy` they
get the twins, with which tests compare the kernels. `@kernel` and `@loops_of` declare a kernel where it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Int64Array: TypeAlias = npt.NDArray[np.int64]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Float64Array: TypeAlias = npt.NDArray[np.float64]
Int8Array: TypeAlias = npt.NDArray[np.int8]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]
Flags: TypeAlias = npt.NDArray[np.bool_]

#: No time at all: earlier than any.
NO_TIME = np.iinfo(np.int64).min

F = TypeVar("F", bound=Callable[..., Any])


class Kernel(NamedTuple):
    """The loops that are compiled, and the twin that defines what they must do."""

    loops: Callable[..., Any]
    twin: Callable[..., Any]


#: Every kernel that has been declared, by its name.
KERNELS: dict[str, Kernel] = {}
#: Functions that kernels may call and that have not been given to the compiler yet.
HELPERS: list[Callable[..., Any]] = []


def helper(function: F) -> F:
    """Declare a function that kernels call; other callers get it as it is written."""
    HELPERS.append(function)
    return function


def kernel(text: F) -> F:
    """Declare a kernel with one text, which is compiled and is also its own twin."""
    # Compiled numbers overflow without a warning.
    KERNELS[text.__name__] = Kernel(text, np.errstate(over="ignore", invalid="ignore")(text))
    return helper(text)


def loops_of(twin: F) -> Callable[[F], F]:
    """Declare a kernel that a function of NumPy defines and names; the decorated loops do the same, compiled."""

    def declare(loops: F) -> F:
        KERNELS[twin.__name__] = Kernel(loops, twin)
        return helper(loops)

    return declare


def __getattr__(name: str) -> Any:
    """Kernels are found when first used, so that importing Panewise does not wait for the compiler."""
    if name.startswith("_"):
        raise AttributeError(name)
    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    if name not in KERNELS:
        raise AttributeError(name)
    if os.environ.get("PANEWISE_KERNELS") == "numpy":
        found = KERNELS[name].twin
    else:
        found = import_module("panewise.kernels.compiling").compile_kernel(KERNELS[name].loops)
    return globals().setdefault(name, found)
