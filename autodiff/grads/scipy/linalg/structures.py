"""Which part of a matrix SciPy reads, and what all rules of solvers share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...linalg import folded, half, mirrored, swap

_NAMES = {"gen": "general", "sym": "symmetric", "her": "hermitian", "pos": "hermitian", "positive definite": "hermitian"}
_ACROSS = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}


class Structure:
    """The part of a matrix that is read, given what it is assumed to be.

    Without an assumption SciPy looks at all elements, and takes the shortest way; the solution is that of the whole matrix.
    """

    def __init__(self, assume_a: str | None, lower: Any) -> None:
        self.kind = _NAMES.get(assume_a or "general", assume_a or "general")
        self.upper = not lower

    def _mask(self, n: int) -> Any:
        if self.kind == "diagonal":
            return np.eye(n)
        if self.kind == "tridiagonal":
            return np.tri(n, k=1) * np.tri(n, k=1).T
        if self.kind == "lower triangular":
            return np.tri(n)
        return np.tri(n).T if self.kind == "upper triangular" else None

    def read(self, a: Any) -> Any:
        """The matrix that is meant."""
        n = a.shape[-1]
        if self.kind == "hermitian":
            return mirrored(a, self.upper)
        if self.kind == "symmetric":
            triangle = a * half(n, self.upper)
            return triangle + swap(triangle)
        mask = self._mask(n)
        return a if mask is None else a * mask

    def folded(self, g: Any) -> Any:
        """The adjoint of what is read, from that of the matrix that is meant."""
        n = g.shape[-1]
        if self.kind == "hermitian":
            return folded(g, self.upper)
        if self.kind == "symmetric":
            return (g + swap(g)) * half(n, self.upper)
        mask = self._mask(n)
        return g if mask is None else g * mask


def across(assume_a: str | None) -> str | None:
    """What the transposed matrix is assumed to be."""
    return _ACROSS.get(assume_a, assume_a) if assume_a else assume_a


def as_columns(b: Any, *vectors: Any) -> tuple[bool, list[Any]]:
    """Whether a right-hand side is one vector; if so, vectors as columns."""
    single = b.ndim == 1
    return single, [v[..., None] if single else v for v in vectors]


def side_by_side(solve: Callable[[Any], Any], ndim: int, right: Any) -> Any:
    """Solutions for a stack of right-hand sides; those of one matrix (of `ndim` 2) as columns side by side."""
    if ndim > 2 or right.ndim == 2:
        return solve(right)
    columns = np.moveaxis(right, -2, 0)
    solved = solve(np.reshape(columns, (columns.shape[0], math.prod(columns.shape[1:]))))
    return np.moveaxis(np.reshape(solved, columns.shape), 0, -2)
