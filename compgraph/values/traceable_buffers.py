"""Arrays within operators into which tracers may be written.

A `Buffer` is an array that the differentiated function allocates: real memory that C code may fill, until a tracer is written
into it or into a view of it. From then on it is a tracer. A `Borrowed` array belongs to the caller of the operator. It shares the
caller's memory, its copies are buffers, and a tracer written into it raises.
"""

from __future__ import annotations

import array
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..context import wrappers
from ..storage import Opaque, OpaqueTransform, owner_of
from ..tracing import OPAQUE_CLASSES

ndarray = np.ndarray
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
OPAQUE_CLASSES.update(kind.__name__ for kind in BUFFERS)


def new_buffer(array: NDArray[Any], root: Buffer | TransformBuffer | None = None) -> Any:
    """A buffer over a plain array; if `root` is given, a view of the buffer `root`."""
    if root is None:
        added_by = wrappers.get()
        buffer: Any = TransformBuffer() if added_by else Buffer()
        buffer.args = ()
    else:
        added_by = getattr(root, "_wrappers", ())
        buffer = type(root)()
        buffer.args = (root,)
        _register_view(root, buffer)
    if type(buffer) is TransformBuffer:
        buffer._wrappers = added_by
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
    """Return the real memory of a buffer or borrowed array; other values unchanged."""
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
