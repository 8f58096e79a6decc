"""``with cg.patched_numpy():`` makes NumPy's constructors keep the graph; compiled modules find NumPy's own functions.

``np.array(node)`` does not dispatch. Inside this context, ``np.array`` and similar names are the functions of the same names in
``compgraph``, for the current thread or asyncio task. Code of `compgraph`, `autodiff` and NumPy calls the originals.

Compiled modules call the originals, too. C code may cast the result of ``np.empty`` without a check, so a name that it looks up
must not return a node or buffer. Compiled code, such as Cython's, looks up ``np`` in the namespace of its own module. There it
finds an `OriginalModule`: a module with NumPy's own functions, while those of `numpy` are patched (see
`compgraph.interception`). The same holds for NumPy's submodules. Compiled modules get an `OriginalModule` before the first
patch is applied; modules that are imported later, on import.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..context import Context, callbacks_lock, is_recording, layered_variable, sync_variables
from ..frames import frame_up, is_in_library, is_internal
from ..graph import flatten_sequences
from ..tracing import has_compiled_code, is_library, is_tracing
from ..values import TRACEABLE, Value, as_buffer, unwrap_buffers, wrap_result
from . import creation
from .creation import array, asanyarray, asarray, asarray_chkfinite, ascontiguousarray, asfortranarray, full

_SUFFIXES = tuple(EXTENSION_SUFFIXES)
_original_modules: dict[int, OriginalModule] = {}  # by the id of a module's namespace
# The ids of patched namespaces of modules other than NumPy's, such as that of the compiled module `math`.
_excluded_namespaces: set[int] = set()
_is_import_patched = False


class OriginalModule(ModuleType):
    """A copy of a module in which patched names refer to the module's own functions."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        super().__init__(namespace["__name__"])
        self.__dict__.update({name: value for name, value in namespace.items() if name != "__getattr__"})

    def __getattr__(self, name: str) -> Any:
        return _original_value(getattr(sys.modules[self.__name__], name))  # a module that was imported since


def _original_value(value: object) -> Any:
    """Return the value that compiled modules see: for a module its `OriginalModule`, for a patch NumPy's own function."""
    if isinstance(value, ModuleType):
        return _original_modules.get(id(vars(value)), value)
    return value.__dict__.get("for_compiled", value) if type(value) is FunctionType else value


def register_original(namespace: dict[str, Any], name: str, original: object) -> None:
    """Register a name of a module that will be patched, and the value that compiled modules see if the module is NumPy's."""
    if namespace["__name__"].partition(".")[0] != "numpy":  # functions of other modules create no arrays
        _excluded_namespaces.add(id(namespace))
        return
    module = _original_modules.get(id(namespace))
    if module is None:
        module = _original_modules[id(namespace)] = OriginalModule(namespace)
    module.__dict__[name] = original


def shield_compiled_modules() -> None:
    """Bind original modules in all compiled modules, and in compiled modules when they are imported."""
    global _is_import_patched
    for original in list(_original_modules.values()):
        _bind_originals(vars(original))
    for module in list(sys.modules.values()):
        if is_compiled(module) and id(vars(module)) not in _excluded_namespaces:
            _bind_originals(vars(module))
    if not _is_import_patched:
        _is_import_patched = True
        ExtensionFileLoader.exec_module = _shielded_loader(ExtensionFileLoader.exec_module)  # type: ignore[method-assign]


def is_compiled(module: object) -> bool:
    """Whether a module was compiled to machine code."""
    return isinstance(module, ModuleType) and str(module.__dict__.get("__file__")).endswith(_SUFFIXES)


def _bind_originals(namespace: dict[str, Any]) -> None:
    for name, value in list(namespace.items()):
        original = _original_value(value)
        if original is not value:
            namespace[name] = original


def _shielded_loader(execute: Callable[..., Any]) -> Any:
    @functools.wraps(execute)
    def exec_module(loader: object, module: ModuleType) -> None:
        execute(loader, module)
        _bind_originals(vars(module))

    return exec_module


_CONSTRUCTORS = (
    array, asarray, asanyarray, ascontiguousarray, asfortranarray, asarray_chkfinite, full,
    creation.zeros, creation.ones, creation.empty,
)  # fmt: skip
REPLACEMENTS: dict[str, Callable[..., Any]] = {function.__name__: function for function in _CONSTRUCTORS}
WRITABLE_CONSTRUCTORS = frozenset(name for name in REPLACEMENTS if not name.startswith("as"))
# Options without effect for a node: it is returned as a node, and the CPU is the only device.
_IGNORED_OPTIONS = frozenset({"subok", "device"})

_active = layered_variable("patched", False)
_originals: dict[str, Any] = {}  # NumPy's own functions, while a context is open
after_restore: list[Callable[[], None]] = []  # functions to be called when NumPy's names have been restored
_open_contexts: set[weakref.ref[Any]] = set()  # weak, because an interrupt may prevent the exit


def without_patches(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace with NumPy's own functions in place of the patched ones."""
    return {**namespace, **_originals} if _originals and namespace is vars(np) else namespace


def _patched_constructor(name: str, original: Callable[..., Any]) -> Any:
    """Make a patch: it calls the replacement if the context is open and the caller is user code, else `original`.

    While a function is differentiated, it supersedes the patch of `compgraph.interception` for the name, in all threads.
    """
    replacement = REPLACEMENTS[name]

    @functools.wraps(original)
    def construct(*args: object, **kwargs: object) -> Any:
        if isinstance(kwargs.get("like"), Value):  # NumPy would pass this patch, an unknown function, to the node
            return replacement(*args, **{key: value for key, value in kwargs.items() if key != "like"})
        sync_variables()
        frame, is_traced = frame_up(1), is_tracing()
        if not (is_traced or _active.get()) or is_internal(frame.f_code.co_filename):
            return original(*args, **kwargs)
        if any(isinstance(leaf, Value) for leaf in flatten_sequences((args, tuple(kwargs.values())))):
            if is_traced and is_in_library(frame.f_code.co_filename, "scipy"):
                return original(*args, **kwargs)  # SciPy's C code would read the memory of a node as numbers
            if kwargs.get("like") is not None:
                raise TypeError(f"np.{name}: like= is not supported on nodes within cg.patched_numpy(); leave it out")
            if kwargs.get("device") not in (None, "cpu"):
                return original(*args, **kwargs)  # raises for other devices
            return replacement(
                *args, **{key: value for key, value in kwargs.items() if key not in _IGNORED_OPTIONS and key != "like"}
            )
        buffers = tuple([value for value in (*args, *kwargs.values()) if type(value) in TRACEABLE])
        if buffers:
            result = original(*unwrap_buffers(args), **unwrap_buffers(kwargs))
            return result if has_compiled_code(frame.f_code.co_filename) else wrap_result(result, buffers)
        result = original(*args, **kwargs)
        is_own = type(result) is np.ndarray and result.base is None and not any(result is a for a in args)
        if not is_own or result.dtype.kind not in "biufc" or not (is_traced or is_recording()):
            return result
        if has_compiled_code(frame.f_code.co_filename):
            return result  # it may pass the array to C code
        if name in WRITABLE_CONSTRUCTORS and _active.get() and not is_library(frame.f_code.co_filename):
            return as_buffer(result) if is_traced else creation.as_fillable(result)
        return as_buffer(result) if result.dtype.kind in "fc" else result

    construct.is_dispatching = True  # type: ignore[attr-defined]
    construct.for_compiled = original  # type: ignore[attr-defined]
    return construct


class _OpenContext:
    """A handle of an open context: patches are undone when the last handle is garbage-collected."""

    __slots__ = ("__weakref__",)


def _patch() -> _OpenContext:
    """Bind NumPy's names to patches as long as any returned handle is alive."""
    with callbacks_lock:
        handle = _OpenContext()
        _open_contexts.add(weakref.ref(handle, _restore))
        for name in REPLACEMENTS:
            current = getattr(np, name)
            if hasattr(current, "is_dispatching"):  # after an interrupt, only some names may be patched
                continue
            _originals[name] = current.__wrapped__ if hasattr(current, "is_differentiation_patch") else current
            register_original(vars(np), name, getattr(current, "for_compiled", current))
            setattr(np, name, _patched_constructor(name, _originals[name]))
        shield_compiled_modules()
        return handle


def _restore(reference: weakref.ref[Any]) -> None:
    with callbacks_lock:
        _open_contexts.discard(reference)
        if not _open_contexts:
            for name, original in _originals.items():
                setattr(np, name, original)
            _originals.clear()
            for call in after_restore:
                call()


class PatchedNumPy(Context, contextlib.ContextDecorator):
    """A context in which NumPy's constructors keep the graph. Created by `patched_numpy`."""

    __slots__ = ("_handles",)

    def __init__(self) -> None:
        super().__init__()
        self._handles: list[_OpenContext] = []

    def _recreate_cm(self) -> PatchedNumPy:  # for each call of a function that it decorates
        return PatchedNumPy()

    def __enter__(self) -> None:
        self._handles.append(_patch())
        self._enter({_active: True})

    def __exit__(self, *exception: object) -> None:
        self._leave()
        self._handles.pop()


def patched_numpy() -> PatchedNumPy:
    """Make ``np.array``, ``asarray``, ``zeros``, ``ones``, ``full``, ``empty`` and similar functions return nodes.

    Inside, ``np.array`` of nodes (also ``asarray``, ``asanyarray``, ``ascontiguousarray``, ``asfortranarray``,
    ``asarray_chkfinite``) keeps their graph, and nodes can be written into what ``np.zeros``, ``ones``, ``full`` and
    ``empty`` return. Use it for code that cannot be changed to ``cg.array`` and ``cg.zeros``. It applies to the current thread or
    asyncio task; other threads get NumPy's own arrays. Contexts can be nested; when the last is left, NumPy is restored. A name
    that was imported from NumPy before (``from numpy import array``) is not patched.

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
    return PatchedNumPy()
