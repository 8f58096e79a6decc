"""Whether a file is a user's code, or belongs to Python or an installed package."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

from ..graph.interpreter import is_internal


@functools.cache  # and not at once, since `import compgraph` shall not wait for it
def _libraries() -> tuple[str, ...]:
    return (*{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}, "<frozen")


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to the two packages here."""
    return is_internal(filename) or filename.startswith(_libraries()) or filename in sys.builtin_module_names


def has_compiled_code(filename: str) -> bool:
    """Whether a file belongs to an installed package with compiled modules, of those that are imported so far."""
    home = next((path for path in _libraries() if filename.startswith(path + os.sep) and "-packages" in path), None)
    if home is None:
        return False
    package = filename[len(home) + 1 :].split(os.sep)[0].removesuffix(".py")
    return any(
        name.partition(".")[0] == package and (getattr(module, "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))
        for name, module in list(sys.modules.items())
    )


@functools.cache
def is_users_module(module: Any) -> bool:
    """Whether a module, by its name, is a user's."""
    if not isinstance(module, str) or module.partition(".")[0] in ("builtins", "numpy", "scipy"):
        return False
    return not is_library(getattr(sys.modules.get(module), "__file__", None) or "")
