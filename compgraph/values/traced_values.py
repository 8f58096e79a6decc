"""Values within operators: tracers, and arrays into which tracers may be written.

Tracers are not arrays, so C code cannot read their values undetected. ``isinstance(x, np.ndarray)`` and ``isinstance(x,
compgraph.Node)`` are true for a tracer, because its ``__class__`` is the class of the corresponding node. ``type(x)`` is the
tracer class.

An element or a sum of an array is an np.float64 in NumPy, and so a float. ``isinstance(v, float)``, ``case float():``,
`functools.singledispatch` and the abstract classes of `numbers` read ``v.__class__``. For a scalar value this is the scalar type
of its dtype in user code, and the node class in code of `compgraph` and `autodiff`. ``type(v)`` is the node or tracer class.

A `Buffer` is an array that the differentiated function allocates. C code may fill it until a tracer is written
into it or into a view of it. From then on it is a tracer. A `Borrowed` array belongs to the caller of the operator. It shares the
caller's memory, its copies are buffers, and a tracer written into it raises.
"""

from __future__ import annotations

import abc
import array
import functools
import weakref
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..context import wrappers
from ..frames import frame_up, source_lines
from ..storage import TRACERS, Opaque, OpaqueTransform, owner_of, root_of
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
    inherited = {name: getattr(cls, name) for name in ("kind", "noun", "is_scalar", "is_always_traced")}
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
    return issubclass(type(value), Tracer) and not value.is_always_traced


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


new_view: Any = ndarray.view
NUMERIC = "biufc"  # the dtype kinds of buffers, including integers and booleans, from which floating arrays are computed
_PRUNE_SIZE = 16  # weak references to views before the dead ones are removed


class Buffer(Opaque):
    """An array allocated within an operator. `raw_value` is its memory, `args` the buffer it views, `memory` its views."""

    __slots__ = ()
    __class__: Any = ndarray  # so that isinstance(x, np.ndarray) is true
    is_borrowed = False


class TransformBuffer(Buffer, OpaqueTransform):
    """A Buffer allocated under a transform; `_wrappers` are the functions that add tangents or a batch."""

    __slots__ = ()
    __class__: Any = ndarray


class Borrowed(ndarray):
    """A view of an array that belongs to the caller of an operator."""

    __slots__ = ("_operands",)
    is_borrowed = True


class ClassViews(ndarray):
    """The base of views of traced arrays as other classes; see `compgraph.protocols.class_views`.

    `count` counts views, and masked arrays replaced by their data, so that operators can compare functions that use any with
    their values for plain arrays.
    """

    __slots__ = ("_traced",)
    count = 0
    _traced: Any


BUFFERS = frozenset({Buffer, TransformBuffer})
TRACEABLE = BUFFERS | {Borrowed}
ARRAYS = TRACEABLE | {ndarray}  # the classes of plain arrays
OPAQUE_CLASSES.update(cls.__name__ for cls in BUFFERS)


def new_buffer(array: NDArray[Any], root: Buffer | TransformBuffer | None = None) -> Any:
    """A buffer over a plain array; if `root` is given, a view of the buffer `root`."""
    if root is None:
        node_wrappers = wrappers.get()
        buffer: Any = TransformBuffer() if node_wrappers else Buffer()
        buffer.args = ()
    else:
        node_wrappers = getattr(root, "_wrappers", ())
        buffer = type(root)()
        buffer.args = (root,)
        _register_view(root, buffer)
    if type(buffer) is TransformBuffer:
        buffer._wrappers = node_wrappers
    buffer.raw_value = array
    buffer._operands = buffer.memory = None
    return buffer


def _register_view(root: Any, view: Buffer | TransformBuffer) -> None:
    """Append a weak reference to a view to the list of its root."""
    views = root.memory
    if views is None:
        views = root.memory = []
    views.append(weakref.ref(view))
    if len(views) >= _PRUNE_SIZE and not len(views) & (len(views) - 1):  # at powers of two
        views[:] = [reference for reference in views if reference() is not None]


def as_buffer(new_array: NDArray[Any]) -> Any:
    """Wrap a new plain array in a buffer; return other values, and arrays over exposed memory, unchanged."""
    if type(new_array) is not ndarray or new_array.dtype.kind not in NUMERIC:
        return new_array
    return new_array if new_array.base is not None and _is_exposed(owner_of(new_array)) else new_buffer(new_array)


def _is_exposed(owner: NDArray[Any]) -> bool:
    """Whether an array's memory owner may back another buffer: a memoryview, or an object with ``__array_interface__``.

    Writes into one of two buffers over the same memory would not reach the other.
    """
    if isinstance(owner, memoryview):
        return not isinstance(owner.obj, (bytes, bytearray, array.array))
    return not isinstance(owner, ndarray)


def borrow(array: NDArray[Any]) -> Any:
    """View a plain array of the caller as a borrowed array."""
    return new_view(array, Borrowed)


def unwrap_buffer(value: Any) -> Any:
    """Return the backing array of a buffer or borrowed array; other values unchanged."""
    cls = type(value)
    if cls is ndarray:
        return value
    return value.raw_value if cls in BUFFERS else new_view(value, ndarray) if cls is Borrowed else value


def unwrap_buffers(value: Any) -> Any:
    """`unwrap_buffer`, also within lists, tuples and dictionaries."""
    cls = type(value)
    if cls is tuple or cls is list:
        return cls(map(unwrap_buffers, value))
    if cls is dict:
        return {name: unwrap_buffers(part) for name, part in value.items()}
    return unwrap_buffer(value)


def wrap_result(result: Any, sources: tuple[Any, ...]) -> Any:
    """Wrap a result that NumPy computed from `sources`: new arrays as buffers, views of a source as views of its buffer."""
    cls = type(result)
    if cls is tuple or cls is list:
        return cls([wrap_result(part, sources) for part in result])
    if cls is Borrowed:
        result = new_view(result, ndarray)
    elif cls is not ndarray:
        return type(result)(*[wrap_result(part, sources) for part in result]) if hasattr(result, "_fields") else result
    for source in sources:
        if result is getattr(source, "raw_value", None):
            return source
    if result.base is not None:
        owner = owner_of(result)
        for source in sources:
            if owner_of(source) is owner:
                if type(source) is Borrowed:
                    return new_view(result, Borrowed)
                return new_buffer(result, source.args[0] if source.args else source)
    return as_buffer(result)
