"""Rules of inverses, solutions and determinants, and helpers for stacks of matrices.

The formulas of inverses are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008).

The derivative of a determinant is the matrix of cofactors, a polynomial of the elements. For a regular matrix it is the
determinant times the transposed inverse. Near singular matrices the terms of that product cancel, more so in higher orders.
There the singular vectors transform the matrix into a regular block of large singular values and a small block. The cofactors
of the small block are computed by products and sums alone. No divisor can vanish, so derivatives of all orders are correct.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Axis
from compgraph.guards import guarded_value
from compgraph.protocols import stop_gradient

from ...rules import general


def transpose(x: NDArray[Any]) -> Any:
    """Transpose the matrices in a stack."""
    return np.swapaxes(x, -1, -2)


def conj_transpose(x: Any) -> Any:
    """Transpose and conjugate the matrices in a stack."""
    return np.conjugate(transpose(x))


def matmul_chain(*matrices: Any) -> Any:
    """Multiply matrices from the left."""
    return functools.reduce(np.matmul, matrices)


def diagonals(x: NDArray[Any]) -> Any:
    """Return the diagonals of the matrices in a stack."""
    return np.einsum("...ii->...i", x)


def rectangular_diagonal(s: NDArray[Any], rows: int, columns: int) -> Any:
    """Return matrices with `s` on their diagonals."""
    k = s.shape[-1]
    return np.matmul(np.eye(rows, k) * s[..., None, :], np.eye(k, columns))


def reciprocal_or_zero(s: NDArray[Any]) -> Any:
    """Compute 1 / s, and 0 for 0."""
    return np.where(s == 0, 0, 1 / np.where(s == 0, 1, s))


def inverse_or_inf(x: NDArray[Any], singular: Any) -> Any:
    """Invert the matrices in a stack; singular ones give inf and nan with NumPy's floating-point error."""
    if not np.any(singular):
        return np.linalg.inv(x)
    return np.linalg.inv(np.where(singular, np.eye(x.shape[-1]), x)) / np.where(singular, 0, 1)


def triangle_weights(n: int, upper: bool = False) -> Any:
    """Return a matrix with 1 in a triangle and 1/2 on the diagonal."""
    half = np.tri(n) - np.eye(n) / 2
    return half.T if upper else half


def mirror_triangle(x: NDArray[Any], upper: bool = False) -> Any:
    """Return the Hermitian matrix that NumPy reads from one triangle."""
    half = x * triangle_weights(x.shape[-1], upper)
    return half + conj_transpose(half)


def fold_hermitian(g: NDArray[Any], upper: bool = False) -> Any:
    """Return the cotangent of the triangle that NumPy reads, given that of the Hermitian matrix."""
    return (g + conj_transpose(g)) * triangle_weights(g.shape[-1], upper)


# ---------------------------------------------------------------------------------------------- inverses

linalg_inv_grad = general("linalg_inv", lambda g, out, a: -matmul_chain(transpose(out), g, transpose(out))).tangent(
    lambda t, out, a: -matmul_chain(out, t, out)
)


def as_columns(b: NDArray[Any], *vectors: NDArray[Any]) -> tuple[bool, list[Any]]:
    """Return whether the right-hand side `b` is a vector, and the other arrays, as columns in that case."""
    is_vector = b.ndim == 1
    return is_vector, [v[..., None] if is_vector else v for v in vectors]


def _solve_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    _, (g, x) = as_columns(b, g, out)
    return -np.matmul(np.linalg.solve(transpose(a), g), transpose(x))


def _solve_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    is_vector, (g,) = as_columns(b, g)
    solution = np.linalg.solve(transpose(a), g)
    return solution[..., 0] if is_vector else solution


def _solve_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    is_vector, (x,) = as_columns(b, out)
    solution = -np.linalg.solve(a, np.matmul(t, x))
    return solution[..., 0] if is_vector else solution


linalg_solve_grad = general("linalg_solve", _solve_a, _solve_b).tangent(
    _solve_tangent, lambda t, out, a, b: np.linalg.solve(a, t)
)


def function_of_matrices(opname: str, weights: Callable[..., Any]) -> Any:
    """Declare a function from matrices to numbers by its partial derivatives, ``weights(out, x, **options)``."""

    def formula(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], **options: object) -> Any:
        return g[..., None, None] * weights(out[..., None, None], x, **options)

    def tangent(t: NDArray[Any], out: NDArray[Any], x: NDArray[Any], **options: object) -> Any:
        return np.sum(t * weights(out[..., None, None], x, **options), axis=(-2, -1))

    return general(opname, formula).tangent(tangent)


def _matrix_power(t: NDArray[Any], a: NDArray[Any], n: int) -> Any:
    """Return the off-diagonal block of ``[[a, t], [0, a]]**n``, the derivative of ``a**n`` along t."""
    size = a.shape[-1]
    rows = [np.concatenate([a, t], axis=-1), np.concatenate([np.zeros_like(a), a], axis=-1)]
    return np.linalg.matrix_power(np.concatenate(rows, axis=-2), n)[..., :size, size:]


linalg_matrix_power_grad = general("linalg_matrix_power", lambda g, out, a, n: _matrix_power(g, transpose(a), n)).tangent(
    lambda t, out, a, n: _matrix_power(t, a, n)
)


def _tensorinv(t: NDArray[Any], out: NDArray[Any], shape: tuple[int, ...], swap: Callable[[Any], Any]) -> Any:
    n = math.isqrt(out.size)
    inverse = swap(np.reshape(out, (n, n)))
    return np.reshape(-matmul_chain(inverse, np.reshape(t, (n, n)), inverse), shape)


linalg_tensorinv_grad = general("linalg_tensorinv", lambda g, out, a, ind=2: _tensorinv(g, out, a.shape, transpose)).tangent(
    lambda t, out, a, ind=2: _tensorinv(t, out, out.shape, lambda x: x)
)


def _tensorsolve_order(a: NDArray[Any], axes: Any) -> list[int]:
    """Return the order of the axes of `a` as tensorsolve permutes them."""
    last = [] if axes is None else [axis % a.ndim for axis in axes]
    return [i for i in range(a.ndim) if i not in last] + last


def _tensorsolve_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: Axis = None) -> Any:
    square = np.reshape(np.transpose(a, _tensorsolve_order(a, axes)), (out.size, out.size))
    return np.reshape(np.linalg.solve(square.T, np.ravel(g)), b.shape)


def _tensorsolve_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: Axis = None) -> Any:
    order = _tensorsolve_order(a, axes)
    cotangent = -np.tensordot(_tensorsolve_b(g, out, a, b, axes), out, axes=0)
    return np.transpose(np.reshape(cotangent, [a.shape[i] for i in order]), np.argsort(order).tolist())


def _tensorsolve_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: Any = None) -> Any:
    tangent = np.transpose(t, _tensorsolve_order(a, axes))
    slope = np.tensordot(tangent, out, axes=out.ndim)
    return -np.linalg.tensorsolve(a, np.reshape(slope, b.shape), axes=axes)


linalg_tensorsolve_grad = general("linalg_tensorsolve", _tensorsolve_a, _tensorsolve_b).tangent(
    _tensorsolve_tangent, lambda t, out, a, b, axes=None: np.linalg.tensorsolve(a, t, axes=axes)
)


# Singular values below this fraction of the largest are small: a derivative of order k loses a factor of about the (k - 1)-th
# power of it in accuracy.
_SMALL = 1e-4
# The largest block whose adjugate is computed by products and sums, which lose about one digit per two rows.
_MAX_BLOCK = 8


def cofactors(out: NDArray[Any], x: NDArray[Any]) -> Any:
    """Return the derivatives of the determinants `out`, of shape ``(..., 1, 1)``, of matrices `x`."""
    if x.shape[-1] == 1:
        return np.ones_like(x)
    zero = stop_gradient(out) == 0
    inverse = np.linalg.inv(np.where(zero, np.eye(x.shape[-1]), x) if np.any(zero) else x)
    sizes = [np.max(np.abs(stop_gradient(m)), axis=(-2, -1), keepdims=True, initial=0) for m in (x, inverse)]
    is_near_singular = np.logical_or(zero, sizes[0] * sizes[1] * _SMALL > 1)
    return _cofactors_near_singular(x, is_near_singular) if np.any(is_near_singular) else out * transpose(inverse)


def _cofactors_near_singular(x: NDArray[Any], is_near_singular: Any) -> Any:
    """Return the cofactors of matrices that may have small singular values."""
    n, is_near_singular = x.shape[-1], guarded_value(is_near_singular, "which matrices are almost singular")
    regular = np.where(is_near_singular, np.eye(n), x)
    flat = np.reshape(x, (-1, n, n))
    blocks = [np.reshape(np.linalg.det(regular)[..., None, None] * transpose(np.linalg.inv(regular)), flat.shape)]
    near_singular_indices = np.flatnonzero(is_near_singular)
    positions, counts = np.arange(len(flat)), _count_small(flat[near_singular_indices])
    end = len(flat)
    for num_small in np.unique(counts):
        indices = near_singular_indices[counts == num_small]
        blocks.append(_cofactors_by_blocks(flat[indices], int(num_small)))
        positions[indices] = np.arange(end, end + len(indices))
        end += len(indices)
    return np.reshape(np.concatenate(blocks)[positions], x.shape)


def _count_small(x: NDArray[Any]) -> Any:
    """Return the number of small singular values of each matrix; all of a matrix of zeros."""
    s = np.linalg.svd(stop_gradient(x), compute_uv=False)
    return guarded_value(np.sum(s <= _SMALL * s[..., :1], axis=-1), "how many singular values are small")


def _cofactors_by_blocks(x: NDArray[Any], num_small: int) -> Any:
    """Return the cofactors of matrices with `num_small` small singular values."""
    n = x.shape[-1]
    if not num_small:
        return np.linalg.det(x)[..., None, None] * transpose(np.linalg.inv(x))
    if num_small == n:
        return transpose(_faddeev_leverrier(x)[1])
    u, _, vh = np.linalg.svd(stop_gradient(x))  # constants: the cofactors do not depend on the rotation
    adjugate = _adjugate_of_blocks(matmul_chain(conj_transpose(u), x, conj_transpose(vh)), n - num_small)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * transpose(matmul_chain(conj_transpose(vh), adjugate, conj_transpose(u)))


def _adjugate_of_blocks(x: NDArray[Any], k: int) -> Any:
    """Return the adjugates of matrices whose leading `k` by `k` block is regular, by its Schur complement."""
    inverse = np.linalg.inv(x[..., :k, :k])
    inverse_right, below_inverse = np.matmul(inverse, x[..., :k, k:]), np.matmul(x[..., k:, :k], inverse)
    schur_complement = x[..., k:, k:] - np.matmul(x[..., k:, :k], inverse_right)
    if schur_complement.shape[-1] <= _MAX_BLOCK:
        schur_determinant, schur_adjugate = _faddeev_leverrier(schur_complement)
    else:
        schur_determinant = np.linalg.det(schur_complement)[..., None, None]
        schur_adjugate = transpose(cofactors(schur_determinant, schur_complement))
    right_adjugate = np.matmul(inverse_right, schur_adjugate)
    rows = [
        np.concatenate([schur_determinant * inverse + np.matmul(right_adjugate, below_inverse), -right_adjugate], axis=-1),
        np.concatenate([-np.matmul(schur_adjugate, below_inverse), schur_adjugate], axis=-1),
    ]
    return np.linalg.det(x[..., :k, :k])[..., None, None] * np.concatenate(rows, axis=-2)


def _faddeev_leverrier(x: NDArray[Any]) -> tuple[Any, Any]:
    """Return determinants and adjugates by the method of Faddeev and LeVerrier."""
    n = x.shape[-1]
    unit = np.eye(n)
    auxiliary_matrix = np.broadcast_to(unit, x.shape)
    for k in range(1, n):
        auxiliary_matrix = np.matmul(x, auxiliary_matrix)
        auxiliary_matrix = auxiliary_matrix - _trace(auxiliary_matrix) / k * unit
    adjugate = auxiliary_matrix * (-1) ** (n - 1)
    return _trace(np.matmul(x, adjugate)) / n, adjugate


def _trace(x: NDArray[Any]) -> Any:
    return np.trace(x, axis1=-2, axis2=-1)[..., None, None]


linalg_det_grad = function_of_matrices("linalg_det", cofactors)


def _slogdet(g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any]) -> Any:
    """Return the cotangent. The derivative of the logarithm is the transposed inverse, whose imaginary part rotates the sign."""
    phase = None if g[0] is None or out[0].dtype.kind != "c" else np.multiply(1j, np.imag(g[0] * out[0]))
    parts = [part for part in (phase, g[1]) if part is not None]
    if not parts:
        return 0 * a
    return sum(parts[1:], parts[0])[..., None, None] * transpose(inverse_or_inf(a, (out[0] == 0)[..., None, None]))


def _slogdet_tangent(t: NDArray[Any], out: Any, a: NDArray[Any]) -> Any:
    slope = np.einsum("...ij,...ji->...", inverse_or_inf(a, (out[0] == 0)[..., None, None]), t)
    return (out[0] * np.multiply(1j, np.imag(slope)) if out[0].dtype.kind == "c" else None), np.real(slope)


linalg_slogdet_grad = general("linalg_slogdet", _slogdet).tangent(_slogdet_tangent)
