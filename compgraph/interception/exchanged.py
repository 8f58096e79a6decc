"""`exchange` gives a Python function other code, which looks for nodes among the arguments; the function object stays.

A function is bound in many places: in the module that defines it, where it was imported by name, in classes, in pickles. It
cannot be replaced in all of them; but giving it other code is one assignment, and identity, signature, pickles and every
binding stay. The new code looks at the classes of its arguments, which costs some tenths of a microsecond, and calls the old
code, which a second function keeps.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..context import reset_after_fork
from ..values import Value

Answer = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


class _Classes(set[type]):
    """A set that can be a constant in a code object: code objects are hashed, and with them all their constants."""

    __hash__ = object.__hash__  # type: ignore[assignment]


# Classes whose instances hold no node. Those of SciPy are added when they are first met, so that `self` is looked at once.
PLAIN = _Classes(
    {
        *(bool, int, float, complex, str, bytes, slice, range, type(None), type, type(Ellipsis), np.dtype),
        *(np.ndarray, np.float64, np.float32, np.int64, np.bool_, np.complex128),
        *(FunctionType, BuiltinFunctionType, MethodType),
    }
)
_DEPTH = 3  # nodes are looked for in lists and tuples nested so deep

_lock = reset_after_fork(threading.RLock())
_originals: dict[FunctionType, FunctionType] = {}
_codes: dict[FunctionType, CodeType] = {}  # the code with which each looks for nodes
_is_on = True

_TEMPLATE = """
def make({free}):
    def asking(*args, **kwargs):
        {free_used}
        plain = "plain"
        class_of = "class_of"
        original = "original"
        answer = "answer"
        sequence = "sequence"
        each = "each"
        for value in args:
            if (kind := class_of(value)) not in plain:
                if kind is sequence and plain.issuperset(each(class_of, value)):
                    continue
                return answer(args, kwargs)
        if kwargs:
            for value in kwargs.values():
                if class_of(value) not in plain:
                    return answer(args, kwargs)
        return original(*args, **kwargs)
    return asking
"""


def exchange(function: FunctionType, answer: Answer, always: bool = False, again: bool = False) -> None:
    """Let another function answer the calls of `function` that have nodes among the arguments.

    Parameters
    ----------
    function : function
        Written in Python, of any module.
    answer : callable
        Called as ``answer(function, original, args, kwargs)`` in place of the function if a node is among the arguments,
        also within lists and tuples; ``original`` is a function with the old code.
    always : bool
        Whether it answers calls without nodes as well: a function among the arguments may bring nodes by its closure.
    again : bool
        Whether it replaces an answer that was given before; else the first one stays.
    """
    with _lock:
        if function in _originals and not again:
            return
        original = _originals.get(function) or _copy_of(function)

        def answered(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if always or any(map(holds_node, args)) or any(map(holds_node, kwargs.values())):
                return answer(function, original, args, kwargs)
            return original(*args, **kwargs)

        code = _asking(function, frozenset() if always else PLAIN, original, answered)
        _originals[function], _codes[function] = original, code
        _set(function, code)


def switch(is_on: bool) -> None:
    """Turn the search for nodes on or off: off, every exchanged function has its own code again."""
    global _is_on
    with _lock:
        _is_on = is_on
        for function, code in _codes.items():
            _set(function, code)


def _set(function: FunctionType, code: CodeType) -> None:
    """Give a function the code that looks for nodes, or its own, as the switch is."""
    original = _originals[function]
    if _is_on:
        function.__dict__.setdefault("__signature__", inspect.signature(original))
        function.__code__ = code
    else:
        function.__code__ = original.__code__
        if "__signature__" not in original.__dict__:
            function.__dict__.pop("__signature__", None)


def original_of(function: Any) -> Any:
    """A function with the code that `function` had before `exchange`; `function` itself if it was not exchanged."""
    return _originals.get(function, function)


def holds_node(value: Any, depth: int = _DEPTH) -> bool:
    """Whether a value is a node, or holds one: a list, tuple or object array, or an object of SciPy's made with nodes."""
    kind = type(value)
    if kind is list or kind is tuple:
        if PLAIN.issuperset(map(type, value)):
            return False
        return depth > 0 and any(type(v) not in PLAIN and holds_node(v, depth - 1) for v in value)
    if isinstance(value, Value):
        return True
    if kind is np.ndarray:
        return value.dtype == object and any(isinstance(v, Value) for v in value.ravel().tolist())
    if getattr(kind, "_holds_node", False):  # see `scipy.sparse.recorded`
        return True
    if kind.__module__.startswith("scipy."):
        PLAIN.add(kind)
    return False


def _copy_of(function: FunctionType) -> FunctionType:
    """Another function with the same code, attributes and names."""
    copied = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__dict__.update(function.__dict__)
    copied.__module__, copied.__qualname__ = function.__module__, function.__qualname__
    return copied


def _asking(function: FunctionType, plain: Any, original: FunctionType, answered: Any) -> CodeType:
    """The code that looks for nodes. What it uses is put among its constants, since its globals are those of `function`."""
    old = function.__code__
    free = old.co_freevars  # Python demands that new code has as many as the old
    source = _TEMPLATE.format(free=", ".join(free), free_used="; ".join(free) or "pass")
    if inspect.isgeneratorfunction(function):  # the new code has to be that of a generator, too
        source = re.sub(r"return (\w+\(.*args\))", r"return (yield from \1)", source)
    space: dict[str, Any] = {}
    exec(compile(source, old.co_filename, "exec"), space)
    code: CodeType = space["make"](*free).__code__
    objects = {"plain": plain, "class_of": type, "original": original, "answer": answered}
    objects |= {"sequence": list if plain else None, "each": map}  # where all calls are answered, no list is passed over
    constants = _replaced(code.co_consts, objects)
    return code.replace(co_consts=constants, co_name=old.co_name, co_qualname=old.co_qualname, co_firstlineno=old.co_firstlineno)


def _replaced(constants: tuple[Any, ...], objects: dict[str, Any]) -> tuple[Any, ...]:
    return tuple([objects.get(c, c) if type(c) is str else c for c in constants])
