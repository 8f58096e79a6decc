"""The items of a graph as rows of a table: what two turns of a Python loop have in common, and what may change between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...storage import Write, place_in, value_at
from ...values import MultiOutput, Value

# Operations whose derivatives, and whose machine code, are the same whatever numbers stand in them.
ARITHMETIC = frozenset({np.add, np.subtract, np.multiply, np.divide})
_WEAK = frozenset({float, int})
_NUMBERS = _WEAK | {np.float64, np.float32}
_PLAIN = frozenset({str, bool, complex, type(None), type(Ellipsis), type})
MOST_BYTES = 4096  # of an array that is compared by its numbers
MOST_WRITES = 64  # into an array that is made anew in each turn


class Rows:
    """The rows of some items.

    Parameters
    ----------
    items : sequence
        Nodes, joints and writes, in the order of recording.
    given : collection of Node
        Those where the graph begins.

    Attributes
    ----------
    place : dict
        The row of each item.
    kinds, numbers, may_change : arrays
        As `periods` takes them. Numbers are the rows of the operands, and the indices and offsets of parts of arrays.
    parts : list
        For each row the columns of `numbers` that say which part of an array is meant.
    """

    def __init__(self, items: Sequence[Any], given: Collection[Any]) -> None:
        self.items = items
        self.place = {item: row for row, item in enumerate(items)}
        self._roots = {id(item.memory): row for row, item in enumerate(items) if isinstance(item, Value) and item.memory}
        self._kinds: dict[Any, int] = {}
        kinds, flat, counts, operands = [], list[int](), [], []
        for item in items:
            before = len(flat)
            is_given = item in given
            if is_given:
                key: Any = ("given", id(item))
            else:
                key = self._of_write(item, flat) if type(item) is Write else self._of_node(item, flat)
            kinds.append(self._kinds.setdefault(key, len(self._kinds)))
            counts.append(len(flat) - before)
            operands.append(0 if is_given else len(item.parent_argnums) + (type(item) is Write))
        self.kinds = np.array(kinds, np.int64)
        self.counts, self.operands = np.array(counts), np.array(operands)
        widest = int(self.counts.max(initial=1))
        self.numbers = np.zeros((len(items), widest), np.int64)
        self.numbers[np.arange(widest) < self.counts[:, None]] = flat
        self.may_change = np.ones(self.numbers.shape, bool)

    def _of_node(self, item: Any, flat: list[int]) -> Any:
        """What a node or joint is like; its numbers are appended, those of its operands first."""
        function, args = item.function, item.args
        if not args:
            return self._of_leaf(item)
        place = self.place
        flat += [place[args[position]] for position in item.parent_argnums]
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
                    key.append(_index(a, flat) if is_index else _settled(a))
        if item.options:
            key.append(tuple([(name, _settled(option)) for name, option in item.options.items()]))
        return tuple(key)

    def _of_leaf(self, item: Any) -> Any:
        """What an array is like that was made to be written into; other leaves are like none."""
        memory = getattr(item, "memory", None)
        if not memory or item.raw_value.nbytes > MOST_BYTES or len(memory.log) > MOST_WRITES:
            return ("leaf", id(item))
        plain = value_at(item, item.sequence_number)
        return ("made", type(item), plain.dtype, plain.shape, plain.strides, plain.tobytes())

    def _of_write(self, item: Any, flat: list[int]) -> Any:
        """What a write is like."""
        root = self._roots[id(item.memory)]
        flat.append(root)
        (value,) = item.args
        if item.parent_argnums:
            flat.append(self.place[value])
        key = ["write", None if item.parent_argnums else _settled(value), _index(item.index, flat)]
        there, window = self.items[root].raw_value, item.window
        if window is not there:
            how = place_in(there, window)
            flat.append(how["offset"] // there.itemsize)
            key += (how["offset"] % there.itemsize, how["shape"], how["strides"], how["dtype"])
        return tuple(key)


def _index(value: Any, flat: list[int]) -> Any:
    """What an index is like; its numbers are appended."""
    kind = type(value)
    if kind is int or isinstance(value, np.integer):
        flat.append(int(value))
        return kind, value < 0
    if kind is slice:
        return (slice, *[_index(part, flat) for part in (value.start, value.stop, value.step)])
    if kind is tuple:
        return (tuple, *[_index(part, flat) for part in value])
    return _settled(value)


def _settled(value: Any) -> Any:
    """A key that equal values share."""
    kind = type(value)
    if kind in _NUMBERS:
        return kind, repr(value)
    if kind in _PLAIN or isinstance(value, np.dtype):
        return kind, value
    if kind is tuple or kind is list:
        return (kind, *map(_settled, value))
    if kind is slice:
        return (slice, _settled(value.start), _settled(value.stop), _settled(value.step))
    if isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= MOST_BYTES and value.dtype.kind in "biufc":
        return kind, value.dtype, value.shape, getattr(value, "strides", ()), value.tobytes()
    return kind, id(value)
