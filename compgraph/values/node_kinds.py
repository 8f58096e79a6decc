"""The kinds of node, told apart by their class, because a look at a class is the cheapest test there is.

================  =============================================================================
VariableNode      a leaf one differentiates with respect to; may be updated in place
ConstantNode      a leaf that never changes; no adjoint reaches it
OperationalNode   the result of an operation (or of ``cg.zeros`` and kin, without operands)
ScalarNode        an OperationalNode where NumPy would have returned a scalar: ``s += 1`` rebinds
InertNode         an OperationalNode no adjoint passes: of comparisons, floor, or constants only
UnreadNode        an InertNode of integers or booleans that no operation and no guard has read so far
IndexNode         an InertNode of integers or booleans that was computed from an integer placeholder
PlaceholderNode   a leaf whose value is given when the graph is run again (see `executor`)
InputNode         what stands in for an argument while a function is differentiated
InputScalarNode   an InputNode for a number: ``s += 1`` rebinds
BlankNode         an array of zeros that nobody has used so far (``cg.zeros``)
MultiOutput             no node: the record of an operation with several outputs
================  =============================================================================
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

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
from .tracers import TransformTracer, define_tracer, is_python_number, reported_class

_array, _asarray = np.array, np.asarray  # NumPy's own: the names are exchanged later, see `compgraph.interception`

before_variables: list[
    Callable[[], None]
] = []  # called before a variable is made: SciPy's functions, say, are taught to ask nodes


class VariableNode(Node):
    """A leaf of the graph that one differentiates with respect to. Made by `variable`."""

    __slots__ = ()
    kind = "var"
    what = "variable"

    @classmethod
    def create_using(
        cls, value: ArrayLike, name: str | None = None, *, dtype: DTypeLike | None = None, copy: bool = True
    ) -> VariableNode:
        """Make a variable from a value; see `variable`."""
        if not copy and isinstance(value, Value):
            raise ValueError("copy=False cannot share the memory of a node, which belongs to its graph; share node.value")
        for begin in before_variables:
            begin()
        array = plain_array(value)
        target = np.dtype(dtype) if dtype is not None else (default_float() if array.dtype.kind in "biu" else array.dtype)
        if target.kind not in "fc":
            raise TypeError(f"a variable must be floating or complex to have derivatives, not {target}")
        if not copy and isinstance(value, ndarray) and target != array.dtype:
            raise ValueError(f"copy=False, but {array.dtype} must be converted to {target}; convert it first, or copy")
        array = _array(array, dtype=target, copy=True if copy else None)
        node: VariableNode = new_leaf(array, cls, name if name is not None else automatic_name(cls.kind))
        return node

    def update(self, write: Callable[[np.ndarray[Any, Any]], object], values: tuple[Any, ...]) -> VariableNode:
        """Let ``write(plain)`` change the variable's own array; its sequence number is then younger than those of its readers.

        `values` is what is written, looked at only for nodes, which are refused.
        """
        if is_recording() and any(isinstance(v, Value) for v in values):
            raise TypeError(
                f"a node cannot be written into variable {self.name!r}: the variable is a leaf of the graph and "
                "would lose where its value came from. To update it by plain numbers, write inside "
                "`with cg.no_graph():`, or write node.value."
            )
        require_unsealed(self)
        if not self.raw_value.flags.writeable:
            write(self.raw_value)  # NumPy refuses
            return self
        source_lines.set_line(self)
        self.sequence_number = (
            next_sequence_number()
        )  # before the write too: one that fails or is interrupted may have changed a part
        try:
            write(self.raw_value)
        finally:
            self.sequence_number = next_sequence_number()  # other threads may have read between
        return self


def require_unsealed(root: Any) -> None:
    """Raise if a function that is run a second time (a checkpoint) would write into a node made before the function."""
    if root.sequence_number <= sealed_until():
        raise TypeError(
            f"checkpoint: the function writes into the {describe(root)}, which was made outside it; it runs again in the "
            "backward pass and would write twice. Copy the array inside the function (np.copy)"
        )


class PlaceholderNode(Node):
    """A leaf of the graph whose value is given when the graph is run again. Made by `placeholder`.

    Attributes
    ----------
    declared : tuple of int or None
        Its shape as the user declared it; None for an axis of any length.
    """

    __slots__ = ("declared",)
    kind = "placeholder"
    what = "placeholder"

    declared: tuple[int | None, ...]


class InertPlaceholderNode(PlaceholderNode):
    """A placeholder of integers or booleans, which no adjoint passes.

    It is a tracer at the top level too, as are integers and booleans computed from it (`IndexNode`). So a plain array that is
    indexed by one (``K[placeholder]``) calls ``__array__``, which notes a guard.
    """

    __slots__ = ()
    is_index = True


class ScalarNode(OperationalNode):
    """An OperationalNode where NumPy returns a scalar: it is 0-d, and in-place operators rebind the name."""

    __slots__ = ()
    __class__ = reported_class
    is_scalar = True
    what = "value"


class ArgumentNode(OperationalNode):
    """What stands in for an argument while a function is differentiated."""

    __slots__ = ()
    kind = "input"
    what = "value"

    @classmethod
    def of(cls, node: Any) -> Any:
        """An input with the value and history of `node`."""
        made: Any = new_node(np.asarray(node.raw_value), ArgumentScalarNode if node.is_scalar else cls)
        made.raw_value = node.raw_value
        return set_history(made, node.function, node.args, node.parent_argnums, node.options)


class ArgumentScalarNode(ArgumentNode):
    """An InputNode for a number: in-place operators rebind its name."""

    __slots__ = ()
    __class__ = reported_class
    is_scalar = True


class InertScalarNode(InertNode):
    """An InertNode where NumPy returns a scalar."""

    __slots__ = ()
    __class__ = reported_class
    is_scalar = True


class IndexNode(InertNode):
    """An InertNode of integers or booleans that was computed from an integer placeholder; see `InertPlaceholderNode`."""

    __slots__ = ()
    shown_as = InertNode
    is_index = True


class IndexScalarNode(InertScalarNode):
    """An IndexNode where NumPy returns a scalar."""

    __slots__ = ()
    __class__ = reported_class
    shown_as = InertScalarNode
    is_index = True


class BlankNode(OperationalNode):
    """An array of zeros, to be written into, that nobody has used so far. It is never a tracer.

    So code that does not know of the graph can fill it. `record.use` finds that at the first use, and raises; else the array
    becomes the ordinary kind that `USED` names.
    """

    __slots__ = ()
    shown_as = OperationalNode


class InertBlankNode(InertNode):
    """A BlankNode made like another node (``np.zeros_like(x)``), which no adjoint passes so far."""

    __slots__ = ()
    shown_as = InertNode


class UntrackedNode(InertNode):
    """An InertNode of integers or booleans that no operation and no guard has read so far.

    A plain array may have been indexed by it (``K[np.argsort(x)]``), and NumPy asks no node then. So it is told of what is freed
    unread (`on_untracked_freed`), and `untracked` finds what lives. The first who reads it makes it an InertNode.
    """

    __slots__ = ()
    shown_as = InertNode

    def __del__(self) -> None:
        _notify_freed(self)


class UntrackedScalarNode(InertScalarNode):
    """An UnreadNode where NumPy returns a scalar."""

    __slots__ = ()
    shown_as = InertScalarNode

    def __del__(self) -> None:
        _notify_freed(self)


# Living unread nodes by their id: weak references, or what `guards` keeps of them, an object with an attribute `is_read`.
untracked: dict[int, Any] = {}
on_untracked_freed: list[Callable[[Any], None]] = []  # called with each node that is about to be freed and was not read


def _notify_freed(node: Any) -> None:
    if type(untracked.pop(id(node), None)) is weakref.ref:  # a view that NumPy made without asking has not been entered
        for tell in on_untracked_freed:
            tell(node)


class MultiOutput:
    """The record of an operation with several outputs. The function of each output is an `ops.Output`, its operand this.

    The attributes are those of `Node`; `plain` is the tuple of all outputs.
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
        """The names of the scopes the operation was called in, the outermost first."""
        return getattr(self, "_scope", ())

    @property
    def line(self) -> str | None:
        """Where in the user's code the operation was called; None if lines were not recorded."""
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
    """Kinds of nodes, and the classes of their tracers."""
    kinds = frozenset(kinds)
    return kinds | {TRACERS[kind] for kind in kinds & TRACERS.keys()}


ACTIVE = with_tracers({VariableNode, PlaceholderNode, OperationalNode, ScalarNode, ArgumentNode, ArgumentScalarNode, MultiOutput})
ARGUMENTS = with_tracers({ArgumentNode, ArgumentScalarNode})
TRACKED: dict[Any, Any] = {UntrackedNode: InertNode, UntrackedScalarNode: InertScalarNode}  # what an unread node becomes
INERT = with_tracers(
    {ConstantNode, InertPlaceholderNode, InertNode, InertScalarNode, InertBlankNode, UntrackedNode, UntrackedScalarNode,
     IndexNode, IndexScalarNode}
)  # fmt: skip
VARYING = with_tracers({VariableNode, PlaceholderNode, InertPlaceholderNode})  # leaves that may have other values in a later run
BLANK: dict[Any, Any] = {BlankNode: OperationalNode, InertBlankNode: InertNode}
USED: dict[Any, Any] = {**BLANK, **TRACKED}  # what a node becomes when it is used
LEFT, RIGHT, BOTH = (0,), (1,), (0, 1)  # positions of operands that are nodes


SCALARS = with_tracers({ScalarNode, InertScalarNode, UntrackedScalarNode, IndexScalarNode, ArgumentScalarNode})
# The kinds of arrays, and of what NumPy returns scalars for.
OPERATIONAL: tuple[Any, Any] = (OperationalNode, ScalarNode)
INERTS: tuple[Any, Any] = (InertNode, InertScalarNode)
UNTRACKED: tuple[Any, Any] = (UntrackedNode, UntrackedScalarNode)
INDICES: tuple[Any, Any] = (IndexNode, IndexScalarNode)
TRACER_CLASSES = frozenset(TRACERS.values())


def mark_used(node: Any) -> None:
    """Turn a blank array, or an unread node, into an ordinary one before its first use.

    Raises a LeakError if a blank array was filled without the graph.
    """
    kind = type(node)
    node.__class__ = USED.get(kind, kind)  # another thread may have been first
    if kind in TRACKED:
        entry = untracked.pop(id(node), None)
        if type(entry) is not weakref.ref and entry is not None:
            entry.is_read = True
    elif node.raw_value.any():
        node.__class__ = kind
        place = "" if node.line is None else f" ({node.line})"
        raise LeakError(
            f"the {describe(node)}{place} was filled by code that does not know of the graph, as SciPy's C code does where it "
            "is given output=; its derivative would be lost. Use functions that keep the graph (NumPy's, cg.primitive with a "
            "rule); where the plain numbers are meant, let them be written into blank.value, or into a plain array"
        )


def rebuild_node(
    kind: Any, plain: Any, function: Any, args: tuple[Any, ...], options: Any, sequence_number: float, name: str | None
) -> Any:
    """A node or joint with a known history: one that was pickled, or that of another node."""
    if kind is MultiOutput:
        made: Any = MultiOutput()
    else:
        kind = TRACKED.get(kind, getattr(kind, "node_kind", kind))
        # Where a function is traced to be compiled, values are given up later, as memory of their own cannot be.
        made = TRACERS[kind]() if is_compiling() or kind.is_index else new_view(np.asarray(plain), kind)
        made._name, made.memory = name, None
    made.raw_value, made.function, made.args, made.options, made.sequence_number = plain, function, args, options, sequence_number
    made.parent_argnums = tuple([i for i, a in enumerate(args) if isinstance(a, (Value, MultiOutput))])
    made._operands = None
    return made


def with_operands(item: Any, args: tuple[Any, ...], plain: Any = None) -> Any:
    """A node or joint like `item` with other operands, and with `plain`, if given, as its value; it has no log of writes."""
    name = None if isinstance(item, MultiOutput) else item._name
    plain = item.raw_value if plain is None else plain
    return copy_location(item, rebuild_node(type(item), plain, item.function, args, item.options, item.sequence_number, name))


def argument_over(argument: Any) -> Any:
    """An input node over a copy of an argument, since a function may write into it; a NumPy scalar is not copied."""
    if isinstance(argument, np.generic):
        node = new_leaf(_asarray(argument), ArgumentScalarNode, None)
        if type(argument) in ops.SAME_BITS:
            node.raw_value = argument
        return node
    return new_leaf(ops.copy_as_laid(np.asarray(argument)), ArgumentNode, None)


def is_python_arithmetic(value: Any) -> bool:
    """Whether Python would compute a value with its own floats: by operators, from arguments that are Python numbers."""
    if type(value) not in _COMPUTED:
        return is_python_number(value)
    pending, seen = [value], set[int]()
    while pending:
        part = pending.pop()
        if is_python_number(part):
            continue
        if type(part) not in _COMPUTED or getattr(part, "function", None) not in OPERATORS:
            return False
        if id(part) not in seen:
            seen.add(id(part))
            pending.extend(part.args)
    return True


_COMPUTED = with_tracers({ScalarNode, InertScalarNode, IndexScalarNode})
OPERATORS = frozenset(
    {np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.negative, np.positive, np.absolute,
     ops.power, ops.input_of}
)  # fmt: skip


def new_fillable_leaf(array: np.ndarray[Any, Any], name: str | None, is_blank: bool = False) -> Any:
    """A node without operands over a new array that is to be filled, as ``cg.zeros`` gives it; it is no variable."""
    return new_leaf(array, BlankNode if is_blank and not is_tracing() else OperationalNode, name)
