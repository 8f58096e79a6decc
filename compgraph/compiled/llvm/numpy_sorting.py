"""NumPy's C functions that sort the rows of an array, from its C API.

Compiled code calls them, so it orders equal elements and zeros of different signs as NumPy does on this processor.
Their types are ``int sort(void *row, npy_intp length, void *)`` and
``int argsort(void *row, npy_intp *positions, npy_intp length, void *)``; they return a negative number if memory is exhausted.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from ... import ops

_GET_FUNCTIONS = 365  # the position of `_PyDataType_GetArrFuncs` in the C API
_FIRST_SORT = 33  # the position of `sort` among the pointers of the structure `PyArray_ArrFuncs`; `argsort` follows
_KINDS = 3  # functions of each operation: quicksort, heapsort, stable sort
_POSITIONS = {False: 0, True: 2}  # of a function among the kinds, by whether it is stable
_DTYPES = tuple(np.dtype(code) for code in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"))


def symbol_name(operation: str, dtype: np.dtype[Any], is_stable: bool) -> str:
    """Return the name of a function for the linker; `operation` is ``"sort"`` or ``"argsort"``."""
    return f"numpy_{'stable_' if is_stable else ''}{operation}_{dtype.str[1:]}"


@functools.cache
def addresses() -> dict[str, int]:
    """Return the addresses of the functions, by their names."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = ctypes.cast(get_pointer(ops.ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    if not api[_GET_FUNCTIONS]:
        return {}
    get_functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(api[_GET_FUNCTIONS])
    result = {}
    for dtype in _DTYPES:
        pointers = ctypes.cast(get_functions(dtype), ctypes.POINTER(ctypes.c_void_p))
        for number, operation in enumerate(("sort", "argsort")):
            for is_stable, position in _POSITIONS.items():
                address = pointers[_FIRST_SORT + _KINDS * number + position]
                if address is not None:
                    result[symbol_name(operation, dtype, is_stable)] = address
    return result


@functools.cache
def is_available(operation: str, dtype: np.dtype[Any], is_stable: bool) -> bool:
    """Return whether the function of the C API sorts a dtype as `np.sort` does, tested on a row with equal elements."""
    address = addresses().get(symbol_name(operation, dtype, is_stable))
    if address is None:
        return False
    row = np.random.default_rng(0).integers(0, 5, 1000).astype(dtype)
    if dtype.kind == "f":
        row[::3], row[::7] = -row[::3], np.nan
    kind = "stable" if is_stable else "quicksort"
    word, size = ctypes.c_void_p, ctypes.c_ssize_t
    if operation == "sort":
        expected = ops.NUMPY.sort(row, kind=kind)
        ctypes.CFUNCTYPE(ctypes.c_int, word, size, word)(address)(row.ctypes.data, row.size, None)
        return bool(row.tobytes() == expected.tobytes())
    positions = np.arange(row.size)
    ctypes.CFUNCTYPE(ctypes.c_int, word, word, size, word)(address)(row.ctypes.data, positions.ctypes.data, row.size, None)
    return bool(np.array_equal(positions, ops.NUMPY.argsort(row, kind=kind)))
