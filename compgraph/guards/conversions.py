"""Leaks: conversions of nodes to plain numbers by Python's own conversions. They raise, or are logged.

``float(x)``, C code that needs a number, and ``plain[i] = x`` all call ``__float__``, which is not passed its caller. Within an
operator the number is returned, and a warning says that it has no derivative. If the source shows an assignment into a plain
array, or a call of a function that is not a conversion such as ``float``, an error is raised. At the top level numbers are
returned without a warning; functions of `math`, and NumPy functions that convert lists, raise. A short log of leaks lets the
message for a missing gradient name the lines where numbers left the graph.

Truth values and integers (``bool(x)``, ``int(x)``) are piecewise constant and lose no derivative: they are guards, not leaks.
"""

from __future__ import annotations

import cmath
import functools
import math
import operator
from collections import deque
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from .. import ops
from ..context import is_recording
from ..frames import (
    Place,
    callee,
    classify_use,
    frame_up,
    has_source,
    is_assigning,
    is_at_operator,
    is_formatting,
    method_called,
    source_lines,
    unknown,
    walk_frames,
    warn_at,
)
from ..tracing import LOGS, LeakError, LeakWarning, is_compiling, is_library, is_tracing, leak_error, leak_message, variable_of
from ..values import (
    ACTIVE,
    BLANK,
    INERT,
    SCALARS,
    PlaceholderNode,
    Value,
    describe,
    is_tracer,
    mark_python_number,
    mark_used,
    next_sequence_number,
    require_history,
    require_unbatched,
)
from .guard import TAKEN, Guard, contents, note_guard
from .guarded_errors import note_error
from .recipes import HEAVY, Recipe

_asarray = np.asarray  # NumPy's own function: the name is exchanged later, see `compgraph.interception`
KEPT = 100  # leaks in the log of a context
ASKED_AGAIN: dict[str, Any] = {"bool": bool, "int": int, "index": operator.index}
DRAWING = {"matplotlib", "mpl_toolkits"}  # packages that only show their arguments
SHOWN = 5  # escapes that a message names
_log: ContextVar[deque[Leak] | None] = ContextVar("escapes", default=None)


@dataclass(slots=True, unsafe_hash=True)
class Leak:
    """A conversion of a node to plain numbers.

    Attributes
    ----------
    what : str
        The conversion: ``"float()"``, ``".item()"``.
    code, instruction : code object, int
        The user's line.
    about : weakref or None
        The node, or its `Recipe`; None if it is unknown, and where plain numbers are intended.
    sequence_number : float
        The time of the conversion.
    number : float, array or None
        The number that left the graph.
    is_open : bool
        Whether it may matter to a graph, according to `autodiff.reverse.leak_warnings`.
    """

    what: str
    code: Any
    instruction: int
    about: Any = field(default=None, compare=False)
    sequence_number: float = field(default=0, compare=False)
    number: Any = field(default=None, compare=False)
    is_open: bool = field(default=False, compare=False)

    @property
    def is_text(self) -> bool:
        """Whether the node was converted to text, most likely to be printed."""
        return self.what in ("repr()", "str()", "format()")

    def __str__(self) -> str:
        place = source_lines.format_line(self.code, self.instruction)
        return self.what if place is None else f"{self.what} at {place}"


def open_leaks() -> list[Leak]:
    """Return the latest leaks that may matter to a graph."""
    return [escape for escape in _log.get() or () if escape.is_open]


def recent_leaks() -> tuple[Leak, ...]:
    """Return the latest leaks of the current context, oldest first."""
    return tuple(_log.get() or ())


class collecting_leaks:  # noqa: N801  (a context, used as a function is; written out since every gradient enters it)
    """Collect the leaks inside a context into a list, which is filled when the context is left."""

    __slots__ = ("_around", "_token", "found")

    def __enter__(self) -> list[Leak]:
        self.found: list[Leak] = []
        self._around = _log.get()
        self._token = _log.set(None)
        return self.found

    def __exit__(self, *exception: object) -> None:
        inside = _log.get()
        _log.reset(self._token)
        if inside:
            self.found += inside
            _extend(self._around, self.found)


def _extend(log: deque[Leak] | None, leaks: list[Leak]) -> None:
    if log is None:
        log = deque(maxlen=KEPT)
        _log.set(log)
    log.extend(leaks)


def format_leaks(escapes: Any, before: str = " ") -> str:
    """Return the latest distinct leaks as the end of a message, which begins with `before`; empty without leaks.

    Numbers that the source only prints or compares are left out.
    """
    distinct = [escape for escape in dict.fromkeys(escapes) if classify_use(escape.code, escape.instruction) != "shown"]
    if not distinct:
        return ""
    lead = f"{before}Values left the graph here: " if len(distinct) <= SHOWN else f"{before}Values left the graph, last here: "
    return lead + "; ".join(map(str, distinct[-SHOWN:]))


def _passes(node: Value) -> bool:
    """Whether numbers of a node lose a derivative: it is active or has a tangent, and operations are recorded."""
    require_history(node)
    return (type(node) in ACTIVE or bool(node.level)) and is_recording()


def _note_leak(what: str) -> None:
    """Log that the user's code, two calls up, converted a node; conversions by the two packages do not count."""
    if source_lines.is_package_code(frame_up(2).f_code.co_filename):
        return
    frame = source_lines.user_frame(3)
    _extend(_log.get(), [Leak(what, frame.f_code, frame.f_lasti)])


def note_taken(node: Value, what: str, frame: Any) -> None:
    """Log that user code, in a frame, made a plain array of a node by a function that calls no protocol."""
    if type(node) in ACTIVE and is_recording() and not is_within(node):
        _note_number_leak(node, what, frame)


def note_method(node: Value, frame: Any) -> None:
    """Log that user code passed a node to ``plain.dot``, which returns plain numbers if its result is a scalar."""
    if (
        type(node) in ACTIVE
        and hasattr(node, "raw_value")
        and not is_library(frame.f_code.co_filename)
        and (method_called(frame) == "dot" or (not _has_source(frame) and "dot" in frame.f_code.co_names))
    ):
        note_taken(node, "ndarray.dot()", frame)


def note_saved(name: str) -> None:
    """Log that NumPy wrote the numbers of a node to a file."""
    _remember(f"{name}()", source_lines.user_frame(2), is_tracing())


def note_text() -> None:
    """Log, within an operator, that NumPy converted a node to text."""
    if is_tracing():
        _remember("str()", source_lines.user_frame(2), False)


# Callables that are given numbers, with a warning: those by which a user asks for plain ones, or takes the elements apart.
_EXPLICIT = frozenset(
    {float, int, complex, np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64, np.int64, np.int32,
     list, tuple, set, map, filter, sorted, max, min, round, zip, dict, sum, enumerate}
)  # fmt: skip
# Those among them that call ``__float__`` or ``__complex__``, by their names.
_EXPLICIT_NAMES = frozenset({"float", "complex", "float64", "complex128"})
# Callables that are given numbers without a warning: those whose answers have no derivative.
_DECIDING = frozenset(
    {math.isnan, math.isinf, math.isfinite, math.isclose, math.floor, math.ceil, math.trunc, cmath.isnan, cmath.isinf,
     cmath.isfinite, cmath.isclose, bool, any, all, range, slice}
)  # fmt: skip
_OF_PYTHON = frozenset({"math", "cmath"})  # modules whose functions are never given a node's number


def _check_conversion(node: Value, what: str, frame: Any) -> Leak | None:
    """Decide whether code that converts a node raises, or receives its number, which is logged.

    Within an operator each conversion warns; it raises if the source shows a use other than that of a number.
    """
    if source_lines.is_package_code(frame.f_code.co_filename):
        return None
    if _is_drawing(frame) or is_formatting(frame):  # "%.2f" % x
        _remember(what, frame, False)
        return None
    call_target = callee(frame)
    if _is_among(call_target, _DECIDING):
        return None
    if is_assigning(frame) or _takes_unasked(call_target, node, frame):
        raise leak_error(frame, f"the {describe(node)}")
    return _note_number_leak(node, what, frame)


def _takes_unasked(call_target: Any, node: Value, frame: Any) -> bool:
    """Whether a frame calls a function that is not a conversion and would lose a derivative, as far as the source shows.

    Code without source names one of the functions that ask for numbers, or it is taken to call something else.
    """
    if is_at_operator(frame):  # plain + [x, y]
        return not is_within(node) and _is_called_by_user(frame)
    if call_target is None or _is_among(call_target, _EXPLICIT):  # None: for number in map(math.sin, x)
        return False
    if not _has_source(frame):
        return _EXPLICIT_NAMES.isdisjoint(frame.f_code.co_names)
    if is_within(node) or getattr(call_target, "__module__", None) in _OF_PYTHON:
        return True
    return _converts_lists(call_target, frame) and _is_called_by_user(frame)


# Functions that make plain arrays of lists, called by names bound before the first variable was made.
_MAKING = frozenset({np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.fromiter, np.arange})
# Modules of NumPy that compare and show numbers.
_COMPARING = ("numpy.testing", "numpy._core.arrayprint", "numpy.lib._npyio_impl", "numpy.lib._format_impl")


def _has_source(frame: Any) -> bool:
    return has_source(frame.f_code, frame.f_lasti)


def _converts_lists(call_target: Any, frame: Any) -> bool:
    """Whether a callable (a ufunc, its methods, methods of plain arrays, a constructor) calls no protocol for lists."""
    if call_target is unknown:  # make().fill(x)
        name = method_called(frame)
        return name is not None and hasattr(np.ndarray, name) and name.strip("_") not in CONVERSIONS
    owner = getattr(call_target, "__self__", None)
    return (
        isinstance(call_target, (np.ufunc, ops.DISPATCHING))
        or isinstance(owner, (np.ufunc, np.ndarray))
        or _is_among(call_target, _MAKING)
    )


def _is_called_by_user(frame: Any) -> bool:
    """Whether user code, or NumPy code on its behalf, runs in a frame; not for NumPy's testing and printing."""
    for outer in walk_frames(frame):
        if str(outer.f_globals.get("__name__")).startswith(_COMPARING):
            return False
        if not source_lines.internal[outer.f_code.co_filename]:
            return not is_library(outer.f_code.co_filename)
    return False


def _note_number_leak(node: Value, what: str, frame: Any) -> Leak | None:
    """Log an explicit conversion, with a warning within an operator."""
    if source_lines.is_package_code(frame.f_code.co_filename):
        return None
    is_inside = is_within(node)
    escape = _remember(what, frame, is_inside and not is_compiling() and not _is_drawing(frame))
    if not _is_drawing(frame) and hasattr(node, "raw_value"):
        escape.about, escape.sequence_number, escape.is_open = ref(node), next_sequence_number(), not is_inside
        escape.number = node.raw_value if node.raw_value.nbytes <= HEAVY else None
    return escape


def _complete(escape: Leak | None, guard: Guard | None, number: Any = None) -> None:
    """Add the recipe of the node, which lives as long as its leaves, and the number to a leak."""
    if escape is None or escape.about is None:
        return
    if guard is not None and type(guard.args[0]) is Recipe:
        escape.about = ref(guard.args[0])
    if number is not None:
        escape.number = number


def is_within(node: Value) -> bool:
    """Whether new values are tracers here, in this thread or in one that started it, or the node has a tangent."""
    return is_tracing() or bool(node.level) or (bool(LOGS) and is_tracer(node))


def _is_drawing(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in DRAWING


def _is_among(call_target: Any, known: frozenset[Any]) -> bool:
    return isinstance(call_target, Hashable) and call_target in known


def _remember(what: str, frame: Any, warns: bool) -> Leak:
    """Log a leak, on the user's line; if `warns`, warn of it once per line."""
    while source_lines.internal[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    escape = Leak(what, frame.f_code, frame.f_lasti)
    if warns and (not is_tracing() or escape not in (_log.get() or ())):  # a thread's own log is not that of the operator
        message = f"{escape}: this number has no derivative. If that is intended, write x.value"
        warn_at(Place.of(frame), message, LeakWarning)
    _extend(_log.get(), [escape])
    return escape


def _solid(node: Any) -> Any:
    """Return the plain array of a node; the node itself if it has lost its history."""
    return _asarray(node.raw_value) if hasattr(node, "raw_value") else node


def _conversion(name: str) -> Any:
    """Return the method for ``float(x)`` and other conversions."""
    convert_inert, by_numpy = _inert_conversion(name), getattr(np.ndarray, f"__{name}__")
    what, is_number = f"{name}()", name in ("float", "complex")

    def convert(self: Value) -> Any:
        if not _passes(self):
            return convert_inert(self) if hasattr(self, "raw_value") and not self.level else by_numpy(_solid(self))
        number = _number(by_numpy, name, self)
        frame, escape = frame_up(1), None
        if is_number:
            escape = _check_conversion(self, what, frame)
        elif is_assigning(frame) and not source_lines.is_package_code(
            frame.f_code.co_filename
        ):  # into integers: most likely not meant
            raise leak_error(frame, f"the {describe(self)}")
        _complete(escape, note_guard(what, ASKED_AGAIN.get(name), (self,), number, source_lines.user_frame(2)), number)
        return number

    return convert


def _number(by_numpy: Any, name: str, node: Value) -> Any:
    """Return a node's number by NumPy's conversion. Its error, as of ``int`` of nan, is guarded as others are."""
    try:
        return by_numpy(_solid(node))
    except (ArithmeticError, ValueError) as error:
        if name in ASKED_AGAIN and hasattr(node, "raw_value"):
            note_error(ASKED_AGAIN[name], (node,), {}, error, source_lines.user_frame(3))
        raise
    except TypeError as error:
        if name == "index" and hasattr(node, "raw_value"):
            error.add_note(f"the {describe(node)} is used as an index or a length; int(x) converts a number")
        raise


def _inert_conversion(name: str) -> Any:
    """Return the conversion of nodes without derivative: a guard, and no leak."""
    by_numpy = getattr(np.ndarray, f"__{name}__")
    function, what = ASKED_AGAIN.get(name), f"{name}()"

    def convert(self: Value) -> Any:
        number = _number(by_numpy, name, self)
        if function is not None or is_recording():  # also under no_graph, where Python branches on the value too
            note_guard(what, function, (self,), number, source_lines.user_frame(2))
        return number

    return convert


def _note_number(node: Value, what: str) -> Guard | None:
    """Log a guard that the user's code received numbers, whose use is unknown."""
    is_number = node.args or isinstance(node, PlaceholderNode) or what in TAKEN  # a variable's value is mostly read to update it
    if is_number and not source_lines.is_package_code(frame_up(2).f_code.co_filename):
        if type(node) in INERT:  # counts, places, truth values: often the same in a later run, so worth asking again
            return note_guard(what, contents, (node,), contents(node.raw_value), source_lines.user_frame(3))
        return note_guard(what, None, (node,), None, source_lines.user_frame(3))
    return None


def _plain_method(name: str) -> Any:
    """Return a method such as ``x.item()``, which returns plain values: logged, with a warning within operators."""
    by_numpy = getattr(np.ndarray, name)
    what, is_pickle = f".{name}()", name in ("dump", "dumps")

    def method(self: Value, *args: Any, **kwargs: Any) -> Any:
        escape = None
        if _passes(self):
            is_users = is_tracing() and not source_lines.is_package_code(frame_up(1).f_code.co_filename)
            if name == "item" and is_users:  # within a function that is differentiated a number keeps its derivative
                return mark_python_number(_element(self, *args))
            if name == "tolist" and is_users:
                return _nested(self)
            escape = _note_number_leak(self, what, frame_up(1))
        if hasattr(self, "raw_value"):
            _complete(escape, _note_number(self, what))
        return by_numpy(self if is_pickle else _solid(self), *args, **kwargs)

    return method


def _element(node: Value, *index: Any) -> Any:
    """Return ``node.item(*index)`` as a node."""
    np.broadcast_to(0, node.shape).item(*index)  # NumPy raises here for a wrong index
    if len(index) == 1 and isinstance(index[0], tuple):
        return node[index[0]]
    if len(index) > 1:
        return node[index]
    return np.ravel(node)[index[0] if index else 0]


def _nested(node: Value) -> Any:
    """Return ``node.tolist()`` with nodes as its numbers."""
    return list(map(_nested, node)) if node.ndim else mark_python_number(node[()])


def _plain_attribute(name: str) -> property:
    """Return an attribute such as ``x.data``, by which other libraries access the memory of an array."""
    by_numpy = getattr(np.ndarray, name)
    what = f".{name}"

    def read(self: Value) -> Any:
        if _passes(self):
            escape = _note_number_leak(self, what, frame_up(1))
            _complete(escape, _note_number(self, what))
        return by_numpy.__get__(_solid(self))

    def refuse(self: Value, value: Any) -> None:
        raise TypeError(f"setting {what} of a node in place would bypass its graph; make a new node instead")

    return property(read, refuse)


def _value(self: Value) -> np.ndarray[Any, Any]:
    """The plain array of this node, sharing its memory."""
    if _passes(self):
        frame = frame_up(1)
        if is_within(self) and not source_lines.is_package_code(frame.f_code.co_filename) and _asks_for_attribute(frame):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'value'", name="value", obj=self)
        _note_leak(".value")
    if is_recording():
        _note_number(self, ".value")
    if type(self) in BLANK and not self.raw_value.any():  # a blank array may be filled through .value, which is intended
        mark_used(self)
    return np.asarray(self.raw_value)


def _refuse_value(self: Value, value: Any) -> NoReturn:
    raise AttributeError("value cannot be set. Write x[...] = array or x -= step, which updates a variable in place")


def _asks_for_attribute(frame: Any) -> bool:
    """Whether code may only probe for an attribute that arrays lack: by ``hasattr``, ``getattr``, or in a ``try``."""
    names, call_target = frame.f_code.co_names, callee(frame)
    if call_target is None or call_target is unknown:
        return "AttributeError" in names or (call_target is unknown and not _PROBING.isdisjoint(names))
    return call_target is hasattr or call_target is getattr


_PROBING = frozenset({"hasattr", "getattr"})


CONVERSIONS = ("float", "int", "complex", "bool", "index")
PLAIN_METHODS = (*sorted(ops.PLAIN_METHODS), "__array__", "__dlpack__")
PLAIN_ATTRIBUTES = ("__array_interface__", "__array_struct__", "ctypes", "data")


def _stored(self: Value, protocol: Any) -> Any:
    """Return the value that sqlite3 stores: a number, or the bytes of an array, instead of the memory of the node."""
    if getattr(protocol, "__name__", "") != "PrepareProtocol":
        return None
    name = "tobytes" if self.ndim else "tolist"
    if _passes(self):
        _note_number_leak(self, f".{name}()", frame_up(1))
    if hasattr(self, "raw_value"):
        _note_number(self, f".{name}()")
    return getattr(np.ndarray, name)(_solid(self))


def _buffer(self: Value, flags: int) -> memoryview:
    """``__buffer__`` of tracers, by which C code reads memory from Python 3.12 on; NumPy calls ``__array__`` if it raises."""
    if self.level or _passes(self) or is_compiling():
        raise HiddenError(leak_message(list(walk_frames(frame_up(1))), f"the {describe(self)}"))
    note_guard(".__buffer__()", contents, (self,), contents(self.raw_value), source_lines.user_frame(2))
    return np.ndarray.__buffer__(np.asarray(self.raw_value), flags)  # type: ignore[attr-defined,no-any-return]


def _array(self: Value, dtype: Any = None, copy: Any = None) -> Any:
    """``__array__`` of tracers, by which C code and functions that call no protocol take an array's numbers.

    It raises for an active array. A scalar is returned as an array of objects that contains the tracer, so that ``np.sin([x[0],
    x[1]])`` computes on tracers. Numbers without derivative are returned under a guard.
    """
    frame = frame_up(1)
    if not _is_drawing(frame):
        if self.level or _passes(self) or is_compiling():
            if (
                self.is_scalar
                and (dtype is None or np.dtype(dtype) == object)
                and not source_lines.is_package_code(frame.f_code.co_filename)
            ):
                return _object_array(self)
            raise leak_error(frame, variable_of(self, frame) or f"the {describe(self)}")
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


def _hidden(name: str) -> property:
    """An attribute by which NumPy would take numbers without a call; if it is missing, NumPy calls ``__array__``."""

    def read(self: Value) -> Any:
        if not self.level and not _passes(self):
            raise AttributeError(name)
        raise HiddenError(leak_message(list(walk_frames(frame_up(1))), f"the {describe(self)}"))

    return property(read)


def text_conversion(name: str, by_node: Callable[..., str]) -> Any:
    """Return a conversion to text, which is not checked again when a graph is replayed, unlike ``bool``."""

    @functools.wraps(by_node)
    def show(self: Value, *options: Any) -> str:
        frame = frame_up(1)
        if (
            is_tracing()
            and not source_lines.is_package_code(frame.f_code.co_filename)
            and (is_compiling() or callee(frame) is not print)
        ):
            _remember(name, source_lines.user_frame(2), False)
        return by_node(self, *options)

    return show


def methods() -> dict[str, Any]:
    """Return the methods to install on `Node`."""
    return {
        "__repr__": text_conversion("repr()", vars(Value)["__repr__"]),
        "__str__": text_conversion("str()", vars(Value)["__str__"]),
        **{f"__{name}__": _conversion(name) for name in CONVERSIONS},
        **{name: _plain_method(name) for name in PLAIN_METHODS},
        "__bytes__": _plain_method("tobytes"),  # ``bytes(x)``, which else would be the bytes of the body
        **{name: _plain_attribute(name) for name in PLAIN_ATTRIBUTES},
        "__conform__": _stored,
        "value": property(_value, _refuse_value),
    }


def tracer_methods() -> dict[str, Any]:
    """Return the methods to install on `Tracer`."""
    return {
        "__array__": _array,
        "__buffer__": _buffer,
        **{name: _hidden(name) for name in ("__array_interface__", "__array_struct__")},
    }


def is_integer(self: Value) -> bool:
    """``x.is_integer()`` of a scalar node, under a guard."""
    require_history(self)
    require_unbatched(".is_integer()", self)
    is_whole = _is_integer(self.raw_value)
    note_guard(".is_integer()", _is_integer, (self,), is_whole, source_lines.user_frame(2))
    return is_whole


def _is_integer(value: Any) -> bool:
    return float(np.asarray(value).item()).is_integer()


def _number_refused(name: str) -> Any:
    """Return a method of numbers that returns text or integers, which lose the derivative, and so raises."""

    def method(self: Value, *args: Any) -> Any:
        if _passes(self):
            raise leak_error(frame_up(1), f"the {describe(self)}")
        require_unbatched(f".{name}()", self)
        number = _solid(self).item()
        _note_number(self, f".{name}()")
        return getattr(float(number), name)(*args)

    return method


NUMBER_METHODS = {
    "is_integer": is_integer,
    "hex": _number_refused("hex"),
    "as_integer_ratio": _number_refused("as_integer_ratio"),
}


def free_inert_nodes() -> None:
    """Give inert nodes conversions that neither warn nor raise, under a guard."""
    for kind in INERT:
        for name in CONVERSIONS:
            setattr(kind, f"__{name}__", _inert_conversion(name))


_identity = object.__hash__
_internal = source_lines.internal
_Memo = type(functools.lru_cache(abs))


_REFUSED = (
    "hash() of the value: a dictionary, a set or a cache looks for the number of the {}, whose derivative would be lost. Use a "
    "key without a derivative (an index, np.round(x), int(x)), a list with `in`, or x.value"
)


def scalar_hash(self: Any) -> int:
    """Return the hash of the number of a scalar node; that of the identity for an array, and for code of the two packages."""
    frame = frame_up(1)
    if _internal[frame.f_code.co_filename] or self.ndim:
        return _identity(self)
    require_history(self)
    if _has_derivative(self):
        if not is_within(self) or _is_memo(frame):
            return _identity(self)
        if is_recording():
            raise leak_error(frame, text=_REFUSED.format(describe(self)))
    number = key_of(self.raw_value)
    note_guard("hash()", key_of, (self,), number, source_lines.user_frame(2))
    return _identity(self) if number == "nan" else hash(number)


def _has_derivative(node: Any) -> bool:
    """Whether the number of a node loses a derivative: the node is active, or has a nonzero tangent."""
    while isinstance(node, Value) and node.level:
        if node.derivative() is not None:  # type: ignore[attr-defined]
            return True
        node = node.primal  # type: ignore[attr-defined]
    return type(node) in ACTIVE


def key_of(value: Any) -> Any:
    """Return the number by which a dictionary finds a scalar; text for nan, which equals nothing."""
    number = np.asarray(value).item()
    return "nan" if number != number else number


def _is_memo(frame: Any) -> bool:
    """Whether a frame calls a function of `functools.lru_cache`, which returns for a node only its result for that node."""
    called = callee(frame)
    return (called.__func__ if type(called) is MethodType else called).__class__ is _Memo


def hash_scalars_by_value() -> None:
    """Install the hash of scalar nodes."""
    for kind in SCALARS:
        kind.__hash__ = scalar_hash
