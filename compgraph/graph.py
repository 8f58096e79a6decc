"""The graph: operands of operations, traversals, and the recovery of lost histories."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import ops
from .bind import bind, stack_object_array
from .context import recording_on
from .storage import Write
from .tracing import is_retraceable
from .values import (
    ACTIVE,
    INERT,
    TRACEABLE,
    USED_CLASS_OF,
    ClassViews,
    ConstantNode,
    MultiOutput,
    Value,
    history_recoverers,
    ndarray,
    new_view,
    operand_nodes,
    require_computed,
    require_history,
    require_unbatched,
)

# Without complex, because Python's division of a complex number by a float64 scalar raises where NumPy returns infinity.
NUMBERS: frozenset[Any] = frozenset({float, int, bool, np.float64, np.float32, np.int64})
PLAIN_TYPES = NUMBERS | {ndarray}
OPERAND_TYPES = PLAIN_TYPES | ACTIVE | INERT | USED_CLASS_OF.keys() | {type(None), complex, np.bool_}


def as_operand(value: Any) -> Any:
    """Convert an operand for the graph: a sequence becomes an array, or one node if it contains nodes."""
    if value is None or isinstance(value, (Value, int, float, complex)):
        return value
    value = stack_nested(value)
    if isinstance(value, Value):
        return value
    if type(value) in TRACEABLE and value.dtype.kind in "biufc":
        return value
    cls: Any = type(value)
    if cls.__module__.startswith("numpy.ma") and is_retraceable():
        value = without_mask(value)
        cls = type(value)
    if isinstance(value, ndarray) and cls is not ndarray and has_operators(cls):
        raise TypeError(f"a {cls.__name__} has operators of its own, which are not recorded; pass np.asarray(value)")
    require_computed(value, "an operand")
    if cls.__module__ == "fractions":
        return float(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"a node computes with numbers, not with a {type(value).__name__} of dtype {array.dtype}; convert it to a "
            "floating dtype, or compute with node.value"
        )
    return value if isinstance(value, np.generic) else array


def without_mask(value: object) -> Any:
    """Return the data of a masked array without masked elements; other values unchanged.

    Raises
    ------
    TypeError
        If elements are masked.
    """
    if not isinstance(value, ndarray) or type(value) is ndarray or not type(value).__module__.startswith("numpy.ma"):
        return value
    masked: Any = value
    if np.any(masked.mask):
        raise TypeError(
            f"the mask of a {type(value).__name__} with masked elements is not recorded; pass the data and the mask, and "
            "use np.where(mask, ...)"
        )
    ClassViews.count += 1
    return np.asarray(masked.data)


@functools.cache
def has_operators(cls: type) -> bool:
    """Whether a class of arrays has operators of its own, as matrices and masked arrays have."""
    names = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul", "pow", "rpow")
    return any(getattr(cls, f"__{name}__") is not getattr(ndarray, f"__{name}__") for name in names)


def as_operands(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert several operands by `as_operand`; return the tuple itself if none needs it."""
    for value in values:
        if type(value) not in OPERAND_TYPES or (type(value) is ndarray and value.dtype.kind == "O"):
            return tuple(map(as_operand, values))
    return values


def stack_nested(value: object) -> Any:
    """Convert a list or tuple that contains nodes to one node; return other values unchanged.

    NumPy's own conversion would lose the history of the nodes.
    """
    if (
        not isinstance(value, Value)
        and isinstance(value, (list, tuple))
        and any(isinstance(v, Value) for v in flatten_sequences(value))
    ):
        return np.stack([as_operand(v) for v in value])
    return stack_object_array(value)


def flatten_sequences(value: object) -> tuple[Any, ...]:
    """Return the elements of nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return tuple([leaf for part in value for leaf in flatten_sequences(part)])
    return (value,)


def to_values(value: object) -> Any:
    """Replace each node by its plain value, also inside tuples, lists and dicts."""
    if isinstance(value, Value):
        require_history(value)
        if value.level:
            require_unbatched("an unrecorded use of the values", value)
        return value.raw_value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(to_values, value))
    if isinstance(value, dict):
        return {k: to_values(v) for k, v in value.items()}
    return value


def overrides_protocol(operand: object, protocol: str) -> bool:
    """Whether an operand that is not a node has its own `protocol`, to which NumPy dispatches; lazy arrays raise."""
    method = getattr(type(operand), protocol, None)
    if isinstance(operand, Value) or type(operand) in TRACEABLE or method is None or method is getattr(ndarray, protocol):
        return False
    require_computed(operand, "an operand")
    return True


def full_name(function: Callable[..., Any]) -> str:
    """The public name of a function of NumPy or SciPy, such as ``np.linalg.inv``."""
    if isinstance(function, ops.Packed):
        function = function.function
    if function in ops.PUBLIC_NAMES:
        return ops.PUBLIC_NAMES[function]
    module = "np" if isinstance(function, ops.UfuncMethod) else function.__module__.replace("numpy", "np", 1)
    return f"{module}.{function.__name__}"


GraphNode: TypeAlias = Value | MultiOutput | Write


def operands_of(node: GraphNode) -> tuple[GraphNode, ...]:
    """Return the operands of a node, one entry per use; plain arrays as ConstantNodes.

    An output of a multi-output operation has one operand, the MultiOutput; that has the operation's operands. The writes into a
    node's buffer follow its operands. A write has one operand, the stored value.
    """
    if isinstance(node, Write):
        (value,) = node.args
        return (value if isinstance(value, Value) else ConstantNode.wrap(value),)
    first = node.args[0] if node.args else None
    operands = (first,) if isinstance(first, MultiOutput) else operand_nodes(node)
    return (*operands, *node.memory.log) if node.memory else operands


def walk(starts: Iterable[Any], successors: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Traverse a graph breadth first, each object once; a generator, so that the caller may stop early.

    Parameters
    ----------
    starts : iterable
        The first objects.
    successors : callable
        ``successors(item)`` returns the objects one step away.

    Yields
    ------
    object
        Each object, before its successors are computed.

    Examples
    --------
    >>> from compgraph.graph import walk
    >>> list(walk([1], lambda n: [2 * n, 3 * n] if n < 4 else []))
    [1, 2, 3, 4, 6, 9]
    """
    order = list({id(item): item for item in starts}.values())
    visited = set(map(id, order))  # by id, because hashing a traced number is slow: it checks for a leak
    for item in order:  # the list grows during the loop
        yield item
        for successor in successors(item):
            if id(successor) not in visited:
                visited.add(id(successor))
                order.append(successor)


def breadth_first(*outputs: GraphNode) -> list[GraphNode]:
    """Return all ancestors of some nodes, each once, the nearest first.

    Parameters
    ----------
    *outputs : Node, MultiOutput or Write
        The results.

    Returns
    -------
    list of Node, MultiOutput or Write
        The outputs, their operands, the operands of those, and so on. An operation with several outputs is one
        MultiOutput between them and its operands.

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.graph import breadth_first
    >>> x = cg.variable(3.0, "x")
    >>> [node.opname or node.name for node in breadth_first(x * x - x)]
    ['sub', 'mul', 'x']
    """
    return list(walk(outputs, operands_of))


def topological_order(outputs: Iterable[GraphNode]) -> list[GraphNode]:
    """Return the graph of some nodes in topological order: each item once, operands before results.

    Parameters
    ----------
    outputs : iterable of Node or MultiOutput
        The outputs of the graph, in any order.

    Returns
    -------
    list of Node, MultiOutput or Write
        The leaves, then the operations in the order in which they were recorded.

    Examples
    --------
    >>> import compgraph as cg
    >>> from compgraph.graph import topological_order
    >>> x = cg.variable(3.0, "x")
    >>> [node.opname or node.name for node in topological_order([x * x - x])]
    ['x', 'mul', 'sub']
    """
    if isinstance(outputs, Value):
        raise TypeError("topological_order takes a sequence of nodes: topological_order([node])")
    outputs = list(outputs)
    for node in outputs:
        if not isinstance(node, (Value, MultiOutput, Write)):
            raise TypeError(f"topological_order takes nodes, not a {type(node).__name__}, which has no graph")
    # Leaves may be younger than their readers: an updated variable, or a constant made on access to `operands`.
    return sorted(breadth_first(*outputs), key=lambda node: node.sequence_number if node.args else -inf)


def _recover_view(node: NDArray[Any]) -> bool:
    """Record a view of a whole node after NumPy made it, as ``np.r_`` and ``np.c_`` do; return whether that was possible.

    `node` must be a view with additional leading axes of length 1.
    """
    view, source = new_view(node, ndarray), node.base
    if not isinstance(source, Value) or (not hasattr(source, "raw_value") and not _recover_view(source)):
        return False
    whole = new_view(source, ndarray)
    num_new_axes = view.ndim - whole.ndim
    is_same_memory = view.__array_interface__["data"] == whole.__array_interface__["data"] and view.dtype == whole.dtype
    if num_new_axes <= 0 or not is_same_memory or view.shape != (1,) * num_new_axes + whole.shape:
        return False
    if view.strides[num_new_axes:] != whole.strides:
        return False
    with recording_on():
        view_node = bind(np.expand_dims, (source,), {"axis": tuple(range(num_new_axes))})
    node.__class__ = type(view_node)
    for cls in type(view_node).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if hasattr(view_node, slot):
                setattr(node, slot, getattr(view_node, slot))
    return True


history_recoverers.append(_recover_view)


def recover_history(error: AttributeError, *operands: object) -> None:
    """Recover the histories whose absence caused an AttributeError; raise it again if no operand lacks its history."""
    operands_without_history = [a for a in operands if isinstance(a, Value) and not hasattr(a, "raw_value")]
    if not operands_without_history:
        raise error
    require_history(*operands_without_history)
