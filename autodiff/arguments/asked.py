"""Functions that ask whether an argument is a Python number, which a node never is.

``np.isscalar(x)`` and ``isinstance(x, float)`` are answered by the class of an object: no node is asked, so a function goes
another way within an operator than for the number it was given. Whether a function asks so is read off the names in its
code; if it does, it is called once with the numbers themselves, and must give the same value.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from compgraph.graph import Node
from compgraph.graph.context import apart, no_graph
from compgraph.graph.interpreter import source_lines

from ..numeric import DetachedGradientError
from .pytrees import flatten

_KINDS = frozenset(
    {"float", "int", "complex", "Number", "Real", "Complex", "generic", "number", "floating", "inexact", "float64"}
)
_DEPTH = 4  # how far calls are followed
_TupleField = type(NamedTuple("_Pair", [("first", Any)]).first)  # type: ignore[attr-defined]
_KEPT = 4096
_looked: dict[Any, str] = {}  # what a function asks, or ""


def require_same_value(operator: str, f: Callable[..., Any], given: Sequence[Any], call: Any, found: Sequence[Any]) -> None:
    """Raise if a function of Python numbers gives another value for nodes, and asks for numbers; once for each function.

    Parameters
    ----------
    operator : str
        Who calls, for messages.
    f : callable
        The function.
    given : sequence
        The leaves of its arguments, as they were given.
    call : callable
        What takes these, and returns the result of the function.
    found : sequence
        The leaves of its result for nodes.

    Raises
    ------
    DetachedGradientError
        If the values differ.
    """
    for x in given:  # a plain loop, since every operator runs it
        if x.__class__ is not np.ndarray and (isinstance(x, (float, int, complex, np.generic)) or np.shape(x) == ()):
            break
    else:
        return
    key = _key_of(f)
    if key is None or key in _looked:
        return
    if len(_looked) >= _KEPT:
        _looked.clear()
    asked = _looked[key] = next(_asked(f, _DEPTH, set()), "")
    if asked:
        try:
            plain, again = apart(_twice, call, [x.plain[()] if isinstance(x, Node) else x for x in given])
        except Exception:  # the function works on nodes alone
            return
        values = [np.asarray(x.plain if isinstance(x, Node) else x) for x in found]
        if _same(plain, again) and not _same(plain, values):
            del _looked[key]
            raise DetachedGradientError(
                f"{operator}: the function gives {_shown(plain)} for the number it was given, and {_shown(values)} for a node. "
                f"It asks {asked}, which is never true of a node; ask np.ndim(x) == 0, or give an array"
            )


def _twice(call: Callable[..., Any], numbers: Sequence[Any]) -> list[Any]:
    """The values of two calls with the same plain numbers."""
    with no_graph(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [[np.asarray(x) for x in flatten(call(*numbers))[0]] for _ in range(2)]


def _same(one: list[Any], other: list[Any]) -> bool:
    """Whether values are the same but for rounding; those of other shapes are not compared."""
    if [x.shape for x in one] != [x.shape for x in other] or any(x.dtype.kind not in "biufc" for x in (*one, *other)):
        return True
    return all(np.allclose(a, b, rtol=1e-6, atol=0, equal_nan=True) for a, b in zip(one, other, strict=True))


def _shown(values: list[Any]) -> str:
    return ", ".join(np.array2string(x, threshold=5, separator=", ") for x in values)


def function_of(f: Any) -> Any:
    """The Python function behind a callable."""
    while True:
        if isinstance(f, functools.partial):
            f = f.func
        elif hasattr(f, "__wrapped__") and not (hasattr(f, "__code__") and source_lines.is_ours(f.__code__.co_filename)):
            f = f.__wrapped__
        elif hasattr(f, "__func__"):
            f = f.__func__
        elif hasattr(f, "__code__") or not hasattr(type(f), "__call__"):  # noqa: B004  (the method itself is wanted)
            return f
        else:
            method = type(f).__call__
            return method if hasattr(method, "__code__") else f


def _key_of(f: Any) -> Any:
    """What tells a function from others: its code, and that of the functions it holds; None for one that is not the user's."""
    function = function_of(f)
    code = getattr(function, "__code__", None)
    if code is None or source_lines.is_ours(code.co_filename):
        return None
    held = [getattr(function_of(value), "__code__", None) for value in _held(function).values()]
    return code, id(getattr(f, "__self__", None)), *held


def _held(function: Any) -> dict[str, Any]:
    """The variables of the functions around a function that it uses."""
    cells = zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _asked(f: Any, depth: int, seen: set[Any]) -> Iterator[str]:
    """What a function, and those of the same program that it calls by their names, ask of their arguments' classes."""
    function = function_of(f)
    code = getattr(function, "__code__", None)
    if code is None or code in seen or not depth or source_lines.is_ours(code.co_filename) or _is_library(function):
        return
    seen.add(code)
    for inner in _codes(code):
        names = {*inner.co_names, *inner.co_freevars}
        place = f"(File {inner.co_filename!r}, line {inner.co_firstlineno}, in {inner.co_name})"
        if "isscalar" in names:
            yield f"np.isscalar {place}"
        if "isinstance" in names and names & _KINDS:
            yield f"isinstance(..., {min(names & _KINDS)}) {place}"
        near = {**function.__globals__, **_held(function)}
        for value in (getattr(f, "__self__", None), *[near[name] for name in names if name in near]):
            for reached in _reached(value, names, depth - 1):
                yield from _asked(reached, depth - 1, seen)


def _reached(value: Any, names: set[str], depth: int) -> Iterator[Any]:
    """A value, and of an object or module its attributes of some names, and theirs: what ``model.loss(x)`` may call."""
    if hasattr(function_of(value), "__code__"):
        yield value
    elif value is not None and depth and not isinstance(value, type) and not _is_library(value):
        for name in names:
            found = inspect.getattr_static(value, name, None)
            is_stored = type(found) in (MemberDescriptorType, _TupleField)  # of a class with slots, or a named tuple
            if isinstance(found, FunctionType) and not isinstance(value, ModuleType):
                found = MethodType(found, value)
            yield from _reached(getattr(value, name, None) if is_stored else found, names, depth - 1)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_library(function: Any) -> bool:
    """Whether a function, an object or a module is of Python, NumPy or SciPy."""
    home = function.__name__ if isinstance(function, ModuleType) else getattr(function, "__module__", "")
    top = str(home).partition(".")[0]
    return top in ("numpy", "scipy") or top in sys.stdlib_module_names - {"__main__"}
