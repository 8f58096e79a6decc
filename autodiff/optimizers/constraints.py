"""Conversion of constraints on nested arguments to SciPy's constraints on a vector, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from compgraph.graph import to_values
from compgraph.values import Value

from ..operators import hessian, jacobian
from .flattening import VectorLayout

Function = Callable[..., Any]


class Method(NamedTuple):
    """The derivatives and options of a method of ``scipy.optimize.minimize``.

    Attributes
    ----------
    gradient : bool
        Whether it uses the gradient.
    second : {None, "products", "matrix"}
        Whether it uses products with the Hessian, the Hessian itself, or neither.
    bounds, constraints : bool
        Whether it supports bounds, and constraints.
    """

    gradient: bool
    second: str | None = None
    bounds: bool = False
    constraints: bool = False


def as_sequence(constraints: Any) -> Sequence[Any]:
    """Return constraints as a sequence."""
    if isinstance(constraints, dict) or not isinstance(constraints, (list, tuple)):
        return [constraints]
    return constraints


def to_vector_constraint(constraint: object, layout: VectorLayout, method: Method) -> Any:
    """Convert a constraint on nested arguments to a constraint on the vector, with the derivatives that the method uses."""
    from scipy import optimize

    if isinstance(constraint, optimize.LinearConstraint):
        return constraint
    if isinstance(constraint, dict):
        return _convert_dictionary(constraint, layout, method)
    if not isinstance(constraint, optimize.NonlinearConstraint):
        raise TypeError(f"minimize: a constraint is a dict, a LinearConstraint or a NonlinearConstraint, not {constraint!r}")
    if constraint.finite_diff_jac_sparsity is not None or constraint.finite_diff_rel_step is not None:
        raise ValueError("minimize: the Jacobian of a constraint is exact; omit finite_diff_jac_sparsity and _rel_step")
    function = Constraint(constraint.fun, layout)
    jac, hess = constraint.jac, constraint.hess
    if callable(jac):
        jac, hess = function.on_vector(jac), function.on_vector(hess) if callable(hess) else hess
    elif jac == "2-point" and type(hess) is optimize.BFGS:  # SciPy's defaults
        jac, hess = function.jacobian, function.hessian if method.second else hess
    else:
        raise ValueError("minimize: the derivatives of a constraint are exact; leave out jac and hess, or give jac as a function")
    return optimize.NonlinearConstraint(
        function.value, constraint.lb, constraint.ub, jac=jac, hess=hess, keep_feasible=constraint.keep_feasible
    )


def _convert_dictionary(constraint: dict[str, Any], layout: VectorLayout, method: Method) -> dict[str, Any]:
    """Convert a constraint in SciPy's older form, a dictionary; see `to_vector_constraint`."""
    function = Constraint(constraint["fun"], layout, tuple(constraint.get("args", ())))
    vector_constraint = {**constraint, "fun": function.value, "args": ()}
    jac = constraint.get("jac")
    if callable(jac):
        vector_constraint["jac"] = function.on_vector(jac)
    elif jac is not None:
        raise ValueError(f"minimize: the Jacobian of a constraint is exact; leave out jac={jac!r}, or give a function")
    elif method.gradient:
        vector_constraint["jac"] = function.jacobian
    return vector_constraint


class Constraint:
    """The function of a constraint on SciPy's vector, in place of nested arguments."""

    def __init__(self, f: Function, layout: VectorLayout, args: tuple[Any, ...] = ()) -> None:
        self.f, self.layout, self.args = f, layout, args

    def flat_value(self, vector: object) -> Any:
        """Return the flattened value at a vector."""
        return np.ravel(self.f(self.layout.to_tree(vector), *self.args))

    def value(self, x: Any) -> Any:
        """Return the value as a vector."""
        vector = self.flat_value(np.copy(x))
        return vector if isinstance(vector, Value) else np.asarray(vector, float)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian: a row for each value, a column for each number of the vector."""
        return np.asarray(to_values(jacobian(self.flat_value)(x)), float)

    def hessian(self, x: Any, weights: Any) -> Any:
        """Return the Hessian of the sum of the values times `weights`."""
        return np.asarray(to_values(hessian(lambda z: np.sum(self.flat_value(z) * weights))(x)), float)

    def on_vector(self, derivative: Function) -> Function:
        """Return a user-defined derivative as a function of the vector."""
        return lambda x, *weights: derivative(self.layout.to_tree(np.array(x)), *weights, *self.args)
