"""GROUP BY and aggregates: from a SELECT list to keys, calls, and expressions over their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from panewise.aggregate import AGGREGATES, Aggregate, CountAll, CountDistinct, Positional
from panewise.algebra import Call, Column, Group, Node, Project, Windowed
from panewise.algebra.positional import tier_refusal
from panewise.core.errors import AggregateProblem, BindProblem, Place
from panewise.core.scalar import Scalar, column
from panewise.core.time import Domain
from panewise.cql.dialect import canonical
from panewise.cql.functions import FUNCTIONS
from panewise.cql.scope import Scope, plain_name
from panewise.cql.syntax import Expr, SelectSyntax, place_of
from panewise.cql.translate import no_function


@dataclass
class GroupByBinder:
    """Builds the grouped node of one SELECT, then binds the expressions above it."""

    scope: Scope
    #: Visible time columns, with their common domain: the x of REGR_SLOPE(y).
    times: list[str]
    domain: Domain
    inputs: dict[str, Scalar] = field(default_factory=dict)
    known: dict[str, Column] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    #: The node to be grouped, once it is known.
    below: Node | None = None

    def build(self, child: Node, body: SelectSyntax, anyway: Sequence[Column] = ()) -> Node:
        """The grouped node; some columns are keys even if GROUP BY does not list them."""
        self.below = child
        for key in anyway:
            self._add_key(key.name, column(key.name, key.type))
        for expr in body.group_by:
            self._bind_key(self._key_expression(expr, body))
        for expr in [*(i.expr for i in body.items), *([body.having] if body.having else [])]:
            for node in aggregate_calls(expr.node):
                self._add_call(node, expr)
        return Group(Project(child, tuple(self.inputs.items())), tuple(self.keys), tuple(self.calls))

    def bind(self, expr: Expr, above: Scope) -> Scalar:
        """An expression of SELECT or HAVING over keys and aggregates."""
        node = self._resolve(expr)
        for call in node.find_all(exp.Anonymous):
            if call.name.upper() not in FUNCTIONS:  # reported before its columns are
                raise no_function(call.name.upper()).at(place_of(call, expr.place))
        for reference in node.find_all(exp.Column):
            if reference.name not in above.types:
                raise BindProblem(
                    f"column {plain_name(reference.name)!r} is neither grouped nor aggregated",
                    fix=f"add it to GROUP BY, or write MAX({plain_name(reference.name)})",
                    place=reference.meta.get("place", expr.place),
                )
        return above.scalar(node, expr)

    def expand_having(self, expr: Expr, body: SelectSyntax) -> Expr:
        """HAVING with aliases of SELECT written out, except inside aggregates and where a key has that name."""
        keys = {plain_name(key).lower() for key in self.keys}
        selected = [(item.alias.lower(), item.expr.node) for item in body.items if item.alias]

        def step(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or part.table or part.name.lower() in keys or _is_aggregated(part):
                return part
            meant = [node for alias, node in selected if alias == part.name.lower()]
            if len(meant) > 1:
                place = place_of(part, expr.place)
                raise BindProblem(f"{part.name!r} is selected twice", fix="give one another name", place=place)
            if not meant:
                return part
            whole = isinstance(meant[0], exp.Func | exp.Column | exp.Literal) and not isinstance(
                meant[0], exp.Connector
            )
            return meant[0].copy() if whole else exp.paren(meant[0].copy(), copy=False)

        return Expr(expr.sql, expr.node.transform(step), expr.place)

    def _resolve(self, expr: Expr) -> exp.Expr:
        """The expression with every key and aggregate replaced by its column."""

        def step(part: exp.Expr) -> exp.Expr:
            found = self.known.get(canonical(part))
            return exp.Column(this=exp.to_identifier(found.name, quoted=True)) if found else part

        return self.scope.resolve(expr.node, expr.place).transform(step)

    def _bind_key(self, expr: Expr) -> None:
        if next(aggregate_calls(expr.node), None) is not None:
            raise BindProblem(f"GROUP BY {expr.sql} holds an aggregate", fix="group by columns", place=expr.place)
        scalar = self.scope.bind(expr)
        self._add_key(scalar.column or f"key#{len(self.keys)}", scalar)

    def _add_key(self, name: str, scalar: Scalar) -> None:
        if name not in self.keys:
            self.keys.append(name)
            self.inputs[name] = scalar
            self.known[scalar.sql] = Column(name, scalar.type)

    def _key_expression(self, expr: Expr, body: SelectSyntax) -> Expr:
        """GROUP BY 2 means the selected expression; so does GROUP BY alias, where no column has that name."""
        node = expr.node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.this) if node.this.isdigit() else 0
            if not 1 <= number <= len(body.items):
                raise BindProblem(f"GROUP BY {expr.sql} names no selected column", fix="use its name", place=expr.place)
            return body.items[number - 1].expr
        if isinstance(node, exp.Column) and not node.table and not self.scope.has(node.name):
            for item in body.items:
                if item.alias and item.alias.lower() == node.name.lower():
                    return item.expr
        return Expr(canonical(node), node, expr.place)

    def _add_call(self, node: exp.Expr, expr: Expr) -> None:
        text = canonical(self.scope.resolve(node, expr.place))
        if text in self.known:
            return
        arguments, aggregate = self.aggregate(node, expr)
        call = Call(f"agg#{len(self.calls)}", aggregate, tuple(self._add_input(a) for a in arguments))
        self.calls.append(call)
        self.known[text] = Column(call.name, aggregate.result)

    def _check_tiers(self, aggregate: Positional[Any], place: Place | None) -> None:
        """Refuse a positional aggregate over a window without tiers, or with parameters that do not fit."""
        reason = "a frame has no tiers" if self.below is None else tier_refusal(self.below)
        if self.below is None or reason:
            raise BindProblem(
                f"{aggregate.names[0]} depends on where in the window items lie, but {reason}",
                fix="use [RANGE ... SLIDE ...] or [RANGES ... SLIDES ...] over one stream",
                place=place,
            )
        window = next(node.window for node in self.below.walk() if isinstance(node, Windowed))
        try:
            aggregate.check(len(window.single_windows), self.domain)
        except AggregateProblem as problem:
            raise problem.at(place) from None

    def _add_input(self, scalar: Scalar) -> str:
        name = scalar.column or f"arg#{scalar.sql}"
        self.inputs[name] = scalar
        return name

    def aggregate(self, node: exp.Expr, expr: Expr) -> tuple[list[Scalar], Aggregate[Any]]:
        name, given = str(aggregate_name(node)), _arguments(node)
        for argument in given:
            if next(aggregate_calls(argument), None) is not None:
                raise BindProblem(
                    f"{canonical(node)} nests aggregates", fix="use a sub-query", place=place_of(node, expr.place)
                )
        kind: type[Aggregate[Any]] = AGGREGATES[name]
        if given and isinstance(given[0], exp.Star):
            if name != "COUNT":
                raise BindProblem(f"{name}(*) makes no sense", fix="name a column", place=place_of(node, expr.place))
            return [], CountAll()
        if given and isinstance(given[0], exp.Distinct):
            if name != "COUNT" or len(given[0].expressions) != 1:
                raise BindProblem(
                    f"{canonical(node)} is not supported",
                    fix="use COUNT(DISTINCT column)",
                    place=place_of(node, expr.place),
                )
            kind, given = CountDistinct, list(given[0].expressions)
        columns = _columns(kind, given)
        scalars = [self._scalar(a, expr) for a in given[:columns]]
        literals = [self._literal(argument, expr) for argument in given[columns:]]
        kind = kind.variant(literals)
        if kind.arity == 2 and len(scalars) == 1:
            scalars.append(self._time(name, expr))
        if len(scalars) != kind.arity or not _takes_literals(kind, len(literals)):
            raise BindProblem(
                f"{canonical(node)} has {len(given)} argument{'s' * (len(given) != 1)}",
                fix=f"write {_usage_text(name, kind)}",
                place=place_of(node, expr.place),
            )
        made = self._create_aggregate(kind, scalars, literals, place_of(node, expr.place))
        if isinstance(made, Positional):
            self._check_tiers(made, place_of(node, expr.place))
        return scalars, made

    def _create_aggregate(
        self, kind: type[Aggregate[Any]], scalars: list[Scalar], literals: list[str], place: Place | None
    ) -> Aggregate[Any]:
        names = (*kind.parameters, *kind.options)
        values: dict[str, Any] = dict(zip(names, literals, strict=False))
        if kind.rest is not None:
            values[kind.rest] = tuple(literals[len(names) :])
        try:
            return kind(*(s.type for s in scalars), **values)
        except AggregateProblem as problem:
            raise problem.at(place) from None

    def _scalar(self, node: exp.Expr, expr: Expr) -> Scalar:
        return self.scope.bind(Expr(canonical(node), node, place_of(node, expr.place)))

    def _literal(self, node: exp.Expr, expr: Expr) -> str:
        """A parameter of an aggregate as it was written, without its quotes."""
        if isinstance(node, exp.Column) and node.this.meta.get("doubly_quoted"):
            self.scope.resolve(node, expr.place)  # reports that double quotes are for names, unless it is one
        return node.name if isinstance(node, exp.Literal) else canonical(node)

    def _time(self, name: str, expr: Expr) -> Scalar:
        if len(self.times) != 1:
            count = "several streams have" if self.times else "no stream in sight has"
            raise BindProblem(
                f"{name} with one argument runs over time, but {count} one",
                fix=f"write {name}(y, x)",
                place=expr.place,
            )
        return column(self.times[0], self.scope.types[self.times[0]])


def aggregate_name(node: exp.Expr) -> str | None:
    """The canonical name of an aggregate call, or None for any other expression."""
    if isinstance(node, exp.Anonymous):
        names = [node.name.upper()]
    elif isinstance(node, exp.Func):
        names = [*node.sql_names(), node.key.upper()]
    else:
        return None
    found = next((n for n in names if n in AGGREGATES), None)
    return AGGREGATES[found].names[0] if found else None


def _is_aggregated(node: exp.Expr) -> bool:
    """Whether a part of an expression is inside an aggregate."""
    around = node.parent
    while around is not None and aggregate_name(around) is None:
        around = around.parent
    return around is not None


def _columns(kind: type[Aggregate[Any]], given: list[exp.Expr]) -> int:
    """How many arguments are columns; the first quoted text after the first argument begins the literals, if the
    aggregate takes any."""
    if kind.timed:
        return kind.arity - 1
    if kind.options or kind.rest is not None:
        texts = (n for n, a in enumerate(given) if n and isinstance(a, exp.Literal) and a.is_string)
        return min(next(texts, len(given)), kind.arity)
    return kind.arity


def _takes_literals(kind: type[Aggregate[Any]], literals: int) -> bool:
    """Whether an aggregate takes that many literals."""
    least = len(kind.parameters)
    return least <= literals and (kind.rest is not None or literals <= least + len(kind.options))


def _usage_text(name: str, kind: type[Aggregate[Any]]) -> str:
    """How an aggregate is called, for error messages."""
    wanted = ", ".join(["column"] * (kind.arity - kind.timed) + list(kind.parameters))
    optional = [*kind.options, *([f"{kind.rest} ..."] if kind.rest else [])]
    return f"{name}({wanted}{''.join(f' [, {each}]' for each in optional)})"


def aggregate_calls(node: exp.Expr) -> Any:
    """The outermost aggregate calls of an expression."""
    return (n for n in node.walk(prune=lambda n: aggregate_name(n) is not None) if aggregate_name(n) is not None)


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """Arguments in the order in which they were written."""
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
    return found if not isinstance(node, exp.Anonymous) else list(node.expressions)


def without_aggregates(expr: Expr, fix: str = "use HAVING") -> Expr:
    """The same expression; refuses one that contains an aggregate."""
    if (found := next(aggregate_calls(expr.node), None)) is not None:
        raise BindProblem(f"{expr.sql} holds an aggregate", fix=fix, place=place_of(found, expr.place))
    return expr
