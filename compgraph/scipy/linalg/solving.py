"""What solves linear systems: with factors that are known, with diagonals, with matrices of constant diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ...graph import as_operand
from ...guards import decided, frozen
from .. import bands
from . import operations
from .operations import banded_solution, cholesky_in_place, least_squares, ranked_pinv, ranked_pinvh, recorded, toeplitz_solution

# ------------------------------------------------------------------------------------------- factors


def cho_factor(a: Any, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True) -> Any:
    """``scipy.linalg.cho_factor``."""
    factor = recorded(cholesky_in_place, a, lower=bool(lower), check_finite=check_finite)
    return factor, np.tile(lower, factor.shape[:-2]) if factor.ndim > 2 else lower


def _is_lower(lower: Any) -> bool:
    """SciPy gives one answer for each matrix of a stack."""
    return bool(np.all(lower))


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: Any = False, check_finite: Any = True) -> Any:
    """``scipy.linalg.cho_solve``, by its two triangles."""
    factor, lower = c_and_lower[0], _is_lower(c_and_lower[1])
    b = as_operand(b)
    first, second = (0, 2) if lower else (2, 0)
    half = scipy.linalg.solve_triangular(factor, b, trans=first, lower=lower, check_finite=check_finite)
    return scipy.linalg.solve_triangular(factor, half, trans=second, lower=lower, check_finite=check_finite)


def cho_solve_banded(cb_and_lower: Any, b: Any, overwrite_b: Any = False, check_finite: Any = True) -> Any:
    """``scipy.linalg.cho_solve_banded``, by its two triangles."""
    factor, lower = cb_and_lower[0], _is_lower(cb_and_lower[1])
    factor, b = as_operand(factor), as_operand(b)
    below, above = bands.widths(factor, lower)
    turned = np.conjugate(bands.transposed(factor, below, above))
    triangles = (((below, above), factor), ((above, below), turned))
    first, second = triangles if lower else triangles[::-1]
    half = scipy.linalg.solve_banded(*first, b, check_finite=check_finite)
    return scipy.linalg.solve_banded(*second, half, check_finite=check_finite)


def order_of_rows(piv: Any, count: int) -> Any:
    """The order into which LAPACK's exchanges of rows bring them."""
    piv = np.asarray(frozen(piv, "the order of the rows of a decomposition"))
    order = np.broadcast_to(np.arange(count), (*piv.shape[:-1], count)).copy()
    for k in range(piv.shape[-1]):
        other = piv[..., k : k + 1].astype(int)
        taken = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., k : k + 1].copy(), -1)
        order[..., k : k + 1] = taken
    return order


def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: Any = False, check_finite: Any = True) -> Any:
    """``scipy.linalg.lu_solve``, by its two triangles."""
    factors, piv = as_operand(lu_and_piv[0]), lu_and_piv[1]
    b = as_operand(b)
    order = order_of_rows(piv, factors.shape[-1])
    single = b.ndim == 1
    columns = b[:, None] if single else b
    lower = {"lower": True, "unit_diagonal": True, "check_finite": check_finite}
    if trans == 0:
        half = scipy.linalg.solve_triangular(factors, _taken(columns, order), **lower)
        found = scipy.linalg.solve_triangular(factors, half, check_finite=check_finite)
    else:
        half = scipy.linalg.solve_triangular(factors, columns, trans=trans, check_finite=check_finite)
        found = _taken(scipy.linalg.solve_triangular(factors, half, trans=trans, **lower), np.argsort(order, axis=-1))
    return found[..., 0] if single else found


def _taken(columns: Any, order: Any) -> Any:
    shape = np.broadcast_shapes(columns.shape[:-2], order.shape[:-1])
    columns = np.broadcast_to(columns, (*shape, *columns.shape[-2:]))
    return np.take_along_axis(columns, np.broadcast_to(order[..., None], (*shape, order.shape[-1], 1)), -2)


# ------------------------------------------------------------------------------------------- diagonals


def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: Any = False, overwrite_b: Any = False, check_finite: Any = True
) -> Any:
    """``scipy.linalg.solve_banded``."""
    lower, upper = l_and_u
    return recorded(banded_solution, ab, b, l_and_u=(int(lower), int(upper)), check_finite=check_finite)


def _column_and_row(c_or_cr: Any) -> tuple[Any, Any]:
    c, r = map(as_operand, c_or_cr) if isinstance(c_or_cr, tuple) else (as_operand(c_or_cr), None)
    return c, np.conjugate(c) if r is None else r


def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: Any = True) -> Any:
    """``scipy.linalg.solve_toeplitz``."""
    c, r = _column_and_row(c_or_cr)
    if c.ndim == 0 or r.ndim == 0:
        c, r = np.atleast_1d(c), np.atleast_1d(r)
    return recorded(toeplitz_solution, c, r, b, check_finite=check_finite)


def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: Any = False, workers: Any = None) -> Any:
    """``scipy.linalg.matmul_toeplitz``, by Fourier transforms as there."""
    c, r = map(np.atleast_1d, _column_and_row(c_or_cr))
    x = as_operand(x)
    columns = x[:, None] if x.ndim == 1 else x
    columns = columns.astype(np.result_type(columns, np.float64))
    if columns.shape[-2] != r.shape[-1]:
        raise ValueError("Incompatible dimensions.")
    length = c.shape[-1] + r.shape[-1] - 1
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    parts = (np.broadcast_to(c, (*batch, c.shape[-1])), np.broadcast_to(r, (*batch, r.shape[-1]))[..., :0:-1])
    around = np.concatenate(parts, axis=-1)[..., None]
    if np.result_type(around, columns).kind == "c":
        found: Any = np.fft.ifft(np.fft.fft(around, axis=-2) * np.fft.fft(columns, n=length, axis=-2), axis=-2)
    else:
        found = np.fft.irfft(np.fft.rfft(around, axis=-2) * np.fft.rfft(columns, n=length, axis=-2), n=length, axis=-2)
    found = found[..., : c.shape[-1], :]
    return found[..., 0] if x.ndim == 1 else found


def solve_circulant(
    c: Any, b: Any, singular: Any = "raise", tol: Any = None, caxis: Any = -1, baxis: Any = 0, outaxis: Any = 0
) -> Any:
    """``scipy.linalg.solve_circulant``, by Fourier transforms as there."""
    c, b = np.atleast_1d(as_operand(c)), np.atleast_1d(as_operand(b))
    if c.shape[caxis] != b.shape[baxis]:
        raise ValueError(f"Shapes of c {c.shape} and b {b.shape} are incompatible")
    spectrum = np.fft.fft(np.moveaxis(c, caxis, -1), axis=-1)
    small = decided("which frequencies of a circulant matrix are zero", lambda f: _near_zero(f, tol), spectrum)
    if singular == "raise" and np.any(small):
        raise scipy.linalg.LinAlgError("near singular circulant matrix.")
    quotient: Any = np.fft.fft(np.moveaxis(b, baxis, -1), axis=-1) / np.where(small, 1, spectrum)
    found = np.fft.ifft(np.where(small, 0, quotient) if np.any(small) else quotient, axis=-1)
    x = found if np.result_type(c, b).kind == "c" else np.real(found)
    return x if outaxis == -1 else np.moveaxis(x, -1, outaxis)


def _near_zero(spectrum: Any, tol: Any) -> Any:
    sizes = np.abs(spectrum)
    if tol is None:
        tol = np.max(sizes, axis=-1, keepdims=True, initial=0) * spectrum.shape[-1] * np.finfo(np.float64).eps
    return sizes <= tol


# ------------------------------------------------------------------------------- inverses in a wider sense


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: Any = False, check_finite: Any = True) -> Any:
    """``scipy.linalg.norm``."""
    return recorded(operations.norm, a, ord=ord, axis=axis, keepdims=keepdims, check_finite=check_finite)


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: Any = False, check_finite: Any = True) -> Any:
    """``scipy.linalg.pinv``."""
    found = recorded(ranked_pinv, a, atol=atol, rtol=rtol, check_finite=check_finite)
    return tuple(found) if return_rank else found[0]


def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: Any = True, return_rank: Any = False, check_finite: Any = True
) -> Any:
    """``scipy.linalg.pinvh``."""
    found = recorded(ranked_pinvh, a, atol=atol, rtol=rtol, lower=bool(lower), check_finite=check_finite)
    return tuple(found) if return_rank else found[0]


def lstsq(
    a: Any, b: Any, cond: Any = None, overwrite_a: Any = False, overwrite_b: Any = False, check_finite: Any = True,
    lapack_driver: Any = None,
) -> Any:  # fmt: skip
    """``scipy.linalg.lstsq``."""
    a = as_operand(a)
    if a.ndim > 2:
        raise TypeError("scipy.linalg.lstsq: no derivative of stacks is known; solve one system at a time, or use np.linalg.pinv")
    found = tuple(recorded(least_squares, a, b, cond=cond, check_finite=check_finite, lapack_driver=lapack_driver))
    return found if len(found) > 3 else (*found, None)  # gelsy finds no singular values
