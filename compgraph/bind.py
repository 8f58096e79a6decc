"""`bind`: the single entry point of operations on nodes.

The innermost interpreter processes the operation. That is the transform (`jvp`, `vmap`) of the operand with the highest trace
level. Without such an operand it is the interpreter of the context, which records, only computes (`no_graph`), or reports to
observers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import ops
from .array_types import Array
from .context import is_fast_path, is_recording, observers, open_scopes
from .frames import may_wrap, source_lines
from .interpreters import EVALUATING, RECORDING, ScopedInterpreter, new_scalar
from .ops import FLOAT_SCALARS
from .storage import TRACERS
from .tracing import LOGS, is_tracing
from .values import (
    NO_OPTIONS,
    TRANSFORM_TRACERS,
    USED_CLASS_OF,
    OperationalNode,
    ScalarNode,
    Value,
    as_plain_views,
    is_tracer,
    mark_used,
    ndarray,
    new_view,
    next_sequence_number,
)

_OperationalTracer: Any = TRACERS[OperationalNode]
_ScalarTracer: Any = TRACERS[ScalarNode]


def bind(function: Any, args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
    """Process ``function(*args, **options)`` with the innermost interpreter among the operands.

    Parameters
    ----------
    function : callable
        A function of NumPy arrays.
    args : tuple
        Its operands: nodes, arrays or numbers, of any shape and dtype that the function accepts.
    options : dict
        Its keyword arguments. Nodes among them are not traced; see `ops.Keyworded`.

    Returns
    -------
    Node, tuple of Node, or NumPy result
        The result as a node. Under `no_graph`, or without a node among the operands: the NumPy result.
    """
    innermost: Any = None
    has_arrays = False
    for operand in args:
        cls = type(operand)
        if cls in TRANSFORM_TRACERS:
            if innermost is None or operand.level > innermost.level:
                innermost = operand
        elif isinstance(operand, ndarray):
            has_arrays = True
            if cls is ndarray and operand.dtype.hasobject and stack_object_array(operand) is not operand:
                return bind(function, tuple([stack_object_array(a) for a in args]), options)
    if innermost is None:
        return (RECORDING if is_fast_path() else current_interpreter()).process(function, args, options)
    if has_arrays:  # most nodes are arrays, too
        for operand in args:
            if type(operand) in USED_CLASS_OF:
                mark_used(operand)
        args = as_plain_views(args)
    return type(innermost).process(innermost.level, function, args, options)


def attach(
    value: Array | tuple[NDArray[Any], ...], function: object, args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS
) -> Any:
    """Record an operation whose result `value` is already computed; return its node or tuple of nodes."""
    return (RECORDING if is_fast_path() else current_interpreter(records=True)).attach(value, function, args, options)


def record_active(value: Array, function: Callable[..., Any], args: tuple[Any, ...], parent_argnums: tuple[int, ...]) -> Any:
    """Record an operation on active operands without options: the fast path of `attach`, valid if `is_fast_path`."""
    if is_tracing():
        if type(value) in FLOAT_SCALARS:
            node = _ScalarTracer()
        elif type(value) is ndarray and value.dtype.kind in "fc":
            node = _OperationalTracer()
        else:
            return bind(function, args)
        node.raw_value = value
    elif LOGS and any(map(is_tracer, args)):  # a thread started by a function that is being differentiated
        return bind(function, args)
    elif type(value) is ndarray:
        node = new_view(value, OperationalNode)
        node.raw_value = value
    else:
        node = new_scalar(value, ScalarNode)
    node.function = function
    node.args = args
    node.parent_argnums = parent_argnums
    node.options = NO_OPTIONS
    node.sequence_number = next_sequence_number()
    node.memory = node._name = node._operands = None
    frame = source_lines.caller(2)
    code = frame.f_code
    if code is not None and may_wrap[code.co_filename]:  # called through a function of the package, such as `cg.sin`
        frame = source_lines.user_frame(3)
        code = frame.f_code
    node.code = code
    node.instruction = frame.f_lasti
    return node


def current_interpreter(records: bool | None = None) -> Any:
    """The interpreter of the current context; if `records`, one that records even within `no_graph`."""
    inner: Any = RECORDING if records or is_recording() else EVALUATING
    path = open_scopes()
    if path:
        inner = ScopedInterpreter(inner, path)
    for observer in observers():
        inner = observer.wrap(inner)
    return inner


def stack_object_array(value: object) -> Any:
    """Convert an object array that contains nodes to one node; return other values unchanged."""
    if type(value) is not ndarray or not value.dtype.hasobject:
        return value
    elements = value.ravel().tolist()
    if not any(isinstance(element, Value) for element in elements):
        return value
    return np.reshape(np.stack([e if isinstance(e, Value) else np.asarray(e) for e in elements]), value.shape)


def to_concrete(node: Any) -> Any:
    """Copy a tracer to a recorded node with its own memory. Other nodes, and nodes within an operator, are returned unchanged."""
    if is_tracing() or node.level or not is_tracer(node):
        return node
    return attach(ops.copy(node.raw_value, order="K"), ops.copy, (node,), {"order": "K"})


def _create_using(
    opresult: ArrayLike,
    opname: str,
    operand_a: NDArray[Any],
    operand_b: NDArray[Any] | None = None,
    name: str | None = None,
) -> Any:
    """Make the node of an operation whose result is known; exposed as ``OperationalNode.create_using``.

    Parameters
    ----------
    opresult : array_like
        The value of the operation. Integers and booleans become float64 if the operation has a derivative.
    opname : str
        The name of an operation of one or two operands (``"exp"``, ``"add"``).
    operand_a, operand_b : array_like or Node
        The operands; `operand_b` is None for a unary operation.
    name : str, optional
        A name for the node.

    Returns
    -------
    OperationalNode

    Raises
    ------
    ValueError
        If no operation has the name.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable([1.0, 2.0])
    >>> cg.OperationalNode.create_using([2.0, 4.0], "add", x, x).opname
    'add'
    """
    function = ops.function_by_opname(opname)
    if function is None:
        raise ValueError(f"no operation is called {opname!r}; a new one is declared with cg.primitive")
    args = (operand_a,) if operand_b is None else (operand_a, operand_b)
    result = np.asarray(opresult)
    if function not in ops.PIECEWISE and result.dtype.kind in "biu":
        result = result.astype(float)  # the dtype of the operation on variables
    node = attach(result[()], function, args)
    node._name = name
    return node


OperationalNode.create_using = _create_using
