"""Guards: what Python was told while a graph was recorded, so that it can be asked again when the graph is run again.

``if x > 0``, ``int(x)``, ``items[i]`` and ``x.shape[0]`` give Python plain values, and which operations are recorded after
that may hang on them. Each answer is a `Guard`: how to ask again, of what, and what must come out. In a trace of `cg.jit` or of
an executor it stands in the list of that trace, else in the log of the leaves behind the nodes it is about (`logs`). Whoever runs
a graph again asks the guards about its nodes (`graphs`).

``float(x)`` and kin are noted without a function to ask with: what Python does with a number cannot be asked again.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..context import Setting, is_recording, layered_variable, trace_guards
from ..frames import source_lines
from ..interpreters import on_value_dependent_shape
from ..ops import kept
from ..storage import owner_of
from ..tracing import is_compiling, is_tracing
from ..values import TRACKED, Value, mark_used, next_sequence_number, require_history, require_unbatched
from .guard_logs import log_guard

_OF_LAYOUT = (".shape", ".size", ".nbytes", ".strides", ".flags")
SMALL = 2**20  # bytes of an array that a guard about its contents keeps
TAKEN = frozenset({".item()", ".tolist()"})  # mostly called to compute with the numbers, not to show them


class GuardError(RuntimeError):
    """A graph is run with values for which Python would have decided otherwise while the graph was recorded."""

    __module__ = "compgraph"  # as users know it, in a traceback
    is_of_watch = False  # whether it is about a value that no operation reads


class OtherProgramError(Exception):
    """A program does not hold for these values, and another must be written: how many elements are found, say, differs."""


@dataclass(eq=False, slots=True)
class Guard:
    """One answer that Python was given, which a graph may hang on.

    Attributes
    ----------
    what : str
        What asked: ``"bool()"``, ``".shape"``.
    function : callable or None
        ``function(*values)`` of plain values gives the answer; None if it cannot be asked for again.
    args : tuple
        What it is about: plain values, and nodes. In a log, lineages stand for the nodes.
    answer : object
        What `function` gave.
    code, instruction : code object, int
        Where in the user's code it was asked.
    tick : float
        When it was asked; nodes, writes and guards are run again in the order of their ticks.
    is_derived : bool
        Whether a rule asked, while a program was written: another answer then calls for another program, and is no error.
    """

    what: str
    function: Callable[..., Any] | None
    args: tuple[Any, ...]
    answer: Any
    code: Any
    instruction: int
    sequence_number: float
    is_derived: bool = False

    @property
    def is_used(self) -> bool:
        """Whether Python most likely went on from the answer; else numbers were only asked for, perhaps to be shown."""
        return not self.what.startswith(".") or self.what in TAKEN or self.what.startswith(_OF_LAYOUT)

    def __str__(self) -> str:
        place = source_lines.format_line(self.code, self.instruction)
        return self.what if place is None else f"{self.what} at {place}"

    def on(self, args: tuple[Any, ...], sequence_number: float) -> Guard:
        """The same guard about other nodes, at another tick."""
        return replace(self, args=args, sequence_number=sequence_number)

    def check(self, *values: Any) -> None:
        """Ask again, with plain values for `args`; for another answer raise a GuardError, or an OtherProgramError if derived."""
        assert self.function is not None
        answer = self.function(*values)
        if answer != self.answer:
            if self.is_derived:
                raise OtherProgramError
            gave = "" if self.function in _OF_CONTENTS else f" gave {self.answer!r}"
            gives = "is another" if self.function in _OF_CONTENTS else f"gives {answer!r}"
            raise GuardError(
                f"while the graph was recorded, {self}{gave}, and Python went on from that; with these values it "
                f"{gives}. Record the graph again with such values, or choose in the graph itself (np.where, np.minimum, "
                "x * (x > 0), cg.constant(K)[i])"
            )


@dataclass(eq=False, slots=True)
class ShapeGuard(Guard):
    """A guard on shapes that depend on values, such as that of ``x[x > 0]``, noted when the operation is recorded.

    Python, or the rule of a derivative, may have read the number of elements, and neither can be observed.

    Attributes
    ----------
    is_within : bool
        Whether the operation was recorded while a function is traced.
    """

    is_within: bool = False


@dataclass(eq=False, slots=True)
class EvaluationGuard(Guard):
    """A guard that compares nothing: operations whose results are not read are computed for their errors and warnings."""

    def check(self, *values: Any) -> None:
        """Do nothing: the values have been computed."""


# ------------------------------------------------------------------------------------------- noted

_forgetting: ContextVar[bool | None] = layered_variable("forgetting", False)


def ignoring_guards(on: bool) -> Setting:
    """A context that, if `on`, notes no guards: what is computed inside is computed again in each run (`graph.Origin`)."""
    return Setting({_forgetting: on and _forgetting.get() is not None})


def collecting_guards(noted: list[Guard] | None = None) -> Setting:
    """A context that collects guards, in a list if one is given, also within `ignoring_guards`."""
    return Setting({_forgetting: None} if noted is None else {_forgetting: None, trace_guards: noted})


def note_guard(
    what: str,
    function: Callable[..., Any] | None,
    about: tuple[Any, ...],
    answer: Any,
    frame: Any,
    sequence_number: int | None = None,
) -> Guard | None:
    """Remember an answer as a guard, on the running line of `frame`, and return it; None if it is about no node.

    `what`, `function` and `answer` are those of `Guard`, and `about` its `args`; `sequence_number` is now unless it is given.
    """
    has_node = carries = False
    for node in about:
        if isinstance(node, Value):
            has_node = True
            carries = carries or node.level > 0
            if type(node) in TRACKED:
                mark_used(node)
    if not has_node or _forgetting.get():
        return None
    if carries:
        if any(isinstance(a, Value) and a.trace_kind == "batch" for a in about):
            _note_forms(what, about, frame, next_sequence_number() if sequence_number is None else sequence_number)
            return None
        about = tuple(map(innermost, about))
        if not any(isinstance(a, Value) for a in about):
            return None
    guard = Guard(
        what,
        function,
        about,
        answer,
        frame.f_code,
        frame.f_lasti,
        next_sequence_number() if sequence_number is None else sequence_number,
    )
    log_guard(guard)
    return guard


def innermost(operand: Any) -> Any:
    """A node without the tangents and the batch axes that it carries."""
    while isinstance(operand, Value) and operand.level:
        operand = operand.values if operand.trace_kind == "batch" else operand.primal  # type: ignore[attr-defined]
    return operand


def _note_forms(what: str, about: tuple[Any, ...], frame: Any, sequence_number: int) -> None:
    """Remember the shapes of all examples, where one was asked for its form: of numbers they tell nothing."""
    for operand in about:
        if isinstance(operand, Value) and isinstance(found := innermost(operand), Value):
            log_guard(Guard(what, np.shape, (found,), found.raw_value.shape, frame.f_code, frame.f_lasti, sequence_number))


def guarded_value(value: Any, what: str) -> Any:
    """`value` with the plain value in place of each node, for a use that is not recorded, such as an index; this is guarded."""
    if isinstance(value, (tuple, list)):
        return type(value)([guarded_value(part, what) for part in value])
    if not isinstance(value, Value):
        return value
    require_history(value)
    require_unbatched(what, value)
    if is_recording() and not value.level:
        note_guard(what, contents, (value,), contents(value.raw_value), source_lines.user_frame(2))
    return value.raw_value


def evaluate_guarded(what: str, function: Callable[[Any], Any], value: Any) -> Any:
    """``function(value)``, of plain values, for a rule that branches on the answer without recording it; a guard asks again."""
    if not isinstance(value, Value):
        return function(value)
    require_unbatched(what, value)
    answer = function(value.raw_value)
    if is_recording():
        note_guard(
            what, functools.partial(_said, function), (value,), fingerprint(np.asarray(answer)), source_lines.user_frame(2)
        )
    return answer


def _said(function: Callable[[Any], Any], value: Any) -> Any:
    return fingerprint(np.asarray(function(value)))


def contents(array: Any) -> tuple[Any, ...]:
    """Shape, dtype and bytes of an array, to compare it with others; of a large one its `fingerprint`, which takes longer."""
    return (array.shape, array.dtype.str, np.asarray(array).tobytes()) if array.nbytes <= SMALL else fingerprint(array)


def fingerprint(array: Any) -> tuple[Any, ...]:
    """Shape, dtype and a hash of an array, to compare it with others without keeping it."""
    return array.shape, array.dtype.str, hashlib.blake2b(np.asarray(array).tobytes(), digest_size=16).hexdigest()


_OF_CONTENTS = (contents, fingerprint)  # what they give is not shown


def note_layout(node: Any, what: str) -> None:
    """Note a guard on the memory layout of a node, by which NumPy chose an order, or between a copy and a view."""
    note_guard(what, layout, (node,), layout(node.raw_value), source_lines.user_frame(2))


def note_copy(node: Any) -> None:
    """Note a guard that a result, which is written into now, is a copy; of an operand laid out otherwise it would be a view."""
    operand = node.args[0]
    if isinstance(operand, Value):
        function = functools.partial(is_copy, node.function, node.options)
        note_guard(f"whether np.{node.function.__name__} makes a copy", function, (operand,), True, source_lines.user_frame(2))


def note_nothing(node: Any, index: Any) -> None:
    """Note a guard that a part of a node is empty: a write into it changed nothing, and is not remembered."""
    function = functools.partial(is_empty, index)
    note_guard("whether nothing is there to be written into", function, (node,), True, source_lines.user_frame(2))


def note_points(*line: Any) -> None:
    """Note a guard on how many points ``np.arange(start, stop, step)`` gives, of numbers some of which are nodes."""
    if is_recording() and any(isinstance(number, Value) for number in line):
        count = points(*[number.raw_value if isinstance(number, Value) else number for number in line])
        note_guard("the length of np.arange", points, line, count, source_lines.user_frame(2))


def _note_count(nodes: tuple[Any, ...]) -> None:
    """Note a guard on the shapes of new nodes, which depend on the values of operands."""
    if _forgetting.get() or (not is_compiling() and kept(nodes[0].function, "opname") is not None):
        return  # the shape of a user's operation that is not compiled is checked while it lives
    first, answer = nodes[0], shapes(*[node.raw_value for node in nodes])
    what, is_within = f"the shape that {first.opname} gave", is_tracing()
    log_guard(ShapeGuard(what, shapes, nodes, answer, first.code, first.instruction, next_sequence_number(), False, is_within))


on_value_dependent_shape.append(_note_count)


def shapes(*arrays: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of some arrays."""
    return tuple(map(np.shape, arrays))


def points(start: Any, stop: Any, step: Any) -> int:
    """How many points ``np.arange`` gives."""
    return len(np.arange(start, stop, step))


def is_empty(index: Any, array: Any) -> bool:
    """Whether a part of an array has no elements."""
    return not np.size(array[index])


def is_copy(function: Any, options: dict[str, Any], array: Any) -> bool:
    """Whether a function gives memory of its own."""
    return owner_of(function(array, **options)) is not owner_of(array)


def layout(array: Any) -> tuple[Any, ...]:
    """The memory layout of an array: whether it is C- or Fortran-contiguous, whether writeable, its axes by falling stride."""
    flags, strides = np.asarray(array).flags, np.asarray(array).strides
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))
    return flags.c_contiguous, flags.f_contiguous, flags.writeable, axes
