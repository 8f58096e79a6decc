"""Products of arrays, decompositions, inverses and norms of matrices in terms of the array API standard."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .elementwise import conj, imag, real
from .positions import as_array, flat, move_elements, size_of
from .reductions import count_nonzero, has_value, sum_
from .shapes import expand_dims, moveaxis

Namespace = Any
Array = Any


def stacked_matmul(xp: Namespace, a: Array, b: Array) -> Array:
    return xp.matmul(a, b)


def dot(xp: Namespace, a: Array, b: Array) -> Array:
    if not a.ndim or not b.ndim:
        return a * b
    return xp.tensordot(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def inner(xp: Namespace, a: Array, b: Array) -> Array:
    return a * b if not a.ndim or not b.ndim else xp.tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 1,)))


def outer(xp: Namespace, a: Array, b: Array) -> Array:
    return flat(xp, a)[:, None] * flat(xp, b)[None, :]


def vdot(xp: Namespace, a: Array, b: Array) -> Array:
    return sum_(xp, conj(xp, flat(xp, a)) * flat(xp, b))


def vecdot(xp: Namespace, a: Array, b: Array, axis: int = -1) -> Array:
    return sum_(xp, conj(xp, moveaxis(xp, a, axis, -1)) * moveaxis(xp, b, axis, -1), axis=-1)


linalg_vecdot = vecdot


def matvec(xp: Namespace, a: Array, v: Array) -> Array:
    return xp.matmul(a, v[..., None])[..., 0]


def vecmat(xp: Namespace, v: Array, a: Array) -> Array:
    return xp.matmul(conj(xp, v)[..., None, :], a)[..., 0, :]


def tensordot(xp: Namespace, a: Array, b: Array, axes: tuple[Any, ...] | int = 2) -> Array:
    if not isinstance(axes, (int, np.integer)):
        axes = tuple(tuple(normalize_axis_tuple(part, x.ndim)) for part, x in zip(axes, (a, b), strict=True))
    return xp.tensordot(a, b, axes=axes)


def kron(xp: Namespace, a: Array, b: Array) -> Array:
    count = max(a.ndim, b.ndim)
    first, second = (xp.reshape(x, ((1,) * (count - x.ndim) + tuple(x.shape))) for x in (a, b))
    pairs = [n for k in range(count) for n in (first.shape[k], 1)], [n for k in range(count) for n in (1, second.shape[k])]
    product = xp.reshape(first, tuple(pairs[0])) * xp.reshape(second, tuple(pairs[1]))
    return xp.reshape(product, tuple(m * n for m, n in zip(first.shape, second.shape, strict=True)))


def cross(xp: Namespace, a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = moveaxis(xp, a, axisa, -1), moveaxis(xp, b, axisb, -1)
    (x, y, *z), (u, v, *w) = ([p[..., k] for k in range(p.shape[-1])] for p in (a, b))
    if not z and not w:
        return x * v - y * u
    third, other = z[0] if z else xp.zeros_like(x), w[0] if w else xp.zeros_like(u)
    parts = [y * other - third * v, third * u - x * other, x * v - y * u]
    return moveaxis(xp, xp.stack(list(xp.broadcast_arrays(*parts)), axis=-1), -1, axisc)


def einsum(xp: Namespace, *operands: Array, subscripts: str, dtype: object = None) -> Array:
    if hasattr(xp, "einsum"):
        return xp.einsum(subscripts, *operands)
    input_subscripts, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = input_subscripts.split(",")
    if "." in subscripts:
        unused_letters = [c for c in string.ascii_letters if c not in subscripts]
        counts = [x.ndim - len(term.replace("...", "")) for term, x in zip(terms, operands, strict=True)]
        ellipsis_letters = unused_letters[: max(n for n, term in zip(counts, terms, strict=True) if "." in term)]
        terms = [
            t.replace("...", "".join(ellipsis_letters[len(ellipsis_letters) - n :])) for t, n in zip(terms, counts, strict=True)
        ]
        inner = input_subscripts.replace("...", "")
        unique_letters = "".join(sorted(c for c in set(inner) - {","} if inner.count(c) == 1))
        output = output.replace("...", "".join(ellipsis_letters)) if arrow else "".join(ellipsis_letters) + unique_letters
        input_subscripts, subscripts = ",".join(terms), "->"
    letters = sorted(set("".join(terms)))
    if "->" not in subscripts:
        output = "".join(c for c in letters if input_subscripts.count(c) == 1)
    order = [*output, *(c for c in letters if c not in output)]
    product = None
    for term, x in zip(terms, operands, strict=True):
        for c in sorted(set(term)):  # diagonals
            while term.count(c) > 1:
                first, second = term.index(c), term.rindex(c)
                x = move_elements(xp, np.diagonal, x, 0, first, second)
                term = "".join(d for k, d in enumerate(term) if k not in (first, second)) + c
        x = xp.permute_dims(x, tuple(sorted(range(len(term)), key=lambda k: order.index(term[k])))) if x.ndim > 1 else x
        lengths = iter(x.shape)
        x = xp.reshape(x, tuple(next(lengths) if c in term else 1 for c in order))
        product = x if product is None else product * x
    summed_axes = tuple(range(len(output), len(order)))
    return sum_(xp, product, axis=summed_axes) if summed_axes else product


def linalg_multi_dot(xp: Namespace, arrays: Sequence[Array]) -> Array:
    product = arrays[0]
    for other in arrays[1:]:
        product = xp.matmul(product, other)
    return product


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
        other_axes = [k for k in range(a.ndim) if k not in axes]
        a = xp.permute_dims(a, (*other_axes, *axes))
    shape = a.shape[b.ndim :]
    return xp.reshape(xp.linalg.solve(xp.reshape(a, (size_of(b), math.prod(shape))), flat(xp, b)[:, None]), shape)


def linalg_tensorinv(xp: Namespace, a: Array, ind: int = 2) -> Array:
    rows = math.prod(a.shape[:ind])
    return xp.reshape(xp.linalg.inv(xp.reshape(a, (rows, -1))), (*a.shape[ind:], *a.shape[:ind]))


def linalg_matrix_power(xp: Namespace, a: Array, n: int) -> Array:
    return xp.linalg.matrix_power(a, int(n))


def diagonal_matrix(xp: Namespace, values: Array, w: Any, of: str) -> Array:
    return as_array(xp, np.eye(w.shape[-1]), values, values.dtype) * values[..., None, :]
