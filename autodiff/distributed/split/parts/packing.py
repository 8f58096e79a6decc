"""Arrays in the form that is sent: few bytes, with the same memory layout on arrival.

The order in which NumPy and BLAS add numbers depends on the memory layout. So the axes keep their order in memory; one with
stride 0 is sent once and repeated on arrival, and one with a negative stride gets it back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compgraph.array_types import Array


class Packed(NamedTuple):
    """An array as it is sent.

    Attributes
    ----------
    array : numpy.ndarray
        The numbers, in C order.
    shape : tuple of int
        The shape on arrival.
    axes : tuple of int
        The position of each axis in `array`.
    flipped : tuple of int
        The axes with a negative stride.
    """

    array: Any
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    flipped: tuple[int, ...]


def pack(value: Array) -> Packed:
    """An array made ready to be sent; it shares memory with nothing."""
    array = np.asarray(value)
    shape, strides = array.shape, array.strides
    once = tuple([slice(0, 1) if step == 0 and n > 1 else slice(None) for n, step in zip(shape, strides, strict=True)])
    flipped = tuple([axis for axis, step in enumerate(strides) if step < 0])
    order = sorted(range(array.ndim), key=lambda axis: -abs(strides[axis]))
    numbers = np.array(np.flip(array[once], flipped).transpose(order), order="C")
    return Packed(numbers, shape, tuple(np.argsort(order).tolist()) if order else (), flipped)


def unpack(packed: Packed, own: bool = False) -> Any:
    """The array; with `own` in writeable memory of its own."""
    array, shape, axes, flipped = packed
    array = np.require(array, requirements=["A"]).transpose(axes)
    if array.shape != shape:
        array = np.broadcast_to(array, shape)
    if flipped:
        array = np.flip(array, flipped)
    return np.array(array, order="K") if own else array
