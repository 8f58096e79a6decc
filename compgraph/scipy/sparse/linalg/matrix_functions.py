"""Norms, inverses, powers, exponentials, and some eigenvalues of sparse matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ....graph import stack_nested, to_values
from ....interception import unpatched
from ....protocols import unsupported_message
from ....values import Value
from ...tools import pin_value
from .. import Pattern, build_matrix, elements_and_pattern, has_nodes, matmul, product, solution, sum_duplicates
from .sparse_systems import apply_expm, eigenpairs, plain_matrix

TERMS = 24  # of the exponential series of a matrix of norm 1: the remainder is less than 1e-24


def norm(x: Any, ord: object = None, axis: int | tuple[int, ...] | None = None) -> Any:
    """``scipy.sparse.linalg.norm``."""
    x = sum_duplicates(x)
    if axis in (None, (0, 1), (1, 0)) and ord in (None, "fro", "f"):
        return np.sqrt(np.sum(np.abs(x.data) ** 2))
    if axis is None and ord in (1, -1, np.inf, -np.inf):
        sums = abs(x).sum(axis=0 if abs(ord) == 1 else 1)
        return np.max(sums) if ord > 0 else np.min(sums)
    along = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    if isinstance(along, (int, np.integer)) and ord in (None, 1, 2):
        powers = build_matrix(x, np.abs(x.data) ** (1 if ord == 1 else 2))
        sums = np.ravel(powers.sum(axis=int(along)))
        return sums if ord == 1 else np.sqrt(sums)
    raise TypeError(
        unsupported_message(f"the norm of order {ord} of a sparse matrix along {axis}", "np.linalg.norm(A.toarray(), ord)")
    )


def inv(A: Any) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.inv``: the inverse, with all elements stored."""
    data, pattern = elements_and_pattern(A)
    inverse = solution(data, np.eye(A.shape[0], dtype=data.dtype), pattern=pattern)
    kind = scipy.sparse.csc_array if isinstance(A, scipy.sparse.sparray) else scipy.sparse.csc_matrix
    return kind(inverse).asformat(A.format)


def matrix_power(A: object, power: int) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.matrix_power``."""
    if power < 0:
        raise ValueError("exponent must be >= 0")
    if power == 0:
        return unpatched(scipy.sparse.linalg.matrix_power)(plain_matrix(A), 0)
    result = A
    for _ in range(int(power) - 1):
        result = matmul(result, A)
    return result


def expm_multiply(
    A: object,  # noqa: N803 (SciPy's name)
    B: object,  # noqa: N803
    start: int | None = None,
    stop: int | None = None,
    num: int | None = None,
    endpoint: object = None,
    traceA: object = None,  # noqa: N803
) -> Any:
    """``scipy.sparse.linalg.expm_multiply`` at one time: the exponential series, in a number of steps given by the norm."""
    if any(option is not None for option in (start, stop, num, endpoint)):
        raise TypeError(unsupported_message("expm_multiply at several times", "expm_multiply(A * t, B) for each of them"))
    if isinstance(A, scipy.sparse.linalg.LinearOperator):
        raise TypeError(unsupported_message("expm_multiply with a LinearOperator", "a sparse matrix"))
    x = stack_nested(B)
    if not has_nodes(type(A)) and not isinstance(A, Value):
        return apply_expm(x, matrix=A)
    if isinstance(A, Value):
        A = scipy.sparse.csr_array(A)  # noqa: N806
    data, pattern = elements_and_pattern(A)
    plain = plain_matrix(A)
    value = unpatched(scipy.sparse.linalg.expm_multiply)(plain, to_values(x))
    steps = max(1, math.ceil(float(unpatched(scipy.sparse.linalg.norm)(plain, 1))))
    for _ in range(steps):
        term = x
        for k in range(1, TERMS + 1):
            term = product(data, term, pattern=pattern) / (steps * k)
            x = x + term
    return pin_value(x, value)


# ---------------------------------------------------------------------------------------------- eigenvalues


def eigsh(A: object, k: int = 6, M: object = None, sigma: float | None = None, **options: object) -> Any:  # noqa: N803 (SciPy's names)
    """``scipy.sparse.linalg.eigsh`` of real symmetric matrices."""
    if not scipy.sparse.issparse(A):
        raise TypeError(
            unsupported_message("eigsh of an object that is not a sparse matrix", "np.linalg.eigh, or a sparse matrix")
        )
    if M is not None or options.get("mode", "normal") != "normal":
        raise TypeError(unsupported_message("eigsh with M= or mode=", "np.linalg.eigh of the dense matrix"))
    data, pattern = elements_and_pattern(A)
    if data.dtype.kind == "c":
        raise TypeError(unsupported_message("eigsh of a complex matrix", "np.linalg.eigh(A.toarray())"))
    with_vectors = options.pop("return_eigenvectors", True)
    scipy_function = unpatched(scipy.sparse.linalg.eigsh)

    def find(numbers: NDArray[Any]) -> Any:
        w, v = scipy_function(pattern.matrix(numbers), k, sigma=to_values(sigma), **options)
        if with_vectors:
            return w, v
        values_only = scipy_function(pattern.matrix(numbers), k, sigma=to_values(sigma), return_eigenvectors=False, **options)
        order = np.argsort(w)[np.argsort(np.argsort(values_only))]  # without vectors, SciPy's order of the values differs
        return w[order], v[:, order]

    w, v = eigenpairs(data, pattern=pattern, find=find)
    return (w, v) if with_vectors else w


def svds(A: object, k: int = 6, *args: object, **options: object) -> Any:  # noqa: N803 (SciPy's name)
    """``scipy.sparse.linalg.svds`` of real matrices: eigenvalues of ``[[0, A], [A.T, 0]]``."""
    if not scipy.sparse.issparse(A):
        raise TypeError(unsupported_message("svds of an object that is not a sparse matrix", "np.linalg.svd"))
    returns_vectors = options.pop("return_singular_vectors", True)
    if returns_vectors not in (True, False) or args:
        raise TypeError(unsupported_message("svds with these options", "svds(A, k) and keyword arguments"))
    data, pattern = elements_and_pattern(A)
    if data.dtype.kind == "c":
        raise TypeError(unsupported_message("svds of a complex matrix", "np.linalg.svd(A.toarray())"))
    m, n = pattern.shape
    scipy_function = unpatched(scipy.sparse.linalg.svds)

    def find(numbers: NDArray[Any]) -> Any:
        u, s, vh = scipy_function(pattern.matrix(numbers[: pattern.count]), k, **options)
        return s, np.concatenate([u, vh.T]) / np.sqrt(2)

    rows, cols = np.concatenate([pattern.rows, pattern.cols + m]), np.concatenate([pattern.cols + m, pattern.rows])
    both = Pattern(scipy.sparse.coo_array((np.ones(rows.size), (rows, cols)), shape=(m + n, m + n)))
    s, vectors = eigenpairs(np.concatenate([data, data]), pattern=both, find=find)
    if not returns_vectors:
        return s
    return vectors[:m] * np.sqrt(2), s, np.transpose(vectors[m:]) * np.sqrt(2)
