"""The expression in the source that a frame is at, and the callable that it calls.

Instructions keep the lines and columns that they stand for. The syntax tree of the file shows the rest, so no bytecode is read.
Within an operator what an answer decides is loud either way: code that takes a number raises or warns.
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

_FILES = 32  # files whose source is kept parsed
_SHARED = frozenset({"<string>", "<stdin>"})  # names of code from different sources: ``exec`` and ``python -c``
_KEPT = 4096  # instructions whose expressions are remembered


class _Unknown:
    """What stands for a callable that cannot be told."""

    def __repr__(self) -> str:
        return "unknown"


unknown: Final = _Unknown()
_expressions: dict[tuple[int, int], tuple[CodeType, Any]] = {}  # by the id of the code, which is kept alive, and instruction


def expression(code: CodeType, instruction: int) -> Any:
    """The innermost node of the syntax tree that encloses what an instruction stands for; None where there is no source."""
    known = _expressions.get((id(code), instruction))  # code objects are compared by content, which takes long
    if known is None:
        if len(_expressions) >= _KEPT:
            _expressions.clear()
        known = _expressions[id(code), instruction] = code, _find(code, instruction)
    return known[1]


def has_source(code: CodeType, instruction: int) -> bool:
    """Whether the source of an instruction can be read."""
    return expression(code, instruction) is not None


def callee(frame: FrameType) -> Any:
    """The callable that a frame is calling, where that is written as a name or as attributes of one.

    The answer is what the name stands for *now*. Where the call's own arguments assign to a name (``f(f := g)``), it is
    `unknown`.

    Parameters
    ----------
    frame : frame
        A frame at work: usually the one that called a special method such as ``__float__``, by way of code in C.

    Returns
    -------
    callable or None or unknown
        None where the frame is at no call: an operator, a subscript, a loop. `unknown` where it is at a call, but not of a name:
        of a result, an element, what a property gives; and in code without source or positions.
    """
    node = expression(frame.f_code, frame.f_lasti)
    if node is None:
        return unknown
    if not isinstance(node, ast.Call):
        return None
    found = unknown if _assigns_names(node) else _value(node.func, frame)
    # If a Python function were called, its frame would be running, not this one: the name must have been rebound.
    is_python = type(found.__func__ if type(found) is MethodType else found) is FunctionType
    return unknown if is_python or not callable(found) else found


@functools.lru_cache(_KEPT)
def _assigns_names(node: ast.Call) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def method_called(frame: FrameType) -> str | None:
    """The name of the attribute that a frame is calling, whatever it is an attribute of; None where it calls none."""
    node = expression(frame.f_code, frame.f_lasti)
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The present value of a name or of attributes of one; `unknown` for other expressions."""
    if isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, frame), node.attr)
    if not isinstance(node, ast.Name):
        return unknown
    name, code = node.id, frame.f_code
    # Before Python 3.13 a function keeps what `f_locals` has held, so it is read for local names alone.
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
    if not is_function or name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
        if name in frame.f_locals:
            return frame.f_locals[name]
        if is_function:
            return unknown
    return frame.f_globals[name] if name in frame.f_globals else frame.f_builtins.get(name, unknown)


# Kinds of attributes of a class whose binding to an instance runs nobody's code.
_SAFE = (
    BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, GetSetDescriptorType, MemberDescriptorType,
    MethodDescriptorType, WrapperDescriptorType, classmethod, staticmethod, type(functools.lru_cache(abs)),
)  # fmt: skip


def _attribute(owner: Any, name: str) -> Any:
    """An attribute, if reading it again runs no Python code (no property, no ``__getattr__``); else `unknown`."""
    kind = type(owner)
    if kind is ModuleType:
        return owner.__dict__.get(name, unknown)
    if issubclass(kind, ModuleType) and kind.__module__.startswith("compgraph."):
        return getattr(owner, name, unknown)  # a module of ours in place of NumPy
    if owner is unknown or type(kind.__getattribute__) is not WrapperDescriptorType:
        return unknown
    static = inspect.getattr_static(owner, name, unknown)
    if static is unknown or (hasattr(type(static), "__get__") and not isinstance(static, _SAFE)):
        return unknown
    return getattr(owner, name, unknown)


def _find(code: CodeType, instruction: int) -> ast.AST | None:
    positions = list(code.co_positions())
    tree = tree_of(code.co_filename)
    if tree is None or instruction // 2 >= len(positions):
        return None
    line, last, start, end = positions[instruction // 2]
    if line is None or last is None or start is None or end is None:
        return None
    return _innermost(tree, (line, start), (last, end))


def _innermost(tree: ast.AST, start: tuple[int, int], end: tuple[int, int]) -> ast.AST:
    """The innermost node of a syntax tree that encloses a part of the source."""
    found = tree
    while True:
        for child in ast.iter_child_nodes(found):
            is_placed = getattr(child, "lineno", None) is not None  # a comprehension and arguments have no position
            # Decorators stand before the position of a function.
            parts = [child, *getattr(child, "decorator_list", ())] if is_placed else ast.walk(child)
            if any(_encloses(part, start, end) for part in parts):
                found = child
                break
        else:
            return found


def _encloses(node: Any, start: tuple[int, int], end: tuple[int, int]) -> bool:
    if getattr(node, "lineno", None) is None or node.end_lineno is None:
        return False
    return (node.lineno, node.col_offset) <= start and end <= (node.end_lineno, node.end_col_offset)


@functools.lru_cache(_FILES)
def parents(tree: ast.Module) -> dict[Any, Any]:
    """By each node of a syntax tree, the one around it."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def tree_of(filename: str) -> ast.Module | None:
    """The syntax tree of a file; None if it cannot be read."""
    return None if filename in _SHARED else _parse(filename, "".join(linecache.getlines(filename)))


@functools.lru_cache(_FILES)
def _parse(filename: str, source: str) -> ast.Module | None:
    try:
        tree = ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError):
        return None
    if tree is not None:
        tree.is_part = not os.path.exists(filename)  # type: ignore[attr-defined]  # a cell of a notebook: later ones read its names
    return tree
