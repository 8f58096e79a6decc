"""The package `autodiff`, by a name that no other distribution installs.

``import compgraph.autodiff as ad`` is the module ``autodiff`` itself, and ``compgraph.autodiff.optimizers`` is
``autodiff.optimizers``. It is imported from the folder that holds `compgraph`, whatever comes first on ``sys.path``. An
`ImportError` is raised if another package called ``autodiff`` is already imported, or has overwritten this one.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType

import compgraph
from compgraph import ops


class _AliasLoader(Loader):
    """Loads ``compgraph.autodiff.x``: replaces it in ``sys.modules`` by the module ``autodiff.x``."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module that `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the module under its own name."""
        sys.modules[module.__name__] = importlib.import_module(self.spec.name)

    def get_code(self, name: str) -> CodeType | None:
        """Return the code that ``python -m compgraph.autodiff.x`` runs."""
        code: CodeType | None = self.spec.loader.get_code(self.spec.name)  # type: ignore[union-attr]
        return code


class _AliasFinder:
    """Finds ``autodiff`` beside `compgraph`, and its modules under their aliases."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module, as entries of ``sys.meta_path`` do."""
        if name == "autodiff":
            return PathFinder.find_spec(name, [os.path.dirname(folder) for folder in compgraph.__path__])
        spec = importlib.util.find_spec(name.removeprefix("compgraph.")) if name.startswith("compgraph.autodiff.") else None
        return spec and ModuleSpec(name, _AliasLoader(spec), origin=spec.origin, is_package=bool(spec.submodule_search_locations))


def _import_autodiff() -> ModuleType:
    """Import ``autodiff`` from the folder that holds `compgraph`, and from now on find its modules under their aliases."""
    other, error = sys.modules.get("autodiff"), None
    finder = _AliasFinder()
    sys.meta_path.insert(0, finder)
    try:
        module = importlib.import_module("autodiff")
        if getattr(module, "ops", None) is ops:  # it differentiates nodes of this `compgraph`
            return module
    except Exception as raised:  # of any kind: the code may be another project's
        error = raised
    sys.meta_path.remove(finder)
    if other is not None:
        raise ImportError(
            f"Another package called 'autodiff' was imported before compgraph.autodiff ({_origin(other)}). Import "
            "compgraph.autodiff first, or run the program in an environment without the other package"
        )
    reason = f": {type(error).__name__}: {error}" if error else ""
    raise ImportError(
        f"The package 'autodiff' beside compgraph ({os.path.dirname(compgraph.__path__[0])}) cannot be imported, or is not "
        f"that of compgraph{reason}. If another distribution called autodiff has overwritten it, uninstall that one, then run "
        "pip install --force-reinstall --no-deps compgraph"
    ) from error


def _origin(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or "which has no file"


sys.modules[__name__] = _import_autodiff()
