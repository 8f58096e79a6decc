"""Nodes: NumPy arrays that remember the operation that made them.

A node *is* an ``np.ndarray``. Beside its numbers it keeps the function that computed it, the arguments it
was computed from, and the moment (``tick``) it was made; that is the whole graph. Nodes know nothing of
derivatives, and nothing of NumPy's protocols: `protocol` and `methods` install what ends here,
in `record`.

The kinds of node are told apart by their class, because a look at a class is the cheapest test there is:

================  =============================================================================
VariableNode      a leaf one differentiates with respect to; may be updated in place
ConstantNode      a leaf that never changes; no adjoint reaches it
OperationalNode   the result of an operation (or of ``cg.zeros`` and kin, without operands)
ScalarNode        an OperationalNode where NumPy would have returned a scalar: ``s += 1`` rebinds
InertNode         an OperationalNode no adjoint passes: comparisons, floor, what has only constants
PlaceholderNode   a leaf whose value is given when the graph is run again (see `executor`)
================  =============================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import operations
from .context import (
    apart,
    automatic_name,
    default_float,
    is_deriving,
    is_quick,
    is_recording,
    of_numbers,
    open_scopes,
    recording_on,
    sealed_until,
    watched,
)
from .hollow import COPY, LOGS, OBJECT, OF_SCALARS, REFUSAL, EscapeError, Hollowing, bodies, body_of, copies, hollow_body, refused
from .interpreter import source_lines, wrapping
from .lazy import require_computed
from .memory import Memory, owner_of, root_of, value_at

ndarray = np.ndarray
new_view: Callable[..., Any] = ndarray.view
_set_state: Callable[..., None] = ndarray.__setstate__
next_tick = itertools.count(1).__next__
NO_OPTIONS: dict[str, Any] = {}


class Origin(NamedTuple):
    """How nodes were derived from a graph: ``derive(output, wrt)[place]`` derives the node again, from another graph."""

    derive: Callable[..., Any]
    output: Any
    wrt: tuple[Any, ...]
    place: int


class Node(np.ndarray):
    """An array that is part of a computation graph.

    Not made directly: see `variable`, `constant` and every NumPy function applied to a node.

    Attributes
    ----------
    plain : numpy.ndarray or numpy.generic
        The value as NumPy gave it, with no graph: what rules and NumPy's own code compute on.
    function : callable or None
        What computed the value from `args`; None for a leaf.
    args : tuple
        The operands as they were given: nodes, and raw arrays held by reference.
    options : dict
        Keyword arguments of `function`.
    edges : tuple of int
        The positions in `args` that hold nodes.
    tick : int
        When the node was made (for a variable: last written); operands are always older.
    memory : Memory or None
        The log of writes into this node's buffer, if it is the first that had it (see `memory`).
    code, instruction : code object, int
        Where the node was made; see `line`.
    origin : Origin
        Of a derivative, how it was asked for; for other nodes the slot is empty.
    recipe : Recipe
        How the node is computed again, if something was decided about it; see `recipes`.
    taken : int
        When numbers of the node first went into operations that were not recorded, if they did.
    """

    __slots__ = (
        "_name", "_operands", "_scope",
        "args", "code", "edges", "function", "instruction", "memory", "options", "origin", "plain", "recipe", "taken", "tick",
    )  # fmt: skip

    level: int = 0
    is_scalar: bool = False
    kind: ClassVar[str] = "node"

    plain: Any
    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    edges: tuple[int, ...]
    tick: int
    memory: Any
    code: Any
    instruction: int
    origin: Origin
    recipe: Any
    taken: int
    _name: str | None
    _scope: tuple[str, ...]  # unset where no scope was open

    __hash__ = object.__hash__  # type: ignore[assignment]

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The plain array of this node, sharing its memory."""
        require_history(self)
        return np.asarray(self.plain)

    @property
    def opname(self) -> str | None:
        """The name of the operation that made the node; None for a leaf."""
        require_history(self)
        function = self.function
        if isinstance(function, operations.Output):
            function = self.args[0].function
        return None if function is None else operations.opname_of(function)

    @property
    def name(self) -> str:
        """The name given by the user, or one made from the operation's name and a process-wide count."""
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
        """The names of the scopes the node was made in, the outermost first; see `compgraph.scope`."""
        require_history(self)
        return getattr(self, "_scope", ())

    @property
    def line(self) -> str | None:
        """Where in the user's code the node was made, or a variable last updated; None if lines were not recorded."""
        require_history(self)
        return source_lines.described(self.code, self.instruction)

    @property
    def operands(self) -> tuple[Node, ...]:
        """All operands, as nodes. Raw arrays become ConstantNodes the first time they are looked at."""
        require_history(self)
        record = self.args[0] if isinstance(self.function, operations.Output) else self
        return tuple([snapshot(a, record.tick) for a in operand_nodes(record)])

    @property
    def operand_a(self) -> Node | None:
        """The first operand, or None for a leaf."""
        return next(iter(self.operands), None)

    @property
    def operand_b(self) -> Node | None:
        """The second operand, or None for a leaf or a unary operation."""
        return next(iter(self.operands[1:]), None)

    def __repr__(self) -> str:
        kind = USED.get(type(self), type(self)).__name__
        require_history(self)
        body = np.array2string(np.asarray(self.plain), separator=", ", threshold=50, prefix=f"{kind}(")
        return f"{kind}({body}, name={self.name!r}, dtype={self.dtype})"

    def __str__(self) -> str:
        require_history(self)
        return str(np.asarray(self.plain))

    def __copy__(self) -> Any:
        return record(operations.copy, (self,), {"order": "K"})


class VariableNode(Node):
    """A leaf of the graph that one differentiates with respect to. Made by `variable`."""

    __slots__ = ()
    kind = "var"

    @classmethod
    def create_using(
        cls, value: ArrayLike, name: str | None = None, *, dtype: DTypeLike | None = None, copy: bool = True
    ) -> VariableNode:
        """Make a variable from a value; see `variable`."""
        if not copy and isinstance(value, Node):
            raise ValueError("copy=False cannot share the memory of a node, which belongs to its graph; share node.value")
        array = _plain_array(value)
        target = np.dtype(dtype) if dtype is not None else (default_float() if array.dtype.kind in "biu" else array.dtype)
        if target.kind not in "fc":
            raise TypeError(f"a variable must be floating or complex to have derivatives, not {target}")
        if not copy and isinstance(value, ndarray) and target != array.dtype:
            raise ValueError(f"copy=False, but {array.dtype} must be converted to {target}; convert it first, or copy")
        array = np.array(array, dtype=target, copy=True if copy else None)
        node: VariableNode = leaf(array, cls, name if name is not None else automatic_name(cls.kind))
        return node

    def update(self, write: Callable[[np.ndarray[Any, Any]], object], values: tuple[Any, ...]) -> VariableNode:
        """Let `write` change the variable's own array; the variable is born again, younger than its readers."""
        if is_recording() and any(isinstance(v, Node) for v in values):
            raise TypeError(
                f"a node cannot be written into variable {self.name!r}: the variable is a leaf of the graph and "
                "would lose where its value came from. To update it by plain numbers, write inside "
                "`with cg.no_graph():`, or write node.value."
            )
        require_unsealed(self)
        if not self.plain.flags.writeable:
            write(self.plain)  # NumPy refuses
            return self
        source_lines.made_at(self)
        self.tick = next_tick()  # before: whatever interrupts, and whatever fails, may have changed a part
        try:
            write(self.plain)
        finally:
            self.tick = next_tick()  # other threads may have read between
        return self


class ConstantNode(Node):
    """A leaf of the graph whose value never changes; no adjoint is computed for it. Made by `constant`."""

    __slots__ = ()
    kind = "const"

    @classmethod
    def create_using(cls, value: ArrayLike, name: str | None = None) -> ConstantNode:
        """Make a constant from a value; see `constant`."""
        array = _plain_array(value).copy("K")
        array.flags.writeable = False
        return cls.hold(array, name if name is not None else automatic_name(cls.kind))

    @classmethod
    def hold(cls, value: Any, name: str | None = None) -> ConstantNode:
        """A constant that holds a raw operand by reference, as the operation that used it does."""
        node: ConstantNode = leaf(np.asarray(value), cls, name)
        return node


class PlaceholderNode(Node):
    """A leaf of the graph whose value is given when the graph is run. Made by `placeholder`."""

    __slots__ = ("declared",)
    kind = "placeholder"

    declared: tuple[int | None, ...]


class InertPlaceholderNode(PlaceholderNode):
    """A placeholder of integers or booleans: no adjoint passes."""

    __slots__ = ()


class OperationalNode(Node):
    """The result of an operation on nodes, or an array made to be written into."""

    __slots__ = ()
    kind = "buffer"

    @classmethod
    def create_using(
        cls,
        opresult: ArrayLike,
        opname: str,
        operand_a: Any,
        operand_b: Any = None,
        name: str | None = None,
    ) -> Any:
        """Make the node of an operation whose result is already known.

        Parameters
        ----------
        opresult : array_like
            The value of the operation.
        opname : str
            The name of a recorded operation of one or two operands (``"add"``, ``"exp"``).
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
            If no operation has that name.

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


class ScalarNode(OperationalNode):
    """An OperationalNode where NumPy returns a scalar: it is 0-d, and in-place operators rebind the name."""

    __slots__ = ()
    is_scalar = True


class InputNode(OperationalNode):
    """What stands in for an argument while a function is differentiated."""

    __slots__ = ()
    kind = "input"

    @classmethod
    def of(cls, node: Any) -> Any:
        """An input with the value and history of `node`."""
        made: Any = new_view(body_of(np.asarray(node.plain)), cls)
        made.plain = node.plain
        return fill(made, node.function, node.args, node.edges, node.options)


class InertNode(OperationalNode):
    """An OperationalNode that no adjoint passes: piecewise constant, or computed from constants only."""

    __slots__ = ()


class InertScalarNode(InertNode):
    """An InertNode where NumPy returns a scalar."""

    __slots__ = ()
    is_scalar = True


class BlankNode(OperationalNode):
    """An array of zeros, to be written into, that shares the memory of its value and that nobody has used so far.

    Code that does not know of the graph may fill it, which is found when it is first used; then it becomes what it is below.
    """

    __slots__ = ()


class InertBlankNode(InertNode):
    """The same, made like another node (``np.zeros_like(x)``)."""

    __slots__ = ()


class Joint:
    """The record of an operation with several outputs; each output is an `Output` of it."""

    __slots__ = (
        "__weakref__", "_operands", "_scope",
        "args", "code", "edges", "function", "instruction", "options", "plain", "recipe", "tick",
    )  # fmt: skip
    level = 0
    memory = None

    code: Any
    instruction: int

    _operands: tuple[Node, ...] | None
    _scope: tuple[str, ...]

    plain: Any
    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    edges: tuple[int, ...]
    recipe: Any
    tick: int

    @property
    def opname(self) -> str:
        """The name of the operation."""
        return operations.opname_of(self.function)

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the scopes the operation was called in, the outermost first."""
        return getattr(self, "_scope", ())

    @property
    def line(self) -> str | None:
        """Where in the user's code the operation was called; None if lines were not recorded."""
        return source_lines.described(self.code, self.instruction)

    @property
    def operands(self) -> tuple[Node, ...]:
        """All operands, as nodes."""
        return tuple([snapshot(a, self.tick) for a in operand_nodes(self)])


def operand_nodes(record: Any) -> tuple[Node, ...]:
    """All operands of a node or joint, as they are now; raw ones become constants, once, and stay as they are in `args`."""
    if record._operands is None:
        wanted = operations.operand_count(record.function, len(record.args))
        record._operands = tuple(
            a if isinstance(a, Node) else _held(a, record)
            for i, a in enumerate(record.args)
            if isinstance(a, Node) or (a is not None and i < wanted)
        )
    operands: tuple[Node, ...] = record._operands
    return operands


def _held(value: Any, record: Any) -> ConstantNode:
    """A raw operand of a node or joint as a constant, made where that was made."""
    node = ConstantNode.hold(value)
    node.code, node.instruction, node._scope = record.code, record.instruction, record.scope
    return node


def snapshot(node: Any, tick: float, value: Any = None) -> Any:
    """`node` as a reader of that tick saw it: itself, or a copy from then if its buffer was written into since.

    The copy is a node of its own, just older than the reader, whose value may be known already.
    """
    memory = root_of(node).memory if node.plain.__class__ is ndarray else None
    if memory.__class__ is not Memory or memory.before(tick) == len(memory.log):
        return node
    copied = _attach(value_at(node, tick) if value is None else value, operations.copy, (node,), {"order": "K"}, (0,), True)
    copied.tick = tick - 0.25
    return copied


ACTIVE: frozenset[Any] = frozenset({VariableNode, PlaceholderNode, OperationalNode, ScalarNode, InputNode, Joint})
INERT: frozenset[Any] = frozenset({ConstantNode, InertPlaceholderNode, InertNode, InertScalarNode, InertBlankNode})
GIVEN = frozenset({VariableNode, PlaceholderNode, InertPlaceholderNode})  # leaves that others may give new values
USED: dict[Any, Any] = {BlankNode: OperationalNode, InertBlankNode: InertNode}  # what a blank array becomes
LEFT, RIGHT, BOTH = (0,), (1,), (0, 1)


# ------------------------------------------------------------------------------------------- recording


def record(function: Any, args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
    """Compute ``function(*args, **options)`` and remember it: the one door into the graph.

    Parameters
    ----------
    function : callable
        A function of plain arrays.
    args : tuple
        Its operands: nodes and raw arrays. Nodes among the options are not seen; see `operations.Keyworded`.
    options : dict
        Everything else it is given.

    Returns
    -------
    Node, tuple of Node, or plain NumPy result
        What `function` returns, as a node; as it is under `no_graph` or when no argument is a node.
    """
    values, edges, active = [], [], False
    top: Any = None
    for position, operand in enumerate(args):
        if isinstance(operand, Node):
            if not hasattr(operand, "plain"):
                require_history(operand)
            values.append(operand.plain)
            edges.append(position)
            if operand.__class__ in ACTIVE:
                active = True
            elif operand.__class__ in USED:
                use(operand)
                active = active or operand.__class__ in ACTIVE
            elif operand.level and (top is None or operand.level > top.level):
                top = operand
        else:
            if operand.__class__ is ndarray and operand.dtype is OBJECT and adopted(operand) is not operand:
                return record(function, tuple(map(adopted, args)), options)
            values.append(operand)
    if top is not None:
        return type(top).carry(top.level, function, args, options)
    value = function(*values, **options)
    if not edges or not is_recording():
        for position in edges:
            take(args[position])
        return value
    active = active and function not in operations.PIECEWISE
    if LOGS and bodies() is None and any(map(is_hollow, args)) and function is not operations.stop_gradient:
        result = apart(_attach_hollow, value, function, args, options, tuple(edges), active)
    else:
        result = _attach(value, function, args, options, tuple(edges), active)
    if not is_quick():
        _scoped(result)
        watch = watched()
        if watch is not None:
            watch.recorded(result)
    return result


def _attach_hollow(*operation: Any) -> Any:
    with Hollowing():
        return _attach(*operation)


def take(node: Any) -> None:
    """Remember that numbers of a node, as they are now, go where nothing is recorded."""
    try:
        is_known = node.taken > node.tick
    except AttributeError:
        is_known = False
    if not is_known:
        node.taken = next_tick()


def attach(value: Any, function: Any, args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
    """The node, or tuple of nodes, of an operation that has been computed."""
    edges = tuple([i for i, a in enumerate(args) if isinstance(a, (Node, Joint))])
    for i in edges:
        if args[i].__class__ in USED:
            use(args[i])
    active = function not in operations.PIECEWISE and any(args[i].__class__ in ACTIVE for i in edges)
    result = _attach(value, function, args, options, edges, active)
    _scoped(result)
    return result


def _scoped(result: Any) -> None:
    """Let what was made know the scopes around."""
    path = open_scopes()
    if path:
        for node in result if isinstance(result, (tuple, list)) else (result,):
            if node is not None:
                node._scope = path
                if isinstance(node.function, operations.Output):
                    node.args[0]._scope = path


def _attach(
    value: Any, function: Any, args: tuple[Any, ...], options: dict[str, Any], edges: tuple[int, ...], active: bool
) -> Any:
    if isinstance(value, (tuple, list)):
        return _outputs(value, function, args, options, edges, active)
    may_share = value.__class__ is ndarray and function.__class__ is not np.ufunc
    if may_share and (value.base is not None or _is_operand(value, args, edges)):
        value, active = _as_view(value, args, edges, active)
    node = fill(_wrapped(value, active), function, args, edges, options)
    if function in _BLANK and node.__class__ is InertNode and bodies() is None:
        if function is np.empty_like:
            value.fill(0)  # it may hold anything, so also what can be told from what others fill in
        node.__class__ = InertBlankNode
    return node


_BLANK = frozenset({np.zeros_like, np.empty_like})


def use(blank: Any) -> None:
    """Let a blank array be an array like others, unless it has been filled behind the graph's back."""
    if blank.plain.any():
        place = "" if blank.line is None else f" ({blank.line})"
        raise EscapeError(
            f"the {describe(blank)}{place} was filled by code that does not know of the graph, as SciPy's C code does where it "
            "is given output=; its derivative would be lost. Use functions that keep the graph (NumPy's, cg.primitive with a "
            "rule); where the plain numbers are meant, let them be written into blank.value, or into a plain array"
        )
    blank.__class__ = USED[blank.__class__]


def _is_operand(value: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> bool:
    """Whether a function has handed an operand back."""
    for i in edges:  # noqa: SIM110 (a generator costs as much as the operation)
        if args[i].plain is value:
            return True
    return False


def _as_view(value: Any, args: tuple[Any, ...], edges: tuple[int, ...], active: bool) -> tuple[Any, bool]:
    """A result that may share its operand's buffer; then what is written into the one changes the other."""
    if value.base is None:
        value = value.view()
    if not active:  # something with a derivative may be written there later: through the operand, if this is read-only
        owner = owner_of(value)
        may_change = owner.flags.writeable if isinstance(owner, ndarray) and not is_deriving() else value.flags.writeable
        active = may_change and any(args[i].plain.__class__ is ndarray and owner_of(args[i].plain) is owner for i in edges)
    return value, active


def _wrapped(value: Any, active: bool) -> Any:
    """A value as a node without history; integers and booleans are always inert."""
    kind = value.dtype.kind if hasattr(value, "dtype") else "O"
    if kind not in "biufc":
        raise TypeError(f"the result, a {type(value).__name__}, holds no numbers; compute with node.value where that is meant")
    active = active and kind in "fc"
    if isinstance(value, np.ndarray):
        value = value.view(np.ndarray) if value.__class__ is not np.ndarray else value
        node: Any = new_view(body_of(value), OperationalNode if active else InertNode)
        node.plain = value
        return node
    return scalar(value, ScalarNode if active else InertScalarNode)


def fill(node: Any, function: Any, args: tuple[Any, ...], edges: tuple[int, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
    """Give a fresh node its history."""
    node.function = function
    node.args = args
    node.edges = edges
    node.options = options
    node.tick = next_tick()
    node.memory = node._name = node._operands = None
    source_lines.made_at(node)
    return node


def operation(value: Any, function: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> Any:
    """The node of an operation on active operands, without options: `attach` for the commonest case."""
    hollow = bodies()
    if hollow is None and LOGS and any(map(is_hollow, args)):  # a function is differentiated, and this is a thread it started
        return record(function, args)
    if value.__class__ is ndarray:
        if hollow is None:
            node = new_view(value, OperationalNode)
        else:
            try:
                node = new_view(hollow[value.dtype][value.shape], OperationalNode)
            except KeyError:
                if value.dtype.kind not in "fc":
                    return record(function, args)
                node = new_view(hollow_body(value), OperationalNode)
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
    """A 0-d node around a NumPy scalar, kept as it is where scalar arithmetic has the same bits as arrays'."""
    node: Any
    if bodies() is not None and value.__class__ in operations.SAME_BITS:
        node = new_view(OF_SCALARS[value.__class__], kind)
        node.plain = value
        return node
    array = np.asarray(value)
    node = new_view(body_of(array), kind)
    node.plain = value if value.__class__ in operations.SAME_BITS else array
    return node


def adopted(value: Any) -> Any:
    """An array of objects with nodes among them, as ``np.array([[x[0], 1], [2, x[1]]])`` makes it of hollow ones, as a node."""
    if value.__class__ is not ndarray or value.dtype != OBJECT:
        return value
    elements = value.ravel().tolist()
    if any(element is REFUSAL for element in elements):
        raise refused(source_lines.users_frame(2), COPY)
    if not any(isinstance(element, Node) for element in elements):
        return value
    return np.reshape(np.stack([e if isinstance(e, Node) else np.asarray(e) for e in elements]), value.shape)


def is_hollow(value: Any) -> bool:
    """Whether a value is a hollow node."""
    return isinstance(value, Node) and bool(new_view(value, ndarray).dtype != value.dtype)


def solid(node: Any) -> Any:
    """What code outside is given for a node: where new nodes are solid, a copy of one that is hollow."""
    if bodies() is not None or node.level or not is_hollow(node):
        return node
    return record(operations.copy, (node,), {"order": "K"})


def inert(value: Any) -> Any:
    """A value that no derivative passes, as a node without operands."""
    return fill(_wrapped(value, False), None, (), ())


def input_over(argument: Any) -> Any:
    """An input node over a copy of an argument, into which a function may write; a number of NumPy's stays one."""
    if argument.__class__ in operations.SAME_BITS:
        node = leaf(np.asarray(argument), InputNode, None)
        node.plain = argument
        return node
    return leaf(operations.copy_as_laid(np.asarray(argument)), InputNode, None)


def leaf(array: np.ndarray[Any, Any], kind: type[Node], name: str | None) -> Any:
    """A node without operands over `array`."""
    node: Any = new_view(array if kind is ConstantNode else body_of(array), kind)
    node.plain = array
    fill(node, None, (), ())
    node._name = name
    _scoped(node)
    return node


def leaf_like(array: np.ndarray[Any, Any], name: str | None, is_blank: bool = False) -> Any:
    """A node without operands that is no variable: an array to be written into."""
    return leaf(array, BlankNode if is_blank and bodies() is None else OperationalNode, name)


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
    return type(value)(*nodes) if hasattr(value, "_fields") else type(value)(nodes)


def _apart(values: Any, args: tuple[Any, ...], edges: tuple[int, ...]) -> Any:
    """Several outputs; those that lie in the memory of an operand, which only a user's primitive gives, as copies."""
    owners = {id(owner_of(args[i].plain)) for i in edges if args[i].plain.__class__ is ndarray}
    shared = [part.__class__ is ndarray and id(owner_of(part)) in owners for part in values]
    if not any(shared):
        return values
    parts = [part.copy() if shares else part for part, shares in zip(values, shared, strict=True)]
    return type(values)(*parts) if hasattr(values, "_fields") else parts


def _plain_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, Node):
        return value.value
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        raise TypeError(f"a {type(value).__name__} has operators of its own; pass np.asarray(value)")
    require_computed(value, "the value of a node")
    array = of_numbers(np.asarray(value), value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"a node holds numbers, not dtype {array.dtype}")
    return array


def require_unsealed(root: Any) -> None:
    """Raise if a function that runs again in the backward pass would write into a node made outside it."""
    if root.tick <= sealed_until():
        raise TypeError(
            f"checkpoint: the function writes into the {describe(root)}, which was made outside it; it runs again in the "
            "backward pass and would write twice. Copy the array inside the function (np.copy)"
        )


def lost_history(node: Any) -> TypeError:
    """What to raise for a node that NumPy made without the graph being told; none of its slots is filled."""
    computed = " A method of a plain array asks no node: for X.dot(x) write X @ x or np.dot(X, x)." if node.base is None else ""
    return TypeError(
        "this array is a view or copy of a node that NumPy made without the graph being told; its history is lost. Use "
        "the NumPy function or method that makes it (np.copy, x[...], x.reshape), those of compgraph where NumPy asks nobody "
        "(cg.asarray, cg.r_, cg.c_), or np.asarray(x) when a plain array is meant." + computed
    )


def require_history(*nodes: Any) -> None:
    """Raise `lost_history` for a node that has none."""
    for node in nodes:
        if isinstance(node, Node) and not has_history(node):
            raise lost_history(node)


def has_history(node: Node) -> bool:
    """Whether a node has one, or has found it again."""
    return hasattr(node, "plain") or _restored(node)


def _restored(node: Any) -> bool:
    """Record, late, what has a history that is plain to see: all of a node, as ``np.r_`` and ``np.c_`` take it.

    It is a view of a node with axes in front, or a copy in another dtype (see `copies`).
    """
    there = new_view(node, ndarray)
    source, is_copy = node.base, False
    if not isinstance(source, Node):
        source, is_copy = copies.source_of(there), True
    if source is None or (not hasattr(source, "plain") and not _restored(source)):
        return False
    whole = new_view(source, ndarray)
    added = there.ndim - whole.ndim
    if added < 0 or there.shape != (1,) * added + whole.shape:
        return False
    is_view = there.__array_interface__["data"] == whole.__array_interface__["data"] and there.dtype == whole.dtype
    if not is_copy and not (is_view and added and there.strides[added:] == whole.strides):
        return False
    with recording_on():
        made = record(operations.astype, (source,), {"dtype": there.dtype, "copy": True}) if is_copy else source
        made = record(np.expand_dims, (made,), {"axis": tuple(range(added))}) if added else made
    node.__class__ = made.__class__
    for kind in type(made).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if hasattr(made, slot):
                setattr(node, slot, getattr(made, slot))
    if is_copy:  # what it holds is no number
        hollow_out(node)
    return True


def hollow_out(node: Any) -> None:
    """Give a node whose body holds numbers one that refuses, since they are not all there is to them."""
    body = hollow_body(np.asarray(node.plain))
    _set_state(node, (1, node.shape, body.dtype, False, body.ravel().tolist()))


def recover(error: AttributeError, *operands: Any) -> None:
    """After an AttributeError: return if an operand without history was its reason and has found it, else raise."""
    lost = [a for a in operands if isinstance(a, Node) and not hasattr(a, "plain")]
    if not lost:
        raise error
    require_history(*lost)


def describe(node: Any) -> str:
    """A node in a few words, for messages: its operation, name where it has one, shape and dtype."""
    require_history(node)
    if node.function is not None:
        what = f"result of {node.opname}"
    else:
        kinds = {VariableNode: "variable", ConstantNode: "constant"}
        kinds |= dict.fromkeys((OperationalNode, BlankNode), "array to be filled")
        kinds |= dict.fromkeys((PlaceholderNode, InertPlaceholderNode), "placeholder")
        what = kinds.get(type(node), "value")
    name = f" {node._name!r}" if node._name is not None else ""
    return f"{what}{name} (shape {node.shape}, {node.dtype})"
