"""The public API pinned: every public name with its signature, in `public_api.txt`.

`REGENERATE=1 pytest tests/packaging/test_public_api.py` writes it anew, so that a change of what users may rely on is
seen in the diff.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tests.packaging.public import MODULES

GOLDEN = Path(__file__).parent / "public_api.txt"


def api() -> str:
    """All public modules, a paragraph each."""
    return "\n".join("".join(f"{line}\n" for line in module_lines(name)) for name in MODULES)


def module_lines(name: str) -> Iterator[str]:
    """The names of a module that are public."""
    module = import_module(name)
    yield f"module {name}"
    for public in sorted(module.__all__):
        yield from (f"  {line}" for line in value_lines(public, getattr(module, public)))


def value_lines(name: str, value: object) -> Iterator[str]:
    """One public name: a function with its signature, a class with its members, anything else with its type."""
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})" if bases else f"class {name}"
        yield from (f"  {line}" for line in member_lines(value))
    elif inspect.isroutine(value):
        yield f"def {name}{signature(value)}"
    elif isinstance(value, ModuleType):
        yield f"module {name}"
    else:
        yield f"{name}: {type(value).__name__}"


def member_lines(kind: type) -> Iterator[str]:
    """How a class is made, and what it offers; what a public base offers is said there."""
    if issubclass(kind, Enum):
        yield from (f"{member.name} = {member.value!r}" for member in kind)
    elif "__init__" in vars(kind):
        yield f"def __init__{signature(kind.__init__)}"
    for name in sorted({name for each in unlisted(kind) for name in vars(each) if not name.startswith("_")}):
        member = inspect.getattr_static(kind, name)
        if isinstance(member, property | cached_property):
            getter = member.fget if isinstance(member, property) else member.func
            yield f"property {name}{signature(getter).removeprefix('(self)')}"
        elif isinstance(member, classmethod | staticmethod):
            yield f"{type(member).__name__} {name}{signature(member.__func__)}"
        elif inspect.isfunction(member):
            yield f"def {name}{signature(member)}"


def unlisted(kind: type) -> list[type]:
    """A class and those above it that are ours, but not public themselves."""
    public = {id(getattr(module, name)) for module in map(import_module, MODULES) for name in module.__all__}
    ours = [each for each in kind.__mro__ if each.__module__.partition(".")[0] == "panewise"]
    return [each for each in ours if each is kind or id(each) not in public]


class Written(str):
    """An annotation that is shown as it is written, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(function: object) -> str:
    """As written; a default without a readable form is shown as dots."""
    found = inspect.signature(function)  # type: ignore[arg-type]
    parameters = [each.replace(annotation=written(each.annotation)) for each in found.parameters.values()]
    shown = found.replace(parameters=parameters, return_annotation=written(found.return_annotation))
    return re.sub(r"<(?:[^<>]|<[^<>]*>)* at 0x[0-9a-f]+>", "...", str(shown))


def written(annotation: object) -> object:
    return Written(annotation) if isinstance(annotation, str) else annotation


def test_the_public_api_is_what_it_was() -> None:
    found = api()
    if os.environ.get("REGENERATE"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")
