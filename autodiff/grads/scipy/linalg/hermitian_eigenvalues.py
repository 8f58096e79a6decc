"""Rules of eigenvalues and vectors of Hermitian matrices, which may be banded or tridiagonal, and of pairs of them.

For ``a v = b v diag(w)`` with ``v^H b v = 1`` the tangents are, with ``m = v^H (da v - db v diag(w))``,

    dw = diag(m),    dv = v (F * m - E * (v^H db v) / 2),

where F holds 1 / (w_j - w_i), and E is 1 where they are equal: M. Giles, "Collected matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), extended to pairs. If only a part of the values is requested, all vectors
are computed, because the requested ones rotate towards the others. For equal values see
`autodiff.grads.linalg.repeated_eigenvalues`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand
from compgraph.guards import evaluate_guarded
from compgraph.scipy import banded_matrices

from ....rules import Rule, general
from ...linalg import (
    check_cotangent,
    check_tangent,
    conj_transpose,
    diagonals,
    equal_pairs,
    fold_hermitian,
    has_equal_values,
    inverse_gaps,
    matmul_chain,
    mirror_triangle,
    on_diagonal,
    transpose,
)

_NAME = "linalg_eigh"  # in warnings of `repeated_eigenvalues`

# ------------------------------------------------------------------------------------- dense matrices


class _Decomposition:
    """All eigenvalues and vectors of a matrix or of a pair; the result of the operation may be a part of them.

    Attributes
    ----------
    w, v : array or Node
        All values and vectors.
    first, count : int
        The position of the first value in the result, and the number of its values.
    type : int
        The type of the problem, as in ``scipy.linalg.eigh``.
    b : array or Node
        The second matrix as passed, or None.
    hermitian_b, inverse : array or Node
        The Hermitian matrix that SciPy reads from `b`, or None, and its inverse, None for type 1.
    upper : bool
        Whether SciPy reads the upper triangles.
    """

    def __init__(
        self,
        out: NDArray[Any],
        a: NDArray[Any],
        b: NDArray[Any] | None,
        lower: object = True,
        type: int = 1,
        eigvals_only: bool = False,
        subset_by_index: tuple[int, ...] | None = None,
        subset_by_value: tuple[float, ...] | None = None,
        **_: object,
    ) -> None:
        self.upper, self.type, self.b = not lower, type if b is not None else 1, b
        w, v = (out, None) if eigvals_only else out
        is_part = subset_by_index is not None or subset_by_value is not None
        if v is None or is_part:
            self.w, self.v = scipy.linalg.eigh(a, b, lower=lower, type=type)
            self.first = _first(self.w, subset_by_index, subset_by_value)
            self.count = w.shape[-1]
            if v is not None:
                self.v = self._insert(v, self.v)
        else:
            self.w, self.v, self.first, self.count = w, v, 0, w.shape[-1]
        hermitian_b: Any = None if b is None else mirror_triangle(b, self.upper)
        self.hermitian_b = hermitian_b
        self.inverse: Any = np.linalg.inv(hermitian_b) if self.type > 1 else None

    def _insert(self, selected_vectors: NDArray[Any], all_vectors: NDArray[Any]) -> Any:
        """Return all vectors, with those of the result inserted."""
        end = self.first + self.count
        return np.concatenate([all_vectors[..., : self.first], selected_vectors, all_vectors[..., end:]], axis=-1)

    def widen(self, selected: Any) -> Any:
        """Pad the cotangent of the requested values or vectors to that of all."""
        if selected is None or self.count == self.w.shape[-1]:
            return selected
        shape = selected.shape[:-1]
        before = np.zeros((*shape, self.first), selected.dtype)
        after = np.zeros((*shape, self.w.shape[-1] - self.first - self.count), selected.dtype)
        return np.concatenate([before, selected, after], axis=-1)

    def narrow(self, all_tangents: Any) -> Any:
        """Select the requested tangents from those of all."""
        return all_tangents[..., self.first : self.first + self.count]

    @property
    def vectors(self) -> Any:
        """The vectors u of ``a u = w c u``, where c is b, or its inverse for the other types."""
        return np.matmul(self.hermitian_b, self.v) if self.type == 2 else self.v

    def pull(self, gw: object, gv: Any) -> tuple[Any, Any]:
        """Return the cotangents of the Hermitian matrices."""
        gw, gv = self.widen(gw), self.widen(gv)
        w, u = self.w, self.vectors
        direct: Any = 0
        if gv is not None and self.type == 2:  # v is c u
            gv = np.matmul(transpose(self.inverse), gv)
            direct = -np.matmul(gv, transpose(self.v))
        rotation_cotangent = None if gv is None else np.matmul(transpose(u), gv)
        check_cotangent(_NAME, w, gw, rotation_cotangent)
        middle: Any = 0 if rotation_cotangent is None else inverse_gaps(w) * rotation_cotangent
        if gw is not None:
            middle = middle + on_diagonal(gw, w, _NAME)
        a_cotangent = matmul_chain(np.conjugate(u), middle, transpose(u))
        if self.b is None:
            return a_cotangent, None
        inner = -middle * w[..., None, :]
        if rotation_cotangent is not None:
            inner = inner - np.where(equal_pairs(w), rotation_cotangent, 0) / 2
        c_cotangent = matmul_chain(np.conjugate(u), inner, transpose(u))
        if self.type == 1:
            return a_cotangent, c_cotangent
        return a_cotangent, direct - matmul_chain(transpose(self.inverse), c_cotangent, transpose(self.inverse))

    def push(self, da: object, db: NDArray[Any] | None) -> tuple[Any, Any]:
        """Return the tangents of values and vectors."""
        w, u = self.w, self.vectors
        dc = db if self.type == 1 or db is None else -matmul_chain(self.inverse, db, self.inverse)
        inner: Any = 0 if da is None else matmul_chain(conj_transpose(u), da, u)
        c_change: Any = 0
        if dc is not None:
            c_change = matmul_chain(conj_transpose(u), dc, u)
            inner = inner - c_change * w[..., None, :]
        check_tangent(_NAME, w, inner)
        rotation = inverse_gaps(w) * inner
        if dc is not None:
            rotation = rotation - np.where(equal_pairs(w), c_change, 0) / 2
        dv: Any = np.matmul(u, rotation)
        if self.type == 2:
            dv = np.matmul(self.inverse, dv if db is None else dv - np.matmul(db, self.v))
        return np.real(diagonals(inner)), dv


def _first(w: NDArray[Any], by_index: tuple[int, ...] | None, by_value: NDArray[Any] | tuple[Any, ...] | None) -> int:
    """Return the position of the first requested value."""
    if by_index is not None:
        return int(by_index[0])
    if by_value is None:
        return 0
    counts = evaluate_guarded("which eigenvalues are in an interval", lambda w: np.sum(w <= by_value[0], axis=-1), w)
    return int(np.max(counts, initial=0))


def _split_cotangents(g: Any, eigvals_only: object) -> tuple[Any, Any]:
    return (g, None) if eigvals_only else g


def _pull(position: int, g: Any, out: Any, a: Any, b: Any = None, **options: Any) -> Any:
    decomposition = _Decomposition(out, a, b, **options)
    return fold_hermitian(decomposition.pull(*_split_cotangents(g, options.get("eigvals_only")))[position], decomposition.upper)


def _push(position: int, t: Any, out: Any, a: Any, b: Any = None, **options: Any) -> Any:
    decomposition = _Decomposition(out, a, b, **options)
    t = mirror_triangle(t, decomposition.upper)
    dw, dv = decomposition.push(*((t, None) if position == 0 else (None, t)))
    dw = decomposition.narrow(dw)
    return dw if options.get("eigvals_only") else (dw, decomposition.narrow(dv))


def _declare_eigh(opname: str, **fixed: Any) -> Rule:
    """Declare a decomposition of a matrix or pair. A batch is processed as one more axis of a stack, unless values are equal."""

    def formula(position: int) -> Any:
        return lambda g, out, *operands, **options: _pull(position, g, out, *operands, **{**fixed, **options})

    def tangent(position: int) -> Any:
        return lambda t, out, *operands, **options: _push(position, t, out, *operands, **{**fixed, **options})

    def is_sequential(out: Any, options: dict[str, Any]) -> bool:
        """Whether the elements of a batch are processed one after the other."""
        w = out if fixed.get("eigvals_only") or options.get("eigvals_only") else out[0]
        if options.get("subset_by_index") is not None or options.get("subset_by_value") is not None:
            return True
        return has_equal_values(w)

    def pull(position: int, g: NDArray[Any], out: NDArray[Any], *operands: object, **options: object) -> Any:
        return NotImplemented if is_sequential(out, options) else formula(position)(g, out, *operands, **options)

    def push(tangents: list[NDArray[Any]], out: NDArray[Any], *operands: Any, **options: object) -> Any:
        active_positions = [position for position, t in enumerate(tangents) if t is not None]
        stacked = any(x is not None and x.ndim > 2 for x in operands)
        if len(active_positions) > 1 or stacked or is_sequential(out, options):
            return NotImplemented
        return tangent(active_positions[0])(tangents[active_positions[0]], out, *operands, **options)

    return general(opname, formula(0), formula(1)).tangent(tangent(0), tangent(1)).not_batchable().batched(pull, push)


scipy_linalg_eigh_grad = _declare_eigh("scipy_linalg_eigh")
scipy_linalg_eigvalsh_grad = _declare_eigh("scipy_linalg_eigvalsh", eigvals_only=True)

# ------------------------------------------------------------------- tridiagonal and banded matrices

_SELECTED = {0: "a", 1: "v", 2: "i", "all": "a", "value": "v", "index": "i"}


def _eigh_options(eigvals_only: Operand | None, select: Any, select_range: Any) -> dict[str, Any]:
    """Return the options of `eigh` that select the same values."""
    select = _SELECTED.get(select, select).lower() if isinstance(select, str) else _SELECTED[select]
    select = _SELECTED.get(select, select)
    subset = {} if select == "a" else {"subset_by_index" if select == "i" else "subset_by_value": tuple(select_range)}
    return {"eigvals_only": bool(eigvals_only), **subset}


def _tridiagonal(d: Any, e: Any) -> Any:
    """Return the matrix whose lower triangle consists of two diagonals."""
    n = d.shape[-1]
    if n == 1:
        return d[..., None]
    columns = np.concatenate([e, np.zeros_like(e[..., :1])], axis=-1)
    return d[..., None] * np.eye(n) + columns[..., None, :] * np.eye(n, k=-1)


def _diagonal_below(x: NDArray[Any]) -> Any:
    n = x.shape[-1]
    return x[..., np.arange(1, n), np.arange(n - 1)]


def _declare_tridiagonal(opname: str, eigvals_only: bool) -> Rule:
    def pull(position: int) -> Any:
        def formula(
            g: Array, out: NDArray[Any], d: object, e: object, select: object = "a", select_range: object = None, **options: Any
        ) -> Any:
            eigh_options = _eigh_options(eigvals_only or options.get("eigvals_only"), select, select_range)
            matrix_cotangent = _pull(0, g, out, _tridiagonal(d, e), **eigh_options)
            return _diagonal_below(matrix_cotangent) if position else diagonals(matrix_cotangent)

        return formula

    def push(position: int) -> Any:
        def tangent(
            t: NDArray[Any], out: NDArray[Any], d: Any, e: Any, select: object = "a", select_range: object = None, **options: Any
        ) -> Any:
            eigh_options = _eigh_options(eigvals_only or options.get("eigvals_only"), select, select_range)
            matrix_tangent = _tridiagonal(0 * d, t) if position else _tridiagonal(t, 0 * e)
            return _push(0, matrix_tangent, out, _tridiagonal(d, e), **eigh_options)

        return tangent

    return general(opname, pull(0), pull(1)).tangent(push(0), push(1)).not_batchable()


scipy_linalg_eigh_tridiagonal_grad = _declare_tridiagonal("scipy_linalg_eigh_tridiagonal", False)
scipy_linalg_eigvalsh_tridiagonal_grad = _declare_tridiagonal("scipy_linalg_eigvalsh_tridiagonal", True)


def _declare_banded(opname: str, values_only: bool) -> Rule:
    def pull(
        g: NDArray[Any] | tuple[Any, ...],
        out: object,
        a: Any,
        lower: Any = False,
        eigvals_only: bool = False,
        select: str = "a",
        select_range: tuple[Any, ...] | None = None,
        **_: object,
    ) -> Any:
        below, above = banded_matrices.widths(a, lower)
        eigh_options = _eigh_options(values_only or eigvals_only, select, select_range)
        return banded_matrices.banded(
            _pull(0, g, out, banded_matrices.dense(a, below, above), lower=lower, **eigh_options), below, above
        )

    def push(
        t: object,
        out: NDArray[Any] | tuple[Any, ...],
        a: Any,
        lower: Any = False,
        eigvals_only: bool = False,
        select: str = "a",
        select_range: tuple[Any, ...] | None = None,
        **_: object,
    ) -> Any:
        below, above = banded_matrices.widths(a, lower)
        eigh_options = _eigh_options(values_only or eigvals_only, select, select_range)
        return _push(
            0, banded_matrices.dense(t, below, above), out, banded_matrices.dense(a, below, above), lower=lower, **eigh_options
        )

    return general(opname, pull).tangent(push).not_batchable()


scipy_linalg_eig_banded_grad = _declare_banded("scipy_linalg_eig_banded", False)
scipy_linalg_eigvals_banded_grad = _declare_banded("scipy_linalg_eigvals_banded", True)
