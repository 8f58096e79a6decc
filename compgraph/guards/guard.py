"""Guards: concrete values that steered Python while a graph was recorded. They are re-checked when the graph is replayed.

``if x > 0``, ``int(x)``, ``items[i]`` and ``x.shape[0]`` return plain values to Python, and later operations may depend on them.
Each is a `Guard`: a function, its arguments, and the expected result. Guards of a trace of `cg.jit` or of an executor are in the
list of that trace, others in the log of the leaves behind their nodes (`guard_logs`). A replay checks the guards about its nodes
(`graph_guards`).

``float(x)`` and similar conversions are guards without a function, because what Python does with a number cannot be checked.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..array_types import Array
from ..context import Setting, is_recording, layered_variable, trace_guards
from ..frames import source_lines
from ..interpreters import on_value_dependent_shape
from ..ops import get_attached
from ..storage import owner_of
from ..tracing import is_compiling, is_tracing
from ..values import TRACKED_CLASS_OF, Value, mark_used, next_sequence_number, require_history, require_unbatched
from .guard_logs import log_guard

_LAYOUT_ATTRIBUTES = (".shape", ".size", ".nbytes", ".strides", ".flags")
MAX_CONTENTS_BYTES = 2**20  # larger arrays are compared by fingerprint
VALUE_METHODS = frozenset({".item()", ".tolist()"})  # their results are mostly used to compute, not to print


class GuardError(RuntimeError):
    """Raised if a graph is run with values for which Python would have branched differently while it was recorded."""

    __module__ = "compgraph"  # the public module, for tracebacks
    is_untracked = False  # whether it is about a value that no operation reads


class GuardWarning(RuntimeWarning):
    """A graph depends on numbers that left it, so another run may return results for the recorded values.

    It is issued when an `Executor`, a subgraph or a `Split` is made from a graph whose numbers were read (``float(x)``), and once
    by a run for which such numbers are outdated. Compute with the nodes themselves, or record the graph again.
    ``Executor(..., strict=True)`` raises a `GuardError` instead.

    Examples
    --------
    >>> import warnings
    >>> import compgraph as cg
    >>> x = cg.variable(2.0, "x")
    >>> y = x * float(x)
    >>> with warnings.catch_warnings():
    ...     warnings.filterwarnings("ignore", category=cg.errors.GuardWarning)
    ...     float(cg.Executor(y).run({"x": 3.0}))
    6.0
    """

    __module__ = "compgraph.errors"  # the public module


class ProgramMismatchError(Exception):
    """Raised if a program is not valid for some values, for example because a mask selects a different number of elements."""


@dataclass(eq=False, slots=True)
class Guard:
    """A plain value that Python received from nodes, on which a graph may depend.

    Attributes
    ----------
    description : str
        The conversion or property, such as ``"bool()"`` or ``".shape"``, for messages.
    function : callable or None
        ``function(*values)`` of plain values returns the value; None if it cannot be checked again.
    args : tuple
        The arguments of `function`: plain values and nodes. In a log, recipes replace the nodes.
    recorded : object
        The recorded result of `function`.
    code, instruction : code object, int
        The user's line.
    sequence_number : float
        The time of the conversion. Nodes, writes and guards are replayed in this order.
    selects_program : bool
        Whether a different value selects another program instead of raising, as for guards of derivative rules, which an
        executor logs while it compiles a program.
    """

    description: str
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    recorded: Any
    code: Any
    instruction: int
    sequence_number: float
    selects_program: bool = False

    @property
    def is_used(self) -> bool:
        """Whether Python most likely branched on the value; otherwise the numbers were only read, perhaps to print them."""
        return (
            not self.description.startswith(".")
            or self.description in VALUE_METHODS
            or self.description.startswith(_LAYOUT_ATTRIBUTES)
        )

    def __str__(self) -> str:
        line = source_lines.format_line(self.code, self.instruction)
        return self.description if line is None else f"{self.description} at {line}"

    def with_args(self, args: tuple[Any, ...], sequence_number: float) -> Guard:
        """Return a copy of the guard with other arguments and another sequence number."""
        return replace(self, args=args, sequence_number=sequence_number)

    def check(self, *values: object) -> None:
        """Compare the recorded value with that for plain values of `args`; raise a GuardError, or a ProgramMismatchError."""
        assert self.function is not None
        current_value = self.function(*values)
        if current_value != self.recorded:
            if self.selects_program:
                raise ProgramMismatchError
            if getattr(self.function, "func", self.function) in _CONTENT_FUNCTIONS:
                problem = f"Python branched on {self}. With these values it differs"
            else:
                change = f"With these values it gives {current_value!r}"
                problem = f"{self} gave {self.recorded!r}, and Python branched on it. {change}"
            raise GuardError(
                f"while the graph was recorded, {problem}. Record the graph again with such values, or choose in the graph "
                "itself (np.where, np.minimum, x * (x > 0), cg.constant(K)[i])"
            )


@dataclass(eq=False, slots=True)
class ShapeGuard(Guard):
    """A guard on shapes that depend on values, such as that of ``x[x > 0]``, logged when the operation is recorded.

    Python, or the rule of a derivative, may have read the number of elements, and neither can be observed.

    Attributes
    ----------
    is_within_trace : bool
        Whether the operation was recorded while a function is traced.
    """

    is_within_trace: bool = False


@dataclass(eq=False, slots=True)
class EvaluationGuard(Guard):
    """A guard that compares nothing. Its arguments are computed for their errors and warnings only."""

    def check(self, *values: object) -> None:
        """Do nothing: the values have been computed."""


# ------------------------------------------------------------------------------------------- logging guards

# Whether guards are ignored; None, as set by `collecting_guards`, if an inner `ignoring_guards` has no effect.
_is_ignoring: ContextVar[bool | None] = layered_variable("ignoring_guards", False)


def ignoring_guards(on: bool) -> Setting:
    """Return a context that, if `on`, logs no guards, because each run repeats the code inside (`values.Origin`)."""
    return Setting({_is_ignoring: on and _is_ignoring.get() is not None})


def collecting_guards(guards: list[Guard] | None = None) -> Setting:
    """Return a context that logs guards, in the list `guards` if it is set, also within `ignoring_guards`."""
    return Setting({_is_ignoring: None} if guards is None else {_is_ignoring: None, trace_guards: guards})


def note_guard(
    description: str,
    function: Callable[..., Any] | None,
    args: tuple[Any, ...],
    recorded: tuple[Any, ...] | float | str | None,
    frame: Any,
    sequence_number: int | None = None,
) -> Guard | None:
    """Log a guard on the current line of `frame` and return it; None without a node among `args`.

    `description`, `function`, `args` and `recorded` are those of `Guard`; `sequence_number` is the next one by default.
    """
    has_node = has_transform = False
    for node in args:
        if isinstance(node, Value):
            has_node = True
            has_transform = has_transform or node.level > 0
            if type(node) in TRACKED_CLASS_OF:
                mark_used(node)
    if not has_node or _is_ignoring.get():
        return None
    if has_transform:
        if any(isinstance(a, Value) and a.trace_kind == "batch" for a in args):
            _note_shapes(description, args, frame, next_sequence_number() if sequence_number is None else sequence_number)
            return None
        args = tuple(map(strip_transforms, args))
        if not any(isinstance(a, Value) for a in args):
            return None
    guard = Guard(
        description,
        function,
        args,
        recorded,
        frame.f_code,
        frame.f_lasti,
        next_sequence_number() if sequence_number is None else sequence_number,
    )
    log_guard(guard)
    return guard


def strip_transforms(operand: object) -> Any:
    """Return a node without its tangents and batch axes."""
    while isinstance(operand, Value) and operand.level:
        operand = operand.values if operand.trace_kind == "batch" else operand.primal  # type: ignore[attr-defined]
    return operand


def _note_shapes(description: str, args: tuple[Any, ...], frame: Any, sequence_number: int) -> None:
    """Log guards on the shapes of batched values, which do not depend on the numbers."""
    for operand in args:
        if isinstance(operand, Value) and isinstance(node := strip_transforms(operand), Value):
            log_guard(Guard(description, np.shape, (node,), node.raw_value.shape, frame.f_code, frame.f_lasti, sequence_number))


def guarded_value(value: object, description: str) -> Any:
    """Replace nodes in `value` by plain values under a guard, for a use that is not recorded, such as an index."""
    if isinstance(value, (tuple, list)):
        return type(value)([guarded_value(part, description) for part in value])
    if not isinstance(value, Value):
        return value
    require_history(value)
    require_unbatched(description, value)
    if is_recording() and not value.level:
        note_guard(description, contents, (value,), contents(value.raw_value), source_lines.user_frame(2))
    return value.raw_value


def evaluate_guarded(description: str, function: Callable[[Any], Any], value: object) -> Any:
    """Return ``function(value)`` of plain values under a guard, for a rule that branches on the result without recording it."""
    if not isinstance(value, Value):
        return function(value)
    require_unbatched(description, value)
    result = function(value.raw_value)
    if is_recording():
        note_guard(
            description,
            functools.partial(_fingerprint_of, function),
            (value,),
            fingerprint(np.asarray(result)),
            source_lines.user_frame(2),
        )
    return result


def _fingerprint_of(function: Callable[[Any], Any], value: NDArray[Any]) -> Any:
    return fingerprint(np.asarray(function(value)))


def contents(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return shape, dtype and bytes of an array for comparisons; for a large array, its `fingerprint`, which is slower."""
    return (
        (array.shape, array.dtype.str, np.asarray(array).tobytes()) if array.nbytes <= MAX_CONTENTS_BYTES else fingerprint(array)
    )


def fingerprint(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return shape, dtype and a hash of an array, for comparisons without a copy."""
    return array.shape, array.dtype.str, hashlib.blake2b(np.asarray(array).tobytes(), digest_size=16).hexdigest()


_CONTENT_FUNCTIONS = (contents, fingerprint, _fingerprint_of)  # messages do not show their values


def note_layout(node: Any, description: str) -> None:
    """Log a guard on the memory layout of a node, which selected an order, or a view instead of a copy."""
    note_guard(description, layout, (node,), layout(node.raw_value), source_lines.user_frame(2))


def note_copy(node: Any) -> None:
    """Log a guard that a result with writes is a copy; an operand of another layout could make it a view."""
    operand = node.args[0]
    if isinstance(operand, Value):
        function = functools.partial(is_copy, node.function, node.options)
        note_guard(f"whether np.{node.function.__name__} makes a copy", function, (operand,), True, source_lines.user_frame(2))


def note_empty_write(node: object, index: NDArray[Any] | tuple[Any, ...]) -> None:
    """Log a guard that the written part of a node is empty, so that the write changed nothing."""
    function = functools.partial(is_empty, index)
    note_guard("whether the written part is empty", function, (node,), True, source_lines.user_frame(2))


def note_arange_length(*args: object) -> None:
    """Log a guard on the number of points of ``np.arange(start, stop, step)`` if some of the arguments are nodes."""
    if is_recording() and any(isinstance(number, Value) for number in args):
        count = arange_length(*[number.raw_value if isinstance(number, Value) else number for number in args])
        note_guard("the length of np.arange", arange_length, args, count, source_lines.user_frame(2))


def _note_result_shapes(nodes: tuple[Any, ...]) -> None:
    """Log a guard on the shapes of new nodes that depend on the values of operands."""
    if _is_ignoring.get() or (not is_compiling() and get_attached(nodes[0].function, "opname") is not None):
        return  # without compilation, an executor checks the shapes of users' operations in its graph
    first, result_shapes = nodes[0], shapes(*[node.raw_value for node in nodes])
    description, number = f"the shape of the result of {first.opname}", next_sequence_number()
    line = first.code, first.instruction
    log_guard(ShapeGuard(description, shapes, nodes, result_shapes, *line, number, is_within_trace=is_tracing()))


on_value_dependent_shape.append(_note_result_shapes)


def shapes(*arrays: Any) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of some arrays."""
    return tuple(map(np.shape, arrays))


def arange_length(start: Any, stop: Any, step: Any) -> int:
    """Return the number of points of ``np.arange``."""
    return len(np.arange(start, stop, step))


def is_empty(index: Any, array: Any) -> bool:
    """Whether ``array[index]`` has no elements."""
    return not np.size(array[index])


def is_copy(function: Callable[..., Any], options: dict[str, Any], array: NDArray[Any]) -> bool:
    """Whether a function returns a copy of an array, not a view."""
    return owner_of(function(array, **options)) is not owner_of(array)


def layout(array: Array) -> tuple[Any, ...]:
    """Return the memory layout of an array: C- and Fortran-contiguous, writeable, and its axes by decreasing stride."""
    flags, strides = np.asarray(array).flags, np.asarray(array).strides
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))
    return flags.c_contiguous, flags.f_contiguous, flags.writeable, axes
