"""Rules of determinants.

The derivative of a determinant is the matrix of its cofactors, a polynomial of the elements. Where the matrix is regular it
is the determinant times the transposed inverse; near singular matrices the parts of that cancel, the more the higher the
order. There the matrix is turned by its singular vectors, so that it splits into a block of large singular values, which is
regular, and a small block, whose cofactors are found by products and sums alone. Nothing is divided by what may vanish, so
that all orders are right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.guards import guarded_value
from compgraph.protocols import stop_gradient

from ...rules import general
from .matrix_inverses import _adjoint, _inverse, _of_matrices, _product, _swap

# Singular values below this part of the largest are small: the k-th order loses about the (k - 1)-th power of it in digits.
_SMALL = 1e-4
# Up to this size a small block is left to products and sums, which lose about a digit for every two rows.
_FEW = 8


def _cofactors(out: Any, x: Any) -> Any:
    """The derivatives of the determinants `out`, of shape ``(..., 1, 1)``, of matrices `x` by each element."""
    if x.shape[-1] == 1:
        return np.ones_like(x)
    zero = stop_gradient(out) == 0
    inverse = np.linalg.inv(np.where(zero, np.eye(x.shape[-1]), x) if np.any(zero) else x)
    sizes = [np.max(np.abs(stop_gradient(m)), axis=(-2, -1), keepdims=True, initial=0) for m in (x, inverse)]
    doubtful = np.logical_or(zero, sizes[0] * sizes[1] * _SMALL > 1)
    return _with_doubtful(x, doubtful) if np.any(doubtful) else out * _swap(inverse)


def _with_doubtful(x: Any, doubtful: Any) -> Any:
    """The cofactors of matrices of which some have small singular values, as it seems."""
    n, doubtful = x.shape[-1], guarded_value(doubtful, "which matrices are almost singular")
    regular = np.where(doubtful, np.eye(n), x)
    flat = np.reshape(x, (-1, n, n))
    of_each = [np.reshape(np.linalg.det(regular)[..., None, None] * _swap(np.linalg.inv(regular)), flat.shape)]
    hard = np.flatnonzero(doubtful)
    places, counts = np.arange(len(flat)), _how_many_small(flat[hard])
    end = len(flat)
    for small in np.unique(counts):
        chosen = hard[counts == small]
        of_each.append(_split(flat[chosen], int(small)))
        places[chosen] = np.arange(end, end + len(chosen))
        end += len(chosen)
    return np.reshape(np.concatenate(of_each)[places], x.shape)


def _how_many_small(x: Any) -> Any:
    """For each matrix, the number of its singular values that are small; all of a matrix of zeros."""
    s = np.linalg.svd(stop_gradient(x), compute_uv=False)
    return guarded_value(np.sum(s <= _SMALL * s[..., :1], axis=-1), "how many singular values are small")


def _split(x: Any, small: int) -> Any:
    """The cofactors of matrices of which so many singular values are small."""
    n = x.shape[-1]
    if not small:
        return np.linalg.det(x)[..., None, None] * _swap(np.linalg.inv(x))
    if small == n:
        return _swap(_by_products(x)[1])
    u, _, vh = np.linalg.svd(stop_gradient(x))  # whatever they turn by, the cofactors are the same
    adjugate = _adjugate_of_blocks(_product(_adjoint(u), x, _adjoint(vh)), n - small)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * _swap(_product(_adjoint(vh), adjugate, _adjoint(u)))


def _adjugate_of_blocks(x: Any, k: int) -> Any:
    """The adjugates of matrices whose first `k` rows and columns are regular, by the block that is left of the others."""
    inverse = np.linalg.inv(x[..., :k, :k])
    right, below = np.matmul(inverse, x[..., :k, k:]), np.matmul(x[..., k:, :k], inverse)
    left = x[..., k:, k:] - np.matmul(x[..., k:, :k], right)
    if left.shape[-1] <= _FEW:
        of_left, corner = _by_products(left)
    else:
        of_left = np.linalg.det(left)[..., None, None]
        corner = _swap(_cofactors(of_left, left))
    beside = np.matmul(right, corner)
    rows = [
        np.concatenate([of_left * inverse + np.matmul(beside, below), -beside], axis=-1),
        np.concatenate([-np.matmul(corner, below), corner], axis=-1),
    ]
    return np.linalg.det(x[..., :k, :k])[..., None, None] * np.concatenate(rows, axis=-2)


def _by_products(x: Any) -> tuple[Any, Any]:
    """The determinants and adjugates of matrices, by the method of Faddeev and LeVerrier."""
    n = x.shape[-1]
    unit = np.eye(n)
    found = np.broadcast_to(unit, x.shape)
    for k in range(1, n):
        found = np.matmul(x, found)
        found = found - _trace(found) / k * unit
    adjugate = found * (-1) ** (n - 1)
    return _trace(np.matmul(x, adjugate)) / n, adjugate


def _trace(x: Any) -> Any:
    return np.trace(x, axis1=-2, axis2=-1)[..., None, None]


linalg_det_grad = _of_matrices("linalg_det", _cofactors)


def _slogdet(g: Any, out: Any, a: Any) -> Any:
    """The logarithm's derivative is the transposed inverse; a complex sign turns by its imaginary part."""
    turn = None if g[0] is None or out[0].dtype.kind != "c" else np.multiply(1j, np.imag(g[0] * out[0]))
    parts = [part for part in (turn, g[1]) if part is not None]
    if not parts:
        return 0 * a
    return sum(parts[1:], parts[0])[..., None, None] * _swap(_inverse(a, (out[0] == 0)[..., None, None]))


def _slogdet_tangent(t: Any, out: Any, a: Any) -> Any:
    slope = np.einsum("...ij,...ji->...", _inverse(a, (out[0] == 0)[..., None, None]), t)
    return (out[0] * np.multiply(1j, np.imag(slope)) if out[0].dtype.kind == "c" else None), np.real(slope)


linalg_slogdet_grad = general("linalg_slogdet", _slogdet).tangent(_slogdet_tangent)
