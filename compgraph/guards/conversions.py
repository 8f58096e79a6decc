"""Leaks: conversions of nodes to plain numbers. They raise, or are logged.

``float(x)``, C code that needs a number, and ``plain[i] = x`` all call ``__float__``, which is not passed its caller. Within an
operator the number is returned with a warning. If the source shows an assignment into a plain array, or a call of a function that
is not a conversion such as ``float``, an error is raised. At the top level numbers are returned without a warning; functions of
`math`, and NumPy functions that convert lists, raise. A short log of leaks lets the message for a missing gradient name the lines
where numbers left the graph.

Truth values and integers (``bool(x)``, ``int(x)``) are piecewise constant and lose no derivative: they are guards, not leaks.
"""

from __future__ import annotations

import cmath
import functools
import math
import operator
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, NoReturn
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..array_types import Array
from ..context import is_recording
from ..frames import (
    SourceLine,
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
    INERT,
    SCALARS,
    USED_CLASS_OF_BLANK,
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
from .guard import VALUE_METHODS, Guard, contents, note_guard
from .guarded_errors import note_error
from .recipes import MAX_RECIPE_ARRAY_BYTES, Recipe

_asarray = np.asarray  # NumPy's own function, before `compgraph.interception` patches the name
MAX_LEAKS = 100  # leaks in the log of a context
RECHECKED_CONVERSIONS: dict[str, Any] = {"bool": bool, "int": int, "index": operator.index}
PLOTTING_PACKAGES = {"matplotlib", "mpl_toolkits"}  # packages that only display their arguments
MAX_SHOWN = 5  # leaks named in a message
_log: ContextVar[deque[Leak] | None] = ContextVar("leaks", default=None)


@dataclass(slots=True, unsafe_hash=True)
class Leak:
    """A conversion of a node to plain numbers.

    Attributes
    ----------
    what : str
        The conversion: ``"float()"``, ``".item()"``.
    code, instruction : code object, int
        The user's line.
    source_ref : weakref or None
        The node, or its `Recipe`; None if it is unknown, and where plain numbers are intended.
    sequence_number : float
        The time of the conversion.
    number : float, array or None
        The number that left the graph.
    is_open : bool
        Whether a graph may depend on it, according to `autodiff.reverse.leak_warnings`.
    """

    what: str
    code: Any
    instruction: int
    source_ref: Any = field(default=None, compare=False)
    sequence_number: float = field(default=0, compare=False)
    number: Any = field(default=None, compare=False)
    is_open: bool = field(default=False, compare=False)

    @property
    def is_text(self) -> bool:
        """Whether the node was converted to text, which is most likely printed."""
        return self.what in ("repr()", "str()", "format()")

    def __str__(self) -> str:
        line = source_lines.format_line(self.code, self.instruction)
        return self.what if line is None else f"{self.what} at {line}"


def open_leaks() -> list[Leak]:
    """Return the latest leaks on which a graph may depend."""
    return [leak for leak in _log.get() or () if leak.is_open]


def recent_leaks() -> tuple[Leak, ...]:
    """Return the latest leaks of the current context, oldest first."""
    return tuple(_log.get() or ())


class collecting_leaks:  # noqa: N801  (a context manager; a class because every gradient enters it)
    """Collect the leaks inside a context into a list, which is filled when the context is left."""

    __slots__ = ("_outer_log", "_token", "leaks")

    def __enter__(self) -> list[Leak]:
        self.leaks: list[Leak] = []
        self._outer_log = _log.get()
        self._token = _log.set(None)
        return self.leaks

    def __exit__(self, *exception: object) -> None:
        inner_log = _log.get()
        _log.reset(self._token)
        if inner_log:
            self.leaks += inner_log
            _extend(self._outer_log, self.leaks)


def _extend(log: deque[Leak] | None, leaks: list[Leak]) -> None:
    if log is None:
        log = deque(maxlen=MAX_LEAKS)
        _log.set(log)
    log.extend(leaks)


def format_leaks(leaks: Sequence[Any], before: str = " ") -> str:
    """Format the latest distinct leaks as the end of a message, which begins with `before`; empty without leaks.

    Numbers that the source only prints or compares are omitted.
    """
    distinct = [leak for leak in dict.fromkeys(leaks) if classify_use(leak.code, leak.instruction) != "shown"]
    if not distinct:
        return ""
    lead = (
        f"{before}Values left the graph here: " if len(distinct) <= MAX_SHOWN else f"{before}Values left the graph, last here: "
    )
    return lead + "; ".join(map(str, distinct[-MAX_SHOWN:]))


def _loses_derivative(node: Value) -> bool:
    """Whether a conversion of a node loses a derivative: it is active or has a tangent, and operations are recorded."""
    require_history(node)
    return (type(node) in ACTIVE or bool(node.level)) and is_recording()


def _note_leak(what: str) -> None:
    """Log that the user's code, two calls up, converted a node; conversions by the packages are not logged."""
    if source_lines.is_package_code(frame_up(2).f_code.co_filename):
        return
    frame = source_lines.user_frame(3)
    _extend(_log.get(), [Leak(what, frame.f_code, frame.f_lasti)])


def note_conversion(node: Value, what: str, frame: object) -> None:
    """Log that user code, in a frame, converted a node to a plain array by a function that calls no protocol."""
    if type(node) in ACTIVE and is_recording() and not is_within_operator(node):
        _note_number_leak(node, what, frame)


def note_method(node: Value, frame: Any) -> None:
    """Log that user code passed a node to ``plain.dot``, which returns plain numbers if its result is a scalar."""
    if (
        type(node) in ACTIVE
        and hasattr(node, "raw_value")
        and not is_library(frame.f_code.co_filename)
        and (method_called(frame) == "dot" or (not _has_source(frame) and "dot" in frame.f_code.co_names))
    ):
        note_conversion(node, "ndarray.dot()", frame)


def note_saved(name: str) -> None:
    """Log that NumPy wrote the numbers of a node to a file."""
    _log_leak(f"{name}()", source_lines.user_frame(2), is_tracing())


def note_text() -> None:
    """Log, within an operator, that NumPy converted a node to text."""
    if is_tracing():
        _log_leak("str()", source_lines.user_frame(2), False)


# Callables that receive numbers, with a warning: explicit conversions, and functions that iterate over elements.
_EXPLICIT = frozenset(
    {float, int, complex, np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64, np.int64, np.int32,
     list, tuple, set, map, filter, sorted, max, min, round, zip, dict, sum, enumerate}
)  # fmt: skip
# The names of conversions by ``__float__`` or ``__complex__``.
_EXPLICIT_NAMES = frozenset({"float", "complex", "float64", "complex128"})
# Callables that receive numbers without a warning, because their results have no derivative.
_WITHOUT_DERIVATIVE = frozenset(
    {math.isnan, math.isinf, math.isfinite, math.isclose, math.floor, math.ceil, math.trunc, cmath.isnan, cmath.isinf,
     cmath.isfinite, cmath.isclose, bool, any, all, range, slice}
)  # fmt: skip
_MATH_MODULES = frozenset({"math", "cmath"})  # modules whose functions never receive a node's number


def _check_conversion(node: Value, what: str, frame: Any) -> Leak | None:
    """Raise for an implicit conversion of a node within an operator; otherwise log the conversion and return the leak.

    Within an operator each logged conversion warns.
    """
    if source_lines.is_package_code(frame.f_code.co_filename):
        return None
    if _is_plotting(frame) or is_formatting(frame):  # "%.2f" % x
        _log_leak(what, frame, False)
        return None
    target = callee(frame)
    if _is_among(target, _WITHOUT_DERIVATIVE):
        return None
    if is_assigning(frame) or _is_implicit_conversion(target, node, frame):
        raise leak_error(frame, f"the {describe(node)}")
    return _note_number_leak(node, what, frame)


def _is_implicit_conversion(target: object, node: Value, frame: Any) -> bool:
    """Whether a frame calls a function that is not an explicit conversion and would lose a derivative.

    For code without source, an explicit conversion is assumed if the code uses the name of one.
    """
    if is_at_operator(frame):  # plain + [x, y]
        return not is_within_operator(node) and _is_called_by_user(frame)
    if target is None or _is_among(target, _EXPLICIT):  # None: for number in map(math.sin, x)
        return False
    if not _has_source(frame):
        return _EXPLICIT_NAMES.isdisjoint(frame.f_code.co_names)
    if is_within_operator(node) or getattr(target, "__module__", None) in _MATH_MODULES:
        return True
    return _converts_lists(target, frame) and _is_called_by_user(frame)


# Functions that convert lists to plain arrays, called by names bound before the first variable was made.
_CONSTRUCTORS = frozenset({np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.fromiter, np.arange})
# Modules of NumPy that compare and print numbers.
_INSPECTION_MODULES = ("numpy.testing", "numpy._core.arrayprint", "numpy.lib._npyio_impl", "numpy.lib._format_impl")


def _has_source(frame: Any) -> bool:
    return has_source(frame.f_code, frame.f_lasti)


def _converts_lists(target: object, frame: Any) -> bool:
    """Whether a callable (a ufunc, its methods, methods of plain arrays, a constructor) converts lists without dispatch."""
    if target is unknown:  # make().fill(x)
        name = method_called(frame)
        return name is not None and hasattr(np.ndarray, name) and name.strip("_") not in CONVERSIONS
    owner = getattr(target, "__self__", None)
    return (
        isinstance(target, (np.ufunc, ops.DISPATCHED_FUNCTION_TYPE))
        or isinstance(owner, (np.ufunc, np.ndarray))
        or _is_among(target, _CONSTRUCTORS)
    )


def _is_called_by_user(frame: Any) -> bool:
    """Whether user code, or NumPy code on its behalf, runs in a frame; not for NumPy's testing and printing."""
    for outer in walk_frames(frame):
        if str(outer.f_globals.get("__name__")).startswith(_INSPECTION_MODULES):
            return False
        if not source_lines.internal[outer.f_code.co_filename]:
            return not is_library(outer.f_code.co_filename)
    return False


def _note_number_leak(node: Value, what: str, frame: Any) -> Leak | None:
    """Log an explicit conversion, with a warning within an operator."""
    if source_lines.is_package_code(frame.f_code.co_filename):
        return None
    is_in_operator = is_within_operator(node)
    leak = _log_leak(what, frame, is_in_operator and not is_compiling() and not _is_plotting(frame))
    if not _is_plotting(frame) and hasattr(node, "raw_value"):
        leak.source_ref, leak.sequence_number, leak.is_open = ref(node), next_sequence_number(), not is_in_operator
        leak.number = node.raw_value if node.raw_value.nbytes <= MAX_RECIPE_ARRAY_BYTES else None
    return leak


def _add_source(leak: Leak | None, guard: Guard | None, number: float | None = None) -> None:
    """Add the number to a leak, and the recipe of the node, which exists as long as the leaves of the node."""
    if leak is None or leak.source_ref is None:
        return
    if guard is not None and type(guard.args[0]) is Recipe:
        leak.source_ref = ref(guard.args[0])
    if number is not None:
        leak.number = number


def is_within_operator(node: Value) -> bool:
    """Whether new values are tracers here, in this thread or in one that started it, or the node has a tangent."""
    return is_tracing() or bool(node.level) or (bool(LOGS) and is_tracer(node))


def _is_plotting(frame: Any) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in PLOTTING_PACKAGES


def _is_among(target: object, members: frozenset[Any]) -> bool:
    return isinstance(target, Hashable) and target in members


def _log_leak(what: str, frame: Any, warns: bool) -> Leak:
    """Log a leak on the user's line; if `warns`, warn once per line."""
    while source_lines.internal[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    leak = Leak(what, frame.f_code, frame.f_lasti)
    if warns and (not is_tracing() or leak not in (_log.get() or ())):  # a thread's own log is not that of the operator
        message = f"{leak}: this number has no derivative. If that is intended, write x.value"
        warn_at(SourceLine.of(frame), message, LeakWarning)
    _extend(_log.get(), [leak])
    return leak


def _plain_value(node: object) -> Any:
    """Return the plain array of a node; the node itself if it has lost its history."""
    return _asarray(node.raw_value) if hasattr(node, "raw_value") else node


def _conversion(name: str) -> Any:
    """Return the method for ``float(x)`` and other conversions."""
    convert_inert, numpy_method = _inert_conversion(name), getattr(np.ndarray, f"__{name}__")
    what, is_number = f"{name}()", name in ("float", "complex")

    def convert(self: Value) -> Any:
        if not _loses_derivative(self):
            return convert_inert(self) if hasattr(self, "raw_value") and not self.level else numpy_method(_plain_value(self))
        number = _number(numpy_method, name, self)
        frame, leak = frame_up(1), None
        if is_number:
            leak = _check_conversion(self, what, frame)
        elif is_assigning(frame) and not source_lines.is_package_code(frame.f_code.co_filename):
            # An assignment into integers, most likely unintended.
            raise leak_error(frame, f"the {describe(self)}")
        _add_source(leak, note_guard(what, RECHECKED_CONVERSIONS.get(name), (self,), number, source_lines.user_frame(2)), number)
        return number

    return convert


def _number(numpy_method: Any, name: str, node: Value) -> Any:
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


def _inert_conversion(name: str) -> Any:
    """Make the conversion for nodes without derivative: it logs a guard, and no leak."""
    numpy_method = getattr(np.ndarray, f"__{name}__")
    function, what = RECHECKED_CONVERSIONS.get(name), f"{name}()"

    def convert(self: Value) -> Any:
        number = _number(numpy_method, name, self)
        if function is not None or is_recording():  # also under no_graph, where Python branches on the value too
            note_guard(what, function, (self,), number, source_lines.user_frame(2))
        return number

    return convert


def _note_number(node: Value, what: str) -> Guard | None:
    """Log a guard that the user's code received numbers, whose use is unknown."""
    # A variable's `value` is excluded, because it is mostly read to update the variable.
    is_number = node.args or isinstance(node, PlaceholderNode) or what in VALUE_METHODS
    if is_number and not source_lines.is_package_code(frame_up(2).f_code.co_filename):
        if type(node) in INERT:  # counts, indices and truth values are often equal in a later run, so they are re-checked
            return note_guard(what, contents, (node,), contents(node.raw_value), source_lines.user_frame(3))
        return note_guard(what, None, (node,), None, source_lines.user_frame(3))
    return None


def _plain_method(name: str) -> Any:
    """Make a method such as ``x.item()`` that returns plain values. The leak is logged, with a warning within operators."""
    numpy_method = getattr(np.ndarray, name)
    what, is_pickle = f".{name}()", name in ("dump", "dumps")

    def method(self: Value, *args: object, **kwargs: object) -> Any:
        leak = None
        if _loses_derivative(self):
            is_user_call = is_tracing() and not source_lines.is_package_code(frame_up(1).f_code.co_filename)
            if name == "item" and is_user_call:  # within a function that is differentiated a number keeps its derivative
                return mark_python_number(_element(self, *args))
            if name == "tolist" and is_user_call:
                return _nested(self)
            leak = _note_number_leak(self, what, frame_up(1))
        if hasattr(self, "raw_value"):
            _add_source(leak, _note_number(self, what))
        return numpy_method(self if is_pickle else _plain_value(self), *args, **kwargs)

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
    """Make an attribute such as ``x.data``, by which other libraries access the memory of an array."""
    numpy_method = getattr(np.ndarray, name)
    what = f".{name}"

    def read(self: Value) -> Any:
        if _loses_derivative(self):
            leak = _note_number_leak(self, what, frame_up(1))
            _add_source(leak, _note_number(self, what))
        return numpy_method.__get__(_plain_value(self))

    def raise_on_set(self: Value, value: object) -> None:
        raise TypeError(f"setting {what} of a node in place would bypass its graph; make a new node instead")

    return property(read, raise_on_set)


def _value(self: Value) -> np.ndarray[Any, Any]:
    """The plain array of this node, sharing its memory."""
    if _loses_derivative(self):
        frame = frame_up(1)
        if (
            is_within_operator(self)
            and not source_lines.is_package_code(frame.f_code.co_filename)
            and _is_probing_attribute(frame)
        ):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'value'", name="value", obj=self)
        _note_leak(".value")
    if is_recording():
        _note_number(self, ".value")
    if type(self) in USED_CLASS_OF_BLANK and not self.raw_value.any():  # filling a blank array through .value is allowed
        mark_used(self)
    return np.asarray(self.raw_value)


def _raise_on_set(self: Value, value: float) -> NoReturn:
    raise AttributeError("value cannot be set. Write x[...] = array or x -= step, which updates a variable in place")


def _is_probing_attribute(frame: Any) -> bool:
    """Whether code may only probe for an attribute that arrays lack: by ``hasattr``, ``getattr``, or in a ``try``."""
    names, target = frame.f_code.co_names, callee(frame)
    if target is None or target is unknown:
        return "AttributeError" in names or (target is unknown and not _PROBING.isdisjoint(names))
    return target is hasattr or target is getattr


_PROBING = frozenset({"hasattr", "getattr"})


CONVERSIONS = ("float", "int", "complex", "bool", "index")
PLAIN_METHODS = (*sorted(ops.PLAIN_METHODS), "__array__", "__dlpack__")
PLAIN_ATTRIBUTES = ("__array_interface__", "__array_struct__", "ctypes", "data")


def _conform(self: Value, protocol: type) -> Any:
    """``__conform__``: return the value that sqlite3 stores, a number or the bytes of an array."""
    if getattr(protocol, "__name__", "") != "PrepareProtocol":
        return None
    name = "tobytes" if self.ndim else "tolist"
    if _loses_derivative(self):
        _note_number_leak(self, f".{name}()", frame_up(1))
    if hasattr(self, "raw_value"):
        _note_number(self, f".{name}()")
    return getattr(np.ndarray, name)(_plain_value(self))


def _buffer(self: Value, flags: int) -> memoryview:
    """``__buffer__`` of tracers, by which C code reads memory since Python 3.12; if it raises, NumPy calls ``__array__``."""
    if self.level or _loses_derivative(self) or is_compiling():
        raise HiddenError(leak_message(list(walk_frames(frame_up(1))), f"the {describe(self)}"))
    note_guard(".__buffer__()", contents, (self,), contents(self.raw_value), source_lines.user_frame(2))
    return np.ndarray.__buffer__(np.asarray(self.raw_value), flags)  # type: ignore[attr-defined,no-any-return]


def _array(self: Value, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Any:
    """``__array__`` of tracers, by which C code and functions that call no protocol read an array's values.

    It raises for an active array. A scalar is returned as an array of objects that contains the tracer, so that ``np.sin([x[0],
    x[1]])`` computes on tracers. Numbers without derivative are returned under a guard.
    """
    frame = frame_up(1)
    if not _is_plotting(frame):
        if self.level or _loses_derivative(self) or is_compiling():
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


def _hidden_attribute(name: str) -> property:
    """Make an attribute through which NumPy would read memory without a call; because it raises, NumPy calls ``__array__``."""

    def read(self: Value) -> Any:
        if not self.level and not _loses_derivative(self):
            raise AttributeError(name)
        raise HiddenError(leak_message(list(walk_frames(frame_up(1))), f"the {describe(self)}"))

    return property(read)


def text_conversion(name: str, by_node: Callable[..., str]) -> Any:
    """Make a conversion to text. It is logged, but a replay does not re-check it, unlike ``bool``."""

    @functools.wraps(by_node)
    def show(self: Value, *options: object) -> str:
        frame = frame_up(1)
        if (
            is_tracing()
            and not source_lines.is_package_code(frame.f_code.co_filename)
            and (is_compiling() or callee(frame) is not print)
        ):
            _log_leak(name, source_lines.user_frame(2), False)
        return by_node(self, *options)

    return show


def methods() -> dict[str, Any]:
    """Return the methods to install on `Node`."""
    return {
        "__repr__": text_conversion("repr()", vars(Value)["__repr__"]),
        "__str__": text_conversion("str()", vars(Value)["__str__"]),
        **{f"__{name}__": _conversion(name) for name in CONVERSIONS},
        **{name: _plain_method(name) for name in PLAIN_METHODS},
        "__bytes__": _plain_method("tobytes"),  # otherwise ``bytes(x)`` would read the memory of the node
        **{name: _plain_attribute(name) for name in PLAIN_ATTRIBUTES},
        "__conform__": _conform,
        "value": property(_value, _raise_on_set),
    }


def tracer_methods() -> dict[str, Any]:
    """Return the methods to install on `Tracer`."""
    return {
        "__array__": _array,
        "__buffer__": _buffer,
        **{name: _hidden_attribute(name) for name in ("__array_interface__", "__array_struct__")},
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


def _number_method(name: str) -> Any:
    """Make a method of numbers that returns text or integers; it raises if a derivative would be lost."""

    def method(self: Value, *args: object) -> Any:
        if _loses_derivative(self):
            raise leak_error(frame_up(1), f"the {describe(self)}")
        require_unbatched(f".{name}()", self)
        number = _plain_value(self).item()
        _note_number(self, f".{name}()")
        return getattr(float(number), name)(*args)

    return method


NUMBER_METHODS = {
    "is_integer": is_integer,
    "hex": _number_method("hex"),
    "as_integer_ratio": _number_method("as_integer_ratio"),
}


def install_inert_conversions() -> None:
    """Install conversions of inert nodes, which log a guard and neither warn nor raise."""
    for kind in INERT:
        for name in CONVERSIONS:
            setattr(kind, f"__{name}__", _inert_conversion(name))


_identity_hash = object.__hash__
_internal = source_lines.internal
_LruCache = type(functools.lru_cache(abs))


_HASH_MESSAGE = (
    "hash() of the value: a dictionary, a set or a cache looks up the number of the {}, whose derivative would be lost. Use a "
    "key without a derivative (an index, np.round(x), int(x)), a list with `in`, or x.value"
)


def scalar_hash(self: Any) -> int:
    """Return the hash of a scalar node's number; for arrays, and for code of the packages, the identity hash."""
    frame = frame_up(1)
    if _internal[frame.f_code.co_filename] or self.ndim:
        return _identity_hash(self)
    require_history(self)
    if _has_derivative(self):
        if not is_within_operator(self) or _is_lru_cache_call(frame):
            return _identity_hash(self)
        if is_recording():
            raise leak_error(frame, text=_HASH_MESSAGE.format(describe(self)))
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
