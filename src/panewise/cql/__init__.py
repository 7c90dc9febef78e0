"""CQL: text to syntax (`statements`), syntax to text (`render`), syntax to algebra (`bind`, `script`), and scalars."""

from panewise.cql.inputs import bind_inputs
from panewise.cql.render import render
from panewise.cql.script import BoundScript, NamedQuery, bind_query, bind_script, script_and_problems
from panewise.cql.statements import parse_query, parse_script
from panewise.cql.translate import inline_columns, scalar_type, translate_scalar

__all__ = [
    "BoundScript",
    "NamedQuery",
    "bind_inputs",
    "bind_query",
    "bind_script",
    "inline_columns",
    "parse_query",
    "parse_script",
    "render",
    "scalar_type",
    "script_and_problems",
    "translate_scalar",
]
