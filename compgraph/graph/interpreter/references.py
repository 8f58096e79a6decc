"""Objects that outlive what counts their references."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from typing import Any


def keep_for_ever(value: Any) -> None:
    """Let an object outlive code in C that copies pointers to it without counting them, and then counts the copies off.

    From Python 3.12 on an object whose count has its sign set is immortal; before, so many references are added that nobody
    counts them off. Where the layout of objects is another (builds without the GIL), a list of references must do.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        _kept.extend([value] * 2**20)
    elif sys.version_info >= (3, 12):
        ctypes.c_uint32.from_address(id(value)).value = 3 << 30
    else:
        ctypes.c_ssize_t.from_address(id(value)).value += 1 << 48


_kept: list[Any] = []
