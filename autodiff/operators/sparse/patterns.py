"""Boolean sparse matrices of dependence, and the few things that are done to them.

Most operations of a graph change no pattern. So equal matrices are one object wherever that can be seen without comparing
them, and what is done to an object that is known already costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Patterns:
    """Patterns with a common number of columns.

    Parameters
    ----------
    columns : int
        How many elements the input has.
    """

    def __init__(self, columns: int) -> None:
        from scipy.sparse import csr_array

        self._make = csr_array
        self.columns = columns
        self._unions: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def _csr(self, indices: Any, indptr: Any) -> Any:
        return self._make((np.ones(len(indices), bool), indices, indptr), shape=(len(indptr) - 1, self.columns))

    def identity(self) -> Any:
        """Each element depends on itself."""
        return self._csr(np.arange(self.columns, dtype=np.int32), np.arange(self.columns + 1, dtype=np.int32))

    def empty(self, rows: int) -> Any:
        """Nothing depends on anything."""
        return self._csr(np.zeros(0, np.int32), np.zeros(rows + 1, np.int32))

    def every(self, given: Sequence[Any], rows: int) -> Any:
        """Each of some rows depends on all that any of the given ones does."""
        used = np.unique(np.concatenate([g.indices for g in given if g is not None]))
        return self._csr(np.tile(used, rows), np.arange(rows + 1) * len(used))

    def union(self, given: Sequence[Any]) -> Any:
        """Return the union of dependences."""
        first, *others = [g for g in given if g is not None]
        for other in others:
            first = self._both(first, other)
        return first

    def _both(self, a: Any, b: Any) -> Any:
        if a is b:
            return a
        key = (id(a), id(b)) if id(a) < id(b) else (id(b), id(a))
        if key not in self._unions:
            found = a + b
            found = a if found.nnz == a.nnz else b if found.nnz == b.nnz else found
            self._unions[key] = (found, a, b)  # held, so that no other matrix takes their ids
        return self._unions[key][0]

    def taken(self, given: Any, places: Any) -> Any:
        """The rows at the given places, empty ones where a place is negative; all in order if places is None."""
        if places is None:
            return given
        places = np.ravel(places)
        size = given.shape[0]
        if len(places) == size and np.array_equal(places, np.arange(size)):
            return given
        if (places < 0).any():
            given = self._csr(given.indices, np.append(given.indptr, given.indptr[-1]))
            places = np.where(places < 0, size, places)
        starts, counts = given.indptr[places], np.diff(given.indptr)[places]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
        return self._csr(given.indices[within], indptr)

    def put(self, given: Any, places: Any, rows: int) -> Any:
        """Each row put at its place; what meets there depends on all of it."""
        places = np.ravel(places)
        counts = np.diff(given.indptr)
        if rows == 1:
            return self.every([given], 1)
        if len(places) == 1 or (np.diff(places) > 0).all():  # each place is met once, in order
            found = np.zeros(rows + 1, given.indptr.dtype)
            found[places + 1] = counts
            return self._csr(given.indices, np.cumsum(found))
        made = self._make((np.ones(given.nnz, bool), (np.repeat(places, counts), given.indices)), shape=(rows, self.columns))
        made.sum_duplicates()
        return made

    def below(self, given: Sequence[Any]) -> Any:
        """All rows, one pattern below the other."""
        if len(given) == 1:
            return given[0]
        counts = np.concatenate([np.diff(g.indptr) for g in given])
        return self._csr(np.concatenate([g.indices for g in given]), np.concatenate([[0], np.cumsum(counts)]))

    def multiplied(self, matrix: Any, given: Any) -> Any:
        """Sums of rows, each with the coefficients in one row of a matrix."""
        found = self._make(matrix != 0) @ given
        found.sort_indices()
        return found
