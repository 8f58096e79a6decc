"""`minimize`: SciPy's minimizers with exact derivatives, for functions and constraints of nested arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compgraph.array_types import Array, Operand
from compgraph.context import recording_on
from compgraph.graph import to_values
from compgraph.values import Value, require_computed, require_history, require_unbatched

from ..arguments import flatten, require_function, unflatten
from ..batching import any_batched, map_elements, outside_vmap
from ..custom import parameters
from ..operators import grad, hessian, jacobian, linearize, value_and_grad


class VectorLayout:
    """The positions of the numbers of a tree in a vector.

    Parameters
    ----------
    tree : object
        Real arrays, variables and numbers, nested in any way. Integers become float64; floating leaves keep their dtype.

    Attributes
    ----------
    start : numpy.ndarray
        The numbers of the tree, of dtype float64 and shape ``(n,)``.

    Raises
    ------
    TypeError
        If a leaf is complex, longdouble or not numeric, or the tree contains no numbers.
    """

    def __init__(self, tree: Any) -> None:
        leaves, self.structure = flatten(tree)
        arrays = [_as_real_array(leaf) for leaf in leaves]
        self.shapes = [a.shape for a in arrays]
        self.dtypes = [a.dtype for a in arrays]
        # Whether each leaf is a Python number, which `to_result` returns as a scalar instead of a 0-d array.
        self.leaf_is_number = [not isinstance(leaf, np.ndarray) for leaf in leaves]
        self.start = self.to_vector(unflatten(self.structure, arrays))
        if not self.start.size:
            raise TypeError("minimize: x0 contains no numbers")

    def to_vector(self, tree: object) -> Any:
        """Return the numbers of a tree with this structure as one plain vector."""
        leaves, tree_structure = flatten(tree)
        if tree_structure != self.structure:
            raise ValueError(f"minimize: the tree nests as {tree_structure}, but x0 nests as {self.structure}")
        parts = [np.broadcast_to(leaf, shape) for leaf, shape in zip(leaves, self.shapes, strict=True)]
        return np.concatenate([np.ravel(p).astype(float) for p in parts]) if parts else np.zeros(0)

    def to_tree(self, vector: Any) -> Any:
        """Return the tree with the numbers of a vector; if the vector is a node, the leaves are nodes computed from it."""
        leaves, offset = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            size = math.prod(shape)
            part = vector if size == len(vector) else vector[offset : offset + size]  # a graph gets no needless slice
            leaf = part.reshape(shape) if shape else part[0]
            leaves.append(leaf if leaf.dtype == dtype else leaf.astype(dtype))
            offset += size
        return unflatten(self.structure, leaves)

    def to_result(self, vector: object) -> Any:
        """Return the tree with the numbers of a vector, in new arrays; if the vector is a node, the leaves are nodes.

        A leaf that is a Python number in x0 becomes a scalar.
        """
        if isinstance(vector, Value):
            return self.to_tree(vector)
        leaves, structure = flatten(self.to_tree(np.asarray(vector)))
        leaf_values = [
            leaf[()] if is_number else np.array(leaf) for leaf, is_number in zip(leaves, self.leaf_is_number, strict=True)
        ]
        return unflatten(structure, leaf_values)

    def bound_vectors(self, bounds: dict[str, Any]) -> tuple[Any, Any]:
        """Return the lower and upper bounds as vectors, from a tree with a pair ``(low, high)`` for each leaf of x0."""
        try:
            leaf_bounds = self.structure.flatten_up_to(bounds)
            pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in leaf_bounds]
            low, high = (self.to_vector(unflatten(self.structure, list(side))) for side in zip(*pairs, strict=True))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"minimize: the bounds do not fit x0: {error}. Nest them as x0, with a pair (low, high) for each array; each of "
                "them is None, a number, or an array that broadcasts to it"
            ) from error
        return low, high


def _as_real_array(leaf: object) -> Any:
    require_history(leaf)
    if isinstance(leaf, (np.ma.MaskedArray, np.matrix)):
        raise TypeError(f"minimize: x0 contains a {type(leaf).__name__}. Pass a plain array (np.asarray)")
    require_computed(leaf, "minimize: x0")
    array = np.asarray(leaf.raw_value if isinstance(leaf, Value) else leaf)
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(
            f"minimize: x0 contains {array.dtype}, but SciPy works in float64. Pass real numbers of at most that precision"
        )
    return array


Function = Callable[..., Any]


class Method(NamedTuple):
    """The derivatives and options of a method of ``scipy.optimize.minimize``.

    Attributes
    ----------
    gradient : bool
        Whether it uses the gradient.
    hessian : {None, "products", "matrix"}
        Whether it uses products with the Hessian, the Hessian itself, or neither.
    bounds, constraints : bool
        Whether it supports bounds, and constraints.
    """

    gradient: bool
    hessian: str | None = None
    bounds: bool = False
    constraints: bool = False


def as_sequence(constraints: object) -> Sequence[Any]:
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
        jac, hess = function.jacobian, function.hessian if method.hessian else hess
    else:
        raise ValueError("minimize: the derivatives of a constraint are exact; leave out jac and hess, or pass jac as a function")
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
        raise ValueError(f"minimize: the Jacobian of a constraint is exact; leave out jac={jac!r}, or pass a function")
    elif method.gradient:
        vector_constraint["jac"] = function.jacobian
    return vector_constraint


class Constraint:
    """A constraint as a function of SciPy's vector, from which the nested arguments are rebuilt."""

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
    x0: object,
    *params: object,
    args: Any = (),
    method: str | None = None,
    bounds: object = None,
    constraints: object = (),
    tol: float | None = None,
    options: dict[str, Any] | None = None,
    callback: Callable[[Any], object] | None = None,
    progress: bool = False,
) -> Any:
    """Minimize a function by ``scipy.optimize.minimize`` with exact derivatives. The result is differentiable.

    Parameters
    ----------
    f : callable
        ``f(x, *params)`` returns a scalar; `x` nests as `x0`.
    x0 : tree
        The initial point: real arrays, variables and numbers, nested in any way. SciPy searches in float64, but `f` receives
        each array in its dtype: with float32, a `tol` below about 1e-6 cannot be reached. Integers become float64.
    *params : object
        Further arguments of `f`. The minimizer is a differentiable function of the nodes in them, and of the nodes that `f`,
        the bounds and the constraints use.
    args : tuple
        The further arguments in SciPy's form, instead of `params`.
    method : str, optional
        A method of SciPy: see the notes. By default SLSQP with constraints, L-BFGS-B with bounds, else BFGS.
    bounds : scipy.optimize.Bounds, sequence of pairs, or tree, optional
        For one array `x0`, as in SciPy. For a nested one, a tree with a pair ``(low, high)`` in place of each array: each is
        None, a number, or an array that broadcasts to it.
    constraints : dict, scipy.optimize.NonlinearConstraint, LinearConstraint, or sequence of them
        As in SciPy. Their functions take `x`, nested as for `f`, and their ``"args"``, and return a vector or a number. Their
        Jacobians, and for ``trust-constr`` Hessians, are computed, unless ``jac`` is a function. The matrix of a
        LinearConstraint, and such a Jacobian, has a column for each number in `x0`, in order.
    tol, options
        As in SciPy.
    callback : callable, optional
        A function of `x`, nested like `x0`, called after each iteration. It may raise StopIteration to end the search (not
        with TNC).
    progress : bool
        Whether to display a progress bar, with the value of `f`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result. Its `x`, and its `jac` (`grad` of ``trust-constr``), nest like `x0`, with arrays in place of variables.
        Its other fields refer to the flat vector. If `f` depends on differentiable nodes, `x`, `fun` and `jac` are nodes, and
        access to another numeric field raises. Within `vmap` it has `x`, `fun` and `success`.

    Raises
    ------
    ValueError
        If the method is unknown, or does not support bounds or constraints; if `f` does not return a scalar, or a constraint
        requests finite differences.
    TypeError
        If `x0` contains complex numbers or longdouble, or the method uses derivatives and `f` returns no node.
    RuntimeError
        For a differentiable result: if no minimum was found, or its Hessian is singular.

    Notes
    -----
    ===================================================================  ==============================
    method                                                               uses
    ===================================================================  ==============================
    ``nelder-mead``, ``powell``, ``cobyla``, ``cobyqa``                  values
    ``cg``, ``bfgs``, ``l-bfgs-b``, ``tnc``, ``slsqp``                   values, gradients
    ``newton-cg``, ``trust-ncg``, ``trust-krylov``, ``trust-constr``     values, gradients, Hessian products
    ``dogleg``, ``trust-exact``                                          values, gradients, Hessians
    ===================================================================  ==============================

    `METHODS` is this table as data. The gradient is recorded once for all products with the Hessian at one point.

    The derivative of the minimizer follows from the optimality conditions by the implicit function theorem (A. V. Fiacco,
    1976).

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
    f = require_function("minimize", f)
    params = parameters("minimize", params, args)
    options = {
        "method": method, "bounds": bounds, "constraints": constraints, "tol": tol, "options": options, "callback": callback,
        "progress": progress,
    }  # fmt: skip
    return _search_batched(lambda start, extra_arguments: _minimize(f, start, extra_arguments, **options), x0, params)


def _search_batched(search: Function, x0: object, params: tuple[Any, ...]) -> Any:
    """Return SciPy's result; within `vmap`, the fields that can be stacked over the batch elements."""
    if not any_batched(x0, params):
        with outside_vmap():
            return search(x0, params)
    from scipy.optimize import OptimizeResult

    def search_element(start: object, extra_arguments: tuple[Any, ...]) -> dict[str, Any]:
        scipy_result = _search_batched(search, start, tuple(extra_arguments))
        return {name: scipy_result[name] for name in ("x", "fun", "success")}

    return OptimizeResult(map_elements("minimize", search_element, (x0, params)))


def _minimize(
    f: Function,
    x0: object,
    params: tuple[Any, ...],
    method: str | None,
    bounds: NDArray[Any] | None,
    constraints: tuple[Any, ...],
    tol: Operand | None,
    options: object,
    callback: object,
    progress: bool,
) -> Any:
    """Return SciPy's result, nested like `x0`."""
    from ..custom.scipy import optimize

    layout = VectorLayout(x0)
    constraint_list = as_sequence(constraints)
    name, chosen_method = _choose_method(method, bounds is not None, bool(constraint_list))
    problem = Problem(f, layout)
    bar = _progress_bar(progress, name)
    function = problem.value_and_gradient if chosen_method.gradient else problem.value_only
    scipy_options = {
        "args": params,
        "method": name,
        "jac": chosen_method.gradient or None,
        "hess": problem.hessian if chosen_method.hessian == "matrix" else None,
        "hessp": problem.hessian_product if chosen_method.hessian == "products" else None,
        "bounds": _convert_bounds(bounds, layout),
        "constraints": [to_vector_constraint(c, layout, chosen_method) for c in constraint_list],
        "tol": tol,
        "options": options,
        "callback": _iteration_callback(problem, callback, bar, name),
    }
    with nullcontext() if bar is None else bar:
        scipy_result = optimize.minimize(function, layout.start, **scipy_options)  # a node if the function depends on nodes
    scipy_result.x = layout.to_result(scipy_result.x)
    gradient_field = "grad" if name == "trust-constr" else "jac"
    if chosen_method.gradient and gradient_field in scipy_result:
        scipy_result[gradient_field] = layout.to_result(scipy_result[gradient_field])
    return scipy_result


def _iteration_callback(problem: Problem, callback: Any, bar: Any, name: str) -> Any:
    """Return the function that SciPy calls after each iteration; None without a callback and a progress bar."""
    if callback is None and bar is None:
        return None

    def callback_for_scipy(x: Array, state: object = None) -> None:
        if bar is not None:
            bar.update()
            bar.set_postfix(value=f"{problem.value:.6g}", refresh=False)
        if callback is not None:
            _run_callback(callback, problem.layout.to_result(x), name)

    return callback_for_scipy


class Problem:
    """The minimized function, as a function of SciPy's vector; `value` is the last computed value."""

    def __init__(self, f: Function, layout: VectorLayout) -> None:
        self.f, self.layout = f, layout
        self.value = np.nan
        self._linearization_point: Any = None
        self._hessian_map: Any = None

    def flat_function(self, vector: object, *params: object) -> Any:
        """Call the function with the tree of a vector."""
        return self.f(self.layout.to_tree(vector), *params)

    def value_only(self, x: NDArray[Any], *params: object) -> Any:
        """Return the value."""
        value = self.flat_function(np.copy(x), *params)
        require_unbatched("minimize", value)
        if np.shape(value) != ():
            raise ValueError(f"minimize: the function returned shape {np.shape(value)}, not a scalar; sum it")
        self.value = float(to_values(value))
        return value

    def value_and_gradient(self, x: object, *params: object) -> tuple[Any, Any]:
        """Return the value and the gradient."""
        value, gradient = value_and_grad(self.flat_function)(x, *params)
        self.value = float(to_values(value))
        return (value if isinstance(value, Value) else self.value), gradient

    def hessian_product(self, x: NDArray[Any], vector: NDArray[Any], *params: object) -> Any:
        """Return the Hessian times a vector."""
        with recording_on():  # a function that writes in place runs again for each product, and must be recorded
            if self._linearization_point is None or not np.array_equal(x, self._linearization_point):
                self._linearization_point = np.array(x)
                _, self._hessian_map = linearize(lambda x: grad(self.flat_function)(x, *params), np.array(x))
            return np.asarray(to_values(self._hessian_map(np.asarray(vector, float))), float)

    def hessian(self, x: Any, *params: object) -> Any:
        """Return the Hessian."""
        return np.asarray(to_values(hessian(self.flat_function)(x, *params)), float)


def _choose_method(method: str | None, bounded: bool, constrained: bool) -> tuple[str, Method]:
    """Return the name of the method, by default SciPy's, and its entry of `METHODS`."""
    name = ("slsqp" if constrained else "l-bfgs-b" if bounded else "bfgs") if method is None else method
    if not isinstance(name, str) or name.lower() not in METHODS:
        raise ValueError(f"minimize: there is no method {method!r}; use one of {', '.join(METHODS)}")
    chosen_method = METHODS[name.lower()]
    for is_requested, field in ((bounded, "bounds"), (constrained, "constraints")):
        if is_requested and not getattr(chosen_method, field):
            supporting_methods = ", ".join(n for n, k in METHODS.items() if getattr(k, field))
            raise ValueError(f"minimize: method {name!r} takes no {field}; these do: {supporting_methods}")
    return name.lower(), chosen_method


def _convert_bounds(bounds: Any, layout: VectorLayout) -> Any:
    """Return the bounds on the vector, in SciPy's form."""
    from scipy import optimize

    if bounds is None or isinstance(bounds, optimize.Bounds) or layout.structure.is_leaf():
        return bounds
    return optimize.Bounds(*layout.bound_vectors(bounds))


def _run_callback(callback: Callable[[Any], object], x: dict[str, Any], name: str) -> None:
    try:
        callback(x)
    except StopIteration as stop:
        if name == "tnc":
            raise RuntimeError("minimize: method 'tnc' cannot be ended by a callback; options={'maxfun': n} ends it") from stop
        raise


def _progress_bar(progress: bool, name: str) -> Any:
    if not progress:
        return None
    from tqdm import tqdm

    return tqdm(desc=name, unit=" iterations")
