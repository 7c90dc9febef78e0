"""The page of functions shows the list as it is; `REGENERATE=1 pytest tests/docs/test_functions.py` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from panewise.cql.functions import FUNCTIONS, ScalarFunction

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
MARK = "<!-- the list: written by tests/docs/test_functions.py -->\n"


def shown(entry: ScalarFunction) -> str:
    """How an entry is called, with the kinds of its arguments."""
    kinds = [kind.name.split(" ", 1)[-1] if kind.name.startswith(("a ", "an ")) else kind.name for kind in entry.takes]
    kinds = [f"[{kind}]" if number >= entry.least else kind for number, kind in enumerate(kinds)]
    call = entry.call_text([*kinds, "..."] if entry.rest and not entry.form else kinds)
    call = call.removeprefix("(").removesuffix(")") if call.startswith("(") else call
    others = [f"`{name}`" for name in entry.names[1:] if not name.startswith("EXTRACT ")]
    return f"- `{call}`{', also ' + ', '.join(others) if others else ''}"


def listed() -> str:
    entries = dict.fromkeys(entry for name in sorted(FUNCTIONS) for entry in FUNCTIONS[name])
    return "\n".join(dict.fromkeys(map(shown, entries))) + "\n"


def test_the_page_tells_of_every_function_that_is_stricter_than_in_spark() -> None:
    text = PAGE.read_text(encoding="utf-8").partition(MARK)[0].partition("that Spark lets pass:")[2]
    stricter = {entry.names[0] for entries in FUNCTIONS.values() for entry in entries if entry.stricter}
    assert stricter
    assert [name for name in sorted(stricter) if f"`{name}`" not in text] == []


def test_the_page_shows_every_function() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, written = text.partition(MARK)
    if os.environ.get("REGENERATE"):
        PAGE.write_text(head + MARK + "\n" + listed(), encoding="utf-8")
    else:
        assert written.strip() == listed().strip()
