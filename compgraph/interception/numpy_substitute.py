"""The module that ``np`` refers to in functions that use attributes of NumPy's classes, which cannot be patched.

- Methods of ufuncs (``np.maximum.reduce([x, y])``) convert their argument without dispatch. Here they first stack the nodes in
  lists.
- ``np.ndarray(shape)`` allocates an array. Here it is a buffer, like that of ``np.empty``, so that nodes can be written into it.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..graph import stack_nested
from ..tracing import is_tracing
from ..values import NUMERIC, as_buffer

UFUNC_METHODS = {"reduce": (0,), "accumulate": (0,), "reduceat": (0,), "at": (2,)}  # with the positions of operands


def needs_substitute(function: FunctionType, names: Iterable[str], codes: Iterable[CodeType]) -> bool:
    """Whether a function, of some names and codes, calls a method of ufuncs, or ``np.ndarray``.

    The substitute of ``np.ndarray`` is another object. So it is not used in a module whose functions may compare it by identity
    (``type(x) is np.ndarray``), because the name ``np`` is bound for the whole module.
    """
    names = frozenset(names)
    if names & UFUNC_METHODS.keys():
        return True
    if "ndarray" not in names or not any(_uses_of_ndarray(code)[0] for code in codes):
        return False
    return not any(_uses_of_ndarray(code)[1] for code in _codes_of_module(function.__globals__))


@functools.lru_cache(maxsize=4096)
def _uses_of_ndarray(code: CodeType) -> tuple[bool, bool]:
    """Return whether code calls ``np.ndarray``, and whether it may compare it by identity.

    A call loads a method, or pushes NULL: with the global before Python 3.13, after the function from then on.
    """
    if "ndarray" not in code.co_names:
        return False, False
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    is_called = [
        instruction.opname == "LOAD_METHOD" or "NULL" in before.argrepr + instruction.argrepr or after.opname == "PUSH_NULL"
        for before, instruction, after in zip(instructions, instructions[1:], instructions[2:], strict=False)
        if instruction.argval == "ndarray" and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")
    ]
    return any(is_called), not all(is_called) and any(i.opname == "IS_OP" for i in instructions)


def _codes_of_module(namespace: dict[str, Any]) -> Iterable[CodeType]:
    """Return the codes of the functions of a module, and of the methods of its classes."""
    values = list(namespace.values())
    for value in values:
        if isinstance(value, type) and value.__module__ == namespace.get("__name__"):
            values += vars(value).values()
        function = getattr(value, "__func__", value)  # of class methods
        pending = [function.__code__] if isinstance(function, FunctionType) and function.__globals__ is namespace else []
        while pending:
            code = pending.pop()
            yield code
            pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


class StackingUfunc:
    """A ufunc whose methods take nodes in lists; otherwise the ufunc itself."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return np.ufunc

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the ufunc."""
        return self._ufunc(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._ufunc

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._ufunc, name)
        if name not in UFUNC_METHODS:
            return attribute
        positions = UFUNC_METHODS[name]
        return lambda *args, **kwargs: attribute(
            *[stack_nested(a) if k in positions else a for k, a in enumerate(args)], **kwargs
        )


class _ArrayClass(type):
    """The class of `_BufferClass`, which allocates buffers and otherwise behaves as ``np.ndarray``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Allocate an array: a buffer, unless it is a view of given memory or its elements are not numbers."""
        array = np.ndarray(*args, **kwargs)
        return as_buffer(array) if is_tracing() and array.base is None and array.dtype.kind in NUMERIC else array

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(np.ndarray)


class _BufferClass(metaclass=_ArrayClass):
    """``np.ndarray`` as a callable that allocates buffers."""


class _NumPySubstitute(ModuleType):
    """NumPy, except for the methods of ufuncs and for ``np.ndarray(shape)``."""

    def __getattr__(self, name: str) -> Any:
        if name == "ndarray":
            return _BufferClass
        attribute = getattr(np, name)
        return StackingUfunc(attribute) if isinstance(attribute, np.ufunc) and attribute.nin == 2 else attribute


NUMPY_SUBSTITUTE = _NumPySubstitute("numpy")
