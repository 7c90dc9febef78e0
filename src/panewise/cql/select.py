"""Parses a SELECT: takes windows and ISTREAM out of the text, lets sqlglot parse the rest, puts them together again."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import Token, TokenType, exp

from panewise.core.errors import Place, SyntaxProblem
from panewise.cql.clauses import READERS, WindowClause, parse_window
from panewise.cql.clauses.fill import FillClause
from panewise.cql.dialect import canonical
from panewise.cql.syntax import Body, Expr, FromItem, SelectItem, SelectSyntax, SetSyntax
from panewise.cql.tokens import Cursor, ScriptText, word

EMITS = ("ISTREAM", "DSTREAM", "RSTREAM")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_UNSUPPORTED = {
    "order": ("ORDER BY", "sort the results where they are read, those of an instant have no order"),
    "limit": ("LIMIT", "cut the results where they are read; the most frequent values are TOP_K(column, n)"),
    "offset": ("OFFSET", "leave it out"),
    "windows": ("WINDOW", "write the window in brackets after the stream"),
    "qualify": ("QUALIFY", "use HAVING or a sub-query"),
    "with_": ("WITH", "use CREATE VIEW or a sub-query"),
    "laterals": ("LATERAL VIEW", "leave it out"),
    "sort": ("SORT BY", "sort the results where they are read, those of an instant have no order"),
    "cluster": ("CLUSTER BY", "leave it out"),
    "distribute": ("DISTRIBUTE BY", "leave it out"),
    "sample": ("TABLESAMPLE", "filter with WHERE"),
    "pivots": ("PIVOT", "use CASE WHEN inside aggregates"),
}
#: The parts of sqlglot's queries, tables and joins that we use.
_SUPPORTED = {"this", "expression", "expressions", "from_", "joins", "where", "group", "having", "distinct", "alias"}
_SUPPORTED |= {"db", "catalog"}  # these have a message of their own
_NOTHING = (",", ")", "FROM", "WHERE", "GROUP BY", "HAVING")
_GROUPINGS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_AFTER_FILL = ("WHERE", "GROUP BY", "HAVING", "UNION", "EXCEPT", "FILL", ",", "JOIN")
_CLAUSES = ("SELECT", "FROM", "JOIN", "ON", "USING", "WHERE", "GROUP BY", "HAVING")


def parse_select(source: ScriptText, tokens: list[Token]) -> Body:
    """Parse the body of a query from its tokens, from SELECT to the end."""
    extras = _Extras(source)
    extras.collect(tokens)
    start, end = tokens[0].start, tokens[-1].end + 1
    tree = source.parse(start, end, extras.blanks, "SELECT")
    return _Reader(source, extras, start).body(tree)


@dataclass
class _Extras:
    """What sqlglot cannot parse: windows and ISTREAM, by the offset of the table name or parenthesis they follow."""

    source: ScriptText
    windows: dict[int, WindowClause] = field(default_factory=dict)
    fills: dict[int, tuple[FillClause, ...]] = field(default_factory=dict)
    emits: dict[int, str] = field(default_factory=dict)
    blanks: list[tuple[int, int]] = field(default_factory=list)
    openings: list[int] = field(default_factory=list)

    def collect(self, tokens: list[Token]) -> None:
        opened: list[int] = []
        partner: dict[int, int] = {}
        skip = -1
        for at, token in enumerate(tokens):
            if at <= skip:
                continue
            if token.token_type is TokenType.L_PAREN:
                opened.append(at)
                if _opens_query(tokens, at):
                    self.openings.append(token.start)
            elif token.token_type is TokenType.R_PAREN and opened:
                partner[at] = opened.pop()
            elif self._opens_window(tokens, at):
                skip = self._window(tokens, at, partner)
            elif word(token) == "FILL" and at + 1 < len(tokens) and word(tokens[at + 1]) == "WITH":
                skip = self._fill(tokens, at)
            elif token.token_type is TokenType.COMMA and (at + 1 == len(tokens) or word(tokens[at + 1]) in _NOTHING):
                place = self.source.place(token.start)
                raise SyntaxProblem("nothing follows the comma", fix="remove it", place=place)
            elif word(token) in EMITS and at and word(tokens[at - 1]) == "SELECT":
                self.blanks.append((token.start, token.end + 1))
                if at > 1 and tokens[at - 2].token_type is TokenType.L_PAREN:
                    self.emits[tokens[at - 2].start] = word(token)
                elif at > 1:
                    raise SyntaxProblem(
                        f"{word(token)} is on one side of a set operator",
                        fix=f"write {word(token)}(...) around the whole query",
                        place=self.source.place(token.start, "SELECT"),
                    )

    def _opens_window(self, tokens: list[Token], at: int) -> bool:
        if tokens[at].token_type is not TokenType.L_BRACKET:
            return False
        ahead = word(tokens[at + 1]) if at + 1 < len(tokens) else ""
        return ahead in READERS or self._follows_table(tokens, at)

    def _follows_table(self, tokens: list[Token], at: int) -> bool:
        """Whether a bracket is at the place of a window, so that a misspelt one is called a window in the message."""
        depth = 0
        for back in range(at - 1, -1, -1):
            depth += {TokenType.R_PAREN: 1, TokenType.L_PAREN: -1}.get(tokens[back].token_type, 0)
            compares = back > 1 and word(tokens[back - 1]) == "DISTINCT" and word(tokens[back - 2]) in ("IS", "NOT")
            if depth < 0 or (not depth and word(tokens[back]) in _CLAUSES and not compares):
                return word(tokens[back]) in ("FROM", "JOIN")
        return False

    def _window(self, tokens: list[Token], at: int, partner: dict[int, int]) -> int:
        end, depth = at, 0
        while end < len(tokens):
            depth += {TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}.get(tokens[end].token_type, 0)
            if not depth:
                break
            end += 1
        if end == len(tokens):
            raise SyntaxProblem(
                "the window is never closed", fix="add a ]", place=self.source.place(tokens[at].start, "window")
            )
        anchor = self._anchor(tokens, at, partner)
        place = self.source.place(tokens[at].start, "window")
        if anchor in self.windows or (self.blanks and self.blanks[-1][1] == tokens[at - 1].end + 1):
            raise SyntaxProblem("a stream has two windows", fix="keep one of them", place=place)
        cursor = Cursor(self.source, tokens[at + 1 : end], tokens[end].start, "window")
        self.windows[anchor] = parse_window(cursor)
        self.blanks.append((tokens[at].start, tokens[end].end + 1))
        return end

    def _fill(self, tokens: list[Token], at: int) -> int:
        """Parse a filling, up to the next clause."""
        end, depth = at + 1, 0
        while end < len(tokens) and depth >= 0 and (depth or word(tokens[end]) not in _AFTER_FILL):
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[end].token_type, 0)
            end += depth >= 0
        place = self.source.place(tokens[at].start, "FILL")
        anchor = next(reversed(self.windows), None)
        if anchor is None or not self.blanks or self.blanks[-1][1] != tokens[at - 1].end + 1:
            raise SyntaxProblem("FILL does not follow a frame", fix="write it after [FRAME ...]", place=place)
        stop = tokens[end].start if end < len(tokens) else tokens[-1].end + 1
        fill = FillClause.read(Cursor(self.source, tokens[at + 2 : end], stop, "FILL"), place)
        self.fills[anchor] = (*self.fills.get(anchor, ()), fill)
        self.blanks.append((tokens[at].start, tokens[end - 1].end + 1))
        return end - 1

    def _anchor(self, tokens: list[Token], at: int, partner: dict[int, int]) -> int:
        """Offset of the table name, or of the opening parenthesis, that the bracket at `at` belongs to."""
        back = at - 1
        if back >= 1 and tokens[back].token_type in _NAMES:
            if word(tokens[back - 1]) == "AS":
                back -= 2
            elif tokens[back - 1].token_type in (*_NAMES, TokenType.R_PAREN):
                back -= 1
        if back < 0:
            raise SyntaxProblem(
                "a window is written before any stream",
                fix="write it after the stream's name",
                place=self.source.place(tokens[at].start, "window"),
            )
        return tokens[partner.get(back, back)].start


class _Reader:
    """Turns sqlglot's tree of the blanked text into our syntax."""

    def __init__(self, source: ScriptText, extras: _Extras, start: int) -> None:
        self.source, self.extras, self.start = source, extras, start
        self.place = source.place(start, "SELECT")
        self.used: set[int] = set()
        # sqlglot keeps no position of a sub-query; sub-queries are matched by their order in the text.
        self.openings = list(extras.openings)

    def body(self, tree: exp.Expr) -> Body:
        found = self._body(tree)
        for anchor, clause in self.extras.windows.items():
            if anchor not in self.used:
                raise SyntaxProblem(
                    "a window does not follow a stream", fix="write it after a stream in FROM", place=clause.place
                )
        return found

    def _body(self, tree: exp.Expr) -> Body:
        match tree:
            case exp.Subquery(this=inner) if self.openings and not tree.args.get("alias"):
                self._refuse(tree)
                if emit := self.extras.emits.get(start := self.openings.pop(0)):
                    raise SyntaxProblem(
                        f"{emit} cannot be used in a part of a query",
                        fix=f"write {emit}(...) around all of it",
                        place=self.source.place(start, emit),
                    )
                return self._body(inner)
            case exp.Select():
                return self._select(tree)
            case exp.Union() | exp.Except() if not tree.args.get("distinct"):
                self._refuse(tree)
                name = "UNION" if isinstance(tree, exp.Union) else "EXCEPT"
                place = self._keyword(tree.right, name)
                return SetSyntax(f"{name} ALL", self._body(tree.left), self._body(tree.right), place)
            case exp.Union() | exp.Except():
                name = "UNION" if isinstance(tree, exp.Union) else "EXCEPT"
                raise SyntaxProblem(
                    f"{name} without ALL is not part of continuous queries",
                    fix=f"write {name} ALL, and SELECT DISTINCT around it to drop duplicates",
                    place=self._keyword(tree.right, name),
                )
            case exp.Intersect():
                place = self._keyword(tree.right, "INTERSECT")
                raise SyntaxProblem(
                    "INTERSECT is not part of continuous queries", fix="join both sides instead", place=place
                )
        raise SyntaxProblem("this is not a continuous query", fix="start with SELECT", place=self.place)

    def _refuse(self, tree: exp.Expr) -> None:
        """Refuse clauses that sqlglot parses and that our syntax does not have."""
        for key, (name, fix) in _UNSUPPORTED.items():
            if found := tree.args.get(key):
                place = self._keyword(found, name)
                raise SyntaxProblem(f"{name} is not part of continuous queries", fix=fix, place=place)
        for key, found in tree.args.items():
            if found and key not in _SUPPORTED:
                name = key.strip("_").upper()
                raise SyntaxProblem(f"{name} is not part of continuous queries", fix="leave it out", place=self.place)

    def _select(self, tree: exp.Select) -> SelectSyntax:
        self._refuse(tree)
        if not tree.expressions:
            raise SyntaxProblem("SELECT names no columns", fix="list some, or write *", place=self.place)
        if not tree.args.get("from_"):
            raise SyntaxProblem("the query has no FROM", fix="name a stream", place=self.place)
        refs = [self._from_item(tree.args["from_"].this)]
        conditions: list[exp.Expr] = []
        for join in tree.args.get("joins") or ():
            refs.append(self._from_item(join.this))
            conditions += self._join_conditions(join, refs)
        if where := tree.args.get("where"):
            conditions.append(where.this)
        distinct = tree.args.get("distinct")
        if distinct and distinct.args.get("on"):
            place = self._keyword(distinct, "DISTINCT")
            raise SyntaxProblem("DISTINCT ON is not part of continuous queries", fix="use GROUP BY", place=place)
        return SelectSyntax(
            tuple(self._item(item) for item in tree.expressions),
            tuple(refs),
            self._expr(exp.and_(*conditions, copy=False), "WHERE") if conditions else None,
            tuple(self._expr(e, "GROUP BY") for e in self._group(tree)),
            self._expr(tree.args["having"].this, "HAVING") if tree.args.get("having") else None,
            bool(distinct),
        )

    def _group(self, tree: exp.Select) -> list[exp.Expr]:
        group = tree.args.get("group")
        if group and (any(v for k, v in group.args.items() if k != "expressions") or group.find(*_GROUPINGS)):
            place = self._keyword(group, "GROUP BY")
            raise SyntaxProblem("GROUP BY takes plain expressions only", fix="list the keys", place=place)
        return list(group.expressions) if group else []

    def _join_conditions(self, join: exp.Join, refs: list[FromItem]) -> list[exp.Expr]:
        kind = " ".join(str(join.args.get(k) or "") for k in ("method", "side", "kind")).split()
        if any(k not in ("INNER", "CROSS") for k in kind):
            raise SyntaxProblem(
                f"{' '.join(kind)} JOIN is not part of continuous queries",
                fix="use an inner join or EXCEPT ALL",
                place=refs[-1].place,
            )
        found = [self._expr(join.args["on"], "ON").node] if join.args.get("on") else []
        for name in join.args.get("using") or ():
            name.meta["place"] = self._place(name, "USING")
            sides = (exp.column(name.copy(), table=_label(ref)) for ref in (refs[-2], refs[-1]))
            found.append(exp.EQ(this=next(sides), expression=next(sides)))
        return found

    def _item(self, node: exp.Expr) -> SelectItem:
        if isinstance(node, exp.Alias):
            return SelectItem(self._expr(node.this, "SELECT"), node.alias)
        return SelectItem(self._expr(node, "SELECT"))

    def _from_item(self, node: exp.Expr) -> FromItem:
        alias = node.alias or None
        self._refuse(node)
        if node.alias_column_names:
            raise SyntaxProblem(
                f"the columns of {alias!r} are renamed in FROM",
                fix="rename them in a sub-query",
                place=self._place(node.args["alias"], "FROM"),
            )
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier) and not node.args.get("db"):
                start = node.this.meta["start"]
                fills = self.extras.fills.get(start, ())
                return FromItem(node.name, alias, self._window(start), None, fills, self.source.place(start, "FROM"))
            case exp.Subquery() if isinstance(node.this, exp.Query) and self.openings:
                start = self.openings.pop(0)
                window, emit = self._window(start), self.extras.emits.get(start)
                fills = self.extras.fills.get(start, ())
                return FromItem(self._body(node.this), alias, window, emit, fills, self.source.place(start, "FROM"))
        raise SyntaxProblem(
            f"{canonical(node)} cannot be used in FROM",
            fix="name a stream or a sub-query",
            place=self._place(node, "FROM"),
        )

    def _window(self, anchor: int) -> WindowClause | None:
        self.used.add(anchor)
        return self.extras.windows.get(anchor)

    def _expr(self, node: exp.Expr, clause: str) -> Expr:
        return self.source.expr(node, clause, self.start)

    def _place(self, node: exp.Expr, clause: str) -> Place:
        return self.source.place(min(_starts(node), default=self.start), clause)

    def _keyword(self, node: exp.Expr | list[exp.Expr], name: str) -> Place:
        """The place of the keyword before a part of the query: sqlglot keeps positions of names and literals only."""
        parts = node if isinstance(node, list) else [node]
        first = min((s for part in parts for s in _starts(part)), default=len(self.source.text))
        words = (name, name.split()[0])
        found = [t.start for t in self.source.tokens if self.start <= t.start <= first and word(t) in words]
        return self.source.place(found[-1] if found else self.start, name)


def _opens_query(tokens: list[Token], at: int) -> bool:
    while at < len(tokens) and tokens[at].token_type is TokenType.L_PAREN:
        at += 1
    return at < len(tokens) and word(tokens[at]) == "SELECT"


def _starts(node: exp.Expr) -> list[int]:
    return [part.meta["start"] for part in node.walk() if "start" in part.meta]


def _label(ref: FromItem) -> str:
    return ref.alias or str(ref.source)
