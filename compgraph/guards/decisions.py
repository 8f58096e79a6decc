"""What Python decided while a graph was recorded, so that a graph that is run again can decide again.

``if x > 0``, ``int(x)``, ``items[i]`` and ``x.shape[0]`` give Python plain values, and which operations are recorded after
that may hang on them. Each is noted with its answer, with how to ask again, and with recipes of the nodes it is about, in
the log of the leaves behind them (`recipes`); whoever runs a graph again asks those questions that are about its nodes.

``float(x)`` and kin are noted without a question: what Python does with a number cannot be asked again.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import sys
import weakref
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..graph import InputNode, Node, PlaceholderNode, breadth_first, by_tick, describe, next_tick, owner_of, require_history
from ..graph.context import Setting, is_recording, layered, restart_names
from ..graph.interpreter import axis_read, source_lines
from ..operations import compositions
from .recipes import Log, Lost, enter

_OF_LAYOUT = (".shape", ".size", ".nbytes", ".strides", ".flags")
TAKEN = frozenset({".item()", ".tolist()"})  # asked for by name, and mostly to go on with


class Decision(NamedTuple):
    """One answer that Python was given.

    Attributes
    ----------
    what : str
        What asked: ``"bool()"``, ``".shape"``.
    ask : callable or None
        The question, a function of the plain values of `about`; None if the answer cannot be asked for again.
    about : tuple
        Nodes as recipes, and plain values.
    answer : object
        What it gave.
    code, instruction : code object, int
        Where in the user's code.
    tick : int
        When.
    """

    what: str
    ask: Callable[..., Any] | None
    about: tuple[Any, ...]
    answer: Any
    code: Any
    instruction: int
    tick: int

    @property
    def is_used(self) -> bool:
        """Whether Python most likely went on from the answer: it was not just asked for numbers to be shown."""
        return not self.what.startswith(".") or self.what in TAKEN or self.what.startswith(_OF_LAYOUT)

    def __str__(self) -> str:
        place = source_lines.described(self.code, self.instruction)
        return self.what if place is None else f"{self.what} at {place}"


_forgetting: ContextVar[bool | None] = layered("forgetting", False)
_reset_at = 0  # what was decided before is forgotten


def note(
    what: str, ask: Callable[..., Any] | None, about: tuple[Any, ...], answer: Any, frame: Any, tick: int | None = None
) -> None:
    """Remember an answer, given now or at a tick, on the line at work in a frame."""
    if _forgetting.get():
        return
    about = tuple(map(_innermost, about))
    if any(isinstance(a, Node) for a in about):
        code, instruction = frame.f_code, frame.f_lasti
        moment = next_tick() if tick is None else tick
        enter(about, lambda recipes: Decision(what, ask, recipes, answer, code, instruction, moment))


def _innermost(operand: Any) -> Any:
    """A node without the tangents that it carries."""
    while isinstance(operand, Node) and operand.level:
        operand = operand.primal  # type: ignore[attr-defined]
    return operand


def frozen(value: Any, what: str) -> Any:
    """`value` with every node in it plain, for a use that is not recorded: where is written, and how often."""
    if isinstance(value, (tuple, list)):
        return type(value)([frozen(part, what) for part in value])
    if not isinstance(value, Node):
        return value
    require_history(value)
    if is_recording() and not value.level:
        note(what, fingerprint, (value,), fingerprint(value.plain), source_lines.users_frame(2))
    return value.plain


def decided(what: str, ask: Callable[[Any], Any], value: Any) -> Any:
    """What `ask` says of plain values, where a rule goes on from it without recording it; it is asked again in later runs."""
    if not isinstance(value, Node):
        return ask(value)
    answer = ask(value.plain)
    if is_recording():
        note(what, functools.partial(_said, ask), (value,), fingerprint(np.asarray(answer)), source_lines.users_frame(2))
    return answer


def _said(ask: Callable[[Any], Any], value: Any) -> Any:
    return fingerprint(np.asarray(ask(value)))


def fingerprint(array: Any) -> tuple[Any, ...]:
    """What tells an array from others, in few bytes."""
    return array.shape, array.dtype.str, hashlib.blake2b(np.asarray(array).tobytes(), digest_size=16).hexdigest()


def reset() -> None:
    """Start the counts of automatic names anew, and forget what was decided so far.

    What Python decided by the values of nodes (``if x > 0``) is remembered for an `Executor`, which asks again. It takes
    decisions about its variables for its own; call this before the graph is recorded if others went before.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.reset()
    >>> cg.variable(1.0).name, cg.variable(1.0).name
    ('var_0', 'var_1')
    """
    global _reset_at
    restart_names()
    _reset_at = next_tick()


def logs_of(leaves: Iterable[Any]) -> dict[Log, list[Any]]:
    """The logs of some leaves, each with those it belongs to."""
    found: dict[Log, list[Any]] = {}
    for leaf in leaves:
        recipe = getattr(leaf, "recipe", None)
        if recipe is not None:
            found.setdefault(recipe.log.found(), []).append(leaf)
    return found


def noted(logs: Iterable[Log], since: float = 0) -> list[Decision]:
    """All decisions in some logs that are remembered, made after a tick, the oldest first."""
    since = max(since, _reset_at)
    found = [decision for log in logs for _, decision in tuple(log.decisions) if decision.tick > since]
    return sorted(found, key=by_tick)


def is_forgetful(log: Log, begun: float) -> bool:
    """Whether a log may have forgotten what a graph hangs on, the first node of which was made at a tick."""
    return log.forgotten > max(_reset_at, begun)


def copied(log: Log) -> list[Lost]:
    """What was decided about copied leaves, and is not forgotten."""
    return [lost for lost in log.lost if lost.copied > _reset_at]


# ------------------------------------------------------------------------------------------------- shapes

# While a placeholder lives, the properties that tell the shape of a node take note of what they told. Only a placeholder
# can be fed another shape than it was recorded with.
_living = 0
_ASKS: dict[str, Callable[..., Any]] = {"shape": np.shape, "size": np.size, "nbytes": operator.attrgetter("nbytes")}
_COMPOSITIONS = str(Path(compositions.__file__).parent)


def derived_again(on: bool) -> Setting:
    """Forget what is decided inside, since it will be decided again whenever the graph is run; see `nodes.Origin`."""
    return Setting({_forgetting: on and _forgetting.get() is not None})


def remembering() -> Setting:
    """Remember what is decided inside, whatever is derived there: a program is being written, which holds for that alone."""
    return Setting({_forgetting: None})


def freezes_nothing(frame: Any) -> bool:
    """Whether the code that asks for a shape is ours and keeps none: all but compositions, which do as NumPy's own code."""
    filename = frame.f_code.co_filename
    return not _living or (source_lines.is_ours(filename) and not filename.startswith(_COMPOSITIONS))


def note_length(node: Any, what: str = "its size") -> None:
    """Take note of the shape of a node that decides where the elements are that a call of ours reads or writes."""
    if _living:
        note(what, np.shape, (node,), node.plain.shape, source_lines.users_frame(2))


def note_layout(node: Any, what: str) -> None:
    """Take note of how a node lies in memory, on which hangs what is read, or whether it is copied."""
    note(what, layout, (node,), layout(node.plain), source_lines.users_frame(2))


def note_copy(node: Any) -> None:
    """Take note that a result which is written into is a copy, where another array would have given a view."""
    operand = node.args[0]
    if isinstance(operand, Node):
        ask = functools.partial(is_copy, node.function, node.options)
        note(f"whether np.{node.function.__name__} makes a copy", ask, (operand,), True, source_lines.users_frame(2))


def note_nothing(node: Any, index: Any) -> None:
    """Take note that a write into a part of a node, which was empty, changed nothing and is not remembered."""
    note(
        "whether nothing is there to be written into",
        functools.partial(is_empty, index),
        (node,),
        True,
        source_lines.users_frame(2),
    )


def is_empty(index: Any, array: Any) -> bool:
    """Whether a part of an array has no elements."""
    return not np.size(array[index])


def is_copy(function: Any, options: dict[str, Any], array: Any) -> bool:
    """Whether a function gives memory of its own."""
    return owner_of(function(array, **options)) is not owner_of(array)


def layout(array: Any) -> tuple[Any, ...]:
    """How an array lies in memory: whether its elements stand in C or Fortran order, and the axes from the widest step on."""
    flags, strides = np.asarray(array).flags, np.asarray(array).strides
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))
    return flags.c_contiguous, flags.f_contiguous, flags.writeable, axes


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


def _length(axis: int, x: Any) -> int:
    return int(np.shape(x)[axis])


def _noticing(name: str) -> property:
    by_numpy = getattr(np.ndarray, name).__get__
    read = (lambda self: self.plain.nbytes) if name == "nbytes" else by_numpy  # a hollow body tells its own shape alone
    ask = _ASKS[name]

    def tell(self: Node) -> Any:
        answer = read(self)
        frame = sys._getframe(1)
        if not freezes_nothing(frame) and hasattr(self, "plain"):
            axis = axis_read(frame) if name == "shape" else None
            if axis is None or not -len(answer) <= axis < len(answer):
                note(f".{name}", ask, (self,), answer, source_lines.users_frame(2))
            else:
                note(f".shape[{axis}]", functools.partial(_length, axis), (self,), answer[axis], source_lines.users_frame(2))
        return answer

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(tell, refuse)


def _noticed_length(self: Node) -> int:
    answer = np.ndarray.__len__(self)
    if not freezes_nothing(sys._getframe(1)) and hasattr(self, "plain"):
        note("len()", len, (self,), answer, source_lines.users_frame(2))
    return answer


def _noticed_rows(self: Node) -> Any:
    if not freezes_nothing(sys._getframe(1)) and hasattr(self, "plain") and self.ndim:
        note("a loop over rows", len, (self,), np.ndarray.__len__(self), source_lines.users_frame(2))
    return np.ndarray.__iter__(self)


def _noticing_layout(name: str, read: Callable[[Any], Any], ask: Callable[[Any], Any]) -> property:
    """A property that tells how an array lies in memory, and takes note of what it told to code that is not ours."""

    def tell(self: Node) -> Any:
        answer = read(self)
        if hasattr(self, "plain") and not source_lines.is_ours(sys._getframe(1).f_code.co_filename):
            note(f".{name}", ask, (self,), ask(self.plain), source_lines.users_frame(2))
        return answer

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(tell, refuse)


def noticing_strides(read: Callable[[Any], Any]) -> property:
    """``x.strides``."""
    return _noticing_layout("strides", read, lambda array: np.asarray(array).strides)


def noticing_flags(read: Callable[[Any], Any]) -> property:
    """``x.flags``."""
    return _noticing_layout("flags", read, layout)


_NOTICING = {**{name: _noticing(name) for name in _ASKS}, "__len__": _noticed_length, "__iter__": _noticed_rows}
_before: dict[str, Any] = {}


def watch_shapes(placeholder: Any) -> None:
    """Take note of shapes that are told for as long as a placeholder lives."""
    global _living
    if not _living:
        for name, method in _NOTICING.items():
            _before[name] = Node.__dict__.get(name)
            setattr(Node, name, method)
    _living += 1
    weakref.finalize(placeholder, _released).atexit = False


def _released() -> None:
    global _living
    _living -= 1
    if not _living:
        for name, method in _before.items():
            if method is None:
                delattr(Node, name)
            else:
                setattr(Node, name, method)
