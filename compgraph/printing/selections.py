"""The formulas of what elements and parts of arrays pass back: unit vectors, and columns of the identity matrix.

``x[1:]`` is a product with rows of the identity matrix, so its adjoint is multiplied by their transpose: ``I[:, 1:] @ g``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import expressions as ex
from .expressions import Call, Expression


def unit(place: int, length: int) -> Expression:
    """A vector that is one at a place, and zero elsewhere."""
    return ex.call(Call("unit", None, {}, False, (place % length,)), [], (length,))


def columns(index: slice, length: int) -> Expression | None:
    """Columns of the identity matrix; None where they are all of it."""
    start, stop, step = index.indices(length)
    count = len(range(start, stop, step))
    if (start, step, count) == (0, 1, length):
        return None
    what = Call("getitem", None, {"index": (slice(None), index)}, False, (repr(index),))
    return ex.call(what, [ex.identity(length)], (length, count))


def placed(piece: Expression, index: tuple[Any, ...], shape: ex.Shape) -> Expression | None:
    """Zeros of a shape, a vector's or a matrix's, with a piece at an index; None where that is no product."""
    if len(shape) not in (1, 2) or len(index) > len(shape) or not all(isinstance(i, (int, np.integer, slice)) for i in index):
        return None
    if len(shape) == 1:
        return _along(piece, index[0], shape[0]) if index else piece
    first, last = [*index, slice(None), slice(None)][:2]
    scalars, piece = ex.scalars_of(piece)
    if scalars:
        rest = placed(piece, index, shape)
        return None if rest is None else ex.mul([*scalars, rest], shape)
    if not isinstance(first, slice) and not isinstance(last, slice):
        return ex.mul([piece, ex.matmul([_column(first, shape[0]), _row(last, shape[1])], shape)], shape)
    if not isinstance(first, slice):
        return ex.matmul([_column(first, shape[0]), ex.row(_along(piece, last, shape[1]))], shape)
    if not isinstance(last, slice):
        return ex.matmul([ex.column(_along(piece, first, shape[0])), _row(last, shape[1])], shape)
    left, right = columns(first, shape[0]), columns(last, shape[1])
    factors = [piece] if left is None else [left, piece]
    factors += [] if right is None else [ex.transpose(right)]
    return piece if len(factors) == 1 else ex.matmul(factors, shape)


def _along(piece: Expression, index: Any, length: int) -> Expression:
    """A vector with a piece at an index."""
    if not isinstance(index, slice):
        return ex.mul([piece, unit(int(index), length)], (length,))
    chosen = columns(index, length)
    return piece if chosen is None else ex.matmul([chosen, piece], (length,))


def _column(index: Any, length: int) -> Expression:
    return ex.column(unit(int(index), length))


def _row(index: Any, length: int) -> Expression:
    return ex.row(unit(int(index), length))


def on_diagonal(piece: Expression, shape: ex.Shape) -> Expression | None:
    """A square matrix with one value on its diagonal, and zeros elsewhere; None where the values differ."""
    if piece.is_number():
        return ex.mul([ex.number(piece.data), ex.identity(shape[0])], shape)
    while piece.head == "mul" and len(piece.args) == 1:  # one value, repeated
        piece = piece.args[0]
    scalars = piece.args if piece.head == "mul" else (piece,)
    return None if any(arg.ndim for arg in scalars) else ex.mul([*scalars, ex.identity(shape[0])], shape)


def is_diagonal(index: Any, shape: ex.Shape) -> bool:
    """Whether places in a matrix, counted row by row, are those of its diagonal."""
    return len(shape) == 2 and shape[0] == shape[1] and np.array_equal(index, np.arange(0, shape[0] ** 2, shape[0] + 1))


def is_identity(array: Any) -> bool:
    """Whether an array of real numbers is the identity matrix, or a multiple of it that is not zero."""
    if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) < 2 or array.dtype.kind not in "iuf":
        return False
    return bool(array[0, 0] != 0 and np.array_equal(array, array[0, 0] * np.eye(len(array))))
