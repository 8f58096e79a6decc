"""Detection of functions whose result depends on the class of a value, and thus differs for nodes and numbers.

Scalar nodes report the class of the number that they represent, and in the user's modules ``isinstance``, ``type`` and
``hasattr`` are patched to do the same (see `compgraph.interception`). Other checks see the class of the node: ``x.__class__`` of
an array, ``case np.ndarray():``, and the code of installed packages. The names in the code of a function show whether it
contains such a check. If it does, it is also called with plain numbers, and must return the same values.
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
from numpy.typing import NDArray

from compgraph.context import no_graph, run_isolated
from compgraph.frames import source_lines
from compgraph.interception import is_library
from compgraph.trees import flatten
from compgraph.values import Value

from ..numeric import DetachedGradientError
from .labeled_arrays import attach_labels, describe_labeled

# Classes that match a node, but not the number that it represents, in a ``match`` statement.
_ARRAY_CLASSES = frozenset({"ndarray", "Iterable", "Sized", "Container", "Collection", "Buffer"})
_CHECKED_NAMES = _ARRAY_CLASSES | {
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
_CHECKS = frozenset({"type", "hasattr", "isinstance"})
_MATCH_OPCODE = dis.opmap["MATCH_CLASS"]
_BOUND_KINDS = frozenset({MethodType, staticmethod, classmethod})
_MAX_DEPTH = 4  # of calls that are followed
_TupleField = type(NamedTuple("_Pair", [("first", Any)]).first)  # type: ignore[attr-defined]
_MAX_CACHED = 4096
# By the key of a function: its check, or ""; whether each call is compared; objects kept alive because the key has their ids.
_cache: dict[Any, tuple[str, bool, Any]] = {}
_compared_views: dict[Any, Any] = {}  # the functions compared because of views as another class: keys, and objects kept alive


def require_class_independence(
    operator: str,
    f: Callable[..., Any],
    leaves: Sequence[Any],
    call: Callable[..., Any],
    results: Sequence[Any],
    has_views: bool = False,
) -> None:
    """Raise if a function that checks the class of a value returns different values for nodes and for numbers.

    Each call of a user's function is compared; if the check is in an installed package, only the first call.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    f : callable
        The function.
    leaves : sequence
        The leaves of its arguments.
    call : callable
        Calls the function with such leaves.
    results : sequence
        The leaves of its result for nodes.
    has_views : bool
        Whether it viewed nodes as a subclass of ``np.ndarray``, whose protocols may compare functions of NumPy by identity. Its
        first call is compared.

    Raises
    ------
    DetachedGradientError
        If the values differ.
    """
    key, kept_alive = _key_of(f)
    check, is_compared_always = find_class_check(f)
    if has_views and not check and (key is None or key not in _compared_views):
        check = "a subclass of np.ndarray"
    if not check:
        return
    try:
        plain, repeated = run_isolated(_call_twice, call, [x.raw_value[()] if isinstance(x, Value) else x for x in leaves])
    except Exception:  # the function works on nodes alone
        return
    values = [np.asarray(x.raw_value if isinstance(x, Value) else x) for x in results]
    if _are_close_or_incomparable(plain, repeated) and not _are_close_or_incomparable(plain, values):
        raise DetachedGradientError(
            f"{operator}: the function returns {_format_values(plain)} for numbers, but {_format_values(values)} for nodes. "
            f"It uses {check}, which depends on the class of the node. Use isinstance(x, np.ndarray) or np.ndim(x) == 0"
        )
    if has_views and key is not None:
        if len(_compared_views) >= _MAX_CACHED:
            _compared_views.clear()
        _compared_views[key] = kept_alive
    if not is_compared_always:
        _cache[key] = "", False, kept_alive


def find_class_check(f: Callable[..., Any]) -> tuple[str, bool]:
    """Return the first class check in a function, or ``""``, and whether each call must be compared."""
    key, kept_alive = _key_of(f)
    if key is None:
        return "", False
    entry = _cache.get(key)
    if entry is None:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        entry = _cache[key] = *next(_class_checks(f, _MAX_DEPTH, set()), ("", False)), kept_alive
    return entry[:2]


def require_label_independence(operator: str, leaves: Sequence[Any], call: Callable[..., Any], results: Sequence[Any]) -> None:
    """Raise if a function returns different values for labeled arguments and for plain arrays of the same numbers.

    The values are compared at the arguments and at a point nearby, because different functions may agree at one point.

    Parameters
    ----------
    operator : str
        The name of the operator, for messages.
    leaves : sequence
        The leaves of its arguments, some of them labeled.
    call : callable
        Calls the function with such leaves.
    results : sequence
        The leaves of its result for nodes.

    Raises
    ------
    DetachedGradientError
        If the values differ.
    """
    plain = [x.raw_value if isinstance(x, Value) else x for x in leaves]
    perturbed = [_perturb(x) for x in plain]
    values = [np.asarray(x.raw_value if isinstance(x, Value) else x) for x in results]
    try:
        with_labels, repeated = run_isolated(_call_twice, call, plain)
        nearby, _ = run_isolated(_call_twice, call, [attach_labels(new, x) for new, x in zip(perturbed, plain, strict=True)])
        nearby_plain, _ = run_isolated(_call_twice, call, perturbed)
    except DetachedGradientError:
        raise
    except Exception:  # the function works on arrays alone
        return
    if not _have_equal_values(with_labels, repeated):  # it draws random numbers, or has state
        return
    for labeled, unlabeled in ((with_labels, values), (nearby, nearby_plain)):
        if not _have_equal_values(labeled, unlabeled):
            raise DetachedGradientError(
                f"{operator}: the function returns {_format_values(labeled)} for {describe_labeled(leaves)}, but "
                f"{_format_values(unlabeled)} for a plain array of the same numbers, which operators pass. Methods of labeled "
                "arrays may skip NaN, divide by n - 1 (std, var), align by label or iterate over columns. Pass x.to_numpy(), and "
                "use np.nansum(x) or np.std(x, ddof=1)"
            )


def _perturb(value: object) -> Any:
    """Return numbers near those of a value, as a plain array or a number; return other values unchanged."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return value
    perturbed = array * (1 + 0.01 * np.sin(1.0 + np.arange(array.size).reshape(array.shape)))
    return perturbed if array.ndim else perturbed[()]


def _have_equal_values(a: Sequence[NDArray[Any]], b: Sequence[NDArray[Any]]) -> bool:
    """Whether values have the same shapes and, up to rounding, the same numbers."""
    if [x.shape for x in a] != [x.shape for x in b]:
        return False
    return all(x.dtype.kind not in "biufc" or _are_close_or_incomparable([x], [y]) for x, y in zip(a, b, strict=True))


def _call_twice(call: Callable[..., Any], leaves: Sequence[Any]) -> list[list[NDArray[Any]]]:
    """Return the leaves of the results of two calls with the same plain arguments."""
    with no_graph(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [[np.asarray(x) for x in flatten(call(*leaves))[0]] for _ in range(2)]


def _are_close_or_incomparable(a: Sequence[NDArray[Any]], b: Sequence[NDArray[Any]]) -> bool:
    """Whether values are equal up to rounding, or cannot be compared because their shapes differ or they are not numeric."""
    if [x.shape for x in a] != [x.shape for x in b] or any(x.dtype.kind not in "biufc" for x in (*a, *b)):
        return True
    return all(np.allclose(x, y, rtol=1e-6, atol=0, equal_nan=True) for x, y in zip(a, b, strict=True))


def _format_values(values: Sequence[NDArray[Any]]) -> str:
    return ", ".join(np.array2string(x, threshold=5, separator=", ") for x in values)


def unwrap_function(f: Any) -> Any:
    """Return the Python function behind a callable, or another value unchanged, without running user code."""
    while True:
        cls = type(f)
        if issubclass(cls, functools.partial):
            f = f.func
        elif cls in _BOUND_KINDS or (cls.__module__ == "compgraph.compiled.jitted" and cls.__name__ == "Bound"):
            f = f.__func__
        elif (wrapped := _get_wrapped(f, cls)) is not None:
            f = wrapped
        elif cls is FunctionType or issubclass(cls, type):
            return f
        else:
            method = inspect.getattr_static(cls, "__call__", None)
            return method if type(method) is FunctionType else f


def _get_wrapped(f: Any, cls: type) -> Any:
    """Return the ``__wrapped__`` attribute of a callable; None without one, and for functions of this package."""
    if cls is FunctionType and source_lines.is_package_code(f.__code__.co_filename):
        return None
    try:
        attributes = object.__getattribute__(f, "__dict__")
    except AttributeError:
        return None
    return attributes.get("__wrapped__") if isinstance(attributes, dict) else None


def _code_of(function: object) -> CodeType | None:
    return function.__code__ if type(function) is FunctionType else None


def _key_of(f: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a cache key, and the objects whose ids it contains, which must stay alive; None for other functions.

    The key has the ids of the code of a user's function, of its object, and of the functions in its closure.
    """
    function = f if type(f) is FunctionType and not f.__dict__ else unwrap_function(f)
    code = _code_of(function)
    if code is None or source_lines.is_package_code(code.co_filename):
        return None, None
    if function is f and not f.__closure__:
        return id(code), code
    closure = [_code_of(unwrap_function(value)) for value in _closure_of(function).values()]
    kept_alive = (code, f.__self__ if type(f) is MethodType else None, *closure)
    return tuple(map(id, kept_alive)), kept_alive


def _closure_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the closure variables of a function, by name."""
    cells = zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _class_checks(f: object, depth: int, visited: set[CodeType]) -> Iterator[tuple[str, bool]]:
    """Yield the class checks in a function, and in functions of the same program that it calls by name."""
    function = unwrap_function(f)
    code = _code_of(function)
    if (
        code is None
        or code in visited
        or not depth
        or source_lines.is_package_code(code.co_filename)
        or _is_standard_library(function)
    ):
        return
    visited.add(code)
    is_user_code = not is_library(code.co_filename)
    for inner in _nested_codes(code):
        names = {*inner.co_names, *inner.co_freevars}
        line = f"(File {inner.co_filename!r}, line {inner.co_firstlineno}, in {inner.co_name})"
        if is_user_code and "__class__" in inner.co_names:
            yield f"x.__class__ {line}", True
        if is_user_code and names & _ARRAY_CLASSES and _MATCH_OPCODE in inner.co_code[::2]:
            yield f"case {min(names & _ARRAY_CLASSES)}() {line}", True
        if not is_user_code and names & _CHECKS and names.union(map(str, inner.co_consts)) & _CHECKED_NAMES:
            yield f"{min(names & _CHECKS)}(...) {line}", False
        variables = {**function.__globals__, **_closure_of(function)}
        values = (*[variables.get(name) for name in names], *(function.__defaults__ or ()))
        aliases = [value for value in values if _is_class_check(value)]
        if is_user_code and (aliases or "builtins" in names):
            yield f"{aliases[0].__name__ if aliases else 'builtins'} {line}", True
        if is_user_code and "AttributeError" in names:
            yield f"except AttributeError {line}", True
        for value in (f.__self__ if type(f) is MethodType else None, *[variables[name] for name in names if name in variables]):
            for callee in _callees(value, names, depth - 1):
                yield from _class_checks(callee, depth - 1, visited)


def _is_class_check(value: object) -> bool:
    """Whether a value is a builtin that reads the class of an object, for aliases of such builtins."""
    return any(value is builtin for builtin in (isinstance, type, hasattr, getattr, dir, issubclass))


def _callees(value: object, names: set[str], depth: int) -> Iterator[Any]:
    """Yield the functions that an expression such as ``model.loss(x)`` may call, given the value and attribute names."""
    if _code_of(unwrap_function(value)) is not None:
        yield value
    elif value is not None and depth and not isinstance(value, type) and not _is_standard_library(value):
        for name in names:
            attribute = inspect.getattr_static(value, name, None)
            is_stored = type(attribute) in (MemberDescriptorType, _TupleField)  # of a class with slots, or a named tuple
            if isinstance(attribute, FunctionType) and not isinstance(value, ModuleType):
                attribute = MethodType(attribute, value)
            yield from _callees(getattr(value, name, None) if is_stored else attribute, names, depth - 1)


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_standard_library(function: object) -> bool:
    """Whether a function, an object or a module belongs to Python's standard library, NumPy or SciPy."""
    module = function.__name__ if isinstance(function, ModuleType) else getattr(function, "__module__", "")
    top = str(module).partition(".")[0]
    return top in ("numpy", "scipy") or top in sys.stdlib_module_names - {"__main__"}
