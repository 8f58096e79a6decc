"""Functions that check the class of a value where a node gives another result than its number.

Scalar nodes report the class of the number that they represent (`compgraph.values.reported`), and in the user's modules
``isinstance``, ``type`` and ``hasattr`` answer for the value that a node represents (`compgraph.interception.questions`). What
remains reads the class of the object itself: ``x.__class__`` of an array, ``case np.ndarray():``, and code of installed packages.
The names in the code of a function show whether it does. If so, the function is called with the numbers themselves as well, and
must give the same value.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from compgraph.context import no_graph, run_isolated
from compgraph.frames import source_lines
from compgraph.interception import is_library
from compgraph.values import Value

from ..numeric import DetachedGradientError
from .labels import labelled, named_labels
from .pytrees import flatten

# Classes for which a node of the user's code answers otherwise than the value it represents, in a ``match`` statement.
_OF_ARRAYS = frozenset({"ndarray", "Iterable", "Sized", "Container", "Collection", "Buffer"})
_KINDS = _OF_ARRAYS | {
    "float",
    "int",
    "complex",
    "generic",
    "number",
    "floating",
    "inexact",
    "float64",
    "__len__",
    "__iter__",
    "shape",
}
_QUESTIONS = frozenset({"type", "hasattr", "isinstance"})
_MATCH_CLASS = dis.opmap["MATCH_CLASS"]
_BOUND = frozenset({MethodType, staticmethod, classmethod})
_DEPTH = 4  # how far calls are followed
_TupleField = type(NamedTuple("_Pair", [("first", Any)]).first)  # type: ignore[attr-defined]
_KEPT = 4096
_looked: dict[Any, tuple[str, bool, Any]] = {}  # the check of a function, or ""; whether each call is compared


def require_same_value(operator: str, f: Callable[..., Any], given: Sequence[Any], call: Any, found: Sequence[Any]) -> None:
    """Raise if a function that checks classes of values returns different values for nodes and for numbers.

    A function of the user's is compared each time, one that calls code of an installed package the first time.

    Parameters
    ----------
    operator : str
        The name of the caller, for messages.
    f : callable
        The function.
    given : sequence
        The leaves of its arguments, as they were given.
    call : callable
        Takes these, and returns the result of the function.
    found : sequence
        The leaves of its result for nodes.

    Raises
    ------
    DetachedGradientError
        If the values differ.
    """
    asked, always = questions_of(f)
    if asked:
        try:
            plain, again = run_isolated(_twice, call, [x.raw_value[()] if isinstance(x, Value) else x for x in given])
        except Exception:  # the function works on nodes alone
            return
        values = [np.asarray(x.raw_value if isinstance(x, Value) else x) for x in found]
        if _same(plain, again) and not _same(plain, values):
            raise DetachedGradientError(
                f"{operator}: the function gives {_shown(plain)} for the numbers it was given, and {_shown(values)} for nodes. "
                f"It checks {asked}, which sees the class of the node; check isinstance(x, np.ndarray) or np.ndim(x) == 0"
            )
        if not always:
            key, kept = _key_of(f)
            _looked[key] = "", False, kept


def questions_of(f: Callable[..., Any]) -> tuple[str, bool]:
    """The check of classes in a function, or ``""``; and whether each of its calls is compared."""
    key, kept = _key_of(f)
    if key is None:
        return "", False
    known = _looked.get(key)
    if known is None:
        if len(_looked) >= _KEPT:
            _looked.clear()
        known = _looked[key] = *next(_asked(f, _DEPTH, set()), ("", False)), kept
    return known[:2]


def require_same_by_label(operator: str, leaves: Sequence[Any], call: Any, found: Sequence[Any]) -> None:
    """Raise if a function returns different values for labelled arguments and for their numbers as plain arrays.

    The values are compared where the function was called, and at numbers nearby: different functions may agree at one point.

    Parameters
    ----------
    operator : str
        The name of the caller, for messages.
    leaves : sequence
        The leaves of its arguments, some of them labelled.
    call : callable
        Takes these, and returns the result of the function.
    found : sequence
        The leaves of its result for nodes.

    Raises
    ------
    DetachedGradientError
        If the values differ.
    """
    plain = [x.raw_value if isinstance(x, Value) else x for x in leaves]
    moved = [_moved(x) for x in plain]
    values = [np.asarray(x.raw_value if isinstance(x, Value) else x) for x in found]
    try:
        labelled_values, again = run_isolated(_twice, call, plain)
        nearby, _ = run_isolated(_twice, call, [labelled(new, x) for new, x in zip(moved, plain, strict=True)])
        nearby_plain, _ = run_isolated(_twice, call, moved)
    except DetachedGradientError:
        raise
    except Exception:  # the function works on arrays alone
        return
    if not _agree(labelled_values, again):  # it draws random numbers, or has state
        return
    for one, other in ((labelled_values, values), (nearby, nearby_plain)):
        if not _agree(one, other):
            raise DetachedGradientError(
                f"{operator}: the function gives {_shown(one)} for {named_labels(leaves)}, and {_shown(other)} for its numbers "
                "as a plain array, which an operator passes. Methods that skip NaN, divide by n - 1 (std, var), align by label "
                "or go by columns differ from NumPy's: pass x.to_numpy(), and write np.nansum(x), np.std(x, ddof=1)"
            )


def _moved(value: Any) -> Any:
    """Numbers near those of a value, as a plain array or a number; other values unchanged."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return value
    moved = array * (1 + 0.01 * np.sin(1.0 + np.arange(array.size).reshape(array.shape)))
    return moved if array.ndim else moved[()]


def _agree(one: list[Any], other: list[Any]) -> bool:
    """Whether values have the same shapes and, up to rounding, the same numbers."""
    if [x.shape for x in one] != [x.shape for x in other]:
        return False
    return all(a.dtype.kind not in "biufc" or _same([a], [b]) for a, b in zip(one, other, strict=True))


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
    """The Python function behind a callable; other values unchanged. No user code runs, such as `__getattr__`."""
    while True:
        kind = type(f)
        if issubclass(kind, functools.partial):
            f = f.func
        elif kind in _BOUND or (kind.__module__ == "compgraph.compiled.jitted" and kind.__name__ == "Bound"):
            f = f.__func__
        elif (wrapped := _wrapped(f, kind)) is not None:
            f = wrapped
        elif kind is FunctionType or issubclass(kind, type):
            return f
        else:
            method = inspect.getattr_static(kind, "__call__", None)
            return method if type(method) is FunctionType else f


def _wrapped(f: Any, kind: type) -> Any:
    """The function that a callable wraps according to `functools.wraps`; None without one, and for our own callables."""
    if kind is FunctionType and source_lines.is_package_code(f.__code__.co_filename):
        return None
    try:
        held = object.__getattribute__(f, "__dict__")
    except AttributeError:
        return None
    return held.get("__wrapped__") if isinstance(held, dict) else None


def _code_of(function: Any) -> CodeType | None:
    return function.__code__ if type(function) is FunctionType else None


def _key_of(f: Any) -> tuple[Any, Any]:
    """The ids of the code of a user's function, its object and the functions it holds; and these. None for other functions."""
    function = f if type(f) is FunctionType and not f.__dict__ else function_of(f)
    code = _code_of(function)
    if code is None or source_lines.is_package_code(code.co_filename):
        return None, None
    if function is f and not f.__closure__:
        return id(code), code
    held = [_code_of(function_of(value)) for value in _held(function).values()]
    kept = (code, f.__self__ if type(f) is MethodType else None, *held)
    return tuple(map(id, kept)), kept


def _held(function: Any) -> dict[str, Any]:
    """The variables of the functions around a function that it uses."""
    cells = zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _asked(f: Any, depth: int, seen: set[Any]) -> Iterator[tuple[str, bool]]:
    """The checks of classes in the code of a function, and of functions of the same program that it calls by name."""
    function = function_of(f)
    code = _code_of(function)
    if code is None or code in seen or not depth or source_lines.is_package_code(code.co_filename) or _is_library(function):
        return
    seen.add(code)
    is_users = not is_library(code.co_filename)
    for inner in _codes(code):
        names = {*inner.co_names, *inner.co_freevars}
        place = f"(File {inner.co_filename!r}, line {inner.co_firstlineno}, in {inner.co_name})"
        if is_users and "__class__" in inner.co_names:
            yield f"x.__class__ {place}", True
        if is_users and names & _OF_ARRAYS and _MATCH_CLASS in inner.co_code[::2]:
            yield f"case {min(names & _OF_ARRAYS)}() {place}", True
        if not is_users and names & _QUESTIONS and names.union(map(str, inner.co_consts)) & _KINDS:
            yield f"{min(names & _QUESTIONS)}(...) {place}", False
        near = {**function.__globals__, **_held(function)}
        aliases = [
            value for value in (*[near.get(name) for name in names], *(function.__defaults__ or ())) if _is_question(value)
        ]
        if is_users and (aliases or "builtins" in names):
            yield f"{aliases[0].__name__ if aliases else 'builtins'} {place}", True
        if is_users and "AttributeError" in names:
            yield f"except AttributeError {place}", True
        for value in (f.__self__ if type(f) is MethodType else None, *[near[name] for name in names if name in near]):
            for reached in _reached(value, names, depth - 1):
                yield from _asked(reached, depth - 1, seen)


def _is_question(value: Any) -> bool:
    """Whether a value is a builtin function that reads the class of an object, under a name of the user's."""
    return any(value is builtin for builtin in (isinstance, type, hasattr, getattr, dir, issubclass))


def _reached(value: Any, names: set[str], depth: int) -> Iterator[Any]:
    """A value, and of an object or module its attributes of some names, and theirs: what ``model.loss(x)`` may call."""
    if _code_of(function_of(value)) is not None:
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
