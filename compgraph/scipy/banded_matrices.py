"""LAPACK's storage formats: banded matrices as diagonals, and permutations as row exchanges.

A matrix `a` of shape ``(n, n)`` with `lower` diagonals below the main one and `upper` above it is stored as ``bands`` of shape
``(lower + upper + 1, n)``, where ``bands[upper + i - j, j] = a[i, j]``. The functions call NumPy on whole arrays, so they
also accept nodes. Leading axes are stacks of matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..guards import guarded_value


def _matrix_rows(n: int, lower: int, upper: int) -> tuple[Any, Any]:
    """For each position in the bands, its row in the matrix (clipped), and whether it is inside the matrix."""
    rows = np.arange(n) + np.arange(lower + upper + 1)[:, None] - upper
    return np.clip(rows, 0, max(n - 1, 0)), (rows >= 0) & (rows < n)


def matrix_mask(n: int, lower: int, upper: int) -> Any:
    """A mask of the positions in the bands that belong to the matrix; those in the corners do not."""
    return _matrix_rows(n, lower, upper)[1]


def transpose(bands: Any, lower: int, upper: int) -> Any:
    """The bands of the transposed matrix, which has `upper` diagonals below the main one and `lower` above."""
    columns, is_inside = _matrix_rows(bands.shape[-1], upper, lower)
    return np.where(is_inside, bands[..., np.arange(lower + upper, -1, -1)[:, None], columns], 0)


def outer_product(left: Any, right: Any, lower: int, upper: int) -> Any:
    """The bands of ``left @ right.T``, both of shape ``(n, k)``."""
    rows, is_inside = _matrix_rows(left.shape[-2], lower, upper)
    return np.where(is_inside, np.sum(left[..., rows, :] * right[..., None, :, :], axis=-1), 0)


def multiply(bands: Any, columns: Any, lower: int, upper: int) -> Any:
    """The product of the banded matrix and `columns`, of shape ``(n, k)``."""
    rows, _ = _matrix_rows(columns.shape[-2], upper, lower)
    return np.sum(transpose(bands, lower, upper)[..., None] * columns[..., rows, :], axis=-3)


def to_dense(bands: Any, lower: int, upper: int) -> Any:
    """The dense matrix, of shape ``(n, n)``, of its bands."""
    n = bands.shape[-1]
    i, j = np.arange(n)[:, None], np.arange(n)
    rows = upper + i - j
    is_inside = (rows >= 0) & (rows <= lower + upper)
    return np.where(is_inside, bands[..., np.clip(rows, 0, lower + upper), j], 0)


def from_dense(matrix: Any, lower: int, upper: int) -> Any:
    """The bands of a dense matrix."""
    n = matrix.shape[-1]
    rows, is_inside = _matrix_rows(n, lower, upper)
    return np.where(is_inside, matrix[..., rows, np.arange(n)], 0)


def bandwidths(bands: Any, lower: bool) -> tuple[int, int]:
    """The numbers of diagonals below and above the main one in `bands`, which hold one half of a Hermitian matrix."""
    if bands.ndim < 2:
        raise ValueError(f"bands of a matrix must have shape (diagonals, n), not {bands.shape}")
    count = bands.shape[-2] - 1
    return (count, 0) if lower else (0, count)


def row_permutation(piv: object, count: int) -> Any:
    """The permutation of `count` rows by LAPACK's exchanges: row k with row ``piv[k]``, in the order of k."""
    piv = np.asarray(guarded_value(piv, "the order of the rows of a decomposition")).astype(np.intp)
    order = np.broadcast_to(np.arange(count), (*piv.shape[:-1], count)).copy()
    for k in range(piv.shape[-1]):
        other, row = piv[..., k : k + 1], order[..., k : k + 1].copy()
        order[..., k : k + 1] = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, row, -1)
    return order
