"""Functions of matrices by others, decompositions by others, and what is asked of matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.linalg

from ...graph import as_operand
from ...guards import decided
from .operations import lu_by_rows, recorded

# ------------------------------------------------------------------------- trigonometric and hyperbolic


def _is_complex(a: Any) -> bool:
    return bool(a.dtype.kind == "c")


def _turned(a: Any) -> Any:
    """``expm(1j * a)``."""
    return scipy.linalg.expm(np.multiply(1j, a))


def cosm(A: Any) -> Any:  # noqa: N803
    """``scipy.linalg.cosm``."""
    a = as_operand(A)
    return 0.5 * (_turned(a) + _turned(-a)) if _is_complex(a) else np.real(_turned(a))


def sinm(A: Any) -> Any:  # noqa: N803
    """``scipy.linalg.sinm``."""
    a = as_operand(A)
    return np.multiply(-0.5j, _turned(a) - _turned(-a)) if _is_complex(a) else np.imag(_turned(a))


def tanm(A: Any) -> Any:  # noqa: N803
    """``scipy.linalg.tanm``."""
    return scipy.linalg.solve(cosm(A), sinm(A))


def coshm(A: Any) -> Any:  # noqa: N803
    """``scipy.linalg.coshm``."""
    a = as_operand(A)
    return 0.5 * (scipy.linalg.expm(a) + scipy.linalg.expm(-a))


def sinhm(A: Any) -> Any:  # noqa: N803
    """``scipy.linalg.sinhm``."""
    a = as_operand(A)
    return 0.5 * (scipy.linalg.expm(a) - scipy.linalg.expm(-a))


def tanhm(A: Any) -> Any:  # noqa: N803
    """``scipy.linalg.tanhm``."""
    return scipy.linalg.solve(coshm(A), sinhm(A))


# ---------------------------------------------------------------------------------------- decompositions


def lu(a: Any, permute_l: Any = False, overwrite_a: Any = False, check_finite: Any = True, p_indices: Any = False) -> Any:
    """``scipy.linalg.lu``."""
    a = as_operand(a)
    rows, lower, upper = recorded(lu_by_rows, a, check_finite=check_finite)
    if p_indices and not permute_l:
        return rows, lower, upper
    if not a.size:
        found = scipy.linalg.lu(np.zeros(a.shape, a.dtype), permute_l=permute_l)
        return (*found[:-1], upper)
    if permute_l:
        return np.take_along_axis(lower, rows[..., None].astype(np.intp), -2), upper
    real = np.float32 if a.dtype.char in "fF" else np.float64
    return np.eye(a.shape[-2], dtype=real)[rows], lower, upper


def qr_multiply(
    a: Any, c: Any, mode: Any = "right", pivoting: Any = False, conjugate: Any = False, overwrite_a: Any = False,
    overwrite_c: Any = False,
) -> Any:  # fmt: skip
    """``scipy.linalg.qr_multiply``, with q."""
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument can only be 'left' or 'right' but not '{mode}'")
    c = as_operand(c)
    q, *others = scipy.linalg.qr(a, mode="economic", pivoting=pivoting)
    q = np.conjugate(q) if conjugate else q
    return (np.matmul(q, c) if mode == "left" else np.matmul(c, q)), *others


def orth(A: Any, rcond: Any = None) -> Any:  # noqa: N803
    """``scipy.linalg.orth``."""
    u, s, vh = scipy.linalg.svd(A, full_matrices=False)
    rcond = np.finfo(s.dtype).eps * max(u.shape[-2], vh.shape[-1]) if rcond is None else rcond
    count = decided("the rank of a matrix", functools.partial(_rank, rcond=rcond), s)
    return u[..., : int(np.max(count, initial=0))]


def _rank(s: Any, rcond: Any) -> Any:
    ranks = np.sum(s > np.max(s, axis=-1, keepdims=True, initial=0) * rcond, axis=-1)
    if np.ptp(ranks) if np.size(ranks) else 0:
        raise ValueError("the matrices of a stack have different ranks")
    return ranks


def subspace_angles(A: Any, B: Any) -> Any:  # noqa: N803
    """``scipy.linalg.subspace_angles``, by sines where they tell more than cosines."""
    a, b = orth(A), orth(B)
    if a.shape[-2] != b.shape[-2]:
        raise ValueError(f"A and B must have the same number of rows, got {a.shape[-2]} and {b.shape[-2]}")
    cosines = np.matmul(np.conjugate(np.swapaxes(a, -1, -2)), b)
    if a.shape[-1] >= b.shape[-1]:
        beside = b - np.matmul(a, cosines)
    else:
        beside = a - np.matmul(b, np.conjugate(np.swapaxes(cosines, -1, -2)))
    sigma = scipy.linalg.svdvals(cosines)
    near = decided("which angles between subspaces are small", lambda s: s**2 >= 0.5, sigma)
    sines = np.arcsin(np.clip(scipy.linalg.svdvals(beside), -1.0, 1.0)) if np.any(near) else 0.0
    return np.where(near, sines, np.arccos(np.clip(sigma[..., ::-1], -1.0, 1.0)))


def orthogonal_procrustes(A: Any, B: Any, check_finite: Any = True) -> Any:  # noqa: N803
    """``scipy.linalg.orthogonal_procrustes``: the unitary factor of ``A^H B`` and the sum of its singular values."""
    a, b = as_operand(A), as_operand(B)
    if a.ndim < 2 or a.shape[-2:] != b.shape[-2:]:
        raise ValueError(f"the shapes of A and B differ ({a.shape} vs {b.shape})")
    inner = np.matmul(np.conjugate(np.swapaxes(a, -1, -2)), b)
    return scipy.linalg.polar(inner)[0], np.sum(scipy.linalg.svdvals(inner), axis=-1)


# -------------------------------------------------------------------------------------------- questions


def _asked(what: str, function: Any, a: Any, **options: Any) -> Any:
    a = as_operand(a)
    return decided(what, functools.partial(function, **options), a)


def bandwidth(a: Any) -> Any:
    """``scipy.linalg.bandwidth``."""
    return _asked("how wide the band of a matrix is", scipy.linalg.bandwidth, a)


def issymmetric(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    """``scipy.linalg.issymmetric``."""
    return _asked("whether a matrix is symmetric", scipy.linalg.issymmetric, a, atol=atol, rtol=rtol)


def ishermitian(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    """``scipy.linalg.ishermitian``."""
    return _asked("whether a matrix is Hermitian", scipy.linalg.ishermitian, a, atol=atol, rtol=rtol)
