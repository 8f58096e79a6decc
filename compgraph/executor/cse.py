"""Common-subexpression elimination and constant folding.

Graphs are immutable: the smaller graph consists of new nodes over the same arrays. Operations that read or return an array with
writes are not merged, because reads at different times may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..context import rerecording
from ..guards import Guard
from ..storage import Memory, Write, root_of, viewed_operand
from ..values import ConstantNode, MultiOutput, PlaceholderNode, Value, copy_location, require_history, with_operands
from .schedule import Schedule, collect_dependencies, origin_of

MAX_COMPARED_BYTES = 4096  # larger plain operands and constants are compared by identity instead of by value


def simplify(nodes: NDArray[Any] | list[Any]) -> Any:
    """Return a smaller graph of some nodes, with the same values.

    Equal subexpressions are computed once, operations on constants become constants, and nodes that no result depends on are
    dropped. The values have the same bits.

    Parameters
    ----------
    nodes : Node or sequence of Node
        The results of the graph.

    Returns
    -------
    Node or list of Node
        One node per result, of a new graph that shares leaves and arrays with the old one. A single node if one was passed.

    Raises
    ------
    TypeError
        If an element of `nodes` is not a node.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(0.5, "x")
    >>> f = cg.sin(x) ** cg.sin(x)
    >>> len(cg.topological_order([f])), len(cg.topological_order([cg.simplify(f)]))
    (4, 3)
    """
    is_single = isinstance(nodes, Value)
    outputs = [nodes] if is_single else list(nodes)
    for node in outputs:
        require_history(node)
        if not isinstance(node, Value):
            raise TypeError(f"simplify takes nodes, not a {type(node).__name__}")
    items = collect_dependencies(outputs)
    replacements = simplify_items(items, shapes_known=not any(isinstance(item, PlaceholderNode) for item in items))
    new_outputs = [replacements[node] for node in outputs]
    return new_outputs[0] if is_single else new_outputs


def simplify_schedule(schedule: Schedule) -> Schedule:
    """Merge equal operations and fold constants (a pass)."""
    items = schedule.items
    replacements = simplify_items(items, frozenset(schedule.inputs), fold_constants=bool(schedule.options.get("fold", True)))
    guards = [replacements[item] for item in items if not isinstance(item, Value) and isinstance(item, Guard)]
    return Schedule.of(
        [replacements[node] for node in schedule.outputs], guards, [replacements.get(node, node) for node in schedule.inputs]
    )


def simplify_items(
    items: Iterable[Any], inputs: frozenset[Any] = frozenset(), shapes_known: bool = True, fold_constants: bool = True
) -> dict[Any, Any]:
    """Map each item of a graph to its replacement in a smaller graph.

    Values of `inputs` are supplied from outside and are not replaced by constants. Unless `shapes_known`, the graph may run with
    other shapes. Then nodes with an origin keep it, are recomputed from it, and are not merged. `fold_constants` enables
    constant folding.
    """
    replacements: dict[Any, Any] = {}
    replacement_by_key: dict[Any, Any] = {}
    memories: dict[int, Memory] = {}
    varying: set[Any] = set()  # items with value-dependent shapes
    for item in _inline_composites(items, inputs, replacements):
        # Operands of inputs are not part of the graph, and have no replacement.
        args = tuple([replacements.get(a, a) if isinstance(a, (Value, MultiOutput)) else a for a in item.args])
        is_guard_or_write = not isinstance(item, Value) and isinstance(item, (Guard, Write))
        if not is_guard_or_write and item.args and _has_varying_shape(item, varying):
            varying.add(item)
        if is_guard_or_write and isinstance(item, Guard):
            replacements[item] = item.with_args(args, item.sequence_number)
        elif is_guard_or_write:
            replacements[item] = _copy_write(item, args, memories[id(item.memory)])
        elif not item.args and not item.memory:
            replacements[item] = item
        elif not shapes_known and origin_of(item):
            replacements[item] = with_operands(item, args)
            replacements[item].origin = item.origin
        elif item in inputs or _touches_written_array(item):
            replacements[item] = with_operands(item, args)
            if isinstance(item, Value) and item.memory:
                replacements[item].memory = memories[id(item.memory)] = Memory()
        elif (shapes_known and item.function in ops.FILL_VALUES and item not in varying) or (
            fold_constants
            and all(item.args[position] not in inputs and _is_constant(args[position]) for position in item.parent_argnums)
        ):
            replacements[item] = _make_constant(item, args)
            if type(item) is not MultiOutput:
                replacements[item] = replacement_by_key.setdefault(_value_key(item.raw_value), replacements[item])
        else:
            key = (item.function, tuple(map(_operand_key, args)), _operand_key(item.options))
            if key not in replacement_by_key:
                replacement_by_key[key] = _preserve_view(with_operands(item, args), item)
            replacements[item] = replacement_by_key[key]
    return replacements


def _has_varying_shape(item: Any, varying: set[Any]) -> bool:
    """Return whether the shape of an item may depend on values, as that of an operand in `varying` does."""
    return any(item.args[p] in varying for p in item.parent_argnums) or ops.has_value_dependent_shape(
        item.function, item.args, item.parent_argnums
    )


def _inline_composites(items: Iterable[Any], inputs: frozenset[Any], replacements: dict[Any, Any]) -> Iterator[Any]:
    """Yield the items, with some composite operations expanded into steps, which can then be merged with others."""
    for item in items:
        if item in inputs or not isinstance(item, Value) or not _is_inlined(item.function) or _touches_written_array(item):
            yield item
            continue
        with rerecording():
            out = item.function(*item.args, **item.options)
        ends = frozenset(a for a in item.args if isinstance(a, Value))
        steps = [step for step in collect_dependencies([out], stop=ends) if step.args and step not in ends]
        for position, step in enumerate(steps):
            step.sequence_number = item.sequence_number - 0.5 + position / (2 * len(steps))
            yield copy_location(item, step)
        replacements[item] = replacements[out]


def _is_inlined(function: object) -> bool:
    spec = ops.SPECS.get(function)
    return spec is not None and spec.is_inlined


def _touches_written_array(item: Any) -> bool:
    """Return whether an item is an array with writes, or reads one."""
    operands = [item.args[position] for position in item.parent_argnums]
    return any(isinstance(node, Value) and root_of(node).memory for node in (item, *operands))


def _is_constant(item: object) -> bool:
    return issubclass(type(item), ConstantNode) or (
        type(item) is MultiOutput and all(_is_constant(item.args[p]) for p in item.parent_argnums)
    )


def _make_constant(item: Any, args: tuple[Any, ...]) -> Any:
    if type(item) is MultiOutput:
        return with_operands(item, args)
    constant_node = copy_location(item, ConstantNode.wrap(item.raw_value, item._name))
    constant_node.raw_value = item.raw_value
    return constant_node


def _preserve_view(replacement: Any, item: Any) -> Any:
    """Return the replacement of `item`; where `item` is a view of its operand, a view of the new operand."""
    if type(item) is MultiOutput:
        if any(replacement.args[p].raw_value is not item.args[p].raw_value for p in item.parent_argnums):
            replacement.raw_value = tuple(_evaluate(replacement))
        return replacement
    if isinstance(item.function, ops.Output):
        output = replacement.args[0].raw_value[item.function.index]
        is_current = type(output) is not np.ndarray or output is replacement.raw_value
        return replacement if is_current else with_operands(replacement, replacement.args, output)
    if viewed_operand(item) is None or viewed_operand(replacement) is not None:
        return replacement
    return with_operands(replacement, replacement.args, _evaluate(replacement))


def _evaluate(node: Any) -> Any:
    """Call the function of a node or multi-output operation with its operands."""
    return node.function(*[a.raw_value if isinstance(a, (Value, MultiOutput)) else a for a in node.args], **node.options)


def _copy_write(item: Write, args: tuple[Any, ...], memory: Memory) -> Write:
    new_write = item.with_value(memory, args[0], isinstance(args[0], Value))
    memory.log.append(new_write)
    return new_write


def _value_key(value: NDArray[Any] | np.generic) -> Any:
    """Return a key shared by constants of the same type, layout and bits."""
    if value.nbytes > MAX_COMPARED_BYTES:
        return id(value)
    return (type(value), value.dtype, value.shape, getattr(value, "strides", ()), value.tobytes())


def _operand_key(value: object) -> Any:
    """Return a key shared by equal operands or equal options."""
    if isinstance(value, (Value, MultiOutput)):
        return id(value)
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_operand_key, value))
    if isinstance(value, dict):
        return tuple([(name, _operand_key(option)) for name, option in value.items()])
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= MAX_COMPARED_BYTES and value.dtype.kind in "biufc":
        return _value_key(value)
    if isinstance(value, (int, float, complex, str, type(None), slice)):
        return (type(value), repr(value))
    return id(value)
