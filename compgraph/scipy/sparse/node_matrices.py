"""Sparse matrices whose elements are nodes: subclasses of SciPy's classes, whose `data` is a node and whose indices are plain.

Rearrangements (a transpose, a conversion, an index) are computed by SciPy on a matrix with the elements 1, 2, 3 ... The result
holds the numbers of the elements, so each operation has SciPy's semantics.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse

from ...array_types import Array
from ...protocols import unsupported_message
from ...values import Value
from .pattern_operations import Pattern, summation_matrix, times

FORMATS = ("csr", "csc", "coo")
METHODS: dict[str, Any] = {}  # of `NodeMatrixMethods`, added by `matrix_methods`
_UNCHANGED_ATTRIBUTES = frozenset(
    {"shape", "ndim", "dtype", "format", "nnz", "size", "getnnz", "get_shape", "getformat", "has_canonical_format"}
    | {"has_sorted_indices", "indices", "indptr", "row", "col", "coords", "data", "maxprint"}
)


@functools.cache
def class_with_nodes(cls: type) -> type:
    """Return the subclass of a class of SciPy for matrices whose elements are nodes."""
    if has_nodes(cls):
        return cls
    known = {*METHODS, *_UNCHANGED_ATTRIBUTES}
    names = [name for name in dir(cls) if not name.startswith("_") and name not in known]
    # One base and no mixin: an object of SciPy's class can become an instance, because both have the same layout.
    return type(cls.__name__, (cls,), {**{name: _raising_property(name) for name in names}, **METHODS})


def has_nodes(cls: type) -> bool:
    """Whether a class is that of matrices whose elements are nodes."""
    return getattr(cls, "_holds_node", False)


def _raising_property(name: str) -> Any:
    def raise_unsupported(self: Any) -> Any:
        raise AttributeError(
            unsupported_message(f"{name} of a sparse matrix", "functions of A.data, or a dense matrix, A.toarray()")
        )

    return property(raise_unsupported)


def plain_class(cls: Any) -> Any:
    """Return the class of SciPy for a class whose elements may be nodes."""
    return cls.__base__ if has_nodes(cls) else cls


def build_matrix(matrix: Any, data: Any) -> Any:
    """Build a matrix with the pattern of `matrix` and the elements `data`, which may be a node."""
    if matrix.format not in FORMATS:
        raise TypeError(f"a matrix of the format {matrix.format} cannot hold nodes; use csr, csc or coo")
    new_matrix: Any = object.__new__(plain_class(type(matrix)))
    new_matrix.__dict__.update({key: value for key, value in matrix.__dict__.items() if key != "_pattern"})
    new_matrix.data = data
    if isinstance(data, Value):
        cls: Any = type(new_matrix)
        new_matrix.__class__ = class_with_nodes(cls)
    return new_matrix


def number_elements(matrix: Any, start: int = 0) -> Any:
    """Replace the elements of a matrix by ``start + 1, start + 2 ...``."""
    return build_matrix(matrix, np.arange(start + 1, start + 1 + matrix.nnz, dtype=np.int64))


def read_elements(scipy_result: Any, data: Any) -> Any:
    """Replace the element numbers in SciPy's result (a matrix, an array or a number) by elements of `data`."""
    if scipy.sparse.issparse(scipy_result):
        scipy_result = scipy_result if scipy_result.format in FORMATS else scipy_result.tocsr()
        return build_matrix(scipy_result, data[np.asarray(scipy_result.data, np.int64) - 1])
    numbers = np.asarray(scipy_result, np.int64)
    if not data.shape[0]:
        return np.zeros(numbers.shape, data.dtype)[()]
    return np.where(numbers > 0, data[np.maximum(numbers - 1, 0)], 0)


def sum_duplicates(matrix: Any) -> Any:
    """Sum elements at equal positions, as SciPy's ``sum_duplicates``; return a matrix in the format csr, csc or coo."""
    if matrix.format not in FORMATS:
        matrix = matrix.tocsr()
    if matrix.format != "coo" and matrix.has_canonical_format:
        return matrix
    pattern = pattern_of(matrix)
    positions, inverse = np.unique(flat_positions(pattern), return_inverse=True)
    if positions.size == pattern.count:
        return matrix
    data = times(matrix.data, matrix=summation_matrix(np.ravel(inverse), positions.size))
    return matrix_from_positions(matrix, positions, data).asformat(matrix.format)


def matrix_from_positions(like: Any, positions: Array, data: Any) -> Any:
    """Return a coo array, or matrix as `like` is one, of its shape, with elements at flat positions in row-major order."""
    cls = scipy.sparse.coo_array if isinstance(like, scipy.sparse.sparray) else scipy.sparse.coo_matrix
    coordinates = np.divmod(positions, like.shape[1])
    return build_matrix(cls((np.ones(positions.size), coordinates), shape=like.shape), data)


def flat_positions(pattern: Pattern) -> Any:
    """Return the flat positions of the elements, in row-major order."""
    return pattern.rows.astype(np.int64) * pattern.shape[1] + pattern.cols


def pattern_of(matrix: object) -> Pattern:
    """Return the pattern of a matrix, cached if its elements are nodes."""
    if not has_nodes(type(matrix)):
        return Pattern(matrix)
    if "_pattern" not in matrix.__dict__:
        matrix.__dict__["_pattern"] = Pattern(matrix)
    return matrix.__dict__["_pattern"]  # type: ignore[no-any-return]


def elements_and_pattern(matrix: Any) -> tuple[Any, Pattern]:
    """Return the elements and the pattern of a matrix: in its own format if that is csr or csc, else in csc."""
    if matrix.format not in ("csr", "csc"):
        matrix = matrix.tocsc()
    matrix = sum_duplicates(matrix)
    return matrix.data, pattern_of(matrix)
