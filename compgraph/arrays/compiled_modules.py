"""Compiled modules see NumPy as it is, whatever its names mean for Python code meanwhile.

C code may cast the result of ``np.empty`` without a check, so it must not get a value of ours by a name that it looks up.
Compiled code, such as Cython's, looks up ``np`` in the namespace of its own module. There it finds an `Original`: a module whose
functions are NumPy's own, while those of `numpy` are exchanged (see `compgraph.interception` and `patched_numpy`). The same holds
for the modules within NumPy.

Compiled modules get an `Original` once, before names are exchanged for the first time, and from then on when they are imported.
"""

from __future__ import annotations

import functools
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from types import FunctionType, ModuleType
from typing import Any

_SUFFIXES = tuple(EXTENSION_SUFFIXES)
_originals: dict[int, Original] = {}  # by the id of a module's namespace
_others: set[int] = set()  # the ids of other namespaces in which names are exchanged, such as that of `math`, which is compiled
_is_watching = False


class Original(ModuleType):
    """A module with its own functions under the names that are exchanged in it."""

    def __init__(self, space: dict[str, Any]) -> None:
        super().__init__(space["__name__"])
        self.__dict__.update({name: value for name, value in space.items() if name != "__getattr__"})

    def __getattr__(self, name: str) -> Any:
        return _original_of(getattr(sys.modules[self.__name__], name))  # a module that was imported since


def _original_of(value: Any) -> Any:
    """The value that compiled modules see: the `Original` of a module, NumPy's own function for one of ours."""
    if isinstance(value, ModuleType):
        return _originals.get(id(vars(value)), value)
    return value.__dict__.get("for_compiled", value) if type(value) is FunctionType else value


def keep_original(space: dict[str, Any], name: str, original: Any) -> None:
    """Enter a name that is to be exchanged in a module, and the value that compiled modules see if the module is NumPy's."""
    if space["__name__"].partition(".")[0] != "numpy":  # others make no arrays
        _others.add(id(space))
        return
    known = _originals.get(id(space))
    if known is None:
        known = _originals[id(space)] = Original(space)
    known.__dict__[name] = original


def shield_compiled_modules() -> None:
    """Give the originals of modules to all compiled modules, and to those that will be imported."""
    global _is_watching
    for original in list(_originals.values()):
        _replace(vars(original))
    for module in list(sys.modules.values()):
        if is_compiled(module) and id(vars(module)) not in _others:
            _replace(vars(module))
    if not _is_watching:
        _is_watching = True
        ExtensionFileLoader.exec_module = _shielding(ExtensionFileLoader.exec_module)  # type: ignore[method-assign]


def is_compiled(module: Any) -> bool:
    """Whether a module was compiled to machine code."""
    return isinstance(module, ModuleType) and str(module.__dict__.get("__file__")).endswith(_SUFFIXES)


def _replace(space: dict[str, Any]) -> None:
    for name, value in list(space.items()):
        original = _original_of(value)
        if original is not value:
            space[name] = original


def _shielding(execute: Any) -> Any:
    @functools.wraps(execute)
    def exec_module(loader: Any, module: ModuleType) -> None:
        execute(loader, module)
        _replace(vars(module))

    return exec_module
