"""Arrays made for nodes: variables, constants and placeholders, arrays to be filled, and what NumPy makes of lists of nodes."""

from .allocation import empty, ones, zeros
from .compiled_modules import is_compiled, keep_original, shield_compiled_modules
from .creation import array, asanyarray, asarray, asarray_chkfinite, full
from .joining import asmatrix, bmat, c_, r_
from .layouts import MADE_LIKE, as_strided, ascontiguousarray, asfortranarray, require
from .leaves import constant, placeholder, variable
from .patched_numpy import after_restore, patched_numpy, without_patches

__all__ = [
    "MADE_LIKE", "after_restore", "array", "as_strided", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray",
    "asfortranarray", "asmatrix", "bmat", "c_", "constant", "empty", "full", "is_compiled", "keep_original", "ones",
    "patched_numpy", "placeholder", "r_", "require", "shield_compiled_modules", "variable", "without_patches", "zeros",
]  # fmt: skip
