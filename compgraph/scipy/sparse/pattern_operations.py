"""Sparsity patterns, and operations on the elements of sparse matrices, which are recorded as one node each.

A matrix consists of its elements, an operand, and its pattern, an option; it is never converted to a dense one. Each operation
is linear in each operand, or solves linear equations, and the derivatives are again these operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ...array_types import Array
from ...interception import unpatched
from ...protocols import primitive


class Pattern:
    """The positions of the elements of a sparse matrix, in the order of its ``data``.

    Parameters
    ----------
    matrix : sparse matrix
        In the format csr, csc or coo, of two dimensions.

    Attributes
    ----------
    format : str
        The format of the matrix.
    shape : tuple of int
        Its shape.
    rows, cols : array of int
        The position of each element. Elements at equal positions are summed.
    """

    def __init__(self, matrix: Any) -> None:
        self.format, self.shape = matrix.format, tuple(matrix.shape)
        if matrix.ndim != 2:
            raise TypeError("a sparse array of one dimension cannot hold nodes. Use one with a single row")
        if self.format == "coo":
            self._parts = matrix.row, matrix.col
        else:
            self._parts = matrix.indices, matrix.indptr
        self._transposed: Pattern | None = None
        self._coordinates: Any = None

    def matrix(self, data: NDArray[Any], kind: Any = None) -> Any:
        """The sparse array with these elements, of a class of this format."""
        kind = kind or getattr(scipy.sparse, f"{self.format}_array")
        first, second = self._parts
        return kind((data, (first, second)) if self.format == "coo" else (data, first, second), shape=self.shape)

    @property
    def T(self) -> Pattern:  # noqa: N802 (as NumPy calls it)
        """The pattern of the transposed matrix, whose elements have the same order."""
        if self._transposed is None:
            transpose: Any = object.__new__(Pattern)
            transpose.format = {"csr": "csc", "csc": "csr", "coo": "coo"}[self.format]
            transpose.shape, transpose._parts = self.shape[::-1], self._parts[:: -1 if self.format == "coo" else 1]
            transpose._transposed, transpose._coordinates = self, None
            self._transposed = transpose
        return self._transposed

    @property
    def rows(self) -> Any:
        """The row of each element."""
        return self._element_coordinates()[0]

    @property
    def cols(self) -> Any:
        """The column of each element."""
        return self._element_coordinates()[1]

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self._parts[0])

    def _element_coordinates(self) -> Any:
        if self._coordinates is None:
            if self.format == "coo":
                self._coordinates = self._parts
            else:
                indices, indptr = self._parts
                lines = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
                self._coordinates = (lines, indices) if self.format == "csr" else (indices, lines)
        return self._coordinates


def summation_matrix(targets: NDArray[Any], count: int) -> Any:
    """The matrix whose product with a vector adds element k to sum ``targets[k]``, of `count` sums."""
    targets = np.asarray(targets)
    ones = np.ones(targets.size, np.int8)  # so that sums keep their dtype
    return scipy.sparse.csr_array((ones, (targets, np.arange(targets.size))), shape=(count, targets.size))


# ------------------------------------------------------------------------------------------------------------ operations


@primitive(opname="scipy_sparse_times")
def times(x: Array, *, matrix: Any) -> Any:
    """``matrix @ x`` with a plain sparse matrix of any format."""
    return unpatched(type(matrix).__matmul__)(matrix, x)


@primitive(opname="scipy_sparse_matmul")
def product(data: NDArray[Any], x: NDArray[Any], *, pattern: Pattern) -> Any:
    """``A @ x``, where `data` are the elements of A, and x is a vector or a dense matrix."""
    return pattern.matrix(data) @ x


@primitive(opname="scipy_sparse_toarray")
def dense(data: NDArray[Any], *, pattern: Pattern) -> Any:
    """The dense matrix with these elements."""
    return pattern.matrix(data).toarray()


@primitive(opname="scipy_sparse_solve")
def solution(data: NDArray[Any], b: NDArray[Any], *, pattern: Pattern, **options: object) -> Any:
    """The x with ``A @ x = b``, where `data` are the elements of A, and b is a vector or a dense matrix."""
    kind = np.result_type(data, b, np.float32 if np.result_type(data, b) == np.float32 else np.float64)
    matrix = pattern.matrix(np.asarray(data, kind))
    if pattern.format == "coo":
        matrix = matrix.tocsc()
    if b.ndim == 2 and b.shape[1] != 1:
        return np.asarray(scipy.sparse.linalg.spsolve(matrix, np.asarray(b, kind), **options)).reshape(b.shape)
    return scipy.sparse.linalg.spsolve(matrix, np.ravel(b).astype(kind), **options).reshape(b.shape)
