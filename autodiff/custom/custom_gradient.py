"""`custom_gradient`: a function with a user-defined derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from compgraph.bind import bind
from compgraph.context import NoGraph, recording_on
from compgraph.graph import as_operands, to_values
from compgraph.values import INERT, Value, constant_operand

from ..arguments import flatten, unflatten
from ..batching import LiftedFunction, any_batched, base_of, outside_vmap
from ..reverse import connected_zeros
from ..rules import as_view
from .call import CallFunction, has_node, instantiate_zeros, transpose_pull

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def custom_gradient(f: Callable[P, tuple[R, Callable[..., Any]]]) -> Callable[P, R]:
    """Give a function a user-defined derivative.

    Parameters
    ----------
    f : callable
        A function of nested arrays that returns ``(value, pull)``. The value is nested arrays. ``pull(cotangent)`` maps the
        cotangent of the value, which nests as the value, to the cotangent of the argument, which nests as the argument; for
        several arguments, to a sequence of cotangents. None means a zero cotangent of an array or of an argument. Keyword
        arguments have no derivative.

    Returns
    -------
    callable
        The function that returns only the value. A call on nodes is one node of the graph.

    Raises
    ------
    TypeError
        When called: if `f` does not return such a pair, or captures a node. When differentiated in forward mode or to higher
        orders: if operations of `pull` are not recorded.
    ValueError
        When differentiated: if the number, shapes or structure of the cotangents that `pull` returns differ from those of the
        arguments; in forward mode, if it is not linear.

    Notes
    -----
    In reverse mode `pull` is called on plain arrays. For higher orders `f` is called again on nodes, and the operations of
    `pull` are recorded. Forward mode transposes `pull` (R. Frostig et al., "Decomposing reverse-mode automatic
    differentiation", arXiv:2105.09469). If `pull` is not linear, because it clips or replaces the cotangent, there is no
    forward mode.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad, jvp
    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     return np.log(1 + e), lambda g: g * (1 - 1 / (1 + e))
    >>> print(grad(log1pexp)(0.0), grad(grad(log1pexp))(0.0), jvp(log1pexp, (0.0,), (1.0,))[1])
    0.5 0.25 0.5
    """

    @functools.wraps(f)
    def call(*args: object, **options: object) -> Any:
        leaves, structure = flatten(list(args))
        if any_batched(leaves):
            return _apply_batched(CustomGradientCall(f, options, structure), leaves)
        custom_call = CustomGradientCall(f, options, structure)
        output = bind(_custom, as_operands(tuple(leaves)), {"call": custom_call})
        return unflatten(custom_call.results, output if isinstance(output, (tuple, list)) else [output])

    return call


def _apply_batched(custom_call: CustomGradientCall, leaves: list[Any]) -> Any:
    """Call the function within vmap, as a function of whole batches with a batched pull."""

    def apply_to_batch(*bases: object) -> Any:
        pulls: list[Any] = []

        def parts(*operands: object) -> Any:
            outputs, pull = custom_call.value_and_pull(operands)
            pulls.append(pull)
            return outputs

        return lifted_function.run(parts, bases, lifts_all=True), lambda cotangents: lifted_function.pull(pulls[0], cotangents)

    apply_to_batch.__name__ = custom_call.name
    lifted_function = LiftedFunction(apply_to_batch, leaves)
    with outside_vmap():
        outputs = custom_gradient(apply_to_batch)(*lifted_function.arrays)
    return unflatten(custom_call.results, lifted_function.wrap_results(outputs))


class CustomGradientCall:
    """One call of a function with a user-defined derivative."""

    def __init__(self, f: Function, options: dict[str, Any], structure: Any) -> None:
        self.f = f
        self.options = options
        self.structure = structure  # of the arguments
        self.results: Any = None  # the structure of the value
        self.name = getattr(f, "__name__", "the function")
        self.operands: tuple[Any, ...] = ()
        self.saved_pull: Any = None

    def compute(self, *operands: object) -> Any:
        """Return the value, and save the pull."""
        with recording_on():
            parts, pull = self.value_and_pull(operands)
        if any(isinstance(p, Value) and type(p) not in INERT for p in map(base_of, parts)):
            raise TypeError(
                f"custom_gradient: {self.name} captures a node, for which its pull returns no cotangent. Pass it as an argument"
            )
        self.operands, self.saved_pull = operands, pull
        values = tuple(np.asarray(to_values(p))[()] for p in parts)
        return values[0] if self.results.is_leaf() else values

    def value_and_pull(self, operands: tuple[Any, ...]) -> tuple[list[Any], Function]:
        """Return the leaves of the value, and a function that maps their cotangents to those of the arguments' leaves."""
        result = self.f(*unflatten(self.structure, operands), **self.options)
        if not (isinstance(result, tuple) and len(result) == 2 and callable(result[1])):
            raise TypeError(
                f"custom_gradient: {self.name} must return a pair (value, pull). pull must be a function of the cotangent"
            )
        leaves, results = flatten(result[0])
        if not leaves:
            raise TypeError(f"custom_gradient: the value of {self.name} is {result[0]!r}, which contains no array")
        self.results = results

        def pull(cotangent: object) -> list[Any]:
            cotangents = cotangent if isinstance(cotangent, tuple) else (cotangent,)
            node_cotangent = next((a for a in cotangents if isinstance(base_of(a), Value)), None)
            if node_cotangent is not None:
                cotangents = tuple(a if isinstance(a, Value) else constant_operand(a) for a in cotangents)
            return self._check_cotangents(result[1](unflatten(results, cotangents)), operands, node_cotangent)

        return leaves, pull

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the operands."""
        if isinstance(out, tuple):
            cotangent = instantiate_zeros(cotangent, out)
        if has_node(cotangent, *operands):
            return self.value_and_pull(operands)[1](cotangent)  # type: ignore[no-any-return]
        if len(operands) != len(self.operands) or any(a is not b for a, b in zip(operands, self.operands, strict=True)):
            self.compute(*operands)  # an operand was written into since the call; these are its earlier values
        with NoGraph():
            return [as_view(to_values(a)) for a in self.saved_pull(cotangent)]

    def _check_cotangents(self, pull_result: Any, operands: tuple[Any, ...], node_cotangent: Any) -> list[Any]:
        """Return the cotangents of the arguments' leaves, with checked shapes; nodes if a cotangent of the value is a node."""
        arguments = self.structure.children()
        several = len(arguments) > 1 or (isinstance(pull_result, (tuple, list)) and arguments[0].is_leaf())
        trees = pull_result if several and isinstance(pull_result, (tuple, list)) else [pull_result]
        if len(trees) != len(arguments):
            raise ValueError(
                f"custom_gradient: the pull of {self.name} returned {len(trees)} cotangents for {len(arguments)} arguments"
            )
        cotangents = [
            leaf for tree, argument in zip(trees, arguments, strict=True) for leaf in self._flatten_cotangent(tree, argument)
        ]
        for position, (cotangent, operand) in enumerate(zip(cotangents, operands, strict=True)):
            shape = np.shape(operand)
            if cotangent is None:
                zeros = np.zeros(shape, np.result_type(operand, np.float16))[()]
                cotangents[position] = zeros if node_cotangent is None else connected_zeros(zeros, node_cotangent)
            elif np.shape(cotangent) != shape:
                raise ValueError(
                    f"custom_gradient: the pull of {self.name} returned shape {np.shape(cotangent)} for argument {position}, "
                    f"which has shape {shape}"
                )
            elif node_cotangent is not None and not isinstance(cotangent, Value):
                raise TypeError(
                    f"custom_gradient: the pull of {self.name} returned a plain {type(cotangent).__name__} for argument "
                    f"{position}, so its dependence on the cotangent was not recorded. Use NumPy's functions in pull, and return "
                    "None for zero"
                )
            elif not isinstance(cotangent, np.ndarray):
                cotangents[position] = np.asarray(cotangent)[()]
        return cotangents

    def _flatten_cotangent(self, tree: Any, argument: Any) -> list[Any]:
        """Return the cotangents of the leaves of one argument; None for zero."""
        if tree is None:
            return [None] * argument.num_leaves
        try:
            return argument.flatten_up_to(tree)  # type: ignore[no-any-return]
        except ValueError as error:
            raise ValueError(
                f"custom_gradient: the pull of {self.name} returned a cotangent with a different structure than its argument: "
                f"{error}"
            ) from error

    def push(self, position: int, tangent: NDArray[Any], out: NDArray[Any] | tuple[Any, ...], *operands: object) -> Any:
        """Return the tangent of the value, given that of one operand."""
        pull_all = self.value_and_pull(operands)[1]

        def pull(cotangent: object) -> Any:
            return pull_all(cotangent)[position]

        self._require_linear(pull, out)
        try:
            return transpose_pull(pull, out, tangent)
        except TypeError as error:
            raise TypeError(
                f"custom_gradient: forward mode transposes the pull of {self.name}, but not all of its operations on the "
                f"cotangent are recorded and differentiable. Use reverse mode ({error})"
            ) from error

    def _require_linear(self, pull: Callable[..., Any], out: NDArray[Any] | tuple[Any, ...]) -> None:
        rng = np.random.default_rng(0)
        several = isinstance(out, tuple)
        parts = [rng.normal(size=np.shape(o)).astype(o.dtype)[()] for o in (out if several else (out,))]
        once, scaled = (pull(tuple(s * p for p in parts) if several else s * parts[0]) for s in (1, -1e6))
        once, scaled = np.asarray(to_values(once)), np.asarray(to_values(scaled))
        tolerance = np.sqrt(np.finfo(np.result_type(once, np.float32)).eps)
        if not np.allclose(scaled / -1e6, once, rtol=tolerance, atol=tolerance * np.max(np.abs(once), initial=0), equal_nan=True):
            raise ValueError(
                f"custom_gradient: the pull of {self.name} is not linear in the cotangent, so it has no forward mode. "
                "Use reverse mode"
            )


_custom = CallFunction("custom_gradient")
