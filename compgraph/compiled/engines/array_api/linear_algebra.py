"""Decompositions, inverses and norms of matrices in terms of the array API standard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .elementwise import conj, imag, real
from .positions import as_array, flat, size_of
from .reductions import count_nonzero, has_value, sum_
from .shapes import expand_dims, moveaxis

Namespace = Any
Array = Any


def adjoint(xp: Namespace, a: Array) -> Array:
    """Return the conjugate transpose of matrices."""
    return conj(xp, xp.matrix_transpose(a))


def linalg_solve(xp: Namespace, a: Array, b: Array) -> Array:
    if b.ndim == 1:
        return xp.linalg.solve(a, xp.broadcast_to(b, (*a.shape[:-2], b.shape[0]))[..., None])[..., 0]
    return xp.linalg.solve(a, b)


def linalg_cholesky(xp: Namespace, a: Array, upper: bool = False) -> Array:
    factor = xp.linalg.cholesky(hermitian_of(xp, a, "U" if upper else "L"))
    return adjoint(xp, factor) if upper else factor


def hermitian_of(xp: Namespace, a: Array, triangle: str = "L") -> Array:
    """Return Hermitian matrices from the triangle that NumPy reads."""
    part, k = (xp.tril, -1) if triangle.upper() == "L" else (xp.triu, 1)
    diagonal = xp.astype(real(xp, a), a.dtype) * as_array(xp, np.eye(a.shape[-1]), a, a.dtype)
    return part(a, k=k) + adjoint(xp, part(a, k=k)) + diagonal


def linalg_eigh(xp: Namespace, a: Array, UPLO: str = "L") -> Any:
    return tuple(xp.linalg.eigh(hermitian_of(xp, a, UPLO)))


def linalg_eigvalsh(xp: Namespace, a: Array, UPLO: str = "L") -> Array:
    return xp.linalg.eigvalsh(hermitian_of(xp, a, UPLO))


def linalg_qr(xp: Namespace, a: Array, mode: str = "reduced") -> Any:
    q, r = xp.linalg.qr(a, mode="complete" if mode == "complete" else "reduced")
    return r if mode == "r" else (q, r)


def linalg_svd(xp: Namespace, a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = hermitian_of(xp, a) if hermitian else a
    return tuple(xp.linalg.svd(a, full_matrices=bool(full_matrices))) if compute_uv else xp.linalg.svdvals(a)


def linalg_slogdet(xp: Namespace, a: Array) -> Any:
    return tuple(xp.linalg.slogdet(a))


def linalg_norm(
    xp: Namespace, x: Array, ord: int | None = None, axis: tuple[int, ...] | int | None = None, keepdims: bool = False
) -> Array:
    if axis is None:
        if ord is None:
            norm = xp.linalg.vector_norm(flat(xp, x))
            return xp.reshape(norm, (1,) * x.ndim) if keepdims else norm
        axis = tuple(range(x.ndim))
    axes = normalize_axis_tuple(axis, x.ndim)
    if len(axes) == 1 or ord is None:
        return xp.linalg.vector_norm(
            x, axis=axes if len(axes) > 1 else axes[0], ord=2 if ord is None else ord, keepdims=bool(keepdims)
        )
    norm = xp.linalg.matrix_norm(moveaxis(xp, x, axes, (-2, -1)), ord=ord)
    return expand_dims(xp, norm, axes) if keepdims else norm


def linalg_cond(xp: Namespace, x: Array, p: object = None) -> Array:
    if p in (None, 2, -2):
        singular_values = xp.linalg.svdvals(x)
        return (
            singular_values[..., -1] / singular_values[..., 0] if p == -2 else singular_values[..., 0] / singular_values[..., -1]
        )
    return xp.linalg.matrix_norm(x, ord=p) * xp.linalg.matrix_norm(xp.linalg.inv(x), ord=p)


def linalg_pinv(xp: Namespace, a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    a = hermitian_of(xp, a) if hermitian else a
    cutoff = next((r for r in (rcond, rtol) if has_value(r)), 1e-15)
    return xp.linalg.pinv(a, rtol=as_array(xp, cutoff, a, real(xp, a).dtype) if np.ndim(cutoff) else float(cutoff))


def linalg_lstsq(xp: Namespace, a: Array, b: Array, rcond: Array | None = None, *, rank: int) -> tuple[Array, ...]:
    """Return the results for matrices of a given rank, which the program checks."""
    cutoff = (
        float(np.finfo(np.dtype(str(real(xp, a).dtype).rpartition(".")[2])).eps) * max(a.shape) if rcond is None else float(rcond)
    )
    singular_values = xp.linalg.svdvals(a)
    columns = b if b.ndim == 2 else b[:, None]
    solution = xp.matmul(xp.linalg.pinv(a, rtol=cutoff), columns)
    residuals = columns - xp.matmul(a, solution)
    squared_norms = sum_(xp, real(xp, residuals) ** 2 + imag(xp, residuals) ** 2, axis=0)
    computed_rank = count_nonzero(xp, singular_values > cutoff * singular_values[0])
    return (
        solution if b.ndim == 2 else solution[:, 0],
        squared_norms if rank == a.shape[1] < a.shape[0] else squared_norms[:0],
        computed_rank,
        singular_values,
    )


def linalg_tensorsolve(xp: Namespace, a: Array, b: Array, axes: Any = None) -> Array:
    if axes is not None:
        rest = [k for k in range(a.ndim) if k not in axes]
        a = xp.permute_dims(a, (*rest, *axes))
    shape = a.shape[b.ndim :]
    return xp.reshape(xp.linalg.solve(xp.reshape(a, (size_of(b), math.prod(shape))), flat(xp, b)[:, None]), shape)


def linalg_tensorinv(xp: Namespace, a: Array, ind: int = 2) -> Array:
    rows = math.prod(a.shape[:ind])
    return xp.reshape(xp.linalg.inv(xp.reshape(a, (rows, -1))), (*a.shape[ind:], *a.shape[:ind]))


def linalg_matrix_power(xp: Namespace, a: Array, n: int) -> Array:
    return xp.linalg.matrix_power(a, int(n))


def diagonal_matrix(xp: Namespace, values: Array, w: Any, of: str) -> Array:
    return as_array(xp, np.eye(w.shape[-1]), values, values.dtype) * values[..., None, :]
