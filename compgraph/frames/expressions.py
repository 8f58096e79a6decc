"""The source expression that a frame executes: the callable that it calls, and the use of the call's value.

Instructions keep their lines and columns, and the syntax tree of the file supplies the rest. No bytecode is decoded.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

_MAX_FILES = 32  # parsed files in the cache
_SHARED_FILENAMES = frozenset({"<string>", "<stdin>"})  # file names that several sources share: ``exec`` and ``python -c``
_MAX_INSTRUCTIONS = 4096  # cached instructions


class _Unknown:
    """The type of `unknown`, a callable that the source does not determine."""

    def __repr__(self) -> str:
        return "unknown"


unknown: Final = _Unknown()
_expressions: dict[tuple[int, int], tuple[CodeType, Any]] = {}  # keyed by the id of the code, which the value keeps alive


def expression(code: CodeType, instruction: int) -> Any:
    """The innermost syntax node that encloses an instruction's position; None without source."""
    cached = _expressions.get((id(code), instruction))  # by id, because code objects compare by content, which is slow
    if cached is None:
        if len(_expressions) >= _MAX_INSTRUCTIONS:
            _expressions.clear()
        cached = _expressions[id(code), instruction] = code, _find_node(code, instruction)
    return cached[1]


def has_source(code: CodeType, instruction: int) -> bool:
    """Whether the source of an instruction is available."""
    return expression(code, instruction) is not None


def callee(frame: FrameType) -> Any:
    """Return the callable that a frame is calling, if the source names it.

    The name is looked up in its present scope. If the arguments of the call assign names (``f(f := g)``), the result is
    `unknown`.

    Parameters
    ----------
    frame : frame
        A running frame, usually the caller of a special method such as ``__float__`` through C code.

    Returns
    -------
    callable or None or unknown
        None if the frame is not at a call: an operator, a subscript, a loop. `unknown` if the called expression is not a name or
        attributes of one, or if the code has no source or positions.
    """
    node = expression(frame.f_code, frame.f_lasti)
    if node is None:
        return unknown
    if not isinstance(node, ast.Call):
        return None
    candidate = unknown if _assigns_names(node) else _value(node.func, frame)
    # A Python function would run in a frame of its own, so a name with such a value has been rebound.
    is_python = type(candidate.__func__ if type(candidate) is MethodType else candidate) is FunctionType
    return unknown if is_python or not callable(candidate) else candidate


@functools.lru_cache(_MAX_INSTRUCTIONS)
def _assigns_names(node: ast.Call) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def method_called(frame: FrameType) -> str | None:
    """The name of the attribute that a frame is calling; None if it calls none."""
    node = expression(frame.f_code, frame.f_lasti)
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The present value of a name, or of attributes of a name; `unknown` for other expressions."""
    if isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, frame), node.attr)
    if not isinstance(node, ast.Name):
        return unknown
    name, code = node.id, frame.f_code
    # Before Python 3.13 `f_locals` keeps its values alive in the frame, so it is read only for local names.
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
    if not is_function or name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
        if name in frame.f_locals:
            return frame.f_locals[name]
        if is_function:
            return unknown
    return frame.f_globals[name] if name in frame.f_globals else frame.f_builtins.get(name, unknown)


# Descriptors whose binding to an instance runs no Python code.
_SAFE_DESCRIPTORS = (
    BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, GetSetDescriptorType, MemberDescriptorType,
    MethodDescriptorType, WrapperDescriptorType, classmethod, staticmethod, type(functools.lru_cache(abs)),
)  # fmt: skip


def _attribute(owner: object, name: str) -> Any:
    """An attribute, if reading it runs no Python code (a property, ``__getattr__``); otherwise `unknown`."""
    cls = type(owner)
    if cls is ModuleType:
        return owner.__dict__.get(name, unknown)
    if issubclass(cls, ModuleType) and cls.__module__.startswith("compgraph."):
        return getattr(owner, name, unknown)  # a module of this package in place of NumPy
    if owner is unknown or type(cls.__getattribute__) is not WrapperDescriptorType:
        return unknown
    static = inspect.getattr_static(owner, name, unknown)
    if static is unknown or (hasattr(type(static), "__get__") and not isinstance(static, _SAFE_DESCRIPTORS)):
        return unknown
    return getattr(owner, name, unknown)


def _find_node(code: CodeType, instruction: int) -> ast.AST | None:
    positions = list(code.co_positions())
    tree = tree_of(code.co_filename)
    if tree is None or instruction // 2 >= len(positions):
        return None
    line, last, start, end = positions[instruction // 2]
    if line is None or last is None or start is None or end is None:
        return None
    return _innermost(tree, (line, start), (last, end))


def _innermost(tree: ast.AST, start: tuple[int, int], end: tuple[int, int]) -> ast.AST:
    """The innermost node of a syntax tree that encloses a range of the source."""
    innermost_node = tree
    while True:
        for child in ast.iter_child_nodes(innermost_node):
            has_position = getattr(child, "lineno", None) is not None  # a comprehension and arguments have no position
            # Decorators precede the position of a function.
            parts = [child, *getattr(child, "decorator_list", ())] if has_position else ast.walk(child)
            if any(_encloses(part, start, end) for part in parts):
                innermost_node = child
                break
        else:
            return innermost_node


def _encloses(node: Any, start: tuple[int, int], end: tuple[int, int]) -> bool:
    if getattr(node, "lineno", None) is None or node.end_lineno is None:
        return False
    return (node.lineno, node.col_offset) <= start and end <= (node.end_lineno, node.end_col_offset)


@functools.lru_cache(_MAX_FILES)
def parents(tree: ast.Module) -> dict[Any, Any]:
    """Map each node of a syntax tree to its parent."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def tree_of(filename: str) -> ast.Module | None:
    """The syntax tree of a file; None if it cannot be parsed."""
    return None if filename in _SHARED_FILENAMES else _parse(filename, "".join(linecache.getlines(filename)))


@functools.lru_cache(_MAX_FILES)
def _parse(filename: str, source: str) -> ast.Module | None:
    try:
        tree = ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError):
        return None
    if tree is not None:
        tree.is_cell = not os.path.exists(filename)  # type: ignore[attr-defined]  # a cell of a notebook: later ones read its names
    return tree


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
