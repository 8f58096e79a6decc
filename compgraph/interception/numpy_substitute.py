"""The module that ``np`` refers to in functions that use attributes of NumPy's classes, which cannot be patched.

- Methods of ufuncs (``np.maximum.reduce([x, y])``) convert their argument without dispatch. Here they first stack the nodes in
  lists.
- ``np.ndarray(shape)`` allocates an array. Here it is a buffer, like that of ``np.empty``, so that nodes can be written into it.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from ..graph import stack_nested
from ..tracing import is_tracing
from ..values import NUMERIC, as_buffer

UFUNC_METHODS = {"reduce": (0,), "accumulate": (0,), "reduceat": (0,), "at": (2,)}  # with the positions of operands


def needs_substitute(names: Iterable[str], codes: Iterable[CodeType]) -> bool:
    """Whether code that uses some names calls a method of ufuncs, or ``np.ndarray``."""
    names = frozenset(names)
    return bool(names & UFUNC_METHODS.keys()) or ("ndarray" in names and any(map(_calls_ndarray, codes)))


def _calls_ndarray(code: CodeType) -> bool:
    """Whether code loads ``np.ndarray`` in order to call it; ``isinstance(x, np.ndarray)`` does not.

    A call pushes NULL: with the global before Python 3.13, after the function from then on.
    """
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    return any(
        instruction.argval == "ndarray"
        and instruction.opname == "LOAD_ATTR"
        and ("NULL" in before.argrepr or after.opname == "PUSH_NULL")
        for before, instruction, after in zip(instructions, instructions[1:], instructions[2:], strict=False)
    )


class GatheringUfunc:
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
        return GatheringUfunc(attribute) if isinstance(attribute, np.ufunc) and attribute.nin == 2 else attribute


NUMPY_SUBSTITUTE = _NumPySubstitute("numpy")
