"""Nodes: NumPy arrays that store the operation that made them.

A node *is* an ``np.ndarray``. It stores the function that computed it, the operands, and a sequence number; this is the whole
graph. Nodes are independent of derivatives and of NumPy's protocols. The package `protocols` installs the methods through which
NumPy's calls reach `bind`.

This module defines the base class, constants and results; `node_kinds` defines the other classes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import ops
from ..array_types import Operand
from ..context import automatic_name, open_scopes, sync_variables, with_default_dtype
from ..frames import source_lines
from ..storage import TRACERS, Layout, Memory, root_of, value_at
from ..tracing import is_tracing

ndarray = np.ndarray
_asarray = np.asarray  # NumPy's own function, before `compgraph.interception` patches the name
new_view: Callable[..., Any] = ndarray.view
next_sequence_number = itertools.count(1).__next__
NO_OPTIONS: dict[str, Any] = {}


class Origin(NamedTuple):
    """The origin of a derivative: ``derive(output, wrt)[position]`` recomputes it, also from the nodes of another graph."""

    derive: Callable[..., Any]
    output: Any
    wrt: tuple[Any, ...]
    position: int


if TYPE_CHECKING:
    _Base = np.ndarray[tuple[int, ...], np.dtype[Any]]  # `protocols` installs an array's operators and methods
else:
    _Base = object


class Value(_Base):
    """A value in a computation graph: the operators, methods and attributes of nodes.

    A mixin without memory: `raw_value` holds the NumPy value. The package `protocols` installs the operators and methods.

    Attributes
    ----------
    raw_value : numpy.ndarray or numpy.generic
        The NumPy value without graph, on which rules and NumPy's own code compute.
    function : callable or None
        The function that computed the value from `args`; None for a leaf.
    args : tuple
        The operands: nodes, and plain arrays as of the call (see `save_operand`). For an output of an operation with several
        outputs, only the `MultiOutput`.
    options : dict
        Keyword arguments of `function`.
    parent_argnums : tuple of int
        The positions in `args` of nodes, or of the MultiOutput.
    sequence_number : int
        The moment at which the node was made, or a variable was last written. Operands have smaller numbers, except for
        variables that were updated after they were read.
    memory : Memory or None
        For a root, the log of writes into its buffer; None before the first write, and for views (see `write_log`).
    code, instruction : code object, int
        The position at which the node was made; see `line`.
    origin : Origin
        The origin of a derivative; unset for other nodes.
    recipe : Recipe or int
        The recompute recipe, once a guard depends on the node; otherwise unset. An integer if the node depends only on arguments
        of operators; see `guard_logs`.
    untracked_read : int
        The moment at which an unrecorded operation first read the node's present value; unset if none did.
    level : int
        The trace level of a value with a tangent or a batch, larger for inner transforms; 0 for other nodes.
    is_scalar : bool
        Whether NumPy would have returned a scalar, into which nothing can be written.
    """

    __slots__ = ()

    level: int = 0  # higher levels are processed first
    is_scalar: bool = False
    kind: ClassVar[str] = "node"
    noun: ClassVar[str] = "value"  # describes a leaf in messages
    display_class: ClassVar[type | None] = None  # the class that its repr shows, if not its own
    is_always_traced: ClassVar[bool] = False  # whether such values are tracers at the top level too; see `node_kinds`
    trace_kind: ClassVar[str | None] = None  # what the value carries at its level: "tangents", "jacobian", "batch"

    raw_value: Any
    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    parent_argnums: tuple[int, ...]
    sequence_number: int
    memory: Any
    code: Any
    instruction: int
    origin: Origin
    recipe: Any
    untracked_read: int
    _name: str | None
    _scope: tuple[str, ...]  # unset outside of scopes

    __hash__ = object.__hash__  # type: ignore[assignment]

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The plain array of this node, which shares its memory."""
        require_history(self)
        return np.asarray(self.raw_value)

    @property
    def opname(self) -> str | None:
        """The name of the operation that made the node; None for a leaf."""
        require_history(self)
        function = self.function
        if isinstance(function, ops.Output):
            function = self.args[0].function
        return None if function is None else ops.opname_of(function)

    @property
    def name(self) -> str:
        """The name set by the user, or one made from the operation's name and a process-wide count."""
        require_history(self)
        if self._name is None:
            self._name = automatic_name(self.opname or self.kind)
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        require_history(self)
        self._name = name

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the scopes in which the node was made, outermost first; see `compgraph.scope`."""
        require_history(self)
        return getattr(self, "_scope", ())

    @property
    def line(self) -> str | None:
        """The user's line that made the node, or last updated a variable; None if lines were not recorded."""
        require_history(self)
        return source_lines.format_line(self.code, self.instruction)

    @property
    def operands(self) -> tuple[Node, ...]:
        """All operands, as nodes with the values that were read. Plain arrays become ConstantNodes on first access."""
        require_history(self)
        record = self.args[0] if isinstance(self.function, ops.Output) else self
        return tuple([snapshot(a, record.sequence_number) for a in operand_nodes(record)])

    @property
    def operand_a(self) -> Node | None:
        """The first operand; None for a leaf."""
        return next(iter(self.operands), None)

    @property
    def operand_b(self) -> Node | None:
        """The second operand; None for a leaf or a unary operation."""
        return next(iter(self.operands[1:]), None)

    def __repr__(self) -> str:
        kind = (self.display_class or type(self)).__name__
        require_history(self)
        body = np.array2string(np.asarray(self.raw_value), separator=", ", threshold=50, prefix=f"{kind}(")
        return f"{kind}({body}, name={self.name!r}, dtype={self.dtype})"

    def __str__(self) -> str:
        require_history(self)
        return str(np.asarray(self.raw_value))


class Node(Value, Layout):
    """An array that is part of a computation graph.

    It is not instantiated directly: see `variable`, `constant`, and NumPy functions applied to nodes.
    """

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    if TYPE_CHECKING:  # the operators that `protocols` installs

        def __add__(self, other: object, /) -> OperationalNode: ...
        def __radd__(self, other: object, /) -> OperationalNode: ...
        def __sub__(self, other: object, /) -> OperationalNode: ...  # type: ignore[override]
        def __rsub__(self, other: object, /) -> OperationalNode: ...  # type: ignore[override]
        def __mul__(self, other: object, /) -> OperationalNode: ...
        def __rmul__(self, other: object, /) -> OperationalNode: ...
        def __truediv__(self, other: object, /) -> OperationalNode: ...  # type: ignore[override]
        def __rtruediv__(self, other: object, /) -> OperationalNode: ...
        def __floordiv__(self, other: object, /) -> OperationalNode: ...  # type: ignore[override]
        def __rfloordiv__(self, other: object, /) -> OperationalNode: ...
        def __mod__(self, other: object, /) -> OperationalNode: ...
        def __rmod__(self, other: object, /) -> OperationalNode: ...
        def __pow__(self, other: object, mod: None = None, /) -> OperationalNode: ...
        def __rpow__(self, other: object, mod: None = None, /) -> OperationalNode: ...
        def __matmul__(self, other: object, /) -> OperationalNode: ...
        def __rmatmul__(self, other: object, /) -> OperationalNode: ...
        def __and__(self, other: object, /) -> OperationalNode: ...
        def __rand__(self, other: object, /) -> OperationalNode: ...
        def __or__(self, other: object, /) -> OperationalNode: ...
        def __ror__(self, other: object, /) -> OperationalNode: ...
        def __xor__(self, other: object, /) -> OperationalNode: ...
        def __rxor__(self, other: object, /) -> OperationalNode: ...
        def __lshift__(self, other: object, /) -> OperationalNode: ...
        def __rlshift__(self, other: object, /) -> OperationalNode: ...
        def __rshift__(self, other: object, /) -> OperationalNode: ...
        def __rrshift__(self, other: object, /) -> OperationalNode: ...
        def __divmod__(self, other: object, /) -> tuple[OperationalNode, OperationalNode]: ...
        def __rdivmod__(self, other: object, /) -> tuple[OperationalNode, OperationalNode]: ...
        def __lt__(self, other: object, /) -> OperationalNode: ...
        def __le__(self, other: object, /) -> OperationalNode: ...
        def __gt__(self, other: object, /) -> OperationalNode: ...
        def __ge__(self, other: object, /) -> OperationalNode: ...
        def __eq__(self, other: object, /) -> OperationalNode: ...  # type: ignore[override]
        def __ne__(self, other: object, /) -> OperationalNode: ...  # type: ignore[override]
        def __neg__(self) -> OperationalNode: ...
        def __pos__(self) -> OperationalNode: ...
        def __abs__(self) -> OperationalNode: ...
        def __invert__(self) -> OperationalNode: ...
        def __getitem__(self, index: object, /) -> OperationalNode: ...


class ConstantNode(Node):
    """A leaf whose value never changes, and which has no cotangent. Created by `constant`."""

    __slots__ = ()
    kind = "const"
    noun = "constant"

    @classmethod
    def create_using(cls, value: ArrayLike, name: str | None = None) -> ConstantNode:
        """Make a constant from a value; see `constant`."""
        array = plain_array(value).copy("K")
        array.flags.writeable = False
        return cls.wrap(array, name if name is not None else automatic_name(cls.kind))

    @classmethod
    def wrap(cls, value: object, name: str | None = None) -> ConstantNode:
        """Make a constant that shares the memory of a plain operand."""
        node: ConstantNode = new_leaf(np.asarray(value), cls, name)
        return node


class OperationalNode(Node):
    """The result of an operation on nodes, or a fillable array."""

    __slots__ = ()
    kind = "buffer"
    noun = "array to be filled"

    create_using: ClassVar[Callable[..., Any]]  # set by `bind`


class InertNode(OperationalNode):
    """An OperationalNode without cotangent: piecewise constant, or computed from constants only."""

    __slots__ = ()
    noun = "value"


def set_history(
    node: Any, function: object, args: tuple[Any, ...], parent_argnums: tuple[int, ...], options: dict[str, Any] = NO_OPTIONS
) -> Any:
    """Set the history of a new node: function, operands, sequence number and line."""
    node.function = function
    node.args = args
    node.parent_argnums = parent_argnums
    node.options = options
    node.sequence_number = next_sequence_number()
    node.memory = node._name = node._operands = None
    source_lines.set_line(node)
    return node


def new_node(array: Operand, cls: Any) -> Any:
    """A value without history: a tracer within an operator, otherwise a node of class `cls` over `array`."""
    sync_variables()
    return TRACERS[cls]() if is_tracing() or cls.is_always_traced else new_view(array, cls)


def new_leaf(array: np.ndarray[Any, Any], cls: type[Node], name: str | None) -> Any:
    """A value without operands over `array`."""
    node: Any = new_view(array, cls) if cls is ConstantNode else new_node(array, cls)
    node.raw_value = array
    set_history(node, None, (), ())
    node._name = name
    set_scope(node)
    return node


def set_scope(result: object, path: tuple[str, ...] | None = None) -> None:
    """Store the open scopes, or `path`, in a new node or each of several new nodes; None is skipped."""
    path = open_scopes() if path is None else path
    if path:
        for node in result if isinstance(result, (tuple, list)) else (result,):
            if node is not None:
                node._scope = path
                if isinstance(node.function, ops.Output):
                    node.args[0]._scope = path


def copy_location(other: Any, node: Any) -> Any:
    """Return `node`, a node or MultiOutput, with the line and scopes of `other`."""
    node.code, node.instruction, node._scope = other.code, other.instruction, other.scope
    return node


def plain_array(value: Any) -> np.ndarray[Any, Any]:
    """Convert an array_like of numbers to the plain array of a leaf; raises a TypeError for other contents."""
    if isinstance(value, Value):
        return value.value
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        raise TypeError(f"a {type(value).__name__} has operators of its own, which are not recorded; pass np.asarray(value)")
    require_computed(value, "the value of a node")
    array = with_default_dtype(_asarray(value), value)
    if array.dtype.kind not in "biufc":
        advice = ". The value comes before the name" if isinstance(value, str) else ""
        raise TypeError(f"a node holds numbers, not dtype {array.dtype}{advice}")
    return array


def operand_nodes(record: Any) -> tuple[Node, ...]:
    """All operands of a node or MultiOutput as nodes; plain ones become constants, once, and `args` keeps the originals."""
    if record._operands is None:
        operand_count = ops.operand_count(record.function, len(record.args))
        record._operands = tuple(
            a if isinstance(a, Value) else _constant_for(a, record)
            for i, a in enumerate(record.args)
            if isinstance(a, Value) or (a is not None and i < operand_count)
        )
    operands: tuple[Node, ...] = record._operands
    return operands


def _constant_for(value: Operand, record: object) -> ConstantNode:
    """A plain operand of a node or MultiOutput as a constant with that node's line."""
    node: ConstantNode = copy_location(record, ConstantNode.wrap(value))
    return node


def snapshot(node: Any, sequence_number: float, value: NDArray[Any] | None = None) -> Any:
    """`node` as of `sequence_number`: the node itself, or a recorded copy of its value then if later writes changed it.

    The copy's sequence number lies just before `sequence_number`. `value` is the value of the copy, if the caller has it.
    """
    memory = root_of(node).memory if type(node.raw_value) is ndarray else None
    if type(memory) is not Memory or memory.count_before(sequence_number) == len(memory.log):
        return node
    plain = value_at(node, sequence_number) if value is None else value
    copy = new_node(plain, OperationalNode if plain.dtype.kind in "fc" else InertNode)
    copy.raw_value = plain
    set_history(copy, ops.copy, (node,), (0,), {"order": "K"})
    copy.sequence_number = sequence_number - 0.25
    return copy


# Functions that try to recover the history of a node, and return whether they did; `graph` appends one.
history_recoverers: list[Callable[[Value], bool]] = []


def lost_history_error(node: NDArray[Any]) -> TypeError:
    """Make the error for a node that NumPy made without dispatch; its slots are empty."""
    advice_for_dot = (
        " A method of a plain array does not dispatch: for X.dot(x) write X @ x or np.dot(X, x)." if node.base is None else ""
    )
    return TypeError(
        "this array is a view or copy of a node that NumPy made outside of the graph, so its history is lost. Make it by a "
        "NumPy function or method (np.copy, x[...], x.reshape), or by a function of compgraph where NumPy does not dispatch "
        "(cg.asarray, cg.r_, cg.c_). If a plain array is intended, use np.asarray(x)." + advice_for_dot
    )


def require_history(*nodes: object) -> None:
    """Raise `lost_history_error` for a node without history."""
    for node in nodes:
        if isinstance(node, Value) and not has_history(node):
            raise lost_history_error(node)


def has_history(node: Value) -> bool:
    """Whether a node has a history, or its history was recovered."""
    return hasattr(node, "raw_value") or any(recover(node) for recover in history_recoverers)


class BatchedValueError(TypeError):
    """A value differs between the batch elements of a vmap where one value is required."""

    __module__ = "compgraph"  # the public module, for tracebacks


def require_unbatched(operation: str, *values: object) -> None:
    """Raise a BatchedValueError for a value that differs between the batch elements of a vmap."""
    for value in values:
        if isinstance(value, Value) and value.trace_kind == "batch":
            raise BatchedValueError(
                f"{operation} is not supported within vmap for the {describe(value)}, which differs between the batch elements. "
                "Move it out of the function that is passed to vmap, or loop over the batch elements in Python"
            )


def describe(node: Any) -> str:
    """Describe a node for messages: its operation, its name if set, shape and dtype."""
    require_history(node)
    noun = node.noun if node.function is None else f"result of {node.opname}"
    name = f" {node._name!r}" if node._name is not None else ""
    return f"{noun}{name} (shape {node.shape}, {node.dtype})"


_EAGER_TYPES: frozenset[Any] = frozenset(
    {np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, type(None), str}
)


BLOCKWISE_ADVICE = "For a loss that is a mean over rows, autodiff.distributed.value_and_grad computes the gradient block by block"


def require_computed(value: object, role: str) -> None:
    """Raise a TypeError for a lazy array, which a conversion to NumPy would compute and load completely.

    Parameters
    ----------
    value : object
        The value to be converted to an array; lists and tuples are searched.
    role : str
        Its role in the message: ``"an operand"``.
    """
    cls = type(value)
    if cls in _EAGER_TYPES or isinstance(value, (np.ndarray, np.generic)):
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            if type(part) not in _EAGER_TYPES:
                require_computed(part, role)
    elif _is_lazy(value):
        raise TypeError(
            f"{role} is a {cls.__module__.partition('.')[0]} {cls.__name__}, which is not computed yet and would be loaded "
            f"completely. Use value.compute(), or compute only the needed part. {BLOCKWISE_ADVICE}"
        )


def _is_lazy(value: Any) -> bool:
    """Whether a value is a Dask collection, or another chunked array with a method `compute`."""
    cls = type(value)
    if hasattr(cls, "__dask_graph__"):
        try:
            return value.__dask_graph__() is not None  # None for xarray's arrays that are not lazy
        except AttributeError:  # xarray without Dask installed
            return False
    return hasattr(cls, "compute") and hasattr(value, "chunks")
