"""``with cg.patched_numpy():`` makes NumPy's constructors keep the graph.

``np.array(node)`` does not dispatch. Inside this context, ``np.array`` and similar names are the functions of the same names in
``compgraph``, for the current thread or asyncio task. The code of the two packages, and NumPy's own, calls the originals, and so
do compiled modules, which may access the memory of the arrays (see `compiled_modules`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..context import Context, callbacks_lock, is_recording, layered_variable, sync_variables
from ..frames import frame_up, is_internal
from ..graph import flatten_sequences
from ..tracing import has_compiled_code, is_library, is_tracing
from ..values import TRACEABLE, Value, as_buffer, unwrap_buffers, wrap_result
from . import creation
from .compiled_modules import keep_original, shield_compiled_modules
from .creation import array, asanyarray, asarray, asarray_chkfinite, full
from .memory_layouts import ascontiguousarray, asfortranarray

_MAKING = (
    array, asarray, asanyarray, ascontiguousarray, asfortranarray, asarray_chkfinite, full,
    creation.zeros, creation.ones, creation.empty,
)  # fmt: skip
OURS: dict[str, Callable[..., Any]] = {function.__name__: function for function in _MAKING}
FRESH = frozenset({"array", "full", "zeros", "ones", "empty"})  # constructors of writable arrays
# Options without effect for a node: it is returned as a node, and the CPU is the only device.
_IDLE = frozenset({"subok", "device"})

_active = layered_variable("patched", False)
_originals: dict[str, Any] = {}  # NumPy's own functions, while a context is open
after_restore: list[Callable[[], None]] = []  # functions to be called when NumPy's names have been restored
_open: set[weakref.ref[Any]] = set()  # the open contexts; weak, because an interrupt may prevent the exit


def without_patches(space: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace with NumPy's own functions in place of the patched ones."""
    return {**space, **_originals} if _originals and space is vars(np) else space


_SCIPY = f"{os.sep}scipy{os.sep}"


def _hands_to_c(filename: str) -> bool:
    """Whether a file is SciPy's, which hands the arrays that it makes to C code that reads their memory."""
    return _SCIPY in filename and is_library(filename)


def _dispatching(name: str, original: Any) -> Any:
    """A function that calls ours if the context is open and the caller is user code, else `original`.

    While a function is differentiated it takes the place of the interception's function for the name, in all threads.
    """
    ours = OURS[name]

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        if isinstance(kwargs.get("like"), Value):  # NumPy would hand the node this function, which no table knows
            return ours(*args, **{key: value for key, value in kwargs.items() if key != "like"})
        sync_variables()
        frame, traces = frame_up(1), is_tracing()
        if not (traces or _active.get()) or is_internal(frame.f_code.co_filename):
            return original(*args, **kwargs)
        if any(isinstance(leaf, Value) for leaf in flatten_sequences((args, tuple(kwargs.values())))):
            if traces and _hands_to_c(frame.f_code.co_filename):
                return original(*args, **kwargs)  # C code would take the memory of a node for numbers
            if kwargs.get("like") is not None:
                raise TypeError(f"np.{name}: like= is not supported on nodes within cg.patched_numpy(); leave it out")
            if kwargs.get("device") not in (None, "cpu"):
                return original(*args, **kwargs)  # raises for other devices
            return ours(*args, **{key: value for key, value in kwargs.items() if key not in _IDLE and key != "like"})
        buffers = tuple([value for value in (*args, *kwargs.values()) if type(value) in TRACEABLE])
        if buffers:
            result = original(*unwrap_buffers(args), **unwrap_buffers(kwargs))
            return result if has_compiled_code(frame.f_code.co_filename) else wrap_result(result, buffers)
        result = original(*args, **kwargs)
        is_own = type(result) is np.ndarray and result.base is None and not any(result is a for a in args)
        if not is_own or result.dtype.kind not in "biufc" or not (traces or is_recording()):
            return result
        if has_compiled_code(frame.f_code.co_filename):
            return result  # it may hand the array to C code
        if name in FRESH and _active.get() and not is_library(frame.f_code.co_filename):
            return as_buffer(result) if traces else creation.fillable(result)
        return as_buffer(result) if result.dtype.kind in "fc" else result

    make.is_dispatching = True  # type: ignore[attr-defined]
    make.for_compiled = original  # type: ignore[attr-defined]
    return make


class _Open:
    """The state of an open context."""

    __slots__ = ("__weakref__",)


def _patch() -> _Open:
    """Let NumPy's names mean our functions as long as any object that this has returned lives."""
    with callbacks_lock:
        opened = _Open()
        _open.add(weakref.ref(opened, _restore))
        for name in OURS:
            now = getattr(np, name)
            if hasattr(now, "is_dispatching"):  # an interrupt may have left some names out
                continue
            _originals[name] = now.__wrapped__ if hasattr(now, "is_answering") else now
            keep_original(vars(np), name, getattr(now, "for_compiled", now))
            setattr(np, name, _dispatching(name, _originals[name]))
        shield_compiled_modules()
        return opened


def _restore(reference: weakref.ref[Any]) -> None:
    with callbacks_lock:
        _open.discard(reference)
        if not _open:
            for name, original in _originals.items():
                setattr(np, name, original)
            _originals.clear()
            for call in after_restore:
                call()


class Patched(Context, contextlib.ContextDecorator):
    """A context in which NumPy's names for making arrays keep the graph. Made by `patched_numpy`."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        super().__init__()
        self._opened: list[_Open] = []

    def _recreate_cm(self) -> Patched:  # for each call of a function that it decorates
        return Patched()

    def __enter__(self) -> None:
        self._opened.append(_patch())
        self._enter({_active: True})

    def __exit__(self, *exception: object) -> None:
        self._leave()
        self._opened.pop()


def patched_numpy() -> Patched:
    """Make ``np.array``, ``asarray``, ``zeros``, ``ones``, ``full``, ``empty`` and similar functions return nodes.

    Inside, ``np.array`` of nodes (also ``asarray``, ``asanyarray``, ``ascontiguousarray``, ``asfortranarray``,
    ``asarray_chkfinite``) keeps their graph, and nodes can be written into what ``np.zeros``, ``ones``, ``full`` and
    ``empty`` make. It is for code that cannot be changed to ``cg.array`` and ``cg.zeros``; nothing else in the package needs
    it. It holds for the current thread or asyncio task; other threads get NumPy's own arrays meanwhile. Contexts can be
    nested, and NumPy is as it was when the last is left. A name that was imported from NumPy before (``from numpy import
    array``) is not reached.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable([1.0, 2.0], "x")
    >>> with cg.patched_numpy():
    ...     y = np.array([x[0] * x[1], 5.0])
    ...     b = np.zeros(2)
    ...     b[0] = x[1] ** 2
    >>> gradient(np.sum(y + b))["x"]
    array([2., 5.])
    """
    return Patched()
