"""The use of a call's value in the source: shown, compared, dropped, or computed with."""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import os
from types import CodeType
from typing import Any

_SHOWING = frozenset({"print", "str", "repr", "format", "pprint", "bool", "isnan", "isfinite", "isclose"})
_DIFFERENTIATING = frozenset({"gradient", "gradients", "jacobian"})
_FILES = 32  # files whose source is kept parsed


def use_of(code: CodeType, instruction: int) -> str:
    """Classify how a statement uses the value of the call at an instruction.

    Parameters
    ----------
    code : code object
        The code at work.
    instruction : int
        The instruction of the call.

    Returns
    -------
    str
        ``"shown"`` for texts, comparisons and tests; ``"dropped"`` for other statements that assign nothing, and names that are
        only shown; ``"returned"`` for the result of a function; ``""`` where it may be computed with.
    """
    return _use(code, instruction)


@functools.lru_cache(1024)
def _use(code: CodeType, instruction: int) -> str:
    positions = list(code.co_positions())
    if instruction // 2 >= len(positions):
        return ""
    line, last, start, end = positions[instruction // 2]
    tree = _tree(code.co_filename)
    if tree is None:
        return _use_without_source(code, instruction)
    if line is None or last is None or start is None or end is None:
        return ""
    path = _path(tree, (line, start), (last, end))
    return _classify(path[-1], _parents(tree), frozenset())


def _classify(node: Any, parents: dict[Any, Any], seen: frozenset[str]) -> str:
    """The use of the value of an expression; a value assigned to a name is followed to the uses of the name."""
    is_operand = False
    while (around := parents.get(node)) is not None:
        if isinstance(around, (ast.JoinedStr, ast.FormattedValue, ast.Compare, ast.Assert)):
            return "shown"
        if isinstance(around, (ast.If, ast.While, ast.IfExp)) and node is around.test:
            return "shown"
        if isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mod) and _is_text(around.left):
            return "shown"
        if isinstance(around, ast.Call):
            name = getattr(around.func, "id", getattr(around.func, "attr", None))
            if name in _SHOWING or name in _DIFFERENTIATING:
                return "shown" if name in _SHOWING else ""
        is_operand = is_operand or isinstance(around, (ast.BinOp, ast.Call))
        if isinstance(around, ast.Expr):
            return "dropped"
        if isinstance(around, ast.Return):
            return "" if is_operand else "returned"
        if isinstance(around, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return _of_names(around, parents, seen)
        if isinstance(around, ast.stmt):
            return ""
        node = around
    return ""


def _of_names(statement: Any, parents: dict[Any, Any], seen: frozenset[str]) -> str:
    """The use of the names that a statement assigns, in the function or module around it."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    parts = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts):
        return ""
    names = {part.id for part in parts if isinstance(part, ast.Name)} - seen
    scope = statement
    while scope in parents and not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        scope = parents[scope]
    reads = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]
    if not reads and isinstance(scope, ast.Module) and getattr(scope, "is_part", False):
        return ""
    uses = {_classify(read, parents, seen | names) for read in reads}
    return "dropped" if uses <= {"shown", "dropped"} else "returned" if "" not in uses else ""


def _use_without_source(code: CodeType, instruction: int) -> str:
    """The use according to the following instructions, for code compiled from a string."""
    for following in dis.get_instructions(code):
        name = following.opname
        if following.offset <= instruction:
            continue
        if name.startswith(("COMPARE_OP", "FORMAT_", "BUILD_STRING")):
            return "shown"
        if name == "POP_TOP":
            return "dropped"
        if name.startswith(("STORE_", "BINARY_", "RETURN_", "LIST_APPEND", "JUMP", "SEND")):
            return ""
    return ""


def _is_text(left: ast.expr) -> bool:
    return isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and isinstance(left.value, str))


def _path(tree: ast.AST, start: tuple[int, int], end: tuple[int, int]) -> list[Any]:
    """The nodes of a syntax tree that enclose a part of the source, the outermost first."""
    path: list[Any] = [tree]
    while True:
        for child in ast.iter_child_nodes(path[-1]):
            first = getattr(child, "lineno", None)
            if first is None:  # a comprehension, arguments: nodes without a position
                if any(_encloses(part, start, end) for part in ast.walk(child)):
                    path.append(child)
                    break
            elif _encloses(child, start, end):
                path.append(child)
                break
        else:
            return path


def _encloses(node: Any, start: tuple[int, int], end: tuple[int, int]) -> bool:
    if getattr(node, "lineno", None) is None or node.end_lineno is None:
        return False
    return (node.lineno, node.col_offset) <= start and end <= (node.end_lineno, node.end_col_offset)


def numbers_in(code: CodeType) -> frozenset[float]:
    """The absolute values of the literals in the file of a code object, or in the code if it has no source."""
    return _numbers(code.co_filename, code)


@functools.lru_cache(256)
def _numbers(filename: str, code: CodeType) -> frozenset[float]:
    tree = _tree(filename)
    written = [] if tree is None else [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    queue: list[Any] = [code]
    for value in queue:
        if isinstance(value, CodeType):
            queue += value.co_consts
        elif isinstance(value, tuple):
            queue += value
    return frozenset(abs(v) for v in written + queue if isinstance(v, (int, float, complex)))


@functools.lru_cache(_FILES)
def _parents(tree: ast.Module) -> dict[Any, Any]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _tree(filename: str) -> ast.Module | None:
    return _parse(filename, "".join(linecache.getlines(filename)))


@functools.lru_cache(_FILES)
def _parse(filename: str, source: str) -> ast.Module | None:
    try:
        tree = ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError):
        return None
    if tree is not None:
        tree.is_part = not os.path.exists(filename)  # type: ignore[attr-defined]  # a cell of a notebook: later ones read its names
    return tree
