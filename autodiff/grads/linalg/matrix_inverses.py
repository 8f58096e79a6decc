"""Rules of inverses and solutions, and helpers for stacks of matrices.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def as_columns(b: NDArray[Any], *vectors: Any) -> tuple[bool, list[Any]]:
    """Return whether the right-hand side `b` is one vector, and `vectors`, as columns if so."""
    single = b.ndim == 1
    return single, [v[..., None] if single else v for v in vectors]


def _solve_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    _, (g, x) = as_columns(b, g, out)
    return -np.matmul(np.linalg.solve(transpose(a), g), transpose(x))


def _solve_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    single, (g,) = as_columns(b, g)
    solution = np.linalg.solve(transpose(a), g)
    return solution[..., 0] if single else solution


def _solve_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    single, (x,) = as_columns(b, out)
    solution = -np.linalg.solve(a, np.matmul(t, x))
    return solution[..., 0] if single else solution


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


def _tensorsolve_b(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: Any = None) -> Any:
    square = np.reshape(np.transpose(a, _tensorsolve_order(a, axes)), (out.size, out.size))
    return np.reshape(np.linalg.solve(square.T, np.ravel(g)), b.shape)


def _tensorsolve_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], axes: Any = None) -> Any:
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
