"""Recording: how the result of an operation becomes a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from .. import operations
from ..operations import SAME_BITS
from .aliasing import owner_of
from .buffer import plainly
from .context import apart, computed, is_deriving, is_following, is_quick, is_recording, observers, profiled
from .interpreter import source_lines, wrapping
from .kinds import ACTIVE, INERTS, OPERATIONAL, READ, UNREADS, USED, InertBlankNode, Joint, ScalarNode, UnreadNode, unread, use
from .layout import TRACERS
from .node import (
    NO_OPTIONS,
    InertNode,
    Node,
    OperationalNode,
    Value,
    fill,
    in_scopes,
    ndarray,
    new_node,
    new_view,
    next_tick,
    require_history,
)
from .saved import plain_views, saved_operands
from .tracer import is_tracer
from .tracing import LOGS, Tracing, is_tracing

_OperationalTracer: Any = TRACERS[OperationalNode]
_asarray = np.asarray  # NumPy's own function: the name is exchanged later, see `compgraph.interception`


def record(function: Any, args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
    """Compute ``function(*args, **options)`` and remember it: the one door into the graph.

    Parameters
    ----------
    function : callable
        A function of plain arrays.
    args : tuple
        Its operands: nodes, plain arrays or numbers, of any shape and dtype that the function takes.
    options : dict
        Its keyword arguments. A node among them is not seen; see `operations.Keyworded`.

    Returns
    -------
    Node, tuple of Node, or plain NumPy result
        What `function` returns, as a node. Under `no_graph`, and when no operand is a node: the plain result.
    """
    values, edges, active, raw = [], [], False, False
    top: Any = None
    for position, operand in enumerate(args):
        if isinstance(operand, Value):
            if not hasattr(operand, "plain"):
                require_history(operand)
            values.append(operand.plain)
            edges.append(position)
            if type(operand) in ACTIVE:
                active = True
            elif type(operand) in USED:
                use(operand)
                active = active or type(operand) in ACTIVE
            elif operand.level and (top is None or operand.level > top.level):
                top = operand
        elif isinstance(operand, ndarray):
            if operand.dtype.hasobject and adopted(operand) is not operand:
                return record(function, tuple(map(adopted, args)), options)
            values.append(plainly(operand))
            raw = True
        else:
            values.append(operand)
    if top is not None:
        return type(top).carry(top.level, function, plain_views(args) if raw else args, options)
    quick = not edges or is_quick()
    try:
        value = function(*values, **options) if quick else computed(function, values, options)
    except (ArithmeticError, ValueError) as error:
        if edges:
            _tell(function, args, options, error)
        raise
    if not edges or not (quick or is_recording()):
        for position in edges:
            take(args[position])
        return detach_result(value, args, edges) if edges and is_tracing() else value
    active = active and function not in operations.PIECEWISE
    if raw or options:
        args, options = saved_operands(args, options)
    if LOGS and not is_tracing() and any(map(is_tracer, args)) and function is not operations.stop_gradient:
        result = apart(_attach_traced, value, function, args, options, tuple(edges), active)
    else:
        result = _attach(value, function, args, options, tuple(edges), active)
    if not quick:
        path, watch, profiler, collect = observers()
        in_scopes(result, path)
        if watch is not None:
            watch.recorded(result)
        if profiler is not None:
            profiler.recorded(result, path)
        if collect is not None:
            collect(result)
    return result


def _attach_traced(*operation: Any) -> Any:
    with Tracing():
        return _attach(*operation)


def detach_result(value: Any, args: tuple[Any, ...], positions: Iterable[int]) -> Any:
    """A result that is not recorded. A view of an operand is read-only, because a write into it would be in no log."""
    if type(value) is ndarray:
        plains = [a.plain if isinstance(a, Value) else a for a in map(args.__getitem__, positions)]
        if any(type(a) is ndarray and owner_of(a) is owner_of(value) for a in plains):
            value = value.view()
            value.flags.writeable = False
    return value


# Called with an operation that raised, as numbers made it: function, operands, options and the error. Who calls may catch it.
raised: list[Callable[[Any, tuple[Any, ...], dict[str, Any], Exception], None]] = []


def _tell(*what: Any) -> None:
    if is_recording():
        for tell in raised:
            tell(*what)


def take(node: Any) -> None:
    """Remember, in `Node.taken`, that an operation that is not recorded reads the node's present numbers."""
    try:
        is_known = node.taken > node.tick
    except AttributeError:
        is_known = False
    if not is_known:
        node.taken = next_tick()


def attach(value: Any, function: Any, args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
    """The node, or tuple of nodes, of an operation whose result `value` is computed already."""
    edges = tuple([i for i, a in enumerate(args) if isinstance(a, (Value, Joint))])
    for i in edges:
        if type(args[i]) in USED:
            use(args[i])
    active = function not in operations.PIECEWISE and any(type(args[i]) in ACTIVE for i in edges)
    result = _attach(value, function, args, options, edges, active)
    in_scopes(result)
    profiler = profiled()
    if profiler is not None:
        profiler.attached(result)
    return result


def operation(value: Any, function: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> Any:
    """The node of an operation on active operands, without options: `attach` for the commonest case."""
    traces = is_tracing()
    if not traces and LOGS and any(map(is_tracer, args)):  # a function is differentiated, and this is a thread it started
        return record(function, args)
    if type(value) is ndarray:
        if not traces:
            node = new_view(value, OperationalNode)
        elif value.dtype.kind in "fc":
            node = _OperationalTracer()
        else:
            return record(function, args)
        node.plain = value
    else:
        node = scalar(value, ScalarNode)
    node.function = function
    node.args = args
    node.edges = edges
    node.options = NO_OPTIONS
    node.tick = next_tick()
    node.memory = node._name = node._operands = None
    frame = source_lines.caller(2)
    code = frame.f_code
    if code is not None and wrapping[code.co_filename]:  # called by a function of ours, as `cg.sin` is
        frame = source_lines.users_frame(3)
        code = frame.f_code
    node.code = code
    node.instruction = frame.f_lasti
    return node


def scalar(value: Any, kind: type[Node]) -> Any:
    """A 0-d node of a NumPy scalar; `plain` is the scalar itself where its arithmetic gives the same bits as an array's."""
    is_exact = type(value) in SAME_BITS
    array = None if is_exact and is_tracing() else _asarray(value)
    node: Any = TRACERS[kind]() if is_tracing() else new_view(array, kind)
    node.plain = value if is_exact else array
    return node


def _attach(
    value: Any, function: Any, args: tuple[Any, ...], options: dict[str, Any], edges: tuple[int, ...], active: bool
) -> Any:
    value = plainly(value)  # a user's function may have made a buffer
    if isinstance(value, (tuple, list)):
        return _outputs(value, function, args, options, edges, active)
    may_share = type(value) is ndarray and type(function) is not np.ufunc
    if may_share and (value.base is not None or _is_operand(value, args, edges)):
        value, active = _as_view(value, args, edges, active)
    node = fill(_wrapped(value, active), function, args, edges, options)
    if may_share and operations.counts(function, args, edges):
        _notify_counted((node,))
    if function in _BLANK and type(node) in _INERT_ARRAYS and not is_tracing():
        if type(node) in READ:
            use(node)
        if function is np.empty_like:
            value.fill(0)  # `use` can tell whether an array was filled only if it began as zeros
        node.__class__ = InertBlankNode
    return node


# Called with new nodes of one operation whose shapes depend on values.
counted: list[Callable[[tuple[Any, ...]], None]] = []


def _notify_counted(nodes: tuple[Any, ...]) -> None:
    for tell in counted:
        tell(nodes)


_BLANK = frozenset({np.zeros_like, np.empty_like})
_INERT_ARRAYS = (InertNode, UnreadNode)


def _is_operand(value: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> bool:
    """Whether a function has handed an operand back."""
    for i in edges:  # noqa: SIM110 (a generator costs as much as the operation)
        if args[i].plain is value:
            return True
    return False


def _as_view(value: Any, args: tuple[Any, ...], edges: tuple[int, ...], active: bool) -> tuple[Any, bool]:
    """A result that may be a view of an operand, as an array of its own; and whether an adjoint may have to pass it."""
    if value.base is None:
        value = value.view()
    if not active:  # a node may be written into the buffer later; if this view is read-only, through the operand
        owner = owner_of(value)
        may_change = owner.flags.writeable if isinstance(owner, ndarray) and not is_deriving() else value.flags.writeable
        active = may_change and any(type(args[i].plain) is ndarray and owner_of(args[i].plain) is owner for i in edges)
    return value, active


def _wrapped(value: Any, active: bool) -> Any:
    """A value as a node without history; integers and booleans are always inert."""
    kind = value.dtype.kind if hasattr(value, "dtype") else "O"
    if kind not in "biufc":
        raise TypeError(f"the result, a {type(value).__name__}, holds no numbers; compute with node.value where that is meant")
    kinds = (
        UNREADS if kind in "biu" and is_following() and not is_tracing() else OPERATIONAL if active and kind in "fc" else INERTS
    )
    value = plainly(value)
    if isinstance(value, np.ndarray):
        value = value.view(np.ndarray) if type(value) is not np.ndarray else value
        node: Any = new_node(value, kinds[0])
        node.plain = value
    else:
        node = scalar(value, kinds[1])
    if kinds is UNREADS:
        unread[id(node)] = ref(node)
    return node


def _outputs(
    value: Any,
    function: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
    edges: tuple[int, ...],
    active: bool,
) -> Any:
    """Nodes that share one record. A named tuple (``slogdet``) stays one; None stays None."""
    joint = Joint()
    value = _apart(value, args, edges)
    joint.plain = tuple(value)
    joint.function, joint.args, joint.options, joint.edges = function, args, options, edges
    joint.tick = next_tick()
    joint._operands = None
    source_lines.made_at(joint)
    nodes = [fill(_wrapped(part, active), operations.output(k), (joint,), (0,)) for k, part in enumerate(value)]
    if operations.counts(function, args, edges):
        _notify_counted(tuple(nodes))
    return type(value)(*nodes) if hasattr(value, "_fields") else type(value)(nodes)


def _apart(values: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> Any:
    """Several outputs; those that share memory with an operand are copied. Only a user's primitive returns such ones."""
    owners = {id(owner_of(args[i].plain)) for i in edges if type(args[i].plain) is ndarray}
    shared = [type(part) is ndarray and id(owner_of(part)) in owners for part in values]
    if not any(shared):
        return values
    parts = [part.copy() if shares else part for part, shares in zip(values, shared, strict=True)]
    return type(values)(*parts) if hasattr(values, "_fields") else parts


def _created(
    opresult: ArrayLike,
    opname: str,
    operand_a: Any,
    operand_b: Any = None,
    name: str | None = None,
) -> Any:
    """Make the node of an operation whose result is already known; shown as ``OperationalNode.create_using``.

    Parameters
    ----------
    opresult : array_like
        The value of the operation; integers and booleans become float64 if the operation has a derivative.
    opname : str
        The name of an operation of one or two operands (``"exp"``, ``"add"``); a ValueError if none has it.
    operand_a, operand_b : array_like or Node
        The operands; `operand_b` is None for a unary operation.
    name : str, optional
        A name for the node.

    Returns
    -------
    OperationalNode

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable([1.0, 2.0])
    >>> cg.OperationalNode.create_using([2.0, 4.0], "add", x, x).opname
    'add'
    """
    function = operations.function_named(opname)
    if function is None:
        raise ValueError(f"no operation is called {opname!r}; a new one is declared with cg.primitive")
    args = (operand_a,) if operand_b is None else (operand_a, operand_b)
    result = np.asarray(opresult)
    if function not in operations.PIECEWISE and result.dtype.kind in "biu":
        result = result.astype(float)  # as the operation on variables would have given
    node = attach(result[()], function, args)
    node._name = name
    return node


OperationalNode.create_using = _created


def adopted(value: Any) -> Any:
    """An array of objects with nodes in it, as one node; others as they are."""
    if type(value) is not ndarray or not value.dtype.hasobject:
        return value
    elements = value.ravel().tolist()
    if not any(isinstance(element, Value) for element in elements):
        return value
    return np.reshape(np.stack([e if isinstance(e, Value) else np.asarray(e) for e in elements]), value.shape)


def concrete(node: Any) -> Any:
    """A node to hand to the user: of a tracer a recorded copy over real memory, unless this is within another operator."""
    if is_tracing() or node.level or not is_tracer(node):
        return node
    return attach(operations.copy(node.plain, order="K"), operations.copy, (node,), {"order": "K"})


def inert(value: Any) -> Any:
    """A value as a node without operands that no adjoint passes."""
    node = fill(_wrapped(value, False), None, (), ())
    if type(node) in READ:
        use(node)
    return node
