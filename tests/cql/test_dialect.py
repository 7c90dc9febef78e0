"""What we rely on in sqlglot: if a release moves it, these fail and nothing else has to be searched."""

from __future__ import annotations

from sqlglot import TokenType, exp, parse_one

from panewise.cql.dialect import CQL, canonical


def test_tokens_carry_offsets() -> None:
    tokens = CQL().tokenize("SELECT x FROM S [PARTITION BY k ROWS 2]")
    assert [t.text for t in tokens][4:7] == ["[", "PARTITION BY", "k"]
    assert (tokens[4].token_type, tokens[4].start, tokens[4].end) == (TokenType.L_BRACKET, 16, 16)


def test_identifiers_carry_offsets() -> None:
    tree = parse_one("SELECT price\n  FROM `my stream`", dialect=CQL)
    (table,) = tree.find_all(exp.Table)
    (column,) = tree.find_all(exp.Column)
    assert (column.this.meta["start"], table.this.meta["start"]) == (7, 20)


def test_the_arguments_of_a_select_have_the_names_we_read() -> None:
    tree = parse_one("SELECT DISTINCT a FROM S JOIN T ON x = y WHERE b GROUP BY c HAVING d", dialect=CQL)
    assert {"from_", "joins", "where", "group", "having", "distinct"} <= {k for k, v in tree.args.items() if v}


def test_quantile_keeps_its_name() -> None:
    assert canonical(parse_one("quantile(x, 0.5)", dialect=CQL)) == "QUANTILE(x, 0.5)"
