"""A call of one of SciPy's functions that is given functions of the user: it is made on plain numbers, and nodes are seen."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from compgraph import ops
from compgraph.bind import bind, stack_object_array
from compgraph.context import NoGraph
from compgraph.graph import as_operands, flatten_sequences, to_values
from compgraph.interception import unpatched
from compgraph.values import INERT, Value

from ...arguments import flatten, unflatten
from .implicit_solution import solution

# What only says where and how a solver begins: the solution does not depend on it.
STARTS = frozenset({"x0", "xin", "p0", "a", "b", "x1", "brack", "bracket", "initial_simplex", "tol", "xtol", "rtol", "maxiter"})
_PLAIN = frozenset({float, int, bool, str, np.float64, type(None)})


def has_node(value: Any) -> bool:
    """Whether a value, or a list, dictionary or constraint of SciPy's in it, contains an active node."""
    for leaf in flatten(value)[0]:
        parts = [getattr(leaf, name) for name in ("A", "lb", "ub") if hasattr(leaf, "lb") and hasattr(leaf, name)]
        if any(isinstance(part, Value) and type(part) not in INERT for part in (leaf, *parts)):
            return True
    return False


# SciPy functions that unpack a list passed as ``args=``; for others it is one further argument.
_UNPACKING = ("newton", "fixed_point")


class Callback:
    """A function of the user as SciPy calls it: it gives plain numbers.

    Attributes
    ----------
    met : bool
        Whether a result was, or held, a node that a derivative can pass. From then on no graph is recorded.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.depends_on_nodes = function, False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function's result as plain numbers."""
        if self.depends_on_nodes:
            with NoGraph():
                return self._plain(self.function(*args, **kwargs))
        result = self.function(*args, **kwargs)
        return result if type(result) in _PLAIN else self._plain(result)

    def _plain(self, result: Any) -> Any:
        if type(result) is np.ndarray:
            result = stack_object_array(result)
        if isinstance(result, Value):
            self.depends_on_nodes = self.depends_on_nodes or type(result) not in INERT
            return to_values(result)
        if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
            return type(result)([self._plain(part) for part in result])
        return result


@functools.cache
def _parameters(function: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the parameters of a function, and of those it needs."""
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
        The parameters that are functions of the user, separated by spaces; the first is the one that is solved.
    kept : str
        Parameters that may contain nodes, which the caller handles.

    Attributes
    ----------
    given : dict
        The arguments of SciPy's function, by name.
    raw : dict
        The same as passed by the user.
    extra : tuple
        ``args=``.
    """

    def __init__(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], callbacks: str, node_parameters: str = ""
    ) -> None:
        self.name = function.__name__
        self.scipy_function = unpatched(function)
        names, needed = _parameters(function)
        self.arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        if len(self.arguments) < len(args) + len(kwargs) or any(name not in self.arguments for name in needed):
            self.scipy_function(*args, **kwargs)  # raises: an argument too many, one twice, or none
        self.user_arguments = dict(self.arguments)
        self.extra: tuple[Any, ...] = ()
        if "args" in names:
            self.take_extra_arguments(self.arguments)
        self._callbacks = [name for name in callbacks.split() if callable(self.arguments.get(name))]
        for name in self._callbacks:
            self.arguments[name] = Callback(self.arguments[name])
        self.other_callbacks: list[Callback] = []
        self.has_node_argument = any(has_node(self.arguments[name]) for name in node_parameters.split() if name in self.arguments)
        for name, value in self.arguments.items():
            if type(value) not in _PLAIN and name not in ("args", *self._callbacks, *node_parameters.split()):
                self.arguments[name] = self._plain(name, value)

    def take_extra_arguments(self, options: dict[str, Any]) -> None:
        """Take the further arguments from where they stand, and leave their plain numbers there."""
        self._options = options
        if "args" in options:
            extra = options["args"]
            unpacks = self.name in _UNPACKING and isinstance(extra, list)
            self.extra = tuple(extra) if isinstance(extra, tuple) or unpacks else (extra,)
            options["args"] = to_values(extra)

    def _plain(self, name: str, value: Any) -> Any:
        if name not in STARTS and has_node(value):
            raise TypeError(f"{self.name}: {name}= cannot be a node; give node.value, or let the function use it")
        return to_values(value)

    def __call__(self) -> Any:
        """What SciPy gives."""
        return self.scipy_function(**self.arguments)

    @property
    def function(self) -> Any:
        """The user's function that is solved; None if it is missing."""
        return self.user_arguments[self._callbacks[0]] if self._callbacks else None

    @property
    def depends_on_nodes(self) -> bool:
        """Whether a node was met in a function, or is among its further arguments."""
        if self.has_node_argument or (self.extra and has_node(self.extra)):
            return True
        functions = [*[self.arguments[name] for name in self._callbacks], *self.other_callbacks]
        return any(f.depends_on_nodes for f in functions)

    def solution(self, x: Any, residual: Callable[..., Any], extract_x: Callable[[Any], Any], verify: Any = None) -> Any:
        """Return the result as a node; see `implicit_solution.solution`.

        Parameters
        ----------
        x : array_like
            The result.
        residual : callable
            A function of x and the further arguments.
        x_of : callable
            Returns x from SciPy's result.
        verify : callable, optional
            A function of the solution itself; it may raise.
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


def is_number(value: Any) -> bool:
    """Whether a field of a result is a floating number, or an array or list of them."""
    kinds = [
        getattr(leaf, "dtype", np.dtype(type(leaf) if type(leaf) is float else int)).kind for leaf in flatten_sequences(value)
    ]
    return any(kind in "fc" for kind in kinds)


def _piecewise_constant(*operands: Any, value: Any) -> Any:
    return np.array(value)[()]


ops.enter_piecewise(_piecewise_constant, "scipy_optimize_unmoved")


def piecewise_constant(value: Any, *operands: Any) -> Any:
    """A value that does not change where its operands change a little, as a node of theirs."""
    return value if isinstance(value, Value) else bind(_piecewise_constant, as_operands(operands), {"value": value})


def with_value(value: Any, node: Any) -> Any:
    """A node with another value, from which its own differs by rounding or by SciPy's differences."""
    plain = to_values(node)
    return node if np.array_equal(plain, value) else node + (np.asarray(value) - plain)[()]


# Numbers that say how the search went, and nothing of the solution.
_SEARCH_STATISTICS = frozenset(
    ["optimality", "constr_violation", "maxcv", "tr_radius", "constr_penalty", "barrier_parameter", "barrier_tolerance"]
)
_SEARCH_STATISTICS |= {"execution_time", "mip_gap"}


class _PartialResult(dict[str, Any]):
    """A dictionary that refuses numbers which depend on nodes, and whose derivative is not at hand."""

    fields_without_derivative: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        if name in self.fields_without_derivative:
            raise TypeError(
                f"the field {name!r} of the result depends on nodes and carries no derivative, as x and fun do. "
                "Where the plain numbers are meant, solve with plain numbers (node.value)"
            )
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key, or another."""
        return self[name] if name in self.keys() else default


class NodeResult(_PartialResult, OptimizeResult):  # type: ignore[misc]
    """A result of SciPy's, some of whose fields are nodes."""


def with_node_fields(result: Any, fields: dict[str, Any]) -> Any:
    """Return a result with other fields; numbers that depend on the solution, and are not nodes, raise when read.

    Parameters
    ----------
    result : dict
        SciPy's result, or a dictionary beside one.
    fields : dict
        The nodes.
    """
    new_result = NodeResult(result) if isinstance(result, OptimizeResult) else _PartialResult(result)
    new_result.update(fields)
    object.__setattr__(new_result, "fields_without_derivative", _numeric_fields(result) - fields.keys())
    return new_result


def _numeric_fields(result: dict[str, Any]) -> frozenset[str]:
    def has_numbers(value: Any) -> bool:
        return any(map(has_numbers, value.values())) if isinstance(value, dict) else is_number(value) or _is_operator(value)

    return frozenset(name for name, value in _items(result) if name not in _SEARCH_STATISTICS and has_numbers(value))


def _items(result: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return dict.items(result)


def _is_operator(value: Any) -> bool:
    """Whether a value represents a matrix, as the inverse Hessian of L-BFGS does."""
    return hasattr(value, "matvec") or hasattr(value, "toarray") or hasattr(value, "todense")
