"""`store`: the single entry point of writes into nodes.

Item assignment, in-place operators, ``out=``, ``np.copyto`` and all other forms of writes call it. The new value is computed
first, as in any operation, and then stored. See `IN_PLACE.md`.

If source and target share memory, NumPy may read elements that it has already overwritten. Ufuncs prevent this, and item
assignment mostly does. Other forms do not (``v[::2] = v[:3]``, ``v[mask] = v[:3]``, ``v.flat[1:] = v[:-1]``,
``np.concatenate(..., out=v)``): the result depends on the order of NumPy's loops, and is reproduced here. If elements are only
moved, NumPy makes the same moves on numbered elements, and the numbers show where each came from. Functions that compute raise
if the overlap changes their result.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..array_types import Array
from ..context import is_deriving, is_fast_path, is_recording, open_scopes
from ..frames import instructions, source_lines
from ..graph import flatten_sequences
from ..guards import note_copy, note_empty_write
from ..storage import TRACERS, BufferCopy, Memory, Write, cycle_collector, owner_of, root_of, set_class, viewed_operand
from ..tracing import LOGS, is_tracing
from ..values import (
    ACTIVE,
    USED_CLASS_OF,
    ArgumentNode,
    ConstantNode,
    InertNode,
    InertScalarNode,
    OperationalNode,
    PlaceholderNode,
    ScalarNode,
    Value,
    VariableNode,
    describe,
    is_plain_array,
    is_tracer,
    mark_used,
    next_sequence_number,
    require_computed,
    require_history,
    require_unbatched,
    require_unsealed,
    save_operand,
    unwrap_buffer,
    with_tracers,
)

ndarray = np.ndarray


def backing_array(node: Any) -> Any:
    """Return the plain array of a node; for a batched value, that of all batch elements."""
    while node.trace_kind == "batch":
        node = node.values
        if not isinstance(node, Value):
            return node
    return node.raw_value


def overlaps(target: object, *sources: object) -> bool:
    """Whether a node among the sources may share memory with the target."""
    target_array = backing_array(target)
    nodes = [source_array for s in sources if isinstance(s, Value) and (source_array := backing_array(s)).__class__ is ndarray]
    return any(owner_of(plain) is owner_of(target_array) and np.may_share_memory(plain, target_array) for plain in nodes)


def assign(target: Any, index: object, value: Any, casting: str | None = None) -> None:
    """Store ``target[index] = value`` as `store` does; if both share memory, with NumPy's result."""
    value = unwrap_buffer(value)
    plain = getattr(value, "raw_value", None)  # `store` raises for a value without history
    if plain is not None and "batch" in (value.trace_kind, target.trace_kind):
        plain = None  # the `store` of batched values handles overlaps
    is_view = (
        type(plain) is ndarray and plain.base is not None and owner_of(plain) is owner_of(getattr(target, "raw_value", None))
    )
    if is_view and _may_read_overwritten(target, index, value) and overlaps(target, value):
        move_elements(target, (value,), lambda target_array, source: store_plain(target_array, index, source, casting))
    else:
        store(target, index, value, casting)


def _may_read_overwritten(target: Any, index: Any, value: Any) -> bool:
    """Whether item assignment may read overwritten elements: with a mask, and along one axis if the strides differ."""
    arrays = [part for part in (index if isinstance(index, tuple) else (index,)) if isinstance(part, ndarray)]
    if arrays:
        return any(part.dtype == bool for part in arrays)
    target_array = target.raw_value[index]
    return bool(target_array.ndim == 1 and value.ndim > 0 and target_array.strides[-1] != value.raw_value.strides[-1])


def move_elements(target: Any, sources: Sequence[Any], move: Callable[..., object]) -> None:
    """Reproduce and record the call ``move(target, *sources)``, which only moves elements, for sources that overlap the target.

    `move` is called on plain arrays of element numbers with the same overlaps. The result shows which element moved where.
    """
    require_unbatched("a write whose source shares memory with its target", target, *sources)
    require_writeable(target)
    if any(isinstance(s, Value) and s.dtype != target.dtype and overlaps(target, s) for s in sources):
        raise ValueError(
            "source and target of a write share memory and have different dtypes, so that NumPy reads partly overwritten "
            "elements; write a copy (np.copy) of the source"
        )
    numbered_buffer, other_numbers = _number_elements(target, sources)
    target_array = _window_numbers(numbered_buffer, target.raw_value)
    before = target_array.copy()
    source_numbers = [
        _window_numbers(numbered_buffer, source.raw_value) if overlaps(target, source) else other
        for source, other in zip(sources, other_numbers, strict=True)
    ]
    all_numbers = np.concatenate([np.ravel(numbers) for numbers in source_numbers])
    move(target_array, *source_numbers)
    is_changed = target_array != before
    if is_changed.any():
        order = np.argsort(all_numbers, kind="stable")
        positions = order[np.searchsorted(all_numbers, target_array[is_changed], sorter=order)]
        values = np.concatenate([np.ravel(s) for s in sources])[positions]
        store(target, np.nonzero(is_changed) if target.ndim else ..., values if target.ndim else values[0])


def _window_numbers(numbered_buffer: BufferCopy, plain: NDArray[Any]) -> Any:
    """Return the element numbers of a view."""
    return numbered_buffer.view_at(plain.shape, **{**numbered_buffer.layout(plain), "dtype": numbered_buffer.dtype})


def _number_elements(target: Any, sources: Sequence[Any]) -> tuple[BufferCopy, list[Any]]:
    """Number the elements of the target's memory; return the numbered copy, and an array of further numbers for each source.

    The further numbers are used for sources in other memory.
    """
    dtype: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}.get(target.itemsize, target.dtype)
    owner = owner_of(target.raw_value)
    numbered_buffer = BufferCopy(owner.view(dtype) if owner.dtype.itemsize == target.itemsize else owner)
    max_count = 2 ** min(48, 8 * target.itemsize - 1)  # numbers that the dtype represents exactly
    if numbered_buffer.dtype.itemsize != target.itemsize or numbered_buffer.count + sum(map(np.size, sources)) > max_count:
        raise ValueError("source and target of a write share memory; write a copy (np.copy) of the source")
    numbered_buffer.buffer[...] = np.arange(numbered_buffer.count)
    other_numbers, count = [], numbered_buffer.count
    for source in sources:
        other_numbers.append(np.arange(count, count + np.size(source)).astype(dtype).reshape(np.shape(source)))
        count += np.size(source)
    return numbered_buffer, other_numbers


def simulate_numpy_writes(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], targets: tuple[Any, ...]
) -> Any:
    """Call NumPy with ``out=`` on copies of overlapping arrays and return the written values; None without overlap."""
    if isinstance(function, ops.UfuncMethod) or (isinstance(function, np.ufunc) and function.signature is None):
        return None  # NumPy guarantees that overlaps do not change the results of ufuncs
    sources = [leaf for leaf in flatten_sequences((args, tuple(options.values()))) if isinstance(leaf, Value)]
    if not any(overlaps(t, *sources) for t in targets if t is not None):
        return None
    require_unbatched("out= that shares memory with an operand", *targets, *sources)
    copies: dict[int, BufferCopy] = {}

    def copy_operand(value: object) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(copy_operand, value))
        if not isinstance(value, Value) or type(value.raw_value) is not ndarray:
            return value.raw_value if isinstance(value, Value) else value
        owner = owner_of(value.raw_value)
        if id(owner) not in copies:
            copies[id(owner)] = BufferCopy.copy_of(owner)
        return copies[id(owner)].view_at(value.shape, **copies[id(owner)].layout(value.raw_value))

    outs = tuple([None if t is None else copy_operand(t) for t in targets])
    function(*copy_operand(args), out=outs if len(outs) > 1 else outs[0], **{k: copy_operand(v) for k, v in options.items()})
    return outs


def store(target: Any, index: Any, value: Any, casting: object = None) -> None:
    """Store ``target[index] = value`` and append the write to the log of the target's root.

    Parameters
    ----------
    target : Node
        A node of any shape and dtype, or a view of one.
    index : index
        A NumPy index without nodes. The log stores it, so it must be a copy (see `numpy_writes.copy_index`).
    value : array_like or Node
        The new values; broadcast to ``target[index]`` and cast to the target's dtype.
    casting : str, optional
        As in ``numpy.copyto``, for a write of the whole target: `index` is ``...`` then. By default any cast is allowed, as
        in item assignment.

    Raises
    ------
    TypeError
        If `target` is a constant, a placeholder, a scalar or a row (see `mark_copied_row`), or a node would be written into a
        variable.
    ValueError
        If the shapes do not fit, or the memory is read-only; nothing is changed then.
    """
    require_history(target, value)
    require_computed(value, "a value written into a node")
    level = max(target.level, value.level if isinstance(value, Value) else 0)
    if level:
        tracer_class = type(target if target.level == level else value)
        tracer_class.store(level, target, index, value, casting)
        return
    require_writeable(target)
    for node in (target, value):
        if type(node) in USED_CLASS_OF:
            mark_used(node)
    plain = value.raw_value if isinstance(value, Value) else value
    if _is_same_memory(target.raw_value, index, plain):
        return
    root = root_of(target)
    if type(root) in _VARIABLES:
        root.update(lambda array: store_plain(target.raw_value, index, plain, casting), (value,))
        return
    require_unsealed(root)
    before = np.array(target.raw_value[index])
    if not before.size:  # nothing to log, except that other lengths may select elements
        store_plain(target.raw_value, index, plain, casting)
        if is_recording():
            note_empty_write(target, index)
        return
    if not root.memory:
        _open_log(root)
    is_recorded = isinstance(value, Value) and is_recording()
    if is_recorded and type(value) in ACTIVE and target.dtype.kind in "fc":
        if is_tracer(value) and not is_tracer(root) and (is_tracing() or LOGS) and not is_deriving():
            raise TypeError(
                f"a value computed in a differentiated function is written into the {describe(root)}, an array from outside the "
                "function. Copy the array inside the function: np.copy(a)"
            )
        _activate(target, root)
        root.memory.is_root_active = True
    cycle_collector.add_bytes(2 * before.nbytes)
    region = (target.raw_value, index, before)
    root.memory.require_complete()
    stored = value if is_recorded else _copy_value(plain)
    write = Write(root.memory, region, stored, is_recorded, next_sequence_number(), source_lines.user_line(), open_scopes())
    root.memory.append(write, store_plain, target.raw_value, index, plain, casting)


def store_number(target: Any, index: tuple[int, ...] | np.generic | int, value: Any) -> bool:
    """Store one number in one element, the fast path of loops over elements; return False if `store` is needed.

    It omits two steps of `store`: the root needs no change of its class or buffer (`Memory.is_root_active`), and a single number
    shares no memory with the target.
    """
    cls = type(value)
    is_node = cls in _SCALAR_NODES
    if type(target) not in _ARRAY_NODES or not (is_node or cls in _NUMBER_TYPES) or not is_fast_path():
        return False
    try:
        memory, array, number = target.memory, target.raw_value, value.raw_value if is_node else value
    except AttributeError:  # the history was lost; `store` tries to recover it
        return False
    if memory is None or not memory.is_root_active or (is_node and type(number) not in ops.FLOAT_SCALARS):
        return False
    before = array[index]
    if type(before) is np.ndarray:
        return False
    require_unsealed(target)
    memory.require_complete()
    write = Write(memory, (array, index, before), value, is_node, next_sequence_number(), source_lines.user_line())
    memory.append(write, operator.setitem, array, index, number)
    return True


def _copy_value(value: object) -> Any:
    """Copy a plain array or list for the log, because its owner may change it later."""
    if isinstance(value, list):
        return np.array(value)
    return save_operand(value) if is_plain_array(value) else value


_ARRAY_NODES = with_tracers({OperationalNode, ArgumentNode})
_SCALAR_NODES = with_tracers({ScalarNode, InertScalarNode})
_NUMBER_TYPES = ops.FLOAT_SCALARS | {float, int}


def store_plain(array: Any, index: Any, value: Any, casting: Any) -> None:
    """``array[index] = value`` on plain arrays; with `casting`, which requires the index ``...``, ``numpy.copyto``."""
    if casting is None:
        array[index] = value
    else:
        np.copyto(array, value, casting=casting)


def require_writeable(target: Any) -> None:
    """Raise unless `target` may be written into. As in NumPy, this holds for writes that change nothing, too."""
    require_history(target)
    if target.is_scalar:
        raise TypeError(f"the {describe(target)} is a scalar, which does not support item assignment; rebind its name")
    if isinstance(target, (ConstantNode, PlaceholderNode)):
        raise TypeError(f"the {describe(target)} never changes; use a cg.variable, or a copy (np.copy)")
    if not target.raw_value.flags.writeable:
        raise ValueError("assignment destination is read-only")
    if _copied_rows:
        _require_own_buffer(target)


def _is_same_memory(array: Any, index: Any, value: Array) -> bool:
    """Whether ``array[index]`` and `value` are the same memory, as in the last step of ``a[1:3] += b``."""
    if type(value) is not np.ndarray or value.base is None or owner_of(value) is not owner_of(array):
        return False
    region = array[index]
    return isinstance(region, np.ndarray) and bool(region.__array_interface__ == value.__array_interface__)


_copied_rows: dict[int, tuple[Any, CodeType, int]] = {}  # by id: a weak reference to the row, and the instruction that read it


def mark_copied_row(row: Value) -> None:
    """Make later writes into a row raise. The row was read at a computed index, so it is a copy where NumPy has a view.

    Only ``a[index] += value`` may write into it, because the next instruction stores the row in the array again.
    """
    frame, key = source_lines.user_frame(2), id(row)
    _copied_rows[key] = (weakref.ref(row, lambda _: _copied_rows.pop(key, None)), frame.f_code, frame.f_lasti)


def _require_own_buffer(target: Any) -> None:
    """Raise if the buffer of `target` is a row that was read at a computed index."""
    root = target
    if target.level == 0:
        root = root_of(target)
    elif target.root is not None:
        root = target.root
    reference, code, instruction = _copied_rows.get(id(root), (None, None, 0))
    if reference is None or instructions.augments_element(source_lines.user_frame(2), code, instruction):
        return
    raise TypeError(
        f"the {describe(root)} was read at a computed index, such as a[np.argmax(x)]. NumPy would write through it into the "
        "array that it was read from. Write a[index, i] = value, or copy the row first: a[index].copy()"
    )


def _open_log(root: Any) -> None:
    """Create the log of a buffer."""
    if root.function in ops.VIEW_FUNCTIONS:
        note_copy(root)
    if isinstance(root.function, ops.Output):  # the derivative rule needs the output as it was computed
        multi_output, position = root.args[0], root.function.index
        outputs = list(multi_output.raw_value)
        outputs[position] = root.raw_value.copy()
        multi_output.raw_value = tuple(outputs)
    root.memory = Memory()


def _activate(target: object, root: object) -> None:
    """Make the target, the root and the views between them active, so that cotangents pass.

    If the target and the root are active already, the views between them are active too.
    """
    if type(target) not in _ACTIVE_CLASS_OF and type(root) not in _ACTIVE_CLASS_OF:
        return
    node: Any = target
    while node is not None:
        if type(node) in _ACTIVE_CLASS_OF:
            set_class(node, _ACTIVE_CLASS_OF[type(node)])
        node = viewed_operand(node)


_VARIABLES = with_tracers({VariableNode})
_ACTIVE_CLASS_OF: dict[Any, Any] = {InertNode: OperationalNode, TRACERS[InertNode]: TRACERS[OperationalNode]}


def store_computed(
    target: Any, compute: Callable[..., Any], sources: tuple[Any, ...] = (), index: Any = ..., casting: object = None
) -> None:
    """Store ``compute()``; a variable that is updated from itself and plain numbers gets the plain value.

    `sources` are the operands of `compute` that may be other nodes. Values computed from them cannot be written into a variable.
    """
    require_writeable(target)
    root = root_of(target) if target.level == 0 else target
    is_update = type(root) in _VARIABLES and not any(isinstance(s, Value) and root_of(s) is not root for s in sources)
    value = compute()
    if is_update and isinstance(value, Value):
        value = value.raw_value
    store(target, index, value, casting)


def require_cast(value: Any, target: Any, casting: str, name: str) -> None:
    """Raise a TypeError unless a value may be cast to the dtype of `target`."""
    sample = value if isinstance(value, (int, float, complex)) else np.zeros((), value.dtype)
    try:
        np.copyto(np.empty((), target.dtype), sample, casting=casting)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
