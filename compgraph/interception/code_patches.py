"""Code patches: `patch_code` replaces the code of a Python function by code that looks for nodes among the arguments.

A function is bound in many places: in the module that defines it, where it was imported by name, in classes, in pickles. It
cannot be replaced in all of them, but an assignment to ``__code__`` reaches all of them, and preserves identity, signature and
pickles. The new code checks the classes of the arguments in a few tenths of a microsecond, and calls a copy of the function with
the old code.
"""

from __future__ import annotations

import importlib
import inspect
import re
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..context import reset_after_fork
from ..frames import add_internal_code
from ..values import Value

Args = tuple[Any, ...]
Options = dict[str, Any]
Handler = Callable[[Any, Any, Args, Options], Any]  # handler(function, original, args, kwargs)


class _Classes(set[type]):
    """A set that can be a constant in a code object: code objects are hashed, and with them all their constants."""

    __hash__ = object.__hash__  # type: ignore[assignment]


# Classes whose instances contain no node. Classes of SciPy are added on first use, so that `self` is inspected once.
NODE_FREE_TYPES = _Classes(
    {
        *(bool, int, float, complex, str, bytes, slice, range, type(None), type, type(Ellipsis), np.dtype),
        *(np.ndarray, np.float64, np.float32, np.int64, np.bool_, np.complex128),
        *(FunctionType, BuiltinFunctionType, MethodType),
    }
)
_MAX_DEPTH = 3  # of nested lists and tuples in which nodes are searched

_lock = reset_after_fork(threading.RLock())
_originals: dict[FunctionType, FunctionType] = {}
_patches: dict[FunctionType, CodeType] = {}  # the code with which each function looks for nodes
_is_on = True

_TEMPLATE = """
def make({free}):
    def patched(*args, **kwargs):
        {free_used}
        node_free = "node_free"
        class_of = "class_of"
        original = "original"
        dispatch = "dispatch"
        sequence = "sequence"
        each = "each"
        for value in args:
            if (kind := class_of(value)) not in node_free:
                if kind is sequence and node_free.issuperset(each(class_of, value)):
                    continue
                return dispatch(args, kwargs)
        if kwargs:
            for value in kwargs.values():
                if class_of(value) not in node_free:
                    return dispatch(args, kwargs)
        return original(*args, **kwargs)
    return patched
"""


def patch_code(function: FunctionType, handler: Handler, always: bool = False, replace: bool = False) -> None:
    """Let a handler run the calls of `function` that have nodes among the arguments.

    Parameters
    ----------
    function : function
        Written in Python, of any module.
    handler : callable
        Called as ``handler(function, original, args, kwargs)`` in place of the function if a node is among the arguments, also
        within lists and tuples; ``original`` is a function with the old code.
    always : bool
        Whether the handler runs calls without nodes as well, because a function among the arguments may return nodes.
    replace : bool
        Whether to replace an earlier handler; by default the first one is kept.
    """
    with _lock:
        if function in _originals and not replace:
            return
        original = _originals.get(function) or _copy_of(function)

        def dispatch(args: Args, kwargs: Options) -> Any:
            if always or any(map(argument_has_node, args)) or any(map(argument_has_node, kwargs.values())):
                return handler(function, original, args, kwargs)
            return original(*args, **kwargs)

        code = _patched_code(function, frozenset() if always else NODE_FREE_TYPES, original, dispatch)
        _originals[function], _patches[function] = original, code
        add_internal_code(code)
        _set_code(function, code)


def replace_code(function: FunctionType, code: CodeType) -> None:
    """Replace the code of a function by code with the same free variables, while code patches are on."""
    with _lock:
        if function not in _originals:
            _originals[function], _patches[function] = _copy_of(function), code
            _set_code(function, code)


def enable_code_patches(is_on: bool) -> None:
    """Turn all code patches on or off; off restores the own code of every patched function."""
    global _is_on
    with _lock:
        _is_on = is_on
        for function, code in _patches.items():
            _set_code(function, code)


def _set_code(function: FunctionType, code: CodeType) -> None:
    """Give a function the patched code if patches are on, else its own."""
    original = _originals[function]
    if _is_on:
        function.__dict__.setdefault("__signature__", inspect.signature(original))
        function.__code__ = code
    else:
        function.__code__ = original.__code__
        if "__signature__" not in original.__dict__:
            function.__dict__.pop("__signature__", None)


def unpatched(function: Any) -> Any:
    """A function with the code that `function` had before `patch_code`; `function` itself if it was not patched."""
    return _originals.get(function, function)


def argument_has_node(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Whether a value is or contains a node: a list, tuple or object array, or an object of SciPy created from nodes."""
    cls = type(value)
    if cls is list or cls is tuple:
        if NODE_FREE_TYPES.issuperset(map(type, value)):
            return False
        return depth > 0 and any(type(v) not in NODE_FREE_TYPES and argument_has_node(v, depth - 1) for v in value)
    if isinstance(value, Value):
        return True
    if cls is np.ndarray:
        return value.dtype == object and any(isinstance(v, Value) for v in value.ravel().tolist())
    if getattr(cls, "_holds_node", False):  # see `scipy.sparse.node_matrices`
        return True
    if cls.__module__.startswith("scipy."):
        NODE_FREE_TYPES.add(cls)
    return False


def _copy_of(function: FunctionType) -> FunctionType:
    """Copy a function with its code, attributes and names."""
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy


def _patched_code(
    function: FunctionType, node_free: set[type] | frozenset[type], original: FunctionType, dispatch: Callable[..., Any]
) -> CodeType:
    """The code that looks for nodes. Its helpers are constants of the code, since its globals are those of `function`."""
    old = function.__code__
    free = old.co_freevars  # Python requires that new code has as many as the old
    source = _TEMPLATE.format(free=", ".join(free), free_used="; ".join(free) or "pass")
    if inspect.isgeneratorfunction(function):  # the new code has to be that of a generator, too
        source = re.sub(r"return (\w+\(.*args\))", r"return (yield from \1)", source)
    namespace: dict[str, Any] = {}
    exec(compile(source, old.co_filename, "exec"), namespace)
    code: CodeType = namespace["make"](*free).__code__
    objects: dict[str, Any] = {"node_free": node_free, "class_of": type, "original": original, "dispatch": dispatch}
    objects |= {"sequence": list if node_free else None, "each": map}  # where the handler runs all calls, no list is skipped
    constants = tuple([objects.get(c, c) if type(c) is str else c for c in code.co_consts])
    return code.replace(co_consts=constants, co_name=old.co_name, co_qualname=old.co_qualname, co_firstlineno=old.co_firstlineno)


_FFT_BACKENDS = ("_basic_backend", "_realtransforms_backend", "_fftlog_backend")


def python_implementation(function: Any) -> FunctionType | None:
    """The Python function that runs when a public one is called: itself, or that of SciPy's FFT backend; None if it is in C.

    ``scipy.fft.fft`` is a multimethod, an object in C that dispatches each call to a backend: it has no code to replace.
    SciPy's default backend has a Python function of the same name and parameters, which is patched. So no backend is registered,
    and users' backends keep their precedence in all threads. (A registered backend would take precedence in every call, and
    could not be removed without removing those of others.)
    """
    if isinstance(function, FunctionType):
        return function
    if type(function).__name__ != "_Function" or not str(getattr(function, "__module__", "")).startswith("scipy.fft"):
        return None
    for backend in _FFT_BACKENDS:
        implementation = getattr(importlib.import_module(f"scipy.fft.{backend}"), function.__name__, None)
        if isinstance(implementation, FunctionType):
            return implementation
    return None
