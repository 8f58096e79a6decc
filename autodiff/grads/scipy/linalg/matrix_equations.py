"""Rules of the equations of Sylvester, Lyapunov and Riccati.

The tangent of a solution solves an equation of the same form with a different right-hand side. The cotangent solves one with
transposed matrices. For Riccati's equations, both solve Lyapunov's equation with the matrix of the closed loop. See G. Hewer
and C. Kenney, "The sensitivity of the stable Lyapunov equation" (1988), and T.-C. Kao and G. Hennequin, "Automatic
differentiation of Sylvester, Lyapunov, and algebraic Riccati equations" (2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ....rules import Rule, general
from ...linalg import conj_transpose, matmul_chain, transpose

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
#   continuous, m = e and R = r:             a^H x e + e^H x a - (...) k + q = 0,  c^H dx e + e^H dx c + ... = 0
#   discrete, m = a and R = r + b^H x b:     a^H x a - e^H x e - (...) k + q = 0,  c^H dx c - e^H dx e + ... = 0


class _Riccati:
    """The derivatives of a solution x; `loop` is c, the matrix of the closed loop.

    In the derivative of the equation, the tangents of a and b are multiplied by the conjugate transpose of `left`.
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
        middle = r + matmul_chain(conj_transpose(b), x, b) if discrete else r
        right = matmul_chain(conj_transpose(b), x, a if discrete else self.e)
        self.k = np.linalg.solve(middle, right if s is None else right + conj_transpose(s))
        self.loop = a - np.matmul(b, self.k)
        self.left = np.matmul(x, self.loop if discrete else self.e)

    def solve(self, right: Any) -> Any:
        """Solve the linearized equation for dx with right-hand side ``-right``."""
        inverse = np.linalg.inv(self.e)
        loop_adjoint = conj_transpose(np.matmul(self.loop, inverse))
        right = matmul_chain(conj_transpose(inverse), right, inverse)
        if self.discrete:
            return scipy.linalg.solve_discrete_lyapunov(loop_adjoint, right)
        return scipy.linalg.solve_continuous_lyapunov(loop_adjoint, -right)

    def pull(self, g: NDArray[Any]) -> Any:
        """Return the cotangent of the equation, given that of x, whose Hermitian part alone matters because x is Hermitian."""
        inverse = np.linalg.inv(self.e)
        loop_conjugate = np.conjugate(np.matmul(inverse, self.loop))
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
            return 2 * np.matmul(np.conjugate(np.matmul(self.x, self.loop)), equation_cotangent)
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
            one_side = np.matmul(conj_transpose(-np.matmul(self.x, self.e) if self.discrete else np.matmul(self.x, self.loop)), t)
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
