"""``scipy.integrate``: integrals of samples. Where a function of the user is integrated, `autodiff` answers."""

from __future__ import annotations

from ..policy import Policy
from .samples import cumulative_simpson, cumulative_trapezoid, fixed_quad, romb, simpson, trapezoid

__all__ = ["POLICY"]

_AUTODIFF = "it in a program that imports autodiff, which answers for it"
_STEPS = "scipy.integrate.solve_ivp, which records its steps"
_QUAD = "scipy.integrate.quad or quad_vec, or fixed_quad for a smooth function"

POLICY = Policy(
    module="scipy.integrate",
    instead={
        "trapezoid": trapezoid,
        "cumulative_trapezoid": cumulative_trapezoid,
        "simpson": simpson,
        "cumulative_simpson": cumulative_simpson,
        "romb": romb,
        "fixed_quad": fixed_quad,
    },
    plain=frozenset({"IntegrationWarning", "ODEintWarning"}),
    refused={
        **dict.fromkeys(["quad", "quad_vec", "nquad", "dblquad", "tplquad", "solve_ivp", "solve_bvp", "odeint"], _AUTODIFF),
        **dict.fromkeys(["ode", "complex_ode", "OdeSolver", "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"], _STEPS),
        **dict.fromkeys(["DenseOutput", "OdeSolution"], "the `sol` of " + _STEPS),
        **dict.fromkeys(["cubature", "tanhsinh", "qmc_quad"], _QUAD + " (nested: nquad)"),
        "nsum": "np.sum over as many terms as matter",
        "newton_cotes": "node.value: weights depend on how samples lie, which is no matter of derivatives",
        "lebedev_rule": "node.value: an order is a count",
    },
)
