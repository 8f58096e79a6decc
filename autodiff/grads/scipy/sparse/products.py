"""Rules of products with sparse matrices, and of solutions of sparse linear equations.

The adjoint of the elements of a matrix is that of the matrix at their places alone: ``g[row] * x[col]`` for ``A @ x``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....rules import general, linear, multilinear


def _ops() -> Any:
    """The operations, which were there when their node was made; SciPy is not imported before."""
    from compgraph.scipy import sparse

    return sparse


def _at_places(g: Any, x: Any, pattern: Any) -> Any:
    """What ``outer(g, x)`` is at the places of the elements; summed over the columns of matrices."""
    found = g[pattern.rows] * x[pattern.cols]
    return found if found.ndim == 1 else np.sum(found, axis=1)


scipy_sparse_times_grad = linear("scipy_sparse_times", lambda g, out, x, *, matrix: _ops().times(g, matrix=matrix.transpose()))

scipy_sparse_matmul_grad = multilinear(
    "scipy_sparse_matmul",
    lambda g, out, data, x, *, pattern: _at_places(g, x, pattern),
    lambda g, out, data, x, *, pattern: _ops().product(data, g, pattern=pattern.T),
).one_by_one()

scipy_sparse_toarray_grad = linear(
    "scipy_sparse_toarray", lambda g, out, data, *, pattern: g[pattern.rows, pattern.cols]
).one_by_one()

scipy_sparse_solve_grad = (
    general(
        "scipy_sparse_solve",
        lambda g, out, data, b, *, pattern, **o: -_at_places(_ops().solution(data, g, pattern=pattern.T, **o), out, pattern),
        lambda g, out, data, b, *, pattern, **o: _ops().solution(data, g, pattern=pattern.T, **o),
    )
    .tangent(
        lambda t, out, data, b, *, pattern, **o: -_ops().solution(data, _ops().product(t, out, pattern=pattern), pattern=pattern),
        lambda t, out, data, b, *, pattern, **o: _ops().solution(data, t, pattern=pattern, **o),
    )
    .one_by_one()
)
