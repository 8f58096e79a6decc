"""The kinds of nodes. Each kind is a class, because a class check is the cheapest test.

=================  =============================================================================
VariableNode       a leaf to differentiate with respect to; may be updated in place
ConstantNode       a leaf that never changes; no cotangent reaches it
OperationalNode    the result of an operation, or a fillable array (``cg.zeros``) without operands
ScalarNode         an OperationalNode where NumPy returns a scalar: ``s += 1`` rebinds the name
InertNode          an OperationalNode without cotangent: of comparisons, floor, or constants only
UntrackedNode      an InertNode of integers or booleans that no operation or guard has read yet
IndexNode          an InertNode of integers or booleans computed from an integer placeholder
PlaceholderNode    a leaf whose value is fed when the graph is run again (see `executor`)
ArgumentNode       an argument tracer of a differentiated function
ArgumentScalarNode an ArgumentNode for a number: ``s += 1`` rebinds the name
BlankNode          a fillable array of zeros that has not been used yet (``cg.zeros``)
MultiOutput        not a node: the record of an operation with several outputs
=================  =============================================================================
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import ops
from ..context import automatic_name, default_float, is_recording, sealed_until
from ..frames import source_lines
from ..storage import TRACERS
from ..tracing import LeakError, is_compiling, is_tracing
from .node import (
    ConstantNode,
    InertNode,
    Node,
    OperationalNode,
    Value,
    copy_location,
    describe,
    ndarray,
    new_leaf,
    new_node,
    new_view,
    next_sequence_number,
    operand_nodes,
    plain_array,
    set_history,
    snapshot,
)
from .traced_values import TransformTracer, define_tracer, is_python_number, reported_class

_array, _asarray = np.array, np.asarray  # NumPy's own functions, before `compgraph.interception` patches the names

# Called before each variable or placeholder is made, for example to let SciPy's functions dispatch to nodes.
variable_hooks: list[Callable[[], None]] = []


class VariableNode(Node):
    """A leaf of the graph to differentiate with respect to. Created by `variable`."""

    __slots__ = ()
    kind = "var"
    noun = "variable"

    @classmethod
    def create_using(
        cls, value: ArrayLike, name: str | None = None, *, dtype: DTypeLike | None = None, copy: bool = True
    ) -> VariableNode:
        """Make a variable from a value; see `variable`."""
        if not copy and isinstance(value, Value):
            raise ValueError("copy=False cannot share the memory of a node, which belongs to its graph. Pass node.value")
        for hook in variable_hooks:
            hook()
        array = plain_array(value)
        target = np.dtype(dtype) if dtype is not None else (default_float() if array.dtype.kind in "biu" else array.dtype)
        if target.kind not in "fc":
            raise TypeError(f"a variable must be floating or complex to have derivatives, not {target}")
        if not copy and isinstance(value, ndarray) and target != array.dtype:
            raise ValueError(f"copy=False, but {array.dtype} must be converted to {target}. Convert it first, or leave out copy=")
        array = _array(array, dtype=target, copy=True if copy else None)
        node: VariableNode = new_leaf(array, cls, name if name is not None else automatic_name(cls.kind))
        return node

    def update(self, write: Callable[[np.ndarray[Any, Any]], object], values: tuple[Any, ...]) -> VariableNode:
        """Update the variable's own array by ``write(raw_value)`` and give it a sequence number younger than its readers'.

        `values` are the written values; nodes among them raise.
        """
        if is_recording() and any(isinstance(v, Value) for v in values):
            raise TypeError(
                f"a node cannot be written into variable {self.name!r}, which is a leaf of the graph and has no operands. To "
                "update it by plain numbers, write node.value, or write inside `with cg.no_graph():`. To write nodes, use a "
                "copy: np.copy(variable)"
            )
        require_unsealed(self)
        if not self.raw_value.flags.writeable:
            write(self.raw_value)  # NumPy raises
            return self
        source_lines.set_line(self)
        self.sequence_number = next_sequence_number()  # also before the write, which may fail after changing a part
        try:
            write(self.raw_value)
        finally:
            self.sequence_number = next_sequence_number()  # other threads may have read in between
        return self


def require_unsealed(root: Any) -> None:
    """Raise if a function that runs twice (a checkpoint) would write into a node made before the function."""
    if root.sequence_number <= sealed_until():
        raise TypeError(
            f"checkpoint: the function writes into the {describe(root)}, which was made outside of it. It runs again in the "
            "backward pass, so it would write twice. Copy the array inside the function (np.copy)"
        )


class PlaceholderNode(Node):
    """A leaf of the graph whose value is fed when the graph is run again. Created by `placeholder`.

    Attributes
    ----------
    declared_shape : tuple of int or None
        Its shape, as passed to `placeholder`; None for an axis of any length.
    """

    __slots__ = ("declared_shape",)
    kind = "placeholder"
    noun = "placeholder"

    declared_shape: tuple[int | None, ...]

    @property
    def declared(self) -> tuple[int | None, ...]:
        """The former name of `declared_shape`."""
        warnings.warn("PlaceholderNode.declared is now PlaceholderNode.declared_shape", DeprecationWarning, stacklevel=2)
        return self.declared_shape


class InertPlaceholderNode(PlaceholderNode):
    """A placeholder of integers or booleans, which has no cotangent.

    It is a tracer at the top level too, as are integers and booleans computed from it (`IndexNode`). A plain array that is
    indexed by one (``K[placeholder]``) therefore calls ``__array__``, which records a guard.
    """

    __slots__ = ()
    is_always_traced = True


class ScalarNode(OperationalNode):
    """An OperationalNode where NumPy returns a scalar: it is 0-d, and in-place operators rebind the name."""

    __slots__ = ()
    __class__ = reported_class
    is_scalar = True
    noun = "value"


class ArgumentNode(OperationalNode):
    """An argument tracer: the value of an argument while a function is differentiated."""

    __slots__ = ()
    kind = "input"
    noun = "value"

    @classmethod
    def of(cls, node: Any) -> Any:
        """An argument node with the value and history of `node`."""
        argument_node: Any = new_node(np.asarray(node.raw_value), ArgumentScalarNode if node.is_scalar else cls)
        argument_node.raw_value = node.raw_value
        return set_history(argument_node, node.function, node.args, node.parent_argnums, node.options)


class ArgumentScalarNode(ArgumentNode):
    """An ArgumentNode for a number: in-place operators rebind its name."""

    __slots__ = ()
    __class__ = reported_class
    is_scalar = True


class InertScalarNode(InertNode):
    """An InertNode where NumPy returns a scalar."""

    __slots__ = ()
    __class__ = reported_class
    is_scalar = True


class IndexNode(InertNode):
    """An InertNode of integers or booleans computed from an integer placeholder; see `InertPlaceholderNode`."""

    __slots__ = ()
    display_class = InertNode
    is_always_traced = True


class IndexScalarNode(InertScalarNode):
    """An IndexNode where NumPy returns a scalar."""

    __slots__ = ()
    __class__ = reported_class
    display_class = InertScalarNode
    is_always_traced = True


class BlankNode(OperationalNode):
    """A fillable array of zeros that has not been used yet. It is never a tracer.

    Code without graph support can therefore fill it. `mark_used` detects that at the first use and raises. Otherwise it changes
    the node's class to the one in `USED_CLASS_OF`.
    """

    __slots__ = ()
    display_class = OperationalNode


class InertBlankNode(InertNode):
    """A BlankNode made like another node (``np.zeros_like(x)``), which has no cotangent yet."""

    __slots__ = ()
    display_class = InertNode


class UntrackedNode(InertNode):
    """An InertNode of integers or booleans that no operation or guard has read yet.

    A plain array may have been indexed by it (``K[np.argsort(x)]``), where NumPy does not dispatch. So freed untracked nodes are
    reported (`on_untracked_freed`), and `untracked` holds the living ones. The first reader makes it an InertNode.
    """

    __slots__ = ()
    display_class = InertNode

    def __del__(self) -> None:
        _notify_freed(self)


class UntrackedScalarNode(InertScalarNode):
    """An UntrackedNode where NumPy returns a scalar."""

    __slots__ = ()
    display_class = InertScalarNode

    def __del__(self) -> None:
        _notify_freed(self)


# Living untracked nodes by id: weak references, or their guards, which have an attribute `is_read`.
untracked: dict[int, Any] = {}
on_untracked_freed: list[Callable[[Any], None]] = []  # called with each untracked node that is about to be freed


def _notify_freed(node: NDArray[Any]) -> None:
    if type(untracked.pop(id(node), None)) is weakref.ref:  # views that NumPy made without dispatch have no entry
        for callback in on_untracked_freed:
            callback(node)


class MultiOutput:
    """The record of an operation with several outputs. The function of each output is an `ops.Output`, its operand this record.

    The attributes are those of `Node`; `raw_value` is the tuple of all outputs.
    """

    __slots__ = (
        "__weakref__", "_operands", "_scope", "args", "code", "function", "instruction", "options", "parent_argnums",
        "raw_value", "recipe", "sequence_number",
    )  # fmt: skip
    level = 0
    memory = None

    code: Any
    instruction: int

    _operands: tuple[Node, ...] | None
    _scope: tuple[str, ...]

    raw_value: Any
    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    parent_argnums: tuple[int, ...]
    recipe: Any
    sequence_number: int

    @property
    def opname(self) -> str:
        """The name of the operation."""
        return ops.opname_of(self.function)

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the scopes of the call, outermost first."""
        return getattr(self, "_scope", ())

    @property
    def line(self) -> str | None:
        """The user's line of the call; None if lines were not recorded."""
        return source_lines.format_line(self.code, self.instruction)

    @property
    def operands(self) -> tuple[Node, ...]:
        """All operands, as nodes."""
        return tuple([snapshot(a, self.sequence_number) for a in operand_nodes(self)])


TransformTracer.node_kind = OperationalNode
for _kind in (
    OperationalNode, ScalarNode, ArgumentNode, ArgumentScalarNode, InertNode, InertScalarNode, IndexNode, IndexScalarNode
):  # fmt: skip
    define_tracer(_kind)
define_tracer(VariableNode, update=VariableNode.update)
define_tracer(PlaceholderNode, __slots__=PlaceholderNode.__slots__)
define_tracer(InertPlaceholderNode, __slots__=PlaceholderNode.__slots__)


def with_tracers(kinds: Iterable[Any]) -> frozenset[Any]:
    """A set of node classes with their tracer classes."""
    kinds = frozenset(kinds)
    return kinds | {TRACERS[kind] for kind in kinds & TRACERS.keys()}


ACTIVE = with_tracers({VariableNode, PlaceholderNode, OperationalNode, ScalarNode, ArgumentNode, ArgumentScalarNode, MultiOutput})
ARGUMENTS = with_tracers({ArgumentNode, ArgumentScalarNode})
TRACKED_CLASS_OF: dict[Any, Any] = {UntrackedNode: InertNode, UntrackedScalarNode: InertScalarNode}  # the class once read
INERT = with_tracers(
    {ConstantNode, InertPlaceholderNode, InertNode, InertScalarNode, InertBlankNode, UntrackedNode, UntrackedScalarNode,
     IndexNode, IndexScalarNode}
)  # fmt: skip
VARYING = with_tracers({VariableNode, PlaceholderNode, InertPlaceholderNode})  # leaves whose values may change between runs
USED_CLASS_OF_BLANK: dict[Any, Any] = {BlankNode: OperationalNode, InertBlankNode: InertNode}
USED_CLASS_OF: dict[Any, Any] = {**USED_CLASS_OF_BLANK, **TRACKED_CLASS_OF}  # the class after the first use
LEFT, RIGHT, BOTH = (0,), (1,), (0, 1)  # positions of operands that are nodes


SCALARS = with_tracers({ScalarNode, InertScalarNode, UntrackedScalarNode, IndexScalarNode, ArgumentScalarNode})
# Pairs of the class for arrays and the class where NumPy returns scalars.
OPERATIONAL_CLASSES: tuple[Any, Any] = (OperationalNode, ScalarNode)
INERT_CLASSES: tuple[Any, Any] = (InertNode, InertScalarNode)
UNTRACKED_CLASSES: tuple[Any, Any] = (UntrackedNode, UntrackedScalarNode)
INDEX_CLASSES: tuple[Any, Any] = (IndexNode, IndexScalarNode)
TRACER_CLASSES = frozenset(TRACERS.values())


def mark_used(node: Any) -> None:
    """Change a blank or untracked node to an ordinary one before its first use.

    Raises a LeakError if code without graph support filled a blank array.
    """
    cls = type(node)
    node.__class__ = USED_CLASS_OF.get(cls, cls)  # another thread may have been first
    if cls in TRACKED_CLASS_OF:
        entry = untracked.pop(id(node), None)
        if type(entry) is not weakref.ref and entry is not None:
            entry.is_read = True
    elif node.raw_value.any():
        node.__class__ = cls
        location = "" if node.line is None else f" ({node.line})"
        raise LeakError(
            f"the {describe(node)}{location} was filled by code outside of the graph, such as SciPy's C code with output=, so "
            "its derivative would be lost. Use functions that keep the graph (NumPy's, or cg.primitive with a rule). If plain "
            "numbers are intended, pass blank.value or a plain array as output"
        )


def rebuild_node(
    cls: Any,
    plain: ArrayLike,
    function: object,
    args: tuple[Any, ...],
    options: dict[str, Any],
    sequence_number: float,
    name: str | None,
) -> Any:
    """Make a node or MultiOutput with a given history, from a pickle or for another node."""
    if cls is MultiOutput:
        node: Any = MultiOutput()
    else:
        cls = TRACKED_CLASS_OF.get(cls, getattr(cls, "node_kind", cls))
        # A trace for compilation releases values later, which nodes with memory of their own do not allow.
        node = TRACERS[cls]() if is_compiling() or cls.is_always_traced else new_view(np.asarray(plain), cls)
        node._name, node.memory = name, None
    node.raw_value, node.function, node.args, node.options, node.sequence_number = plain, function, args, options, sequence_number
    node.parent_argnums = tuple([i for i, a in enumerate(args) if isinstance(a, (Value, MultiOutput))])
    node._operands = None
    return node


def with_operands(item: Any, args: tuple[Any, ...], plain: Any = None) -> Any:
    """A node or MultiOutput like `item` with other operands, and value `plain` if given; without write log."""
    name = None if type(item) is MultiOutput else item._name
    plain = item.raw_value if plain is None else plain
    return copy_location(item, rebuild_node(type(item), plain, item.function, args, item.options, item.sequence_number, name))


def new_argument(argument: NDArray[Any]) -> Any:
    """Make an argument node over a copy of an argument, into which the function may write; NumPy scalars are not copied."""
    if isinstance(argument, np.generic):
        node = new_leaf(_asarray(argument), ArgumentScalarNode, None)
        if type(argument) in ops.FLOAT_SCALARS:
            node.raw_value = argument
        return node
    return new_leaf(ops.copy_with_layout(np.asarray(argument)), ArgumentNode, None)


def is_python_arithmetic(value: Any) -> bool:
    """Whether a value is computed by operators on Python numbers alone, so that Python would use its own floats."""
    if type(value) not in _SCALAR_RESULTS:
        return is_python_number(value)
    pending, visited = [value], set[int]()
    while pending:
        part = pending.pop()
        if is_python_number(part):
            continue
        if type(part) not in _SCALAR_RESULTS or getattr(part, "function", None) not in ops.PYTHON_ARITHMETIC:
            return False
        if id(part) not in visited:
            visited.add(id(part))
            pending.extend(part.args)
    return True


_SCALAR_RESULTS = with_tracers({ScalarNode, InertScalarNode, IndexScalarNode})


def new_fillable_leaf(array: np.ndarray[Any, Any], name: str | None, is_blank: bool = False) -> Any:
    """A node without operands over a new array to be filled, as ``cg.zeros`` returns it."""
    return new_leaf(array, BlankNode if is_blank and not is_tracing() else OperationalNode, name)
