"""Rules of functions of matrices.

The derivative of an analytic function along e is the off-diagonal block of the function of ``[[a, e], [0, a]]``. The transpose
of this linear map is the same map for the transposed a: N. J. Higham, "Functions of Matrices" (2008), (3.16) and section 3.3.
The derivatives of square roots and signs solve Sylvester equations instead (ibid., (6.1) and theorem 5.3).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.guards import evaluate_guarded
from compgraph.protocols import stop_gradient

from ....rules import Rule, general
from ...linalg import matmul_chain, transpose

Function = Callable[[Any], Any]


def _size(x: NDArray[Any]) -> Any:
    """Return the largest absolute value in an array; 1 if all are 0."""
    size = np.max(np.abs(x), initial=0)
    return np.where(size == 0, 1, size)


def frechet_derivative(function: Function, a: NDArray[Any], e: Any) -> Any:
    """Return the Fréchet derivative of a function of matrices along `e`."""
    if a.dtype.kind != "c" and e.dtype.kind == "c":  # linear in e; a complex block matrix might cross a branch cut
        return frechet_derivative(function, a, np.real(e)) + np.multiply(1j, frechet_derivative(function, a, np.imag(e)))
    if not e.size:
        return np.zeros(np.broadcast_shapes(a.shape, e.shape), e.dtype)
    scale = _size(stop_gradient(e)) / _size(stop_gradient(a))
    shape = np.broadcast_shapes(a.shape, e.shape)
    a, e = np.broadcast_to(a, shape), np.broadcast_to(e / scale, shape)
    n = a.shape[-1]
    rows = [np.concatenate([a, e], axis=-1), np.concatenate([np.zeros_like(a), a], axis=-1)]
    return function(np.concatenate(rows, axis=-2))[..., :n, n:] * scale


def _checked_derivative(name: str, function: Function, a: NDArray[Any], e: object, out: NDArray[Any]) -> Any:
    """Compute `frechet_derivative`; raise if the blocks on the diagonal are not `out`, but on a different branch."""
    block_values: list[Any] = []

    def evaluate(block: object) -> Any:
        block_values.append(function(block))
        return block_values[-1]

    error = scipy.linalg.LinAlgError(f"scipy.linalg.{name}: an eigenvalue is on the branch cut or 0, so there is no derivative")
    try:
        result = frechet_derivative(evaluate, a, e)
    except ValueError:  # SciPy divides by the distance of eigenvalues, and raises for infinities
        if not (np.all(np.isfinite(stop_gradient(a))) and np.all(np.isfinite(stop_gradient(e)))):
            raise
        raise error from None
    tolerance = np.sqrt(np.finfo(a.dtype).eps)
    for value in map(stop_gradient, block_values):
        diagonal_block = value[..., : a.shape[-1], : a.shape[-1]]
        if not np.allclose(diagonal_block, stop_gradient(out), rtol=tolerance, atol=tolerance):
            raise error
    return result


def _is_singular(a: NDArray[Any]) -> bool:
    """Whether an eigenvalue of a matrix is 0 up to rounding."""
    size = np.abs(np.linalg.eigvals(a))
    return bool(np.any(size <= size.shape[-1] * np.finfo(size.dtype).eps * np.max(size, axis=-1, keepdims=True, initial=0)))


def _declare_function(opname: str, function: Callable[..., Any], has_branch_cut: bool = False) -> Rule:
    """Declare an analytic function of matrices, ``function(a, *parameters)``."""
    name = opname.removeprefix("scipy_linalg_")

    def derivative(a: NDArray[Any], e: object, out: NDArray[Any], options: dict[str, Any]) -> Any:
        _require_no_disp(name, options)
        run = functools.partial(function, **{k: v for k, v in options.items() if k == "t"})
        if not has_branch_cut:
            return frechet_derivative(run, a, e)
        if options.get("t", 0) < 1 and evaluate_guarded("whether a matrix is singular", _is_singular, a):
            raise scipy.linalg.LinAlgError(f"scipy.linalg.{name}: the matrix is singular, so the derivative is infinite")
        return _checked_derivative(name, run, a, e, out)

    return (
        general(opname, lambda g, out, a, /, **o: derivative(transpose(a), g, transpose(out), o))
        .tangent(lambda t, out, a, /, **o: derivative(a, t, out, o))
        .batched(
            lambda position, g, out, a, /, **o: derivative(transpose(a), g, transpose(out), o),
            lambda tangents, out, a, /, **o: derivative(a, tangents[0], out, o),
        )
    )


scipy_linalg_expm_grad = _declare_function("scipy_linalg_expm", lambda x: scipy.linalg.expm(x))
scipy_linalg_logm_grad = _declare_function("scipy_linalg_logm", lambda x: scipy.linalg.logm(x), has_branch_cut=True)
scipy_linalg_fractional_matrix_power_grad = _declare_function(
    "scipy_linalg_fractional_matrix_power", lambda x, t: scipy.linalg.fractional_matrix_power(x, t), has_branch_cut=True
)

# The derivative of expm_frechet(a, e) along t is the second derivative of expm along e and t, which is symmetric in them.


def _frechet_along(e: Any) -> Function:
    """Return the function that maps `a` to the derivative of expm along `e`; `a` may consist of blocks of the size of e."""

    def derivative(a: NDArray[Any]) -> Any:
        count = a.shape[-1] // e.shape[-1]
        return frechet_derivative(scipy.linalg.expm, a, np.kron(np.eye(count), e) if count > 1 else e)

    return derivative


def _returns_expm(options: dict[str, Any]) -> bool:
    """Whether expm_frechet returns the exponential too."""
    return bool(options.get("compute_expm", True))


def _frechet_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], e: Any, **options: object) -> Any:
    g_expm, g_frechet = g if _returns_expm(options) else (None, g)
    total = 0 * a
    if g_expm is not None:
        total = total + frechet_derivative(scipy.linalg.expm, transpose(a), g_expm)
    if g_frechet is not None:
        total = total + frechet_derivative(_frechet_along(transpose(e)), transpose(a), g_frechet)
    return total


def _frechet_e(g: NDArray[Any] | tuple[Any, ...], out: NDArray[Any], a: NDArray[Any], e: Any, **options: object) -> Any:
    g_frechet = g[1] if _returns_expm(options) else g
    return 0 * e if g_frechet is None else frechet_derivative(scipy.linalg.expm, transpose(a), g_frechet)


def _frechet_tangent_a(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], e: object, **options: object) -> Any:
    tangent = frechet_derivative(_frechet_along(e), a, t)
    return (frechet_derivative(scipy.linalg.expm, a, t), tangent) if _returns_expm(options) else tangent


def _frechet_tangent_e(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], e: object, **options: object) -> Any:
    tangent = frechet_derivative(scipy.linalg.expm, a, t)
    return (None, tangent) if _returns_expm(options) else tangent


scipy_linalg_expm_frechet_grad = general("scipy_linalg_expm_frechet", _frechet_a, _frechet_e).tangent(
    _frechet_tangent_a, _frechet_tangent_e
)

# ---------------------------------------------------------------------------------- Sylvester equations


def _has_opposite_eigenvalues(x: NDArray[Any]) -> Any:
    """Whether two eigenvalues of a matrix have a sum of 0 up to rounding."""
    w = np.linalg.eigvals(x)
    sums = np.abs(w[..., :, None] + w[..., None, :])
    return np.any(sums <= w.shape[-1] * np.finfo(w.dtype).eps * np.max(np.abs(w), axis=-1, initial=0)[..., None, None])


def solve_sum_equation(name: str, a: NDArray[Any], right: Any) -> Any:
    """Solve ``a x + x a = right`` for x; raise if the solution does not exist or is not unique."""
    if not right.size:
        return right
    if evaluate_guarded("whether a derivative is infinite", _has_opposite_eigenvalues, a):
        raise scipy.linalg.LinAlgError(f"scipy.linalg.{name}: the matrix is singular, so the derivative is infinite")
    return scipy.linalg.solve_sylvester(a, a, right)


def _require_no_disp(name: str, options: dict[str, Any]) -> None:
    if options.get("disp", True) is False:
        raise TypeError(f"scipy.linalg.{name}: disp=False is not differentiable. Omit it")


def _sqrtm(t: NDArray[Any], root: Any, options: dict[str, Any]) -> Any:
    _require_no_disp("sqrtm", options)
    return solve_sum_equation("sqrtm", root, t)


scipy_linalg_sqrtm_grad = (
    general("scipy_linalg_sqrtm", lambda g, out, a, **o: _sqrtm(g, transpose(out), o))
    .tangent(lambda t, out, a, **o: _sqrtm(t, out, o))
    .batched(
        lambda position, g, out, a, **o: _sqrtm(g, transpose(out), o), lambda tangents, out, a, **o: _sqrtm(tangents[0], out, o)
    )
)


def _signm(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], **options: object) -> Any:
    _require_no_disp("signm", options)
    solved = solve_sum_equation("signm", transpose(np.matmul(out, a)), g)
    return solved - matmul_chain(transpose(out), solved, transpose(out))


def _signm_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], **options: object) -> Any:
    _require_no_disp("signm", options)
    return solve_sum_equation("signm", np.matmul(out, a), t - matmul_chain(out, t, out))


scipy_linalg_signm_grad = general("scipy_linalg_signm", _signm).tangent(_signm_tangent)
