"""A value with its Jacobian: a batch of tangents, one along each element of the inputs.

The tangents are one array, whose first axis has the directions; operations process it as one batch (see `autodiff.batching`). No
graph is stored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array, Operand
from compgraph.bind import bind
from compgraph.guards import format_leaks, recent_leaks
from compgraph.values import Value, describe, require_history

from ..arguments import as_argument
from ..batching import active_levels, push_batch
from ..rules import BatchedDerivativeBuffer, DerivativeBuffer, Rule, conform_batch
from .jvp import connect_to_graph, run_with_tangents
from .tangent_node import TangentNode, next_level


class Inputs(NamedTuple):
    """The inputs of one call of `variables`: their shapes, and their total number of elements."""

    shapes: tuple[tuple[int, ...], ...]
    size: int


class JacobianNode(TangentNode):
    """A value with its derivatives with respect to all inputs of one call of `variables`.

    Attributes
    ----------
    inputs : Inputs
        The shapes of the inputs. The tangent has the shape ``(inputs.size, *self.shape)``.

    Examples
    --------
    >>> x = variables(0.5, names=["x"])
    >>> x
    JacobianNode(0.5, name='x', dtype=float64)
    >>> print((x * x).jacobian)
    1.0
    """

    __slots__ = ()
    kind = "jacobian"
    trace_kind = "jacobian"
    buffer_advice = "make the array from a value with a Jacobian: np.zeros_like(x, shape=shape), np.copy(x)"

    inputs: Inputs

    @classmethod
    def of(cls, primal: Any, tangents: Any, level: int, inputs: Inputs, root: Any = None) -> JacobianNode:
        """Make a node of a primal and a batch of tangents (None for zero)."""
        node: Any = cls.create_using(primal, tangents, level, root)
        node.inputs = inputs
        return node  # type: ignore[no-any-return]

    @property
    def jacobian(self) -> Any:
        """The derivatives of the value with respect to the inputs.

        For one input, an array with the shape of the value followed by that of the input, in the precision of the value; for
        several inputs, a list in the order of `variables`. It is a copy.
        """
        require_history(self)
        jacobians, start = [], 0
        tangents = connect_to_graph(self.tangent, self.primal)
        for shape in self.inputs.shapes:
            stop = start + math.prod(shape)
            block = np.copy(np.moveaxis(tangents[start:stop], 0, -1), order="C")
            block = np.reshape(block, self.shape + shape)
            jacobians.append(block if isinstance(block, Value) else block[()])
            start = stop
        return jacobians if len(jacobians) > 1 else jacobians[0]

    @property
    def tangent(self) -> Any:
        """The derivatives in the direction of each input element, along a first axis."""
        tangents = self.derivative()
        return np.zeros((self.inputs.size, *self.shape), self.dtype) if tangents is None else tangents

    def like(self, primal: Operand, tangent: Array | None, root: TangentNode | None = None) -> JacobianNode:
        """Make another node of this level."""
        return JacobianNode.of(primal, tangent, self.level, self.inputs, root)

    def push(
        self, rule: Rule, tangents: list[Any], out: Array, function: object, operands: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Return the tangents of an operation's output, given those of its operands (None for zero)."""
        if self.inputs.size:
            return push_batch(rule, tangents, out, function, list(operands), options)
        return tuple(map(_empty_tangents, out)) if isinstance(out, (tuple, list)) else _empty_tangents(out)

    def conform_tangent(self, tangent: Any, out: Any) -> Any:
        """Convert tangents to the shape and dtype of an output."""
        return conform_batch(tangent, out, self.inputs.size)

    def new_tangent_buffer(self, plain: NDArray[Any]) -> DerivativeBuffer:
        """Allocate a buffer for tangents with the layout of an array."""
        return BatchedDerivativeBuffer(plain, self.inputs.size)

    def write(self, window: Any, index: Any, tangent: Any) -> None:
        """Store tangents (None for zero): ``window[:, index] = tangent`` for any index."""
        index = index if isinstance(index, tuple) else (index,)
        if not any(i is Ellipsis for i in index):
            index = (*index, ...)
        directions_last = np.moveaxis(window, 0, -1)  # as the last axis, that of the directions is not indexed
        directions_last[*index, slice(None)] = 0 if tangent is None else np.moveaxis(tangent, 0, -1)

    @classmethod
    def process(cls, level: int, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` and its tangents at `level`."""
        _require_same_inputs(level, args)
        return super().process(level, function, args, options)

    @classmethod
    def store(cls, level: int, target: object, index: Any, value: object, casting: object) -> None:
        """Write ``target[index] = value``, where one of them has tangents at `level`."""
        _require_same_inputs(level, (target, value))
        super().store(level, target, index, value, casting)


def _empty_tangents(out: Array) -> Any:
    """Return the tangents of an output for inputs without elements."""
    return None if out is None else np.zeros((0, *out.shape), out.dtype)


def _jacobian_node_in(value: Any) -> JacobianNode | None:
    """Return the first JacobianNode in a value, its primal and its tangent, recursively; None otherwise."""
    cls = type(value)  # isinstance reads __class__, which is reported differently
    if issubclass(cls, JacobianNode):
        return value  # type: ignore[no-any-return]
    if not issubclass(cls, TangentNode):
        return None
    node = _jacobian_node_in(value.primal)
    return _jacobian_node_in(value.derivative()) if node is None else node


def _require_same_inputs(level: int, values: Sequence[Any]) -> None:
    """Raise if values come from different calls of `variables`, because each has only a part of the Jacobian."""
    for value in values:
        other = _jacobian_node_in(value)
        if other is not None and other.level != level:
            raise TypeError(
                f"the {describe(other)} carries the Jacobian for the inputs of another call of autodiff.forward.variables; make "
                "all inputs in one call. For a derivative within a derivative, use autodiff.jvp for the inner one"
            )


def run_with_tangent_batch(
    f: Callable[..., Any], call: Callable[..., Any], points: Sequence[Any], batches: Sequence[Any], arguments: Any, unchanged: Any
) -> list[tuple[Any, Any]]:
    """Return the leaves of a function's result, each with a batch of tangents along a first axis; see `run_with_tangents`."""
    inputs = Inputs((), len(batches[0]))

    def make(primal: object, tangents: object, level: int) -> JacobianNode:
        return JacobianNode.of(primal, tangents, level, inputs)

    return run_with_tangents(f, call, points, batches, make, arguments, unchanged)[0]


def require_no_jacobian(operator: str, value: object) -> None:
    """Raise if a value with a Jacobian is an argument of reverse mode."""
    node = _jacobian_node_in(value)
    if node is not None:
        raise TypeError(
            f"{operator}: the {describe(node)} carries a Jacobian (autodiff.forward.variables), which this operator cannot "
            "propagate; use autodiff.jvp inside, or compute the outer derivative by autodiff.jacobian"
        )


def as_real_inputs(values: Sequence[Any], names: Sequence[str] | None) -> list[Any]:
    """Convert the values of `variables`, of either mode, to real floating arrays."""
    if not values:
        raise TypeError("variables: no value was passed. Pass one value for each input")
    if names is not None and (isinstance(names, str) or len(names) != len(values)):
        raise ValueError(f"variables: names={names!r} must be a sequence of {len(values)} names, one per input")
    arrays = []
    for position, value in enumerate(values):
        array = as_argument(
            value, f"variables: input {position}", "use it directly: all values that are not inputs are constants"
        )
        if array.dtype.kind == "c":
            raise TypeError(
                f"variables: input {position} is complex. Pass its real and imaginary parts as two inputs, or use "
                "autodiff.jacfwd, which takes analytic functions"
            )
        arrays.append(array)
    return arrays


def variables(*values: object, names: Sequence[str] | None = None) -> Any:
    """Make inputs for Jacobians in forward mode: every value computed from them has its Jacobian, as one array.

    No graph is stored, so memory does not grow with the length of a computation. Time and memory of each operation grow with the
    total number of input elements: for many elements use `autodiff.reverse.variables`.

    Parameters
    ----------
    *values : array_like
        One or more inputs: numbers, vectors, arrays of any shape. Python numbers become floats. Integer arrays and complex
        numbers raise.
    names : sequence of str, optional
        A name for each input.

    Returns
    -------
    JacobianNode or tuple of JacobianNode
        A node for one value, a tuple for several. Each has a copy of its value, and may be written in place. Results of NumPy
        functions of them are nodes with an attribute ``jacobian``: an array with the shape of the result followed by that of
        the input; for several inputs, a list in order.

    Raises
    ------
    TypeError
        If a value has no derivatives, is complex, or comes from another call of `variables`. Later, if an operation combines
        values from two calls, or such a value is written into an array without a Jacobian.
    ValueError
        If the numbers of names and values differ.

    See Also
    --------
    autodiff.reverse.variables, autodiff.reverse.jacobian : the same in reverse mode.
    autodiff.jacfwd : the Jacobian of a function, as a function.

    Examples
    --------
    >>> import numpy as np
    >>> x = variables(np.array([1.0, 2.0, 3.0]))
    >>> y = x[:2] * x[1:]
    >>> y.jacobian
    array([[2., 1., 0.],
           [0., 3., 2.]])
    >>> a, v = variables(3.0, np.array([1.0, 2.0]))
    >>> (a * v).jacobian
    [array([1., 2.]), array([[3., 0.],
           [0., 3.]])]
    """
    arrays = as_real_inputs(values, names)
    if active_levels():
        raise TypeError("autodiff.forward.variables is not supported within vmap. Use autodiff.jvp or autodiff.jacfwd there")
    level = next_level()
    _require_same_inputs(level, arrays)
    sizes = [math.prod(a.shape) for a in arrays]
    inputs = Inputs(tuple([a.shape for a in arrays]), sum(sizes))
    nodes = []
    for array, start in zip(arrays, itertools.accumulate(sizes, initial=0), strict=False):
        units = np.zeros((inputs.size, math.prod(array.shape)), array.dtype)
        np.fill_diagonal(units[start:], 1)
        primal = bind(ops.input_of, (array,))  # a copy, because it may be written in place
        nodes.append(JacobianNode.of(primal, units.reshape(inputs.size, *array.shape), level, inputs))
    for node, name in zip(nodes, names or (), strict=False):
        node.name = name
    return nodes[0] if len(nodes) == 1 else tuple(nodes)


def jacobian(value: object) -> Any:
    """Return the Jacobian of a value, its ``.jacobian``; raise a TypeError with the reason if it has none.

    Parameters
    ----------
    value : JacobianNode
        A value computed from the inputs of `variables`.

    Returns
    -------
    array or list of array
        See `variables`.

    Raises
    ------
    TypeError
        If the value carries no Jacobian, as do integers, comparisons, and plain numbers.

    Examples
    --------
    >>> x = variables(3.0)
    >>> print(jacobian(x * x))
    6.0
    """
    require_history(value)
    if isinstance(value, JacobianNode):
        return value.jacobian
    kind = describe(value) if isinstance(value, Value) else f"plain {type(value).__name__}"
    raise TypeError(
        f"jacobian: the {kind} carries no Jacobian: it does not depend on inputs from autodiff.forward.variables, its dtype has "
        "no derivatives, or the tangents were lost (float(x), math.sin(x), np.asarray(x), np.array([x[0], ...]))."
        f"{format_leaks(recent_leaks())}"
    )
