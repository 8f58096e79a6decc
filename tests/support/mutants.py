"""Mutants of a module: expressions and their possible replacements."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Mutation = tuple[str, ast.expr, ast.expr]  # kind, expression, replacement

OPERATORS: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
NON_COMMUTATIVE = ast.Sub | ast.Div | ast.FloorDiv | ast.Pow | ast.MatMult
ORDERED = ast.Lt | ast.LtE | ast.Gt | ast.GtE
COMPARISONS: dict[type, type] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def _both_ways(*pairs: tuple[str, str]) -> dict[str, str]:
    return {name: other for a, b in pairs for name, other in ((a, b), (b, a))}


FUNCTIONS = _both_ways(
    ("maximum", "minimum"), ("sin", "cos"), ("sinh", "cosh"), ("floor", "ceil"), ("any", "all"), ("triu", "tril"),
    ("zeros_like", "ones_like"),
)  # fmt: skip
INSTRUCTIONS = _both_ways(
    ("fadd", "fsub"), ("fmul", "fdiv"), ("add", "sub"), ("and", "or"), ("olt", "ogt"), ("ole", "oge"), ("slt", "sgt"),
    ("eq", "ne"), ("oeq", "une"), ("maximum", "minimum"), ("logical_and", "logical_or"),
)  # fmt: skip
STEPS = INSTRUCTIONS | _both_ways(("add", "subtract"), ("multiply", "divide"))  # of lowered programs, by NumPy's names
WRITERS = {"binary": INSTRUCTIONS, "compare": INSTRUCTIONS, "intrinsic": INSTRUCTIONS, "map": STEPS}
AXES = {"axis", "axes", "axis1", "axis2", "source", "destination"}
OF_AXES = {"moveaxis", "swapaxes", "expand_dims", "squeeze", "rollaxis", "concatenate", "stack", "cumsum", "sum", "mean", "take"}
SEQUENCES = ast.List | ast.Tuple | ast.Set | ast.JoinedStr | ast.ListComp | ast.GeneratorExp


def _changed(node: Any, **fields: Any) -> Any:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _integer(node: ast.AST | None) -> int | None:
    """Return the integer that an expression states, as ``2`` or ``-1``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _integer(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _name(function: ast.expr) -> str:
    """Return the last name of a called function: ``conjugate`` of ``np.conjugate``."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_sequence(node: ast.AST) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, SEQUENCES) or (isinstance(node, ast.Call) and _name(node.func) == "join")


def _is_sign(node: ast.AST) -> bool:
    """Whether a factor is 1 or -1, so that multiplication equals division."""
    return ast.unparse(node).startswith(("(-1) ** ", "np.sign(", "sign"))


def _is_of_costs(test: ast.AST) -> bool:
    """Whether a condition compares with a named limit (``size > HEAVY``), which affects costs only."""
    compared = [node for node in ast.walk(test) if isinstance(node, ast.Compare) and isinstance(node.ops[0], ORDERED)]
    return any(isinstance(part, ast.Name) and part.id.isupper() for node in compared for part in ast.walk(node))


def arithmetic(node: ast.AST) -> Iterator[Mutation]:
    """Signs, operators, factors, missing terms and swapped operands."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "sign", node, node.operand
    if isinstance(node, ast.Constant) and type(node.value) is float and 1e-5 < node.value < 1e5:
        yield "factor", node, ast.Constant(node.value / 2)
    if not isinstance(node, ast.BinOp) or _is_sequence(node.left) or _is_sequence(node.right):
        return
    if 0 in (_integer(node.left), _integer(node.right)):  # zeros of a shape, which have no sign
        return
    is_by_sign = isinstance(node.op, ast.Mult | ast.Div) and (_is_sign(node.left) or _is_sign(node.right))
    if type(node.op) in OPERATORS and not is_by_sign:
        yield "operator", node, _changed(node, op=OPERATORS[type(node.op)]())
    if isinstance(node.op, NON_COMMUTATIVE):
        yield "operands swapped", node, _changed(node, left=node.right, right=node.left)
    if isinstance(node.op, ast.Add | ast.Sub):
        yield "term dropped", node, node.left
    if isinstance(node.op, ast.Add):
        yield "term dropped", node, node.right
    if isinstance(node.op, ast.Mult | ast.Div):
        yield "factor dropped", node, node.right if isinstance(node.left, ast.Constant) else node.left
        yield "sign", node, ast.UnaryOp(ast.USub(), node)
    for side in (node.left, node.right) if isinstance(node.op, ast.Mult | ast.Div) else ():
        if _integer(side) is not None:
            yield "factor", side, ast.Constant(2 * (_integer(side) or 1))
    if isinstance(node.op, ast.Pow) and _integer(node.right) is not None:
        yield "exponent", node.right, ast.Constant((_integer(node.right) or 0) + 1)


def conditions(node: ast.AST) -> Iterator[Mutation]:
    """Negated conditions, guards that never hold, opposite comparisons, dropped clauses."""
    if _is_of_costs(node if isinstance(node, ast.expr) else getattr(node, "test", node)):
        return
    tests = [node.test] if isinstance(node, ast.If | ast.IfExp) else getattr(node, "ifs", [])
    for test in tests:
        yield "condition negated", test, ast.UnaryOp(ast.Not(), test)
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue):
        yield "guard removed", node.test, ast.Constant(False)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "comparison", node, _changed(node, ops=[COMPARISONS[type(node.ops[0])]()])
    if isinstance(node, ast.BoolOp):
        yield "and/or", node, _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for k in range(len(node.values)):
            rest = node.values[:k] + node.values[k + 1 :]
            yield "clause dropped", node, rest[0] if len(rest) == 1 else _changed(node, values=rest)


def calls(node: ast.AST) -> Iterator[Mutation]:
    """Dropped conjugates and statements, wrong axes, other functions and instructions, the formula of another operand."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "statement dropped", node.value, ast.Constant(None)
    if not isinstance(node, ast.Call):
        return
    name, args = _name(node.func), node.args
    if name in ("conj", "conjugate"):
        yield "conjugate dropped", node, args[0] if args else node.func.value  # type: ignore[attr-defined]
    if name == "negative" and args:
        yield "sign", node, args[0]
    if name == "select" and len(args) == 3:
        yield "operands swapped", node, _changed(node, args=[args[0], args[2], args[1]])
    if name in FUNCTIONS and isinstance(node.func, ast.Attribute):
        yield "function", node.func, _changed(node.func, attr=FUNCTIONS[name])
    written = WRITERS.get(name, {})
    if args and isinstance(args[0], ast.Constant) and args[0].value in written:
        yield "instruction", args[0], ast.Constant(written[args[0].value])
    for value in [k.value for k in node.keywords if k.arg in AXES] + (args[1:] if name in OF_AXES else []):
        axis = _integer(value)
        if axis is not None:
            yield "axis", value, ast.Constant(axis + 1)  # -1 becomes 0
        elif isinstance(value, ast.Name):
            yield "axis", value, ast.Constant(0)
    if name == "range":
        for arg in args:
            yield "range", arg, ast.BinOp(arg, ast.Add(), ast.Constant(1))
    formulas = [arg for arg in args if isinstance(arg, ast.Lambda)]
    if len(formulas) > 1:
        yield "formula of another operand", formulas[0], formulas[1]


def indices(node: ast.AST) -> Iterator[Mutation]:
    """Indices and bounds of slices that are off by one."""
    if isinstance(node, ast.Subscript):
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            for bound in (part.lower, part.upper) if isinstance(part, ast.Slice) else (part,):
                if _integer(bound) is not None:
                    yield "index", bound, ast.Constant((_integer(bound) or 0) + 1)  # type: ignore[misc]


MUTATIONS: list[Callable[[ast.AST], Iterator[Mutation]]] = [arithmetic, calls, indices]
# Conditions are the subject of guards. In the other families most of them choose between a short way and a general one, which
# compute the same.
MUTATIONS_OF_GUARDS = [*MUTATIONS, conditions]


@dataclass(frozen=True)
class Site:
    """One mutation: the position of an expression and its replacement.

    Attributes
    ----------
    family, path, kind, before, after : str
        The path is relative to the tree; before and after are source text.
    start, end : tuple of int
        Line, from 1, and column in bytes.
    function : tuple of int
        First and last line of the function around it; of the whole module, if it runs when that is imported.
    """

    family: str
    path: str
    kind: str
    before: str
    after: str
    start: tuple[int, int]
    end: tuple[int, int]
    function: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.path}:{self.start[0]}:{self.start[1]} {self.kind} '{self.before}' -> '{self.after}'"

    def applied_to(self, text: str) -> str:
        """Return the text of the module with this mutation."""
        lines = text.encode().splitlines(keepends=True)
        at, until = (sum(map(len, lines[: line - 1])) + column for line, column in (self.start, self.end))
        whole = b"".join(lines)
        return (whole[:at] + f"({self.after})".encode() + whole[until:]).decode()


class _Finder(ast.NodeVisitor):
    """Collects the mutations of code that computes: no annotations, texts, error messages, representations or decorators."""

    def __init__(self, family: str, path: str, text: str) -> None:
        self.family, self.path = family, path
        self.mutations = MUTATIONS_OF_GUARDS if family == "guards" else MUTATIONS
        self.function = (1, text.count("\n") + 1)
        self.is_import = True
        self.sites: list[Site] = []
        self.visit(ast.parse(text))

    def visit(self, node: ast.AST) -> None:
        """Collect the mutations of a node, and visit its children."""
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for mutate in self.mutations:
            for kind, old, new in mutate(node):
                if not any(isinstance(part, ast.JoinedStr) for part in ast.walk(old)):
                    start, end = (old.lineno, old.col_offset), (old.end_lineno or 0, old.end_col_offset or 0)
                    before, after = ast.unparse(old), ast.unparse(new)
                    self.sites.append(Site(self.family, self.path, kind, before, after, start, end, self.function))
        super().visit(node)

    def _visit_body(self, node: Any) -> None:
        before = self.function, self.is_import
        if self.is_import:  # a nested function counts as part of its outer function
            self.function, self.is_import = (node.lineno, node.end_lineno), False
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(statement)
        self.function, self.is_import = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in ("__repr__", "__str__", "__dir__"):
            self._visit_body(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_body(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name == "with_formula":  # the formula as text
            self.visit(node.func)
        elif not name.endswith(("Error", "Warning", "warn")):
            self.generic_visit(node)

    def _skip(self, node: ast.AST) -> None:
        """Skip the children of a node."""

    visit_Raise = visit_Assert = visit_JoinedStr = _skip  # noqa: N815


def sites_of(family: str, path: str, text: str) -> list[Site]:
    """List the mutations of a module's text."""
    unique = {str(site): site for site in _Finder(family, path, text).sites if site.before != site.after}
    return list(unique.values())
