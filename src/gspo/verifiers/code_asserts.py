"""Assert lines, read into tests: the expression goes to the program, the value stays.

    assert f(2) == 4            assert 4 == f(2)           assert f(2) is True
    assert not f(2)             assert f(2)                assert f(2) == 4 and f(3) == 9
    assert abs(f(2) - 4.0) < 1e-6                          assert math.isclose(f(2), 4.0)
    assert f(2) in (4, 5)       assert 3 in f(2)           assert sorted(f("ba")) == ["a", "b"]

Also HumanEval's `def check(candidate):` around them. Before them may stand imports, which the
program's process does too, and names for literals, which are put in where they are used. Any
other statement, and an assert with no call or no literal in it, is a DataError: such a test would
have to be run, and then a program could decide its own verdict.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gspo.errors import DataError
from gspo.verifiers.code_literals import NoLiteral, literal
from gspo.verifiers.code_tests import AssertTest, Relation

_RELATIONS: dict[type[ast.cmpop], tuple[Relation, Relation, bool]] = {
    # as it stands, with its sides exchanged, negated
    ast.Eq: ("==", "==", False),
    ast.Is: ("==", "==", False),
    ast.NotEq: ("==", "==", True),
    ast.IsNot: ("==", "==", True),
    ast.Lt: ("<", ">", False),
    ast.LtE: ("<=", ">=", False),
    ast.Gt: (">", "<", False),
    ast.GtE: (">=", "<=", False),
}
_ISCLOSE_RELATIVE = 1e-9  # math.isclose's own defaults
_ISCLOSE_ABSOLUTE = 0.0


def parse_asserts(source: str, entry_point: str | None) -> list[AssertTest]:
    """The tests of some lines; DataError names the line that cannot be read.

    entry_point: the function that a `check(candidate)` is for.

    >>> parse_asserts("assert 4 == f(2)", None)[0].expected
    4
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"tests are no Python: {error}; wanted assert lines") from error
    reader = _Reader(entry_point)
    tests = list(reader.read(body))
    setup = "\n".join(reader.imports)
    return [replace(test, setup=setup) for test in tests]


@dataclass(slots=True)
class _Reader:
    entry_point: str | None
    imports: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, ast.expr] = field(default_factory=dict)

    def read(self, body: Sequence[ast.stmt], candidate: str | None = None) -> Iterator[AssertTest]:
        """Tests in order. candidate: what the tests call the entry point."""
        for statement in body:
            match statement:
                case ast.Assert(test):
                    for one in self._assertion(test):
                        yield replace(one, candidate=self._target(one, candidate))
                case ast.Import() | ast.ImportFrom():
                    self.imports.append(ast.unparse(statement))
                case ast.Assign([ast.Name(name)], node):
                    self.values[name], self.nodes[name] = self._literal(node), self._inlined(node)
                case ast.FunctionDef("check", ast.arguments([], [ast.arg(parameter)])):
                    self.entry_point = self.entry_point or _checked(body)
                    yield from self.read(statement.body, parameter)
                case ast.Expr(ast.Constant() | ast.Call(ast.Name("check"))) | ast.Pass():
                    pass
                case _:
                    raise _unreadable(statement, "wanted assert lines, imports, names of literals")

    def _target(self, test: AssertTest, candidate: str | None) -> str | None:
        if candidate is None:
            return None
        if self.entry_point is None:
            raise DataError(
                "tests are a check(candidate), and nothing names the function: give a column entry_point"
            )
        if candidate != "candidate":
            raise DataError(f"check has the parameter {candidate!r}; wanted 'candidate'")
        return self.entry_point

    def _assertion(self, node: ast.expr) -> Iterator[AssertTest]:
        match node:
            case ast.BoolOp(ast.And(), parts):
                for part in parts:
                    yield from self._assertion(part)
            case ast.UnaryOp(ast.Not(), inner) if not isinstance(inner, ast.BoolOp):
                for one in self._assertion(inner):
                    yield replace(one, negated=not one.negated)
            case ast.Compare(left, [sign], [right]):
                yield self._comparison(node, left, sign, right)
            case ast.Call(ast.Attribute(ast.Name("math"), "isclose") | ast.Name("isclose"), sides):
                yield self._isclose(node, sides)
            case _:
                if any(isinstance(part, ast.Compare | ast.BoolOp) for part in ast.walk(node)):
                    raise _unreadable(node, "its comparison would have to be run by the program")
                yield self._test(node, "true", None)

    def _comparison(
        self, node: ast.Compare, left: ast.expr, sign: ast.cmpop, right: ast.expr
    ) -> AssertTest:
        if isinstance(sign, ast.In | ast.NotIn):
            return self._membership(left, right, isinstance(sign, ast.NotIn))
        if type(sign) not in _RELATIONS:
            raise _unreadable(node, "the relation is not known")
        relation, exchanged, negated = _RELATIONS[type(sign)]
        split = self._split([left, right])
        if split is None:
            raise _unreadable(node, "neither side is a literal")
        expression, expected = split
        relation = relation if expression is left else exchanged
        near = self._near(expression, relation, expected)
        return near or self._test(expression, relation, expected, negated)

    def _membership(self, left: ast.expr, right: ast.expr, negated: bool) -> AssertTest:
        try:
            return self._test(left, "in", self._literal(right), negated)
        except DataError:
            return self._test(right, "contains", self._literal(left), negated)

    def _near(self, node: ast.expr, relation: Relation, distance: Any) -> AssertTest | None:
        """`abs(A - B) < distance` with one literal side; None for any other expression."""
        match node:
            case ast.Call(ast.Name("abs"), [ast.BinOp(one, ast.Sub(), other)]) if relation in (
                "<",
                "<=",
            ):
                sides = self._split([one, other])
                return sides and self._test(sides[0], "near", (sides[1], 0.0, distance))
            case _:
                return None

    def _isclose(self, node: ast.Call, sides: list[ast.expr]) -> AssertTest:
        given = {word.arg: self._literal(word.value) for word in node.keywords}
        split = self._split(sides)
        if split is None or not given.keys() <= {"rel_tol", "abs_tol"}:
            raise _unreadable(node, "wanted one literal among the two sides")
        near = (given.get("rel_tol", _ISCLOSE_RELATIVE), given.get("abs_tol", _ISCLOSE_ABSOLUTE))
        return self._test(split[0], "near", (split[1], *near))

    def _split(self, sides: list[ast.expr]) -> tuple[ast.expr, Any] | None:
        """Of two sides the expression and the other's value; None where neither is a literal."""
        for expression, value in (sides, sides[::-1]) if len(sides) == 2 else ():
            try:
                return expression, self._literal(value)
            except DataError:
                continue
        return None

    def _test(
        self, node: ast.expr, relation: Relation, expected: Any, negated: bool = False
    ) -> AssertTest:
        if not any(isinstance(part, ast.Call) for part in ast.walk(node)):
            raise _unreadable(node, "it calls nothing, so it tests nothing")
        return AssertTest(ast.unparse(self._inlined(node)), relation, expected, negated)

    def _literal(self, node: ast.expr) -> Any:
        try:
            return literal(node, self.values)
        except NoLiteral as error:
            raise _unreadable(node, str(error)) from error

    def _inlined(self, node: ast.expr) -> Any:
        return _Inline(self.nodes).visit(node)


class _Inline(ast.NodeTransformer):
    """Puts literals in the place of their names."""

    def __init__(self, nodes: dict[str, ast.expr]) -> None:
        self._nodes = nodes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that stands for a literal."""
        return self._nodes.get(node.id, node)


def _checked(body: Sequence[ast.stmt]) -> str | None:
    """The function in a line `check(function)`."""
    for statement in body:
        match statement:
            case ast.Expr(ast.Call(ast.Name("check"), [ast.Name(name)])):
                return name
            case _:
                pass
    return None


def _unreadable(node: ast.stmt | ast.expr, why: str) -> DataError:
    return DataError(f"tests, line {node.lineno}: cannot read {ast.unparse(node)[:80]!r}: {why}")
