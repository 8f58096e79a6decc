"""Operations of ``scipy.sparse.linalg`` that are one node each: solutions by a factorization that is kept, eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from ....interception import original_of
from ....protocols import primitive

TRANSPOSED = {"N": "T", "T": "N"}


class Factorization:
    """SciPy's factorization of a sparse matrix with certain elements; of others it is made anew.

    Parameters
    ----------
    matrix : sparse array
        Of plain numbers.
    data : array
        Its elements, as the operand of nodes has them.
    options : dict
        As `splu` takes them.
    """

    def __init__(self, matrix: Any, data: Any, options: dict[str, Any]) -> None:
        self.options, self.data = options, data
        self.lu = original_of(scipy.sparse.linalg.splu)(matrix, **options)

    def of(self, data: Any, pattern: Any) -> Any:
        """The factorization with elements."""
        if data is self.data:
            return self.lu
        return original_of(scipy.sparse.linalg.splu)(pattern.matrix(data).tocsc(), **self.options)


@primitive(opname="scipy_sparse_linalg_factored")
def factored(data: Any, b: Any, *, pattern: Any, kept: Any, trans: str = "N") -> Any:
    """The solution of ``A @ x = b``, or with ``trans="T"`` of ``A.T @ x = b``, by a factorization."""
    return kept.of(data, pattern).solve(np.asarray(b, np.result_type(data, b, np.float32)), trans)


@primitive(opname="scipy_sparse_linalg_incomplete")
def incomplete(b: Any, *, lu: Any, trans: str = "N") -> Any:
    """What an incomplete factorization of a plain matrix gives for a right-hand side, in which it is linear."""
    return lu.solve(b, trans)


@primitive(opname="scipy_sparse_linalg_expm_multiply")
def expm_multiply(x: Any, *, matrix: Any) -> Any:
    """``expm(matrix) @ x`` with a plain matrix."""
    return original_of(scipy.sparse.linalg.expm_multiply)(matrix, x)


@primitive(opname="scipy_sparse_linalg_eigenpairs")
def eigenpairs(data: Any, *, pattern: Any, find: Any) -> Any:
    """Some eigenvalues of a symmetric sparse matrix, and their vectors of length one: ``find(data)``."""
    return find(data)
