"""Import hooks: libraries are patched on import, or at once if they were imported before `compgraph`."""

from __future__ import annotations

import importlib.machinery
import sys
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from contextvars import Context
from types import ModuleType
from typing import Any

from . import library_adapters, math_functions


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
