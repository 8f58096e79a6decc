"""What LAPACK stores in its own way: matrices by their diagonals, and exchanges of rows.

Of diagonals, ``bands[upper + i - j, j] = a[i, j]``. All is written in NumPy's functions of whole arrays, so that it is
recorded where it meets nodes; stacks are taken as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..guards import frozen


def _places(n: int, lower: int, upper: int) -> tuple[Any, Any]:
    """The row of the matrix of each place in the bands, and whether it is in the matrix."""
    rows = np.arange(n) + np.arange(lower + upper + 1)[:, None] - upper
    return np.clip(rows, 0, max(n - 1, 0)), (rows >= 0) & (rows < n)


def inside(n: int, lower: int, upper: int) -> Any:
    """Which places of the bands belong to the matrix; the corners do not."""
    return _places(n, lower, upper)[1]


def transposed(bands: Any, lower: int, upper: int) -> Any:
    """The bands of the transposed matrix, of which `upper` lie below the diagonal and `lower` above."""
    columns, there = _places(bands.shape[-1], upper, lower)
    return np.where(there, bands[..., np.arange(lower + upper, -1, -1)[:, None], columns], 0)


def outer(left: Any, right: Any, lower: int, upper: int) -> Any:
    """The bands of ``left @ right.T``, of which each is columns side by side."""
    rows, there = _places(left.shape[-2], lower, upper)
    return np.where(there, np.sum(left[..., rows, :] * right[..., None, :, :], axis=-1), 0)


def product(bands: Any, columns: Any, lower: int, upper: int) -> Any:
    """The product of a matrix and columns side by side."""
    rows, _ = _places(columns.shape[-2], upper, lower)
    return np.sum(transposed(bands, lower, upper)[..., None] * columns[..., rows, :], axis=-3)


def dense(bands: Any, lower: int, upper: int) -> Any:
    """The matrix itself."""
    n = bands.shape[-1]
    i, j = np.arange(n)[:, None], np.arange(n)
    rows = upper + i - j
    there = (rows >= 0) & (rows <= lower + upper)
    return np.where(there, bands[..., np.clip(rows, 0, lower + upper), j], 0)


def banded(matrix: Any, lower: int, upper: int) -> Any:
    """The bands of a matrix."""
    n = matrix.shape[-1]
    rows, there = _places(n, lower, upper)
    return np.where(there, matrix[..., rows, np.arange(n)], 0)


def widths(bands: Any, lower: bool) -> tuple[int, int]:
    """How many diagonals below and above the main one are stored of a Hermitian matrix."""
    if bands.ndim < 2:
        raise ValueError(f"bands of a matrix are an array of (diagonals, n); given is one of shape {bands.shape}")
    count = bands.shape[-2] - 1
    return (count, 0) if lower else (0, count)


def order_of_rows(piv: Any, count: int) -> Any:
    """The order into which LAPACK's exchanges of rows, the k-th with row ``piv[k]``, bring `count` rows."""
    piv = np.asarray(frozen(piv, "the order of the rows of a decomposition")).astype(np.intp)
    order = np.broadcast_to(np.arange(count), (*piv.shape[:-1], count)).copy()
    for k in range(piv.shape[-1]):
        other, mine = piv[..., k : k + 1], order[..., k : k + 1].copy()
        order[..., k : k + 1] = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, mine, -1)
    return order
