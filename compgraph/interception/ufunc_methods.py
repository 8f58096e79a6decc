"""Methods of ufuncs that are given nodes in a list: ``np.maximum.reduce([x, y])``.

A ufunc converts its argument without calling a protocol, and its attributes cannot be replaced. A function whose code names
such a method sees NumPy as a module whose ufuncs first gather the nodes in lists.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..graph import stack_nested
from .reach import names_in

METHODS = {"reduce": (0,), "accumulate": (0,), "reduceat": (0,), "at": (2,)}  # with the positions of operands


class Ufunc:
    """A ufunc whose methods take nodes in lists; otherwise the ufunc itself."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance
        return np.ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the ufunc."""
        return self._ufunc(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._ufunc

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ufunc, name)
        if name not in METHODS:
            return found
        positions = METHODS[name]
        return lambda *args, **kwargs: found(*[stack_nested(a) if k in positions else a for k, a in enumerate(args)], **kwargs)


class NumPy(ModuleType):
    """NumPy with ufuncs whose methods take nodes in lists."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        return Ufunc(found) if isinstance(found, np.ufunc) and found.nin == 2 else found


NUMPY = NumPy("numpy")


def numpy_names(function: FunctionType) -> list[str]:
    """The names by which a function reaches NumPy, if its code names a method of ufuncs."""
    names = names_in(function.__code__)
    return [name for name in names if function.__globals__.get(name) is np] if names & METHODS.keys() else []
