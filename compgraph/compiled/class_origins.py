"""Origins of classes: users' code, Python's and numerical libraries, or the two packages."""

from __future__ import annotations

import functools
import sys
from types import BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import numpy as np

from ..frames import is_heap_type
from .pure_functions import BASES

_C_DESCRIPTORS = frozenset({GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType})


@functools.lru_cache(maxsize=4096)
def is_user_object(kind: type) -> bool:
    """Return whether a class is a user's, and all bases keep their state where it can be compared."""
    return is_user_class(kind) and all(is_user_class(base) or base in BASES or base is np.ndarray for base in kind.__mro__)


@functools.lru_cache(maxsize=4096)
def is_user_class(kind: type) -> bool:
    """Return whether a class was defined in Python, by a user or a third-party package."""
    is_of_python = is_heap_type(kind) and not any(_is_c_member(part, kind) for part in vars(kind).values())
    return is_of_python and not is_own_class(kind) and not is_library_class(kind)


def _is_c_member(part: Any, kind: type) -> bool:
    """Return whether a member of a class was defined in C."""
    if type(part) is BuiltinFunctionType:
        return part.__self__ is kind
    is_of_kind = type(part) in _C_DESCRIPTORS and part.__objclass__ is kind
    return is_of_kind and part.__name__ not in ("__dict__", "__weakref__")


def is_own_class(kind: type) -> bool:
    """Return whether a class belongs to the two packages."""
    module = str(kind.__module__)
    return module.partition(".")[0] in ("compgraph", "autodiff") and _is_defined_in(module, kind)


def is_library_class(kind: type) -> bool:
    """Return whether a class belongs to Python, NumPy or SciPy."""
    module = str(kind.__module__)
    top = module.partition(".")[0]
    is_of_library = top in ("numpy", "scipy", "builtins") or (top in sys.stdlib_module_names and top != "__main__")
    return is_of_library and _is_defined_in(module, kind)


def _is_defined_in(module: str, kind: type) -> bool:
    """Return whether the module that a class names contains it, because ``__module__`` can be set freely."""
    value: Any = sys.modules.get(module)
    for name in kind.__qualname__.split("."):
        value = getattr(value, "__dict__", {}).get(name)
    return value is kind
