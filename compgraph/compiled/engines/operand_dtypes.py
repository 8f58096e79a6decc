"""NumPy's dtype conversions of operands, which other libraries do not share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...values import MultiOutput, Value
from .array_api import UnsupportedError

# Functions whose operands are not converted.
_UNCONVERTED = frozenset({"where", "argmax", "argmin", "count_nonzero", "astype", "real", "imag", "angle", "full_like"})
# Operands that stay integers.
_CLASS_LABELS = frozenset({("softmax_cross_entropy", 1), ("_select_class", 1)})
_CONVERTS_TO_COMMON_DTYPE = frozenset({"searchsorted", "digitize", "isin", "isclose"})


def operand_dtypes(
    item: Any, function: Callable[..., Any], key: str, operands: Sequence[Any], dtype: np.dtype[Any] | None
) -> list[Any]:
    """Return the dtypes to which NumPy converts the operands of a function; `dtype` is the option of this name."""
    if isinstance(function, np.ufunc) and function.signature is None:
        dtype_options: dict[str, Any] = {}
        if dtype is not None:
            dtype_options = {"signature": (None,) * function.nin + (np.dtype(dtype),) * function.nout, "casting": "unsafe"}
        return list(function.resolve_dtypes((*map(_promotion_type, operands), *(None,) * function.nout), **dtype_options))
    if key in _CONVERTS_TO_COMMON_DTYPE:
        return [np.result_type(*[a if isinstance(a, (int, float)) else _dtype_of(a) for a in operands[:2]])] * 2
    dtypes = [_operand_dtype(item, key, k, _dtype_of(operand)) for k, operand in enumerate(operands)]
    if dtype is not None and _folds(function):  # NumPy converts, then folds
        dtypes[0] = dtype
    return dtypes


def _operand_dtype(item: Any, key: str, position: int, dtype: np.dtype[Any]) -> Any:
    """Return the dtype to which NumPy converts an operand of a function that is not a ufunc."""
    if isinstance(item, MultiOutput):
        are_floats = key.startswith("linalg") or all(np.asarray(x).dtype.kind in "fc" for x in item.raw_value)
        return np.result_type(dtype, np.result_type(*item.raw_value)) if are_floats and dtype.kind in "biu" else dtype
    result_dtype = item.dtype
    if result_dtype.kind == "b" or ((key, position) in _CLASS_LABELS and dtype.kind in "iu"):
        return dtype
    if key == "where":
        return np.dtype(bool) if position == 0 else result_dtype
    if key in _UNCONVERTED or (result_dtype.kind in "biu" and dtype.kind not in "biu"):
        return dtype
    if result_dtype.kind == "c" and dtype.kind != "c":
        return np.dtype(f"f{result_dtype.itemsize // 2}") if key.startswith("fft") else result_dtype
    return dtype if dtype.kind == "c" and result_dtype.kind != "c" else result_dtype


def folded_ufunc(method: Any) -> Any:
    """Return the reduction that a method of a ufunc computes: ``np.sum`` for ``np.add.reduce``."""
    fold = ops.FOLDS.get((method.ufunc, method.method))
    if fold is None:
        raise UnsupportedError(f"{method.__name__} has no counterpart in other libraries")
    return fold


def _folds(function: Callable[..., Any]) -> bool:
    """Return whether a function folds the elements of its operand, converted to the option `dtype`."""
    spec = ops.SPECS.get(function)
    return (spec is not None and spec.kind in ("reduction", "cumulative")) or function is np.trace


def _dtype_of(operand: object) -> Any:
    return operand.dtype if isinstance(operand, Value) else np.asarray(operand).dtype


def _promotion_type(operand: object) -> Any:
    """Return the dtype of an operand; for a Python number its class, because NumPy promotes it weakly."""
    if hasattr(operand, "dtype"):
        return operand.dtype
    return type(operand) if type(operand) in (int, float, complex) else np.asarray(operand).dtype
