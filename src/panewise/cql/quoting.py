"""Names and strings in quotes, so that any characters in them are kept."""

from __future__ import annotations


def string_text(text: str) -> str:
    """A string between single quotes.

    >>> print(string_text("it's"))
    'it''s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def name_text(name: str | None) -> str:
    """A name between backquotes."""
    return f"`{(name or '').replace('`', '``')}`"
