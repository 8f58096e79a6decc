"""Forward mode: tangents carried along as the values are computed, with no graph stored.

A `TangentNode` is a node that comes through the same door as all others: `compgraph.nodes.record` hands every
operation on one to `TangentNode.carry`. Its primal may be a plain array, a node of a graph, or a TangentNode of an
outer derivative. Levels tell nested derivatives apart: the operands of the highest level are unpacked first, all
others are constants to it, so an inner derivative never takes an outer perturbation for its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.nodes import NO_OPTIONS, ConstantNode, Node, _new_view, inert, record

from .broadcasting import conform
from .registry import Rule, by_function, naming_errors

_next_level = itertools.count(1).__next__


class TangentNode(Node):
    """A value with the derivative of it along a direction.

    Attributes
    ----------
    primal : array or Node
        The value, one level further down.
    tangent : array or Node
        Its derivative, of the same shape.
    level : int
        Which derivative this is; inner derivatives have higher levels.
    """

    __slots__ = ("is_scalar", "level", "primal", "tangent")
    kind = "tangent"

    primal: Any
    tangent: Any

    @classmethod
    def create_using(cls, primal: Any, tangent: Any, level: int) -> TangentNode:
        """Make a node of `primal` that carries `tangent`, at a level."""
        plain = primal.plain if isinstance(primal, Node) else primal
        node: Any = _new_view(np.asarray(plain), cls)
        node.plain = plain
        node.primal, node.tangent, node.level = primal, tangent, level
        node.is_scalar = primal.is_scalar if isinstance(primal, Node) else isinstance(primal, np.generic)
        node.function = node.memory = node._name = node._operands = None
        node.args, node.options, node.edges = (), NO_OPTIONS, ()
        node.tick = 0
        return node  # type: ignore[no-any-return]

    @classmethod
    def carry(cls, level: int, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` and its tangent at `level`."""
        carried = [a.__class__ is cls and a.level == level for a in args]
        primals = tuple([a.primal if c else a for a, c in zip(args, carried, strict=True)])
        tangents = [a.tangent if c else None for a, c in zip(args, carried, strict=True)]
        out = record(function, primals, options)
        if function in operations.PIECEWISE:
            return cls._constant(out)
        rule = by_function[function]
        with naming_errors([function]):
            tangent = push(rule, tangents, out, function, primals, options)
        if isinstance(out, (tuple, list)):
            parts = [cls._carrying(o, t, level) for o, t in zip(out, tangent or [None] * len(out), strict=True)]
            return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
        return cls._carrying(out, tangent, level)

    @classmethod
    def _carrying(cls, out: Any, tangent: Any, level: int) -> Any:
        if tangent is None or out.dtype.kind not in "fc":
            return cls._constant(out)
        return cls.create_using(out, conform(tangent, out), level)

    @classmethod
    def _constant(cls, out: Any) -> Any:
        """A result without tangent; a node like any other, so that it is seen not to have lost its graph."""
        if isinstance(out, (tuple, list)):
            return type(out)(cls._constant(o) for o in out)
        return out if isinstance(out, Node) else inert(out)


def push(rule: Rule, tangents: Sequence[Any], out: Any, function: Any, primals: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The tangent of an operation's output, from those of its operands (None where zero), by the rule's kind."""
    if rule.kind == "linear":
        count = len(primals) - len(function.counts) if isinstance(function, operations.Keyworded) else len(primals)
        moved = [_or_zeros(t, x) for t, x in zip(tangents[:count], primals[:count], strict=True)]
        return record(function, (*moved, *primals[count:]), options)
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if rule.kind == "multilinear":
            part = record(function, (*primals[:position], tangent, *primals[position + 1 :]), options)
        else:
            if not len(rule.tangents):
                raise TypeError(f"{rule.opname} has no tangent rule; declare one with autodiff.rule(..., tangents=...)")
            formula = rule.tangents[position]
            if formula is None:
                continue
            part = formula(tangent, out, *primals, **options)
        total = part if total is None else _add(total, part)
    return total


def _or_zeros(tangent: Any, primal: Any) -> Any:
    return np.zeros(np.shape(primal), np.result_type(primal, np.float16)) if tangent is None else tangent


def _add(a: Any, b: Any) -> Any:
    """The sum of two tangents; of an operation with several outputs, part by part."""
    if isinstance(a, tuple):
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))
    return a + b


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of a function and its derivative along a direction (Jacobian-vector product), in one forward pass.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array.
    primals : sequence of array_like
        The arguments; Python numbers become floats, integer arrays are refused.
    tangents : sequence of array_like
        The direction: for each argument, an array of its shape.

    Returns
    -------
    value, tangent : array
        Of the shape of ``f(*primals)``.

    Raises
    ------
    TypeError
        If an argument is an integer array, or `f` returns something that is no array.
    ValueError
        If the tangents do not match the arguments in number or shape.

    Examples
    --------
    >>> import numpy as np
    >>> value, tangent = jvp(lambda x: np.sin(x) * x, (2.0,), (1.0,))
    >>> print(round(float(tangent), 6))
    0.077004
    """
    if len(primals) != len(tangents):
        raise ValueError(f"jvp: {len(primals)} primals need as many tangents, {len(tangents)} were given")
    level = _next_level()
    inputs = []
    for position, (primal, tangent) in enumerate(zip(map(as_argument, primals), map(as_argument, tangents), strict=True)):
        if np.shape(tangent) != np.shape(primal):
            raise ValueError(f"jvp: tangent {position} has shape {np.shape(tangent)}, its primal {np.shape(primal)}")
        inputs.append(TangentNode.create_using(primal, conform(tangent, primal), level))
    out = f(*inputs)
    if isinstance(out, TangentNode) and out.level == level:
        return out.primal, _connected(out.tangent, out.primal)
    if not isinstance(out, Node):
        raise TypeError(lost_graph("jvp", out))
    return out, _connected(np.zeros(out.shape, out.dtype)[()], out)


def _connected(tangent: Any, primal: Any) -> Any:
    """A tangent that is constant, as a node of the primal's graph if there is one."""
    if isinstance(tangent, Node) or not isinstance(primal, Node):
        return tangent
    tangent = np.ones_like(primal) * tangent
    return tangent if isinstance(tangent, Node) else ConstantNode.hold(tangent)


def as_argument(value: Any) -> Any:
    """An argument of a differentiated function: a floating or complex array or node."""
    array = value if isinstance(value, Node) else np.asarray(value)
    if array.dtype.kind in "fc":
        return array
    if array.dtype.kind in "biu" and isinstance(value, (bool, int, float)):
        return array.astype(float)
    raise TypeError(
        f"an argument of dtype {array.dtype} has no derivatives; convert it (x.astype(float)), or leave it out of argnums"
    )


def lost_graph(operator: str, out: Any) -> str:
    """What to say of a function whose result is no node."""
    if out is None:
        return f"{operator}: the function returned None; it lacks a return statement"
    return (
        f"{operator}: the function returned a plain {type(out).__name__}, which does not remember how it depends on the "
        "arguments: the graph was lost on the way (float(x), math.sin(x), np.array([x[0], ...]), np.asarray(x)). "
        "A result that is really constant is returned as cg.constant(value)"
    )
