"""Keep NumPy unpatched for compiled modules.

C code may cast the result of ``np.empty`` without a check, so a name that it looks up must not return a node or buffer.
Compiled code, such as Cython's, looks up ``np`` in the namespace of its own module. There it finds an `OriginalModule`: a module
with NumPy's own functions, while those of `numpy` are patched (see `compgraph.interception` and `patched_numpy`). The same holds
for NumPy's submodules.

Compiled modules get an `OriginalModule` before the first patch is applied; modules that are imported later, on import.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from types import FunctionType, ModuleType
from typing import Any

_SUFFIXES = tuple(EXTENSION_SUFFIXES)
_originals: dict[int, OriginalModule] = {}  # by the id of a module's namespace
# The ids of patched namespaces of other modules than NumPy's, such as that of the compiled module `math`.
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
    """The value that compiled modules see: of a module its `OriginalModule`, of a patch NumPy's own function."""
    if isinstance(value, ModuleType):
        return _originals.get(id(vars(value)), value)
    return value.__dict__.get("for_compiled", value) if type(value) is FunctionType else value


def register_original(namespace: dict[str, Any], name: str, original: object) -> None:
    """Register a name of a module that will be patched, and the value that compiled modules see if the module is NumPy's."""
    if namespace["__name__"].partition(".")[0] != "numpy":  # others make no arrays
        _excluded_namespaces.add(id(namespace))
        return
    module = _originals.get(id(namespace))
    if module is None:
        module = _originals[id(namespace)] = OriginalModule(namespace)
    module.__dict__[name] = original


def shield_compiled_modules() -> None:
    """Bind original modules in all compiled modules, and in compiled modules when they are imported."""
    global _is_import_patched
    for original in list(_originals.values()):
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
