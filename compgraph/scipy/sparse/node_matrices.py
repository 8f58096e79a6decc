"""Sparse matrices whose elements are nodes: of SciPy's classes, with `data` a node and all else plain.

What moves elements about (a transposition, another format, an index) is done by SciPy with a matrix that holds the numbers 1,
2, 3 ... in the place of the elements, and read off that. So each has SciPy's meaning.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse

from ...protocols import unsupported
from ...values import Value
from .pattern_operations import Pattern, summing, times

FORMATS = ("csr", "csc", "coo")
METHODS: dict[str, Any] = {}  # of the matrices made of nodes, entered by `matrix_methods`
_KEPT = frozenset(
    {"shape", "ndim", "dtype", "format", "nnz", "size", "getnnz", "get_shape", "getformat", "has_canonical_format"}
    | {"has_sorted_indices", "indices", "indptr", "row", "col", "coords", "data", "maxprint"}
)


@functools.cache
def recorded_class(kind: type) -> type:
    """The class of SciPy's matrices of a kind whose elements are nodes."""
    if is_recorded(kind):
        return kind
    known = {*METHODS, *_KEPT}
    names = [name for name in dir(kind) if not name.startswith("_") and name not in known]
    # With the methods and one base: an object of SciPy's class can become one of this, whose layout is the same.
    return type(kind.__name__, (kind,), {**{name: _refusal(name) for name in names}, **METHODS})


def is_recorded(kind: type) -> bool:
    """Whether the elements of matrices of a class are nodes."""
    return getattr(kind, "_holds_node", False)


def _refusal(name: str) -> Any:
    def refuse(self: Any) -> Any:
        raise AttributeError(unsupported(f"{name} of a sparse matrix", "functions of A.data, or a dense matrix, A.toarray()"))

    return property(refuse)


def plain_class(kind: Any) -> Any:
    """SciPy's own class of a matrix."""
    return kind.__base__ if is_recorded(kind) else kind


def built(matrix: Any, data: Any) -> Any:
    """A matrix of the pattern of another, with these elements; plain if they are."""
    if matrix.format not in FORMATS:
        raise TypeError(f"a matrix of the format {matrix.format} cannot hold nodes; use csr, csc or coo")
    new_matrix: Any = object.__new__(plain_class(type(matrix)))
    new_matrix.__dict__.update({key: value for key, value in matrix.__dict__.items() if key != "_pattern"})
    new_matrix.data = data
    if isinstance(data, Value):
        kind: Any = type(new_matrix)
        new_matrix.__class__ = recorded_class(kind)
    return new_matrix


def numbered(matrix: Any, start: int = 0) -> Any:
    """The matrix that holds 1, 2, 3 ... in the place of the elements, counted from a start."""
    return built(matrix, np.arange(start + 1, start + 1 + matrix.nnz, dtype=np.int64))


def read(scipy_result: Any, data: Any) -> Any:
    """Return SciPy's result for a matrix of numbers, with elements for the numbers: a matrix, an array or a number."""
    if scipy.sparse.issparse(scipy_result):
        scipy_result = scipy_result if scipy_result.format in FORMATS else scipy_result.tocsr()
        return built(scipy_result, data[np.asarray(scipy_result.data, np.int64) - 1])
    places = np.asarray(scipy_result, np.int64)
    if not data.shape[0]:
        return np.zeros(places.shape, data.dtype)[()]
    return np.where(places > 0, data[np.maximum(places - 1, 0)], 0)


def settled(matrix: Any) -> Any:
    """A matrix with each place at most once: of others, elements are added. In the format csr, csc or coo."""
    if matrix.format not in FORMATS:
        matrix = matrix.tocsr()
    if matrix.format != "coo" and matrix.has_canonical_format:
        return matrix
    pattern = pattern_of(matrix)
    places, which = np.unique(places_of(pattern), return_inverse=True)
    if places.size == pattern.count:
        return matrix
    data = times(matrix.data, matrix=summing(np.ravel(which), places.size))
    return at_places(matrix, places, data).asformat(matrix.format)


def at_places(like: Any, places: Any, data: Any) -> Any:
    """The matrix in the format coo of the shape and kind of another, with elements at places counted by rows."""
    kind = scipy.sparse.coo_array if isinstance(like, scipy.sparse.sparray) else scipy.sparse.coo_matrix
    return built(kind((np.ones(places.size), np.divmod(places, like.shape[1])), shape=like.shape), data)


def places_of(pattern: Pattern) -> Any:
    """The places of elements, counted by rows."""
    return pattern.rows.astype(np.int64) * pattern.shape[1] + pattern.cols


def pattern_of(matrix: Any) -> Pattern:
    """Where the elements of a matrix stand."""
    if not is_recorded(type(matrix)):
        return Pattern(matrix)
    if "_pattern" not in matrix.__dict__:
        matrix.__dict__["_pattern"] = Pattern(matrix)
    return matrix.__dict__["_pattern"]  # type: ignore[no-any-return]


def parts_of(matrix: Any) -> tuple[Any, Pattern]:
    """The elements of a matrix of any format, and where they stand; of csr and csc as they are, of others by columns."""
    if matrix.format not in ("csr", "csc"):
        matrix = matrix.tocsc()
    matrix = settled(matrix)
    return matrix.data, pattern_of(matrix)
