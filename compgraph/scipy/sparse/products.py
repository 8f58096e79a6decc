"""Operations on the elements of sparse matrices that are recorded as one node each; a matrix never becomes a dense one.

A matrix is its elements, an operand, and its pattern, an option. Each operation is linear in each operand, or a solution of
linear equations; their derivatives are again each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from ...interception import original_of
from ...protocols import primitive


@primitive(opname="scipy_sparse_times")
def times(x: Any, *, matrix: Any) -> Any:
    """``matrix @ x`` with a plain sparse matrix of any format."""
    return original_of(type(matrix).__matmul__)(matrix, x)


@primitive(opname="scipy_sparse_matmul")
def product(data: Any, x: Any, *, pattern: Any) -> Any:
    """``A @ x``, where `data` are the elements of A, and x is a vector or a dense matrix."""
    return pattern.matrix(data) @ x


@primitive(opname="scipy_sparse_toarray")
def dense(data: Any, *, pattern: Any) -> Any:
    """The dense matrix with these elements."""
    return pattern.matrix(data).toarray()


@primitive(opname="scipy_sparse_solve")
def solution(data: Any, b: Any, *, pattern: Any, **options: Any) -> Any:
    """The x with ``A @ x = b``, where `data` are the elements of A, and b is a vector or a dense matrix."""
    kind = np.result_type(data, b, np.float32 if np.result_type(data, b) == np.float32 else np.float64)
    matrix = pattern.matrix(np.asarray(data, kind))
    if pattern.format == "coo":
        matrix = matrix.tocsc()
    if b.ndim == 2 and b.shape[1] != 1:
        return np.asarray(scipy.sparse.linalg.spsolve(matrix, np.asarray(b, kind), **options)).reshape(b.shape)
    return scipy.sparse.linalg.spsolve(matrix, np.ravel(b).astype(kind), **options).reshape(b.shape)
