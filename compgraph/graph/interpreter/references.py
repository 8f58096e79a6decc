"""Objects that are never freed, however their references are counted."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from typing import Any


def keep_for_ever(value: Any) -> None:
    """Keep an object from being freed by C code that copies pointers to it without counting, and later releases the copies.

    From Python 3.12 on the object's count is set to that of immortal ones. Before, more references are added than can ever be
    released. Where objects are laid out otherwise (builds without the GIL, other interpreters), a list holds many references.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        _kept.extend([value] * 2**20)
    elif sys.version_info >= (3, 12):
        ctypes.c_uint32.from_address(id(value)).value = 3 << 30
    else:
        ctypes.c_ssize_t.from_address(id(value)).value += 1 << 48


_kept: list[Any] = []
