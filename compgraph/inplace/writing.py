"""The one door through which a node is written into: ``store``.

Item assignment, operators in place, ``out=``, ``np.copyto`` and all others come down to it: what is to be written is
computed first, as any operation is, and then stored.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import operations
from ..graph import (
    ACTIVE,
    USED,
    ConstantNode,
    InertNode,
    InertScalarNode,
    InputNode,
    Memory,
    Node,
    OperationalNode,
    PlaceholderNode,
    ScalarNode,
    VariableNode,
    Write,
    collector,
    describe,
    hollow_out,
    is_hollow,
    next_tick,
    owner_of,
    require_computed,
    require_history,
    require_unsealed,
    root_of,
    use,
    viewed_by,
)
from ..graph.context import is_quick, is_recording, open_scopes
from ..graph.interpreter import source_lines
from ..guards import note_copy, note_nothing


def store(target: Any, index: Any, value: Any, casting: Any = None) -> None:
    """``target[index] = value``, remembered.

    Parameters
    ----------
    target : Node
        What is written into: a node, or a view of one.
    index : index
        As NumPy takes it, without nodes.
    value : array_like or Node
        What is stored.
    casting : str, optional
        As in ``numpy.copyto``, which is then used on the whole target; item assignment casts whatever it is given.

    Raises
    ------
    TypeError
        If `target` is a constant or a scalar, or a node is to be written into a variable.
    ValueError
        If the shapes do not fit, or the memory is read-only; nothing is changed then.
    """
    require_history(target, value)
    require_computed(value, "what is written into a node")
    level = max(target.level, value.level if isinstance(value, Node) else 0)
    if level:
        carrier = type(target if target.level == level else value)
        carrier.store(level, target, index, value, casting)
        return
    require_writeable(target)
    for node in (target, value):
        if node.__class__ in USED:
            use(node)
    plain = value.plain if isinstance(value, Node) else value
    if _is_there(target.plain, index, plain):
        return
    root = root_of(target)
    if root.__class__ is VariableNode:
        root.update(lambda array: put_plain(target.plain, index, plain, casting), (value,))
        return
    require_unsealed(root)
    saved = np.array(target.plain[index])
    if not saved.size:  # nothing to remember, but for another length
        put_plain(target.plain, index, plain, casting)
        if is_recording():
            note_nothing(target, index)
        return
    if not root.memory:
        _open(root)
    recorded = isinstance(value, Node) and is_recording()
    if recorded and value.__class__ in ACTIVE and target.dtype.kind in "fc":
        _activate(target, root, is_hollow(value))
        root.memory.is_ready = root.memory.is_ready or is_hollow(root)
    collector.weigh(2 * saved.nbytes)
    place = (target.plain, index, saved)
    root.memory.require_whole()
    stored = value if recorded else plain
    write = Write(root.memory, place, stored, recorded, next_tick(), source_lines.users_line(), open_scopes())
    root.memory.enter(write, put_plain, target.plain, index, plain, casting)


def store_number(target: Any, index: Any, value: Any) -> bool:
    """``target[index] = value`` of one number at one place, as loops over elements write; False if it is left to `store`.

    The same steps, less those whose answer is known: that of `Memory.is_ready`, and that a number lies in no memory.
    """
    kind = value.__class__
    is_node = kind in _NODES
    if target.__class__ not in _FILLED or not (is_node or kind in _NUMBERS) or not is_quick():
        return False
    try:
        memory, array, number = target.memory, target.plain, value.plain if is_node else value
    except AttributeError:  # a history that was lost: `store` looks for it
        return False
    if memory is None or not memory.is_ready or (is_node and number.__class__ not in operations.SAME_BITS):
        return False
    saved = array[index]
    if saved.__class__ is np.ndarray:
        return False
    require_unsealed(target)
    memory.require_whole()
    write = Write(memory, (array, index, saved), value, is_node, next_tick(), source_lines.users_line())
    memory.enter(write, operator.setitem, array, index, number)
    return True


_FILLED = frozenset({OperationalNode, InputNode})
_NODES = frozenset({ScalarNode, InertScalarNode})
_NUMBERS = operations.SAME_BITS | {float, int}


def put_plain(array: Any, index: Any, value: Any, casting: Any) -> None:
    """Let NumPy write."""
    if casting is None:
        array[index] = value
    else:
        np.copyto(array, value, casting=casting)


def unwritable(target: Any) -> TypeError:
    """What to raise for writing into a scalar or a constant."""
    if target.is_scalar:
        return TypeError(f"the {describe(target)} is a scalar, which does not support item assignment; rebind its name")
    return TypeError(f"the {describe(target)} never changes; use a cg.variable, or a copy (np.copy)")


def require_writeable(target: Any) -> None:
    """Raise unless something may be written into `target`, even if nothing is: as NumPy does."""
    require_history(target)
    if target.is_scalar or isinstance(target, (ConstantNode, PlaceholderNode)):
        raise unwritable(target)
    if not target.plain.flags.writeable:
        raise ValueError("assignment destination is read-only")


def _is_there(array: Any, index: Any, value: Any) -> bool:
    """Whether ``array[index]`` is `value` already: what ``a[1:3] += b`` stores is the view it has just changed."""
    if value.__class__ is not np.ndarray or value.base is None or owner_of(value) is not owner_of(array):
        return False
    there = array[index]
    return isinstance(there, np.ndarray) and bool(there.__array_interface__ == value.__array_interface__)


def _open(root: Any) -> None:
    """Begin the log of a buffer."""
    if root.function in operations.VIEWS_IF_THEY_CAN:
        note_copy(root)
    if isinstance(root.function, operations.Output):  # the record of all outputs keeps what they were made with
        joint, place = root.args[0], root.function.index
        joint.plain = (*joint.plain[:place], root.plain.copy(), *joint.plain[place + 1 :])
    root.memory = Memory()


def _activate(target: Any, root: Any, hollows: bool) -> None:
    """Let adjoints pass a buffer that had none to pass: from the target up to the root, hollow if what is written is.

    What lies above a node that is so already, is so too.
    """

    def is_done(node: Any) -> bool:
        return node.__class__ is not InertNode and (not hollows or is_hollow(node))

    if is_done(target) and is_done(root):
        return
    node: Any = target
    while node is not None:
        if node.__class__ is InertNode:
            node.__class__ = OperationalNode  # type: ignore[assignment]
        if hollows and not is_hollow(node):
            hollow_out(node)
        node = viewed_by(node)


def rewrite(target: Any, compute: Any, sources: tuple[Any, ...] = (), index: Any = ..., casting: Any = None) -> None:
    """Store what `compute` gives; of a variable that is updated from itself and plain numbers, the numbers alone."""
    require_writeable(target)
    root = root_of(target) if target.level == 0 else target
    updated = root.__class__ is VariableNode and not any(isinstance(s, Node) and root_of(s) is not root for s in sources)
    value = compute()
    if updated and isinstance(value, Node):
        value = value.plain
    store(target, index, value, casting)


def require_cast(value: Any, target: Any, casting: str, name: str) -> None:
    """Raise a TypeError unless a value may be cast to the dtype of `target`."""
    weak = value if isinstance(value, (int, float, complex)) else np.zeros((), value.dtype)
    try:
        np.copyto(np.empty((), target.dtype), weak, casting=casting)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
