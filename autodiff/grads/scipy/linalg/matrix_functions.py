"""Rules of functions of matrices, and of the equations of Sylvester, Lyapunov and Riccati.

The tangent of a solution solves an equation of the same form with a different right-hand side. The cotangent solves one with
transposed matrices. For Riccati's equations, both solve Lyapunov's equation with the matrix of the closed loop. See G. Hewer
and C. Kenney, "The sensitivity of the stable Lyapunov equation" (1988), and T.-C. Kao and G. Hennequin, "Automatic
differentiation of Sylvester, Lyapunov, and algebraic Riccati equations" (2020).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from compgraph.array_types import Array
from compgraph.guards import evaluate_guarded
from compgraph.protocols import stop_gradient

from ....rules import Rule, general
from ...linalg import conj_transpose, matmul_chain, transpose

Function = Callable[[Any], Any]


def _magnitude(x: NDArray[Any]) -> Any:
    """Return the largest absolute value in an array; 1 if all are 0."""
    magnitude = np.max(np.abs(x), initial=0)
    return np.where(magnitude == 0, 1, magnitude)


def frechet_derivative(function: Function, a: NDArray[Any], e: Any) -> Any:
    """Return the Fréchet derivative of a function of matrices along `e`."""
    if a.dtype.kind != "c" and e.dtype.kind == "c":  # linear in e; a complex block matrix might cross a branch cut
        return frechet_derivative(function, a, np.real(e)) + np.multiply(1j, frechet_derivative(function, a, np.imag(e)))
    if not e.size:
        return np.zeros(np.broadcast_shapes(a.shape, e.shape), e.dtype)
    scale = _magnitude(stop_gradient(e)) / _magnitude(stop_gradient(a))
    shape = np.broadcast_shapes(a.shape, e.shape)
    a, e = np.broadcast_to(a, shape), np.broadcast_to(e / scale, shape)
    n = a.shape[-1]
    rows = [np.concatenate([a, e], axis=-1), np.concatenate([np.zeros_like(a), a], axis=-1)]
    return function(np.concatenate(rows, axis=-2))[..., :n, n:] * scale


def _checked_derivative(name: str, function: Function, a: NDArray[Any], e: object, out: NDArray[Any]) -> Any:
    """Compute `frechet_derivative`; raise if a diagonal block of a result differs from `out`, that is, is on another branch."""
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
    magnitudes = np.abs(np.linalg.eigvals(a))
    rounding = magnitudes.shape[-1] * np.finfo(magnitudes.dtype).eps * np.max(magnitudes, axis=-1, keepdims=True, initial=0)
    return bool(np.any(magnitudes <= rounding))


def _declare_function(opname: str, function: Callable[..., Any], has_branch_cut: bool = False) -> Rule:
    """Declare an analytic function of matrices, ``function(a, *parameters)``."""
    name = opname.removeprefix("scipy_linalg_")

    def derivative(a: NDArray[Any], e: Any, out: NDArray[Any], options: dict[str, Any]) -> Any:
        _require_no_disp(name, options)
        if a.ndim == 0:  # expm accepts a number, and returns a matrix of one element
            return e[..., None, None] * out
        # t, the exponent of fractional_matrix_power, is the only option that affects the value
        run = functools.partial(function, **{k: v for k, v in options.items() if k == "t"})
        if not has_branch_cut:
            return frechet_derivative(run, a, e)
        if options.get("t", 0) < 1 and evaluate_guarded("whether a matrix is singular", _is_singular, a):
            raise scipy.linalg.LinAlgError(f"scipy.linalg.{name}: the matrix is singular, so the derivative is infinite")
        return _checked_derivative(name, run, a, e, out)

    def cotangent(g: Any, out: NDArray[Any], a: NDArray[Any], options: dict[str, Any]) -> Any:
        return derivative(transpose(a), g, transpose(out), options) if a.ndim else np.sum(g * out, axis=(-2, -1))

    return (
        general(opname, lambda g, out, a, /, **o: cotangent(g, out, a, o))
        .tangent(lambda t, out, a, /, **o: derivative(a, t, out, o))
        .batched(
            lambda position, g, out, a, /, **o: cotangent(g, out, a, o),
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


def _frechet_a(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], e: NDArray[Any], **options: object) -> Any:
    g_expm, g_frechet = g if _returns_expm(options) else (None, g)
    total = 0 * a
    if g_expm is not None:
        total = total + frechet_derivative(scipy.linalg.expm, transpose(a), g_expm)
    if g_frechet is not None:
        total = total + frechet_derivative(_frechet_along(transpose(e)), transpose(a), g_frechet)
    return total


def _frechet_e(g: NDArray[Any] | tuple[Any, ...], out: NDArray[Any], a: NDArray[Any], e: Array, **options: object) -> Any:
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


def solve_sum_equation(name: str, a: NDArray[Any], right: Array) -> Any:
    """Solve ``a x + x a = right`` for x; raise if the solution does not exist or is not unique."""
    if not right.size:
        return right
    if evaluate_guarded("whether a derivative is infinite", _has_opposite_eigenvalues, a):
        raise scipy.linalg.LinAlgError(f"scipy.linalg.{name}: the matrix is singular, so the derivative is infinite")
    return scipy.linalg.solve_sylvester(a, a, right)


def _require_no_disp(name: str, options: dict[str, Any]) -> None:
    if options.get("disp", True) is False:
        raise TypeError(f"scipy.linalg.{name}: disp=False is not differentiable. Omit it")


def _sqrtm(t: NDArray[Any], root: NDArray[Any], options: dict[str, Any]) -> Any:
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
    solution = solve_sum_equation("signm", transpose(np.matmul(out, a)), g)
    return solution - matmul_chain(transpose(out), solution, transpose(out))


def _signm_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], **options: object) -> Any:
    _require_no_disp("signm", options)
    return solve_sum_equation("signm", np.matmul(out, a), t - matmul_chain(out, t, out))


scipy_linalg_signm_grad = general("scipy_linalg_signm", _signm).tangent(_signm_tangent)


# a x + x b = q


def _sylvester(g: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> Any:
    return scipy.linalg.solve_sylvester(transpose(a), transpose(b), g)


scipy_linalg_solve_sylvester_grad = general(
    "scipy_linalg_solve_sylvester",
    lambda g, out, a, b, q: -np.matmul(_sylvester(g, a, b), transpose(out)),
    lambda g, out, a, b, q: -np.matmul(transpose(out), _sylvester(g, a, b)),
    lambda g, out, a, b, q: _sylvester(g, a, b),
).tangent(
    lambda t, out, a, b, q: scipy.linalg.solve_sylvester(a, b, -np.matmul(t, out)),
    lambda t, out, a, b, q: scipy.linalg.solve_sylvester(a, b, -np.matmul(out, t)),
    lambda t, out, a, b, q: scipy.linalg.solve_sylvester(a, b, t),
)

# a x + x a^H = q


def _lyapunov(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], q: object) -> Any:
    solution = scipy.linalg.solve_continuous_lyapunov(transpose(a), g)
    return -np.matmul(solution, transpose(out)) - np.conjugate(np.matmul(transpose(solution), out))


def _lyapunov_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], q: object) -> Any:
    return scipy.linalg.solve_continuous_lyapunov(a, -np.matmul(t, out) - np.matmul(out, conj_transpose(t)))


scipy_linalg_solve_continuous_lyapunov_grad = general(
    "scipy_linalg_solve_continuous_lyapunov",
    _lyapunov,
    lambda g, out, a, q: scipy.linalg.solve_continuous_lyapunov(transpose(a), g),
).tangent(_lyapunov_tangent, lambda t, out, a, q: scipy.linalg.solve_continuous_lyapunov(a, t))

# a x a^H - x + q = 0


def _stein(g: NDArray[Any], out: NDArray[Any], a: NDArray[Any], q: object, method: object = None) -> Any:
    solution = scipy.linalg.solve_discrete_lyapunov(transpose(a), g, method=method)
    return matmul_chain(solution, np.conjugate(a), transpose(out)) + np.conjugate(matmul_chain(transpose(solution), a, out))


def _stein_tangent(t: NDArray[Any], out: NDArray[Any], a: NDArray[Any], q: object, method: str | None = None) -> Any:
    right = matmul_chain(t, out, conj_transpose(a)) + matmul_chain(a, out, conj_transpose(t))
    return scipy.linalg.solve_discrete_lyapunov(a, right, method=method)


scipy_linalg_solve_discrete_lyapunov_grad = general(
    "scipy_linalg_solve_discrete_lyapunov",
    _stein,
    lambda g, out, a, q, method=None: scipy.linalg.solve_discrete_lyapunov(transpose(a), g, method=method),
).tangent(_stein_tangent, lambda t, out, a, q, method=None: scipy.linalg.solve_discrete_lyapunov(a, t, method=method))

# Riccati: with k = R^-1 (b^H x m + s^H) and the closed loop c = a - b k, where
#   continuous, m = e and R = r:             a^H x e + e^H x a - k^H R k + q = 0,  c^H dx e + e^H dx c + ... = 0
#   discrete, m = a and R = r + b^H x b:     a^H x a - e^H x e - k^H R k + q = 0,  c^H dx c - e^H dx e + ... = 0


class _Riccati:
    """The derivatives of a solution x with respect to the operands a, b, q, r, e, s, which have the positions 0 to 5.

    `closed_loop` is c. In the derivative of the equation, the tangents of a and b are multiplied by the conjugate transpose of
    `left`.
    """

    def __init__(
        self,
        discrete: bool,
        x: NDArray[Any],
        a: NDArray[Any],
        b: NDArray[Any],
        q: NDArray[Any],
        r: NDArray[Any],
        e: Any = None,
        s: object = None,
    ) -> None:
        self.discrete, self.x, self.b = discrete, x, b
        self.e = np.eye(a.shape[-1]) if e is None else e
        weight = r + matmul_chain(conj_transpose(b), x, b) if discrete else r
        right = matmul_chain(conj_transpose(b), x, a if discrete else self.e)
        self.k = np.linalg.solve(weight, right if s is None else right + conj_transpose(s))
        self.closed_loop = a - np.matmul(b, self.k)
        self.left = np.matmul(x, self.closed_loop if discrete else self.e)

    def solve(self, right: Any) -> Any:
        """Solve the linearized equation for dx with right-hand side ``-right``."""
        inverse = np.linalg.inv(self.e)
        loop_adjoint = conj_transpose(np.matmul(self.closed_loop, inverse))
        right = matmul_chain(conj_transpose(inverse), right, inverse)
        if self.discrete:
            return scipy.linalg.solve_discrete_lyapunov(loop_adjoint, right)
        return scipy.linalg.solve_continuous_lyapunov(loop_adjoint, -right)

    def pull(self, g: NDArray[Any]) -> Any:
        """Return the cotangent of the equation, given that of x. Only its Hermitian part contributes, because x is Hermitian."""
        inverse = np.linalg.inv(self.e)
        loop_conjugate = np.conjugate(np.matmul(inverse, self.closed_loop))
        right = matmul_chain(np.conjugate(inverse), (g + conj_transpose(g)) / 2, transpose(inverse))
        if self.discrete:
            return scipy.linalg.solve_discrete_lyapunov(loop_conjugate, right)
        return scipy.linalg.solve_continuous_lyapunov(loop_conjugate, -right)

    def cotangent(self, position: int, g: NDArray[Any]) -> Any:
        """Return the cotangent of an operand, given that of the solution."""
        equation_cotangent, k = self.pull(g), self.k
        if position == 0:
            return 2 * np.matmul(np.conjugate(self.left), equation_cotangent)
        if position == 1:
            return -2 * matmul_chain(np.conjugate(self.left), equation_cotangent, transpose(k))
        if position == 2:
            return equation_cotangent
        if position == 3:
            return matmul_chain(np.conjugate(k), equation_cotangent, transpose(k))
        if position == 4:
            if self.discrete:
                return -2 * np.matmul(np.conjugate(np.matmul(self.x, self.e)), equation_cotangent)
            return 2 * np.matmul(np.conjugate(np.matmul(self.x, self.closed_loop)), equation_cotangent)
        return -2 * np.matmul(equation_cotangent, transpose(k))

    def tangent(self, position: int, t: NDArray[Any]) -> Any:
        """Return the tangent of the solution, given that of an operand."""
        if position == 2:
            return self.solve(t)
        if position == 3:
            return self.solve(matmul_chain(conj_transpose(self.k), t, self.k))
        if position == 0:
            one_side = np.matmul(conj_transpose(self.left), t)
        elif position == 1:
            one_side = -matmul_chain(conj_transpose(self.left), t, self.k)
        elif position == 4:
            one_side = np.matmul(
                conj_transpose(-np.matmul(self.x, self.e) if self.discrete else np.matmul(self.x, self.closed_loop)), t
            )
        else:
            one_side = -np.matmul(t, self.k)
        return self.solve(one_side + conj_transpose(one_side))


def _declare_riccati(opname: str, discrete: bool) -> Rule:
    def formula(position: int) -> Any:
        return lambda g, out, *operands, balanced=True: _Riccati(discrete, out, *operands).cotangent(position, g)

    def tangent(position: int) -> Any:
        return lambda t, out, *operands, balanced=True: _Riccati(discrete, out, *operands).tangent(position, t)

    return general(opname, *map(formula, range(6))).tangent(*map(tangent, range(6)))


scipy_linalg_solve_continuous_are_grad = _declare_riccati("scipy_linalg_solve_continuous_are", False)
scipy_linalg_solve_discrete_are_grad = _declare_riccati("scipy_linalg_solve_discrete_are", True)
