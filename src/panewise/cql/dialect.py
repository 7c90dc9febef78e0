"""CQL as a sqlglot dialect: Spark SQL with the quotes of standard SQL and our own list of functions.

Windows, ISTREAM and the statements around a SELECT are parsed by our own parser before sqlglot gets the text, so that
no private hook of sqlglot's parser is needed: only this class and the positions it keeps on identifiers.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import ClassVar, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

T = TypeVar("T")

#: Quoted words, and numbers in the place of which another one may stand: short ones without a sign, an exponent or a
#: suffix.
NUMBERS = re.compile(r"""('[^']*'|"[^"]*"|`[^`]*`)|(?<![\w.#])([0-9]{1,9}(?:\.[0-9]{1,9})?)(?![\w.])""")
#: After escapes and in comments, quotes mean something else.
_UNUSUAL = re.compile(r"--|/\*|\\|''")
#: What stands for the first number of a text, and the numbers after it for the others.
_STAND_IN = 10**8
#: Trees are filled with the numbers of one text after the other.
_FILLING = threading.RLock()

#: Functions that are not called only as NAME(argument, ...).
_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")


class CQL(Spark):
    """Spark SQL that keeps the names of functions as they are written: our list of functions defines them.

    Single quotes are text, in which a quote is written twice and a backslash means what it means in Spark; double
    quotes, like backquotes, are names.
    """

    class Tokenizer(Spark.Tokenizer):
        QUOTES: ClassVar = ["'"]
        IDENTIFIERS: ClassVar = ["`", '"']
        STRING_ESCAPES: ClassVar = ["'", "\\"]
        RAW_STRINGS: ClassVar = [("r'", "'"), ("R'", "'")]

    class Parser(SparkParser):
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {k: v for k, v in SparkParser.FUNCTION_PARSERS.items() if k in _SPECIAL}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


def canonical(node: exp.Expr) -> str:
    """One spelling for equal expressions, so that parsing a rendered text gives the syntax that was rendered."""
    return node.sql(dialect=CQL, comments=False)


def parse_scalar(sql: str) -> exp.Expr:
    """The tree of a canonical spelling; words that begin a statement elsewhere, such as SET, are names in it."""
    return sqlglot.parse_one(sql, into=exp.Condition, dialect=CQL)


def with_scalar(sql: str, work: Callable[[exp.Expr], T]) -> T:
    """What `work` makes of the tree of a canonical spelling; it must not keep the tree, nor change it.

    Of spellings that differ in numbers only one is parsed, since that takes longer than most work.
    """
    parts: list[str | None] = [] if _UNUSUAL.search(sql) else NUMBERS.split(sql)
    numbers = parts[2::3]
    parts[2::3] = [number and str(_STAND_IN + place) for place, number in enumerate(numbers)]
    found = _numbered_tree("".join(filter(None, parts))) if any(numbers) else None
    if found is None:
        return work(parse_scalar(sql))
    tree, literals = found
    with _FILLING:
        for node, place in literals:
            node.args["this"] = numbers[place]
        return work(tree)


@lru_cache(maxsize=1 << 12)
def _numbered_tree(sql: str) -> tuple[exp.Expr, Sequence[tuple[exp.Literal, int]]] | None:
    """The tree of a spelling with stand-ins for numbers, and where they are; None if they are not all there."""
    tree = parse_scalar(sql)
    places = {str(_STAND_IN + place): place for place in range(len(NUMBERS.split(sql)) // 3)}
    literals = [(node, places[node.this]) for node in tree.find_all(exp.Literal) if node.this in places]
    wanted = sum(each[2] is not None for each in NUMBERS.finditer(sql))
    return (tree, literals) if len(literals) == wanted else None


def string_text(text: str) -> str:
    """A string between single quotes.

    >>> print(string_text("it's"))
    'it''s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def name_text(name: str | None) -> str:
    """A name between backquotes."""
    return f"`{(name or '').replace('`', '``')}`"
