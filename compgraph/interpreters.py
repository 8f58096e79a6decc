"""The interpreters that process operations: with and without recording, and wrappers of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from . import ops
from .array_types import Array
from .context import is_deriving, is_tracking_indices, run_isolated
from .frames import source_lines
from .ops import FLOAT_SCALARS
from .storage import TRACERS, owner_of
from .tracing import LOGS, Tracing, is_after_trace, is_tracing
from .values import (
    ACTIVE,
    BOTH,
    INDEX_CLASSES,
    INERT_CLASSES,
    LEFT,
    OPERATIONAL_CLASSES,
    RIGHT,
    TRACER_CLASSES,
    TRACKED_CLASS_OF,
    UNTRACKED_CLASSES,
    USED_CLASS_OF,
    InertBlankNode,
    InertNode,
    MultiOutput,
    Node,
    UntrackedNode,
    Value,
    describe,
    is_operator_tracer,
    mark_used,
    ndarray,
    new_node,
    new_view,
    next_sequence_number,
    require_history,
    save_operands,
    set_history,
    set_scope,
    untracked,
    unwrap_buffer,
)

_asarray = np.asarray  # NumPy's own function, before `compgraph.interception` patches the name


def _unpack_operands(args: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...], bool, bool]:
    """Collect the properties of operands that interpreters need, in one pass.

    Returns
    -------
    values : list
        Their plain numbers and arrays.
    parent_argnums : tuple of int
        The positions of nodes.
    is_active : bool
        Whether a cotangent can reach one of the nodes.
    has_arrays : bool
        Whether there are plain arrays, which the caller may change later.
    """
    values, parent_argnums, is_active, has_arrays = [], [], False, False
    for position, operand in enumerate(args):
        if isinstance(operand, Value):
            if not hasattr(operand, "raw_value"):
                require_history(operand)
            values.append(operand.raw_value)
            parent_argnums.append(position)
            if type(operand) in ACTIVE:
                is_active = True
            elif type(operand) in USED_CLASS_OF:
                mark_used(operand)
                is_active = is_active or type(operand) in ACTIVE
        elif isinstance(operand, ndarray):
            values.append(unwrap_buffer(operand))
            has_arrays = True
        else:
            values.append(operand)
    positions = tuple(parent_argnums)
    return values, _INTERNED_ARGNUMS.get(positions, positions), is_active, has_arrays


_INTERNED_ARGNUMS: dict[tuple[int, ...], tuple[int, ...]] = {argnums: argnums for argnums in (LEFT, RIGHT, BOTH)}


class RecordingInterpreter:
    """The interpreter that computes an operation with NumPy and records it as a node."""

    def process(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute and record ``function(*args, **options)``; without a node among the operands, return the plain result."""
        values, parent_argnums, is_active, has_arrays = _unpack_operands(args)
        if not parent_argnums:
            return function(*values, **options)
        try:
            value = function(*values, **options)
        except (ArithmeticError, ValueError) as error:
            for callback in on_operation_error:
                callback(function, args, options, error)
            if not hasattr(error, "__notes__"):
                error.add_note(f"in {ops.opname_of(function)} of {', '.join(map(_describe_operand, args[:4]))}")
            raise
        if has_arrays or options:
            args, options = save_operands(args, options)
        is_active = is_active and function not in ops.PIECEWISE
        if LOGS and not (is_tracing() or is_after_trace()) and _is_in_thread_of_trace(function, args):
            return run_isolated(_attach_traced, value, function, args, options, parent_argnums, is_active)
        return _attach(value, function, args, options, parent_argnums, is_active)

    def attach(self, value: Any, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Record an operation whose result is already computed; return its node or tuple of nodes."""
        parent_argnums = tuple([i for i, a in enumerate(args) if isinstance(a, (Value, MultiOutput))])
        for i in parent_argnums:
            if type(args[i]) in USED_CLASS_OF:
                mark_used(args[i])
        is_active = function not in ops.PIECEWISE and any(type(args[i]) in ACTIVE for i in parent_argnums)
        return _attach(value, function, args, options, parent_argnums, is_active)


def _is_in_thread_of_trace(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether an operation outside of traces has tracers as operands: then a traced function started this thread."""
    return any(map(is_operator_tracer, args)) and function is not ops.stop_gradient


def _describe_operand(operand: object) -> str:
    """Describe an operand for the note on a NumPy error."""
    if isinstance(operand, Value):
        return f"the {describe(operand)}"
    if isinstance(operand, ndarray):
        return f"an array (shape {operand.shape}, {operand.dtype})"
    return str(operand) if isinstance(operand, (int, float, complex, np.generic)) else f"a {type(operand).__name__}"


RECORDING = RecordingInterpreter()


class EvaluatingInterpreter(RecordingInterpreter):
    """The interpreter of `no_graph`: computes with NumPy without recording."""

    def process(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Compute ``function(*args, **options)``; the result is plain."""
        values, parent_argnums, _, _ = _unpack_operands(args)
        value = function(*values, **options)
        for position in parent_argnums:
            _note_untracked_read(args[position])
        return detach_result(value, args, parent_argnums) if parent_argnums and is_tracing() else value


EVALUATING = EvaluatingInterpreter()


class ScopedInterpreter:
    """Wraps an interpreter within a scope: recorded nodes store the scope."""

    def __init__(self, inner: RecordingInterpreter, path: tuple[str, ...]) -> None:
        self.inner, self.path = inner, path

    def process(self, *operation: Any) -> Any:
        """Process an operation and store the scope in its nodes."""
        return self._store_scope(self.inner.process(*operation))

    def attach(self, *operation: Any) -> Any:
        """Attach an operation and store the scope in its nodes."""
        return self._store_scope(self.inner.attach(*operation))

    def _store_scope(self, result: object) -> Any:
        if is_recorded(result):
            set_scope(result, self.path)
        return result


class ObservedInterpreter:
    """Wraps an interpreter to report its nodes to an observer.

    Parameters
    ----------
    inner : RecordingInterpreter or ObservedInterpreter or ScopedInterpreter
        The interpreter that processes the operations.
    observe : callable
        Called with the node, or the nodes, of each operation.
    """

    def __init__(self, inner: RecordingInterpreter, observe: Callable[[Any], None]) -> None:
        self.inner, self.observe = inner, observe
        self.attach = inner.attach

    def process(self, *operation: Any) -> Any:
        """Process an operation and report its nodes."""
        result = self.inner.process(*operation)
        if is_recorded(result):
            self.observe(result)
        return result


def is_recorded(result: object) -> bool:
    """Whether the result of an operation is a node, or contains nodes."""
    if isinstance(result, Value):
        return True
    return isinstance(result, (tuple, list)) and any(isinstance(part, Value) for part in result)


def _attach_traced(*operation: Any) -> Any:
    with Tracing():
        return _attach(*operation)


def detach_result(value: Array, args: tuple[Any, ...], positions: Iterable[int]) -> Any:
    """Return an unrecorded result. A view of an operand becomes read-only, because writes into it would not be recorded."""
    if type(value) is ndarray:
        plain_operands = [a.raw_value if isinstance(a, Value) else a for a in map(args.__getitem__, positions)]
        if any(type(a) is ndarray and owner_of(a) is owner_of(value) for a in plain_operands):
            value = value.view()
            value.flags.writeable = False
    return value


# Called with function, operands, options and error when an operation raises for the values of its operands.
on_operation_error: list[Callable[[Any, tuple[Any, ...], dict[str, Any], Exception], None]] = []


def _note_untracked_read(node: Any) -> None:
    """Store in `Value.untracked_read` that an unrecorded operation reads the node's present value."""
    try:
        is_noted = node.untracked_read > node.sequence_number
    except AttributeError:
        is_noted = False
    if not is_noted:
        node.untracked_read = next_sequence_number()


def new_scalar(value: Array, cls: type[Node]) -> Any:
    """Make a 0-d node of a NumPy scalar. `raw_value` is the scalar if its arithmetic has the same bits as an array's."""
    is_traced = is_tracing() or cls.is_always_traced
    if type(value) not in FLOAT_SCALARS:
        value = _asarray(value)
    node: Any = TRACERS[cls]() if is_traced else new_view(_asarray(value), cls)
    node.raw_value = value
    return node


def _attach(
    value: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    parent_argnums: tuple[int, ...],
    is_active: bool,
) -> Any:
    value = unwrap_buffer(value)  # a user's function may return a buffer
    if isinstance(value, (tuple, list)):
        return _attach_multi_output(value, function, args, options, parent_argnums, is_active)
    may_share = type(value) is ndarray and type(function) is not np.ufunc
    if may_share and (value.base is not None or _is_operand(value, args, parent_argnums)):
        value, is_active = _as_view(value, args, parent_argnums, is_active)
    node = set_history(_new_result(value, is_active, args), function, args, parent_argnums, options)
    if may_share and ops.has_value_dependent_shape(function, args, parent_argnums):
        _notify_shapes((node,))
    if function in _BLANK_FUNCTIONS and type(node) in _INERT_ARRAYS and not is_tracing():
        if type(node) in TRACKED_CLASS_OF:
            mark_used(node)
        if function not in ops.FILL_VALUES:
            value.fill(0)  # `mark_used` detects unrecorded writes only in arrays that began as zeros
        node.__class__ = InertBlankNode
    return node


# Called with the new nodes of an operation whose shapes depend on values.
on_value_dependent_shape: list[Callable[[tuple[Any, ...]], None]] = []


def _notify_shapes(nodes: tuple[Any, ...]) -> None:
    for callback in on_value_dependent_shape:
        callback(nodes)


_BLANK_FUNCTIONS = ops.BLANK_FUNCTIONS
_INERT_ARRAYS = (InertNode, UntrackedNode)


def _is_operand(value: NDArray[Any], args: tuple[Any, ...], parent_argnums: tuple[int, ...]) -> bool:
    """Whether a function returned one of its operands."""
    for i in parent_argnums:  # noqa: SIM110 (a generator costs as much as the operation)
        if args[i].raw_value is value:
            return True
    return False


def _as_view(value: NDArray[Any], args: tuple[Any, ...], parent_argnums: tuple[int, ...], is_active: bool) -> tuple[Any, bool]:
    """Return a result that may be a view of an operand as a separate array, and whether it may need a cotangent."""
    if any(getattr(args[i], "is_scalar", False) for i in parent_argnums):  # NumPy returns a new array for a number
        return value.copy(), is_active
    if value.base is None:
        value = value.view()
    if not is_active:  # a later write of an active node makes it active; a read-only view changes by writes into its operand
        owner = owner_of(value)
        may_change = owner.flags.writeable if isinstance(owner, ndarray) and not is_deriving() else value.flags.writeable
        is_active = may_change and any(
            type(args[i].raw_value) is ndarray and owner_of(args[i].raw_value) is owner for i in parent_argnums
        )
    return value, is_active


def _new_result(value: Array, is_active: bool, args: tuple[Any, ...] = ()) -> Any:
    """Return the value of an operation on `args` as a node without history; integers and booleans are always inert."""
    kind = value.dtype.kind if hasattr(value, "dtype") else "O"
    if kind not in "biufc":
        raise TypeError(f"the result, a {type(value).__name__}, holds no numbers. If that is intended, compute with node.value")
    classes = OPERATIONAL_CLASSES if is_active and kind in "fc" else INERT_CLASSES
    if kind in "biu" and not is_tracing():
        classes = UNTRACKED_CLASSES if is_tracking_indices() else INERT_CLASSES
        if not TRACER_CLASSES.isdisjoint(map(type, args)):
            classes = INDEX_CLASSES
    value = unwrap_buffer(value)
    if isinstance(value, np.ndarray):
        value = value.view(np.ndarray) if type(value) is not np.ndarray else value
        node: Any = new_node(value, classes[0])
        node.raw_value = value
    else:
        node = new_scalar(value, classes[1])
    if classes is UNTRACKED_CLASSES:
        untracked[id(node)] = ref(node)
    return node


def _attach_multi_output(
    value: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    parent_argnums: tuple[int, ...],
    is_active: bool,
) -> Any:
    """Return the outputs as nodes that share one MultiOutput. Named tuples (``slogdet``) and None are preserved."""
    multi_output = MultiOutput()
    value = _copy_shared_outputs(value, args, parent_argnums)
    multi_output.raw_value = tuple(value)
    multi_output.function, multi_output.args, multi_output.options = function, args, options
    multi_output.parent_argnums = parent_argnums
    multi_output.sequence_number = next_sequence_number()
    multi_output._operands = None
    source_lines.set_line(multi_output)
    nodes = [
        set_history(_new_result(part, is_active, args), ops.output(k), (multi_output,), (0,)) for k, part in enumerate(value)
    ]
    if ops.has_value_dependent_shape(function, args, parent_argnums):
        _notify_shapes(tuple(nodes))
    return type(value)(*nodes) if hasattr(value, "_fields") else type(value)(nodes)


def _copy_shared_outputs(values: Any, args: tuple[Any, ...], parent_argnums: tuple[int, ...]) -> Any:
    """Copy outputs that share memory with an operand. Only functions of users return such outputs."""
    owners = {id(owner_of(args[i].raw_value)) for i in parent_argnums if type(args[i].raw_value) is ndarray}
    shared = [type(part) is ndarray and id(owner_of(part)) in owners for part in values]
    if not any(shared):
        return values
    parts = [part.copy() if shares else part for part, shares in zip(values, shared, strict=True)]
    return type(values)(*parts) if hasattr(values, "_fields") else parts


def inert_leaf(value: Array) -> Any:
    """Return a value as a node without operands and cotangent."""
    node = set_history(_new_result(value, False), None, (), ())
    if type(node) in TRACKED_CLASS_OF:
        mark_used(node)
    return node
