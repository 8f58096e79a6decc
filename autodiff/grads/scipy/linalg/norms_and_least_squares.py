"""Rules of norms, determinants, pseudo-inverses and least squares, with the formulas of NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Axis

from ....rules import general, reduction
from ...corners import as_norm, with_corners
from ...linalg import (
    cofactors,
    conj_transpose,
    function_of_matrices,
    lstsq_cotangent_a,
    lstsq_cotangent_b,
    lstsq_tangent_a,
    lstsq_tangent_b,
    norm_corner,
    norm_numerator,
    norm_weights,
    pinv_cotangent,
    pinv_tangent,
    transpose,
)

scipy_linalg_det_grad = function_of_matrices("scipy_linalg_det", lambda out, a, check_finite=True: cofactors(out, a))


def _weights(
    out: NDArray[Any], a: NDArray[Any], ord: float | str | None = None, axis: Axis = None, check_finite: bool = True
) -> Any:
    return norm_weights(out, a, axis, ord)


scipy_linalg_norm_grad = as_norm(
    with_corners(reduction("scipy_linalg_norm", _weights), _weights, norm_corner),
    lambda a, axis=None, ord=None, **_: norm_numerator(a, axis, ord),
)

# ------------------------------------------------------------------------------------- pseudo-inverses


def _cutoff(a: NDArray[Any], atol: object, rtol: object) -> Any:
    """Return the fraction of the largest singular value up to which SciPy discards singular values."""
    largest = np.linalg.norm(a, 2, axis=(-2, -1)) if a.size else np.zeros(a.shape[:-2])
    rtol = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    return rtol + (atol or 0.0) / np.where(largest > 0, largest, 1)


def _primal_value(a: NDArray[Any]) -> Any:
    return getattr(a, "raw_value", a)


def _pull_pinv(
    g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], atol: float | None = None, rtol: float | None = None, **_: object
) -> Any:
    return 0 * a if g[0] is None else pinv_cotangent(g[0], out[0], a, rtol=_cutoff(_primal_value(a), atol, rtol))


def _push_pinv(
    t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], atol: float | None = None, rtol: float | None = None, **_: object
) -> Any:
    return pinv_tangent(t, out[0], a, rtol=_cutoff(_primal_value(a), atol, rtol)), None


scipy_linalg_pinv_grad = general("scipy_linalg_pinv", _pull_pinv).tangent(_push_pinv).not_batchable()


def _pull_pinvh(
    g: tuple[Any, ...], out: tuple[Any, ...], a: NDArray[Any], atol: float | None = None, rtol: float | None = None,
    lower: bool = True, **_: object,
) -> Any:  # fmt: skip
    """Return the cotangent of the triangle; an upper triangle is the lower one of the conjugate transpose."""
    if g[0] is None:
        return 0 * a
    cut = _cutoff_of_triangle(_primal_value(a), atol, rtol, lower)
    cotangent = pinv_cotangent(g[0], out[0], a if lower else conj_transpose(a), hermitian=True, rtol=cut)
    return cotangent if lower else conj_transpose(cotangent)


def _push_pinvh(
    t: NDArray[Any], out: tuple[Any, ...], a: NDArray[Any], atol: float | None = None, rtol: float | None = None,
    lower: bool = True, **_: object,
) -> Any:  # fmt: skip
    cut = _cutoff_of_triangle(_primal_value(a), atol, rtol, lower)
    a, t = (a, t) if lower else (conj_transpose(a), conj_transpose(t))
    return pinv_tangent(t, out[0], a, hermitian=True, rtol=cut), None


def _cutoff_of_triangle(a: NDArray[Any], atol: object, rtol: object, lower: bool) -> Any:
    triangle = np.tril(a, -1) if lower else np.triu(a, 1)
    return _cutoff(triangle + conj_transpose(triangle) + np.real(a) * np.eye(a.shape[-1]), atol, rtol)


scipy_linalg_pinvh_grad = general("scipy_linalg_pinvh", _pull_pinvh).tangent(_push_pinvh).not_batchable()

# The basis n of a null space is one of many. Functions that do not depend on the choice have the derivative along the smallest
# change, dn = -pinv(a) da n.


def _pull_null_space(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], **_: object) -> Any:
    if not out.size or not a.size:
        return 0 * a
    if a.shape[-1] - out.shape[-1] < min(a.shape[-2:]):
        raise TypeError(
            "scipy.linalg.null_space: the matrix is rank-deficient, so the basis has no derivative. Nearby matrices have a "
            "smaller null space"
        )
    projected = np.matmul(conj_transpose(np.conjugate(_primal_value(out))), _primal_value(g))
    if np.max(np.abs(projected - conj_transpose(projected))) > 1e3 * np.finfo(projected.dtype).eps * np.max(np.abs(projected)):
        raise TypeError(
            "scipy.linalg.null_space: the basis is not unique, and functions that depend on its choice have no derivative. "
            "Use the projection on the space, np.eye(n) - np.linalg.pinv(a) @ a"
        )
    return -np.matmul(transpose(np.linalg.pinv(a)), np.matmul(g, transpose(out)))


def _push_null_space(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], **_: object) -> Any:
    raise TypeError(
        "scipy.linalg.null_space: the basis is not unique, so it has no tangent. Use the projection on the space, "
        "np.eye(n) - np.linalg.pinv(a) @ a"
    )


scipy_linalg_null_space_grad = general("scipy_linalg_null_space", _pull_null_space).tangent(_push_null_space).not_batchable()

# ----------------------------------------------------------------------------------------- least squares


def _numpy_results(out: tuple[Any, ...], a: NDArray[Any], cond: Any) -> tuple[Any, float]:
    """Return the results in the shapes of ``np.linalg.lstsq``, and the cutoff."""
    x, residues, rank, *values = out
    if not values and int(_primal_value(rank)) < min(a.shape):
        raise TypeError("scipy.linalg.lstsq: lapack_driver='gelsy' is differentiable only for full rank. Use 'gelsd'")
    cond = float(np.finfo(x.dtype).eps) if cond is None else cond
    return (x, np.reshape(residues, (-1,)), rank, values[0] if values else np.linalg.svd(a, compute_uv=False)), cond


def _pull(formula: Callable[..., Any]) -> Any:
    def pull(g: Any, out: Any, a: NDArray[Any], b: NDArray[Any], cond: Any = None, **_: object) -> Any:
        shaped, cond = _numpy_results(out, a, cond)
        residues, values = None, g[3] if len(g) > 3 else None
        if g[1] is not None:  # residues are real; their dtype may be complex
            residues = np.reshape(np.real(g[1]) + 0 * np.real(out[1]), (-1,))
        return formula((g[0], residues, None, values), shaped, a, b, rcond=cond)

    return pull


def _push(formula: Callable[..., Any]) -> Any:
    def push(t: NDArray[Any], out: Any, a: NDArray[Any], b: NDArray[Any], cond: ArrayLike | None = None, **_: object) -> Any:
        shaped, cond = _numpy_results(out, a, cond)
        dx, squares, _, ds = formula(t, shaped, a, b, rcond=cond)
        return (dx, None if squares is None else np.reshape(squares, out[1].shape), None, ds)[: len(out)]

    return push


scipy_linalg_lstsq_grad = (
    general("scipy_linalg_lstsq", _pull(lstsq_cotangent_a), _pull(lstsq_cotangent_b))
    .tangent(_push(lstsq_tangent_a), _push(lstsq_tangent_b))
    .not_batchable()
)
