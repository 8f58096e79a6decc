"""Layers: context variables with reliable scope.

Settings live in variables of `contextvars`, which are fast to read and local to a thread or asyncio task. Two cases break them. A
generator suspended inside a ``with`` statement leaves its values to the code that resumed it (PEP 568). A signal such as Ctrl-C
at the start of ``__exit__`` leaves them forever.

So each ``with`` statement makes a *layer*: the values it sets, a weak reference to the context object, and the generator that it
belongs to. A layer holds until ``__exit__`` is called or the object is deleted; the ``with`` statement keeps the object alive.
The layer of a generator holds only while the generator runs. Layers are authoritative: `sync_variables` recomputes the variables
from them wherever a layer may have ended.
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
# Modules that run a generator up to its ``yield``; the contexts it entered stay in force for their callers.
_DRIVERS = frozenset({"contextlib", "_pytest.fixtures", "pluggy._callers", "pluggy._execution"})
_MAX_ENTER_FRAMES = 3  # the maximal number of frames from an ``__enter__`` to its helper that enters a context

_DEFAULTS: dict[ContextVar[Any], Any] = {}
_FAST_PATH_DEFAULTS: dict[ContextVar[Any], Any] = {}  # variables that must have these values on the fast path of operations
_FAST_PATH_READS: set[ContextVar[Any]] = set()  # `_FAST_PATH_DEFAULTS` and the other variables that the fast path reads
# Whether operations may take the fast path: all of `_FAST_PATH_DEFAULTS` have their defaults (nodes are recorded, no scope or
# observer is active), and no layer that changes one of `_FAST_PATH_READS` can end undetected.
_fast_path: ContextVar[bool] = ContextVar("fast_path", default=True)
is_fast_path = _fast_path.get


def layered_variable(
    name: str, default: tuple[Any, ...] | float | None, disables_fast_path: bool = False, is_read: bool = False
) -> ContextVar[Any]:
    """Make a context variable that layers can set.

    Parameters
    ----------
    name, default : str, object
        As for `ContextVar`.
    disables_fast_path : bool
        Whether any value except the default disables the fast path of operations (`is_fast_path`).
    is_read : bool
        Whether the fast path reads the variable, which must then be in sync.
    """
    variable: ContextVar[Any] = ContextVar(name, default=default)
    _DEFAULTS[variable] = default
    if disables_fast_path:
        _FAST_PATH_DEFAULTS[variable] = default
    if disables_fast_path or is_read:
        _FAST_PATH_READS.add(variable)
    return variable


class Layer:
    """The variables that one context sets while it holds.

    Attributes
    ----------
    changes : mapping
        The value of each variable.
    parent : Layer or None
        The enclosing layer.
    saved_values : list of (ContextVar, object) or None
        The values of the variables at entry; None once an enclosing layer has ended.
    was_fast_path : bool
        The value of `is_fast_path` at entry.
    reference : ContextReference or None
        A weak reference to the context object. None if the layer holds until it is removed, or until its task ends.
    frame_id : int or None
        The id of the frame that entered it. If one context is entered several times, a frame leaves its own layer.
    owner : FrameType or None
        The generator's frame that it belongs to.
    is_owned : bool
        Whether it, or an enclosing layer, belongs to a generator.
    is_guarded : bool
        Whether it, or an enclosing layer, may end without a call of ``__exit__``, so that `sync_variables` must check.
    is_closed : bool
        Whether it was left by a call that could not remove it: in another thread, or out of order.
    """

    __slots__ = (
        "changes", "frame_id", "is_closed", "is_guarded", "is_owned", "owner", "parent", "reference", "saved_values",
        "was_fast_path",
    )  # fmt: skip

    parent: Layer | None
    saved_values: list[tuple[ContextVar[Any], Any]] | None
    is_guarded: bool
    is_owned: bool
    was_fast_path: bool

    def __init__(self, changes: Mapping[ContextVar[Any], Any]) -> None:
        self.changes = changes
        self.reference: ContextReference | None = None
        self.frame_id: int | None = None
        self.owner: FrameType | None = None
        self.is_closed = False

    def has_ended(self) -> bool:
        """Whether its ``with`` statement has ended, also by a signal."""
        return self.is_closed or (self.reference is not None and self.reference.is_dropped())


class ContextReference(weakref.ref[Any]):
    """A weak reference to an entered context object; see `Layer`."""

    __slots__ = ("entered_at", "keeps_layer")

    def __new__(cls, context: object, frame: FrameType) -> ContextReference:
        """Refer to a context that a frame enters."""
        return super().__new__(cls, context, ContextReference._keep_layer_if_unreferenced)

    def __init__(self, context: object, frame: FrameType) -> None:
        self.keeps_layer, self.entered_at = False, (id(frame), frame.f_lasti)

    def _keep_layer_if_unreferenced(self) -> None:
        """Keep the layer if the call ``context().__enter__()`` itself deletes the object, so that no ``__exit__`` can follow."""
        frame = frame_up(1)
        self.keeps_layer = self.entered_at == (id(frame), frame.f_lasti)

    def is_dropped(self) -> bool:
        """Whether the object was deleted without a call of its ``__exit__``."""
        return self() is None and not self.keeps_layer


_innermost: ContextVar[Layer | None] = ContextVar("innermost", default=None)
# The layers to which the variables were last set.
_synced_layers: ContextVar[tuple[Layer, ...] | None] = ContextVar("synced_layers", default=None)
# The innermost layer when `_fast_path` was last computed.
_fast_path_layer: ContextVar[Layer | bool | None] = ContextVar("fast_path_layer", default=False)
_is_isolated: ContextVar[bool] = ContextVar("is_isolated", default=False)  # whether this runs inside a call by `run_isolated`
_INTERNAL_VARIABLES = frozenset({_fast_path, _innermost, _synced_layers, _fast_path_layer, _is_isolated})


def sync_variables() -> None:
    """Set the variables to the layers in force for the running frame, if these may have changed."""
    layer = _innermost.get()
    if layer is None or not layer.is_guarded:
        if not is_fast_path() and _fast_path_layer.get() is not layer:
            _update_fast_path()
        return
    if layer.has_ended() or (layer.is_owned and tuple(_layers_in_force(layer)) != _synced_layers.get()):
        _recompute_variables()
    # Otherwise the innermost layer is in force, as are its enclosing layers, because blocks end in order.


def _layers_in_force(layer: Layer | None) -> Iterator[Layer]:
    """The layers in force, innermost first. Those of a running generator precede those of the code that resumed it."""
    active_layers, any_owned = [], False
    while layer is not None:
        if not layer.has_ended():
            active_layers.append(layer)
            any_owned = any_owned or layer.owner is not None
        layer = layer.parent
    if any_owned:
        for frame in walk_frames(frame_up(1)):
            yield from (layer for layer in active_layers if layer.owner is frame)
    yield from (layer for layer in active_layers if layer.owner is None)


def layer_of(variable: ContextVar[Any]) -> Layer | None:
    """The innermost layer in force that sets a variable; None without one."""
    return next((layer for layer in _layers_in_force(_innermost.get()) if variable in layer.changes), None)


def _recompute_variables() -> None:
    """Recompute the variables from the layers, and drop layers that have ended.

    An interrupt may stop this at any step. The order of the steps makes the next `sync_variables` repeat it all.
    """
    innermost = _innermost.get()
    while innermost is not None and innermost.has_ended():
        innermost = innermost.parent
    in_force = tuple(_layers_in_force(innermost))
    _fast_path.set(False)
    _synced_layers.set(None)
    for variable, default in _DEFAULTS.items():
        variable.set(next((layer.changes[variable] for layer in in_force if variable in layer.changes), default))
    _synced_layers.set(in_force)
    _innermost.set(innermost)
    _update_fast_path()


def _update_fast_path() -> None:
    innermost = layer = _innermost.get()
    may_change = False
    while layer is not None and layer.is_guarded and not may_change:
        may_change = not _FAST_PATH_READS.isdisjoint(layer.changes)
        layer = layer.parent
    _fast_path.set(not may_change and all(variable.get() is default for variable, default in _FAST_PATH_DEFAULTS.items()))
    _fast_path_layer.set(innermost)


def _push(layer: Layer, frame: FrameType | None, ends_in_order: bool) -> None:
    """Make a layer, entered by a frame, the innermost; `ends_in_order` if no enclosing layer can end before it."""
    enclosing = _innermost.get()
    layer.parent = enclosing
    layer.was_fast_path = is_fast_path()
    if enclosing is None:
        layer.is_owned = layer.is_guarded = False
    else:
        layer.is_owned = enclosing.is_owned
        layer.is_guarded = enclosing.is_owned or (enclosing.is_guarded and not ends_in_order)
    if layer.is_owned or not ends_in_order:
        layer.is_guarded = True
        layer.owner = _generator_frame(frame, layer.is_owned)
        layer.is_owned = layer.is_owned or layer.owner is not None
        _fast_path.set(False)
    layer.saved_values = [(variable, variable.get()) for variable in layer.changes]
    _innermost.set(layer)
    may_change = layer.is_guarded
    for variable, value in layer.changes.items():
        variable.set(value)
        if variable in _FAST_PATH_DEFAULTS and not (layer.was_fast_path and value is _FAST_PATH_DEFAULTS[variable]):
            may_change = True
    if layer.is_owned:
        _synced_layers.set(None)
    if may_change:
        _update_fast_path()  # last: the fast path requires that all variables are set
    elif not layer.was_fast_path:
        _fast_path_layer.set(layer)


def _drop(layer: Layer) -> None:
    """Remove a layer and restore the variables."""
    if _innermost.get() is layer and layer.saved_values is not None and not layer.is_owned:
        for variable, value in layer.saved_values:
            variable.set(value)
        _innermost.set(layer.parent)
        _fast_path.set(layer.was_fast_path)
        _fast_path_layer.set(layer.parent)
        layer.reference = None  # it holds until the end of a task started inside
        return
    keeps_layer = _innermost.get() is layer and layer.owner is None
    layer.is_closed = True
    for later in _enclosing_layers():
        later.saved_values = None  # entered within the removed layer, whose values must not be restored
    _recompute_variables()
    if keeps_layer:
        layer.reference, layer.is_closed = None, False  # as above


class Context:
    """Base class of the contexts for users, which may be entered several times and nested within themselves.

    Subclasses call `_enter` at the end of ``__enter__``, with the variables to set, and `_leave` at the start of ``__exit__``.
    """

    __slots__ = ("__weakref__", "_entered_layers")

    def __init__(self) -> None:
        self._entered_layers: list[Layer] = []

    def _enter(self, changes: Mapping[ContextVar[Any], Any], depth: int = 2) -> None:
        """Enter a layer with these changes; the ``with`` statement, or explicit call, is `depth` frames up."""
        frame = frame_up(depth)
        layer = Layer(changes)
        layer.frame_id = id(frame)
        try:
            layer.reference = ContextReference(self, frame)
            self._entered_layers.append(layer)
            sync_variables()
            _push(layer, _entering_frame(frame), False)
        except BaseException:  # a signal; no ``__exit__`` follows
            if layer in self._entered_layers:
                self._entered_layers.remove(layer)
            _drop(layer)
            raise

    def _leave(self) -> Layer:
        """Remove the layer that this ``with`` statement entered, and return it."""
        entered = self._entered_layers[::-1]  # a copy, because other threads may leave concurrently
        if not entered:
            raise RuntimeError("a context that is not entered was exited. Exit each context once, as `with` does")
        layer = entered[0]
        if len(entered) > 1:  # possibly in several threads, tasks or generators: find the layer of this statement
            own_layers, frame_id = set(_enclosing_layers()), id(frame_up(2))
            layer = next((e for e in entered if e.frame_id == frame_id), layer)
            if layer not in own_layers:
                layer = next((e for e in entered if e in own_layers), layer)
        self._entered_layers.remove(layer)
        _drop(layer)
        return layer


def _enclosing_layers() -> Iterator[Layer]:
    layer = _innermost.get()
    while layer is not None:
        yield layer
        layer = layer.parent


def _entering_frame(frame: FrameType | None) -> FrameType | None:
    """The frame whose block enters a context, by a ``with`` statement or an explicit call.

    A generator driven by `contextlib.contextmanager`, an ``__enter__`` that enters another context, and an ``ExitStack`` enter on
    behalf of a frame further out.
    """
    while frame is not None:
        plain = itertools.takewhile(lambda caller: not caller.f_code.co_flags & _GENERATOR, walk_frames(frame))
        entering = next((caller for caller in itertools.islice(plain, _MAX_ENTER_FRAMES) if _is_entering(caller)), None)
        if entering is not None:
            frame = entering
        elif not _is_driven(frame):
            return frame
        frame = frame.f_back
    return None


def _is_entering(frame: FrameType) -> bool:
    """Whether a frame runs an ``__enter__``, or code of `contextlib` that enters contexts."""
    return frame.f_code.co_name in ("__enter__", "__aenter__") or frame.f_globals.get("__name__") == "contextlib"


def _is_driven(frame: FrameType) -> bool:
    """Whether a frame is a generator resumed by one of `_DRIVERS`, directly or through ``yield from``."""
    while frame.f_code.co_flags & _GENERATOR and frame.f_back is not None:
        is_async, frame = frame.f_code.co_flags & CO_ASYNC_GENERATOR, frame.f_back
        if frame.f_globals.get("__name__") in _DRIVERS:
            return True
        if is_async or not is_delegating(frame):
            return False
    return False


def _generator_frame(frame: FrameType | None, is_owned: bool) -> FrameType | None:
    """The frame of the generator in which a frame runs, which may be suspended before the frame's contexts are left."""
    if frame is not None and frame.f_code.co_flags & _GENERATOR:
        return frame
    if is_owned:
        owners = {layer.owner for layer in _enclosing_layers()}
        return next((caller for caller in walk_frames(frame) if caller in owners), None)
    return None


class Setting(Layer):
    """A context for internal use: sets variables around a call that returns before any generator is suspended."""

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


def run_isolated(function: Callable[..., T], *args: object) -> T:
    """Call ``function(*args)`` in a copy of the context, so that this package's settings end with the call even on interrupts.

    Other variables that the function sets, as `numpy.seterr` does, stay set unless the call is interrupted.
    """
    context = copy_context()
    context.run(_is_isolated.set, True)
    try:
        result = context.run(function, *args)
    except Exception:
        _copy_back(context)
        raise
    _copy_back(context)
    return result


def run_isolated_once(function: Callable[..., T], *args: object) -> T:
    """As `run_isolated`; within another call by `run_isolated`, call the function directly."""
    return function(*args) if _is_isolated.get() else run_isolated(function, *args)


def _copy_back(context: Variables) -> None:
    for variable, value in context.items():
        if variable in _DEFAULTS or variable in _INTERNAL_VARIABLES or variable.get(_MISSING) is value:
            continue
        if variable.name != _ERRSTATE or not getattr(context.run(np.geterrcall), "is_passing", False):
            variable.set(value)
    entered = context.get(_innermost)
    if entered is not _innermost.get():  # a context entered explicitly, or by a generator that will be resumed
        _innermost.set(entered)
        _recompute_variables()


_MISSING = object()
# The variable of `numpy.errstate`. A callback set by this package has an attribute ``is_passing``. If an interrupt left it set,
# it must not be carried over.
_ERRSTATE = "numpy.ufunc.extobj"
