"""Messages between client and machines: arrays, and responses of actors.

The order in which NumPy and BLAS add numbers depends on the memory layout. Therefore axes of arrays keep their order in memory.
An axis with stride 0 is sent once and broadcast on arrival; a negative stride is restored.

A response is a result, or an error of a part, which the client raises. Methods of the actor raise no errors.
"""

from __future__ import annotations

import pickle
import traceback
from typing import Any, NamedTuple

import numpy as np


class Packed(NamedTuple):
    """A serialized array.

    Attributes
    ----------
    array : numpy.ndarray
        The data, in C order.
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


def pack(value: Any) -> Packed:
    """Serialize an array, without sharing memory."""
    array = np.asarray(value)
    shape, strides = array.shape, array.strides
    without_repeats = tuple([slice(0, 1) if step == 0 and n > 1 else slice(None) for n, step in zip(shape, strides, strict=True)])
    flipped = tuple([axis for axis, step in enumerate(strides) if step < 0])
    order = sorted(range(array.ndim), key=lambda axis: -abs(strides[axis]))
    numbers = np.array(np.flip(array[without_repeats], flipped).transpose(order), order="C")
    return Packed(numbers, shape, tuple(np.argsort(order).tolist()) if order else (), flipped)


def unpack(packed: Packed, copy: bool = False) -> Any:
    """Return the array; with `copy`, in writeable memory that is not shared."""
    array, shape, axes, flipped = packed
    array = np.require(array, requirements=["A"]).transpose(axes)
    if array.shape != shape:
        array = np.broadcast_to(array, shape)
    if flipped:
        array = np.flip(array, flipped)
    return np.array(array, order="K") if copy else array


class RemoteError(Exception):
    """The traceback of an error that was raised in a part."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class LostError(Exception):
    """The machine of a part is unreachable."""


class Response(tuple[Any, ...]):
    """A response. Dask serializes a plain tuple item by item; an instance of a subclass is pickled as one object."""


def result(value: Any) -> Response:
    """Return the response with a result."""
    return Response(("ok", value))


def error_response(error: BaseException) -> Response:
    """Return the response with an error and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return Response(("error", error.with_traceback(None), text))


def unwrap(response: Any) -> Any:
    """Return the result in a response, or raise its error."""
    if response[0] == "ok":
        return response[1]
    _, error, text = response
    raise error from RemoteError(text)
