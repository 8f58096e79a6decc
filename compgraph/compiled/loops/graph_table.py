"""Graphs as tables: per operation, a kind that is equal in all iterations of a loop, and integers that may differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...storage import Write, layout_in, value_at
from ...values import MultiOutput, Value

# Operations whose derivatives and machine code do not depend on the values of constants.
ARITHMETIC = frozenset(function for function, sign in ops.INFIX.items() if sign in ("+", "-", "*", "/"))
_NUMBERS = frozenset({float, int, np.float64, np.float32})
_PLAIN = frozenset({str, bool, type(None), type(Ellipsis), type})
MAX_COMPARED_BYTES = 4096  # size of the largest array that is compared by value
MAX_WRITES = 64  # writes into an array that each iteration creates


class GraphTable:
    """The items of a graph as a `RowTable`.

    Parameters
    ----------
    items : sequence
        Nodes, multi-output operations and writes, in the order of recording.
    inputs : collection of Node
        The inputs of the graph.

    Attributes
    ----------
    row_of : dict
        The row of each item.
    kinds, numbers, may_change : arrays
        See `RowTable`. Numbers are the rows of the operands, then indices and offsets into arrays.
    number_counts, operand_counts : arrays
        By row, the count of its numbers, and of those that refer to operands.
    """

    def __init__(self, items: Sequence[Any], inputs: Collection[Any]) -> None:
        self.items = items
        self.row_of = {item: row for row, item in enumerate(items)}
        self._roots = {id(item.memory): row for row, item in enumerate(items) if isinstance(item, Value) and item.memory}
        self._kinds: dict[Any, int] = {}
        kinds, flat, number_counts, operand_counts = [], list[int](), [], []
        for item in items:
            before = len(flat)
            is_input = item in inputs
            if is_input:
                key: Any = ("input", id(item))
            else:
                key = self._write_key(item, flat) if type(item) is Write else self._node_key(item, flat)
            kinds.append(self._kinds.setdefault(key, len(self._kinds)))
            number_counts.append(len(flat) - before)
            operand_counts.append(0 if is_input else len(item.parent_argnums) + (type(item) is Write))
        self.kinds = np.array(kinds, np.int64)
        self.number_counts, self.operand_counts = np.array(number_counts), np.array(operand_counts)
        widest = int(self.number_counts.max(initial=1))
        self.numbers = np.zeros((len(items), widest), np.int64)
        self.numbers[np.arange(widest) < self.number_counts[:, None]] = flat
        self.may_change = np.ones(self.numbers.shape, bool)

    def _node_key(self, item: Any, flat: list[int]) -> Any:
        """Return the kind of a node or multi-output operation; append its numbers, operands first."""
        function, args = item.function, item.args
        if not args:
            return self._leaf_key(item)
        row_of = self.row_of
        flat += [row_of[args[position]] for position in item.parent_argnums]
        key: list[Any] = [function, item.parent_argnums]
        if isinstance(item, Value):
            plain = item.raw_value
            key += (plain.dtype, plain.shape, item.is_scalar)
            if type(plain) is np.ndarray:
                key.append(plain.strides)
            if item.memory:
                key.append("root")
        if len(item.parent_argnums) < len(args):
            is_index, is_arithmetic = function is ops.getitem, function in ARITHMETIC
            for a in args:
                if isinstance(a, (Value, MultiOutput)):
                    continue
                if is_arithmetic and type(a) in _NUMBERS:
                    key.append(type(a))
                else:
                    key.append(_index_key(a, flat) if is_index else _constant_key(a))
        if item.options:
            key.append(tuple([(name, _constant_key(option)) for name, option in item.options.items()]))
        return tuple(key)

    def _leaf_key(self, item: Any) -> Any:
        """Return the kind of a leaf: for an array that is written into, its initial contents; other leaves are unique."""
        memory = getattr(item, "memory", None)
        if not memory or item.raw_value.nbytes > MAX_COMPARED_BYTES or len(memory.log) > MAX_WRITES:
            return ("leaf", id(item))
        plain = value_at(item, item.sequence_number)
        return ("initial contents", type(item), plain.dtype, plain.shape, plain.strides, plain.tobytes())

    def _write_key(self, item: Write, flat: list[int]) -> Any:
        """Return the kind of a write; append its numbers, operands first."""
        root = self._roots[id(item.memory)]
        flat.append(root)
        (value,) = item.args
        if item.parent_argnums:
            flat.append(self.row_of[value])
        key = ["write", None if item.parent_argnums else _constant_key(value), _index_key(item.index, flat)]
        buffer, window = self.items[root].raw_value, item.window
        if window is not buffer:
            layout = layout_in(buffer, window)
            flat.append(layout["offset"] // buffer.itemsize)
            key += (layout["offset"] % buffer.itemsize, layout["shape"], layout["strides"], layout["dtype"])
        return tuple(key)


def _index_key(value: Any, flat: list[int]) -> Any:
    """Return the kind of an index; append its integers."""
    kind = type(value)
    if kind is int or isinstance(value, np.integer):
        flat.append(int(value))
        return kind, value < 0
    if kind is slice:
        return (slice, *[_index_key(part, flat) for part in (value.start, value.stop, value.step)])
    if kind is tuple:
        return (tuple, *[_index_key(part, flat) for part in value])
    return _constant_key(value)


def _constant_key(value: Any) -> Any:
    """Return a key that equal values share."""
    kind = type(value)
    if kind in _NUMBERS or kind is complex:
        return kind, repr(value)  # distinguishes the signs of zeros
    if kind in _PLAIN or isinstance(value, np.dtype):
        return kind, value
    if kind is tuple or kind is list:
        return (kind, *map(_constant_key, value))
    if kind is slice:
        return (slice, _constant_key(value.start), _constant_key(value.stop), _constant_key(value.step))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= MAX_COMPARED_BYTES and value.dtype.kind in "biufc":
        return kind, value.dtype, value.shape, getattr(value, "strides", ()), value.tobytes()
    return kind, id(value)
