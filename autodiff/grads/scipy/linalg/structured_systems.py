"""Rules of SciPy's solvers of linear systems, and of inverses.

For ``op(a) x = b``, the cotangent of b is ``op(a)^-T g``, and that of op(a) is minus its outer product with x; see M. Giles,
"Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008). If SciPy reads only a
part of a matrix, the cotangent is zero elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.scipy import banded_matrices

from ....batching import pad_ndim, sum_over_operands
from ....rules import Rule, general
from ...linalg import as_columns, conj_transpose, fold_hermitian, matmul_chain, mirror_triangle, transpose, triangle_weights

Formula = Callable[..., Any]


def _declare_solver(opname: str, solve: Formula, solve_transposed: Formula, apply: Formula, pull_matrix: Formula) -> Rule:
    """Declare a solver of linear systems with one matrix.

    Parameters
    ----------
    opname : str
        The operation.
    solve, solve_transposed : callable
        ``(a, right, **options)`` solves for columns with the assumed matrix, and with its transpose.
    apply : callable
        ``(t, x, **options)`` multiplies the tangent of the assumed matrix by columns.
    pull_matrix : callable
        ``(y, x, a, **options)`` returns the cotangent of `a`, given that of the assumed matrix, ``-y @ x.T``.
    """

    def pull(position: int, g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], b: NDArray[Any], **options: object) -> Any:
        is_vector, (g, x) = as_columns(b, g, out)
        solution = _solve_stack(lambda right: solve_transposed(a, right, **options), a.ndim, g)
        if position == 0:
            return pull_matrix(solution, x, a, **options)
        return solution[..., 0] if is_vector else solution

    def push(
        position: int,
        t: NDArray[Any],
        out: NDArray[Any],
        a: NDArray[Any],
        b: NDArray[Any],
        batched: bool = False,
        **options: object,
    ) -> Any:
        is_vector, (x,) = as_columns(b, out)
        t = t[..., None] if is_vector and position else t
        t = pad_ndim(t, x.ndim) if batched else t
        right = t if position else -apply(t, x, **options)
        solution = _solve_stack(lambda right: solve(a, right, **options), a.ndim, right)
        return solution[..., 0] if is_vector else solution

    return (
        general(opname, lambda *args, **o: pull(0, *args, **o), lambda *args, **o: pull(1, *args, **o))
        .tangent(lambda *args, **o: push(0, *args, **o), lambda *args, **o: push(1, *args, **o))
        .batched(pull, sum_over_operands(functools.partial(push, batched=True)))
    )


# ------------------------------------------------------------------------------------------- matrices


def _solve(
    a: NDArray[Any], right: object, assume_a: str | None = None, lower: bool = False, transposed: bool = False, **_: object
) -> Any:
    return scipy.linalg.solve(a, right, lower=lower, assume_a=assume_a, transposed=transposed)


def _solve_transposed(
    a: NDArray[Any], right: object, assume_a: str | None = None, lower: bool = False, transposed: bool = False, **_: object
) -> Any:
    if transposed:
        return scipy.linalg.solve(a, right, lower=lower, assume_a=assume_a)
    return scipy.linalg.solve(transpose(a), right, lower=not lower, assume_a=_TRANSPOSED.get(assume_a or "", assume_a))


def _multiply(
    t: NDArray[Any], x: NDArray[Any], assume_a: str | None = None, lower: bool = False, transposed: bool = False, **_: object
) -> Any:
    if t.shape[-1] == 1:  # SciPy divides by the only element, for any number of right-hand rows
        return t * x
    t = Structure(assume_a, lower).read(t)
    return np.matmul(transpose(t) if transposed else t, x)


def _pull_matrix_solve(
    y: NDArray[Any],
    x: NDArray[Any],
    a: NDArray[Any],
    assume_a: str | None = None,
    lower: bool = False,
    transposed: bool = False,
    **_: object,
) -> Any:
    if a.size == 1:  # the special case of `_multiply`
        num_batch_axes = y.ndim - max(x.ndim, a.ndim)
        return np.reshape(-np.sum(y * x, axis=tuple(range(num_batch_axes, y.ndim))), (*y.shape[:num_batch_axes], *a.shape))
    total = -np.matmul(x, transpose(y)) if transposed else -np.matmul(y, transpose(x))
    return Structure(assume_a, lower).fold(total)


scipy_linalg_solve_grad = _declare_solver("scipy_linalg_solve", _solve, _solve_transposed, _multiply, _pull_matrix_solve)


# SciPy's option `trans` as a number: a, its transpose, its conjugate transpose
_TRANS = {"N": 0, "T": 1, "C": 2}


def _solve_triangular(
    a: NDArray[Any], right: object, trans: int = 0, lower: bool = False, unit_diagonal: bool = False, **_: object
) -> Any:
    return scipy.linalg.solve_triangular(a, right, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _solve_transposed_triangular(a: NDArray[Any], right: Any, trans: Any = 0, **options: Any) -> Any:
    trans = _TRANS.get(trans, trans)
    if trans == 2:
        return np.conjugate(_solve_triangular(a, np.conjugate(right), 0, **options))
    return _solve_triangular(a, right, 1 - trans, **options)


def _triangle(x: NDArray[Any], lower: bool, unit_diagonal: bool) -> Any:
    mask = np.tri(x.shape[-1], k=-1 if unit_diagonal else 0)
    return np.where(mask if lower else mask.T, x, 0)


def _multiply_triangular(
    t: NDArray[Any], x: NDArray[Any], trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **_: object
) -> Any:
    trans = _TRANS.get(trans, trans)
    t = _triangle(t, lower, unit_diagonal)
    return np.matmul((t, transpose(t), conj_transpose(t))[trans], x)


def _pull_matrix_triangular(
    y: NDArray[Any], x: NDArray[Any], a: NDArray[Any], trans: Any = 0, lower: Any = False, unit_diagonal: Any = False, **_: object
) -> Any:
    total = -np.matmul(y, transpose(x))
    trans = _TRANS.get(trans, trans)
    return _triangle((total, transpose(total), conj_transpose(total))[trans], lower, unit_diagonal)


scipy_linalg_solve_triangular_grad = _declare_solver(
    "scipy_linalg_solve_triangular",
    _solve_triangular,
    _solve_transposed_triangular,
    _multiply_triangular,
    _pull_matrix_triangular,
)


def _inv_structure(assume_a: Any, lower: Any) -> Structure:
    if assume_a == "diagonal":
        raise TypeError(
            "scipy.linalg.inv: with assume_a='diagonal' SciPy does not clear the other elements, so there is no derivative. Use "
            "np.diag(1 / np.diag(a))"
        )
    return Structure(assume_a, lower)


def _pull_inv(
    g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], assume_a: str | None = None, lower: bool = False, **_: object
) -> Any:
    return _inv_structure(assume_a, lower).fold(-matmul_chain(transpose(out), g, transpose(out)))


def _push_inv(
    t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], assume_a: str | None = None, lower: bool = False, **_: object
) -> Any:
    return -matmul_chain(out, _inv_structure(assume_a, lower).read(t), out)


scipy_linalg_inv_grad = (
    general("scipy_linalg_inv", _pull_inv)
    .tangent(_push_inv)
    .batched(
        lambda position, g, out, a, **options: _pull_inv(g, out, a, **options),
        lambda tangents, out, a, **options: _push_inv(tangents[0], out, a, **options),
    )
)

# ------------------------------------------------------------------------------------------ diagonals


def _solve_banded(ab: object, right: object, l_and_u: tuple[int, int], **_: object) -> Any:
    return scipy.linalg.solve_banded(l_and_u, ab, right)


def _solve_transposed_banded(ab: object, right: object, l_and_u: tuple[int, int], **_: object) -> Any:
    return scipy.linalg.solve_banded(l_and_u[::-1], banded_matrices.transpose(ab, *l_and_u), right)


scipy_linalg_solve_banded_grad = _declare_solver(
    "scipy_linalg_solve_banded",
    _solve_banded,
    _solve_transposed_banded,
    lambda t, x, l_and_u, **_: banded_matrices.multiply(t, x, *l_and_u),
    lambda y, x, ab, l_and_u, **_: -banded_matrices.outer_product(y, x, *l_and_u),
)


def _half_bands(n: int, below: int, above: int) -> Any:
    """Return 1 for the stored diagonals, 1/2 for the main one."""
    half_bands = np.ones((below + above + 1, n))
    half_bands[above] = 0.5
    return half_bands


def _solve_hermitian(ab: object, right: object, lower: bool = False, **_: object) -> Any:
    return scipy.linalg.solveh_banded(ab, right, lower=lower)


def _solve_transposed_hermitian(ab: Array, right: Array, lower: object = False, **_: object) -> Any:
    return np.conjugate(scipy.linalg.solveh_banded(ab, np.conjugate(right), lower=lower))


def _multiply_hermitian(t: NDArray[Any], x: NDArray[Any], lower: bool = False, **_: object) -> Any:
    below, above = banded_matrices.bandwidths(t, lower)
    halved = t * _half_bands(t.shape[-1], below, above)
    other = np.conjugate(banded_matrices.transpose(halved, below, above))
    return banded_matrices.multiply(halved, x, below, above) + banded_matrices.multiply(other, x, above, below)


def _pull_matrix_hermitian(y: NDArray[Any], x: NDArray[Any], ab: Array, lower: bool = False, **_: object) -> Any:
    below, above = banded_matrices.bandwidths(ab, lower)
    total = banded_matrices.outer_product(y, x, below, above) + np.conjugate(banded_matrices.outer_product(x, y, below, above))
    return -total * _half_bands(ab.shape[-1], below, above)


scipy_linalg_solveh_banded_grad = _declare_solver(
    "scipy_linalg_solveh_banded", _solve_hermitian, _solve_transposed_hermitian, _multiply_hermitian, _pull_matrix_hermitian
)

# solve_toeplitz ignores the first element of r, because that of c is in the corner of the matrix.


def _diagonal_sums(m: Any) -> Any:
    """Return the sums along the main diagonal and each diagonal below it."""
    n = m.shape[-1]
    columns = np.arange(n)
    rows = columns + columns[:, None]
    return np.sum(np.where(rows < n, m[..., np.minimum(rows, n - 1), columns], 0), axis=-1)


def _replace_first(c: NDArray[Any], r: Any) -> Any:
    """Return `r` with the first element of `c`."""
    return np.concatenate([np.broadcast_arrays(c[..., :1], r[..., :1])[0], r[..., 1:]], axis=-1)


def _solve_transposed_toeplitz(g: NDArray[Any], c: NDArray[Any], r: object, b: NDArray[Any]) -> Any:
    is_vector, (g,) = as_columns(b, g)
    return is_vector, scipy.linalg.solve_toeplitz((_replace_first(c, r), c), g)


def _pull_toeplitz_matrix(position: int, g: NDArray[Any], out: NDArray[Any], c: NDArray[Any], r: Array, b: NDArray[Any]) -> Any:
    if not out.size:
        return 0 * (r if position else c)
    _, y = _solve_transposed_toeplitz(g, c, r, b)
    _, (x,) = as_columns(b, out)
    outer = -np.matmul(y, transpose(x))
    if position == 0:
        return _diagonal_sums(outer)
    return _diagonal_sums(transpose(outer)) * (np.arange(r.shape[-1]) > 0)


def _pull_toeplitz_right(g: NDArray[Any], out: NDArray[Any], c: NDArray[Any], r: object, b: NDArray[Any], **_: object) -> Any:
    is_vector, y = _solve_transposed_toeplitz(g, c, r, b) if out.size else (False, g)
    return y[..., 0] if is_vector else y


def _push_toeplitz(matrix_tangent: Any, out: NDArray[Any], c: NDArray[Any], r: Any, b: NDArray[Any]) -> Any:
    is_vector, (x,) = as_columns(b, out)
    if not out.size:
        return 0 * out
    solution = -scipy.linalg.solve_toeplitz((c, r), np.matmul(matrix_tangent, x))
    return solution[..., 0] if is_vector else solution


scipy_linalg_solve_toeplitz_grad = general(
    "scipy_linalg_solve_toeplitz",
    lambda g, out, c, r, b, **_: _pull_toeplitz_matrix(0, g, out, c, r, b),
    lambda g, out, c, r, b, **_: _pull_toeplitz_matrix(1, g, out, c, r, b),
    _pull_toeplitz_right,
).tangent(
    lambda t, out, c, r, b, **_: _push_toeplitz(scipy.linalg.toeplitz(t, _replace_first(t, 0 * r)), out, c, r, b),
    lambda t, out, c, r, b, **_: _push_toeplitz(scipy.linalg.toeplitz(0 * c, _replace_first(0 * c, t)), out, c, r, b),
    lambda t, out, c, r, b, **_: scipy.linalg.solve_toeplitz((c, r), t),
)


_NAMES = {"gen": "general", "sym": "symmetric", "her": "hermitian", "pos": "hermitian", "positive definite": "hermitian"}
_TRANSPOSED = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}


class Structure:
    """The part of a matrix that SciPy reads under the assumption `assume_a`.

    Without an assumption SciPy detects the structure from all elements; the solution is that of the whole matrix.
    """

    def __init__(self, assume_a: str | None, lower: bool) -> None:
        self.kind = _NAMES.get(assume_a or "general", assume_a or "general")
        self.upper = not lower

    def _mask(self, n: int) -> Any:
        if self.kind == "diagonal":
            return np.eye(n)
        if self.kind == "tridiagonal":
            return np.tri(n, k=1) * np.tri(n, k=1).T
        if self.kind == "lower triangular":
            return np.tri(n)
        return np.tri(n).T if self.kind == "upper triangular" else None

    def read(self, a: NDArray[Any]) -> Any:
        """Return the assumed matrix."""
        n = a.shape[-1]
        if self.kind == "hermitian":
            return mirror_triangle(a, self.upper)
        if self.kind == "symmetric":
            triangle = a * triangle_weights(n, self.upper)
            return triangle + transpose(triangle)
        mask = self._mask(n)
        return a if mask is None else a * mask

    def fold(self, g: NDArray[Any]) -> Any:
        """Return the cotangent of the elements that are read, from that of the assumed matrix."""
        n = g.shape[-1]
        if self.kind == "hermitian":
            return fold_hermitian(g, self.upper)
        if self.kind == "symmetric":
            return (g + transpose(g)) * triangle_weights(n, self.upper)
        mask = self._mask(n)
        return g if mask is None else g * mask


def _solve_stack(solve: Callable[[Any], Any], ndim: int, right: NDArray[Any]) -> Any:
    """Solve for a stack of right-hand sides, which are merged into columns of one matrix for a single matrix (`ndim` 2)."""
    if ndim > 2 or right.ndim == 2:
        return solve(right)
    columns = np.moveaxis(right, -2, 0)
    solved = solve(np.reshape(columns, (columns.shape[0], math.prod(columns.shape[1:]))))
    return np.moveaxis(np.reshape(solved, columns.shape), 0, -2)
