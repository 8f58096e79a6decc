"""Rules of linear algebra: inverses, determinants, norms, decompositions, and the products that are no matmul.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), extended to complex matrices. Where NumPy reads one triangle of a Hermitian matrix, the
adjoint lies in that triangle. Eigenvalues that are equal within rounding contribute nothing to each other's vectors:
exact for what does not depend on the choice of a basis, to first order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..broadcasting import unbroadcast
from ..registry import general, multilinear, reduction
from .reductions import _shares


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


# ----------------------------------------------------------------------------- inverses and determinants

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


def _cofactors(out: Any, x: Any) -> Any:
    """det(x) times the transposed inverse; of singular matrices, the determinants of the minors."""
    if np.all(out != 0):
        return out * _swap(np.linalg.inv(x))
    n = x.shape[-1]
    others = np.array([[j for j in range(n) if j != i] for i in range(n)], int).reshape(n, n - 1)
    minors = x[..., others[:, None, :, None], others[None, :, None, :]]
    return np.linalg.det(minors) * (-1.0) ** np.add.outer(np.arange(n), np.arange(n))


linalg_det_grad = _of_matrices("linalg_det", _cofactors)


def _slogdet(g: Any, out: Any, a: Any) -> Any:
    """The logarithm's derivative is the transposed inverse; a complex sign turns by its imaginary part."""
    turn = None if g[0] is None or out[0].dtype.kind != "c" else np.multiply(1j, np.imag(g[0] * out[0]))
    parts = [part for part in (turn, g[1]) if part is not None]
    if not parts:
        return 0 * a
    return sum(parts[1:], parts[0])[..., None, None] * _swap(np.linalg.inv(a))


def _slogdet_tangent(t: Any, out: Any, a: Any) -> Any:
    slope = np.einsum("...ij,...ji->...", np.linalg.inv(a), t)
    return (out[0] * np.multiply(1j, np.imag(slope)) if out[0].dtype.kind == "c" else None), np.real(slope)


linalg_slogdet_grad = general("linalg_slogdet", _slogdet).tangent(_slogdet_tangent)


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

# -------------------------------------------------------------------------------------------- norms


def _norm(out: Any, x: Any, axis: Any = None, ord: Any = None, **_: Any) -> Any:  # noqa: A002
    """The partial derivatives of a norm; 0, a subgradient, where the norm or an element is 0."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if ord is None or (isinstance(ord, str) and ord in ("f", "fro")) or (len(axes) == 1 and ord == 2):
        return np.conjugate(x) / np.where(out == 0, 1, out)
    if isinstance(ord, str) or (len(axes) == 2 and abs(ord) == 2):
        matrices = np.moveaxis(x, axes, (-2, -1))
        u, s, vh = np.linalg.svd(matrices, full_matrices=False)
        weights = _swap(np.matmul(_swap(vh), _swap(u * (_winners(s, ord) * np.sign(s))[..., None, :])))
        return np.moveaxis(np.conjugate(weights), (-2, -1), axes)
    sizes, signs = np.abs(x), np.conjugate(np.sign(x))
    if len(axes) == 2:
        summed, along = axes if abs(ord) == 1 else axes[::-1]
        return _winners(np.sum(sizes, axis=summed, keepdims=True), ord, along) * signs
    if abs(ord) == np.inf:
        return _winners(sizes, ord, axes[0]) * signs
    if ord == 0:
        return np.zeros_like(x)
    return signs if ord == 1 else signs * (sizes / np.where(out == 0, 1, out)) ** (ord - 1)


def _winners(s: Any, ord: Any, axis: int = -1) -> Any:  # noqa: A002
    """Even shares for the largest numbers, for the smallest if `ord` is negative; ones for their sum, the nuclear norm."""
    if isinstance(ord, str):
        return np.ones_like(s)
    best = np.max(s, axis=axis, keepdims=True, initial=0) if ord > 0 else np.min(s, axis=axis, keepdims=True)
    return _shares(s < best if ord > 0 else s > best, best, s, axis)


linalg_norm_grad = reduction("linalg_norm", _norm)


def _cond(out: Any, x: Any, p: Any = None) -> Any:
    """The partial derivatives of a condition number, by singular values or by the norms of x and its inverse."""
    if p is None or abs(p if not isinstance(p, str) else 0) == 2:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        slope = out[..., 0] * (_winners(s, 2) - _winners(s, -2)) / s
        return np.conjugate(np.matmul(u * (-slope if p == -2 else slope)[..., None, :], vh))
    inverse = np.linalg.inv(x)
    sizes = [np.linalg.norm(y, p, axis=(-2, -1), keepdims=True) for y in (x, inverse)]
    first, second = (_norm(n, y, (-2, -1), p) for n, y in zip(sizes, (x, inverse), strict=True))
    return sizes[1] * first - sizes[0] * _product(_swap(inverse), second, _swap(inverse))


linalg_cond_grad = _of_matrices("linalg_cond", _cond)

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
    lambda g, out, a, b: _kron_parts(g, np.asanyarray(a), np.asanyarray(b), 0),
    lambda g, out, a, b: _kron_parts(g, np.asanyarray(b), np.asanyarray(a), 1),
)


def _in_space(x: Any, axis: int) -> Any:
    """Vectors along the last axis; those in the plane with a third component, 0."""
    x = np.moveaxis(x, axis, -1)
    return x if x.shape[-1] == 3 else np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)


def _cross(mine: int, g: Any, out: Any, *operands: Any, **options: Any) -> Any:
    """a x b is perpendicular to both: the adjoint turns around, b x g and g x a."""
    axis = options.get("axis")
    axes = [axis if axis is not None else options.get(name, -1) for name in ("axisa", "axisb", "axisc")]
    x, other = operands[mine], _in_space(np.asanyarray(operands[1 - mine]), axes[1 - mine])
    length = np.shape(x)[axes[mine]]
    if length == np.shape(operands[1 - mine])[axes[1 - mine]] == 2:
        g = g[..., None] * np.array([0, 0, 1])
    else:
        g = np.moveaxis(g, axes[2], -1)
    turned = np.cross(other, g) if mine == 0 else np.cross(g, other)
    return _unrepeated(turned[..., :length], np.moveaxis(np.asanyarray(x), axes[mine], -1), axes[mine])


def _unrepeated(g: Any, x: Any, axis: int) -> Any:
    """An adjoint with repetition undone, before its last axis moves back to its place."""
    return np.moveaxis(unbroadcast(g, x.shape), -1, axis)


cross_grad = multilinear("cross", functools.partial(_cross, 0), functools.partial(_cross, 1))

# vecdot and vecmat conjugate their first operand; the conjugate of the adjoint's coefficient goes back to it.
vecdot_grad = multilinear(
    "vecdot",
    lambda g, out, a, b: np.conjugate(g[..., None] * b),
    lambda g, out, a, b: g[..., None] * np.conjugate(a),
)


def _vecdot(g: Any, x: Any, other: Any, axis: int) -> Any:
    x, other = (np.moveaxis(np.asanyarray(y), axis, -1) for y in (x, other))
    return _unrepeated(g[..., None] * other, x, axis)


linalg_vecdot_grad = multilinear(
    "linalg_vecdot",
    lambda g, out, a, b, axis=-1: np.conjugate(_vecdot(g, a, b, axis)),
    lambda g, out, a, b, axis=-1: _vecdot(g, b, np.conjugate(a), axis),
)
matvec_grad = multilinear(
    "matvec",
    lambda g, out, a, b: g[..., None] * b[..., None, :],
    lambda g, out, a, b: np.matmul(_swap(a), g[..., None])[..., 0],
)
vecmat_grad = multilinear(
    "vecmat",
    lambda g, out, a, b: np.conjugate(np.matmul(b, g[..., None])[..., 0]),
    lambda g, out, a, b: np.conjugate(a)[..., None] * g[..., None, :],
)


def _multi_dot(position: int, g: Any, out: Any, *operands: Any) -> Any:
    """The adjoint between the transposed products of the factors before and after."""
    last = len(operands) - 1
    factors = [np.reshape(x, (-1, 1) if i == last else (1, -1)) if x.ndim == 1 else x for i, x in enumerate(operands)]
    g = np.reshape(g, (factors[0].shape[0], factors[-1].shape[1]))
    if position:
        g = np.matmul(_product(*factors[:position]).T, g)
    if position < last:
        g = np.matmul(g, _product(*factors[position + 1 :]).T)
    return np.reshape(g, operands[position].shape)


multi_dot_grad = multilinear("multi_dot", variadic=_multi_dot)

# ----------------------------------------------------------------------------------- decompositions


def _inverse_gaps(w: Any) -> Any:
    """F_ij = 1 / (w_j - w_i), and 0 where they are equal within rounding."""
    gaps = w[..., None, :] - w[..., :, None]
    size = np.max(np.abs(w), axis=-1, keepdims=True, initial=0)[..., None]
    equal = np.abs(gaps) <= size * (w.shape[-1] * np.finfo(w.dtype).eps)
    return np.where(equal, 0, 1 / np.where(equal, 1, gaps))


def _cholesky(g: Any, out: Any, a: Any, upper: bool = False) -> Any:
    lower, g = (_adjoint(out), _adjoint(g)) if upper else (out, g)
    inverse = np.linalg.inv(lower)
    middle = _half(a.shape[-1]) * np.matmul(_swap(lower), g)
    return _folded(_product(_swap(inverse), middle, np.conjugate(inverse)), upper)


def _cholesky_tangent(t: Any, out: Any, a: Any, upper: bool = False) -> Any:
    lower = _adjoint(out) if upper else out
    inverse = np.linalg.inv(lower)
    moved = np.matmul(lower, _half(a.shape[-1]) * _product(inverse, _mirrored(t, upper), _adjoint(inverse)))
    return _adjoint(moved) if upper else moved


linalg_cholesky_grad = general("linalg_cholesky", _cholesky).tangent(_cholesky_tangent)

# a = v diag(w) v^H


def _eigh(g: Any, out: Any, a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    if gv is not None:
        middle = _inverse_gaps(w) * np.matmul(_swap(v), gv)
    if gw is not None:
        middle = middle + _rectangle(gw, *v.shape[-2:])
    return _folded(_product(np.conjugate(v), middle, _swap(v)), UPLO.upper() == "U")


def _eigh_tangent(t: Any, out: Any, a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    w, v = out
    inner = _product(_adjoint(v), _mirrored(t, UPLO.upper() == "U"), v)
    return np.real(_diagonal(inner)), np.matmul(v, _inverse_gaps(w) * inner)


linalg_eigh_grad = general("linalg_eigh", _eigh).tangent(_eigh_tangent)
linalg_eigvalsh_grad = general(
    "linalg_eigvalsh", lambda g, out, a, UPLO="L": _eigh((g, None), np.linalg.eigh(a, UPLO), a, UPLO)
).tangent(lambda t, out, a, UPLO="L": _eigh_tangent(t, np.linalg.eigh(a, UPLO), a, UPLO)[0])

# a v = v diag(w). NumPy's vectors have length one, and their largest component is real.


def _largest(v: Any) -> Any:
    """One over the largest component of each vector, in its place; zeros elsewhere."""
    size = np.abs(v)
    first = np.equal(np.arange(v.shape[-2])[:, None], np.argmax(size, axis=-2)[..., None, :])
    return np.where(first, 1 / np.where(first, v, 1), 0)


def _eig(g: Any, out: Any, a: Any) -> Any:
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    if gv is not None:
        along = np.sum(gv * v, axis=-2, keepdims=True)
        free = gv - np.real(along) * np.conjugate(v)
        if v.dtype.kind == "c":
            free = free - np.multiply(1j, np.imag(along)) * _largest(v)
        middle = _inverse_gaps(w) * np.matmul(_swap(v), free)
    if gw is not None:
        middle = middle + _rectangle(gw, *v.shape[-2:])
    return np.linalg.solve(_swap(v), np.matmul(middle, _swap(v)))


def _eig_tangent(t: Any, out: Any, a: Any) -> Any:
    w, v = out
    inner = np.linalg.solve(v, np.matmul(t, v))
    moved = np.matmul(v, _inverse_gaps(w) * inner)
    scale = np.real(np.sum(np.conjugate(v) * moved, axis=-2, keepdims=True))
    if v.dtype.kind == "c":
        turn = np.imag(np.sum(_largest(v) * moved, axis=-2, keepdims=True))
        scale = scale + np.multiply(1j, turn)
    return _diagonal(inner), moved - v * scale


linalg_eig_grad = general("linalg_eig", _eig).tangent(_eig_tangent)
linalg_eigvals_grad = general("linalg_eigvals", lambda g, out, a: _eig((g, None), np.linalg.eig(a), a)).tangent(
    lambda t, out, a: _eig_tangent(t, np.linalg.eig(a), a)[0]
)

# a = u diag(s) vh


def _svd_parts(out: Any, a: Any, compute_uv: bool, hermitian: bool) -> tuple[Any, Any, Any, Any, Any]:
    """u, s, v; s as a matrix of as many rows and columns as they have vectors; 1 / s."""
    u, s, vh = out if compute_uv else np.linalg.svd(a, full_matrices=False, hermitian=hermitian)
    return u, s, _adjoint(vh), _rectangle(s, u.shape[-1], vh.shape[-2]), _inverted(s)


def _svd_gaps(s: Any, n: int) -> Any:
    """1 / (s_j^2 - s_i^2), for the n vectors on one side; those that have no singular value have 0."""
    s = np.matmul(np.eye(n, s.shape[-1]), s[..., None])[..., 0]
    return _inverse_gaps(s) * _inverted(s[..., None, :] + s[..., :, None])


def _svd(g: Any, out: Any, a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    gu, gs, gvh = g if compute_uv else (None, g, None)
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    total, middle, turn, k = 0 * a, 0 * matrix, 0, s.shape[-1]
    if gs is not None:
        middle = _rectangle(gs, *matrix.shape[-2:])
    if gu is not None:
        inner = np.matmul(_swap(u), gu)
        middle = middle + np.matmul(_svd_gaps(s, u.shape[-1]) * (inner - _adjoint(inner)), matrix)
        turn = turn + _diagonal(inner[..., :k, :k])
        if u.shape[-1] < u.shape[-2]:
            total = total + np.matmul((gu - np.matmul(np.conjugate(u), inner)) * inverse[..., None, :], _swap(v))
    if gvh is not None:
        gv = _adjoint(gvh)
        inner = np.matmul(_swap(v), gv)
        middle = middle + np.matmul(matrix, _svd_gaps(s, v.shape[-1]) * (inner - _adjoint(inner)))
        turn = turn - _diagonal(inner[..., :k, :k])
        if v.shape[-1] < v.shape[-2]:
            rest = (gv - np.matmul(np.conjugate(v), inner)) * inverse[..., None, :]
            total = total + np.matmul(np.conjugate(u), _adjoint(rest))
    if a.dtype.kind == "c" and (gu is not None or gvh is not None):
        middle = middle + _rectangle(np.multiply(0.5j, np.imag(turn)) * inverse, *matrix.shape[-2:])
    total = total + _product(np.conjugate(u), middle, _swap(v))
    return _folded(total) if hermitian else total


def _svd_tangent(t: Any, out: Any, a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    t = _mirrored(t) if hermitian else t
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    inner = _product(_adjoint(u), t, v)
    diagonal = _diagonal(inner[..., : s.shape[-1], : s.shape[-1]])
    if not compute_uv:
        return np.real(diagonal)
    left, right = np.matmul(inner, _swap(matrix)), np.matmul(_swap(matrix), inner)
    left = _svd_gaps(s, u.shape[-1]) * (left + _adjoint(left))
    right = _svd_gaps(s, v.shape[-1]) * (right + _adjoint(right))
    if a.dtype.kind == "c":
        turn = np.multiply(0.5j, np.imag(diagonal)) * inverse
        left = left + _rectangle(turn, *left.shape[-2:])
        right = right - _rectangle(turn, *right.shape[-2:])
    du, dv = np.matmul(u, left), np.matmul(v, right)
    if u.shape[-1] < u.shape[-2]:
        du = du + (np.matmul(t, v) - np.matmul(u, inner)) * inverse[..., None, :]
    if v.shape[-1] < v.shape[-2]:
        dv = dv + (np.matmul(_adjoint(t), u) - np.matmul(v, _adjoint(inner))) * inverse[..., None, :]
    return du, np.real(diagonal), _adjoint(dv)


linalg_svd_grad = general("linalg_svd", _svd).tangent(_svd_tangent)

# a = q r; of a wide matrix, the square part in front settles q.


def _qr_parts(out: Any, a: Any, mode: str) -> tuple[Any, Any, int]:
    """q, r and the number of columns of q."""
    tall = a.shape[-2] > a.shape[-1]
    if mode not in ("reduced", "complete", "r") or (mode == "complete" and tall):
        what = f"mode={mode!r}" + (" of a tall matrix" if mode == "complete" else "")
        raise TypeError(f"np.linalg.qr: the derivative with {what} is not known; use mode='reduced'")
    q, r = np.linalg.qr(a) if mode == "r" else out
    return q, r, q.shape[-1]


def _qr(g: Any, out: Any, a: Any, mode: str = "reduced") -> Any:
    gq, gr = (None, g) if mode == "r" else g
    q, r, k = _qr_parts(out, a, mode)
    inner = 0 if gq is None else np.matmul(_swap(q), gq)
    turn = inner if gr is None else inner - np.matmul(gr, _swap(r))
    back = np.matmul(np.conjugate(q), (turn - _adjoint(turn)) * _half(k) - inner)
    back = back if gq is None else back + gq
    total = _swap(np.linalg.solve(r[..., :k], _swap(back)))
    if a.shape[-1] > k:
        total = np.concatenate([total, np.zeros_like(a[..., k:])], axis=-1)
    return total if gr is None else total + np.matmul(np.conjugate(q), gr)


def _qr_tangent(t: Any, out: Any, a: Any, mode: str = "reduced") -> Any:
    q, r, k = _qr_parts(out, a, mode)
    moved = _swap(np.linalg.solve(_swap(r[..., :k]), _swap(t[..., :k])))
    inner = np.matmul(_adjoint(q), moved)
    below = inner * np.tri(k, k=-1)
    turn = below - _adjoint(below)
    if a.dtype.kind == "c":
        turn = turn + np.multiply(1j, np.imag(inner * np.eye(k)))
    dr = np.matmul(_adjoint(q), t) - np.matmul(turn, r)
    return dr if mode == "r" else (np.matmul(q, turn - inner) + moved, dr)


linalg_qr_grad = general("linalg_qr", _qr).tangent(_qr_tangent)
