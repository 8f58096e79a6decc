"""Python's conversions of nodes to plain values: ``float``, ``bool``, ``hash``, ``x.item()``, ``x.value``, ``x.__array__``.

Truth values and integers (``bool(x)``, ``int(x)``) are piecewise constant and lose no derivative: they are guards. Numbers with a
derivative are leaks, which raise or are logged (see `leaks`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import MethodType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..array_types import Array
from ..context import is_recording
from ..frames import callee, frame_up, is_assigning, method_called, source_lines, unknown, walk_frames
from ..tracing import RETRACERS, LeakError, is_compiling, is_tracing, leak_message, make_leak_error, variable_of
from ..values import (
    ACTIVE,
    INERT,
    SCALARS,
    USED_CLASS_OF_BLANK,
    PlaceholderNode,
    Value,
    describe,
    mark_python_number,
    mark_used,
    require_history,
    require_unbatched,
)
from .guard import VALUE_METHODS, Guard, contents, note_guard
from .guarded_errors import note_error
from .guarded_shapes import make_raising_setter
from .leaks import (
    CONVERSIONS,
    check_conversion,
    complete_leak,
    is_plotting,
    is_within_operator,
    log_leak,
    loses_derivative,
    note_number_leak,
    require_untraced,
)

_asarray = np.asarray  # NumPy's own function, before `compgraph.interception` patches the name
RECHECKED_CONVERSIONS: dict[str, Any] = {"bool": bool, "int": int, "index": operator.index}
PLAIN_METHODS = (*sorted(ops.PLAIN_METHODS), "__array__", "__dlpack__")
PLAIN_ATTRIBUTES = ("__array_interface__", "__array_struct__", "ctypes", "data")


def _plain_value(node: object) -> Any:
    """Return the plain array of a node; the node itself if it has lost its history."""
    return _asarray(node.raw_value) if hasattr(node, "raw_value") else node


def _make_conversion(name: str) -> Any:
    """Make the method for ``float(x)`` and other conversions."""
    convert_inert, numpy_method = _make_inert_conversion(name), getattr(np.ndarray, f"__{name}__")
    description, is_number = f"{name}()", name in ("float", "complex")

    def convert(self: Value) -> Any:
        if not loses_derivative(self):
            return convert_inert(self) if hasattr(self, "raw_value") and not self.level else numpy_method(_plain_value(self))
        number = _convert_number(numpy_method, name, self)
        frame, leak = frame_up(1), None
        if is_number:
            leak = check_conversion(self, description, frame)
        elif is_assigning(frame) and not source_lines.is_package_code(frame.f_code.co_filename):
            # An assignment into integers, most likely unintended.
            raise make_leak_error(frame, f"the {describe(self)}")
        guard = note_guard(description, RECHECKED_CONVERSIONS.get(name), (self,), number, source_lines.user_frame(2))
        complete_leak(leak, guard, number)
        return number

    return convert


def _convert_number(numpy_method: Any, name: str, node: Value) -> Any:
    """Convert a node by NumPy's conversion. An error, such as that of ``int(nan)``, is guarded."""
    try:
        return numpy_method(_plain_value(node))
    except (ArithmeticError, ValueError) as error:
        if name in RECHECKED_CONVERSIONS and hasattr(node, "raw_value"):
            note_error(RECHECKED_CONVERSIONS[name], (node,), {}, error, source_lines.user_frame(3))
        raise
    except TypeError as error:
        if name == "index" and hasattr(node, "raw_value"):
            error.add_note(f"the {describe(node)} is used as an index or a length; int(x) converts a number")
        raise


def _make_inert_conversion(name: str) -> Any:
    """Make the conversion for nodes without derivative: it logs a guard, and no leak."""
    numpy_method = getattr(np.ndarray, f"__{name}__")
    function, description = RECHECKED_CONVERSIONS.get(name), f"{name}()"

    def convert(self: Value) -> Any:
        number = _convert_number(numpy_method, name, self)
        if function is not None or is_recording():  # also under no_graph, where Python branches on the value too
            note_guard(description, function, (self,), number, source_lines.user_frame(2))
        return number

    return convert


def _note_number_guard(node: Value, description: str) -> Guard | None:
    """Log a guard that the user's code received numbers, whose use is unknown."""
    # A variable's `value` is excluded, because it is mostly read to update the variable.
    is_number = node.args or isinstance(node, PlaceholderNode) or description in VALUE_METHODS
    if is_number and not source_lines.is_package_code(frame_up(2).f_code.co_filename):
        if type(node) in INERT:  # counts, indices and truth values are often equal in a later run, so they are re-checked
            return note_guard(description, contents, (node,), contents(node.raw_value), source_lines.user_frame(3))
        return note_guard(description, None, (node,), None, source_lines.user_frame(3))
    return None


def _make_plain_method(name: str) -> Any:
    """Make a method such as ``x.item()`` that returns plain values. The leak is logged, with a warning within operators."""
    numpy_method = getattr(np.ndarray, name)
    description, is_pickle = f".{name}()", name in ("dump", "dumps")

    def method(self: Value, *args: object, **kwargs: object) -> Any:
        leak = None
        if loses_derivative(self):
            if name == "tofile":
                require_untraced(".tofile", self)
            is_user_call = is_tracing() and not source_lines.is_package_code(frame_up(1).f_code.co_filename)
            if name == "item" and is_user_call:  # within a function that is differentiated a number keeps its derivative
                return mark_python_number(_element_at(self, *args))
            if name == "tolist" and is_user_call:
                return _to_nested_nodes(self)
            leak = note_number_leak(self, description, frame_up(1))
        if hasattr(self, "raw_value"):
            complete_leak(leak, _note_number_guard(self, description))
        return numpy_method(self if is_pickle else _plain_value(self), *args, **kwargs)

    return method


def _element_at(node: Value, *index: Any) -> Any:
    """Return ``node.item(*index)`` as a node."""
    np.broadcast_to(0, node.shape).item(*index)  # NumPy raises here for a wrong index
    if len(index) == 1 and isinstance(index[0], tuple):
        return node[index[0]]
    if len(index) > 1:
        return node[index]
    return np.ravel(node)[index[0] if index else 0]


def _to_nested_nodes(node: Value) -> Any:
    """Return ``node.tolist()`` with nodes as its numbers."""
    return list(map(_to_nested_nodes, node)) if node.ndim else mark_python_number(node[()])


def _make_plain_attribute(name: str) -> property:
    """Make an attribute such as ``x.data``, which other libraries read to access the memory of an array."""
    descriptor = getattr(np.ndarray, name)
    description = f".{name}"

    def read(self: Value) -> Any:
        if loses_derivative(self):
            leak = note_number_leak(self, description, frame_up(1))
            complete_leak(leak, _note_number_guard(self, description))
        return descriptor.__get__(_plain_value(self))

    return property(read, make_raising_setter(name))


def _value(self: Value) -> np.ndarray[Any, Any]:
    """The plain array of this node, sharing its memory."""
    frame = frame_up(1)
    if loses_derivative(self) and not source_lines.is_package_code(frame.f_code.co_filename):
        if is_within_operator(self) and _is_probing_attribute(frame):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'value'", name="value", obj=self)
        log_leak(".value", frame, False)
    if is_recording():
        _note_number_guard(self, ".value")
    if type(self) in USED_CLASS_OF_BLANK and not self.raw_value.any():  # filling a blank array through .value is allowed
        mark_used(self)
    return np.asarray(self.raw_value)


def _raise_on_set(self: Value, value: float) -> NoReturn:
    raise AttributeError("x.value cannot be set. Write x[...] = array or x -= step, which updates a variable in place")


def _is_probing_attribute(frame: Any) -> bool:
    """Whether code may only probe for an attribute that arrays lack: by ``hasattr``, ``getattr``, or in a ``try``."""
    names, target = frame.f_code.co_names, callee(frame)
    if target is None or target is unknown:
        return "AttributeError" in names or (target is unknown and ("hasattr" in names or "getattr" in names))
    return target is hasattr or target is getattr


def _conform(self: Value, protocol: type) -> Any:
    """``__conform__``: return the value that sqlite3 stores, a number or the bytes of an array."""
    if getattr(protocol, "__name__", "") != "PrepareProtocol":
        return None
    name = "tobytes" if self.ndim else "tolist"
    if loses_derivative(self):
        note_number_leak(self, f".{name}()", frame_up(1))
    if hasattr(self, "raw_value"):
        _note_number_guard(self, f".{name}()")
    return getattr(np.ndarray, name)(_plain_value(self))


def _buffer(self: Value, flags: int) -> memoryview:
    """``__buffer__`` of tracers: C code calls it to read memory, since Python 3.12. If it raises, NumPy calls ``__array__``."""
    if self.level or loses_derivative(self) or is_compiling():
        raise HiddenError(leak_message(list(walk_frames(frame_up(1))), f"the {describe(self)}"))
    note_guard(".__buffer__()", contents, (self,), contents(self.raw_value), source_lines.user_frame(2))
    return np.ndarray.__buffer__(np.asarray(self.raw_value), flags)  # type: ignore[attr-defined,no-any-return]


def _array(self: Value, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Any:
    """``__array__`` of tracers: C code, and functions that call no protocol, call it to read the values of an array.

    It raises for an active array. A scalar is returned as an array of objects that contains the tracer, so that ``np.sin([x[0],
    x[1]])`` computes on tracers. Numbers without derivative are returned under a guard.
    """
    frame = frame_up(1)
    if not is_plotting(frame):
        if self.level or loses_derivative(self) or is_compiling():
            if (
                self.is_scalar
                and (dtype is None or np.dtype(dtype) == object)
                and not source_lines.is_package_code(frame.f_code.co_filename)
            ):
                return _object_array(self)
            if (
                method_called(frame) == "__array__" and is_tracing() and not is_compiling()
            ):  # values.__array__(), written in Python
                return self if dtype is None else self.astype(dtype)
            for retrace in RETRACERS:
                retrace(frame)
            raise make_leak_error(frame, variable_of(self, frame) or f"the {describe(self)}")
        note_guard(".__array__()", contents, (self,), contents(self.raw_value), source_lines.user_frame(2))
    return np.array(self.raw_value, dtype=dtype, copy=copy)


def _object_array(value: Value) -> Any:
    object_array = np.empty((), object)
    object_array[()] = value
    return object_array


class HiddenError(LeakError, AttributeError):
    """A `LeakError` for an attribute that reads memory (``x.__array_interface__``), which traced values lack.

    It is also an AttributeError, so that ``hasattr`` is False and NumPy calls ``__array__``.
    """

    __module__ = "compgraph.errors"  # the public module


def _make_hidden_attribute(name: str) -> property:
    """Make an attribute that raises, so that NumPy calls ``__array__`` instead of reading the memory without a call."""

    def read(self: Value) -> Any:
        if not self.level and not loses_derivative(self):
            raise AttributeError(name)
        raise HiddenError(leak_message(list(walk_frames(frame_up(1))), f"the {describe(self)}"))

    return property(read)


def make_text_conversion(name: str, convert: Callable[..., str]) -> Any:
    """Make a conversion to text. It is logged, but a replay does not re-check it, unlike ``bool``."""

    @functools.wraps(convert)
    def show(self: Value, *options: object) -> str:
        frame = frame_up(1)
        if (
            is_tracing()
            and not source_lines.is_package_code(frame.f_code.co_filename)
            and (is_compiling() or callee(frame) is not print)
        ):
            log_leak(name, source_lines.user_frame(2), False)
        return convert(self, *options)

    return show


def node_methods() -> dict[str, Any]:
    """Return the methods to install on `Node`."""
    return {
        "__repr__": make_text_conversion("repr()", vars(Value)["__repr__"]),
        "__str__": make_text_conversion("str()", vars(Value)["__str__"]),
        **{f"__{name}__": _make_conversion(name) for name in CONVERSIONS},
        **{name: _make_plain_method(name) for name in PLAIN_METHODS},
        "__bytes__": _make_plain_method("tobytes"),  # otherwise ``bytes(x)`` would read the memory of the node
        **{name: _make_plain_attribute(name) for name in PLAIN_ATTRIBUTES},
        "__conform__": _conform,
        "value": property(_value, _raise_on_set),
    }


def tracer_methods() -> dict[str, Any]:
    """Return the methods to install on `Tracer`."""
    return {
        "__array__": _array,
        "__buffer__": _buffer,
        **{name: _make_hidden_attribute(name) for name in ("__array_interface__", "__array_struct__")},
    }


def is_integer(self: Value) -> bool:
    """``x.is_integer()`` of a scalar node, under a guard."""
    require_history(self)
    require_unbatched(".is_integer()", self)
    is_whole = _is_integer(self.raw_value)
    note_guard(".is_integer()", _is_integer, (self,), is_whole, source_lines.user_frame(2))
    return is_whole


def _is_integer(value: Array) -> bool:
    return float(np.asarray(value).item()).is_integer()


def _make_number_method(name: str) -> Any:
    """Make a method of numbers that returns text or integers; it raises if a derivative would be lost."""

    def method(self: Value, *args: object) -> Any:
        if loses_derivative(self):
            raise make_leak_error(frame_up(1), f"the {describe(self)}")
        require_unbatched(f".{name}()", self)
        number = _plain_value(self).item()
        _note_number_guard(self, f".{name}()")
        return getattr(float(number), name)(*args)

    return method


NUMBER_METHODS = {
    "is_integer": is_integer,
    "hex": _make_number_method("hex"),
    "as_integer_ratio": _make_number_method("as_integer_ratio"),
}


def install_inert_conversions() -> None:
    """Install conversions of inert nodes, which log a guard and neither warn nor raise."""
    for kind in INERT:
        for name in CONVERSIONS:
            setattr(kind, f"__{name}__", _make_inert_conversion(name))


# ------------------------------------------------------------------------------------------- hashes

_identity_hash = object.__hash__
_LruCache = type(functools.lru_cache(abs))
_HASH_MESSAGE = (
    "hash() of the value: a dictionary, a set or a cache looks up the number of the {}, whose derivative would be lost. Use a "
    "key without a derivative (an index, np.round(x), int(x)), a list with `in`, or x.value"
)


def scalar_hash(self: Any) -> int:
    """Return the hash of a scalar node's number; for arrays, and for code of the packages, the identity hash."""
    frame = frame_up(1)
    if source_lines.internal[frame.f_code.co_filename] or self.ndim:
        return _identity_hash(self)
    require_history(self)
    if _has_derivative(self):
        if not is_within_operator(self) or _is_lru_cache_call(frame):
            return _identity_hash(self)
        if is_recording():
            raise make_leak_error(frame, message=_HASH_MESSAGE.format(describe(self)))
    number = hash_key(self.raw_value)
    note_guard("hash()", hash_key, (self,), number, source_lines.user_frame(2))
    return _identity_hash(self) if number == "nan" else hash(number)


def _has_derivative(node: object) -> bool:
    """Whether the number of a node loses a derivative: the node is active, or has a nonzero tangent."""
    while isinstance(node, Value) and node.level:
        if node.derivative() is not None:  # type: ignore[attr-defined]
            return True
        node = node.primal  # type: ignore[attr-defined]
    return type(node) in ACTIVE


def hash_key(value: NDArray[Any]) -> Any:
    """Return the number of a scalar as a dictionary key; ``"nan"`` for nan, which does not equal itself."""
    number = np.asarray(value).item()
    return "nan" if number != number else number


def _is_lru_cache_call(frame: Any) -> bool:
    """Whether a frame calls a function of `functools.lru_cache`, for which nodes are keys by identity."""
    target = callee(frame)
    return (target.__func__ if type(target) is MethodType else target).__class__ is _LruCache


def hash_scalars_by_value() -> None:
    """Install the hash of scalar nodes."""
    for kind in SCALARS:
        kind.__hash__ = scalar_hash
