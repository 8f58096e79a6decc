"""Rules of inverses, and of the products that are no matmul.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.ops import ensure_array

from ...rules import general, multilinear, unbroadcast


def _swap(x: Any) -> Any:
    """The matrices in a stack, transposed."""
    return np.swapaxes(x, -1, -2)


def _adjoint(x: Any) -> Any:
    """The matrices in a stack, transposed and conjugated."""
    return np.conjugate(_swap(x))


def _product(*matrices: Any) -> Any:
    """The matrix product, from the left."""
    return functools.reduce(np.matmul, matrices)


def _diagonal(x: Any) -> Any:
    """The diagonals of the matrices in a stack."""
    return np.einsum("...ii->...i", x)


def _rectangle(s: Any, rows: int, columns: int) -> Any:
    """Matrices with `s` on their diagonals."""
    k = s.shape[-1]
    return np.matmul(np.eye(rows, k) * s[..., None, :], np.eye(k, columns))


def _inverted(s: Any) -> Any:
    """1 / s, and 0 for 0."""
    return np.where(s == 0, 0, 1 / np.where(s == 0, 1, s))


def _inverse(x: Any, singular: Any) -> Any:
    """The inverses of the matrices in a stack; infinite and not a number, with NumPy's own error, where there is none."""
    if not np.any(singular):
        return np.linalg.inv(x)
    return np.linalg.inv(np.where(singular, np.eye(x.shape[-1]), x)) / np.where(singular, 0, 1)


def _half(n: int, upper: bool = False) -> Any:
    """1 in a triangle, 1/2 on the diagonal."""
    half = np.tri(n) - np.eye(n) / 2
    return half.T if upper else half


def _mirrored(x: Any, upper: bool = False) -> Any:
    """The Hermitian matrix of which NumPy reads one triangle."""
    half = x * _half(x.shape[-1], upper)
    return half + _adjoint(half)


def _folded(g: Any, upper: bool = False) -> Any:
    """The adjoint of the triangle that is read, from that of the Hermitian matrix."""
    return (g + _adjoint(g)) * _half(g.shape[-1], upper)


# ---------------------------------------------------------------------------------------------- inverses

linalg_inv_grad = general("linalg_inv", lambda g, out, a: -_product(_swap(out), g, _swap(out))).tangent(
    lambda t, out, a: -_product(out, t, out)
)


def _columns(a: Any, b: Any, *vectors: Any) -> tuple[bool, list[Any]]:
    """Whether the right-hand side of ``solve(a, b)`` is one vector; if so, vectors as columns."""
    single = b.ndim == 1
    return single, [v[..., None] if single else v for v in vectors]


def _solve_a(g: Any, out: Any, a: Any, b: Any) -> Any:
    _, (g, x) = _columns(a, b, g, out)
    return -np.matmul(np.linalg.solve(_swap(a), g), _swap(x))


def _solve_b(g: Any, out: Any, a: Any, b: Any) -> Any:
    single, (g,) = _columns(a, b, g)
    solved = np.linalg.solve(_swap(a), g)
    return solved[..., 0] if single else solved


def _solve_tangent(t: Any, out: Any, a: Any, b: Any) -> Any:
    single, (x,) = _columns(a, b, out)
    solved = -np.linalg.solve(a, np.matmul(t, x))
    return solved[..., 0] if single else solved


linalg_solve_grad = general("linalg_solve", _solve_a, _solve_b).tangent(
    _solve_tangent, lambda t, out, a, b: np.linalg.solve(a, t)
)


def _of_matrices(opname: str, weights: Callable[..., Any]) -> Any:
    """Declare a function of matrices to numbers by its partial derivatives, ``weights(out, x, **options)``."""

    def formula(g: Any, out: Any, x: Any, **options: Any) -> Any:
        return g[..., None, None] * weights(out[..., None, None], x, **options)

    def tangent(t: Any, out: Any, x: Any, **options: Any) -> Any:
        return np.sum(t * weights(out[..., None, None], x, **options), axis=(-2, -1))

    return general(opname, formula).tangent(tangent)


def _matrix_power(t: Any, a: Any, n: int) -> Any:
    """The block of ``[[a, t], [0, a]]**n`` beside the diagonal, the derivative of ``a**n`` along t."""
    size = a.shape[-1]
    rows = [np.concatenate([a, t], axis=-1), np.concatenate([np.zeros_like(a), a], axis=-1)]
    return np.linalg.matrix_power(np.concatenate(rows, axis=-2), n)[..., :size, size:]


linalg_matrix_power_grad = general("linalg_matrix_power", lambda g, out, a, n: _matrix_power(g, _swap(a), n)).tangent(
    lambda t, out, a, n: _matrix_power(t, a, n)
)


def _tensorinv(t: Any, out: Any, shape: tuple[int, ...], swap: Callable[[Any], Any]) -> Any:
    n = math.isqrt(out.size)
    inverse = swap(np.reshape(out, (n, n)))
    return np.reshape(-_product(inverse, np.reshape(t, (n, n)), inverse), shape)


linalg_tensorinv_grad = general("linalg_tensorinv", lambda g, out, a, ind=2: _tensorinv(g, out, a.shape, _swap)).tangent(
    lambda t, out, a, ind=2: _tensorinv(t, out, out.shape, lambda x: x)
)


def _tensorsolve_order(a: Any, axes: Any) -> list[int]:
    """The order in which tensorsolve takes the axes of a."""
    last = [] if axes is None else [axis % a.ndim for axis in axes]
    return [i for i in range(a.ndim) if i not in last] + last


def _tensorsolve_b(g: Any, out: Any, a: Any, b: Any, axes: Any = None) -> Any:
    square = np.reshape(np.transpose(a, _tensorsolve_order(a, axes)), (out.size, out.size))
    return np.reshape(np.linalg.solve(square.T, np.ravel(g)), b.shape)


def _tensorsolve_a(g: Any, out: Any, a: Any, b: Any, axes: Any = None) -> Any:
    order = _tensorsolve_order(a, axes)
    moved = -np.tensordot(_tensorsolve_b(g, out, a, b, axes), out, axes=0)
    return np.transpose(np.reshape(moved, [a.shape[i] for i in order]), np.argsort(order).tolist())


def _tensorsolve_tangent(t: Any, out: Any, a: Any, b: Any, axes: Any = None) -> Any:
    moved = np.transpose(t, _tensorsolve_order(a, axes))
    slope = np.tensordot(moved, out, axes=out.ndim)
    return -np.linalg.tensorsolve(a, np.reshape(slope, b.shape), axes=axes)


linalg_tensorsolve_grad = general("linalg_tensorsolve", _tensorsolve_a, _tensorsolve_b).tangent(
    _tensorsolve_tangent, lambda t, out, a, b, axes=None: np.linalg.tensorsolve(a, t, axes=axes)
)

# ----------------------------------------------------------------------------------------- products


def _kron_parts(g: Any, x: Any, other: Any, mine: int) -> Any:
    """The adjoint of a Kronecker product, contracted with the other factor; axes alternate between the factors."""
    nd = max(x.ndim, other.ndim)
    shapes = [(1,) * (nd - y.ndim) + y.shape for y in (x, other)]
    pairs = [shape[k] for k in range(nd) for shape in (shapes if mine == 0 else shapes[::-1])]
    factor = np.reshape(other, [n if i % 2 != mine else 1 for i, n in enumerate(pairs)])
    return np.reshape(np.sum(np.reshape(g, pairs) * factor, axis=tuple(range(1 - mine, 2 * nd, 2))), x.shape)


kron_grad = multilinear(
    "kron",
    lambda g, out, a, b: _kron_parts(g, ensure_array(a), ensure_array(b), 0),
    lambda g, out, a, b: _kron_parts(g, ensure_array(b), ensure_array(a), 1),
).moving()


def _in_space(x: Any, axis: int) -> Any:
    """Vectors along the last axis; those in the plane with a third component, 0."""
    x = np.moveaxis(x, axis, -1)
    return x if x.shape[-1] == 3 else np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)


def _cross(mine: int, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
    """a x b is perpendicular to both: the adjoint turns around, b x g and g x a."""
    axis = options.get("axis")
    axes = [axis if axis is not None else options.get(name, -1) for name in ("axisa", "axisb", "axisc")]
    x, other = operands[mine], _in_space(ensure_array(operands[1 - mine]), axes[1 - mine])
    length = np.shape(x)[axes[mine]]
    if length == np.shape(operands[1 - mine])[axes[1 - mine]] == 2:
        g = g[..., None] * np.array([0, 0, 1])
    else:
        g = np.moveaxis(g, axes[2], -1)
    turned = np.cross(other, g) if mine == 0 else np.cross(g, other)
    return _unrepeated(turned[..., :length], np.moveaxis(ensure_array(x), axes[mine], -1), axes[mine])


def _unrepeated(g: Any, x: Any, axis: int) -> Any:
    """An adjoint with repetition undone, before its last axis moves back to its place."""
    return np.moveaxis(unbroadcast(g, x.shape), -1, axis)


cross_grad = multilinear("cross", functools.partial(_cross, 0), functools.partial(_cross, 1))


# vecdot and vecmat conjugate their first operand; the conjugate of the adjoint's coefficient goes back to it.
vecdot_grad = multilinear(
    "vecdot",
    lambda g, out, a, b: np.conjugate(g[..., None] * b),
    lambda g, out, a, b: g[..., None] * np.conjugate(a),
).moving()


def _vecdot(g: Any, x: Any, other: Any, axis: int) -> Any:
    x, other = (np.moveaxis(ensure_array(y), axis, -1) for y in (x, other))
    return _unrepeated(g[..., None] * other, x, axis)


linalg_vecdot_grad = multilinear(
    "linalg_vecdot",
    lambda g, out, a, b, axis=-1: np.conjugate(_vecdot(g, a, b, axis)),
    lambda g, out, a, b, axis=-1: _vecdot(g, b, np.conjugate(a), axis),
).moving()
matvec_grad = multilinear(
    "matvec",
    lambda g, out, a, b: g[..., None] * b[..., None, :],
    lambda g, out, a, b: np.matmul(_swap(a), g[..., None])[..., 0],
).moving()
vecmat_grad = multilinear(
    "vecmat",
    lambda g, out, a, b: np.conjugate(np.matmul(b, g[..., None])[..., 0]),
    lambda g, out, a, b: np.conjugate(a)[..., None] * g[..., None, :],
).moving()


def _multi_dot(position: int, g: Any, out: Any, *operands: Any) -> Any:
    """The adjoint between the transposed products of the factors before and after."""
    last = len(operands) - 1
    factors = [np.reshape(x, (-1, 1) if i == last else (1, -1)) if x.ndim < 2 else x for i, x in enumerate(operands)]
    g = np.reshape(g, (factors[0].shape[0], factors[-1].shape[1]))
    if position:
        g = np.matmul(_product(*factors[:position]).T, g)
    if position < last:
        g = np.matmul(g, _product(*factors[position + 1 :]).T)
    return np.reshape(g, operands[position].shape)


multi_dot_grad = multilinear("multi_dot", variadic=_multi_dot).moving()
