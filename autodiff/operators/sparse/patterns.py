"""Sparsity patterns, boolean sparse matrices of dependences, and their operations.

Most operations of a graph preserve the pattern. Operations return the same object for an equal pattern where that needs no
comparison, and unions are cached by the identity of their operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array


class Patterns:
    """Patterns with a common number of columns.

    Parameters
    ----------
    columns : int
        The number of elements of the input.
    """

    def __init__(self, columns: int) -> None:
        from scipy.sparse import csr_array

        self._make = csr_array
        self.columns = columns
        self._unions: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def _csr(self, indices: NDArray[Any], indptr: NDArray[Any]) -> Any:
        return self._make((np.ones(len(indices), bool), indices, indptr), shape=(len(indptr) - 1, self.columns))

    def identity(self) -> Any:
        """Return the pattern in which each element depends on itself."""
        return self._csr(np.arange(self.columns, dtype=np.int32), np.arange(self.columns + 1, dtype=np.int32))

    def empty(self, rows: int) -> Any:
        """Return the pattern without dependences."""
        return self._csr(np.zeros(0, np.int32), np.zeros(rows + 1, np.int32))

    def full_rows(self, patterns: Sequence[Any], rows: int) -> Any:
        """Return a pattern whose rows each have all dependences of some patterns."""
        used = np.unique(np.concatenate([g.indices for g in patterns if g is not None]))
        return self._csr(np.tile(used, rows), np.arange(rows + 1) * len(used))

    def union(self, patterns: Sequence[Any]) -> Any:
        """Return the union of dependences."""
        first, *others = [g for g in patterns if g is not None]
        for other in others:
            first = self._pair_union(first, other)
        return first

    def _pair_union(self, a: Any, b: Any) -> Any:
        if a is b:
            return a
        key = (id(a), id(b)) if id(a) < id(b) else (id(b), id(a))
        if key not in self._unions:
            union = a + b
            union = a if union.nnz == a.nnz else b if union.nnz == b.nnz else union
            self._unions[key] = (union, a, b)  # kept alive, so that their ids stay unique
        return self._unions[key][0]

    def take_rows(self, pattern: Any, places: Array | None) -> Any:
        """Return the rows at some positions, empty ones for negative positions; the pattern itself if `places` is None."""
        if places is None:
            return pattern
        places = np.ravel(places)
        size = pattern.shape[0]
        if len(places) == size and np.array_equal(places, np.arange(size)):
            return pattern
        if (places < 0).any():
            pattern = self._csr(pattern.indices, np.append(pattern.indptr, pattern.indptr[-1]))
            places = np.where(places < 0, size, places)
        starts, counts = pattern.indptr[places], np.diff(pattern.indptr)[places]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        return self._csr(pattern.indices[within], indptr)

    def scatter_rows(self, pattern: Any, places: Array, rows: int) -> Any:
        """Scatter rows to positions; rows at the same position are united."""
        places = np.ravel(places)
        counts = np.diff(pattern.indptr)
        if rows == 1:
            return self.full_rows([pattern], 1)
        if len(places) == 1 or (np.diff(places) > 0).all():  # each place is met once, in order
            row_counts = np.zeros(rows + 1, pattern.indptr.dtype)
            row_counts[places + 1] = counts
            return self._csr(pattern.indices, np.cumsum(row_counts))
        union = self._make((np.ones(pattern.nnz, bool), (np.repeat(places, counts), pattern.indices)), shape=(rows, self.columns))
        union.sum_duplicates()
        return union

    def stack_rows(self, patterns: Sequence[Any]) -> Any:
        """Stack the rows of patterns."""
        if len(patterns) == 1:
            return patterns[0]
        counts = np.concatenate([np.diff(g.indptr) for g in patterns])
        return self._csr(np.concatenate([g.indices for g in patterns]), np.concatenate([[0], np.cumsum(counts)]))

    def matrix_product(self, matrix: NDArray[Any], pattern: object) -> Any:
        """Return the pattern of the product of a matrix with values of a pattern."""
        product = self._make(matrix != 0) @ pattern
        product.sort_indices()
        return product
