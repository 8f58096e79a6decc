"""Activation of patches: while a function is differentiated, from the first variable on, and on import.

Patches are applied when the first context of `intercept` opens, and undone when the last closes, under a lock. They apply to the
whole process, and call the originals for other threads and for library code. If an interrupt prevents the exit of a context, the
context is closed when it is garbage-collected.
"""

from __future__ import annotations

import importlib.machinery
import sys
import threading
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from contextvars import Context
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..arrays import after_restore
from ..context import callbacks_lock
from ..frames import source_lines
from ..tracing import is_compiling
from ..values import variable_hooks
from . import library_adapters, math_functions
from .borrowing import (
    SKIPPED_CLASSES,
    LocationSearch,
    clear_views,
    rebind_variables,
    replace_in_objects,
    restore_locations,
    restore_variables,
)
from .code_patches import enable_code_patches, patch_code
from .introspection import bind_introspection, unbind_introspection
from .patched_names import DIFFERENTIATION, DRAWS, TOP_LEVEL
from .reachability import Closure, bound_arguments, calls_only_numpy, cell_contents, function_of, namespace_of, numpy_names
from .undispatched_functions import (
    init_poly1d,
    interception_switch,
    open_interceptions,
    patch_dispatchers,
    run_vectorized,
)

_has_patched_code = False
after_restore += [DIFFERENTIATION.reapply_to_numpy, TOP_LEVEL.reapply_to_numpy]


class Interception:
    """A context, created by `intercept`: patches are active until it is left or garbage-collected.

    Attributes
    ----------
    calls_only_numpy : bool
        Whether all code that runs in it is known, so that no names were patched; see `reachability.calls_only_numpy`.
    captured : list of array
        The borrowed arrays and the nodes that the function captures in globals, closures and default values.
    """

    __slots__ = ("__weakref__", "calls_only_numpy", "captured")

    def __init__(self) -> None:
        self.calls_only_numpy = False
        self.captured: list[Any] = []

    def __enter__(self) -> Interception:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            _close_all(self)
        except BaseException:  # an interrupt, as by Ctrl-C: the traceback may keep this context alive
            _close_all(self)
            raise


def intercept(
    f: Callable[..., Any], arguments: Iterable[Any] = (), reports_draws: bool = False, unchanged: Sequence[Any] = ()
) -> Interception:
    """Open a context for a call of `f` with `arguments`.

    In the context, nodes can be written into arrays that `f` creates. Arrays that `f` reaches by name (globals, closures, default
    values) are borrowed. Arrays in attributes and items of objects that it reaches by name, or that are passed `unchanged`, are
    borrowed too. With `reports_draws`, all random functions of NumPy and Python are patched as well,
    so that handlers receive the draws; random generators in objects are then not replaced.
    """
    context = Interception()
    if not interception_switch.is_on:
        return context
    function = function_of(f)
    if not isinstance(function, FunctionType):
        function = getattr(type(function), "__call__", None)  # noqa: B004  (the method of a callable object)
    if not isinstance(function, FunctionType):
        function = None
    patch_numpy_code()
    with callbacks_lock:
        open_interceptions.add(reference := weakref.ref(context, _close))
        try:
            _apply_patches(context, reference, f, function, arguments, reports_draws, unchanged)
            return context
        except BaseException:
            _close(reference)
            raise


def _apply_patches(
    context: Interception,
    reference: weakref.ref[Any],
    f: Callable[..., Any],
    function: FunctionType | None,
    arguments: Iterable[Any],
    reports_draws: bool,
    unchanged: Sequence[Any],
) -> None:
    """Apply the patches of a context for a call of `f`, whose Python function is `function`."""
    groups = (TOP_LEVEL, DIFFERENTIATION, DRAWS) if reports_draws else (TOP_LEVEL, DIFFERENTIATION)
    if function is None:
        for group in groups:
            group.apply(())
        return
    closure = Closure(function)
    start_values = (f, *bound_arguments(f))
    arguments = (*arguments, *start_values[1:])
    context.calls_only_numpy = calls_only_numpy(closure, arguments)
    _patch_introspection(closure, arguments, context.calls_only_numpy)
    if not context.calls_only_numpy:
        for group in groups:
            group.apply(other.__globals__ for other in closure.functions)
    if f is function and SKIPPED_CLASSES.issuperset(map(type, unchanged)) and _reaches_nothing(closure):
        return
    search = LocationSearch()
    rebind_variables(closure, search, context.captured)
    if not is_compiling():  # a compiler thread must not change objects that the caller still uses
        search.add((*start_values, *unchanged))
        replace_in_objects(reference, closure, search, context.captured, replaces_generators=not reports_draws)
    clear_views()


def _reaches_nothing(closure: Closure) -> bool:
    """Whether a function captures no values, and its names refer to modules and builtins only."""
    if len(closure.functions) > 1 or closure.cells:
        return False
    function, reachable = closure.functions[0], closure.function_names[0]
    is_bare = not (function.__defaults__ or function.__kwdefaults__ or function.__dict__)
    return is_bare and not reachable.variables and not reachable.functions and not numpy_names(function)


def _patch_introspection(closure: Closure, arguments: Iterable[Any], only_numpy: bool) -> None:
    """Bind the patches of `introspection` for the reachable functions and for the classes of reachable objects."""
    if only_numpy and not any(reachable.has_introspection for reachable in closure.function_names):
        return
    functions, values = list(closure.functions), [*arguments, *map(cell_contents, closure.cells)]
    for function, reachable in zip(closure.functions, closure.function_names, strict=True):
        for _, _, reference in reachable.functions:
            other = function_of(reference())
            if isinstance(other, FunctionType):
                functions.append(other)
        values += [namespace_of(module_name, function.__globals__).get(name) for module_name, name in reachable.variables]
        values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    bind_introspection(functions, values)


def patch_numpy_code() -> None:
    """Patch the Python functions of NumPy that do not dispatch, or ignore nodes in lists; later calls do nothing."""
    global _has_patched_code
    if not _has_patched_code:
        patch_dispatchers()
        patch_code(vars(np.vectorize)["__call__"], run_vectorized)
        patch_code(vars(np.poly1d)["__init__"], init_poly1d)
        _has_patched_code = True


def patch_list_functions() -> None:
    """Let NumPy's functions that convert lists record the nodes in them; `compgraph` calls it on import.

    In ``np.array([cg.variable(2.0), 1.0])``, Python looks up the function before the variable exists.
    """
    if interception_switch.is_on:
        with callbacks_lock:
            frame = source_lines.user_frame(2)
            TOP_LEVEL.apply([] if frame.f_code is None else [frame.f_globals])


def _prepare_first_variable() -> None:
    if not _has_patched_code:
        patch_numpy_code()
        patch_list_functions()  # also in a namespace that belongs to no module


variable_hooks.append(_prepare_first_variable)


def _close_all(context: Interception) -> None:
    for reference in weakref.getweakrefs(context):
        _close(reference)


def _close(reference: weakref.ref[Any]) -> None:
    with callbacks_lock:
        if reference not in open_interceptions:
            return
        restore_locations(reference)
        if len(open_interceptions) > 1:
            open_interceptions.discard(reference)
            return
        DIFFERENTIATION.restore()
        DRAWS.restore()
        unbind_introspection()
        restore_variables()
        open_interceptions.discard(reference)  # last, so that the garbage collector repeats this after an interrupt


def interception(on: bool = True) -> None:
    """Turn interception on or off: support for nodes in functions that dispatch by no protocol. It is on by default.

    On: while a function is differentiated, ``np.zeros`` and other constructors return arrays that nodes can be written into; and
    SciPy's Python functions look for nodes among their arguments. Off: all patches are undone at once, in the whole process; code
    that does not dispatch to nodes then raises.

    Parameters
    ----------
    on : bool
        Whether it is turned on or off.

    Raises
    ------
    RuntimeError
        If it is turned off while a function is differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> import autodiff as ad
    >>> import compgraph as cg
    >>> def f(x):
    ...     y = np.zeros(2)
    ...     y[0] = x**2
    ...     return y.sum()
    >>> print(ad.grad(f)(3.0))
    6.0
    >>> cg.interception(False)
    >>> ad.grad(f)(3.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    compgraph.LeakError: ...
    >>> cg.interception(True)
    """
    with callbacks_lock:
        if open_interceptions and not on:
            raise RuntimeError(
                "interception cannot be turned off while a function is differentiated; call it after the operator has returned"
            )
        interception_switch.is_on = bool(on)
        if not on:
            TOP_LEVEL.restore()
    enable_code_patches(interception_switch.is_on)
    patch_list_functions()


# ----------------------------------------------------------------------------------------------- imports
# Libraries are patched on import, or at once if they were imported before `compgraph`.


class ImportHook:
    """A finder for the front of ``sys.meta_path``, with a callback that runs after one of certain modules has been loaded.

    Finder and loader have no base class of `importlib.abc`, because importing it would slow down ``import compgraph``.

    Parameters
    ----------
    modules : container of str
        The names of the modules.
    callback : callable
        Called with the names of loaded modules, in the importing thread, before the outermost import statement returns.
    """

    def __init__(self, modules: Container[str], callback: Callable[[list[str]], None]) -> None:
        self._modules, self._callback = modules, callback
        self._thread = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification that the other finders return, with a loader that reports."""
        if name not in self._modules:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ReportingLoader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def load(self, loader: Any, module: ModuleType) -> None:
        """Run the code of a module. Modules that it imports are reported together with it."""
        is_outermost = not hasattr(self._thread, "loaded")
        loaded = self._thread.loaded = [] if is_outermost else self._thread.loaded
        try:
            Context().run(loader.exec_module, module)  # the settings of the importing code do not apply to the module's own
            loaded.append(module.__name__)
        finally:
            if is_outermost:
                del self._thread.loaded
        if is_outermost:
            self._callback(loaded)


class _ReportingLoader:
    """A loader that delegates to the original one, and restores it as the module's loader."""

    def __init__(self, loader: Any, hook: ImportHook) -> None:
        self._loader, self._hook = loader, hook

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Delegate to the other loader."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of the module."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._hook.load(self._loader, module)


def is_loading(module: ModuleType) -> bool:
    """Whether the code of a module is still running."""
    return bool(getattr(module.__spec__, "_initializing", False))


_ADAPTERS: dict[str, Callable[[], None]] = {
    "dask.tokenize": library_adapters.adapt_dask,
    "distributed.protocol.serialize": library_adapters.adapt_distributed,
    "h5py": library_adapters.adapt_h5py,
    "joblib.memory": library_adapters.adapt_joblib,
    "matplotlib.axes": library_adapters.adapt_matplotlib,
    "numba": library_adapters.adapt_numba,
    "numpy.ma": library_adapters.adapt_masked_arrays,
    "pandas": library_adapters.adapt_pandas,
    "pyfftw": library_adapters.adapt_pyfftw,
    "statistics": math_functions.adapt_statistics,
}
_adapted_modules: set[str] = set()


def _adapt(modules: Iterable[str]) -> None:
    for name in modules:
        if name in _ADAPTERS and name not in _adapted_modules:
            _adapted_modules.add(name)
            _ADAPTERS[name]()


def adapt_imported() -> None:
    """Adapt the libraries that have been imported; the others are adapted on import."""
    _adapt([name for name in _ADAPTERS if name in sys.modules and not is_loading(sys.modules[name])])


sys.meta_path.insert(0, ImportHook(_ADAPTERS, _adapt))
adapt_imported()  # a Dask worker may receive its first node in a message and forward it
