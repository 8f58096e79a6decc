"""`minimize`: SciPy's minimisers, given exact derivatives of functions of nested arguments."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from compgraph.context import recording_on
from compgraph.graph import to_values
from compgraph.values import Value, require_unbatched

from ..arguments import require_function
from ..batching import any_batched, map_elements, outside_vmap
from ..custom import parameters
from ..operators import grad, hessian, linearize, value_and_grad
from .constraints import Method, as_sequence, on_vectors
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
    *params: Any,
    args: Any = (),
    method: str | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    options: dict[str, Any] | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: bool = False,
) -> Any:
    """Minimise a function by ``scipy.optimize.minimize``, which is given its exact derivatives; differentiable itself.

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` returns a scalar; `x` nests as `x0`.
    x0 : tree
        Where the search begins: real arrays, variables and numbers, nested in any way. SciPy searches in float64, but `f`
        gets each array in its own dtype: with float32 a `tol` below about 1e-6 cannot be reached. Integers become float64.
    *params : object
        Further arguments of `f`. The minimiser is a differentiable function of all nodes in them, and of all that `f`, the
        bounds and the constraints use.
    args : tuple
        The further arguments as SciPy takes them, instead.
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
        Its other fields refer to the flat vector. Where `f` depends on nodes that can be differentiated by, `x`, `fun` and
        `jac` are nodes, and reading another field of numbers raises. Within `vmap` it has `x`, `fun` and `success`.

    Raises
    ------
    ValueError
        If the method is unknown, or does not take bounds or constraints; if `f` does not return a scalar, or a constraint
        asks for finite differences.
    TypeError
        If `x0` holds complex numbers or longdouble; or if the method uses derivatives and `f` returns no node.
    RuntimeError
        Where the result is differentiable: if no minimum was found, or its Hessian is singular.

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

    The minimiser's derivative is that of the equations which hold there, by the implicit function theorem (A. V. Fiacco, 1976).

    Examples
    --------
    >>> import numpy as np
    >>> result = minimize(lambda p: (p["a"] - 1) ** 2 + np.sum((p["b"] - p["a"]) ** 2), {"a": 0.0, "b": np.zeros(2)})
    >>> print(round(float(result.x["a"]), 6), np.round(result.x["b"], 6))
    1.0 [1. 1.]
    >>> from autodiff import grad
    >>> print(round(float(grad(lambda p: minimize(lambda x, p: (x - p) ** 2 + x**2, 0.0, p).x)(3.0)), 6))
    0.5
    """
    require_function("minimize", f)
    params = parameters("minimize", params, args)
    options = {
        "method": method, "bounds": bounds, "constraints": constraints, "tol": tol, "options": options, "callback": callback,
        "progress": progress,
    }  # fmt: skip
    return _of_examples(lambda start, extra_arguments: _minimized(f, start, extra_arguments, **options), x0, params)


def _of_examples(search: Function, x0: Any, params: tuple[Any, ...]) -> Any:
    """SciPy's result; within vmap what of the results of all examples can be put together."""
    if not any_batched(x0, params):
        with outside_vmap():
            return search(x0, params)
    from scipy.optimize import OptimizeResult

    def of_one(start: Any, extra_arguments: Any) -> dict[str, Any]:
        scipy_result = _of_examples(search, start, tuple(extra_arguments))
        return {name: scipy_result[name] for name in ("x", "fun", "success")}

    return OptimizeResult(map_elements("minimize", of_one, (x0, params)))


def _minimized(
    f: Function, x0: Any, params: tuple[Any, ...], method: Any, bounds: Any, constraints: Any, tol: Any, options: Any,
    callback: Any, progress: bool,
) -> Any:  # fmt: skip
    """SciPy's result, nested as `x0`."""
    layout = Layout(x0)
    constraint_list = as_sequence(constraints)
    name, kind = _method(method, bounds is not None, bool(constraint_list))
    problem = Problem(f, layout)
    bar = _bar(progress, name)
    how = {
        "args": params,
        "method": name,
        "hess": problem.hessian if kind.second == "matrix" else None,
        "hessp": problem.product if kind.second == "products" else None,
        "bounds": _bounds(bounds, layout),
        "constraints": [on_vectors(c, layout, kind) for c in constraint_list],
        "tol": tol,
        "options": options,
        "callback": _after_each(problem, callback, bar, name),
    }
    with nullcontext() if bar is None else bar:
        scipy_result = _search(problem, layout.start, kind, how)
    scipy_result.x = layout.result(scipy_result.x)
    slope = "grad" if name == "trust-constr" else "jac"
    if kind.gradient and slope in scipy_result:
        scipy_result[slope] = layout.result(scipy_result[slope])
    return scipy_result


def _search(problem: Problem, start: Any, kind: Method, how: dict[str, Any]) -> Any:
    """Return SciPy's result as a function of all nodes that it depends on."""
    from ..custom.scipy import optimize

    return optimize.minimize(problem.both if kind.gradient else problem.alone, start, jac=kind.gradient or None, **how)


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

    def flat(self, vector: Any, *params: Any) -> Any:
        """The function of the vector."""
        return self.f(self.layout.tree(vector), *params)

    def alone(self, x: Any, *params: Any) -> Any:
        """The value alone."""
        value = self.flat(np.copy(x), *params)
        require_unbatched("minimize", value)
        if np.shape(value) != ():
            raise ValueError(f"minimize: the function returned shape {np.shape(value)}, not a scalar; sum it")
        self.value = float(to_values(value))
        return value

    def both(self, x: Any, *params: Any) -> tuple[Any, Any]:
        """The value and the gradient."""
        value, slope = value_and_grad(self.flat)(x, *params)
        self.value = float(to_values(value))
        return (value if isinstance(value, Value) else self.value), slope

    def product(self, x: Any, vector: Any, *params: Any) -> Any:
        """The Hessian times a vector."""
        with recording_on():  # where the function writes in place, it runs again for each product, and must record
            if self._at is None or not np.array_equal(x, self._at):
                self._at, (_, self._push) = np.array(x), linearize(lambda x: grad(self.flat)(x, *params), np.array(x))
            return np.asarray(to_values(self._push(np.asarray(vector, float))), float)

    def hessian(self, x: Any, *params: Any) -> Any:
        """The Hessian."""
        return np.asarray(to_values(hessian(self.flat)(x, *params)), float)


def _method(method: str | None, bounded: bool, constrained: bool) -> tuple[str, Method]:
    """Return the name of the method, by default SciPy's, and its requirements."""
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
