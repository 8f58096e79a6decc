"""Sparse matrices whose elements are nodes: subclasses of SciPy's classes, whose `data` is a node and whose indices are plain.

An operation takes the elements of a matrix as an operand, and its sparsity pattern as an option. It is recorded as one node, and
does not convert the matrix to a dense one. Each operation is linear in each operand, or solves linear equations, and the
derivatives are again these operations.

Rearrangements (a transpose, a conversion, an index) are computed by SciPy on a matrix with the elements 1, 2, 3 ... The result
holds the numbers of the elements, so each operation has SciPy's semantics.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ...array_types import Array
from ...interception import unpatched
from ...protocols import primitive, unsupported_message
from ...values import Value


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

    def matrix(self, data: NDArray[Any], cls: Any = None) -> Any:
        """The sparse array with these elements, of a class of this format."""
        cls = cls or getattr(scipy.sparse, f"{self.format}_array")
        first, second = self._parts
        return cls((data, (first, second)) if self.format == "coo" else (data, first, second), shape=self.shape)

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
    dtype = np.result_type(data, b, np.float32 if np.result_type(data, b) == np.float32 else np.float64)
    matrix = pattern.matrix(np.asarray(data, dtype))
    if pattern.format == "coo":
        matrix = matrix.tocsc()
    if b.ndim == 2 and b.shape[1] != 1:
        return np.asarray(scipy.sparse.linalg.spsolve(matrix, np.asarray(b, dtype), **options)).reshape(b.shape)
    return scipy.sparse.linalg.spsolve(matrix, np.ravel(b).astype(dtype), **options).reshape(b.shape)


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
    supported_names = {*METHODS, *_UNCHANGED_ATTRIBUTES}
    names = [name for name in dir(cls) if not name.startswith("_") and name not in supported_names]
    # One base and no mixin: an object of SciPy's class can become an instance, because both have the same layout.
    return type(cls.__name__, (cls,), {**{name: _raising_property(name) for name in names}, **METHODS})


def has_nodes(cls: type) -> bool:
    """Whether the elements of a class of matrices are nodes."""
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
        raise TypeError(f"a matrix of the format {matrix.format} cannot hold nodes. Use csr, csc or coo")
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
    """Return a coo array (for a matrix, a coo matrix) of the shape of `like`, with elements at flat positions."""
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
