"""Calls of SciPy's solvers on plain numbers. Callbacks record whether the user's functions return nodes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult

from compgraph import ops
from compgraph.array_types import Operand
from compgraph.bind import bind, stack_object_array
from compgraph.context import NoGraph
from compgraph.graph import as_operands, flatten_sequences, to_values
from compgraph.interception import unpatched
from compgraph.values import INERT, Value

from ...arguments import flatten, unflatten
from .implicit_solution import solution

# Arguments that only control the search: the solution does not depend on them.
SEARCH_ARGUMENTS = frozenset(
    {"x0", "xin", "p0", "a", "b", "x1", "brack", "bracket", "initial_simplex", "tol", "xtol", "rtol", "maxiter"}
)
_PLAIN_TYPES = frozenset({float, int, bool, str, np.float64, type(None)})


def has_active_node(value: object) -> bool:
    """Whether nested values, or SciPy's bounds and constraints among them, contain an active node."""
    for leaf in flatten(value)[0]:
        parts = [getattr(leaf, name) for name in ("A", "lb", "ub") if hasattr(leaf, "lb") and hasattr(leaf, name)]
        if any(isinstance(part, Value) and type(part) not in INERT for part in (leaf, *parts)):
            return True
    return False


# SciPy functions that unpack a list passed as ``args=``; other functions receive the list as one argument.
_UNPACKING_SOLVERS = ("newton", "fixed_point")


class Callback:
    """A user's function as passed to SciPy: it returns plain numbers.

    Attributes
    ----------
    depends_on_nodes : bool
        Whether a result contained an active node. From then on no graph is recorded.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.depends_on_nodes = function, False

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Return the function's result as plain numbers."""
        if self.depends_on_nodes:
            with NoGraph():
                return self._to_plain(self.function(*args, **kwargs))
        result = self.function(*args, **kwargs)
        return result if type(result) in _PLAIN_TYPES else self._to_plain(result)

    def _to_plain(self, result: ArrayLike) -> Any:
        if type(result) is np.ndarray:
            result = stack_object_array(result)
        if isinstance(result, Value):
            self.depends_on_nodes = self.depends_on_nodes or type(result) not in INERT
            return to_values(result)
        if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
            return type(result)([self._to_plain(part) for part in result])
        return result


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all parameters of a function, and of the parameters without a default."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    return tuple([p.name for p in parameters]), tuple([p.name for p in parameters if p.default is inspect.Parameter.empty])


class Call:
    """A call of a SciPy function.

    Parameters
    ----------
    function : callable
        SciPy's function.
    args, kwargs : tuple, dict
        Its arguments.
    callbacks : str
        The names of parameters that are user functions, separated by spaces; the solver's function first.
    node_parameters : str
        The names of parameters that may contain nodes, which the caller handles.

    Attributes
    ----------
    arguments : dict
        The arguments of SciPy's function, by name.
    user_arguments : dict
        The arguments as passed by the user.
    extra : tuple
        ``args=``.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        callbacks: str,
        node_parameters: str = "",
    ) -> None:
        self.name = function.__name__
        self.scipy_function = unpatched(function)
        names, required_names = _parameters(function)
        self.arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        if len(self.arguments) < len(args) + len(kwargs) or any(name not in self.arguments for name in required_names):
            self.scipy_function(*args, **kwargs)  # raises, because an argument is surplus, repeated or missing
        self.user_arguments = dict(self.arguments)
        self.extra: tuple[Any, ...] = ()
        if "args" in names:
            self.take_extra_arguments(self.arguments)
        self._callbacks = [name for name in callbacks.split() if callable(self.arguments.get(name))]
        for name in self._callbacks:
            self.arguments[name] = Callback(self.arguments[name])
        self.other_callbacks: list[Callback] = []
        self.has_node_argument = any(
            has_active_node(self.arguments[name]) for name in node_parameters.split() if name in self.arguments
        )
        for name, value in self.arguments.items():
            if type(value) not in _PLAIN_TYPES and name not in ("args", *self._callbacks, *node_parameters.split()):
                self.arguments[name] = self._plain_argument(name, value)

    def take_extra_arguments(self, options: dict[str, Any]) -> None:
        """Store the extra arguments ``args=`` of `options`, and replace them by plain numbers there."""
        self._options = options
        if "args" in options:
            extra = options["args"]
            unpacks = self.name in _UNPACKING_SOLVERS and isinstance(extra, list)
            self.extra = tuple(extra) if isinstance(extra, tuple) or unpacks else (extra,)
            options["args"] = to_values(extra)

    def _plain_argument(self, name: str, value: NDArray[Any]) -> Any:
        if name not in SEARCH_ARGUMENTS and has_active_node(value):
            raise TypeError(f"{self.name}: {name}= cannot be a node. Pass node.value, or use the node within the function")
        return to_values(value)

    def __call__(self) -> Any:
        """Return SciPy's result for plain arguments."""
        return self.scipy_function(**self.arguments)

    @property
    def function(self) -> Any:
        """The user's function of the problem; None if it is missing."""
        return self.user_arguments[self._callbacks[0]] if self._callbacks else None

    @property
    def depends_on_nodes(self) -> bool:
        """Whether a callback returned a node, or an argument contains one."""
        if self.has_node_argument or (self.extra and has_active_node(self.extra)):
            return True
        functions = [*[self.arguments[name] for name in self._callbacks], *self.other_callbacks]
        return any(f.depends_on_nodes for f in functions)

    def solution(
        self, x: Operand, residual: Callable[..., Any], extract_x: Callable[[Any], Any], verify: Callable[..., Any] | None = None
    ) -> Any:
        """Return the result as a node; see `implicit_solution.solution`.

        Parameters
        ----------
        x : array_like
            The result.
        residual : callable
            A function of x and the extra arguments.
        extract_x : callable
            Returns x from SciPy's result.
        verify : callable, optional
            Checks the exact solution; may raise.
        """
        leaves, structure = flatten(self.extra)

        def solve_again(values: Sequence[Any]) -> Any:
            if self.extra:
                self._options["args"] = unflatten(structure, values)
            return extract_x(self())

        def list_residual(elements: Sequence[Any]) -> Any:
            return residual(elements[0], *unflatten(structure, elements[1:]))

        x = np.asarray(x)
        return solution(f"scipy_optimize_{self.name}", list_residual, x if x.ndim else x[()], leaves, solve_again, verify)


def solution_in(result: object) -> Any:
    """The solution in the result of a solver, which may be a tuple that begins with it."""
    return result[0] if isinstance(result, tuple) else result


def first_output(function: Callable[..., Any]) -> Any:
    """Drop the derivative from a function that returns a value and its derivative."""
    return lambda *args: function(*args)[0]


def _is_floating(value: ArrayLike | str) -> bool:
    """Whether a field of a result is a floating-point number, or an array or list of them."""
    kinds = [
        getattr(leaf, "dtype", np.dtype(type(leaf) if type(leaf) is float else int)).kind for leaf in flatten_sequences(value)
    ]
    return any(kind in "fc" for kind in kinds)


def _piecewise_constant(*operands: object, value: NDArray[Any]) -> Any:
    return np.array(value)[()]


ops.register_piecewise(_piecewise_constant, "scipy_optimize_unmoved")


def piecewise_constant(value: object, *operands: object) -> Any:
    """Return a node with a value that is piecewise constant in the operands; `value` itself if it is a node."""
    return value if isinstance(value, Value) else bind(_piecewise_constant, as_operands(operands), {"value": value})


# Fields that describe the search, not the solution.
_SEARCH_STATISTICS = frozenset(
    ["optimality", "constr_violation", "maxcv", "tr_radius", "constr_penalty", "barrier_parameter", "barrier_tolerance"]
)
_SEARCH_STATISTICS |= {"execution_time", "mip_gap"}


class _PartialResult(dict[str, Any]):
    """A dictionary that raises for fields which depend on nodes, but have no derivative."""

    fields_without_derivative: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        if name in self.fields_without_derivative:
            raise TypeError(
                f"the field {name!r} of the result depends on nodes, but has no derivative. Use x and fun, or solve with plain "
                "numbers (node.value)"
            )
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> Any:
        """Return the value of a key, or the default."""
        return self[name] if name in self.keys() else default


class NodeResult(_PartialResult, OptimizeResult):  # type: ignore[misc]
    """A result of SciPy with nodes among its fields."""


def with_node_fields(result: Any, fields: dict[str, Any]) -> Any:
    """Return a result with nodes as fields; other numeric fields raise when read, because they depend on the solution.

    Parameters
    ----------
    result : dict
        SciPy's result, or a dictionary in it.
    fields : dict
        The nodes, by name.
    """
    new_result = NodeResult(result) if isinstance(result, OptimizeResult) else _PartialResult(result)
    new_result.update(fields)
    object.__setattr__(new_result, "fields_without_derivative", _numeric_fields(result) - fields.keys())
    return new_result


def _numeric_fields(result: dict[str, Any]) -> frozenset[str]:
    def has_numbers(value: Any) -> bool:
        return any(map(has_numbers, value.values())) if isinstance(value, dict) else _is_floating(value) or _is_operator(value)

    return frozenset(name for name, value in dict.items(result) if name not in _SEARCH_STATISTICS and has_numbers(value))


def _is_operator(value: int | str) -> bool:
    """Whether a value represents a matrix, such as the inverse Hessian of L-BFGS."""
    return hasattr(value, "matvec") or hasattr(value, "toarray") or hasattr(value, "todense")
