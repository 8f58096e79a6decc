"""The class that a scalar node reports to the user's code.

An element of an array, or a sum, is an np.float64 in NumPy, and so a float: ``isinstance(v, float)``, ``case float():``,
`functools.singledispatch` and the abstract classes of `numbers` read ``v.__class__``. A scalar node reports the scalar type of
its dtype there. Code of the two packages gets the class of the node; ``type(v)`` gives that to all code.
"""

from __future__ import annotations

import abc
import functools
import os
import weakref
from typing import Any

import numpy as np

from ..frames import frame_up, source_lines

ndarray = np.ndarray
_READERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("dask", "numba", "matplotlib"))


class _ReadsNodes(dict[str, bool]):
    """Whether code of a file gets the class of the node: code of the two packages, and of libraries that read memory."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = source_lines.is_packaged(filename) or any(name in filename for name in _READERS)
        return answer


_reads_nodes = _ReadsNodes()
_INSTANCE_CHECK = abc.ABCMeta.__instancecheck__.__code__
_of_python: dict[int, weakref.ref[Any]] = {}  # by id: the nodes that represent Python numbers


def is_number(node: Any) -> bool:
    """Whether a node represents a scalar, not an array, of NumPy or of the caller of an operator."""
    return not node.ndim and bool(node.is_scalar)


def is_python_number(value: Any) -> bool:
    """Whether a value is a Python number, or a node that represents one."""
    if type(value) in _NUMBERS:
        return True
    known = _of_python.get(id(value))
    return known is not None and known() is value


_NUMBERS = frozenset({int, float, bool})


def mark_python_number(node: Any) -> Any:
    """Mark a node as one that represents a Python number, so that it reports float."""
    key = id(node)
    _of_python[key] = weakref.ref(node, functools.partial(_of_python.pop, key))  # in C: an interrupt in a callback would be lost
    return node


def represented_class(node: Any) -> type:
    """The class of the value that a node represents."""
    if not hasattr(node, "raw_value") or not is_number(node):
        return ndarray
    return float if _of_python and is_python_number(node) else node.dtype.type


def _read(self: Any) -> type:
    frame = frame_up(1)
    if frame.f_code is _INSTANCE_CHECK and frame.f_back is not None:  # isinstance(x, numbers.Number): the caller reads the class
        frame = frame.f_back
    if _reads_nodes[frame.f_code.co_filename] or not hasattr(self, "raw_value") or not is_number(self):
        return getattr(self, "node_kind", type(self))
    return represented_class(self)


reported_class = property(_read, object.__dict__["__class__"].__set__)
