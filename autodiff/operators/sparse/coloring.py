"""Coloring of sparse matrices: columns without a common row get the same color and are computed together.

Greedy coloring as in A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian matrices" (1974): each
column, in order, gets the first color without a conflict. The symmetry of Hessians is not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def color_columns(pattern: Any) -> tuple[Any, int]:
    """Color the columns, so that no two columns of one color have an element in the same row.

    Parameters
    ----------
    pattern : scipy.sparse.csr_array
        Where there are elements.

    Returns
    -------
    colors : numpy.ndarray
        The color of each column, from 0.
    count : int
        How many colors there are.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> colors, count = color_columns(scipy.sparse.csr_array(np.eye(4, dtype=bool) | np.eye(4, k=1, dtype=bool)))
    >>> colors.tolist(), count
    ([0, 1, 0, 1], 2)
    """
    columns = pattern.shape[1]
    pattern = pattern if pattern.has_sorted_indices else pattern.sorted_indices()
    max_colors = longest_row(pattern)
    if max_colors <= 1:
        return np.zeros(columns, int), min(columns, 1)
    width = _bandwidth(pattern)
    if width <= max_colors:  # a full band, for which fewer colors do not suffice
        return np.arange(columns) % width, width
    colors, count = _greedy(pattern) if max_colors < columns else (np.arange(columns), columns)
    return (colors, count) if count <= width else (np.arange(columns) % width, width)


def longest_row(pattern: Any) -> int:
    """The maximal number of elements in a row, which is the minimal number of colors."""
    return int(np.max(np.diff(pattern.indptr), initial=0))


def _bandwidth(pattern: Any) -> int:
    """Return the maximum distance between the first and the last element of a row."""
    rows = np.flatnonzero(np.diff(pattern.indptr))
    return int(np.max(pattern.indices[pattern.indptr[rows + 1] - 1] - pattern.indices[pattern.indptr[rows]], initial=-1)) + 1


def _greedy(pattern: Any) -> tuple[Any, int]:
    """Give each column the first color that no column with a common row has."""
    by_column = pattern.tocsc()
    rows_of = np.split(by_column.indices, by_column.indptr[1:-1])
    used: list[set[int]] = [set() for _ in range(pattern.shape[0])]  # the colors in each row
    colors = np.zeros(pattern.shape[1], int)
    for column, rows in enumerate(rows_of):
        neighbor_colors: set[int] = set().union(*(used[row] for row in rows))
        color = next(c for c in range(len(neighbor_colors) + 1) if c not in neighbor_colors)
        colors[column] = color
        for row in rows:
            used[row].add(color)
    return colors, int(colors.max(initial=-1)) + 1
