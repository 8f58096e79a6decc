"""Guards on shapes and layouts that Python reads."""

from __future__ import annotations

import functools
import operator
import os.path
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..context import callbacks_lock
from ..frames import frame_up, source_lines
from ..graph import breadth_first
from ..ops import compositions
from ..values import ArgumentNode, PlaceholderNode, Value, describe
from .guard import Guard, layout, note_guard, shapes

_COMPOSITIONS_FOLDER = os.path.dirname(compositions.__file__)


def needs_shape_guard(frame: Any) -> bool:
    """Whether a shape read in a frame needs a guard: a placeholder exists, and user code or a composition reads the shape.

    Compositions (NumPy functions as recorded steps) branch on the shapes that they read, as NumPy's own code does.
    """
    filename = frame.f_code.co_filename
    return _num_placeholders > 0 and (not source_lines.is_package_code(filename) or filename.startswith(_COMPOSITIONS_FOLDER))


def note_shape(node: Any, description: str = "its size") -> None:
    """Log a guard on a node's shape, which a function of the package depends on; messages contain `description`."""
    if _num_placeholders:
        note_guard(description, np.shape, (node,), node.raw_value.shape, source_lines.user_frame(2))


def note_input_shapes(result: str, *outputs: object, sequence_number: int | None = None) -> None:
    """Log guards on the shapes of the placeholders and arguments that `outputs` depend on.

    `result` describes the recorded operations in messages; they are valid for these shapes only.
    Derivative rules record operations that contain array lengths. For other lengths, derivatives of
    `autodiff.reverse.gradients` are recorded again. Other derivatives cannot be, and need these guards.
    """
    if _num_placeholders:
        for node in breadth_first(*[x for x in map(_without_axes, outputs) if isinstance(x, Value)]):
            if isinstance(node, (PlaceholderNode, ArgumentNode)):
                description = f"the shape of the {describe(node)}, for which {result} was recorded,"
                note_guard(description, np.shape, (node,), node.raw_value.shape, source_lines.user_frame(2), sequence_number)


def _without_axes(value: object) -> Any:
    """Return the values of a batched value without its batch levels."""
    while isinstance(value, Value) and value.trace_kind == "batch":
        value = value.values  # type: ignore[attr-defined]
    return value


# ------------------------------------------------------------------------------------------- shapes


class Shape(tuple[int, ...]):
    """A shape that Python has read, with its guard.

    C code may read a tuple without calling its methods, so the guard checks the whole shape at first. ``shape[0]`` narrows it to
    that axis. Any other use of the same tuple widens it again.
    """

    _guard: Guard
    _axis: int | None
    _is_widened: bool

    def __new__(cls, lengths: Iterable[int], guard: Guard | None = None) -> Any:
        """Return a shape with its guard; without one, as in ``type(shape)(lengths)``, an ordinary tuple."""
        if guard is None:
            return tuple(lengths)
        shape = super().__new__(cls, lengths)
        shape._guard, shape._axis, shape._is_widened = guard, None, False
        return shape

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        if not self._is_widened and type(item) is int and self._axis in (None, axis := operator.index(index)):
            self._axis, guard = axis, self._guard
            guard.description, guard.function, guard.recorded = f".shape[{axis}]", functools.partial(_length, axis), item
        else:
            self.widen()
        return item

    def widen(self) -> tuple[int, ...]:
        """Widen the guard to all axes, and return their lengths as an ordinary tuple."""
        lengths = tuple(tuple.__iter__(self))
        self._is_widened, guard = True, self._guard
        guard.description, guard.function, guard.recorded = ".shape", np.shape, lengths
        return lengths

    def __reduce__(self) -> Any:
        return tuple, (self.widen(),)


def _length(axis: int, x: NDArray[Any]) -> int:
    return int(np.shape(x)[axis])


def is_shape_guard(guard: Guard) -> bool:
    """Whether the shapes of its arguments determine the result of a guard. They may be shapes that depend on values."""
    return getattr(guard.function, "func", guard.function) in (_length, np.shape, np.size, len, shapes)


def _make_widening_method(name: str) -> Callable[..., Any]:
    """Make a method of `Shape` that widens the guard and calls the method of an ordinary tuple."""
    method = getattr(tuple, name)
    return lambda self, *args: method(self.widen(), *args)


def _make_widening_operator(operation: Callable[[Any, Any], Any], is_reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Make an operator of `Shape` that widens the guard; Python may dispatch to the other operand."""
    return lambda self, other: operation(other, self.widen()) if is_reflected else operation(self.widen(), other)


for _name in ("iter", "len", "hash", "repr", "contains", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Shape, f"__{_name}__", _make_widening_method(f"__{_name}__"))
for _name in ("count", "index"):
    setattr(Shape, _name, _make_widening_method(_name))
for _name, _operation in (("add", operator.add), ("mul", operator.mul)):
    setattr(Shape, f"__{_name}__", _make_widening_operator(_operation))
    setattr(Shape, f"__r{_name}__", _make_widening_operator(_operation, is_reflected=True))


# ------------------------------------------------------------------------------------------- properties of nodes


def is_length_guard(guard: Guard) -> bool:
    """Whether a guard is on a length that Python read. A value-dependent shape has a `ShapeGuard` instead."""
    return guard.function in _LENGTH_FUNCTIONS


# While a placeholder exists, the properties of `Node` that return a shape log guards. Only a placeholder can be fed a shape
# different from the recorded one.
_num_placeholders = 0
_is_installed = False
_FUNCTIONS: dict[str, Callable[..., Any]] = {"shape": np.shape, "size": np.size, "nbytes": operator.attrgetter("nbytes")}


def make_raising_setter(name: str) -> Callable[[Any, Any], NoReturn]:
    """Make the setter of an attribute of nodes that cannot be set."""

    def raise_on_set(self: Value, value: object) -> NoReturn:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return raise_on_set


def _make_guarded_property(name: str) -> property:
    function = _FUNCTIONS[name]

    def guarded(self: Value) -> Any:
        attribute_value = self.raw_value.nbytes if name == "nbytes" else getattr(super(Value, self), name)
        if not needs_shape_guard(frame_up(1)) or not hasattr(self, "raw_value"):
            return attribute_value
        guard = note_guard(f".{name}", function, (self,), attribute_value, source_lines.user_frame(2))
        return attribute_value if guard is None or name != "shape" else Shape(attribute_value, guard)

    return property(guarded, make_raising_setter(name))


def _guarded_length(self: Value) -> int:
    length = super(Value, self).__len__()
    if needs_shape_guard(frame_up(1)) and hasattr(self, "raw_value"):
        note_guard("len()", len, (self,), length, source_lines.user_frame(2))
    return length


def _guarded_iter(self: Value) -> Any:
    if needs_shape_guard(frame_up(1)) and hasattr(self, "raw_value") and self.ndim:
        note_guard("a loop over rows", len, (self,), super(Value, self).__len__(), source_lines.user_frame(2))
    return super(Value, self).__iter__()


def _make_guarded_layout(name: str, read: Callable[[Any], Any], function: Callable[[Any], Any]) -> property:
    """Return a property of the memory layout that logs a guard if code outside of the two packages reads it."""

    def guarded(self: Value) -> Any:
        layout_value = read(self)
        if hasattr(self, "raw_value") and not source_lines.is_package_code(frame_up(1).f_code.co_filename):
            note_guard(f".{name}", function, (self,), function(self.raw_value), source_lines.user_frame(2))
        return layout_value

    return property(guarded, make_raising_setter(name))


def guarded_strides(read: Callable[[Any], Any]) -> property:
    """``x.strides``."""
    return _make_guarded_layout("strides", read, lambda array: np.asarray(array).strides)


def guarded_flags(read: Callable[[Any], Any]) -> property:
    """``x.flags``."""
    return _make_guarded_layout("flags", read, layout)


_LENGTH_FUNCTIONS = (len, np.shape, *_FUNCTIONS.values())
_GUARDED_MEMBERS = {
    **{name: _make_guarded_property(name) for name in _FUNCTIONS},
    "__len__": _guarded_length,
    "__iter__": _guarded_iter,
}
_original_members: dict[str, Any] = {}


def watch_shapes(placeholder: object) -> None:
    """Log guards on shapes as long as a placeholder exists."""
    _count_placeholders(1)
    weakref.finalize(placeholder, _count_placeholders, -1).atexit = False


def _count_placeholders(increment: int) -> None:
    """Count existing placeholders, and install properties that log guards on `Value` while there are any."""
    global _num_placeholders, _is_installed
    with callbacks_lock:  # a placeholder may be freed at any allocation, also while another is created
        _num_placeholders += increment
        if (_num_placeholders > 0) is _is_installed:
            return
        for name, method in _GUARDED_MEMBERS.items():
            _original_members.setdefault(name, Value.__dict__.get(name))
            member = method if _num_placeholders else _original_members[name]
            if member is not None:
                setattr(Value, name, member)
            elif name in Value.__dict__:
                delattr(Value, name)
        _is_installed = _num_placeholders > 0  # last, so that an interrupted call is repeated for the next placeholder
