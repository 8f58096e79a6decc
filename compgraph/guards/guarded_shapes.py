"""Guards on shapes and layouts that Python reads."""

from __future__ import annotations

import functools
import operator
import os.path
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..context import callbacks_lock
from ..frames import frame_up, source_lines
from ..graph import breadth_first
from ..ops import compositions
from ..values import ArgumentNode, PlaceholderNode, Value, describe
from .guard import Guard, layout, note_guard, shapes

_COMPOSITIONS = os.path.dirname(compositions.__file__)


def needs_no_shape_guard(frame: Any) -> bool:
    """Whether a shape read in a frame needs no guard: no placeholder exists, or our code reads it outside of a composition.

    Compositions (NumPy functions in recorded steps) depend on the shapes that they read, as NumPy's own code does.
    """
    filename = frame.f_code.co_filename
    return not _living or (source_lines.is_package_code(filename) and not filename.startswith(_COMPOSITIONS))


def note_length(node: Any, what: str = "its size") -> None:
    """Log a guard on a node's shape, by which one of our functions selects elements; `what` is for the message."""
    if _living:
        note_guard(what, np.shape, (node,), node.raw_value.shape, source_lines.user_frame(2))


def note_lengths(what: str, *outputs: Any, sequence_number: int | None = None) -> None:
    """Log guards on the shapes of placeholders and arguments behind `outputs`, if `what` was recorded for these alone.

    The operations that a derivative's rules record contain lengths of the arrays. If the graph is run with other lengths,
    derivatives of `autodiff.reverse.gradients` are recorded again; others cannot be, and need these guards.
    """
    if _living:
        for node in breadth_first(*[x for x in map(_without_axes, outputs) if isinstance(x, Value)]):
            if isinstance(node, (PlaceholderNode, ArgumentNode)):  # where other lengths may come from
                description = f"the shape of the {describe(node)}, for which {what} was recorded,"
                note_guard(description, np.shape, (node,), node.raw_value.shape, source_lines.user_frame(2), sequence_number)


def _without_axes(value: Any) -> Any:
    """Return one batch element of a batched value."""
    while isinstance(value, Value) and value.trace_kind == "batch":
        value = value.values  # type: ignore[attr-defined]
    return value


# ------------------------------------------------------------------------------------------- shapes


class Shape(tuple[int, ...]):
    """A shape that Python has read. Its guard is about all axes, or about one if Python reads only that.

    C code may read a tuple without calling its methods, so the guard is about the whole shape at first. ``shape[0]`` narrows it
    to that axis; any other use of the same tuple widens it again.
    """

    _guard: Guard
    _axis: int | None
    _is_whole: bool

    def __new__(cls, lengths: Iterable[int], guard: Guard | None = None) -> Any:
        """Return a shape with its guard; without one, as in ``type(shape)(lengths)``, an ordinary tuple."""
        if guard is None:
            return tuple(lengths)
        shape = super().__new__(cls, lengths)
        shape._guard, shape._axis, shape._is_whole = guard, None, False
        return shape

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        if not self._is_whole and type(item) is int and self._axis in (None, axis := operator.index(index)):
            self._axis, guard = axis, self._guard
            guard.what, guard.function, guard.recorded = f".shape[{axis}]", functools.partial(_length, axis), item
        else:
            self.whole()
        return item

    def whole(self) -> tuple[int, ...]:
        """The lengths of all axes as an ordinary tuple; the guard is about all of them from then on."""
        lengths = tuple(tuple.__iter__(self))
        self._is_whole, guard = True, self._guard
        guard.what, guard.function, guard.recorded = ".shape", np.shape, lengths
        return lengths

    def __reduce__(self) -> Any:
        return tuple, (self.whole(),)


def _length(axis: int, x: Any) -> int:
    return int(np.shape(x)[axis])


def is_shape_guard(guard: Guard) -> bool:
    """Whether a guard depends on lengths only."""
    return getattr(guard.function, "func", guard.function) in (_length, np.shape, np.size, len, shapes)


def _of_all(name: str) -> Callable[..., Any]:
    """Return a method of tuples for `Shape`: called on an ordinary tuple, with the guard widened."""
    method = getattr(tuple, name)
    return lambda self, *args: method(self.whole(), *args)


def _operated(operation: Callable[[Any, Any], Any], is_reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return an operator of tuples for `Shape`, as an operator so that the other operand can take over."""
    return lambda self, other: operation(other, self.whole()) if is_reflected else operation(self.whole(), other)


for _name in ("iter", "len", "hash", "repr", "contains", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Shape, f"__{_name}__", _of_all(f"__{_name}__"))
for _name in ("count", "index"):
    setattr(Shape, _name, _of_all(_name))
for _name, _operation in (("add", operator.add), ("mul", operator.mul)):
    setattr(Shape, f"__{_name}__", _operated(_operation))
    setattr(Shape, f"__r{_name}__", _operated(_operation, is_reflected=True))


# ------------------------------------------------------------------------------------------- told by nodes


def is_length_guard(guard: Any) -> bool:
    """Whether a guard is about a shape; those are logged only while a placeholder exists."""
    return guard.function in _ABOUT_LENGTHS


# While a placeholder lives, the properties of `Node` that return a shape note guards. Without one they need not: nothing but a
# placeholder can be fed another shape than it was recorded with.
_living = 0
_is_watching = False
_FUNCTIONS: dict[str, Callable[..., Any]] = {"shape": np.shape, "size": np.size, "nbytes": operator.attrgetter("nbytes")}


def _guarded(name: str) -> property:
    function = _FUNCTIONS[name]

    def guarded(self: Value) -> Any:
        attribute_value = self.raw_value.nbytes if name == "nbytes" else getattr(super(Value, self), name)
        if needs_no_shape_guard(frame_up(1)) or not hasattr(self, "raw_value"):
            return attribute_value
        guard = note_guard(f".{name}", function, (self,), attribute_value, source_lines.user_frame(2))
        return attribute_value if guard is None or name != "shape" else Shape(attribute_value, guard)

    def refuse(self: Value, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(guarded, refuse)


def _guarded_length(self: Value) -> int:
    length = super(Value, self).__len__()
    if not needs_no_shape_guard(frame_up(1)) and hasattr(self, "raw_value"):
        note_guard("len()", len, (self,), length, source_lines.user_frame(2))
    return length


def _guarded_rows(self: Value) -> Any:
    if not needs_no_shape_guard(frame_up(1)) and hasattr(self, "raw_value") and self.ndim:
        note_guard("a loop over rows", len, (self,), super(Value, self).__len__(), source_lines.user_frame(2))
    return super(Value, self).__iter__()


def _guarded_layout(name: str, read: Callable[[Any], Any], function: Callable[[Any], Any]) -> property:
    """Return a property of the memory layout that logs a guard if code outside of the two packages reads it."""

    def guarded(self: Value) -> Any:
        layout_value = read(self)
        if hasattr(self, "raw_value") and not source_lines.is_package_code(frame_up(1).f_code.co_filename):
            note_guard(f".{name}", function, (self,), function(self.raw_value), source_lines.user_frame(2))
        return layout_value

    def refuse(self: Value, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(guarded, refuse)


def guarded_strides(read: Callable[[Any], Any]) -> property:
    """``x.strides``."""
    return _guarded_layout("strides", read, lambda array: np.asarray(array).strides)


def guarded_flags(read: Callable[[Any], Any]) -> property:
    """``x.flags``."""
    return _guarded_layout("flags", read, layout)


_ABOUT_LENGTHS = (len, np.shape, *_FUNCTIONS.values())
_GUARDED = {**{name: _guarded(name) for name in _FUNCTIONS}, "__len__": _guarded_length, "__iter__": _guarded_rows}
_before: dict[str, Any] = {}


def watch_shapes(placeholder: Any) -> None:
    """Log guards on shapes as long as a placeholder exists."""
    _count(1)
    weakref.finalize(placeholder, _count, -1).atexit = False


def _count(more: int) -> None:
    """Count existing placeholders; while there are some, `Node` has properties that log guards."""
    global _living, _is_watching
    with callbacks_lock:  # a placeholder may be freed at any allocation, also while another is created
        _living += more
        if (_living > 0) is _is_watching:
            return
        for name, method in _GUARDED.items():
            _before.setdefault(name, Value.__dict__.get(name))
            now = method if _living else _before[name]
            if now is not None:
                setattr(Value, name, now)
            elif name in Value.__dict__:
                delattr(Value, name)
        _is_watching = _living > 0  # the last step: what a signal cuts off is done again for the next placeholder
