"""Rules of eigenvalues of general matrices and pairs, of singular values, and of QR and RQ.

Singular values, QR and eigenvectors of one matrix have the formulas of NumPy's functions. SciPy normalizes the eigenvectors of a
pair of matrices to length one. The phase of complex ones is arbitrary, so only functions that do not depend on it have a
derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand
from compgraph.graph import to_values
from compgraph.guards import guarded_value
from compgraph.values import Value

from ....rules import Rule, general
from ...linalg import (
    batch_unless_equal,
    check_cotangent,
    check_tangent,
    conj_transpose,
    diagonals,
    eig_cotangent,
    eig_tangent,
    inverse_gaps,
    matmul_chain,
    on_diagonal,
    qr_cotangent,
    qr_tangent,
    svd_cotangent,
    svd_tangent,
    transpose,
)
from .factorizations import permute

# ---------------------------------------------------------------------------------------- eigenvectors


def _tangential_part(gv: NDArray[Any], v: NDArray[Any]) -> Any:
    """Return the cotangent of normalized vectors without the part along them, which has no effect."""
    radial = np.sum(gv * v, axis=-2, keepdims=True)
    magnitude = np.max(np.abs(to_values(gv)), initial=0)
    if v.dtype.kind == "c" and np.any(np.abs(np.imag(to_values(radial))) > 1e3 * np.finfo(v.dtype).eps * max(magnitude, 1e-300)):
        raise TypeError(
            "scipy.linalg.eig(a, b): the phase of complex vectors of a pair is arbitrary, so functions that depend on it have no "
            "derivative. Use np.abs or projections of the vectors, or scipy.linalg.eig(scipy.linalg.solve(b, a))"
        )
    return gv - np.real(radial) * np.conjugate(v)


def _pull_pair(gw: object, gv: Any, w: NDArray[Any], v: Any, a: object, b: Array | None) -> tuple[Any, Any]:
    """Return the cotangents of a and b, given those of values and right vectors."""
    if b is None:
        return eig_cotangent((gw, gv), (w, v), a), None
    rotation_cotangent = None if gv is None else np.matmul(transpose(v), _tangential_part(gv, v))
    check_cotangent("linalg_eig", w, gw, rotation_cotangent)
    basis_cotangent: Any = 0 if rotation_cotangent is None else inverse_gaps(w) * rotation_cotangent
    if gw is not None:
        basis_cotangent = basis_cotangent + on_diagonal(gw, w, "linalg_eig")
    left_vectors = transpose(np.linalg.inv(np.matmul(b, v)))
    return matmul_chain(left_vectors, basis_cotangent, transpose(v)), -matmul_chain(
        left_vectors, basis_cotangent * w[..., None, :], transpose(v)
    )


def _push_pair(t: Array, position: int, w: NDArray[Any], v: NDArray[Any], a: object, b: Array | None) -> tuple[Any, Any]:
    """Return the tangents of values and right vectors; those of complex vectors of a pair are not valid."""
    if b is None:
        return eig_tangent(t, (w, v), a)  # type: ignore[no-any-return]
    tv = np.matmul(t, v)
    basis_tangent = np.matmul(np.linalg.inv(np.matmul(b, v)), -tv * w[..., None, :] if position else tv)
    check_tangent("linalg_eig", w, basis_tangent)
    vector_tangent = np.matmul(v, inverse_gaps(w) * basis_tangent)
    scale = np.real(np.sum(np.conjugate(v) * vector_tangent, axis=-2, keepdims=True))
    return diagonals(basis_tangent), vector_tangent - v * scale


def _eig_parts(out: Any, left: object, right: object, a: object, b: NDArray[Any] | None) -> tuple[Any, Any, Any]:
    """Return values, left and right vectors; the right ones are computed if they are missing."""
    vl: Any = None
    vr: Any = None
    if left and right:
        w, vl, vr = out
    elif left:
        w, vl = out
    elif right:
        w, vr = out
    else:
        w = out
    return w, vl, _right_vectors(w, a, b) if vr is None else vr


def _right_vectors(w: object, a: object, b: NDArray[Any] | None) -> Any:
    """Compute the right vectors; raise if their order differs from that of the values."""
    recomputed, v = scipy.linalg.eig(a, b)
    values, recomputed_values = to_values(w), to_values(recomputed)
    if not np.allclose(
        values, recomputed_values, rtol=0, atol=np.sqrt(np.finfo(values.dtype).eps) * np.max(np.abs(values), initial=1e-300)
    ):
        raise scipy.linalg.LinAlgError(
            "the derivative of eigenvalues needs their right eigenvectors, but SciPy returns both in different orders. Use "
            "scipy.linalg.eig with right=True"
        )
    return v


def _require_inhomogeneous(options: dict[str, Any]) -> None:
    if options.get("homogeneous_eigvals"):
        raise TypeError("scipy.linalg.eig: homogeneous_eigvals is not differentiable. Omit it")


def _require_right_vectors(right: bool) -> None:
    """Raise without right vectors, because SciPy then does not normalize left ones."""
    if not right:
        raise TypeError("scipy.linalg.eig(a, b): left vectors alone have no derivative. Pass left=True and right=True")


def _requested_sides(options: dict[str, Any], values_only: bool) -> tuple[Any, Any]:
    return (False, False) if values_only else (options.get("left", False), options.get("right", True))


def _pull_eig(position: int, values_only: bool, g: Any, out: Any, a: Any, b: Any = None, **options: object) -> Any:
    _require_inhomogeneous(options)
    left, right = _requested_sides(options, values_only)
    w, vl, vr = _eig_parts(out, left, right, a, b)
    gw, gl, gr = (g, None, None) if not (left or right) else (g[0], g[1] if left else None, g[-1] if right else None)
    total: Any = 0 * (b if position else a)
    if gw is not None or gr is not None:
        total = total + _pull_pair(gw, gr, w, vr, a, b)[position]
    if gl is not None and b is not None:
        _require_right_vectors(right)
    if gl is not None:  # the right vectors of the adjoint matrices
        b_adjoint = None if b is None else conj_transpose(b)
        total = total + conj_transpose(_pull_pair(None, gl, np.conjugate(w), vl, conj_transpose(a), b_adjoint)[position])
    return total


def _push_eig(
    position: int, values_only: bool, t: NDArray[Any], out: object, a: object, b: NDArray[Any] | None = None, **options: object
) -> Any:
    _require_inhomogeneous(options)
    left, right = _requested_sides(options, values_only)
    w, vl, vr = _eig_parts(out, left, right, a, b)
    dw, dr = _push_pair(t, position, w, vr, a, b)
    if not (left or right):
        return dw
    if b is not None and (vr if right else vl).dtype.kind == "c":
        raise TypeError(
            "scipy.linalg.eig(a, b): the phase of complex vectors of a pair is arbitrary, so they have no tangents. Use "
            "scipy.linalg.eigvals(a, b), or scipy.linalg.eig(scipy.linalg.solve(b, a))"
        )
    tangents = [dw]
    if left and b is not None:
        _require_right_vectors(right)
    if left:
        b_adjoint = None if b is None else conj_transpose(b)
        tangents.append(_push_pair(conj_transpose(t), position, np.conjugate(w), vl, conj_transpose(a), b_adjoint)[1])
    return (*tangents, dr) if right else tuple(tangents)


def _declare_eig(opname: str, values_only: bool) -> Rule:
    def formula(position: int) -> Any:
        return lambda g, out, *operands, **options: _pull_eig(position, values_only, g, out, *operands, **options)

    def tangent(position: int) -> Any:
        return lambda t, out, *operands, **options: _push_eig(position, values_only, t, out, *operands, **options)

    return general(opname, formula(0), formula(1)).tangent(tangent(0), tangent(1)).not_batchable()


scipy_linalg_eig_grad = _declare_eig("scipy_linalg_eig", False)
scipy_linalg_eigvals_grad = _declare_eig("scipy_linalg_eigvals", True)

# ----------------------------------------------------------------------------------------- singular values


def _pull_svd(
    g: NDArray[Any] | tuple[Any, ...],
    out: object,
    a: object,
    full_matrices: NDArray[Any] | tuple[Any, ...] | bool = True,
    compute_uv: tuple[Any, ...] | bool = True,
    **_: object,
) -> Any:
    return svd_cotangent(g, out, a, full_matrices, compute_uv)


def _push_svd(
    t: object, out: NDArray[Any] | tuple[Any, ...], a: object, full_matrices: bool = True, compute_uv: bool = True, **_: object
) -> Any:
    return svd_tangent(t, out, a, full_matrices, compute_uv)


scipy_linalg_svd_grad = batch_unless_equal(general("scipy_linalg_svd", _pull_svd).tangent(_push_svd))
scipy_linalg_svdvals_grad = batch_unless_equal(
    general("scipy_linalg_svdvals", lambda g, out, a, **_: svd_cotangent(g, out, a, compute_uv=False)).tangent(
        lambda t, out, a, **_: svd_tangent(t, out, a, compute_uv=False)
    )
)

# ---------------------------------------------------------------------------------------------------- QR


def _require_reduced_part(g: Array, name: str) -> None:
    """Raise if `g`, the cotangent of columns or rows of a square q that the matrix does not determine, is not zero."""
    if g is not None and g.size and (isinstance(g, Value) or np.any(to_values(g) != 0)):
        raise TypeError(
            f"scipy.linalg.{name}: the part of a square q that completes the basis is not unique, so it has no derivative. "
            "Use mode='economic'"
        )


def _raise_no_tangent(name: str) -> None:
    raise TypeError(
        f"scipy.linalg.{name}: the part of a square q that completes the basis has no tangent. Use mode='economic' or mode='r'"
    )


def _qr_split(out: tuple[Any, ...], mode: str, pivoting: bool) -> tuple[Any, Any, Any]:
    """Return q or None, r, and the order of the columns or None."""
    parts = out[:-1] if pivoting else out
    order = None
    if pivoting:
        order = np.asarray(guarded_value(out[-1], "the order of the columns of a decomposition")).astype(np.intp)
    return (None if mode == "r" else parts[0]), parts[-1], order


def _pull_qr(g: NDArray[Any], out: Any, a: NDArray[Any], mode: str = "full", pivoting: Any = False, **_: object) -> Any:
    _require_not_raw(mode)
    q, r, order = _qr_split(out, mode, pivoting)
    gq = None if q is None else g[0]
    gr = g[-2] if pivoting else g[-1]
    if not a.size:
        return 0 * a
    k = min(a.shape[-2:])
    permuted_a = a if order is None else permute(a, order, -1)
    if q is not None and gq is not None:
        _require_reduced_part(gq[..., k:], "qr")
    gr_reduced = None if gr is None else gr[..., :k, :]
    if q is None:
        cotangent = 0 * a if gr_reduced is None else qr_cotangent(gr_reduced, r[..., :k, :], permuted_a, "r")
    elif gq is None and gr is None:
        cotangent = 0 * a
    else:
        cotangent = qr_cotangent(
            (None if gq is None else gq[..., :k], gr_reduced), (q[..., :k], r[..., :k, :]), permuted_a, "reduced"
        )
    return cotangent if order is None else permute(cotangent, np.argsort(order, axis=-1), -1)


def _require_not_raw(mode: str) -> None:
    if mode == "raw":
        raise TypeError("scipy.linalg.qr: mode='raw' is not differentiable. Use mode='economic'")


def _push_qr(
    t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], mode: str = "full", pivoting: bool = False, **_: object
) -> Any:
    _require_not_raw(mode)
    q, r, order = _qr_split(out, mode, pivoting)
    if not a.size:
        return tuple([0 * part for part in out])
    k = min(a.shape[-2:])
    if q is not None and q.shape[-1] > k:
        _raise_no_tangent("qr")
    permuted_a, t = (a, t) if order is None else (permute(a, order, -1), permute(t, order, -1))
    tangents = (qr_tangent(t, r[..., :k, :], permuted_a, "r"),) if q is None else qr_tangent(t, (q, r), permuted_a, "reduced")
    missing = r.shape[-2] - tangents[-1].shape[-2]
    padding = np.zeros((*r.shape[:-2], missing, r.shape[-1]), r.dtype)
    tangents = (*tangents[:-1], np.concatenate([tangents[-1], padding], axis=-2) if missing else tangents[-1])
    return tangents if order is None else (*tangents, None)


scipy_linalg_qr_grad = general("scipy_linalg_qr", _pull_qr).tangent(_push_qr).not_batchable()

# RQ by QR: let a = r q, and let J reverse rows. Then (J a)^H = q~ r~ with q~ = (J q)^H and r~ = (J r J)^H.


def _reverse_and_transpose(x: Any, rows: bool, columns: bool) -> Any:
    return conj_transpose(x[..., :: -1 if rows else 1, :: -1 if columns else 1])


def _pull_rq(
    g: NDArray[Any] | tuple[Any, ...], out: NDArray[Any] | tuple[Any, ...], a: NDArray[Any], mode: str = "full", **_: object
) -> Any:
    gr, gq = (g, None) if mode == "r" else g
    r, q = (out, None) if mode == "r" else out
    if not a.size or (gr is None and gq is None):
        return 0 * a
    k = min(a.shape[-2:])
    if gq is not None:
        _require_reduced_part(gq[..., : gq.shape[-2] - k, :], "rq")
    reversed_a = _reverse_and_transpose(a, True, False)
    gr_reversed = None if gr is None else _reverse_and_transpose(gr[..., -k:], True, True)
    cotangent = qr_cotangent(
        (None if gq is None else _reverse_and_transpose(gq[..., -k:, :], True, False), gr_reversed),
        _rq_pair(q, r, reversed_a, k),
        reversed_a,
        "reduced",
    )
    return conj_transpose(cotangent)[..., ::-1, :]


def _rq_pair(q: Any, r: NDArray[Any], reversed_a: Any, k: int) -> tuple[Any, Any]:
    """Return q~ and r~. If q was not requested, q~ is computed from r, so that its signs match those of LAPACK."""
    square = _reverse_and_transpose(r[..., -k:], True, True)
    if q is not None:
        return _reverse_and_transpose(q[..., -k:, :], True, False), square
    return np.matmul(reversed_a[..., :k], np.linalg.inv(square[..., :k])), square


def _push_rq(t: Operand, out: NDArray[Any], a: Array, mode: str = "full", **_: object) -> Any:
    r, q = (out, None) if mode == "r" else out
    if not a.size:
        return 0 * out if mode == "r" else tuple([0 * part for part in out])
    k = min(a.shape[-2:])
    if q is not None and q.shape[-2] > k:
        _raise_no_tangent("rq")
    reversed_a, reversed_t = _reverse_and_transpose(a, True, False), _reverse_and_transpose(t, True, False)
    dq, dr = qr_tangent(reversed_t, _rq_pair(q, r, reversed_a, k), reversed_a, "reduced")
    dr = conj_transpose(dr)[..., ::-1, ::-1]
    missing = r.shape[-1] - k
    dr = np.concatenate([np.zeros((*r.shape[:-1], missing), r.dtype), dr], axis=-1) if missing else dr
    return dr if q is None else (dr, conj_transpose(dq)[..., ::-1, :])


scipy_linalg_rq_grad = general("scipy_linalg_rq", _pull_rq).tangent(_push_rq).not_batchable()
