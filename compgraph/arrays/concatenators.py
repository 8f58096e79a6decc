"""``r_``, ``c_``, ``bmat`` and ``asmatrix`` of nodes.

NumPy's own convert their arguments to arrays without dispatch to nodes: they raise, or (for a node in a list, or at the start of
a slice) convert it to a plain array and lose the graph. Where NumPy returns an ``np.matrix``, the result here is a node of two
dimensions, because operators of ``np.matrix`` differ from those of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..frames import frame_up
from ..graph import flatten_sequences, stack_nested, to_values
from ..guards import note_arange_length
from ..interpreters import inert_leaf
from ..values import Value
from .creation import array, asarray


def asmatrix(data: Any, dtype: DTypeLike | None = None) -> Any:
    """``numpy.asmatrix``: of nodes, a node of two dimensions.

    Parameters
    ----------
    data : array_like
        A node, an array, or nested sequences of numbers and nodes; a scalar or vector becomes a row.
    dtype : dtype, optional
        The dtype of the result.

    Returns
    -------
    numpy.matrix or Node

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.asmatrix(cg.variable([1.0, 2.0])).shape
    (1, 2)
    """
    node = stack_nested(data)
    if not isinstance(node, Value):
        return np.asmatrix(data, dtype)
    node = asarray(node, dtype)
    if node.ndim == 2:
        return node
    lengths = node.shape if node.ndim < 2 else tuple([n for n in node.shape if n > 1])
    if len(lengths) > 2:
        raise ValueError("shape too large to be a matrix.")
    return np.reshape(node, (1,) * (2 - len(lengths)) + lengths)


def bmat(obj: Any, ldict: dict[str, Any] | None = None, gdict: dict[str, Any] | None = None) -> Any:
    """``numpy.bmat``, a matrix of blocks: of nodes, a node of two dimensions.

    Parameters
    ----------
    obj : str or array_like
        Rows of blocks in nested lists, or a text that names them: ``"a, b; c, d"``.
    ldict, gdict : dict, optional
        Namespaces in which names are looked up, `ldict` first; by default the variables of the caller.

    Returns
    -------
    numpy.matrix or Node

    Raises
    ------
    NameError
        If a text has a name that is not found.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable([[1.0]])
    >>> print(cg.bmat("x, x"), cg.bmat([[x, 2 * x], [x, x]]).opname)
    [[1. 1.]] concatenate
    """
    if isinstance(obj, str):
        if gdict is None:
            frame = frame_up(1)
            ldict, gdict = frame.f_locals, frame.f_globals
        variables: Any = ldict
        rows = [[_look_up(name, variables, gdict) for name in row.replace(",", " ").split()] for row in obj.split(";")]
        return _join_blocks(rows) if _has_nodes(rows) else np.bmat(obj, ldict, gdict)
    if not _has_nodes(obj):
        return np.bmat(obj, ldict, gdict)
    if isinstance(obj, (list, tuple)) and not any(isinstance(row, np.ndarray) for row in obj):
        return _join_blocks(obj)
    return asmatrix(obj if isinstance(obj, Value) else np.concatenate(obj, axis=-1))


def _join_blocks(rows: Sequence[Any]) -> Any:
    return asmatrix(np.concatenate([np.concatenate(row, axis=-1) for row in rows], axis=0))


def _look_up(name: str, primary: dict[str, Any], fallback: dict[str, Any]) -> Any:
    if name not in primary and name not in fallback:
        raise NameError(f"name {name!r} is not defined")
    return primary[name] if name in primary else fallback[name]


def _has_nodes(value: object) -> bool:
    return any(isinstance(leaf, Value) for leaf in flatten_sequences(value))


class Concatenator:
    """The class of ``cg.r_`` and ``cg.c_``, which join the arrays between brackets as ``numpy.r_`` and ``numpy.c_`` do.

    Nodes are accepted wherever NumPy accepts arrays or numbers: as entries, in lists, and as bounds of slices. Without a node,
    the result is NumPy's own. Where NumPy makes an ``np.matrix`` (by ``"r"``, ``"c"``, or names in a text), the result is a
    node of two dimensions.

    Parameters
    ----------
    numpy_object : numpy.lib._index_tricks_impl.AxisConcatenator
        NumPy's object of that name.
    """

    __slots__ = ("numpy_object",)

    def __init__(self, numpy_object: Any) -> None:
        self.numpy_object = numpy_object

    def __getitem__(self, key: Any) -> Any:
        """Join the arrays between the brackets."""
        if isinstance(key, str):
            frame = frame_up(1)
            return bmat(key, frame.f_globals, frame.f_locals)
        items = list(key) if isinstance(key, tuple) else [key]
        if not any(_has_nodes(_bounds(item)) for item in items):
            return self.numpy_object[key]
        axis, ndmin, position, matrix_kind = self.numpy_object.axis, self.numpy_object.ndmin, self.numpy_object.trans1d, ""
        if isinstance(items[0], str):
            axis, ndmin, position, matrix_kind = _parse_directive(items.pop(0), axis, ndmin, position)
        pieces = [_entry_array(item, ndmin, position) for item in items]
        dtype = np.result_type(*[piece if type(piece) in np.ScalarType else piece.dtype for piece in pieces])
        joined = np.concatenate([array(piece, dtype, copy=None, ndmin=ndmin) for piece in pieces], axis=axis)
        if not matrix_kind:
            return joined
        return asmatrix(joined).T if matrix_kind == "c" and joined.ndim == 1 else asmatrix(joined)

    def __len__(self) -> int:
        return 0


def _bounds(item: object) -> Any:
    """Return the values in an entry that may be nodes."""
    return [item.start, item.stop, item.step] if isinstance(item, slice) else item


def _parse_directive(text: str, axis: int, ndmin: int, position: int) -> tuple[int, int, int, str]:
    """Parse the leading text: axis, minimal number of dimensions, position of the entry's own axes, kind of matrix."""
    if text in ("r", "c"):
        return axis, ndmin, position, text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"unknown special directive {text!r}") from error
    if len(numbers) == 1:
        return numbers[0], ndmin, position, ""
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else position, ""


def _entry_array(item: object, ndmin: int, position: int) -> Any:
    """Convert an entry to an array of at least `ndmin` dimensions, with its axes at `position`; plain numbers are unchanged."""
    if isinstance(item, slice):
        line = array(_slice_points(item), copy=None, ndmin=ndmin)
        return np.swapaxes(line, -1, position) if ndmin > 1 and position != -1 else line
    if isinstance(item, str):
        raise ValueError("special directives must be the first entry.")
    if type(item) in np.ScalarType:
        return item
    piece = asarray(item)
    axes = piece.ndim
    piece = array(piece, copy=None, ndmin=ndmin)
    if position == -1 or axes >= ndmin:
        return piece
    num_new_axes = ndmin - axes
    first = position + num_new_axes + 1 if position < 0 else position
    order = list(range(ndmin))
    return np.transpose(piece, order[:first] + order[num_new_axes:] + order[first:num_new_axes])


def _slice_points(item: slice) -> Any:
    """Return the points of a slice, as ``np.r_`` does: for ``start:stop:5j`` 5 points with both ends, else ``np.arange``."""
    start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
    if isinstance(step, (complex, np.complexfloating)):
        return np.linspace(start, item.stop, num=int(np.abs(step)))
    note_arange_length(start, item.stop, step)
    plain = np.arange(to_values(start), to_values(item.stop), to_values(step))
    if not _has_nodes([start, step]):
        return inert_leaf(plain) if isinstance(item.stop, Value) else plain
    first, second = (asarray(number, plain.dtype) for number in (start, start + step))
    remaining_points = first + np.arange(2, max(plain.size, 2)).astype(plain.dtype) * (second - first)
    return np.concatenate([np.reshape(first, 1), np.reshape(second, 1), remaining_points])[: plain.size]


r_ = Concatenator(np.r_)
c_ = Concatenator(np.c_)
