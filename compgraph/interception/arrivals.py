"""Modules that are imported later, by whom ever: what is to be done with them is done before they are used.

The finder and the loader have the methods that imports ask for, and no base of `importlib.abc`: `import compgraph` shall not
wait for what that imports.
"""

from __future__ import annotations

import importlib.machinery
import sys
import threading
from collections.abc import Callable, Container, Sequence
from contextvars import Context
from types import ModuleType
from typing import Any


class Arrivals:
    """A finder, to stand first in ``sys.meta_path``, that says when one of some modules has been loaded.

    Parameters
    ----------
    modules : container of str
        The names of the modules.
    told : callable
        Called with the names, in the thread that imports, before the statement that imported the first of them goes on.
    """

    def __init__(self, modules: Container[str], told: Callable[[list[str]], None]) -> None:
        self._modules, self._told = modules, told
        self._thread = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification that the other finders give, with a loader that tells."""
        if name not in self._modules:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Telling(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def load(self, loader: Any, module: ModuleType) -> None:
        """Run the code of a module; of those that it imports is told when it has ended."""
        is_first = not hasattr(self._thread, "loaded")
        loaded = self._thread.loaded = [] if is_first else self._thread.loaded
        try:
            Context().run(loader.exec_module, module)  # what holds for the code that imports it does not for the module's own
            loaded.append(module.__name__)
        finally:
            if is_first:
                del self._thread.loaded
        if is_first:
            self._told(loaded)


class _Telling:
    """A loader that loads by another one, and leaves that in its place."""

    def __init__(self, loader: Any, arrivals: Arrivals) -> None:
        self._loader, self._arrivals = loader, arrivals

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the other loader."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of the module."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._arrivals.load(self._loader, module)


def is_loading(module: ModuleType) -> bool:
    """Whether the code of a module has not yet run to its end."""
    return bool(getattr(module.__spec__, "_initializing", False))
