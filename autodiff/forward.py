"""Forward mode: tangents carried along as the values are computed, with no graph stored.

A `TangentNode` is a node that comes through the same door as all others: `compgraph.nodes.record` hands every
operation on one to `TangentNode.carry`. Its primal may be a plain array, a node of a graph, or a TangentNode of an
outer derivative. Levels tell nested derivatives apart: the operands of the highest level are unpacked first, all
others are constants to it, so an inner derivative never takes an outer perturbation for its own.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import operations
from compgraph.escapes import noticing, told
from compgraph.memory import overlaps_itself, owner_of, window
from compgraph.modes import buffers_wrapped, default_float, is_recording, of_numbers
from compgraph.nodes import (
    INERT,
    NO_OPTIONS,
    ConstantNode,
    Node,
    OperationalNode,
    _new_view,
    describe,
    inert,
    leaf,
    record,
    require_history,
    watched,
)
from compgraph.writing import put, require_writeable, store

from .broadcasting import conform
from .registry import Rule, Work, by_function
from .shadow import Shadow
from .trees import flatten, unflatten, with_aux

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
    root : TangentNode or None
        Of a view, the node that first had its buffer.
    """

    __slots__ = ("_primal", "_shadow", "_tangent", "is_scalar", "level", "root")
    kind = "tangent"

    root: TangentNode | None
    _primal: Any
    _tangent: Any
    _shadow: Shadow | None

    @classmethod
    def create_using(cls, primal: Any, tangent: Any, level: int, root: TangentNode | None = None) -> TangentNode:
        """Make a node of `primal` that carries `tangent` (None where it is zero), at a level."""
        plain = primal.plain if isinstance(primal, Node) else primal
        node: Any = _new_view(np.asarray(plain), cls)
        node.plain = plain
        node._primal, node._tangent, node.level, node.root, node._shadow = primal, tangent, level, root, None
        node.is_scalar = primal.is_scalar if isinstance(primal, Node) else isinstance(primal, np.generic)
        node.function = node.memory = node._name = node._operands = None
        node.args, node.options, node.edges = (), NO_OPTIONS, ()
        node.tick = 0
        return node  # type: ignore[no-any-return]

    @property
    def primal(self) -> Any:
        """The value, one level further down."""
        if self.root is not None and _rank(self._primal) < _rank(self.root.primal):
            buffer = self.root.primal  # it became a node, or one with a tangent, when such a one was written into it
            offset = _address(self.plain) - _address(buffer.plain)
            place = {"shape": self.shape, "dtype": self.dtype, "offset": offset, "strides": self.plain.strides}
            self._primal = record(window, (buffer,), place)
            if not self.plain.flags.writeable:
                np.ndarray.setflags(self._primal, write=False)
                self._primal.plain.flags.writeable = False
        return self._primal

    @property
    def tangent(self) -> Any:
        """The derivative of the value."""
        tangent = self.derivative()
        return np.zeros(self.shape, self.dtype)[()] if tangent is None else tangent

    def derivative(self) -> Any:
        """The tangent; None where it is zero."""
        root = self if self.root is None else self.root
        if root._shadow is None:
            if root is self or root._tangent is None:
                return root._tangent
            root._shadow = Shadow.holding(root.plain, root._tangent)
        return root._shadow.window(self.plain)

    @classmethod
    def carry(cls, level: int, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` and its tangent at `level`."""
        carried = [a.__class__ is cls and a.level == level for a in args]
        pairs = list(zip(args, carried, strict=True))
        _join_graph([a for a, c in pairs if c], [a for a, c in pairs if not c])
        primals = tuple([a.primal if c else _plain_constant(a) for a, c in pairs])
        out = record(function, primals, options)
        if function not in operations.PIECEWISE and not isinstance(out, (tuple, list)):
            root = _viewed(out, [a for a, c in pairs if c])
            if root is not None:
                return cls.create_using(out, None, level, root)
        tangents = [a.derivative() if c else None for a, c in pairs]
        tangent = None
        if function not in operations.PIECEWISE and any(t is not None for t in tangents):
            rule = by_function[function]
            with Work(function):
                tangent = _apart(push(rule, tangents, out, function, primals, options), [a for a, c in pairs if c])
        watch = watched()
        if watch is not None:
            watch.carried(function, args, out, tangent)
        if isinstance(out, (tuple, list)):
            parts = [cls._carrying(o, t, level) for o, t in zip(out, tangent or [None] * len(out), strict=True)]
            return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
        return cls._carrying(out, tangent, level)

    @classmethod
    def _carrying(cls, out: Any, tangent: Any, level: int) -> Any:
        if out is None or out.dtype.kind not in "fc":  # a node like any other, seen not to have lost its graph
            return out if out is None or isinstance(out, Node) else inert(out)
        return cls.create_using(out, None if tangent is None else conform(tangent, out), level)

    @classmethod
    def store(cls, level: int, target: Any, index: Any, value: Any, casting: Any) -> None:
        """``target[index] = value``, where one of them has a tangent at `level`."""
        if target.__class__ is not cls or target.level != level:
            raise TypeError(
                f"a value with a tangent cannot be written into the {describe(target)}, which was made without one; make "
                "the array inside the function that is differentiated (cg.zeros(shape), np.zeros_like(x)), or copy it there"
            )
        require_writeable(target)  # here, since parts of buffers that are cut anew are writeable
        carried = value.__class__ is cls and value.level == level
        primal, tangent = (value.primal, value.derivative()) if carried else (value, None)
        root = target if target.root is None else target.root
        _join_graph([target], [primal, tangent])
        if isinstance(target.primal, Node):
            store(target.primal, index, primal, casting)
        else:
            put(target.primal, index, primal, casting)
        if tangent is None and root.derivative() is None:
            return
        if root._shadow is None:
            root._shadow = Shadow(root.plain) if root._tangent is None else Shadow.holding(root.plain, root._tangent)
            _join_graph([target], [primal, tangent])
        if tangent is not None and tangent.dtype.kind == "c" and target.dtype.kind != "c":
            tangent = np.real(tangent)
        root._shadow.window(target.plain)[index] = 0 if tangent is None else tangent


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _viewed(out: Any, carried: Sequence[TangentNode]) -> Any:
    """The root of the operand that a result is a view of, or None."""
    plain = out.plain if isinstance(out, Node) else out
    if plain.__class__ is np.ndarray:
        owner = owner_of(plain)
        for operand in carried:
            if operand.plain.__class__ is np.ndarray and owner_of(operand.plain) is owner:
                root = operand if operand.root is None else operand.root
                return None if overlaps_itself(root.plain) else root  # of a broadcast number: it is never written into
    return None


def _apart(tangent: Any, carried: Sequence[TangentNode]) -> Any:
    """A tangent that does not change when that of an operand is written: a rule may give that back as it is."""
    if isinstance(tangent, tuple):
        return tuple(_apart(part, carried) for part in tangent)
    for operand in carried:
        root = operand if operand.root is None else operand.root
        if root._shadow is not None and isinstance(tangent, np.ndarray):
            buffer = root._shadow.buffer
            if np.may_share_memory(np.asarray(getattr(tangent, "plain", tangent)), getattr(buffer, "plain", buffer)):
                return np.copy(tangent)
    return tangent


def _plain_constant(value: Any) -> Any:
    """A node that is constant and was computed from nothing, like the answers of comparisons here, as its numbers."""
    return value.plain if value.__class__ in INERT and not value.args else value


def _join_graph(carried: Sequence[TangentNode], others: Sequence[Any]) -> None:
    """If values meet nodes of a graph, let what is written into them from now on be recorded: the graph reads them."""
    parts = [part for a in carried for part in (a.primal, a.derivative())]
    nodes = [n for n in (*parts, *map(_plain_constant, others)) if isinstance(n, Node)]
    if not nodes or not is_recording():
        return
    like = max(nodes, key=lambda n: n.level)
    for node in carried:
        root = node if node.root is None else node.root
        if root.is_scalar:
            continue
        if _rank(root._primal) < like.level:
            root._primal = _buffer_like(root._primal, like)
        if root._shadow is not None and _rank(root._shadow.buffer) < like.level:
            root._shadow.hold(_buffer_like(root._shadow.buffer, like))


def _buffer_like(array: Any, value: Any) -> Any:
    """A node over `array` into which a node like `value` can be written."""
    if isinstance(value, TangentNode):
        return TangentNode.create_using(_buffer_like(array, value.primal), None, value.level)
    return leaf(array, OperationalNode, None) if isinstance(value, Node) and not isinstance(array, Node) else array


def _rank(value: Any) -> int:
    """What may be written into a value: plain numbers, nodes (0), or what has a tangent at a level up to this."""
    return value.level if isinstance(value, Node) else -1


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


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of a function and its derivative along a direction (Jacobian-vector product), in one forward pass.

    Parameters
    ----------
    f : callable
        A function of arrays that returns an array, or several, nested in any way.
    primals : sequence of array_like
        The arguments, which may nest; Python numbers become floats, integer arrays are refused.
    tangents : sequence of array_like
        The direction: for each argument, an array of its shape, nested as it is.
    has_aux : bool
        Whether `f` returns a pair ``(value, aux)``; the result is then ``(value, tangent, aux)``.

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
    (points, structure), (directions, given) = flatten(list(primals)), flatten(list(tangents))
    if given != structure:
        raise ValueError(f"jvp: the tangents nest as {given}, their primals as {structure}")
    level = _next_level()
    inputs = []
    for position, (primal, tangent) in enumerate(zip(points, directions, strict=True)):
        primal, tangent = as_argument(primal, f"jvp: primal {position}"), as_argument(tangent, f"jvp: tangent {position}")
        if np.shape(tangent) != np.shape(primal):
            raise ValueError(f"jvp: tangent {position} has shape {np.shape(tangent)}, its primal {np.shape(primal)}")
        own = record(operations.input_of, (primal,))  # the function may write into it
        inputs.append(TangentNode.create_using(own, conform(tangent, primal), level))
    with buffers_wrapped(lambda buffer: TangentNode.create_using(buffer, None, level)), noticing() as escapes:
        result = f(*unflatten(structure, inputs))
    result, aux = with_aux("jvp", result) if has_aux else (result, None)
    outs, results = flatten(result)
    if not outs:
        raise TypeError(lost_graph("jvp", result, escapes))
    parts = [_parted(out, level, escapes) for out in outs]
    if escapes and not any(isinstance(out, TangentNode) and out.level == level for out in outs):
        warn_of_zeros("jvp", "its arguments", escapes)
    both = unflatten(results, [value for value, _ in parts]), unflatten(results, [tangent for _, tangent in parts])
    return (*both, _without(level, aux)) if has_aux else both


def _without(level: int, tree: Any) -> Any:
    """Nested values without their tangents at a level."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [x.primal if isinstance(x, TangentNode) and x.level == level else x for x in leaves])


def _parted(out: Any, level: int, escapes: Any) -> tuple[Any, Any]:
    """The value and the tangent of a result."""
    if isinstance(out, TangentNode) and out.level == level:
        return out.primal, _connected(out.tangent, out.primal)
    if not isinstance(out, Node):
        raise TypeError(lost_graph("jvp", out, escapes))
    return out, _connected(np.zeros(out.shape, out.dtype)[()], out)


def _connected(tangent: Any, primal: Any) -> Any:
    """A tangent that is constant, as a node of the primal's graph if there is one."""
    if isinstance(tangent, Node) or not isinstance(primal, Node):
        return tangent
    tangent = np.ones_like(primal) * tangent
    return tangent if isinstance(tangent, Node) else ConstantNode.hold(tangent)


def as_argument(value: Any, name: str = "an argument") -> Any:
    """An argument of a differentiated function: a floating or complex array or node."""
    require_history(value)
    array = value if isinstance(value, Node) else of_numbers(np.asarray(value), value)
    if array.dtype.kind in "fc":
        return array
    if array.dtype.kind in "biu" and isinstance(value, (bool, int, float)):
        return array.astype(default_float())
    raise TypeError(f"{name} of dtype {array.dtype} has no derivatives; convert it (x.astype(float)), or leave it out of argnums")


def warn_of_zeros(operator: str, arguments: str, escapes: Any) -> None:
    """Say that a derivative is zero because values left the graph, as it seems."""
    warnings.warn(
        f"{operator}: the result does not depend on {arguments} by its graph, so the derivative is zero.{told(escapes)}",
        RuntimeWarning,
        stacklevel=4,
    )


def lost_graph(operator: str, out: Any, escapes: Any = ()) -> str:
    """What to say of a function whose result is no node."""
    if out is None:
        return f"{operator}: the function returned None; it lacks a return statement"
    return (
        f"{operator}: the function returned a plain {type(out).__name__}, which does not remember how it depends on the "
        "arguments: the graph was lost on the way (float(x), math.sin(x), np.array([x[0], ...]), np.asarray(x)). "
        f"A result that is really constant is returned as cg.constant(value){told(escapes, '. ')}"
    )
