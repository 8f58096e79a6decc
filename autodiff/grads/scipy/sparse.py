"""Rules of ``scipy.sparse`` and ``scipy.sparse.linalg``.

The cotangent of the elements of a matrix is the cotangent of the dense matrix at their positions: ``g[row] * x[col]`` for
``A @ x``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.graph import to_values

from ...rules import general, linear, multilinear

# ------------------------------------------------------------------------------------------------ products and solutions


def _sparse() -> Any:
    """Return the module of the operations, imported on first use because it imports SciPy."""
    from compgraph.scipy import sparse

    return sparse


def _at_positions(g: NDArray[Any], x: NDArray[Any], pattern: Any) -> Any:
    """Return ``outer(g, x)`` at the positions of the elements, summed over the columns of matrices."""
    products = g[pattern.rows] * x[pattern.cols]
    return products if products.ndim == 1 else np.sum(products, axis=1)


scipy_sparse_times_grad = linear("scipy_sparse_times", lambda g, out, x, *, matrix: _sparse().times(g, matrix=matrix.transpose()))

scipy_sparse_matmul_grad = multilinear(
    "scipy_sparse_matmul",
    lambda g, out, data, x, *, pattern: _at_positions(g, x, pattern),
    lambda g, out, data, x, *, pattern: _sparse().product(data, g, pattern=pattern.T),
).not_batchable()

scipy_sparse_toarray_grad = linear(
    "scipy_sparse_toarray", lambda g, out, data, *, pattern: g[pattern.rows, pattern.cols]
).not_batchable()

scipy_sparse_solve_grad = (
    general(
        "scipy_sparse_solve",
        lambda g, out, data, b, *, pattern, **o: (
            -_at_positions(_sparse().solution(data, g, pattern=pattern.T, **o), out, pattern)
        ),
        lambda g, out, data, b, *, pattern, **o: _sparse().solution(data, g, pattern=pattern.T, **o),
    )
    .tangent(
        lambda t, out, data, b, *, pattern, **o: (
            -_sparse().solution(data, _sparse().product(t, out, pattern=pattern), pattern=pattern)
        ),
        lambda t, out, data, b, *, pattern, **o: _sparse().solution(data, t, pattern=pattern, **o),
    )
    .not_batchable()
)


# ------------------------------------------------------------------------- factorizations, exponentials and eigenvectors

TRANSPOSED = {"N": "T", "T": "N"}


def _sparse_linalg() -> Any:
    """Return the module of the operations, imported on first use because it imports SciPy."""
    from compgraph.scipy.sparse import linalg

    return linalg


def _pull_b(
    g: NDArray[Any], out: NDArray[Any], data: Array, b: NDArray[Any], *, pattern: object, factorization: object, trans: str = "N"
) -> Any:
    return _sparse_linalg().solve_factored(data, g, pattern=pattern, factorization=factorization, trans=TRANSPOSED[trans])


def _pull_elements(
    g: NDArray[Any], out: NDArray[Any], data: Array, b: NDArray[Any], *, pattern: Any, factorization: object, trans: str = "N"
) -> Any:
    b_cotangent = _pull_b(g, out, data, b, pattern=pattern, factorization=factorization, trans=trans)
    return -_at_positions(b_cotangent, out, pattern if trans == "N" else pattern.T)


def _push_elements(
    t: NDArray[Any], out: NDArray[Any], data: Array, b: NDArray[Any], *, pattern: Any, factorization: object, trans: str = "N"
) -> Any:
    product = _sparse().product(t, out, pattern=pattern if trans == "N" else pattern.T)
    return -_sparse_linalg().solve_factored(data, product, pattern=pattern, factorization=factorization, trans=trans)


scipy_sparse_linalg_factored_grad = (
    general("scipy_sparse_linalg_factored", _pull_elements, _pull_b)
    .tangent(_push_elements, lambda t, out, data, b, **o: _sparse_linalg().solve_factored(data, t, **o))
    .not_batchable()
)

scipy_sparse_linalg_incomplete_grad = linear(
    "scipy_sparse_linalg_incomplete",
    lambda g, out, b, *, lu, trans="N": _sparse_linalg().solve_incomplete(g, lu=lu, trans=TRANSPOSED[trans]),
).not_batchable()

scipy_sparse_linalg_expm_multiply_grad = linear(
    "scipy_sparse_linalg_expm_multiply",
    lambda g, out, x, *, matrix: _sparse_linalg().apply_expm(g, matrix=matrix.transpose()),
).not_batchable()

# A v = w v with v.T v = 1, A real and symmetric. With K = [[A - w, -v], [-v.T, 0]], which is symmetric and regular where w is a
# simple eigenvalue, K [dv, dw] = [-dA v, 0] (I. Nelson, "Simplified calculation of eigenvector derivatives", 1976).


def _bordered_matrix(data: Array, w: NDArray[Any], v: NDArray[Any], pattern: Any) -> tuple[Any, Any]:
    """Return the elements of K and their pattern."""
    n = pattern.shape[0]
    diagonal, last = np.arange(n), np.full(n, n)
    rows = np.concatenate([pattern.rows, diagonal, diagonal, last])
    cols = np.concatenate([pattern.cols, diagonal, last, diagonal])
    matrix = scipy.sparse.coo_array((np.ones(rows.size), (rows, cols)), shape=(n + 1, n + 1))
    elements = np.concatenate([data, -w * np.ones(n), -v, -v])
    _require_simple(to_values(elements), matrix)
    return elements, _sparse().Pattern(matrix)


def _require_simple(elements: Array, matrix: Any) -> None:
    """Raise if K is singular up to rounding: the eigenvalue is not simple, and its vectors have no derivative."""
    matrix_k = scipy.sparse.csc_array((elements, (matrix.row, matrix.col)), shape=matrix.shape)
    probe = np.cos(np.arange(matrix_k.shape[0]) + 0.5)
    try:
        scaled_norm = float(np.linalg.norm(scipy.sparse.linalg.splu(matrix_k).solve(probe))) * float(np.max(np.abs(elements)))
    except RuntimeError:  # exactly singular
        scaled_norm = np.inf
    if not scaled_norm < 1e11 * float(np.linalg.norm(probe)):  # an estimate of the condition number
        raise np.linalg.LinAlgError(
            "an eigenvalue or singular value of a sparse matrix is repeated: it has no derivative. Use np.linalg.eigh or "
            "np.linalg.svd of the dense matrix for functions that are symmetric in the repeated values"
        )


def _pull_pairs(g: NDArray[Any], out: NDArray[Any], data: Array, *, pattern: Any, find: Callable[..., Any]) -> Any:
    (gw, gv), (w, v) = g, out
    total: Any = 0
    for k in range(v.shape[1]):
        if gw is not None:
            total = total + gw[k] * (v[:, k][pattern.rows] * v[:, k][pattern.cols])
        if gv is not None:
            elements, bordered_pattern = _bordered_matrix(data, w[k], v[:, k], pattern)
            solution = _sparse().solution(elements, np.concatenate([gv[:, k], np.zeros(1)]), pattern=bordered_pattern.T)
            total = total - _at_positions(solution[:-1], v[:, k], pattern)
    return total


def _push_pairs(t: NDArray[Any], out: tuple[Any, ...], data: Array, *, pattern: object, find: Callable[..., Any]) -> Any:
    w, v = out
    pair_tangents = []
    for k in range(v.shape[1]):
        elements, bordered_pattern = _bordered_matrix(data, w[k], v[:, k], pattern)
        product = _sparse().product(t, v[:, k], pattern=pattern)
        pair_tangents.append(_sparse().solution(elements, np.concatenate([-product, np.zeros(1)]), pattern=bordered_pattern))
    return np.stack([pair[-1] for pair in pair_tangents]), np.stack([pair[:-1] for pair in pair_tangents], axis=1)


scipy_sparse_linalg_eigenpairs_grad = general("scipy_sparse_linalg_eigenpairs", _pull_pairs).tangent(_push_pairs).not_batchable()
