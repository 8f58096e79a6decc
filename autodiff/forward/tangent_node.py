"""A value with a tangent: operations and writes compute both.

`bind` dispatches each operation on a `TangentNode` to `TangentNode.process`. The primal is a plain array, a node of a graph, or
a TangentNode of an outer derivative. Levels distinguish nested derivatives: operands of the highest level are unpacked first,
and all others are constants at that level, so an inner derivative is never confused with an outer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from compgraph import ops
from compgraph.array_types import Array
from compgraph.bind import bind
from compgraph.context import active_checks, is_blocked_level, is_recording
from compgraph.guards import scalar_hash
from compgraph.inplace import require_writeable, store, store_plain
from compgraph.interpreters import detach_result, inert_leaf
from compgraph.profiling import TANGENT, patch_method
from compgraph.protocols import number_methods
from compgraph.storage import interrupted_write_error, layout_in, overlaps_itself, owner_of, window
from compgraph.values import (
    INERT,
    NO_OPTIONS,
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
    """A value with its derivative along a direction.

    Attributes
    ----------
    primal : array or Node
        The value, at the next lower level.
    tangent : array or Node
        Its derivative, of the same shape. (A `JacobianNode` has a batch of tangents, along a first axis.)
    level : int
        The level of the derivative; inner derivatives have higher levels.
    root : TangentNode or None
        For a view, the node that owns its buffer.
    """

    __slots__ = ()
    kind = "tangent"
    trace_kind = "tangents"
    buffer_advice: ClassVar[str] = (
        "make the array inside the function that is differentiated (cg.zeros(shape), np.zeros_like(x)), or copy it there"
    )

    __class__ = reported_class
    __hash__ = scalar_hash  # type: ignore[assignment]

    root: TangentNode | None
    _primal: Any
    _tangent: Any
    _tangent_buffer: DerivativeBuffer | None  # of a root that was written into

    @classmethod
    def create_using(cls, primal: Array, tangent: Array | None, level: int, root: TangentNode | None = None) -> TangentNode:
        """Make a node of a primal and a tangent (None for zero) at a level."""
        plain = primal.raw_value if isinstance(primal, Value) else primal
        node: Any = cls()  # type: ignore[call-arg]
        node.raw_value = plain
        node._primal, node._tangent, node.level, node.root, node._tangent_buffer = primal, tangent, level, root, None
        node.is_scalar = primal.is_scalar if isinstance(primal, Value) else isinstance(primal, np.generic)
        node.function = node.memory = node._name = node._operands = None
        node.args, node.options, node.parent_argnums = (), NO_OPTIONS, ()
        node.sequence_number = 0
        return node  # type: ignore[no-any-return]

    def like(self, primal: Array, tangent: Array | None, root: TangentNode | None = None) -> TangentNode:
        """Make another node of this level."""
        return TangentNode.create_using(primal, tangent, self.level, root)

    def buffer_over(self, array: NDArray[Any]) -> TangentNode:
        """Make a node over `array` that accepts writes of values of this level."""
        buffer: TangentNode = _buffer_like(array, self)
        return buffer

    def push(
        self,
        rule: Rule,
        tangents: list[Any],
        out: Array,
        function: Callable[..., Any],
        operands: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Return the tangent of an operation's output, given those of its operands (None for zero)."""
        return push(rule, tangents, out, function, operands, options)

    def conform_tangent(self, tangent: Array, out: Array) -> Any:
        """Convert a tangent to the shape and dtype of an output."""
        return conform(tangent, out)

    def new_tangent_buffer(self, plain: NDArray[Any]) -> DerivativeBuffer:
        """Allocate a tangent buffer with the layout of an array."""
        return DerivativeBuffer(plain)

    def write(self, window: Any, index: Any, tangent: Any) -> None:
        """Store a tangent (None for zero) in a window of the tangent buffer: ``window[index] = tangent``."""
        window[index] = 0 if tangent is None else tangent

    @property
    def primal(self) -> Any:
        """The value, at the next lower level."""
        if self.root is not None and _rank(self._primal) < _rank(self.root.primal):
            buffer = self.root.primal  # a node, because a node was written into it
            primal = bind(window, (buffer,), layout_in(buffer.raw_value, self.raw_value))
            if not isinstance(primal, Value) or is_blocked_level(self.level):  # not recorded
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
        """Return the tangent, or None for zero."""
        root = self if self.root is None else self.root
        if root._tangent_buffer is None:
            if root is self or root._tangent is None:
                return root._tangent
            root._allocate_tangent_buffer()
        tangent_buffer: Any = root._tangent_buffer
        return tangent_buffer.window(self.raw_value)

    def _allocate_tangent_buffer(self) -> None:
        """Allocate the tangent buffer of a root, with the values of its tangent."""
        buffer = self.new_tangent_buffer(self.raw_value)
        self._tangent_buffer = buffer if self._tangent is None else buffer.with_values(self.raw_value, self._tangent)

    @classmethod
    def process(cls, level: int, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)`` and its tangent at `level`."""
        pairs = [(a, type(a) is cls and a.level == level) for a in args]
        tangent_nodes = [a for a, is_tangent in pairs if is_tangent]
        is_blocked = is_blocked_level(level)
        if not is_blocked:  # tangents computed under `no_graph` would be kept without their graph
            _record_buffers(tangent_nodes, [a for a, is_tangent in pairs if not is_tangent])
        primals = tuple([a.primal if is_tangent else _plain_constant(a) for a, is_tangent in pairs])
        out = bind(function, primals, options)
        if is_blocked:
            return out if isinstance(out, Value) else detach_result(out, primals, range(len(primals)))
        if function is ops.stop_gradient:
            return out if isinstance(out, Value) else inert_leaf(out)
        if function not in ops.PIECEWISE and not isinstance(out, (tuple, list)):
            root = _viewed_root(out, tangent_nodes)
            if root is not None:
                return root.like(out, None, root)
        tangents = [a.derivative() if is_tangent else None for a, is_tangent in pairs]
        tangent = None
        if function not in ops.PIECEWISE and any(t is not None for t in tangents):
            rule = by_function[function]
            rule_tangent = RuleErrors(function).run_once(tangent_nodes[0].push, rule, tangents, out, function, primals, options)
            tangent = _copy_if_shared(rule_tangent, tangent_nodes)
        checks = active_checks()
        if checks is not None:
            checks.check_tangent(function, args, out, tangent)
        if isinstance(out, (tuple, list)):
            parts = [tangent_nodes[0]._attach_tangent(o, t) for o, t in zip(out, tangent or [None] * len(out), strict=True)]
            return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
        result = tangent_nodes[0]._attach_tangent(out, tangent)
        if is_python_number(tangent_nodes[0]) and function in ops.PYTHON_ARITHMETIC and all(map(is_python_arithmetic, args)):
            mark_python_number(result)
        return result

    def _attach_tangent(self, out: Array, tangent: Array) -> Any:
        """Return an output with its tangent."""
        if out is not None and not hasattr(out, "dtype"):
            raise TypeError(f"the result, a {type(out).__name__}, is not a NumPy array; convert the operands to floats")
        if out is None or out.dtype.kind not in "fc":  # a constant node, so that its graph is not reported as lost
            return out if out is None or isinstance(out, Value) else inert_leaf(out)
        return self.like(out, None if tangent is None else self.conform_tangent(tangent, out))

    @classmethod
    def store(cls, level: int, target: object, index: Any, value: Any, casting: Any) -> None:
        """Write ``target[index] = value``, where one of them has a tangent at `level`."""
        if type(target) is not cls or target.level != level:
            if is_blocked_level(level):
                store(target, index, value.primal, casting)
                return
            raise TypeError(
                f"a value with a tangent cannot be written into the {describe(target)}, which was made without one; "
                f"{cls.buffer_advice}"
            )
        if is_blocked_level(level):
            value = value.primal if type(value) is cls and value.level == level else value
        require_writeable(target)  # checked here, because new windows are always writeable
        has_tangent = type(value) is cls and value.level == level
        primal, tangent = (value.primal, value.derivative()) if has_tangent else (value, None)
        root = target if target.root is None else target.root
        _record_buffers([target], [primal, tangent])
        has_tangents = tangent is not None or root.derivative() is not None
        if has_tangents and root._tangent_buffer is None:
            root._allocate_tangent_buffer()
            _record_buffers([target], [primal, tangent])
        if tangent is not None and tangent.dtype.kind == "c" and target.dtype.kind != "c":
            tangent = np.real(tangent)
        tangent_buffer: Any = root._tangent_buffer
        tangent_window = tangent_buffer.window(target.raw_value) if has_tangents else None
        target_primal = target.primal
        if has_tangents:  # an interrupted write leaves value and tangent inconsistent
            root._tangent_buffer = INTERRUPTED_WRITE
        try:
            if isinstance(target_primal, Value):
                store(target_primal, index, primal, casting)
            else:
                store_plain(target_primal, index, primal, casting)
        except (ValueError, TypeError, IndexError):  # raised by NumPy before any change
            root._tangent_buffer = tangent_buffer
            raise
        if has_tangents:
            root.write(tangent_window, index, tangent)
            root._tangent_buffer = tangent_buffer


class _InterruptedWrite:
    """The tangent buffer during a write into value and tangent, and after an interrupted one: access raises."""

    def window(self, plain: NDArray[Any]) -> Any:
        raise interrupted_write_error(None)

    buffer = property(lambda self: self.window(None))


INTERRUPTED_WRITE: Any = _InterruptedWrite()


def _viewed_root(out: Array, nodes: Sequence[TangentNode]) -> Any:
    """Return the root of the operand that a result is a view of, or None."""
    plain = out.raw_value if isinstance(out, Value) else out
    if type(plain) is np.ndarray:
        owner = owner_of(plain)
        for operand in nodes:
            if type(operand.raw_value) is np.ndarray and owner_of(operand.raw_value) is owner:
                root = operand if operand.root is None else operand.root
                return None if overlaps_itself(root.raw_value) else root  # broadcast values are never written
    return None


def _copy_if_shared(tangent: Array, nodes: Sequence[TangentNode]) -> Any:
    """Copy a tangent if it shares memory with that of an operand, which may be written later."""
    if isinstance(tangent, tuple):
        return tuple(_copy_if_shared(part, nodes) for part in tangent)
    for operand in nodes:
        root = operand if operand.root is None else operand.root
        if root._tangent_buffer is not None and isinstance(tangent, np.ndarray):
            buffer = root._tangent_buffer.buffer
            if np.may_share_memory(np.asarray(getattr(tangent, "raw_value", tangent)), getattr(buffer, "raw_value", buffer)):
                return np.copy(tangent)
    return tangent


def _plain_constant(value: Any) -> Any:
    """Return the numbers of a constant node without operands, such as a comparison; return other values unchanged."""
    return value.raw_value if type(value) in INERT and not value.args else value


def _record_buffers(nodes: Sequence[TangentNode], others: Sequence[Any]) -> None:
    """Convert buffers to nodes if another operand is a node of a graph, so that later writes into them are recorded."""
    parts = [part for a in nodes for part in (a.primal, a.derivative())]
    graph_nodes = [n for n in (*parts, *map(_plain_constant, others)) if isinstance(n, Value)]
    like: Any = max(graph_nodes, key=lambda n: n.level, default=None)
    if like is None or not (like.level or is_recording()):  # tangents are computed even without recording
        return
    for node in nodes:
        root = node if node.root is None else node.root
        if root.is_scalar:
            continue
        if _rank(root._primal) < like.level:
            root._primal = _buffer_like(root._primal, like)
        if root._tangent_buffer is not None and _rank(root._tangent_buffer.buffer) < like.level:
            root._tangent_buffer.replace_buffer(_buffer_like(root._tangent_buffer.buffer, like))


def _buffer_like(array: NDArray[Any], value: object) -> Any:
    """Make a node over `array` that accepts writes of nodes like `value`."""
    if isinstance(value, TangentNode):
        return value.like(_buffer_like(array, value.primal), None)
    return new_leaf(array, OperationalNode, None) if isinstance(value, Value) and not isinstance(array, Value) else array


def _rank(value: NDArray[Any]) -> int:
    """Return the highest level of values that can be written into a value: -1 for plain arrays, 0 for nodes of a graph."""
    return value.level if isinstance(value, Value) else -1


def _allocated_arrays(result: NDArray[Any]) -> tuple[Any, ...]:
    """Return the arrays of results and their tangents."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    tangents = [part.derivative() for part in parts if isinstance(part, TangentNode) and part.root is None]
    return (*parts, *tangents)


for _name, _method in number_methods.items():
    setattr(TangentNode, _name, _method)
patch_method(
    TangentNode, "process", lambda profiler, _, __, function, *___: profiler.begin_here(TANGENT, function), _allocated_arrays
)
