"""Arithmetic of sparse matrices with nodes, and methods of sparse matrices whose elements are nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from ...array_types import Array
from ...graph import stack_nested, to_values
from ...guards import guarded_value
from ...interception import argument_has_node, unpatched
from ...protocols import unsupported_message
from ...values import Value, is_tracer
from .node_matrices import (
    FORMATS,
    METHODS,
    build_matrix,
    dense,
    flat_positions,
    has_nodes,
    matrix_from_positions,
    number_elements,
    pattern_of,
    plain_class,
    product,
    read_elements,
    sum_duplicates,
    summation_matrix,
    times,
)

# The advice in errors about assignments to elements.
ASSEMBLY = "coo_array((values, (rows, columns)), shape) of lists, which sums repeated positions"

# ---------------------------------------------------------------------------------------------- products


def matmul(a: Any, b: Any) -> Any:
    """``a @ b`` with a sparse matrix on the left."""
    if scipy.sparse.issparse(b):
        return _sparse_product(a, b)
    b = stack_nested(b)
    if not isinstance(b, np.ndarray) or not b.ndim:
        b = b if isinstance(b, Value) else np.asarray(b)
    if not b.ndim:
        raise ValueError("Scalar operands are not allowed, use '*' instead")
    if b.ndim > 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={a.shape[1]}),(k={b.shape[0]},m)->(n,m)")
    return product(a.data, b, pattern=pattern_of(a)) if has_nodes(type(a)) else times(b, matrix=a)


def rmatmul(a: Any, b: Any) -> Any:
    """``b @ a`` with a sparse matrix on the right."""
    if scipy.sparse.issparse(b):
        return _sparse_product(b, a)
    return np.transpose(matmul(a.transpose(), np.transpose(stack_nested(b))))


def dot(a: object, b: object) -> Any:
    """``a.dot(b)``, where b may be a number."""
    return multiply(a, b) if not scipy.sparse.issparse(b) and np.ndim(stack_nested(b)) == 0 else matmul(a, b)


def _sparse_product(a: Any, b: Any) -> Any:
    """``a @ b`` of two sparse matrices: each element of `a` is multiplied by the elements of one row of `b`."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={a.shape[1]}),(k={b.shape[0]},m)->(n,m)")
    left, right = sum_duplicates(a.tocsr()), sum_duplicates(b.tocsr())
    left_pattern, right_pattern = pattern_of(left), pattern_of(right)
    starts, counts = right.indptr[left_pattern.cols], np.diff(right.indptr)[left_pattern.cols]
    left_indices = np.repeat(np.arange(left_pattern.count), counts)
    right_indices = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    flat = left_pattern.rows[left_indices].astype(np.int64) * b.shape[1] + right_pattern.cols[right_indices]
    positions, inverse = np.unique(flat, return_inverse=True)
    data = times(left.data[left_indices] * right.data[right_indices], matrix=summation_matrix(np.ravel(inverse), positions.size))
    template = type(plain_class(type(left))((a.shape[0], b.shape[1])))((a.shape[0], b.shape[1]))
    return matrix_from_positions(template, positions, data).tocsr()


# ------------------------------------------------------------------------------------- element by element


def multiply(a: Any, b: Any) -> Any:
    """``a.multiply(b)``: by a number, by a dense array that broadcasts, or element by element."""
    if scipy.sparse.issparse(b):
        return _multiply_sparse(a, b)
    b = stack_nested(b)
    if np.ndim(b) == 0:
        a = a if a.format in FORMATS else a.tocsr()
        return build_matrix(a, a.data * b)
    a = sum_duplicates(a).tocoo()
    if np.broadcast_shapes(a.shape, np.shape(b)) != tuple(a.shape):
        raise ValueError(f"a sparse matrix of shape {a.shape} cannot be multiplied by an array of shape {np.shape(b)}")
    pattern = pattern_of(a)
    factors = np.broadcast_to(b if isinstance(b, Value) else np.asarray(b), a.shape)[pattern.rows, pattern.cols]
    return build_matrix(a, a.data * factors)


def _multiply_sparse(a: Array, b: Array) -> Any:
    """Multiply the elements at positions that both matrices have."""
    if a.shape != b.shape:
        raise ValueError("inconsistent shapes: sparse matrices whose elements are nodes are not broadcast")
    a, b = sum_duplicates(a), sum_duplicates(b)
    positions, a_indices, b_indices = np.intersect1d(
        flat_positions(pattern_of(a)), flat_positions(pattern_of(b)), return_indices=True
    )
    return matrix_from_positions(a, positions, a.data[a_indices] * b.data[b_indices]).tocsr()


def divide(a: object, b: object) -> Any:
    """``a / b`` by a number or a dense array."""
    if scipy.sparse.issparse(b):
        raise TypeError(unsupported_message("the quotient of sparse matrices", "A.toarray() / B.toarray()"))
    return multiply(a, 1.0 / stack_nested(b))


def add(a: Any, b: Any, sign: int = 1) -> Any:
    """``a + b``, or with a sign of -1 ``a - b``."""
    if not scipy.sparse.issparse(b):
        b = stack_nested(b)
        if np.ndim(b) == 0:
            if isinstance(b, Value) or b != 0:
                raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
            return a.copy()
        return a.toarray() + b if sign > 0 else a.toarray() - b
    if a.shape != b.shape:
        raise ValueError(f"inconsistent shapes {a.shape} and {b.shape}")
    a, b = sum_duplicates(a), sum_duplicates(b)
    all_positions = np.concatenate([flat_positions(pattern_of(a)), flat_positions(pattern_of(b))])
    positions, inverse = np.unique(all_positions, return_inverse=True)
    data = times(np.concatenate([a.data, sign * b.data]), matrix=summation_matrix(np.ravel(inverse), positions.size))
    return matrix_from_positions(a, positions, data).asformat("csr" if a.format == "coo" else a.format)


def subtract(a: object, b: object) -> Any:
    """``a - b``."""
    return add(a, b, -1)


def rsubtract(a: object, b: object) -> Any:
    """``b - a``."""
    return add(negative(a), b)


def negative(a: Any) -> Any:
    """``-a``."""
    return build_matrix(a, -a.data) if a.format in FORMATS else -a


# --------------------------------------------------------------------------------------------------------- indices


def indexing_method(class_name: str) -> Callable[..., Any]:
    """Return the replacement of ``__getitem__`` of a class of plain matrices, for indices that are nodes."""
    scipy_method = unpatched(getattr(scipy.sparse, class_name).__getitem__)
    return lambda self, key: scipy_method(self, guarded_value(key, "an index of a sparse matrix"))


def assignment_method(class_name: str) -> Callable[..., Any]:
    """Return the replacement of ``__setitem__``, for indices that are nodes; values that are nodes raise."""
    scipy_method = unpatched(getattr(scipy.sparse, class_name).__setitem__)

    def assign_elements(self: Any, key: object, value: object) -> None:
        if argument_has_node(value):
            raise TypeError(unsupported_message("an assignment to elements of a sparse matrix", ASSEMBLY))
        scipy_method(self, guarded_value(key, "an index of a sparse matrix"), value)

    return assign_elements


# --------------------------------------------------------------------------------------------------------------- methods

_UFUNCS = "sin tan arcsin arctan sinh tanh arcsinh arctanh rint sign expm1 log1p deg2rad rad2deg floor ceil trunc sqrt"


def _elementwise(ufunc: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: build_matrix(self, ufunc(self.data))


def _raising_method(operation: str, advice: str) -> Callable[..., Any]:
    def raise_unsupported(self: Any, *args: object) -> Any:
        raise TypeError(unsupported_message(f"{operation} of a sparse matrix", advice))

    return raise_unsupported


class NodeMatrixMethods:
    """The methods of sparse matrices whose elements are nodes; all other methods raise."""

    _holds_node = True  # see `interception.code_patches.argument_has_node`
    __array_priority__ = 1000.0
    __array_ufunc__ = None
    data: Any
    format: Any
    shape: Any

    __matmul__, __rmatmul__, dot = matmul, rmatmul, dot
    multiply, __truediv__ = multiply, divide
    __add__ = __radd__ = add
    __sub__, __rsub__, __neg__ = subtract, rsubtract, negative

    __setitem__ = _raising_method("an assignment to elements", f"A + B, where B has the changes: {ASSEMBLY}")
    __imul__ = __itruediv__ = _raising_method("an operation in place", "A = A * s")
    __round__ = __rtruediv__ = _raising_method("this operation", "functions of A.data")
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _raising_method("a comparison", "A.toarray()")
    __hash__ = object.__hash__

    def _is_array(self) -> bool:
        return isinstance(self, scipy.sparse.sparray)

    def __mul__(self, other: object) -> Any:
        return multiply(self, other) if self._is_array() else dot(self, other)

    def __rmul__(self, other: object) -> Any:
        is_number = not scipy.sparse.issparse(other) and np.ndim(stack_nested(other)) == 0
        return multiply(self, other) if self._is_array() or is_number else rmatmul(self, other)

    def __pow__(self, n: int) -> Any:
        if not self._is_array():
            raise TypeError(unsupported_message("the power of a sparse matrix", "A @ A, or A.power(n) of the elements"))
        return self.power(n)

    def power(self, n: int, dtype: DTypeLike | None = None) -> Any:
        """The powers of the elements."""
        if not n > 0:
            raise NotImplementedError("zero and negative powers of a sparse matrix are dense. Use A.toarray()")
        return build_matrix(sum_duplicates(self), sum_duplicates(self).data ** n)

    def __getitem__(self, key: object) -> Any:
        source = sum_duplicates(self)
        source = source.tocsr() if source.format == "coo" else source
        key = guarded_value(key, "an index of a sparse matrix")
        return read_elements(number_elements(source)[key], source.data)

    def __iter__(self) -> Any:
        return (self[row] for row in range(self.shape[0]))

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __bool__(self) -> bool:
        raise ValueError("The truth value of an array with more than one element is ambiguous.")

    def __str__(self) -> str:
        return str(build_matrix(self, to_values(self.data)))

    __repr__ = __str__
    __abs__ = _elementwise(np.abs)
    conjugate = conj = _elementwise(np.conj)
    real, imag = property(_elementwise(np.real)), property(_elementwise(np.imag))

    def astype(self, dtype: DTypeLike | None, casting: str = "unsafe", copy: bool = True) -> Any:
        """The matrix with elements of another dtype."""
        return build_matrix(self, self.data.astype(dtype))

    def copy(self) -> Any:
        """A copy of the matrix."""
        return build_matrix(self, np.copy(self.data))

    def _rearrange(self, method: Callable[[Any], Any]) -> Any:
        return read_elements(method(number_elements(self)), self.data)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed matrix."""
        return self._rearrange(lambda m: m.transpose())

    @property
    def T(self) -> Any:  # noqa: N802 (as SciPy calls it)
        """The transposed matrix."""
        return self.transpose()

    def asformat(self, format: str, copy: bool = False) -> Any:
        """The matrix in another format: csr, csc or coo."""
        if format not in (None, *FORMATS):
            raise TypeError(f"asformat: a matrix of the format {format} cannot hold nodes. Use csr, csc or coo")
        source: Any = self if format in (None, "coo", self.format) else sum_duplicates(self)
        return source if format in (None, source.format) else read_elements(number_elements(source).asformat(format), source.data)

    def tocsr(self, copy: bool = False) -> Any:
        """The matrix in the format csr."""
        return self.asformat("csr")

    def tocsc(self, copy: bool = False) -> Any:
        """The matrix in the format csc."""
        return self.asformat("csc")

    def tocoo(self, copy: bool = False) -> Any:
        """The matrix in the format coo."""
        return self.asformat("coo")

    def reshape(self, *shape: object, **options: object) -> Any:
        """The matrix in another shape."""
        return sum_duplicates(self)._rearrange(lambda m: m.reshape(*shape, **options))

    def toarray(self, order: object = None, out: object = None) -> Any:
        """The dense matrix."""
        if out is not None:
            raise TypeError("toarray: out= cannot hold nodes. Use the result")
        return dense(self.data, pattern=pattern_of(self))

    def todense(self, order: object = None, out: object = None) -> Any:
        """The dense matrix, as an array."""
        return self.toarray(order, out)

    def diagonal(self, k: int = 0) -> Any:
        """The elements of a diagonal."""
        source = sum_duplicates(self)
        return read_elements(number_elements(source).diagonal(k), source.data)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Replace the elements of a diagonal; the values may be nodes."""
        values = stack_nested(values)
        scipy.sparse.csr_array(self.shape).setdiag(np.zeros(np.shape(values)), k)  # raises for invalid arguments
        if self.data.dtype.kind not in "fc" or (is_tracer(values) and not is_tracer(self.data)):
            raise TypeError(unsupported_message("setdiag of a sparse matrix created before the call, or of integers", ASSEMBLY))
        source: Any = self if self.format == "coo" else sum_duplicates(self)
        count = min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0), *np.shape(values))
        diagonal_positions = (np.arange(count) + max(-k, 0)) * self.shape[1] + np.arange(count) + max(k, 0)
        positions = flat_positions(pattern_of(source))
        is_kept = ~np.isin(positions, diagonal_positions)
        diagonal = np.broadcast_to(values, (count,)) if not np.ndim(values) else values[:count]
        data = np.concatenate([source.data[is_kept], np.asarray(diagonal) if not isinstance(diagonal, Value) else diagonal])
        positions = np.concatenate([positions[is_kept], diagonal_positions])
        order = np.argsort(positions)
        matrix = matrix_from_positions(self, positions[order], data[order].astype(self.data.dtype)).asformat(self.format)
        self.__dict__.pop("_pattern", None)
        self.__dict__.update(matrix.__dict__)

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    def sum(self, axis: Any = None, dtype: DTypeLike | None = None, out: object = None) -> Any:
        """The sum of the elements, or of each column (axis 0) or row (axis 1)."""
        if out is not None:
            raise TypeError("sum: out= cannot hold nodes. Use the result")
        if axis is None:
            return np.sum(self.data, dtype=dtype)
        pattern = pattern_of(self)
        axis = int(axis) % 2
        targets, count = (pattern.rows, pattern.shape[0]) if axis else (pattern.cols, pattern.shape[1])
        sums = times(self.data, matrix=summation_matrix(targets, count))
        return sums if self._is_array() else np.expand_dims(sums, axis)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all elements including zeros, or of each column (axis 0) or row (axis 1)."""
        shape = pattern_of(self).shape
        return self.sum(axis, dtype, out) / (shape[0] * shape[1] if axis is None else shape[int(axis) % 2])

    def eliminate_zeros(self) -> None:
        """Keep all elements: one that is zero may have a derivative."""

    def getrow(self, i: int) -> Any:
        """A row, as a matrix."""
        return self[i : i + 1 or None, :]

    def getcol(self, j: int) -> Any:
        """A column, as a matrix."""
        return self[:, j : j + 1 or None]


for _name in _UFUNCS.split():
    setattr(NodeMatrixMethods, _name, _elementwise(getattr(np, _name)))
METHODS.update(
    {name: value for name, value in vars(NodeMatrixMethods).items() if name not in ("__dict__", "__weakref__", "__doc__")}
)
