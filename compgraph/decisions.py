"""What Python decided while a graph was recorded, so that a graph that is run again can decide again.

``if x > 0``, ``int(x)``, ``items[i]`` and ``x.shape[0]`` give Python plain values, and which operations are recorded after
that may hang on them. Each is noted with its answer, and with how to ask again: a `Question`, which holds the nodes it is
about weakly and the few operations behind them as a recipe, so that what was only computed to decide is free to die. The
log is short and shared by all threads; whoever runs a graph again asks those questions that are about its nodes.

``float(x)`` and kin are noted without a question: what Python does with a number cannot be asked again.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from . import interpreter, lines
from .graph import breadth_first
from .modes import is_recording
from .names import restart_names
from .nodes import (
    ConstantNode,
    InputNode,
    Joint,
    Node,
    PlaceholderNode,
    attach,
    describe,
    next_tick,
    require_history,
)

KEPT = 10_000  # decisions that are remembered
DEPTH = 4  # how many operations deep a recipe goes
SMALL = 1024  # bytes of a raw operand that a recipe may hold


class Recipe(NamedTuple):
    """How a node was computed, in case it dies before anybody asks."""

    node: Callable[[], Any]
    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    tick: int


class Decision(NamedTuple):
    """One answer that Python was given.

    Attributes
    ----------
    what : str
        What asked: ``"bool()"``, ``".shape"``.
    ask : callable or None
        The question, a function of the plain values of `about`; None if the answer cannot be asked for again.
    about : tuple
        Nodes as recipes or weak references, and plain values.
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
        return not self.what.startswith(".") or self.ask is not None

    def __str__(self) -> str:
        place = lines.described(self.code, self.instruction)
        return self.what if place is None else f"{self.what} at {place}"


class GoneError(Exception):
    """A node that a decision was about is no more: a leaf, or one that nobody knows how it was computed."""

    def __init__(self, was_computed: bool) -> None:
        self.was_computed = was_computed


_log: deque[Decision] = deque(maxlen=KEPT)
_forgetting: ContextVar[bool | None] = ContextVar("forgetting", default=False)


def note(
    what: str, ask: Callable[..., Any] | None, about: tuple[Any, ...], answer: Any, frame: Any, tick: int | None = None
) -> None:
    """Remember an answer, given now or at a tick, on the line at work in a frame."""
    if _forgetting.get() or all(a.__class__ is ConstantNode for a in about if isinstance(a, Node)):
        return
    kept = tuple([_kept(a, DEPTH) for a in about])
    _log.append(Decision(what, ask, kept, answer, frame.f_code, frame.f_lasti, next_tick() if tick is None else tick))


def frozen(value: Any, what: str) -> Any:
    """`value` with every node in it plain, for a use that is not recorded: where is written, and how often."""
    if isinstance(value, (tuple, list)):
        return type(value)([frozen(part, what) for part in value])
    if not isinstance(value, Node):
        return value
    require_history(value)
    if is_recording() and not value.level:
        note(what, fingerprint, (value,), fingerprint(value.plain), lines.users_frame(2))
    return value.plain


def fingerprint(array: Any) -> tuple[Any, ...]:
    """What tells an array from others, in few bytes."""
    return array.shape, array.dtype.str, hashlib.blake2b(np.asarray(array).tobytes(), digest_size=16).hexdigest()


def _kept(operand: Any, depth: int) -> Any:
    """An operand as a decision holds it."""
    if isinstance(operand, Joint):
        return Recipe(_nothing, operand.function, _all_kept(operand.args, depth - 1), operand.options, operand.tick)
    if not isinstance(operand, Node):
        heavy = operand.__class__ is np.ndarray and operand.nbytes > SMALL
        return weakref.ref(operand) if heavy else operand
    node = weakref.ref(operand)
    if operand.function is None:
        return node
    if depth <= 0:
        return Recipe(node, None, (), {}, operand.tick)
    return Recipe(node, operand.function, _all_kept(operand.args, depth - 1), operand.options, operand.tick)


def _all_kept(operands: tuple[Any, ...], depth: int) -> tuple[Any, ...]:
    return tuple([_kept(a, depth) for a in operands])


def _nothing() -> None:
    return None


def revived(kept: Any) -> Any:
    """An operand of a decision: the node itself if it lives, else one computed again from what does."""
    if isinstance(kept, weakref.ref):
        found = kept()
        if found is None:
            raise GoneError(False)
        return found
    if not isinstance(kept, Recipe):
        return kept
    alive = kept.node()
    if alive is not None:
        return alive
    if kept.function is None:
        raise GoneError(True)
    args = tuple([_joint(a) if isinstance(a, Recipe) and a.node is _nothing else revived(a) for a in kept.args])
    return _made(kept, args)


def _joint(kept: Recipe) -> Any:
    joint = Joint()
    joint.args = tuple(map(revived, kept.args))
    joint.plain = tuple(kept.function(*map(_plain, joint.args), **kept.options))
    joint.function, joint.options, joint.tick, joint._operands = kept.function, kept.options, kept.tick, None
    joint.edges = tuple([i for i, a in enumerate(joint.args) if isinstance(a, Node)])
    joint.code, joint.instruction = None, 0
    return joint


def _made(kept: Recipe, args: tuple[Any, ...]) -> Any:
    made = attach(kept.function(*map(_plain, args), **kept.options), kept.function, args, kept.options)
    made.tick = kept.tick
    return made


def _plain(value: Any) -> Any:
    return value.plain if isinstance(value, (Node, Joint)) else value


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
    restart_names()
    _log.clear()


def noted() -> tuple[Decision, ...]:
    """All decisions that are remembered, oldest first."""
    return tuple(_log)


# ------------------------------------------------------------------------------------------------- shapes

# While a placeholder lives, the properties that tell the shape of a node take note of what they told. Only a placeholder
# can be fed another shape than it was recorded with.
_living = 0
_ASKS: dict[str, Callable[..., Any]] = {"shape": np.shape, "size": np.size, "nbytes": operator.attrgetter("nbytes")}
_COMPOSITIONS = __file__.replace("decisions.py", "compositions")


@contextmanager
def derived_again(on: bool) -> Iterator[None]:
    """Forget what is decided inside, since it will be decided again whenever the graph is run; see `nodes.Origin`."""
    token = _forgetting.set(on and _forgetting.get() is not None)
    try:
        yield
    finally:
        _forgetting.reset(token)


@contextmanager
def remembering() -> Iterator[None]:
    """Remember what is decided inside, whatever is derived there: a program is being written, which holds for that alone."""
    token = _forgetting.set(None)
    try:
        yield
    finally:
        _forgetting.reset(token)


def freezes_nothing(frame: Any) -> bool:
    """Whether the code that asks for a shape is ours and keeps none: all but compositions, which do as NumPy's own code."""
    filename = frame.f_code.co_filename
    return not _living or (lines.is_ours(filename) and not filename.startswith(_COMPOSITIONS))


def note_lengths(what: str, *outputs: Any, tick: int | None = None) -> None:
    """Take note of the shapes of placeholders and arguments behind nodes, for what is recorded, from a tick on, for these alone.

    What a derivative's rules record holds lengths of the arrays they saw. `autodiff.reverse.gradients` is asked for again
    where the graph is run with others; other derivatives cannot be.
    """
    if _living:
        for node in breadth_first(*[x for x in outputs if isinstance(x, Node)]):
            if isinstance(node, (PlaceholderNode, InputNode)):  # where other lengths may come from
                asked = f"the shape of the {describe(node)}, for which {what} was recorded,"
                note(asked, np.shape, (node,), node.plain.shape, lines.users_frame(2), tick)


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
            axis = interpreter.axis_read(frame) if name == "shape" else None
            if axis is None or not -len(answer) <= axis < len(answer):
                note(f".{name}", ask, (self,), answer, lines.users_frame(2))
            else:
                note(f".shape[{axis}]", functools.partial(_length, axis), (self,), answer[axis], lines.users_frame(2))
        return answer

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(tell, refuse)


def _noticed_length(self: Node) -> int:
    answer = np.ndarray.__len__(self)
    if not freezes_nothing(sys._getframe(1)) and hasattr(self, "plain"):
        note("len()", len, (self,), answer, lines.users_frame(2))
    return answer


def _noticed_rows(self: Node) -> Any:
    if not freezes_nothing(sys._getframe(1)) and hasattr(self, "plain") and self.ndim:
        note("a loop over rows", len, (self,), np.ndarray.__len__(self), lines.users_frame(2))
    return np.ndarray.__iter__(self)


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
