"""Shapes and layouts that Python was told, as guards."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..graph import InputNode, Node, PlaceholderNode, breadth_first, describe
from ..graph.context import callbacks_lock
from ..graph.interpreter import frame_up, source_lines
from ..operations import compositions
from .guards import Guard, layout, note

_COMPOSITIONS = str(Path(compositions.__file__).parent)


def freezes_nothing(frame: Any) -> bool:
    """Whether the code that asks for a shape is ours and keeps none: all but compositions, which do as NumPy's own code."""
    filename = frame.f_code.co_filename
    return not _living or (source_lines.is_ours(filename) and not filename.startswith(_COMPOSITIONS))


def note_length(node: Any, what: str = "its size") -> None:
    """Take note of the shape of a node that decides where the elements are that a call of ours reads or writes."""
    if _living:
        note(what, np.shape, (node,), node.plain.shape, source_lines.users_frame(2))


def note_lengths(what: str, *outputs: Any, tick: int | None = None) -> None:
    """Take note of the shapes of placeholders and arguments behind nodes, for what is recorded, from a tick on, for these alone.

    What a derivative's rules record holds lengths of the arrays they saw. `autodiff.reverse.gradients` is asked for again
    where the graph is run with others; other derivatives cannot be.
    """
    if _living:
        for node in breadth_first(*[x for x in outputs if isinstance(x, Node)]):
            if isinstance(node, (PlaceholderNode, InputNode)):  # where other lengths may come from
                asked = f"the shape of the {describe(node)}, for which {what} was recorded,"
                note(asked, np.shape, (node,), node.plain.shape, source_lines.users_frame(2), tick)


# ------------------------------------------------------------------------------------------- shapes


class Shape(tuple[int, ...]):
    """A shape that Python was told, which binds the graph to all of it, or to the one axis that is all Python looks at.

    Code in C may read a tuple without asking its class, so all of it is bound until ``shape[0]`` is asked for; whatever else
    is asked of the same tuple binds all of it again.
    """

    _guard: Guard
    _axis: int | None
    _is_whole: bool

    def __new__(cls, lengths: Iterable[int], guard: Guard | None = None) -> Any:
        """What is made of a shape, as by ``type(shape)(lengths)``, is a tuple like others."""
        if guard is None:
            return tuple(lengths)
        shape = super().__new__(cls, lengths)
        shape._guard, shape._axis, shape._is_whole = guard, None, False
        return shape

    def __getitem__(self, index: Any) -> Any:
        answer = tuple.__getitem__(self, index)
        if not self._is_whole and answer.__class__ is int and self._axis in (None, axis := operator.index(index)):
            self._axis, guard = axis, self._guard
            guard.what, guard.function, guard.answer = f".shape[{axis}]", functools.partial(_length, axis), answer
        else:
            self.whole()
        return answer

    def whole(self) -> tuple[int, ...]:
        """The lengths of all axes, which the graph hangs on from here on."""
        lengths = tuple(tuple.__iter__(self))
        self._is_whole, guard = True, self._guard
        guard.what, guard.function, guard.answer = ".shape", np.shape, lengths
        return lengths

    def __reduce__(self) -> Any:
        return tuple, (self.whole(),)


def _length(axis: int, x: Any) -> int:
    return int(np.shape(x)[axis])


def _of_all(name: str) -> Callable[..., Any]:
    """A method of a tuple, for a shape: asked of a plain one."""
    method = getattr(tuple, name)
    return lambda self, *args: method(self.whole(), *args)


def _operated(operation: Callable[[Any, Any], Any], is_reflected: bool = False) -> Callable[[Any, Any], Any]:
    """An operator of a tuple, for a shape; the other operand may know it better than a tuple does."""
    return lambda self, other: operation(other, self.whole()) if is_reflected else operation(self.whole(), other)


for _name in ("iter", "len", "hash", "repr", "contains", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Shape, f"__{_name}__", _of_all(f"__{_name}__"))
for _name in ("count", "index"):
    setattr(Shape, _name, _of_all(_name))
for _name, _operation in (("add", operator.add), ("mul", operator.mul)):
    setattr(Shape, f"__{_name}__", _operated(_operation))
    setattr(Shape, f"__r{_name}__", _operated(_operation, is_reflected=True))


# ------------------------------------------------------------------------------------------- told by nodes

# While a placeholder lives, the properties that tell the shape of a node take note of what they told. Only a placeholder
# can be fed another shape than it was recorded with.
_living = 0
_is_watching = False
_FUNCTIONS: dict[str, Callable[..., Any]] = {"shape": np.shape, "size": np.size, "nbytes": operator.attrgetter("nbytes")}


def _guarded(name: str) -> property:
    by_numpy = getattr(np.ndarray, name).__get__
    read = (lambda self: self.plain.nbytes) if name == "nbytes" else by_numpy  # a hollow body tells its own shape alone
    function = _FUNCTIONS[name]

    def tell(self: Node) -> Any:
        answer = read(self)
        if freezes_nothing(frame_up(1)) or not hasattr(self, "plain"):
            return answer
        guard = note(f".{name}", function, (self,), answer, source_lines.users_frame(2))
        return answer if guard is None or name != "shape" else Shape(answer, guard)

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(tell, refuse)


def _guarded_length(self: Node) -> int:
    answer = np.ndarray.__len__(self)
    if not freezes_nothing(frame_up(1)) and hasattr(self, "plain"):
        note("len()", len, (self,), answer, source_lines.users_frame(2))
    return answer


def _guarded_rows(self: Node) -> Any:
    if not freezes_nothing(frame_up(1)) and hasattr(self, "plain") and self.ndim:
        note("a loop over rows", len, (self,), np.ndarray.__len__(self), source_lines.users_frame(2))
    return np.ndarray.__iter__(self)


def _guarded_layout(name: str, read: Callable[[Any], Any], function: Callable[[Any], Any]) -> property:
    """A property that tells how an array lies in memory, and takes note of what it told to code that is not ours."""

    def tell(self: Node) -> Any:
        answer = read(self)
        if hasattr(self, "plain") and not source_lines.is_ours(frame_up(1).f_code.co_filename):
            note(f".{name}", function, (self,), function(self.plain), source_lines.users_frame(2))
        return answer

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(tell, refuse)


def guarded_strides(read: Callable[[Any], Any]) -> property:
    """``x.strides``."""
    return _guarded_layout("strides", read, lambda array: np.asarray(array).strides)


def guarded_flags(read: Callable[[Any], Any]) -> property:
    """``x.flags``."""
    return _guarded_layout("flags", read, layout)


_GUARDED = {**{name: _guarded(name) for name in _FUNCTIONS}, "__len__": _guarded_length, "__iter__": _guarded_rows}
_before: dict[str, Any] = {}


def watch_shapes(placeholder: Any) -> None:
    """Take note of shapes that are told for as long as a placeholder lives."""
    _count(1)
    weakref.finalize(placeholder, _count, -1).atexit = False


def _count(more: int) -> None:
    """Count the placeholders that live; `Node` tells of its shapes while there are any, and costs nothing more else."""
    global _living, _is_watching
    with callbacks_lock:  # a placeholder may die wherever memory is asked for, also where another is made
        _living += more
        if (_living > 0) is _is_watching:
            return
        for name, method in _GUARDED.items():
            _before.setdefault(name, Node.__dict__.get(name))
            now = method if _living else _before[name]
            if now is not None:
                setattr(Node, name, now)
            elif name in Node.__dict__:
                delattr(Node, name)
        _is_watching = _living > 0  # the last step: what a signal cuts off is done again for the next placeholder
