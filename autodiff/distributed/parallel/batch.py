"""Batches of plain arrays, and of arrays that are stored with the machines (`RemoteArray`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph.array_types import Array
from compgraph.graph import to_values
from compgraph.values import INERT, TRACEABLE, Value, current_copy

from ...arguments import flatten, unflatten
from .actor import RemoteRows


class RemoteArray:
    """A reference to an array stored with the machines, or to some of its rows (``x[rows]``).

    In a batch, it replaces the array, so that row numbers are sent instead of data.

    Attributes
    ----------
    shape, dtype, ndim
        As of the array, or of the selected rows.
    """

    def __init__(self, key: str, array: np.ndarray, rows: Any = None, owner: RemoteArray | None = None) -> None:
        self.key, self._array = key, array
        self._owner = owner  # the machines store the array for the lifetime of the object that `put` returned
        self._rows = range(len(array)) if rows is None else rows

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rows."""
        return (len(self._rows), *self._array.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Any:
        raise TypeError("an array stored with the machines cannot be iterated over. Index it by many rows at once: x[rows].")

    def __getitem__(self, rows: Any) -> RemoteArray:
        if isinstance(rows, slice):
            return RemoteArray(self.key, self._array, self._rows[rows], self._owner or self)
        index = np.asarray(rows)
        if index.ndim != 1 or (index.dtype.kind not in "biu" and len(index)):
            raise IndexError(
                f"an array stored with the machines is indexed by rows: a slice, row numbers or a mask of one axis, not {rows!r}."
            )
        if index.dtype.kind != "b":
            index = index.astype(np.intp)
        return RemoteArray(self.key, self._array, np.asarray(self._rows)[index], self._owner or self)

    def remote_rows(self, first: int, last: int) -> RemoteRows:
        """Return a reference to a range of these rows, as it is sent to a machine."""
        rows = self._rows[first:last]
        if isinstance(rows, range):
            stop = None if rows.stop < 0 else rows.stop
            rows = slice(rows.start, stop, rows.step) if len(rows) else slice(0, 0)
        return RemoteRows(self.key, rows)

    def __repr__(self) -> str:
        return f"RemoteArray(shape={self.shape}, dtype={self.dtype})"


class Batch:
    """The arrays of a batch, nested in any way.

    Attributes
    ----------
    leaves, structure : list, PyTreeSpec
        The arrays, and the structure in which they nest.
    count : int
        The number of rows.
    keys : set of str
        The keys of the arrays that are stored with the machines.

    Raises
    ------
    TypeError, ValueError
        If a leaf is not an array, has no rows, or differs from others in its number of rows.
    """

    def __init__(self, batch: Sequence[Any]) -> None:
        leaves, self.structure = flatten(list(batch))
        self.leaves = list(map(_as_batch_array, leaves))
        lengths = {len(x) for x in self.leaves}
        if not lengths:
            raise TypeError("DataParallel: the batch is missing. Pass the arrays whose rows are distributed.")
        if len(lengths) > 1:
            shapes = ", ".join(str(x.shape) for x in self.leaves)
            raise ValueError(f"DataParallel: the arrays of a batch must have equally many rows, not shapes {shapes}.")
        (self.count,) = lengths
        if not self.count:
            raise ValueError("DataParallel: the batch has no rows, so its mean is undefined.")
        self.keys = {x.key for x in self.leaves if isinstance(x, RemoteArray)}

    def snapshot(self) -> Batch:
        """Return the same rows, independent of later writes into the index arrays."""
        return Batch(unflatten(self.structure, [x if isinstance(x, RemoteArray) else x.copy() for x in self.leaves]))

    def select(self, first: int, last: int) -> list[Any]:
        """Return a range of rows of each array."""
        return [x.remote_rows(first, last) if isinstance(x, RemoteArray) else x[first:last] for x in self.leaves]


def _as_batch_array(x: Array) -> Any:
    """Return an array of a batch as a plain array or a `RemoteArray`."""
    if isinstance(x, Value):
        if type(x) not in INERT:
            raise TypeError(
                "DataParallel: an array of the batch is an active node, but derivatives are with respect to the parameters "
                "alone. Pass it as a parameter, or pass its value (x.value)."
            )
        x = to_values(x)
    if type(x) in TRACEABLE:  # a borrowed argument or a buffer of a function that is differentiated
        x = np.asarray(current_copy(x))
    if isinstance(x, RemoteArray):
        return x
    if type(x).__module__.partition(".")[0] == "dask":
        raise TypeError("DataParallel: an array of the batch is a dask array. Use autodiff.distributed.value_and_grad.")
    if type(x) is not np.ndarray and not isinstance(x, np.memmap):
        raise TypeError(
            f"DataParallel: a batch is made of NumPy arrays, not {type(x).__name__}. Convert it (np.asarray, .to_numpy())."
        )
    if not x.ndim:
        raise ValueError("DataParallel: an array of the batch has no rows (shape ()). Pass it as a parameter.")
    return np.asarray(x)
