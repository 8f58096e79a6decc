"""``scipy.linalg``: operations with rules, SciPy's own Python code, and functions composed of operations.

The composed functions replace those whose code calls LAPACK or Cython, or uses strided views of memory. Where SciPy's arguments
or results are not arrays, the operation is defined here as a function from arrays to arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .. import ops
from ..bind import bind
from ..graph import as_operand, as_operands
from ..guards import evaluate_guarded
from . import banded_matrices
from .policy import Policy, opname

Array = NDArray[Any]


def _operation(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of plain arrays: calls with nodes record it as the operation ``scipy_linalg_<name>``."""

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        ops.register_operation(function, opname("scipy.linalg", name))

        @functools.wraps(function)
        def call(*operands: object, **options: object) -> Any:
            return bind(function, as_operands(operands), options)

        return call

    return define


# ------------------------------------------------------------------------------------------ factorizations


@_operation("cho_factor")
def _cho_factor(a: Array, lower: bool, check_finite: bool) -> Any:
    return scipy.linalg.cho_factor(a, lower=lower, check_finite=check_finite)[0]


@_operation("lu")
def _lu(a: Array, check_finite: bool) -> tuple[Array, Array, Array]:
    """Return the row permutation, L and U."""
    rows, lower, upper = scipy.linalg.lu(a, check_finite=check_finite, p_indices=True)
    return np.asarray(rows), lower, upper


def cho_factor(a: Array, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Any]:
    """``scipy.linalg.cho_factor``, which calls LAPACK."""
    factor = _cho_factor(a, lower=bool(lower), check_finite=check_finite)
    return factor, np.tile(lower, factor.shape[:-2]) if factor.ndim > 2 else lower


def lu(
    a: Array, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> tuple[Array, ...]:
    """``scipy.linalg.lu``, which calls Cython."""
    a = as_operand(a)
    rows, lower, upper = _lu(a, check_finite=check_finite)
    if p_indices and not permute_l:
        return rows, lower, upper
    if not a.size:
        factors = scipy.linalg.lu(np.zeros(a.shape, a.dtype), permute_l=permute_l)
        return (*factors[:-1], upper)
    if permute_l:
        return np.take_along_axis(lower, rows[..., None].astype(np.intp), -2), upper
    real_dtype = np.float32 if a.dtype.char in "fF" else np.float64
    return np.eye(a.shape[-2], dtype=real_dtype)[rows], lower, upper


def qr_multiply(
    a: Array, c: Array, mode: str = "right", pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """``scipy.linalg.qr_multiply``, which applies reflections by LAPACK; here with Q as a matrix."""
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument can only be 'left' or 'right' but not '{mode}'")
    c = as_operand(c)
    q, *others = scipy.linalg.qr(a, mode="economic", pivoting=pivoting)
    q = np.conjugate(q) if conjugate else q
    return (np.matmul(q, c) if mode == "left" else np.matmul(c, q)), *others


# ------------------------------------------------------------------------------------------ linear systems


@_operation("solve_banded")
def _solve_banded(ab: Array, b: Array, l_and_u: tuple[int, int], check_finite: bool) -> Any:
    return scipy.linalg.solve_banded(l_and_u, ab, b, check_finite=check_finite)


@_operation("solve_toeplitz")
def _solve_toeplitz(c: Array, r: Array, b: Array, check_finite: bool) -> Any:
    return scipy.linalg.solve_toeplitz((c, r), b, check_finite=check_finite)


@_operation("lstsq")
def _lstsq(a: Array, b: Array, cond: float | None, check_finite: bool, lapack_driver: str | None) -> tuple[Array, ...]:
    """The solution, the residues, the rank and, if the driver computes them, the singular values."""
    x, residues, rank, s = scipy.linalg.lstsq(a, b, cond=cond, check_finite=check_finite, lapack_driver=lapack_driver)
    results = x, np.asarray(residues), np.asarray(rank)[()]
    return results if s is None else (*results, s)


def _is_lower(lower: bool) -> bool:
    """Whether a factor is in the lower triangle. For a stack SciPy returns one flag per matrix."""
    return bool(np.all(lower))


def cho_solve(c_and_lower: tuple[Any, Any], b: Array, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """``scipy.linalg.cho_solve``, which calls LAPACK; here two triangular systems."""
    factor, lower = c_and_lower[0], _is_lower(c_and_lower[1])
    first, second = (0, 2) if lower else (2, 0)
    z = scipy.linalg.solve_triangular(factor, as_operand(b), trans=first, lower=lower, check_finite=check_finite)
    return scipy.linalg.solve_triangular(factor, z, trans=second, lower=lower, check_finite=check_finite)


def cho_solve_banded(cb_and_lower: tuple[Any, Any], b: Array, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """``scipy.linalg.cho_solve_banded``, which calls LAPACK; here two triangular banded systems."""
    factor, lower = as_operand(cb_and_lower[0]), _is_lower(cb_and_lower[1])
    num_lower, num_upper = banded_matrices.bandwidths(factor, lower)
    transposed = np.conjugate(banded_matrices.transpose(factor, num_lower, num_upper))
    triangles = (((num_lower, num_upper), factor), ((num_upper, num_lower), transposed))
    first, second = triangles if lower else triangles[::-1]
    z = scipy.linalg.solve_banded(*first, as_operand(b), check_finite=check_finite)
    return scipy.linalg.solve_banded(*second, z, check_finite=check_finite)


def lu_solve(lu_and_piv: tuple[Any, Any], b: Array, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """``scipy.linalg.lu_solve``, which calls LAPACK; here two triangular systems."""
    factors, piv = as_operand(lu_and_piv[0]), lu_and_piv[1]
    b = as_operand(b)
    order = banded_matrices.row_permutation(piv, factors.shape[-1])
    columns = b[:, None] if b.ndim == 1 else b
    lower = {"lower": True, "unit_diagonal": True, "check_finite": check_finite}
    if trans == 0:
        z = scipy.linalg.solve_triangular(factors, _permute_rows(columns, order), **lower)
        x = scipy.linalg.solve_triangular(factors, z, check_finite=check_finite)
    else:
        z = scipy.linalg.solve_triangular(factors, columns, trans=trans, check_finite=check_finite)
        z = scipy.linalg.solve_triangular(factors, z, trans=trans, **lower)
        x = _permute_rows(z, np.argsort(order, axis=-1))
    return x[..., 0] if b.ndim == 1 else x


def _permute_rows(columns: Array, order: NDArray[np.intp]) -> Any:
    shape = np.broadcast_shapes(columns.shape[:-2], order.shape[:-1])
    columns = np.broadcast_to(columns, (*shape, *columns.shape[-2:]))
    return np.take_along_axis(columns, np.broadcast_to(order[..., None], (*shape, order.shape[-1], 1)), -2)


def solve_banded(
    l_and_u: tuple[int, int], ab: Array, b: Array, overwrite_ab: bool = False, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """``scipy.linalg.solve_banded``, which calls LAPACK."""
    lower, upper = l_and_u
    return _solve_banded(ab, b, l_and_u=(int(lower), int(upper)), check_finite=check_finite)


def solve_toeplitz(c_or_cr: object, b: Array, check_finite: bool = True) -> Any:
    """``scipy.linalg.solve_toeplitz``, which calls Cython."""
    c, r = map(as_operand, c_or_cr) if isinstance(c_or_cr, tuple) else (as_operand(c_or_cr), None)
    r = np.conjugate(c) if r is None else r
    if c.ndim == 0 or r.ndim == 0:
        c, r = np.atleast_1d(c), np.atleast_1d(r)
    return _solve_toeplitz(c, r, b, check_finite=check_finite)


def lstsq(
    a: Array, b: Array, cond: float | None = None, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, lapack_driver: str | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """``scipy.linalg.lstsq``, which calls LAPACK."""
    a = as_operand(a)
    if a.ndim > 2:
        raise TypeError(
            f"scipy.linalg.lstsq: a stack of matrices, of shape {a.shape}, has no derivative. Solve one system at a time, or use "
            "np.linalg.pinv"
        )
    results = tuple(_lstsq(a, b, cond=cond, check_finite=check_finite, lapack_driver=lapack_driver))
    return results if len(results) > 3 else (*results, None)  # gelsy computes no singular values


# -------------------------------------------------------------------------- norms and generalized inverses


@_operation("norm")
def _norm(a: Array, **options: object) -> Any:
    """Compute the norm as a NumPy scalar with the real dtype of `a`; BLAS returns a Python float."""
    return np.asarray(scipy.linalg.norm(a, **options), dtype=a.real.dtype if a.dtype.kind in "fc" else None)[()]


@_operation("pinv")
def _pinv(a: Array, atol: float | None, rtol: float | None, check_finite: bool) -> tuple[Array, Any]:
    inverse, rank = scipy.linalg.pinv(a, atol=atol, rtol=rtol, return_rank=True, check_finite=check_finite)
    return inverse, np.asarray(rank)[()]


@_operation("pinvh")
def _pinvh(a: Array, atol: float | None, rtol: float | None, lower: bool, check_finite: bool) -> tuple[Array, Any]:
    inverse, rank = scipy.linalg.pinvh(a, atol=atol, rtol=rtol, lower=lower, return_rank=True, check_finite=check_finite)
    return inverse, np.asarray(rank)[()]


def norm(
    a: Array,
    ord: float | str | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    check_finite: bool = True,
) -> Any:
    """``scipy.linalg.norm``, which calls BLAS and LAPACK."""
    return _norm(a, ord=ord, axis=axis, keepdims=keepdims, check_finite=check_finite)


def pinv(
    a: Array, *, atol: float | None = None, rtol: float | None = None, return_rank: bool = False, check_finite: bool = True
) -> Any:
    """``scipy.linalg.pinv``, whose singular value decomposition has no derivative where singular values are equal."""
    inverse, rank = _pinv(a, atol=atol, rtol=rtol, check_finite=check_finite)
    return (inverse, rank) if return_rank else inverse


def pinvh(
    a: Array, atol: float | None = None, rtol: float | None = None, lower: bool = True, return_rank: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """``scipy.linalg.pinvh``, whose eigenvectors have no derivative where eigenvalues are equal."""
    inverse, rank = _pinvh(a, atol=atol, rtol=rtol, lower=bool(lower), check_finite=check_finite)
    return (inverse, rank) if return_rank else inverse


def orthogonal_procrustes(A: Array, B: Array, check_finite: bool = True) -> tuple[Array, Array]:  # noqa: N803
    """``scipy.linalg.orthogonal_procrustes``, whose singular vectors have no derivative where singular values are equal.

    The rotation is the unitary polar factor of ``A^H B``, the scale the sum of its singular values.
    """
    a, b = as_operand(A), as_operand(B)
    if a.ndim < 2 or a.shape[-2:] != b.shape[-2:]:
        raise ValueError(f"the shapes of A and B differ ({a.shape} vs {b.shape})")
    inner = np.matmul(np.conjugate(np.swapaxes(a, -1, -2)), b)
    return scipy.linalg.polar(inner)[0], np.sum(scipy.linalg.svdvals(inner), axis=-1)


# ------------------------------------------------------------------------------------------ matrices from vectors


def _broadcast_vectors(*vectors: Array) -> list[Array]:
    """Broadcast the axes of vectors before the last."""
    stack = np.broadcast_shapes(*[v.shape[:-1] for v in vectors])
    return [v if v.shape[:-1] == stack else np.broadcast_to(v, (*stack, v.shape[-1])) for v in vectors]


def toeplitz(c: Array, r: Array | None = None) -> Any:
    """``scipy.linalg.toeplitz``, which uses a strided view of memory."""
    c = np.atleast_1d(as_operand(c))
    c, r = _broadcast_vectors(c, np.conjugate(c) if r is None else np.atleast_1d(as_operand(r)))
    rows, columns = c.shape[-1], r.shape[-1]
    values = np.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)
    return values[..., rows - 1 - np.arange(rows)[:, None] + np.arange(columns)]


def hankel(c: Array, r: Array | None = None) -> Any:
    """``scipy.linalg.hankel``, which uses a strided view of memory."""
    c = as_operand(c)
    r = np.zeros_like(c) if r is None else as_operand(r)
    if np.ndim(c) != 1 or np.ndim(r) != 1:
        raise TypeError(
            f"scipy.linalg.hankel: c and r must be vectors, but have {np.ndim(c)} and {np.ndim(r)} axes. Pass np.ravel(c)"
        )
    return np.concatenate([c, r[1:]])[np.arange(len(c))[:, None] + np.arange(len(r))]


def circulant(c: Array) -> Any:
    """``scipy.linalg.circulant``, which uses a strided view of memory."""
    c = np.atleast_1d(as_operand(c))
    index = np.arange(c.shape[-1])
    return c[..., (index[:, None] - index) % max(c.shape[-1], 1)]


# ------------------------------------------------------------------------------------------ properties


def bandwidth(a: Array) -> Any:
    """``scipy.linalg.bandwidth``, which calls Cython."""
    return evaluate_guarded("the bandwidth of a matrix", scipy.linalg.bandwidth, as_operand(a))


def issymmetric(a: Array, atol: float | None = None, rtol: float | None = None) -> Any:
    """``scipy.linalg.issymmetric``, which calls Cython."""
    check = functools.partial(scipy.linalg.issymmetric, atol=atol, rtol=rtol)
    return evaluate_guarded("whether a matrix is symmetric", check, as_operand(a))


def ishermitian(a: Array, atol: float | None = None, rtol: float | None = None) -> Any:
    """``scipy.linalg.ishermitian``, which calls Cython."""
    check = functools.partial(scipy.linalg.ishermitian, atol=atol, rtol=rtol)
    return evaluate_guarded("whether a matrix is Hermitian", check, as_operand(a))


_OWN_CODE = """
    block_diag companion convolution_matrix diagsvd fiedler fiedler_companion khatri_rao leslie coshm cosm sinhm sinm tanhm
    tanm matmul_toeplitz solve_circulant orth subspace_angles
"""
_COMPILED = """
    bandwidth cho_factor cho_solve cho_solve_banded circulant hankel ishermitian issymmetric lstsq lu lu_solve norm
    orthogonal_procrustes pinv pinvh qr_multiply solve_banded solve_toeplitz toeplitz
"""

POLICY = Policy(
    module="scipy.linalg",
    smooth={
        "cholesky": "a",
        "cholesky_banded": "ab",
        "det": "a",
        "eig": "a b",
        "eig_banded": "a_band",
        "eigh": "a b",
        "eigh_tridiagonal": "d e",
        "eigvals": "a b",
        "eigvals_banded": "a_band",
        "eigvalsh": "a b",
        "eigvalsh_tridiagonal": "d e",
        "expm": "A",
        "expm_frechet": "A E",
        "fractional_matrix_power": "A",
        "inv": "a",
        "ldl": "A",
        "logm": "A",
        "lu_factor": "a",
        "matrix_balance": "A",
        "null_space": "A",
        "polar": "a",
        "qr": "a",
        "rq": "a",
        "signm": "A",
        "solve": "a b",
        "solve_continuous_are": "a b q r e s",
        "solve_continuous_lyapunov": "a q",
        "solve_discrete_are": "a b q r e s",
        "solve_discrete_lyapunov": "a q",
        "solve_sylvester": "a b q",
        "solve_triangular": "a b",
        "solveh_banded": "ab b",
        "sqrtm": "A",
        "svd": "a",
        "svdvals": "a",
    },
    replacements={name: globals()[name] for name in _COMPILED.split()},
    own_code=frozenset(_OWN_CODE.split()),
    plain=frozenset(
        {
            *("LinAlgError", "LinAlgWarning", "find_best_blas_type", "get_blas_funcs", "get_lapack_funcs"),
            *("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"),  # functions of counts
            "solve_lyapunov",  # another name of solve_continuous_lyapunov
        }
    ),
    unsupported={
        "cdf2rdf": "the complex eigenvalues and eigenvectors of scipy.linalg.eig",
        "clarkson_woodruff_transform": "scipy.linalg.clarkson_woodruff_transform(np.eye(n), k) @ a",
        "cossin": "scipy.linalg.svd of the blocks",
        "expm_cond": "np.linalg.norm of scipy.linalg.expm_frechet in one direction",
        "funm": "scipy.linalg.expm, logm, sqrtm, cosm ..., or (v * f(w)) @ np.linalg.inv(v) of scipy.linalg.eig",
        "hessenberg": "the matrix itself, or scipy.linalg.eig",
        "ordqz": "scipy.linalg.eig(a, b)",
        "qr_delete": "scipy.linalg.qr of np.delete(a, ...), mode='economic'",
        "qr_insert": "scipy.linalg.qr of np.insert(a, ...), mode='economic'",
        "qr_update": "scipy.linalg.qr(a + u @ v.T), mode='economic'",
        "qz": "scipy.linalg.eig(a, b)",
        "rsf2csf": "scipy.linalg.eig, or functions of matrices: expm, logm, sqrtm",
        "schur": "scipy.linalg.eig or eigh, or functions of matrices: expm, logm, sqrtm, solve_sylvester",
    },
)
