"""CQL as a sqlglot dialect: Spark SQL with the quotes of standard SQL and our own list of functions.

Windows, ISTREAM and the statements around a SELECT are parsed by our own parser before sqlglot gets the text, so that
no private hook of sqlglot's parser is needed: only this class and the positions it keeps on identifiers.
"""

from __future__ import annotations

from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

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


def string_text(text: str) -> str:
    """A string between single quotes.

    >>> print(string_text("it's"))
    'it''s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def name_text(name: str | None) -> str:
    """A name between backquotes."""
    return f"`{(name or '').replace('`', '``')}`"
