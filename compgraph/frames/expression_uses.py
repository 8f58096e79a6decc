"""The use of a call's value in the source: the variable it is assigned to; whether it is shown, returned or dropped."""

from __future__ import annotations

import ast
import functools
from types import CodeType
from typing import Any

from .expressions import expression, parents, tree_of

_DISPLAY_AND_TEST_FUNCTIONS = frozenset({"print", "str", "repr", "format", "pprint", "bool", "isnan", "isfinite", "isclose"})
_GRADIENT_FUNCTIONS = frozenset({"gradient", "gradients", "jacobian"})


def classify_use(code: CodeType, instruction: int) -> str:
    """Classify how a statement uses the value of the call at an instruction.

    Parameters
    ----------
    code : code object
        The code of the frame.
    instruction : int
        The instruction of the call.

    Returns
    -------
    str
        ``"shown"`` if the value becomes text, or is compared or tested. ``"dropped"`` if the statement assigns nothing, such as
        ``results.append(float(x))``, or only names that are shown. ``"returned"`` if it is the result of a function. ``""`` if it
        may enter a computation, or if there is no source.
    """
    return _classify_call(code.co_filename, code, instruction) if isinstance(code, CodeType) else ""


@functools.lru_cache(1024)
def _classify_call(filename: str, code: CodeType, instruction: int) -> str:  # code objects of different files can be equal
    tree, node = tree_of(filename), expression(code, instruction)
    return "" if tree is None or node is None else _classify(node, parents(tree), frozenset())


def _classify(node: object, parent_of: dict[Any, Any], visited: frozenset[str]) -> str:
    """The use of the value of an expression; assigned names are followed to their uses."""
    is_operand = False
    while (parent := parent_of.get(node)) is not None:
        if isinstance(parent, (ast.JoinedStr, ast.FormattedValue, ast.Compare, ast.Assert)):
            return "shown"
        if isinstance(parent, (ast.If, ast.While, ast.IfExp)) and node is parent.test:
            return "shown"
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod) and _is_text(parent.left):
            return "shown"
        if isinstance(parent, ast.Call):
            name = getattr(parent.func, "id", getattr(parent.func, "attr", None))
            if name in _DISPLAY_AND_TEST_FUNCTIONS:
                return "shown"
            if name in _GRADIENT_FUNCTIONS:
                return ""
        is_operand = is_operand or isinstance(parent, (ast.BinOp, ast.Call))
        if isinstance(parent, ast.Expr):
            return "dropped"
        if isinstance(parent, ast.Return):
            return "" if is_operand else "returned"
        if isinstance(parent, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return _classify_names(parent, parent_of, visited)
        if isinstance(parent, ast.stmt):
            return ""
        node = parent
    return ""


def _classify_names(statement: Any, parent_of: dict[Any, Any], visited: frozenset[str]) -> str:
    """The use of the names that a statement assigns, within the enclosing function or module."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    parts = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts):
        return ""
    names = {part.id for part in parts if isinstance(part, ast.Name)} - visited
    scope = statement
    while scope in parent_of and not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        scope = parent_of[scope]
    reads = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]
    if not reads and isinstance(scope, ast.Module) and getattr(scope, "is_cell", False):
        return ""  # later cells of the notebook may read the name
    uses = {_classify(read, parent_of, visited | names) for read in reads}
    return "dropped" if uses <= {"shown", "dropped"} else "returned" if "" not in uses else ""


def _is_text(left: ast.expr) -> bool:
    return isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and isinstance(left.value, str))


def literals_in(code: CodeType) -> frozenset[float]:
    """The absolute values of the number literals in the file of a code object, and of the numbers among its constants."""
    return _literals(code.co_filename, code)


@functools.lru_cache(256)
def _literals(filename: str, code: CodeType) -> frozenset[float]:  # code objects of different files can be equal
    tree = tree_of(filename)
    literals = [] if tree is None else [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    queue: list[Any] = [code]
    for value in queue:
        if isinstance(value, CodeType):
            queue += value.co_consts
        elif isinstance(value, tuple):
            queue += value
    return frozenset(abs(v) for v in literals + queue if isinstance(v, (int, float, complex)))


def assigned_name(code: CodeType | str | None, instruction: int) -> str | None:
    """Return the name to which a line assigns the value of its call; None without such a name or source.

    Only the value of the whole expression has a name: in ``w = np.tanh(cg.variable(1.0))`` the variable has none.

    Parameters
    ----------
    code : code object, str or None
        The code of the frame. An unpickled node stores the text of the line instead, or None, and has no name.
    instruction : int
        The instruction of the call.

    Returns
    -------
    str or None

    Examples
    --------
    >>> import sys
    >>> class Named:
    ...     def __init__(self):
    ...         frame = sys._getframe(1)
    ...         print(assigned_name(frame.f_code, frame.f_lasti))
    >>> weight, bias = Named(), Named()
    weight
    bias
    """
    if not isinstance(code, CodeType):
        return None
    tree, value = tree_of(code.co_filename), expression(code, instruction)
    if tree is None or value is None:
        return None
    parent_of = parents(tree)
    statement, position = parent_of.get(value), None
    if isinstance(statement, ast.Tuple):  # weight, bias = Named(), Named()
        position, statement = statement.elts.index(value), parent_of.get(statement)
    if isinstance(statement, ast.AnnAssign):
        target: Any = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    if position is not None:
        if not isinstance(target, ast.Tuple) or len(target.elts) <= position:
            return None
        target = target.elts[position]
    return target.id if isinstance(target, ast.Name) else None
