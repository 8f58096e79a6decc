"""A value with a tangent: operations and writes compute both.

A `TangentNode` is a node that comes through the same door as all others: `compgraph.graph.record` hands every
operation on one to `TangentNode.process`. Its primal may be a plain array, a node of a graph, or a TangentNode of an
outer derivative. Levels tell nested derivatives apart: the operands of the highest level are unpacked first, all
others are constants to it, so an inner derivative never takes an outer perturbation for its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.context import active_watcher, is_blocked_level, is_recording
from compgraph.guards import scalar_hash
from compgraph.inplace import require_writeable, store, store_plain
from compgraph.interpreters import detach_result, inert_leaf
from compgraph.profiling import TANGENT, patch_method
from compgraph.protocols import number_methods
from compgraph.storage import interrupted_write_error, layout_in, overlaps_itself, owner_of, window
from compgraph.values import (
    INERT,
    NO_OPTIONS,
    OPERATORS,
    OperationalNode,
    TransformTracer,
    Value,
    describe,
    is_python_arithmetic,
    is_python_number,
    mark_python_number,
    new_leaf,
    reported_class,
)

from ..batching import next_level as next_level  # levels distinguish nested derivatives and vmaps
from ..rules import DerivativeBuffer, Rule, RuleErrors, by_function, conform, push


class TangentNode(TransformTracer):
    """A value with the derivative of it along a direction.

    Attributes
    ----------
    primal : array or Node
        The value, one level further down.
    tangent : array or Node
        Its derivative, of the same shape. (A `JacobianNode` has many, along a first axis.)
    level : int
        Which derivative this is; inner derivatives have higher levels.
    root : TangentNode or None
        Of a view, the node that first had its buffer.
    """

    __slots__ = ()
    kind = "tangent"
    trace_kind = "tangents"
    room: ClassVar[str] = (
        "make the array inside the function that is differentiated (cg.zeros(shape), np.zeros_like(x)), or copy it there"
    )

    __class__ = reported_class
    __hash__ = scalar_hash  # type: ignore[assignment]

    root: TangentNode | None
    _primal: Any
    _tangent: Any
    _shadow: DerivativeBuffer | None

    @classmethod
    def create_using(cls, primal: Any, tangent: Any, level: int, root: TangentNode | None = None) -> TangentNode:
        """Make a node of `primal` that carries `tangent` (None where it is zero), at a level."""
        plain = primal.raw_value if isinstance(primal, Value) else primal
        node: Any = cls()  # type: ignore[call-arg]
        node.raw_value = plain
        node._primal, node._tangent, node.level, node.root, node._shadow = primal, tangent, level, root, None
        node.is_scalar = primal.is_scalar if isinstance(primal, Value) else isinstance(primal, np.generic)
        node.function = node.memory = node._name = node._operands = None
        node.args, node.options, node.parent_argnums = (), NO_OPTIONS, ()
        node.sequence_number = 0
        return node  # type: ignore[no-any-return]

    def like(self, primal: Any, tangent: Any, root: TangentNode | None = None) -> TangentNode:
        """Another node of this level."""
        return TangentNode.create_using(primal, tangent, self.level, root)

    def buffer_over(self, array: Any) -> TangentNode:
        """A node over `array` into which values of this level can be written."""
        buffer: TangentNode = _buffer_like(array, self)
        return buffer

    def push(self, rule: Rule, tangents: list[Any], out: Any, function: Any, operands: tuple[Any, ...], options: Any) -> Any:
        """The tangent of an operation's output, from those of its operands (None where zero)."""
        return push(rule, tangents, out, function, operands, options)

    def conformed(self, tangent: Any, out: Any) -> Any:
        """A tangent in the shape and dtype of an output."""
        return conform(tangent, out)

    def new_cotangent_buffer(self, plain: Any) -> DerivativeBuffer:
        """Room for the tangent of an array, laid out as that is."""
        return DerivativeBuffer(plain)

    def write(self, window: Any, index: Any, tangent: Any) -> None:
        """``window[index] = tangent``, in a window of the shadow; None is zero."""
        window[index] = 0 if tangent is None else tangent

    @property
    def primal(self) -> Any:
        """The value, one level further down."""
        if self.root is not None and _rank(self._primal) < _rank(self.root.primal):
            buffer = self.root.primal  # became a node, because one was written into it
            primal = bind(window, (buffer,), layout_in(buffer.raw_value, self.raw_value))
            if not isinstance(primal, Value):  # not recorded
                return primal
            self._primal = primal
            if not self.raw_value.flags.writeable:
                self._primal.raw_value.flags.writeable = False
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
            root._shadow = root.new_cotangent_buffer(root.raw_value).with_values(root.raw_value, root._tangent)
        return root._shadow.window(self.raw_value)

    @classmethod
    def process(cls, level: int, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` and its tangent at `level`."""
        has_tangent = [type(a) is cls and a.level == level for a in args]
        pairs = list(zip(args, has_tangent, strict=True))
        those = [a for a, c in pairs if c]
        _join_graph(those, [a for a, c in pairs if not c])
        primals = tuple([a.primal if c else _plain_constant(a) for a, c in pairs])
        out = bind(function, primals, options)
        if is_blocked_level(level):
            return out if isinstance(out, Value) else detach_result(out, primals, range(len(primals)))
        if function is ops.stop_gradient:
            return out if isinstance(out, Value) else inert_leaf(out)
        if function not in ops.PIECEWISE and not isinstance(out, (tuple, list)):
            root = _viewed(out, those)
            if root is not None:
                return root.like(out, None, root)
        tangents = [a.derivative() if c else None for a, c in pairs]
        tangent = None
        if function not in ops.PIECEWISE and any(t is not None for t in tangents):
            rule = by_function[function]
            rule_tangent = RuleErrors(function).run_once(those[0].push, rule, tangents, out, function, primals, options)
            tangent = _apart(rule_tangent, those)
        watch = active_watcher()
        if watch is not None:
            watch.check_tangent(function, args, out, tangent)
        if isinstance(out, (tuple, list)):
            parts = [those[0]._carrying(o, t) for o, t in zip(out, tangent or [None] * len(out), strict=True)]
            return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
        result = those[0]._carrying(out, tangent)
        if is_python_number(those[0]) and function in OPERATORS and all(map(is_python_arithmetic, args)):
            mark_python_number(result)
        return result

    def _carrying(self, out: Any, tangent: Any) -> Any:
        """An output with its tangent."""
        if out is not None and not hasattr(out, "dtype"):
            raise TypeError(f"the result, a {type(out).__name__}, is not a NumPy array; convert the operands to floats")
        if out is None or out.dtype.kind not in "fc":  # a constant node, so that its graph is not reported as lost
            return out if out is None or isinstance(out, Value) else inert_leaf(out)
        return self.like(out, None if tangent is None else self.conformed(tangent, out))

    @classmethod
    def store(cls, level: int, target: Any, index: Any, value: Any, casting: Any) -> None:
        """``target[index] = value``, where one of them has a tangent at `level`."""
        if type(target) is not cls or target.level != level:
            if is_blocked_level(level):
                store(target, index, value.primal, casting)
                return
            raise TypeError(
                f"a value with a tangent cannot be written into the {describe(target)}, which was made without one; {cls.room}"
            )
        if is_blocked_level(level):
            value = value.primal if type(value) is cls and value.level == level else value
        require_writeable(target)  # checked here, because new windows are always writeable
        has_tangent = type(value) is cls and value.level == level
        primal, tangent = (value.primal, value.derivative()) if has_tangent else (value, None)
        root = target if target.root is None else target.root
        _join_graph([target], [primal, tangent])
        carries = tangent is not None or root.derivative() is not None
        if carries and root._shadow is None:
            room = root.new_cotangent_buffer(root.raw_value)
            root._shadow = room if root._tangent is None else room.with_values(root.raw_value, root._tangent)
            _join_graph([target], [primal, tangent])
        if tangent is not None and tangent.dtype.kind == "c" and target.dtype.kind != "c":
            tangent = np.real(tangent)
        shadow: Any = root._shadow
        place = shadow.window(target.raw_value) if carries else None
        into = target.primal
        root._shadow = HALF if carries else shadow  # an interrupted write leaves value and tangent inconsistent
        try:
            if isinstance(into, Value):
                store(into, index, primal, casting)
            else:
                store_plain(into, index, primal, casting)
        except (ValueError, TypeError, IndexError):  # raised by NumPy before any change
            root._shadow = shadow
            raise
        if carries:
            root.write(place, index, tangent)
            root._shadow = shadow


class _Half:
    """In place of the shadow while a write into value and tangent is under way, and after one that was interrupted."""

    def window(self, plain: Any) -> Any:
        raise interrupted_write_error(None)

    buffer = property(lambda self: self.window(None))


HALF: Any = _Half()


def _viewed(out: Any, nodes: Sequence[TangentNode]) -> Any:
    """The root of the operand that a result is a view of, or None."""
    plain = out.raw_value if isinstance(out, Value) else out
    if type(plain) is np.ndarray:
        owner = owner_of(plain)
        for operand in nodes:
            if type(operand.raw_value) is np.ndarray and owner_of(operand.raw_value) is owner:
                root = operand if operand.root is None else operand.root
                return None if overlaps_itself(root.raw_value) else root  # broadcast values are never written
    return None


def _apart(tangent: Any, nodes: Sequence[TangentNode]) -> Any:
    """The tangent, copied if it shares memory with that of an operand, which may be written into later."""
    if isinstance(tangent, tuple):
        return tuple(_apart(part, nodes) for part in tangent)
    for operand in nodes:
        root = operand if operand.root is None else operand.root
        if root._shadow is not None and isinstance(tangent, np.ndarray):
            buffer = root._shadow.buffer
            if np.may_share_memory(np.asarray(getattr(tangent, "raw_value", tangent)), getattr(buffer, "raw_value", buffer)):
                return np.copy(tangent)
    return tangent


def _plain_constant(value: Any) -> Any:
    """The numbers of a constant node without operands, such as a comparison gives here; any other value as it is."""
    return value.raw_value if type(value) in INERT and not value.args else value


def _join_graph(nodes: Sequence[TangentNode], others: Sequence[Any]) -> None:
    """Where values meet nodes of a graph, make them nodes too, so that later writes into them are recorded."""
    parts = [part for a in nodes for part in (a.primal, a.derivative())]
    all_values = [n for n in (*parts, *map(_plain_constant, others)) if isinstance(n, Value)]
    like: Any = max(all_values, key=lambda n: n.level, default=None)
    if like is None or not (like.level or is_recording()):  # tangents are computed even without recording
        return
    for node in nodes:
        root = node if node.root is None else node.root
        if root.is_scalar:
            continue
        if _rank(root._primal) < like.level:
            root._primal = _buffer_like(root._primal, like)
        if root._shadow is not None and _rank(root._shadow.buffer) < like.level:
            root._shadow.replace_buffer(_buffer_like(root._shadow.buffer, like))


def _buffer_like(array: Any, value: Any) -> Any:
    """A node over `array` into which a node like `value` can be written."""
    if isinstance(value, TangentNode):
        return value.like(_buffer_like(array, value.primal), None)
    return new_leaf(array, OperationalNode, None) if isinstance(value, Value) and not isinstance(array, Value) else array


def _rank(value: Any) -> int:
    """The highest level of values that may be written into a value: -1 for plain numbers, 0 for nodes without a tangent."""
    return value.level if isinstance(value, Value) else -1


def _numbers_of(result: Any) -> tuple[Any, ...]:
    """The arrays that results and their tangents are."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    tangents = [part.derivative() for part in parts if isinstance(part, TangentNode) and part.root is None]
    return (*parts, *tangents)


for _name, _method in number_methods.items():
    setattr(TangentNode, _name, _method)
patch_method(TangentNode, "process", lambda profiler, _, __, function, *___: profiler.begin_here(TANGENT, function), _numbers_of)
