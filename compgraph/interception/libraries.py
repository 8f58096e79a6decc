"""Whether a file is a user's code, or belongs to Python or an installed package."""

from __future__ import annotations

import functools
import sys
import sysconfig
from typing import Any

from ..frames import is_internal


@functools.cache  # and not at once, since `import compgraph` shall not wait for it
def _libraries() -> tuple[str, ...]:
    return (*{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}, "<frozen")


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to the two packages here."""
    return is_internal(filename) or filename.startswith(_libraries()) or filename in sys.builtin_module_names


@functools.cache
def is_users_module(module: Any) -> bool:
    """Whether a module, by its name, is a user's."""
    if not isinstance(module, str) or module.partition(".")[0] in ("builtins", "numpy", "scipy"):
        return False
    return not is_library(getattr(sys.modules.get(module), "__file__", None) or "")
