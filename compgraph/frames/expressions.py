"""The source expression at which a frame is, and the callable that it calls.

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
            is_placed = getattr(child, "lineno", None) is not None  # a comprehension and arguments have no position
            # Decorators precede the position of a function.
            parts = [child, *getattr(child, "decorator_list", ())] if is_placed else ast.walk(child)
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
