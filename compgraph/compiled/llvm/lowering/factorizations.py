"""Lowering of linear systems, inverses, determinants and Cholesky factors of small matrices, and of stacks of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....values import MultiOutput
from ..buffer_ir import BufferView, Factorization, dense_view
from .lowering_state import EXACT_BITS, UNSUPPORTED, LoweringState

MAX_LENGTH = 16  # rows of a matrix; LAPACK is faster for larger ones
MAX_COLUMNS = 64  # of a right-hand side
_TOO_LARGE = f"matrices of more than {MAX_LENGTH} rows are not compiled"


def _matrix_view(state: LoweringState, operand: object, dtype: np.dtype[Any]) -> BufferView | str:
    """Return the view of small square matrices, converted to a floating-point dtype; or the reason if it is unsupported."""
    view = state.view(operand)
    if view is None or dtype.kind != "f" or len(view.shape) < 2 or 0 in view.shape:
        return UNSUPPORTED
    if view.shape[-1] > MAX_LENGTH:
        return _TOO_LARGE
    if state.is_exact:
        return EXACT_BITS
    return view if view.buffer.dtype == dtype else state.copy_of(view, dtype)


def _append_factorization(state: LoweringState, operation: str, operands: Sequence[BufferView], out: BufferView) -> None:
    stack = out.shape[:-2]
    state.steps.append(Factorization(operation, tuple(v.broadcast((*stack, *v.shape[-2:])) for v in operands), out))


def _solve(state: LoweringState, item: Any) -> str:
    dtype = np.asarray(item.raw_value).dtype
    a, b = _matrix_view(state, item.args[0], dtype), state.view(item.args[1])
    if isinstance(a, str):
        return a
    if b is None or item.options or 0 in b.shape:
        return UNSUPPORTED
    b, out = b if b.buffer.dtype == dtype else state.copy_of(b, dtype), state.allocate_result(item)
    if len(b.shape) == 1:
        b = BufferView(b.buffer, b.offset, (*b.shape, 1), (*b.strides, 0))
        out = BufferView(out.buffer, 0, (*out.shape, 1), (*out.strides, 0))
    if b.shape[-1] > MAX_COLUMNS:
        del state.views[item]
        return f"systems with more than {MAX_COLUMNS} right-hand sides are not compiled"
    _append_factorization(state, "solve", (a, b), out)
    return ""


def _inv(state: LoweringState, item: Any) -> str:
    dtype = np.asarray(item.raw_value).dtype
    a = _matrix_view(state, item.args[0], dtype)
    if isinstance(a, str):
        return a
    _append_factorization(state, "solve", (a, state.constant(np.eye(a.shape[-1], dtype=dtype))), state.allocate_result(item))
    return ""


def _append_slogdet(state: LoweringState, operand: object, dtype: np.dtype[Any]) -> tuple[BufferView, BufferView] | str:
    """Append the computation of the sign of a determinant and the logarithm of its absolute value; return their views."""
    a = _matrix_view(state, operand, dtype)
    if isinstance(a, str):
        return a
    pair = dense_view(dtype, (*a.shape[:-2], 1, 2))
    _append_factorization(state, "slogdet", (a,), pair)
    stack, strides = a.shape[:-2], pair.strides[:-2]
    return BufferView(pair.buffer, 0, stack, strides), BufferView(pair.buffer, 1, stack, strides)


def _det(state: LoweringState, item: Any) -> str:
    dtype = np.asarray(item.raw_value).dtype
    parts = _append_slogdet(state, item.args[0], dtype)
    if isinstance(parts, str):
        return parts
    sign, logarithm = parts
    magnitude = dense_view(dtype, sign.shape)
    state.append_map("exp", (logarithm,), magnitude)
    state.append_map("multiply", (sign, magnitude), state.allocate_result(item))
    return ""


def lower_slogdet(state: LoweringState, item: MultiOutput, readers: Sequence[Any]) -> bool:
    """Lower ``slogdet`` to the views of its two outputs; return False if it is unsupported."""
    parts = _append_slogdet(state, item.args[0], np.asarray(item.raw_value[0]).dtype)
    if isinstance(parts, str):
        return False
    for reader in readers:
        state.views[reader] = parts[reader.function.index]
    return True


def _cholesky(state: LoweringState, item: Any) -> str:
    a = _matrix_view(state, item.args[0], np.asarray(item.raw_value).dtype)
    if isinstance(a, str):
        return a
    if not {"upper"}.issuperset(item.options) or len(item.args) > 1:
        return UNSUPPORTED
    out = state.allocate_result(item)
    if item.options.get("upper"):
        a, out = a.matrix_transpose(), out.matrix_transpose()
    _append_factorization(state, "cholesky", (a,), out)
    return ""


LOWERINGS = {
    np.linalg.solve: _solve,
    np.linalg.inv: _inv,
    np.linalg.det: _det,
    np.linalg.cholesky: _cholesky,
}
