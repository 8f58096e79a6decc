"""Products, sums and quotients in which a sparse matrix has nodes for elements, or meets a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ...graph import stack_nested
from ...protocols import unsupported
from ...values import Value
from .elements import FORMATS, at_places, built, is_recorded, pattern_of, places_of, plain_class, settled
from .patterns import summing
from .products import product, times

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
    return product(a.data, b, pattern=pattern_of(a)) if is_recorded(type(a)) else times(b, matrix=a)


def rmatmul(a: Any, b: Any) -> Any:
    """``b @ a`` with a sparse matrix on the right."""
    if scipy.sparse.issparse(b):
        return _sparse_product(b, a)
    return np.transpose(matmul(a.transpose(), np.transpose(stack_nested(b))))


def dot(a: Any, b: Any) -> Any:
    """``a.dot(b)``, where b may be a number."""
    return multiply(a, b) if not scipy.sparse.issparse(b) and np.ndim(stack_nested(b)) == 0 else matmul(a, b)


def _sparse_product(a: Any, b: Any) -> Any:
    """``a @ b`` of two sparse matrices: each element of a meets those of a row of b."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={a.shape[1]}),(k={b.shape[0]},m)->(n,m)")
    left, right = settled(a.tocsr()), settled(b.tocsr())
    one, two = pattern_of(left), pattern_of(right)
    starts, counts = right.indptr[one.cols], np.diff(right.indptr)[one.cols]
    of_left = np.repeat(np.arange(one.count), counts)
    of_right = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    places, which = np.unique(one.rows[of_left].astype(np.int64) * b.shape[1] + two.cols[of_right], return_inverse=True)
    data = times(left.data[of_left] * right.data[of_right], matrix=summing(np.ravel(which), places.size))
    shaped = type(plain_class(type(left))((a.shape[0], b.shape[1])))((a.shape[0], b.shape[1]))
    return at_places(shaped, places, data).tocsr()


# ------------------------------------------------------------------------------------- element by element


def multiply(a: Any, b: Any) -> Any:
    """``a.multiply(b)``: by a number, by a dense array that broadcasts, or element by element."""
    if scipy.sparse.issparse(b):
        return _both(a, b)
    b = stack_nested(b)
    if np.ndim(b) == 0:
        a = a if a.format in FORMATS else a.tocsr()
        return built(a, a.data * b)
    a = settled(a).tocoo()
    if np.broadcast_shapes(a.shape, np.shape(b)) != tuple(a.shape):
        raise ValueError(f"a sparse matrix of shape {a.shape} cannot be multiplied by an array of shape {np.shape(b)}")
    pattern = pattern_of(a)
    factors = np.broadcast_to(b if isinstance(b, Value) else np.asarray(b), a.shape)[pattern.rows, pattern.cols]
    return built(a, a.data * factors)


def _both(a: Any, b: Any) -> Any:
    """The products of the elements at places that two matrices both have."""
    if a.shape != b.shape:
        raise ValueError("inconsistent shapes: sparse matrices whose elements are nodes are not broadcast")
    a, b = settled(a), settled(b)
    places, one, two = np.intersect1d(places_of(pattern_of(a)), places_of(pattern_of(b)), return_indices=True)
    return at_places(a, places, a.data[one] * b.data[two]).tocsr()


def divide(a: Any, b: Any) -> Any:
    """``a / b`` by a number or a dense array."""
    if scipy.sparse.issparse(b):
        raise TypeError(unsupported("the quotient of sparse matrices", "A.toarray() / B.toarray()"))
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
    a, b = settled(a), settled(b)
    together = np.concatenate([places_of(pattern_of(a)), places_of(pattern_of(b))])
    places, which = np.unique(together, return_inverse=True)
    data = times(np.concatenate([a.data, sign * b.data]), matrix=summing(np.ravel(which), places.size))
    return at_places(a, places, data).asformat("csr" if a.format == "coo" else a.format)


def subtract(a: Any, b: Any) -> Any:
    """``a - b``."""
    return add(a, b, -1)


def rsubtract(a: Any, b: Any) -> Any:
    """``b - a``."""
    return add(negative(a), b)


def negative(a: Any) -> Any:
    """``-a``."""
    return built(a, -a.data) if a.format in FORMATS else -a
