"""NumPy's operations in terms of the Python array API standard, for libraries that lack them under NumPy's name.

Each function has the name of an operation in `compgraph.ops`, with a trailing underscore if it would shadow a builtin. It takes
a namespace `xp` of the standard (data-apis.org/array-api, 2024.12), then the operands and options of NumPy's function. Operands
are arrays of the namespace, already converted to the dtypes in which NumPy computes; indices may be NumPy arrays. The results
equal NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import elementwise, indexing, interpolation, linear_algebra, neural_networks, reductions, shapes
from .indexing import are_in_range, read_window, window_positions
from .neural_networks import correlation_of
from .positions import (
    UnsupportedError,
    expand_index,
    find_box,
    flat_positions,
    is_basic,
    is_complex,
    is_floating,
    is_static,
    number,
    put,
    size_of,
)
from .reductions import has_nan
from .shapes import call_on_axes

__all__ = [
    "UnsupportedError", "are_in_range", "call_on_axes", "correlation_of", "expand_index", "find", "find_box", "flat_positions",
    "has_nan", "is_basic", "is_complex", "is_floating", "is_static", "number", "put", "read_window", "size_of",
    "window_positions",
]  # fmt: skip
_FAMILIES = (elementwise, reductions, shapes, indexing, linear_algebra, interpolation, neural_networks)


def find(name: str) -> Callable[..., Any] | None:
    """Return the implementation of an operation by its key, or None."""
    for family in _FAMILIES:
        for function_name in (f"{name}_", name):
            function: Any = getattr(family, function_name, None)
            if getattr(function, "__module__", "") == family.__name__:
                return function  # type: ignore[no-any-return]
    return None
