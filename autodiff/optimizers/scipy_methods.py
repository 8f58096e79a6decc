"""`minimize`: SciPy's minimisers, given exact derivatives of functions of nested arguments."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from compgraph.graph import InputNode, Node, require_single, to_plain
from compgraph.graph.context import NoGraph, is_recording, recording_on

from ..operators import grad, hessian, linearize, value_and_grad
from ..reverse import collect
from .constraints import Method, listed, on_vectors
from .flattening import Layout

Function = Callable[..., Any]


METHODS = {
    "nelder-mead": Method(False, bounds=True),
    "powell": Method(False, bounds=True),
    "cobyla": Method(False, bounds=True, constraints=True),
    "cobyqa": Method(False, bounds=True, constraints=True),
    "cg": Method(True),
    "bfgs": Method(True),
    "l-bfgs-b": Method(True, bounds=True),
    "tnc": Method(True, bounds=True),
    "slsqp": Method(True, bounds=True, constraints=True),
    "newton-cg": Method(True, "products"),
    "trust-ncg": Method(True, "products"),
    "trust-krylov": Method(True, "products"),
    "trust-constr": Method(True, "products", bounds=True, constraints=True),
    "dogleg": Method(True, "matrix"),
    "trust-exact": Method(True, "matrix"),
}


def minimize(
    f: Function,
    x0: Any,
    *args: Any,
    method: str | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    options: dict[str, Any] | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: bool = False,
) -> Any:
    """Minimise a function by ``scipy.optimize.minimize``, which is given its exact derivatives.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a scalar; `x` nests as `x0`.
    x0 : tree
        Where the search begins: real arrays, variables and numbers, nested in any way. SciPy searches in float64, but `f`
        gets each array in its own dtype: with float32 a `tol` below about 1e-6 cannot be reached. Integers become float64.
    *args : object
        Further arguments of `f`.
    method : str, optional
        A method of SciPy: see the notes. By default SLSQP with constraints, L-BFGS-B with bounds, else BFGS.
    bounds : scipy.optimize.Bounds, sequence of pairs, or tree, optional
        If `x0` is one array, as in SciPy. If it nests, a tree with a pair ``(low, high)`` in place of each array: each None, a
        number, or an array that broadcasts to it.
    constraints : dict, scipy.optimize.NonlinearConstraint, LinearConstraint, or sequence of them
        As in SciPy; functions get `x` as `f` does (and their ``"args"``), and return a vector or a number. Their Jacobians,
        and for ``trust-constr`` Hessians, are supplied, unless ``jac`` is a function. The matrix of a LinearConstraint, and
        such a Jacobian, has a column for each number in `x0`, in order.
    tol, options
        As in SciPy.
    callback : callable, optional
        Called with `x`, nested as `x0`, after each iteration. It may raise StopIteration to end the search (not with TNC).
    progress : bool
        Whether to show a progress bar, with the value of `f`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result. Its `x`, and its `jac` (of ``trust-constr``: `grad`), nest as `x0`, with arrays in place of variables.
        Its other fields refer to the flat vector.

    Raises
    ------
    ValueError
        If the method is unknown, or does not take bounds or constraints; if `f` does not return a scalar, or a constraint
        asks for finite differences.
    TypeError
        If `x0` holds complex numbers or longdouble; if the method uses derivatives and `f` returns no node; or if `f` uses a
        node that an outer derivative is taken with respect to: the result is plain (`autodiff.minimize` is differentiable).

    See Also
    --------
    autodiff.minimize : the minimiser as a differentiable function of parameters.

    Notes
    -----
    ===================================================================  ==============================
    method                                                               is given
    ===================================================================  ==============================
    ``nelder-mead``, ``powell``, ``cobyla``, ``cobyqa``                  values alone
    ``cg``, ``bfgs``, ``l-bfgs-b``, ``tnc``, ``slsqp``                   values and gradients together
    ``newton-cg``, ``trust-ncg``, ``trust-krylov``, ``trust-constr``     and products with the Hessian
    ``dogleg``, ``trust-exact``                                          and the Hessian
    ===================================================================  ==============================

    `METHODS` is this table as data. The gradient is recorded once for all products with the Hessian at one point.

    Examples
    --------
    >>> import numpy as np
    >>> found = minimize(lambda p: (p["a"] - 1) ** 2 + np.sum((p["b"] - p["a"]) ** 2), {"a": 0.0, "b": np.zeros(2)})
    >>> print(round(float(found.x["a"]), 6), np.round(found.x["b"], 6))
    1.0 [1. 1.]
    """
    from scipy import optimize

    layout = Layout(x0)
    given = listed(constraints)
    name, kind = _method(method, bounds is not None, bool(given))
    problem = Problem(lambda x: f(x, *args), layout)
    if is_recording():
        _require_outside(problem.flat(np.array(layout.start)))
    bar = _bar(progress, name)

    with NoGraph(), nullcontext() if bar is None else bar:
        found = optimize.minimize(
            problem.both if kind.gradient else problem.alone,
            layout.start,
            method=name,
            jac=True if kind.gradient else None,
            hess=problem.hessian if kind.second == "matrix" else None,
            hessp=problem.product if kind.second == "products" else None,
            bounds=_bounds(bounds, layout),
            constraints=[on_vectors(c, layout, kind) for c in given],
            tol=tol,
            options=options,
            callback=_after_each(problem, callback, bar, name),
        )
    found.x = layout.result(found.x)
    slope = "grad" if name == "trust-constr" else "jac"
    if kind.gradient and slope in found:
        found[slope] = layout.result(found[slope])
    return found


def _after_each(problem: Problem, callback: Any, bar: Any, name: str) -> Any:
    """The function that SciPy calls after each iteration; None without a callback and a progress bar."""
    if callback is None and bar is None:
        return None

    def each(x: Any, state: Any = None) -> None:
        if bar is not None:
            bar.update()
            bar.set_postfix(value=f"{problem.value:.6g}", refresh=False)
        if callback is not None:
            _called(callback, problem.layout.result(x), name)

    return each


class Problem:
    """The function that is minimised, as SciPy calls it: with a vector in place of nested arguments."""

    def __init__(self, f: Function, layout: Layout) -> None:
        self.f, self.layout = f, layout
        self.value = np.nan
        self._at: Any = None
        self._push: Any = None

    def flat(self, vector: Any) -> Any:
        """The function of the vector."""
        return self.f(self.layout.tree(vector))

    def alone(self, x: Any) -> float:
        """The value alone, as a plain number."""
        value = np.asarray(to_plain(self.flat(np.array(x))))
        if value.shape != ():
            raise ValueError(f"minimize: the function returned shape {value.shape}, not a scalar; sum it")
        self.value = float(value)
        return self.value

    def both(self, x: Any) -> tuple[float, Any]:
        """The value and the gradient."""
        value, slope = value_and_grad(self.flat)(x)
        self.value = float(to_plain(value))
        return self.value, np.asarray(to_plain(slope), float)

    def product(self, x: Any, vector: Any) -> Any:
        """The Hessian times a vector."""
        with recording_on():  # where the function writes in place, it runs again for each product, and must record
            if self._at is None or not np.array_equal(x, self._at):
                self._at, (_, self._push) = np.array(x), linearize(grad(self.flat), np.array(x))
            return np.asarray(to_plain(self._push(np.asarray(vector, float))), float)

    def hessian(self, x: Any) -> Any:
        """The Hessian."""
        return np.asarray(to_plain(hessian(self.flat)(x)), float)


def _method(method: str | None, bounded: bool, constrained: bool) -> tuple[str, Method]:
    """The name of the method, by default as SciPy chooses it, and what it uses."""
    name = ("slsqp" if constrained else "l-bfgs-b" if bounded else "bfgs") if method is None else method
    if not isinstance(name, str) or name.lower() not in METHODS:
        raise ValueError(f"minimize: there is no method {method!r}; known are {', '.join(METHODS)}")
    kind = METHODS[name.lower()]
    for wanted, field in ((bounded, "bounds"), (constrained, "constraints")):
        if wanted and not getattr(kind, field):
            able = ", ".join(n for n, k in METHODS.items() if getattr(k, field))
            raise ValueError(f"minimize: method {name!r} takes no {field}; these do: {able}")
    return name.lower(), kind


def _bounds(bounds: Any, layout: Layout) -> Any:
    """The bounds on the vector, in SciPy's form."""
    from scipy import optimize

    if bounds is None or isinstance(bounds, optimize.Bounds) or layout.structure.is_leaf():
        return bounds
    return optimize.Bounds(*layout.pairs(bounds))


def _require_outside(value: Any) -> None:
    """Raise a TypeError if a value depends on the input of an outer derivative: that derivative would silently be lost."""
    require_single("minimize", value)
    if isinstance(value, Node) and (value.level or any(n.__class__ is InputNode for n in collect(value))):
        raise TypeError(
            "minimize: the function uses the input of an outer derivative, but the result would be plain numbers without "
            "a derivative. autodiff.minimize is differentiable; node.value is a plain array"
        )


def _called(callback: Callable[[Any], object], x: Any, name: str) -> None:
    try:
        callback(x)
    except StopIteration as stop:
        if name == "tnc":
            raise RuntimeError("minimize: method 'tnc' cannot be ended by a callback; options={'maxfun': n} ends it") from stop
        raise


def _bar(progress: bool, name: str) -> Any:
    if not progress:
        return None
    from tqdm import tqdm

    return tqdm(desc=name, unit=" iterations")
