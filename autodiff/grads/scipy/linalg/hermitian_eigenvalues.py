"""Rules of Hermitian eigenproblems, standard and generalized (``a v = b v diag(w)``), also banded and tridiagonal.

For ``a v = b v diag(w)`` with ``v^H b v = 1`` the tangents are, with ``m = v^H (da v - db v diag(w))``,

    dw = diag(m),    dv = v (F * m - E * (v^H db v) / 2),

where F[i, j] is 1 / (w[j] - w[i]) for different eigenvalues and 0 for equal ones, and E[i, j] is 1 for equal ones, else 0. They
extend the formulas of M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008), to pairs.

If only some eigenvalues are requested, all eigenvectors are computed, because the requested ones rotate towards the others. For
equal eigenvalues see `autodiff.grads.linalg.spectral_decompositions`.
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

_NAME = "linalg_eigh"  # in warnings about equal eigenvalues

# ------------------------------------------------------------------------------------- dense matrices


class _Decomposition:
    """All eigenvalues and eigenvectors of a matrix or of a pair; the result of the operation may be a part of them.

    Attributes
    ----------
    w, v : array or Node
        All eigenvalues and eigenvectors.
    first, count : array, int
        For each matrix of a stack, the position of the result's first eigenvalue among all eigenvalues; and the number of
        eigenvalues in the result.
    type : int
        The type of the problem, as in ``scipy.linalg.eigh``.
    b : array or Node
        The second matrix as passed, or None.
    hermitian_b, inverse_b : array or Node
        The Hermitian matrix that SciPy reads from `b`, or None; and its inverse, None for type 1.
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
            self.first = _first_requested(self.w, subset_by_index, subset_by_value)
            self.count = w.shape[-1]
            if v is not None:
                self.v = self._insert(v, self.v)
        else:
            self.w, self.v, self.first, self.count = w, v, np.zeros(w.shape[:-1], np.intp), w.shape[-1]
        hermitian_b: Any = None if b is None else mirror_triangle(b, self.upper)
        self.hermitian_b = hermitian_b
        self.inverse_b: Any = np.linalg.inv(hermitian_b) if self.type > 1 else None

    def _insert(self, selected_vectors: NDArray[Any], all_vectors: NDArray[Any]) -> Any:
        """Return all vectors, with those of the result in place of recomputed ones, whose signs or phases may differ."""
        offsets = np.arange(self.w.shape[-1]) - self.first[..., None]
        is_selected = (offsets >= 0) & (offsets < self.count)
        return np.where(is_selected[..., None, :], self.widen(selected_vectors), all_vectors)

    def widen(self, selected: Any) -> Any:
        """Pad the cotangent of the requested values or vectors to that of all."""
        if selected is None or self.count == self.w.shape[-1]:
            return selected
        padded = np.concatenate([selected, np.zeros((*selected.shape[:-1], 1), selected.dtype)], axis=-1)
        offsets = np.arange(self.w.shape[-1]) - self.first[..., None]
        return self._take(padded, np.where((offsets >= 0) & (offsets < self.count), offsets, self.count))

    def narrow(self, all_tangents: object) -> Any:
        """Select the requested tangents from those of all."""
        if self.count == self.w.shape[-1]:
            return all_tangents
        return self._take(all_tangents, self.first[..., None] + np.arange(self.count))

    def _take(self, values_or_vectors: Any, positions: NDArray[Any]) -> Any:
        """Take eigenvalues, or columns of eigenvectors, at positions that differ between the matrices of a stack."""
        is_vectors = values_or_vectors.ndim > self.w.ndim
        return np.take_along_axis(values_or_vectors, positions[..., None, :] if is_vectors else positions, axis=-1)

    @property
    def u(self) -> Any:
        """The eigenvectors of ``a u = c u diag(w)``, where c is b for type 1, and its inverse for types 2 and 3."""
        return np.matmul(self.hermitian_b, self.v) if self.type == 2 else self.v

    def pull(self, gw: object, gv: Any) -> tuple[Any, Any]:
        """Return the cotangents of the Hermitian matrices."""
        gw, gv = self.widen(gw), self.widen(gv)
        w, u = self.w, self.u
        b_cotangent_of_v: Any = 0
        if gv is not None and self.type == 2:  # v is c u
            gv = np.matmul(transpose(self.inverse_b), gv)
            b_cotangent_of_v = -np.matmul(gv, transpose(self.v))
        rotation_cotangent = None if gv is None else np.matmul(transpose(u), gv)
        check_cotangent(_NAME, w, gw, rotation_cotangent)
        m_cotangent: Any = 0 if rotation_cotangent is None else inverse_gaps(w) * rotation_cotangent
        if gw is not None:
            m_cotangent = m_cotangent + on_diagonal(gw, w, _NAME)
        a_cotangent = matmul_chain(np.conjugate(u), m_cotangent, transpose(u))
        if self.b is None:
            return a_cotangent, None
        projection_cotangent = -m_cotangent * w[..., None, :]  # of u^H dc u
        if rotation_cotangent is not None:
            projection_cotangent = projection_cotangent - np.where(equal_pairs(w), rotation_cotangent, 0) / 2
        c_cotangent = matmul_chain(np.conjugate(u), projection_cotangent, transpose(u))
        if self.type == 1:
            return a_cotangent, c_cotangent
        inverse_b = transpose(self.inverse_b)
        return a_cotangent, b_cotangent_of_v - matmul_chain(inverse_b, c_cotangent, inverse_b)

    def push(self, da: object, db: NDArray[Any] | None) -> tuple[Any, Any]:
        """Return the tangents of values and vectors."""
        w, u = self.w, self.u
        dc = db if self.type == 1 or db is None else -matmul_chain(self.inverse_b, db, self.inverse_b)
        m: Any = 0 if da is None else matmul_chain(conj_transpose(u), da, u)
        dc_projection: Any = 0
        if dc is not None:
            dc_projection = matmul_chain(conj_transpose(u), dc, u)
            m = m - dc_projection * w[..., None, :]
        check_tangent(_NAME, w, m)
        rotation = inverse_gaps(w) * m
        if dc is not None:
            rotation = rotation - np.where(equal_pairs(w), dc_projection, 0) / 2
        dv: Any = np.matmul(u, rotation)
        if self.type == 2:
            dv = np.matmul(self.inverse_b, dv if db is None else dv - np.matmul(db, self.v))
        return np.real(diagonals(m)), dv


def _first_requested(w: NDArray[Any], by_index: tuple[int, ...] | None, by_value: NDArray[Any] | tuple[Any, ...] | None) -> Any:
    """Return the position of the first requested value in each matrix of a stack."""
    if by_value is None or by_index is not None:
        return np.full(w.shape[:-1], 0 if by_index is None else int(by_index[0]))
    return evaluate_guarded(
        "which eigenvalues are in an interval", lambda w: np.asarray(np.sum(w <= by_value[0], axis=-1), np.intp), w
    )


def _split_cotangents(g: Any, eigvals_only: object) -> tuple[Any, Any]:
    return (g, None) if eigvals_only else g


def _pull(position: int, g: Any, out: Any, a: NDArray[Any], b: NDArray[Any] | None = None, **options: Any) -> Any:
    decomposition = _Decomposition(out, a, b, **options)
    return fold_hermitian(decomposition.pull(*_split_cotangents(g, options.get("eigvals_only")))[position], decomposition.upper)


def _push(position: int, t: NDArray[Any], out: Any, a: NDArray[Any], b: NDArray[Any] | None = None, **options: Any) -> Any:
    decomposition = _Decomposition(out, a, b, **options)
    t = mirror_triangle(t, decomposition.upper)
    dw, dv = decomposition.push(*((t, None) if position == 0 else (None, t)))
    dw = decomposition.narrow(dw)
    return dw if options.get("eigvals_only") else (dw, decomposition.narrow(dv))


def _declare_eigh(opname: str, **fixed: Any) -> Rule:
    """Declare a decomposition of a matrix or pair. A batch is processed as one more axis of a stack, unless `is_sequential`."""

    def formula(position: int) -> Any:
        return lambda g, out, *operands, **options: _pull(position, g, out, *operands, **{**fixed, **options})

    def tangent(position: int) -> Any:
        return lambda t, out, *operands, **options: _push(position, t, out, *operands, **{**fixed, **options})

    def is_sequential(out: Any, options: dict[str, Any]) -> bool:
        """Whether the elements of a batch are processed sequentially."""
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

_SELECT_CODES = {0: "a", 1: "v", 2: "i", "all": "a", "value": "v", "index": "i"}


def _eigh_options(eigvals_only: Operand | None, select: Any, select_range: Any) -> dict[str, Any]:
    """Convert `select` and `select_range` to options of ``scipy.linalg.eigh``."""
    code = select.lower() if isinstance(select, str) else select
    code = _SELECT_CODES.get(code, code)
    subset = {} if code == "a" else {"subset_by_index" if code == "i" else "subset_by_value": tuple(select_range)}
    return {"eigvals_only": bool(eigvals_only), **subset}


def _tridiagonal(d: Any, e: Any) -> Any:
    """Return the matrix whose lower triangle consists of two diagonals."""
    n = d.shape[-1]
    if n == 1:
        return d[..., None]
    padded_e = np.concatenate([e, np.zeros_like(e[..., :1])], axis=-1)
    return d[..., None] * np.eye(n) + padded_e[..., None, :] * np.eye(n, k=-1)


def _diagonal_below(x: NDArray[Any]) -> Any:
    n = x.shape[-1]
    return x[..., np.arange(1, n), np.arange(n - 1)]


def _declare_tridiagonal(opname: str, values_only: bool) -> Rule:
    def pull(position: int) -> Any:
        def formula(
            g: Array, out: NDArray[Any], d: object, e: object, select: object = "a", select_range: object = None, **options: Any
        ) -> Any:
            eigh_options = _eigh_options(values_only or options.get("eigvals_only"), select, select_range)
            matrix_cotangent = _pull(0, g, out, _tridiagonal(d, e), **eigh_options)
            return _diagonal_below(matrix_cotangent) if position else diagonals(matrix_cotangent)

        return formula

    def push(position: int) -> Any:
        def tangent(
            t: Any, out: NDArray[Any], d: Array, e: Array, select: object = "a", select_range: object = None, **options: Any
        ) -> Any:
            eigh_options = _eigh_options(values_only or options.get("eigvals_only"), select, select_range)
            matrix_tangent = _tridiagonal(0 * d, t) if position else _tridiagonal(t, 0 * e)
            return _push(0, matrix_tangent, out, _tridiagonal(d, e), **eigh_options)

        return tangent

    return general(opname, pull(0), pull(1)).tangent(push(0), push(1)).not_batchable()


scipy_linalg_eigh_tridiagonal_grad = _declare_tridiagonal("scipy_linalg_eigh_tridiagonal", False)
scipy_linalg_eigvalsh_tridiagonal_grad = _declare_tridiagonal("scipy_linalg_eigvalsh_tridiagonal", True)


def _declare_banded(opname: str, values_only: bool) -> Rule:
    def pull(
        g: Any, out: Any, a: NDArray[Any], lower: Any = False, eigvals_only: bool = False, select: object = "a",
        select_range: object = None, **_: object,
    ) -> Any:  # fmt: skip
        widths = banded_matrices.bandwidths(a, lower)
        eigh_options = _eigh_options(values_only or eigvals_only, select, select_range)
        return banded_matrices.from_dense(
            _pull(0, g, out, banded_matrices.to_dense(a, *widths), lower=lower, **eigh_options), *widths
        )

    def push(
        t: Any, out: Any, a: NDArray[Any], lower: Any = False, eigvals_only: bool = False, select: object = "a",
        select_range: object = None, **_: object,
    ) -> Any:  # fmt: skip
        widths = banded_matrices.bandwidths(a, lower)
        eigh_options = _eigh_options(values_only or eigvals_only, select, select_range)
        tangent, matrix = banded_matrices.to_dense(t, *widths), banded_matrices.to_dense(a, *widths)
        return _push(0, tangent, out, matrix, lower=lower, **eigh_options)

    return general(opname, pull).tangent(push).not_batchable()


scipy_linalg_eig_banded_grad = _declare_banded("scipy_linalg_eig_banded", False)
scipy_linalg_eigvals_banded_grad = _declare_banded("scipy_linalg_eigvals_banded", True)
