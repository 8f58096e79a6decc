"""The rows of a batch: arrays that are sent, and `Kept` for those that were left with the machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.graph import to_values
from compgraph.values import INERT, TRACEABLE, Value, current_copy

from ...arguments import flatten, unflatten
from .machine import Part


class Kept:
    """An array stored with the machines; indexed by rows, it represents these.

    It is passed in place of an array of the batch, so that row numbers are sent instead of data.

    Attributes
    ----------
    shape, dtype, ndim
        Those of the array, or of its rows.
    """

    def __init__(self, key: str, array: np.ndarray, rows: Any = None, whole: Kept | None = None) -> None:
        self.key, self._array = key, array
        self._whole = whole  # as long as it is referred to, the machines hold the array
        self._rows = range(len(array)) if rows is None else rows

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rows."""
        return (len(self._rows), *self._array.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Any:
        raise TypeError("an array that was left with the machines is indexed by many rows at once, and cannot be iterated over")

    def __getitem__(self, rows: ArrayLike | str | slice) -> Kept:
        if isinstance(rows, slice):
            return Kept(self.key, self._array, self._rows[rows], self._whole or self)
        index = np.asarray(rows)
        if index.ndim != 1 or (index.dtype.kind not in "biu" and len(index)):
            raise IndexError(
                f"an array stored with the machines is indexed by rows: a slice, row numbers or a mask of one axis, not {rows!r}"
            )
        if index.dtype.kind != "b":
            index = index.astype(np.intp)
        return Kept(self.key, self._array, np.asarray(self._rows)[index], self._whole or self)

    def part(self, first: int, last: int) -> Part:
        """A selection of the rows, looked up by a machine."""
        rows = self._rows[first:last]
        if isinstance(rows, range):
            stop = None if rows.stop < 0 else rows.stop
            rows = slice(rows.start, stop, rows.step) if len(rows) else slice(0, 0)
        return Part(self.key, rows)

    def __repr__(self) -> str:
        return f"Kept(shape={self.shape}, dtype={self.dtype})"


class Rows:
    """The arrays of a batch, which may nest.

    Attributes
    ----------
    leaves, structure : list, PyTreeSpec
        The arrays, and how they nest.
    count : int
        The number of rows.
    keys : set of str
        The keys of arrays that were left with the machines.

    Raises
    ------
    TypeError, ValueError
        If one is not an array, has no rows, or has another number of rows than the first.
    """

    def __init__(self, batch: Sequence[Any]) -> None:
        leaves, self.structure = flatten(list(batch))
        self.leaves = list(map(_as_rows, leaves))
        lengths = {len(x) for x in self.leaves}
        if not lengths:
            raise TypeError("DataParallel: the batch is missing: pass the arrays whose rows are to be shared")
        if len(lengths) > 1:
            shapes = ", ".join(str(x.shape) for x in self.leaves)
            raise ValueError(f"DataParallel: the arrays of a batch have equally many rows, not shapes {shapes}")
        (self.count,) = lengths
        if not self.count:
            raise ValueError("DataParallel: the batch has no rows, so their mean is undefined")
        self.keys = {x.key for x in self.leaves if isinstance(x, Kept)}

    def fixed(self) -> Rows:
        """Return the same rows, independent of later writes into the index arrays."""
        return Rows(unflatten(self.structure, [x if isinstance(x, Kept) else x.copy() for x in self.leaves]))

    def pieces(self, first: int, last: int) -> list[Any]:
        """Some rows of each array."""
        return [x.part(first, last) if isinstance(x, Kept) else x[first:last] for x in self.leaves]


def _as_rows(x: NDArray[Any]) -> Any:
    """An array of a batch, as a plain array or a `Kept`."""
    if isinstance(x, Value):
        if type(x) not in INERT:
            raise TypeError(
                "DataParallel: an array of the batch is an active node; derivatives are with respect to the parameters alone. "
                "Give it among them, or as numbers (x.value)"
            )
        x = to_values(x)
    if type(x) in TRACEABLE:  # as arrays are seen within a function that is differentiated
        x = np.asarray(current_copy(x))
    if isinstance(x, Kept):
        return x
    if type(x).__module__.partition(".")[0] == "dask":
        raise TypeError("DataParallel: for dask arrays there is autodiff.distributed.value_and_grad, which goes block by block")
    if type(x) is not np.ndarray and not isinstance(x, np.memmap):
        raise TypeError(
            f"DataParallel: a batch is made of NumPy arrays, not {type(x).__name__}; convert it (np.asarray, .to_numpy())"
        )
    if not x.ndim:
        raise ValueError("DataParallel: an array of the batch has no rows (shape ()); what all rows share is a parameter")
    return np.asarray(x)
