"""Creation of nodes: variables, constants, placeholders, writable arrays, and NumPy's constructors for lists of nodes."""

from .concatenators import asmatrix, bmat, c_, r_
from .creation import (
    LIKE_CONSTRUCTORS,
    array,
    as_strided,
    asanyarray,
    asarray,
    asarray_chkfinite,
    ascontiguousarray,
    asfortranarray,
    empty,
    full,
    kaiser,
    ones,
    require,
    zeros,
)
from .leaves import constant, placeholder, variable
from .patched_numpy import after_restore, is_compiled, patched_numpy, register_original, shield_compiled_modules, without_patches

__all__ = [
    "LIKE_CONSTRUCTORS", "after_restore", "array", "as_strided", "asanyarray", "asarray", "asarray_chkfinite",
    "ascontiguousarray", "asfortranarray", "asmatrix", "bmat", "c_", "constant", "empty", "full", "is_compiled", "kaiser",
    "ones", "patched_numpy", "placeholder", "r_", "register_original", "require", "shield_compiled_modules", "variable",
    "without_patches", "zeros",
]  # fmt: skip
