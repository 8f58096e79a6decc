"""Rules of eigenvalues and singular values, and their vectors.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), extended to complex matrices. Where NumPy reads one triangle of a Hermitian matrix, the
adjoint lies in that triangle. Eigenvalues that are equal within rounding contribute nothing to each other's vectors;
`repeated` says for what this is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rules import Rule, general
from .matrix_inverses import _adjoint, _diagonal, _folded, _inverted, _mirrored, _product, _rectangle, _swap
from .repeated_eigenvalues import check_along, check_back, check_independent, check_lost, equal_pairs, on_diagonal, zero_values


def _inverse_gaps(w: Any) -> Any:
    """F_ij = 1 / (w_j - w_i), and 0 where they are equal within rounding."""
    gaps = w[..., None, :] - w[..., :, None]
    equal = equal_pairs(w)
    return np.where(equal, 0, 1 / np.where(equal, 1, gaps))


def _of_stacks(rule: Rule) -> Rule:
    """Say that formulas take a stack of adjoints with one more axis unaided.

    Where values are equal, a formula looks at the numbers of its adjoint: a batch is gone through one by one.
    """

    def pull(position: int, g: Any, out: Any, a: Any, **options: Any) -> Any:
        formula: Any = rule.formulas[0]
        return NotImplemented if _any_equal(out) else formula(g, out, a, **options)

    def push(tangents: Any, out: Any, a: Any, **options: Any) -> Any:
        formula: Any = rule.tangents[0]
        return NotImplemented if _any_equal(out) else formula(tangents[0], out, a, **options)

    return rule.one_by_one().batched(pull, push)


def _any_equal(out: Any) -> bool:
    """Whether two of the values of a decomposition are equal; singular values stand between the vectors."""
    w = out[-2] if isinstance(out, tuple) else out
    return bool(np.any(equal_pairs(w) & ~np.eye(w.shape[-1], dtype=bool)))


# a = v diag(w) v^H


def _eigh(g: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    turn = None if gv is None else np.matmul(_swap(v), gv)
    check_back("linalg_eigh", w, gw, turn)
    if turn is not None:
        middle = _inverse_gaps(w) * turn
    if gw is not None:
        middle = middle + on_diagonal(gw, w, "linalg_eigh")
    return _folded(_product(np.conjugate(v), middle, _swap(v)), UPLO.upper() == "U")


def _eigh_tangent(t: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    w, v = out
    inner = _product(_adjoint(v), _mirrored(t, UPLO.upper() == "U"), v)
    check_along("linalg_eigh", w, inner)
    return np.real(_diagonal(inner)), np.matmul(v, _inverse_gaps(w) * inner)


linalg_eigh_grad = _of_stacks(general("linalg_eigh", _eigh).tangent(_eigh_tangent))


def _eigvalsh(g: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    return _eigh((g, None), np.linalg.eigh(a, UPLO), a, UPLO)


def _eigvalsh_tangent(t: Any, out: Any, a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    v = np.linalg.eigh(a, UPLO)[1]
    return np.real(_diagonal(_product(_adjoint(v), _mirrored(t, UPLO.upper() == "U"), v)))


linalg_eigvalsh_grad = _of_stacks(general("linalg_eigvalsh", _eigvalsh).tangent(_eigvalsh_tangent))

# a v = v diag(w). NumPy's vectors have length one, and their largest component is real.


def _largest(v: Any) -> Any:
    """One over the largest component of each vector, in its place; zeros elsewhere."""
    if not v.size:
        return v
    size = np.abs(v)
    first = np.equal(np.arange(v.shape[-2])[:, None], np.argmax(size, axis=-2)[..., None, :])
    return np.where(first, 1 / np.where(first, v, 1), 0)


def _eig(g: Any, out: Any, a: Any) -> Any:
    (gw, gv), (w, v) = g, out
    middle: Any = 0
    turn: Any = None
    if gv is not None:
        along = np.sum(gv * v, axis=-2, keepdims=True)
        free = gv - np.real(along) * np.conjugate(v)
        if v.dtype.kind == "c":
            free = free - np.multiply(1j, np.imag(along)) * _largest(v)
        turn = np.matmul(_swap(v), free)
        middle = _inverse_gaps(w) * turn
    check_back("linalg_eig", w, gw, turn)
    check_independent("linalg_eig", v)
    if gw is not None:
        middle = middle + on_diagonal(gw, w, "linalg_eig")
    return np.linalg.solve(_swap(v), np.matmul(middle, _swap(v)))


def _eig_tangent(t: Any, out: Any, a: Any) -> Any:
    w, v = out
    check_independent("linalg_eig", v)
    inner = np.linalg.solve(v, np.matmul(t, v))
    check_along("linalg_eig", w, inner)
    moved = np.matmul(v, _inverse_gaps(w) * inner)
    scale = np.real(np.sum(np.conjugate(v) * moved, axis=-2, keepdims=True))
    if v.dtype.kind == "c":
        turn = np.imag(np.sum(_largest(v) * moved, axis=-2, keepdims=True))
        scale = scale + np.multiply(1j, turn)
    return _diagonal(inner), moved - v * scale


linalg_eig_grad = _of_stacks(general("linalg_eig", _eig).tangent(_eig_tangent))


def _eigvals_tangent(t: Any, out: Any, a: Any) -> Any:
    v = np.linalg.eig(a)[1]
    check_independent("linalg_eigvals", v)
    return _diagonal(np.linalg.solve(v, np.matmul(t, v)))


linalg_eigvals_grad = _of_stacks(
    general("linalg_eigvals", lambda g, out, a: _eig((g, None), np.linalg.eig(a), a)).tangent(_eigvals_tangent)
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


def _shared_turns(s: Any, inner: Any, rows: int, columns: int) -> Any:
    """How far vectors of equal singular values turn against each other, which unlike the turn of both is determined."""
    k = s.shape[-1]
    inner = inner[..., :k, :k]
    among = equal_pairs(s) & ~np.eye(k, dtype=bool) & ~zero_values(s)[..., None, :]
    turns = np.where(among, (inner - _adjoint(inner)) / 2, 0) * _inverted(s[..., None, :] + s[..., :, None])
    return _product(np.eye(rows, k), turns, np.eye(k, columns))


def _svd(g: Any, out: Any, a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    gu, gs, gvh = g if compute_uv else (None, g, None)
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    total, middle, turn, k = 0 * a, 0 * matrix, 0, s.shape[-1]
    against: Any = None
    both: Any = None
    moved: list[Any] = []
    if gs is not None:
        middle = _product(np.eye(u.shape[-1], k), on_diagonal(gs, s, "linalg_svd"), np.eye(k, v.shape[-1]))
    if gu is not None:
        inner = np.matmul(_swap(u), gu)
        against = both = inner[..., :k, :k]
        middle = middle + np.matmul(_svd_gaps(s, u.shape[-1]) * (inner - _adjoint(inner)), matrix)
        turn = turn + _diagonal(inner[..., :k, :k])
        moved.append((inner - _adjoint(inner))[..., k:, :k])
        if u.shape[-1] < u.shape[-2]:
            moved.append(gu - np.matmul(np.conjugate(u), inner))
            total = total + np.matmul(moved[-1] * inverse[..., None, :], _swap(v))
    if gvh is not None:
        gv = _adjoint(gvh)
        inner = np.matmul(_swap(v), gv)
        mine = inner[..., :k, :k]
        against, both = (-mine, mine) if gu is None else (against - mine, both + mine)
        middle = middle + np.matmul(matrix, _svd_gaps(s, v.shape[-1]) * (inner - _adjoint(inner)))
        turn = turn - _diagonal(inner[..., :k, :k])
        moved.append((inner - _adjoint(inner))[..., k:, :k])
        if v.shape[-1] < v.shape[-2]:
            moved.append(gv - np.matmul(np.conjugate(v), inner))
            total = total + np.matmul(np.conjugate(u), _adjoint(moved[-1] * inverse[..., None, :]))
    check_back("linalg_svd", s, gs, both, against)
    if moved:
        check_lost(s, a, gs, tuple(moved))
    if against is not None:
        middle = middle + _shared_turns(s, against, *middle.shape[-2:])
    if a.dtype.kind == "c" and (gu is not None or gvh is not None):
        middle = middle + _rectangle(np.multiply(0.5j, np.imag(turn)) * inverse, *matrix.shape[-2:])
    total = total + _product(np.conjugate(u), middle, _swap(v))
    return _folded(total) if hermitian else total


def _svd_tangent(t: Any, out: Any, a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    t = _mirrored(t) if hermitian else t
    u, s, v, matrix, inverse = _svd_parts(out, a, compute_uv, hermitian)
    inner = _product(_adjoint(u), t, v)
    square = inner[..., : s.shape[-1], : s.shape[-1]]
    diagonal = _diagonal(square)
    if not compute_uv:
        return np.real(diagonal)
    left, right = np.matmul(inner, _swap(matrix)), np.matmul(_swap(matrix), inner)
    check_along("linalg_svd", s, square)
    tall = u.shape[-2] > s.shape[-1]
    beside = np.matmul(t, v)[..., : s.shape[-1]] if tall else np.matmul(_adjoint(t), u)[..., : s.shape[-1]]
    check_lost(s, a, None, (beside - np.matmul((u if tall else v)[..., : s.shape[-1]], square if tall else _adjoint(square)),))
    left = _svd_gaps(s, u.shape[-1]) * (left + _adjoint(left)) + _shared_turns(s, square, *left.shape[-2:])
    right = _svd_gaps(s, v.shape[-1]) * (right + _adjoint(right)) - _shared_turns(s, square, *right.shape[-2:])
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


linalg_svd_grad = _of_stacks(general("linalg_svd", _svd).tangent(_svd_tangent))
