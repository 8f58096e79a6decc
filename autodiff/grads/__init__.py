"""All derivative rules, as ``opname_grad(adjoint, node)``, which returns the cotangents of the operands.

Each module has the rules of one family of operations; its names ``*_grad`` are public here. Editors and type checkers read
``__init__.pyi``, which ``python -m compgraph._stubs`` writes. The rules of SciPy's functions are loaded after the module of
SciPy has been imported.
"""

import os
import warnings
from importlib import import_module
from typing import Any

from compgraph.scipy import FAMILIES, on_registration

_modules = sorted(
    f"{__name__}." + os.path.relpath(os.path.join(folder, file), *__path__)[:-3].replace(os.sep, ".")
    for folder, _, files in os.walk(*__path__)
    for file in files
    if file.endswith(".py") and file != "__init__.py"
)
_SCIPY = f"{__name__}.scipy."
_RENAMED = {"added_at_grad": "scatter_add_grad", "laid_grad": "scatter_to_buffer_grad"}
_scipy_modules = [name for name in _modules if name.startswith(_SCIPY)]


def _load(names: list[str]) -> None:
    """Import modules and export their rules."""
    for name in names:
        globals().update({key: rule for key, rule in vars(import_module(name)).items() if key.endswith("_grad")})


def _load_family(module: str) -> None:
    """Load the rules of the functions of a module of SciPy, such as ``"scipy.linalg"``."""
    prefix = f"{_SCIPY}{FAMILIES[module].partition('.')[0]}."
    _load([name for name in _scipy_modules if f"{name}.".startswith(prefix)])


def __dir__() -> list[str]:
    _load(_scipy_modules)
    return sorted(globals())


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [rule for rule in __dir__() if rule.endswith("_grad")]
    if name in _RENAMED:
        warnings.warn(f"autodiff.grads.{name} is now autodiff.grads.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name.endswith("_grad"):
        _load(_scipy_modules)
        if name in globals():
            return globals()[name]
    raise AttributeError(f"autodiff.grads has no {name!r}")


_load([name for name in _modules if name not in _scipy_modules])
on_registration(_load_family)
