"""Contexts: what holds for the code inside a ``with`` statement, and for nobody else.

What holds is kept in variables of `contextvars`, which are read fast and belong to a thread or an asyncio task. Alone they fail
twice. A generator that is suspended inside a ``with`` statement leaves its values to whoever resumed it (PEP 568). A signal such
as Ctrl-C that arrives while ``__exit__`` begins leaves them for ever. So each ``with`` statement makes a *layer*: the values it
sets, a weak reference to the context object, and the generator that it belongs to. The layer holds until ``__exit__`` is called
or the object is dropped, which the ``with`` statement keeps alive; a generator's holds only while the generator runs. The layers
are the truth; `sync_variables` derives the variables from them again wherever a layer may have ceased to hold.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context as Variables
from contextvars import ContextVar, copy_context
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from ..frames import frame_up, is_delegating, walk_frames

T = TypeVar("T")

_GENERATOR = CO_GENERATOR | CO_ASYNC_GENERATOR
# Modules that run a generator up to its ``yield``, and for whose callers the contexts it entered shall go on to hold.
_DRIVERS = frozenset({"contextlib", "_pytest.fixtures", "pluggy._callers", "pluggy._execution"})
_METHODS = 3  # the most frames from an ``__enter__`` to the method of it that enters a context

_DEFAULTS: dict[ContextVar[Any], Any] = {}
_QUICK: dict[ContextVar[Any], Any] = {}  # those that must have their defaults for operations to take the shortest way
_READ: set[ContextVar[Any]] = set()  # those, and others that the shortest way reads, whatever their values
# Whether operations may take the shortest way: all of `_QUICK` have their defaults (nodes are recorded, no scope is open, nobody
# watches), and no layer that changes one of `_READ` can cease to hold unseen.
_quick: ContextVar[bool] = ContextVar("quick", default=True)
is_quick = _quick.get


def layered_variable(name: str, default: Any, is_quick: bool = False, is_read: bool = False) -> ContextVar[Any]:
    """A new variable of `contextvars` that layers can change.

    Parameters
    ----------
    name, default : str, object
        As of any `ContextVar`.
    is_quick : bool
        Whether operations may take the shortest way (`is_quick`) only while it has its default.
    is_read : bool
        Whether that way reads it, so that it must be right there, whatever its value.
    """
    variable: ContextVar[Any] = ContextVar(name, default=default)
    _DEFAULTS[variable] = default
    if is_quick:
        _QUICK[variable] = default
    if is_quick or is_read:
        _READ.add(variable)
    return variable


class Layer:
    """The variables that one context sets while it holds.

    Attributes
    ----------
    changes : mapping
        The value of each variable.
    around : Layer or None
        The layer within which it was entered.
    before, was_quick : list of (ContextVar, object) or None, bool
        What the variables, and `is_quick`, were when it was entered; `before` is None once a layer around is gone.
    entry : Entry or None
        The context object. None: the layer holds until it is removed, or until its task ends.
    statement : int or None
        The id of the frame that entered it: if one context is entered several times, a frame leaves its own layer.
    owner : FrameType or None
        The generator's frame that it belongs to.
    is_owned : bool
        Whether it, or one around it, belongs to a generator.
    is_guarded : bool
        Whether it, or one around it, may cease to hold without a call of ``__exit__``, so that `sync_variables` has to look.
    is_closed : bool
        Whether it was left by a call that could not take it off: in another thread, or out of order.
    """

    __slots__ = (
        "around", "before", "changes", "entry", "is_closed", "is_guarded", "is_owned", "owner", "statement", "was_quick",
    )  # fmt: skip

    around: Layer | None
    before: list[tuple[ContextVar[Any], Any]] | None
    is_guarded: bool
    is_owned: bool
    was_quick: bool

    def __init__(self, changes: Mapping[ContextVar[Any], Any]) -> None:
        self.changes = changes
        self.entry: Entry | None = None
        self.statement: int | None = None
        self.owner: FrameType | None = None
        self.is_closed = False

    def is_over(self) -> bool:
        """Whether its ``with`` statement was left, by whatever way, also by a signal."""
        return self.is_closed or (self.entry is not None and self.entry.is_dropped())


class Entry(weakref.ref[Any]):
    """A weak reference to a context object that was entered; see `Layer`."""

    __slots__ = ("is_kept", "place")

    def __new__(cls, context: Any, frame: FrameType) -> Entry:
        """Refer to a context that a frame enters."""
        return super().__new__(cls, context, Entry._gone)

    def __init__(self, context: Any, frame: FrameType) -> None:
        self.is_kept, self.place = False, (id(frame), frame.f_lasti)

    def _gone(self) -> None:
        """Keep the layer if the call ``context().__enter__()`` itself drops the object, so that no ``__exit__`` can follow."""
        frame = frame_up(1)
        self.is_kept = self.place == (id(frame), frame.f_lasti)

    def is_dropped(self) -> bool:
        """Whether the object was deleted without a call of its ``__exit__``."""
        return self() is None and not self.is_kept


_innermost: ContextVar[Layer | None] = ContextVar("innermost", default=None)
_settled: ContextVar[tuple[Layer, ...] | None] = ContextVar("settled", default=None)  # the layers that the variables stand for
_told: ContextVar[Layer | bool | None] = ContextVar("told", default=False)  # the innermost layer when `_quick` was found
_is_apart: ContextVar[bool] = ContextVar("is_apart", default=False)  # whether this runs inside a call by `run_isolated`
_OWN = frozenset({_quick, _innermost, _settled, _told, _is_apart})


def sync_variables() -> None:
    """Set the variables to what the layers say that hold for the running frame, if that may have changed."""
    layer = _innermost.get()
    if layer is None or not layer.is_guarded:
        if not is_quick() and _told.get() is not layer:
            _tell_quick()
        return
    if layer.is_over() or (layer.is_owned and tuple(_holding(layer)) != _settled.get()):
        _derive()
    # Otherwise the innermost layer holds, and so do those around it: no block can be left before the one within it.


def _holding(layer: Layer | None) -> Iterator[Layer]:
    """The layers that hold, the innermost first: a running generator's come before those of the code that resumed it."""
    found, owned = [], False
    while layer is not None:
        if not layer.is_over():
            found.append(layer)
            owned = owned or layer.owner is not None
        layer = layer.around
    if owned:
        for frame in walk_frames(frame_up(1)):
            yield from (layer for layer in found if layer.owner is frame)
    yield from (layer for layer in found if layer.owner is None)


def layer_of(variable: ContextVar[Any]) -> Layer | None:
    """The innermost layer that holds and sets a variable; None if there is none."""
    return next((layer for layer in _holding(_innermost.get()) if variable in layer.changes), None)


def _derive() -> None:
    """Set the variables to what the layers say, and drop the layers that are over.

    An interrupt may cut this short at any step. The order is such that the next `sync_variables` then does it all again.
    """
    innermost = _innermost.get()
    while innermost is not None and innermost.is_over():
        innermost = innermost.around
    holding = tuple(_holding(innermost))
    _quick.set(False)
    _settled.set(None)
    for variable, default in _DEFAULTS.items():
        variable.set(next((layer.changes[variable] for layer in holding if variable in layer.changes), default))
    _settled.set(holding)
    _innermost.set(innermost)
    _tell_quick()


def _tell_quick() -> None:
    innermost = layer = _innermost.get()
    may_change = False
    while layer is not None and layer.is_guarded and not may_change:
        may_change = not _READ.isdisjoint(layer.changes)
        layer = layer.around
    _quick.set(not may_change and all(variable.get() is default for variable, default in _QUICK.items()))
    _told.set(innermost)


def _push(layer: Layer, frame: FrameType | None, is_certain: bool) -> None:
    """Make a layer, entered by a frame, the innermost; `is_certain` if no layer around can be left while it holds."""
    around = _innermost.get()
    layer.around = around
    layer.was_quick = is_quick()
    if around is None:
        layer.is_owned = layer.is_guarded = False
    else:
        layer.is_owned = around.is_owned
        layer.is_guarded = around.is_owned or (around.is_guarded and not is_certain)
    if layer.is_owned or not is_certain:
        layer.is_guarded = True
        layer.owner = _generator(frame, layer.is_owned)
        layer.is_owned = layer.is_owned or layer.owner is not None
        _quick.set(False)
    layer.before = [(variable, variable.get()) for variable in layer.changes]
    _innermost.set(layer)
    may_change = layer.is_guarded
    for variable, value in layer.changes.items():
        variable.set(value)
        if variable in _QUICK and not (layer.was_quick and value is _QUICK[variable]):
            may_change = True
    if layer.is_owned:
        _settled.set(None)
    if may_change:
        _tell_quick()  # comes last: operations may take the shortest way only when all variables are set
    elif not layer.was_quick:
        _told.set(layer)


def _drop(layer: Layer) -> None:
    """Take a layer off, and set the variables back."""
    if _innermost.get() is layer and layer.before is not None and not layer.is_owned:
        for variable, value in layer.before:
            variable.set(value)
        _innermost.set(layer.around)
        _quick.set(layer.was_quick)
        _told.set(layer.around)
        layer.entry = None  # it holds until the end of a task that was started inside
        return
    is_kept = _innermost.get() is layer and layer.owner is None
    layer.is_closed = True
    for later in _chain():
        later.before = None  # it was entered within the layer that is gone, and must not bring its values back
    _derive()
    if is_kept:
        layer.entry, layer.is_closed = None, False  # as above


class Context:
    """A context for users, which may be entered several times, and within itself.

    Subclasses call `_enter` at the end of ``__enter__``, with the variables to set, and `_leave` at the start of ``__exit__``.
    """

    __slots__ = ("__weakref__", "_entered")

    def __init__(self) -> None:
        self._entered: list[Layer] = []

    def _enter(self, changes: Mapping[ContextVar[Any], Any], depth: int = 2) -> None:
        """Enter a layer with these changes; `depth` is how many frames up the ``with`` statement, or a call by hand, is."""
        frame = frame_up(depth)
        layer = Layer(changes)
        layer.statement = id(frame)
        try:
            layer.entry = Entry(self, frame)
            self._entered.append(layer)
            sync_variables()
            _push(layer, _statement(frame), False)
        except BaseException:  # a signal: no ``__exit__`` will follow
            if layer in self._entered:
                self._entered.remove(layer)
            _drop(layer)
            raise

    def _leave(self) -> Layer:
        """Take off the layer that this ``with`` statement entered, and give it."""
        entered = self._entered[::-1]  # a copy, since other threads leave meanwhile
        if not entered:
            raise RuntimeError("a context was left that is not entered")
        layer = entered[0]
        if len(entered) > 1:  # perhaps in several threads, tasks or generators: which layer is this statement's?
            mine, statement = set(_chain()), id(frame_up(2))
            layer = next((e for e in entered if e.statement == statement), layer)
            if layer not in mine:
                layer = next((e for e in entered if e in mine), layer)
        self._entered.remove(layer)
        _drop(layer)
        return layer


def _chain() -> Iterator[Layer]:
    layer = _innermost.get()
    while layer is not None:
        yield layer
        layer = layer.around


def _statement(frame: FrameType | None) -> FrameType | None:
    """The frame whose block a context is entered for, by a ``with`` statement or by hand.

    A generator driven by `contextlib.contextmanager`, an ``__enter__`` that enters another context, and an ``ExitStack`` enter
    for somebody else: then it is further out.
    """
    while frame is not None:
        plain = itertools.takewhile(lambda around: not around.f_code.co_flags & _GENERATOR, walk_frames(frame))
        entering = next((around for around in itertools.islice(plain, _METHODS) if _enters(around)), None)
        if entering is not None:
            frame = entering
        elif not _is_driven(frame):
            return frame
        frame = frame.f_back
    return None


def _enters(frame: FrameType) -> bool:
    """Whether a frame runs an ``__enter__``, or enters contexts in `contextlib`."""
    return frame.f_code.co_name in ("__enter__", "__aenter__") or frame.f_globals.get("__name__") == "contextlib"


def _is_driven(frame: FrameType) -> bool:
    """Whether a frame is that of a generator that `_DRIVERS` resume, or of one to which such a generator delegates."""
    while frame.f_code.co_flags & _GENERATOR and frame.f_back is not None:
        is_async, frame = frame.f_code.co_flags & CO_ASYNC_GENERATOR, frame.f_back
        if frame.f_globals.get("__name__") in _DRIVERS:
            return True
        if is_async or not is_delegating(frame):
            return False
    return False


def _generator(frame: FrameType | None, is_owned: bool) -> FrameType | None:
    """The frame of the generator within which a frame runs, and which may be suspended before the frame's contexts are left."""
    if frame is not None and frame.f_code.co_flags & _GENERATOR:
        return frame
    if is_owned:
        owners = {layer.owner for layer in _chain()}
        return next((around for around in walk_frames(frame) if around in owners), None)
    return None


class Setting(Layer):
    """A context for the package itself, with values of variables, around a call that returns before a generator is suspended."""

    __slots__ = ()

    def __enter__(self) -> None:
        try:
            sync_variables()
            _push(self, frame_up(1), True)
        except BaseException:  # a signal: no ``__exit__`` will follow
            _drop(self)
            raise

    def __exit__(self, *exception: object) -> None:
        _drop(self)


def run_isolated(function: Callable[..., T], *args: Any) -> T:
    """Call ``function(*args)`` in a copy of the context: what this package sets inside ends with the call, even if interrupted.

    Variables of others that the function sets, as `numpy.seterr` does, stay set, unless the call is interrupted.
    """
    context = copy_context()
    context.run(_is_apart.set, True)
    try:
        result = context.run(function, *args)
    except Exception:
        _carry_over(context)
        raise
    _carry_over(context)
    return result


def run_isolated_once(function: Callable[..., T], *args: Any) -> T:
    """As `run_isolated`; within another call by `run_isolated`, call the function directly."""
    return function(*args) if _is_apart.get() else run_isolated(function, *args)


def _carry_over(context: Variables) -> None:
    for variable, value in context.items():
        if variable in _DEFAULTS or variable in _OWN or variable.get(_MISSING) is value:
            continue
        if variable.name != _ERRSTATE or not getattr(context.run(np.geterrcall), "is_passing", False):
            variable.set(value)
    entered = context.get(_innermost)
    if entered is not _innermost.get():  # a context was entered by hand, or by a generator that will be resumed
        _innermost.set(entered)
        _derive()


_MISSING = object()
# The variable behind `numpy.errstate`. Where an operation of ours sets its callback, this has an attribute ``is_passing``: it may
# still be set if the operation was interrupted and the function caught the interrupt, and must not be carried over.
_ERRSTATE = "numpy.ufunc.extobj"
