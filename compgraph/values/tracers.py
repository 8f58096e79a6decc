"""Tracers: the values of the graph within operators, and the class that a scalar value reports.

Tracers are not arrays, so C code cannot read their values undetected. ``isinstance(x, np.ndarray)`` and ``isinstance(x,
compgraph.Node)`` are true for a tracer, because its ``__class__`` is the class of the corresponding node. ``type(x)`` is the
tracer class.

An element or a sum of an array is an np.float64 in NumPy, and so a float. ``isinstance(v, float)``, ``case float():``,
`functools.singledispatch` and the abstract classes of `numbers` read ``v.__class__``. For a scalar value this is the scalar type
of its dtype in user code, and the node class in code of the two packages. ``type(v)`` is the node or tracer class in all code.
"""

from __future__ import annotations

import abc
import functools
import weakref
from typing import Any, ClassVar

import numpy as np

from ..frames import frame_up, source_lines
from ..storage import TRACERS, Opaque, OpaqueTransform, root_of
from ..tracing import OPAQUE_CLASSES
from .node import Node, Value

# The classes of values under a transform. Each class interprets the operations on its values.
TRANSFORM_TRACERS: set[type[Any]] = set()


class Tracer(Value, Opaque):  # type: ignore[misc]
    """A value within an operator; `raw_value` holds its NumPy value."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]
    node_kind: ClassVar[type[Node]]  # the class that ``__class__`` reports

    def __init_subclass__(cls) -> None:
        OPAQUE_CLASSES.add(cls.__name__)

    @property
    def base(self) -> Any:
        """The root node of a view, as for arrays; None for a value with memory of its own."""
        root = root_of(self)
        return None if root is self else root


class TransformTracer(OpaqueTransform, Tracer):  # type: ignore[misc]
    """A tracer with a tangent, or with one value per batch element."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        TRANSFORM_TRACERS.add(cls)


def define_tracer(cls: type[Node], **attributes: object) -> None:
    """Define the tracer class for a class of nodes."""
    inherited = {name: getattr(cls, name) for name in ("kind", "noun", "is_scalar", "is_index")}
    own = {
        "display_class": cls.display_class or cls,
        "node_kind": cls,
        "__class__": reported_class if cls.is_scalar else cls,
    }
    name = cls.__name__.replace("Node", "Tracer")
    OPAQUE_CLASSES.add(cls.__name__)  # the name in errors that show ``x.__class__``
    TRACERS[cls] = type(name, (Tracer,), {"__slots__": (), "__module__": __name__, **inherited, **own, **attributes})


def node_class(value: object) -> Any:
    """The class of a node, or of the node that corresponds to a tracer."""
    cls = type(value)
    return getattr(cls, "node_kind", cls)


def is_tracer(value: object) -> bool:
    """Whether a value is a tracer."""
    return issubclass(type(value), Tracer)


def is_operator_tracer(value: Any) -> bool:
    """Whether a value is a tracer other than an index, which is a tracer outside operators too."""
    return issubclass(type(value), Tracer) and not value.is_index


ndarray = np.ndarray
_MEMORY_READERS = ("dask", "numba")  # libraries that read the memory of arrays


class _NodeReaderCache(dict[str, bool]):
    """Whether code of a file gets the node class: code of the packages, and of libraries that read memory."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = is_reader = source_lines.is_in_packages(filename) or any(
            source_lines.is_in_library(filename, name) for name in _MEMORY_READERS
        )
        return is_reader


_is_node_reader = _NodeReaderCache()
_INSTANCE_CHECK = abc.ABCMeta.__instancecheck__.__code__
_python_numbers: dict[int, weakref.ref[Any]] = {}  # the nodes that represent Python numbers, by id


def is_number(node: Any) -> bool:
    """Whether a node represents a scalar of NumPy or a Python number, not an array."""
    return not node.ndim and bool(node.is_scalar)


def is_python_number(value: object) -> bool:
    """Whether a value is a Python number, or a node that represents one."""
    if type(value) in _PYTHON_NUMBER_TYPES:
        return True
    reference = _python_numbers.get(id(value))
    return reference is not None and reference() is value


_PYTHON_NUMBER_TYPES = frozenset({int, float, bool})


def mark_python_number(node: object) -> Any:
    """Mark a node as representing a Python number, so that its class is reported as float; return it."""
    key = id(node)
    remove_entry = functools.partial(_python_numbers.pop, key)  # runs in C, because interrupts in Python callbacks are lost
    _python_numbers[key] = weakref.ref(node, remove_entry)
    return node


def represented_class(node: Any) -> type:
    """The class of the value that a node represents."""
    if not hasattr(node, "raw_value") or not is_number(node):
        return ndarray
    return float if _python_numbers and is_python_number(node) else node.dtype.type


def _get_class(self: Any) -> type:
    frame = frame_up(1)
    if frame.f_code is _INSTANCE_CHECK and frame.f_back is not None:  # isinstance(x, numbers.Number): the caller reads the class
        frame = frame.f_back
    if _is_node_reader[frame.f_code.co_filename] or not hasattr(self, "raw_value") or not is_number(self):
        return getattr(self, "node_kind", type(self))
    return represented_class(self)


reported_class = property(_get_class, object.__dict__["__class__"].__set__)
