"""Leaks: conversions of nodes to plain numbers, which lose derivatives. They raise, or are logged.

``float(x)``, C code that needs a number, and ``plain[i] = x`` all call ``__float__``, which does not receive its caller. The
user's line of source shows which of them it is. The conversion

- raises for an assignment into a plain array;
- within an operator, raises for a call that is not an explicit conversion such as ``float``, and warns for one that is;
- at the top level, raises for functions of `math` and NumPy functions that convert lists, and returns the number otherwise.

A short log of leaks lets the message for a missing gradient name the lines where numbers left the graph.
"""

from __future__ import annotations

import cmath
import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import numpy as np

from .. import ops
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
from ..tracing import LOGS, RETRACERS, LeakWarning, is_compiling, is_library, is_tracing, make_leak_error
from ..values import ACTIVE, Value, describe, is_tracer, next_sequence_number, require_history
from .guard import Guard
from .recipes import MAX_RECIPE_ARRAY_BYTES, Recipe

CONVERSIONS = ("float", "int", "complex", "bool", "index")  # methods of Python's protocol, without underscores
MAX_LEAKS = 100  # leaks in the log of a context
PLOTTING_PACKAGES = {"matplotlib", "mpl_toolkits"}  # packages that only display their arguments
MAX_SHOWN = 5  # leaks named in a message
_log: ContextVar[deque[Leak] | None] = ContextVar("leaks", default=None)


@dataclass(slots=True, unsafe_hash=True)
class Leak:
    """A conversion of a node to plain numbers.

    Attributes
    ----------
    description : str
        The conversion, for messages: ``"float()"``, ``".item()"``.
    code, instruction : code object, int
        The user's line.
    source_ref : weakref or None
        A weak reference to the node or its `Recipe`. None if it is unknown, or if the number is only printed or plotted.
    sequence_number : float
        The sequence number at the conversion.
    number : float, array or None
        The number that left the graph; None if it is a large array.
    is_candidate : bool
        Whether a later operation may use the number as a constant. `autodiff.reverse.leak_warnings` updates it.
    """

    description: str
    code: Any
    instruction: int
    source_ref: Any = field(default=None, compare=False)
    sequence_number: float = field(default=0, compare=False)
    number: Any = field(default=None, compare=False)
    is_candidate: bool = field(default=False, compare=False)

    @property
    def is_text(self) -> bool:
        """Whether the node was converted to text, which is most likely printed."""
        return self.description in ("repr()", "str()", "format()")

    def __str__(self) -> str:
        line = source_lines.format_line(self.code, self.instruction)
        return self.description if line is None else f"{self.description} at {line}"


def candidate_leaks() -> list[Leak]:
    """Return the latest leaks whose numbers later operations may use as constants."""
    return [leak for leak in _log.get() or () if leak.is_candidate]


def recent_leaks() -> tuple[Leak, ...]:
    """Return the latest leaks of the current context, oldest first."""
    return tuple(_log.get() or ())


class collecting_leaks:  # noqa: N801  (a context manager; a class is faster than a generator function)
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
            _append_to_log(self._outer_log, self.leaks)


def _append_to_log(log: deque[Leak] | None, leaks: list[Leak]) -> None:
    """Append leaks to the log of the current context; create it if `log` is None."""
    if log is None:
        log = deque(maxlen=MAX_LEAKS)
        _log.set(log)
    log.extend(leaks)


def format_leaks(leaks: Sequence[Any], prefix: str = " ") -> str:
    """Return a sentence that lists the latest distinct leaks, after `prefix`; an empty string without leaks.

    Numbers that the source only prints or compares are omitted.
    """
    distinct = [leak for leak in dict.fromkeys(leaks) if classify_use(leak.code, leak.instruction) != "shown"]
    if not distinct:
        return ""
    lead = (
        f"{prefix}Values left the graph here: " if len(distinct) <= MAX_SHOWN else f"{prefix}Values left the graph, last here: "
    )
    return lead + "; ".join(map(str, distinct[-MAX_SHOWN:]))


def loses_derivative(node: Value) -> bool:
    """Whether the conversion of a node loses a derivative: the node is active or has a tangent, and operations are recorded.

    Raises if the node has lost its history.
    """
    require_history(node)
    return (type(node) in ACTIVE or bool(node.level)) and is_recording()


def note_conversion(node: Value, description: str, frame: object) -> None:
    """Log that user code, in `frame`, converted a node to a plain array by a function that does not dispatch."""
    if type(node) in ACTIVE and is_recording() and not is_within_operator(node):
        note_number_leak(node, description, frame)


def note_dot_method(node: Value, frame: Any) -> None:
    """Log a call of ``plain.dot(node)`` in user code, which returns plain numbers if the result is a scalar."""
    if (
        type(node) in ACTIVE
        and hasattr(node, "raw_value")  # the node has not lost its history
        and not is_library(frame.f_code.co_filename)
        and (method_called(frame) == "dot" or (not _has_source(frame) and "dot" in frame.f_code.co_names))
    ):
        note_conversion(node, "ndarray.dot()", frame)


def note_save(name: str) -> None:
    """Log that the numbers of a node are stored outside the graph."""
    log_leak(f"{name}()", source_lines.user_frame(2), is_tracing())


def note_file(name: str, values: Iterable[object]) -> None:
    """Log that the numbers of nodes are written to a file; raises for a traced node."""
    nodes = [value for value in values if isinstance(value, Value) and loses_derivative(value)]
    for node in nodes:
        require_untraced(name, node)
    if nodes:
        note_save(name)


def require_untraced(name: str, node: Value) -> None:
    """Raise if a node whose numbers are written to a file is traced."""
    if is_tracer(node):
        message = (
            f"{name}() writes the numbers of the {describe(node)} to a file, where they have no derivative "
            f"({source_lines.format_frame(source_lines.user_frame(2))}). Write x.value or cg.stop_gradient(x) to store them"
        )
        raise make_leak_error(frame_up(1), message=message)


def note_text() -> None:
    """Log, within an operator, that NumPy converted a node to text."""
    if is_tracing():
        log_leak("str()", source_lines.user_frame(2), False)


# Callables for which a conversion returns the number, with a warning: conversions, and functions that iterate over elements.
_EXPLICIT_CONVERSIONS = frozenset(
    {float, int, complex, np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64, np.int64, np.int32,
     list, tuple, set, map, filter, sorted, max, min, round, zip, dict, sum, enumerate}
)  # fmt: skip
# Names of explicit conversions, which are searched for in code without source.
_EXPLICIT_CONVERSION_NAMES = frozenset({"float", "complex", "float64", "complex128"})
# Callables for which a conversion returns the number without a warning, because their results have no derivative.
_NONDIFFERENTIABLE_FUNCTIONS = frozenset(
    {math.isnan, math.isinf, math.isfinite, math.isclose, math.floor, math.ceil, math.trunc, cmath.isnan, cmath.isinf,
     cmath.isfinite, cmath.isclose, bool, any, all, range, slice}
)  # fmt: skip
_MATH_MODULES = frozenset({"math", "cmath"})  # modules whose functions raise for a node, except `_NONDIFFERENTIABLE_FUNCTIONS`


def check_conversion(node: Value, description: str, frame: Any) -> Leak | None:
    """Raise for an implicit conversion of a node; otherwise log the conversion, and return the leak.

    Return None for conversions that lose nothing: in the code of the packages, while plotting or formatting, or by a function
    whose result has no derivative.
    """
    if source_lines.is_package_code(frame.f_code.co_filename):
        return None
    if is_plotting(frame) or is_formatting(frame):  # "%.2f" % x
        log_leak(description, frame, False)
        return None
    target = callee(frame)
    if _is_among(target, _NONDIFFERENTIABLE_FUNCTIONS):
        return None
    if is_within_operator(node):
        for retrace in RETRACERS:
            retrace(frame)
    if is_assigning(frame) or _is_implicit_conversion(target, node, frame):
        raise make_leak_error(frame, f"the {describe(node)}")
    return note_number_leak(node, description, frame)


def _is_implicit_conversion(target: object, node: Value, frame: Any) -> bool:
    """Whether a frame converts a node implicitly, by a function other than an explicit conversion.

    For code without source, an explicit conversion is assumed if the code uses the name of one.
    """
    if is_at_operator(frame):  # plain + [x, y]
        return not is_within_operator(node) and _is_called_by_user(frame)
    if target is None or _is_among(target, _EXPLICIT_CONVERSIONS):  # no call: for number in map(math.sin, x)
        return False
    if not _has_source(frame):
        return _EXPLICIT_CONVERSION_NAMES.isdisjoint(frame.f_code.co_names)
    if is_within_operator(node) or getattr(target, "__module__", None) in _MATH_MODULES:
        return True
    return _converts_lists(target, frame) and _is_called_by_user(frame)


# The unpatched functions that convert lists to plain arrays; names bound before the patches refer to them.
_ARRAY_CONSTRUCTORS = frozenset(spec.function for spec in ops.UNDISPATCHED if spec.converts)
# Modules of NumPy that compare, print and save numbers.
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
        or _is_among(target, _ARRAY_CONSTRUCTORS)
    )


def _is_called_by_user(frame: Any) -> bool:
    """Whether a frame belongs to user code, or to NumPy called by it. False within NumPy's testing, printing and saving."""
    for outer in walk_frames(frame):
        if str(outer.f_globals.get("__name__")).startswith(_INSPECTION_MODULES):
            return False
        if not source_lines.internal[outer.f_code.co_filename]:
            return not is_library(outer.f_code.co_filename)
    return False


def note_number_leak(node: Value, description: str, frame: Any) -> Leak | None:
    """Log an explicit conversion outside of the packages. Within an operator it warns, unless code is compiled or plots."""
    if source_lines.is_package_code(frame.f_code.co_filename):
        return None
    is_in_operator = is_within_operator(node)
    leak = log_leak(description, frame, is_in_operator and not is_compiling() and not is_plotting(frame))
    if not is_plotting(frame) and hasattr(node, "raw_value"):  # the node has not lost its history
        leak.source_ref, leak.sequence_number, leak.is_candidate = ref(node), next_sequence_number(), not is_in_operator
        leak.number = node.raw_value if node.raw_value.nbytes <= MAX_RECIPE_ARRAY_BYTES else None
    return leak


def complete_leak(leak: Leak | None, guard: Guard | None, number: float | None = None) -> None:
    """Set the number of a leak, and refer to the recipe of its node, which lives as long as the leaves of the node."""
    if leak is None or leak.source_ref is None:
        return
    if guard is not None and type(guard.args[0]) is Recipe:
        leak.source_ref = ref(guard.args[0])
    if number is not None:
        leak.number = number


def is_within_operator(node: Value) -> bool:
    """Whether an operator is active, in this thread or in the one that started it, or the node has a tangent."""
    return is_tracing() or bool(node.level) or (bool(LOGS) and is_tracer(node))


def is_plotting(frame: Any) -> bool:
    """Whether code of a plotting library runs in a frame."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in PLOTTING_PACKAGES


def _is_among(target: object, members: frozenset[Any]) -> bool:
    return isinstance(target, Hashable) and target in members


def log_leak(description: str, frame: Any, warn: bool) -> Leak:
    """Log a leak on the user's line; if `warn`, warn, while tracing once per line."""
    while source_lines.internal[frame.f_code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
    leak = Leak(description, frame.f_code, frame.f_lasti)
    # Threads that a traced function starts have logs of their own, so that repetitions are unknown there.
    if warn and (not is_tracing() or leak not in (_log.get() or ())):
        message = f"{leak}: this number has no derivative. If that is intended, write x.value"
        warn_at(SourceLine.of(frame), message, LeakWarning)
    _append_to_log(_log.get(), [leak])
    return leak
