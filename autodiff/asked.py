"""Functions that ask whether an argument is a Python number, which a node never is.

``np.isscalar(x)`` and ``isinstance(x, float)`` are answered by the class of an object: no node is asked, so a function goes
another way within an operator than for the number it was given. Whether a function asks so is read off the names in its
code; if it does, it is called once with the numbers themselves, and must give the same value.
"""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

import numpy as np

from compgraph import lines
from compgraph.modes import no_graph
from compgraph.nodes import Node

from .detached import DetachedGradientError
from .trees import flatten

_KINDS = frozenset(
    {"float", "int", "complex", "Number", "Real", "Complex", "generic", "number", "floating", "inexact", "float64"}
)
_DEPTH = 4  # how far calls are followed
_looked: weakref.WeakKeyDictionary[CodeType, str] = weakref.WeakKeyDictionary()  # what a code asks, or ""


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
    if not any(isinstance(x, (float, int, complex, np.generic)) or (isinstance(x, Node) and not x.shape) for x in given):
        return
    code = getattr(function_of(f), "__code__", None)
    if code is None or code in _looked or lines.is_ours(code.co_filename):
        return
    asked = _looked[code] = next(_asked(f, _DEPTH, set()), "")
    if asked:
        try:
            with no_graph(), np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                numbers = [x.plain[()] if isinstance(x, Node) else x for x in given]
                plain, again = ([np.asarray(x) for x in flatten(call(*numbers))[0]] for _ in range(2))
        except Exception:  # the function is one of nodes
            return
        values = [np.asarray(x.plain if isinstance(x, Node) else x) for x in found]
        if _same(plain, again) and not _same(plain, values):
            del _looked[code]
            raise DetachedGradientError(
                f"{operator}: the function gives {_shown(plain)} for the number it was given, and {_shown(values)} for a node. "
                f"It asks {asked}, which is never true of a node; ask np.ndim(x) == 0, or give an array"
            )


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
        elif hasattr(f, "__wrapped__") and not (hasattr(f, "__code__") and lines.is_ours(f.__code__.co_filename)):
            f = f.__wrapped__
        elif hasattr(f, "__func__"):
            f = f.__func__
        elif hasattr(f, "__code__") or not hasattr(type(f), "__call__"):  # noqa: B004  (the method itself is wanted)
            return f
        else:
            method = type(f).__call__
            return method if hasattr(method, "__code__") else f


def _asked(f: Any, depth: int, seen: set[Any]) -> Iterator[str]:
    """What a function, and those of the same program that it calls by their names, ask of their arguments' classes."""
    function = function_of(f)
    code = getattr(function, "__code__", None)
    if code is None or code in seen or not depth or lines.is_ours(code.co_filename) or _is_library(function):
        return
    seen.add(code)
    for inner in _codes(code):
        names = {*inner.co_names, *inner.co_freevars}
        place = f"(File {inner.co_filename!r}, line {inner.co_firstlineno}, in {inner.co_name})"
        if "isscalar" in names:
            yield f"np.isscalar {place}"
        if "isinstance" in names and names & _KINDS:
            yield f"isinstance(..., {min(names & _KINDS)}) {place}"
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        near = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
        for name in names:
            yield from _asked(near.get(name, function.__globals__.get(name)), depth - 1, seen)


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
    """Whether a function is of Python, NumPy or SciPy."""
    top = str(getattr(function, "__module__", "")).partition(".")[0]
    return top in ("numpy", "scipy") or top in sys.stdlib_module_names - {"__main__"}
