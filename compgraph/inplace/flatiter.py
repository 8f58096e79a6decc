"""``node.flat``: reading and writing the elements of a node in C order."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..graph import as_operand
from ..guards import note_shape
from ..values import Node, require_history
from .numpy_writes import set_flat
from .stores import move_elements, overlaps


class Flat:
    """An iterator over the elements of a node in C order, indexed by flat positions, like ``numpy.flatiter``.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable([[1.0, 2.0], [3.0, 4.0]])
    >>> y = x * 2
    >>> y.flat[::3] = 0
    >>> print(y, y.flat[1])
    [[0. 4.]
     [6. 0.]] 4.0
    """

    __slots__ = ("_next", "base")

    def __init__(self, base: Node) -> None:
        require_history(base)
        self.base = base
        self._next = 0

    def __len__(self) -> int:
        note_shape(self.base, "len() of .flat")
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._next:
            note_shape(self.base, "a loop over .flat")
        if self._next >= self.base.size:
            raise StopIteration
        element = self.base[self.coords]
        self._next += 1
        return element

    @property
    def index(self) -> int:
        """The position of the next element."""
        return self._next

    @property
    def coords(self) -> tuple[int, ...]:
        """The index of the next element in the array."""
        note_shape(self.base, ".flat.coords")
        shape = self.base.shape
        return tuple(map(int, np.unravel_index(self._next, shape))) if shape else ()

    def __getitem__(self, index: Any) -> Any:
        note_shape(self.base, "the shape read by an index of .flat")
        positions = np.arange(self.base.size)[index]
        if not self.base.ndim:
            return np.ravel(self.base)[positions]  # unravel_index accepts no arrays for a 0-d shape
        return self.base[np.unravel_index(positions, self.base.shape)]

    def __setitem__(self, index: Any, value: Any) -> None:
        note_shape(self.base, "the shape read by an index of .flat")
        value = as_operand(value)
        if overlaps(self.base, value):
            require_history(self.base)
            move_elements(self.base, (value,), lambda array, source: operator.setitem(array.flat, index, source))
        else:
            set_flat(self.base, np.arange(self.base.size)[index], value)

    def copy(self) -> Any:
        """Return a flat copy of the array."""
        return self.base.flatten()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> Any:
        if "out" in options:
            raise TypeError(
                f"np.{ufunc.__name__}: .flat of a node cannot be an output. Pass np.ravel(node), or assign to node.flat[:]"
            )
        return getattr(ufunc, method)(
            *map(_ravel_nodes, inputs), **{name: _ravel_nodes(value) for name, value in options.items()}
        )

    def __array_function__(self, function: Any, types: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*map(_ravel_nodes, args), **{name: _ravel_nodes(value) for name, value in kwargs.items()})

    def __array__(self, *args: object, **kwargs: object) -> Any:
        raise TypeError("x.flat of a node cannot be converted to an array. Use x.ravel(), or x.value.flat for its values")

    def __eq__(self, other: object) -> Any:
        return np.equal(np.ravel(self.base), _ravel_nodes(other))

    def __ne__(self, other: object) -> Any:
        return np.not_equal(np.ravel(self.base), _ravel_nodes(other))

    def __lt__(self, other: object) -> Any:
        return np.less(np.ravel(self.base), _ravel_nodes(other))

    def __le__(self, other: object) -> Any:
        return np.less_equal(np.ravel(self.base), _ravel_nodes(other))

    def __gt__(self, other: object) -> Any:
        return np.greater(np.ravel(self.base), _ravel_nodes(other))

    def __ge__(self, other: object) -> Any:
        return np.greater_equal(np.ravel(self.base), _ravel_nodes(other))

    __hash__ = None  # type: ignore[assignment]


def _ravel_nodes(value: object) -> Any:
    """Return raveled nodes in place of their `Flat`, also within lists and tuples."""
    if type(value) in (list, tuple):
        return type(value)(map(_ravel_nodes, value))  # type: ignore[call-arg, call-overload]
    return np.ravel(value.base) if isinstance(value, Flat) else value
