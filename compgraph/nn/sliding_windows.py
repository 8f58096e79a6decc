"""Windows that slide over the last axes of an array, for convolutions and pooling."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Lengths = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """The geometry of windows along the last axes of an array; each attribute has an entry for each of these axes.

    Attributes
    ----------
    lengths : tuple of int
        The lengths of the array.
    window : tuple of int
        The number of elements of a window.
    strides : tuple of int
        The steps from one window to the next.
    dilation : tuple of int
        The steps from one element of a window to the next.
    pads : tuple of (int, int)
        The number of elements that are added before and after.
    """

    lengths: Lengths
    window: Lengths
    strides: Lengths
    dilation: Lengths
    pads: tuple[tuple[int, int], ...]

    @property
    def padded(self) -> Lengths:
        """The lengths of the padded array."""
        return tuple([n + left + right for n, (left, right) in zip(self.lengths, self.pads, strict=True)])

    @property
    def counts(self) -> Lengths:
        """The number of windows."""
        geometry = zip(self.padded, self.window, self.strides, self.dilation, strict=True)
        return tuple([(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in geometry])

    @property
    def inner(self) -> tuple[Any, ...]:
        """The index of the array within the padded array."""
        return (..., *[slice(left, left + n) for n, (left, _) in zip(self.lengths, self.pads, strict=True)])

    def pad(self, x: NDArray[Any], value: object = 0) -> Any:
        """`x` with its padding, in C order."""
        if not any(map(any, self.pads)):
            return np.ascontiguousarray(x)
        padded = np.full((*x.shape[: x.ndim - len(self.lengths)], *self.padded), value, x.dtype)
        padded[self.inner] = x
        return padded

    def view(self, padded: NDArray[Any]) -> Any:
        """All windows, as a view of the padded array: of shape ``(*others, *window, *counts)``."""
        axes = len(self.lengths)
        steps = padded.strides[padded.ndim - axes :]
        within = [step * d for step, d in zip(steps, self.dilation, strict=True)]
        between = [step * s for step, s in zip(steps, self.strides, strict=True)]
        batch_axes = padded.ndim - axes
        shape = (*padded.shape[:batch_axes], *self.window, *self.counts)
        return as_strided(padded, shape, (*padded.strides[:batch_axes], *within, *between))


def windows(
    opname: str,
    lengths: Lengths,
    window: Lengths,
    strides: tuple[int, ...] | int,
    padding: tuple[Any, ...] | str,
    dilation: tuple[int, ...] | int,
) -> Windows:
    """Check the user's options, and compute the geometry of the windows.

    Parameters
    ----------
    opname : str
        The operation, for error messages.
    lengths : tuple of int
        The lengths of the axes that the windows slide along.
    window : tuple of int
        The number of elements of a window along each axis.
    strides, dilation : int or sequence of int
        The steps between windows, and within one.
    padding : str, int or sequence
        "valid", "same", "full", a number, or for each axis a number or a pair.

    Returns
    -------
    Windows

    Raises
    ------
    ValueError
        If an option has another form, or no window fits.
    """
    axes = len(lengths)
    strides = _per_axis(opname, "strides", strides, axes)
    dilation = _per_axis(opname, "dilation", dilation, axes)
    if min(window, default=1) < 1:
        raise ValueError(f"{opname}: a window of shape {window} has no elements")
    spans = [d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True)]
    if isinstance(padding, str):
        pads = _pads_by_name(opname, padding, lengths, spans, strides)
    else:
        pads = _pads_by_number(opname, padding, axes)
    window_layout = Windows(lengths, tuple(window), strides, dilation, pads)
    if min(window_layout.counts, default=1) < 1:
        raise ValueError(
            f"{opname}: no window of shape {tuple(window)} and dilation {dilation}, which spans {tuple(spans)}, fits into "
            f"shape {lengths} with padding {pads}. Pass more padding, or a smaller window"
        )
    return window_layout


def _per_axis(opname: str, what: str, option_value: Any, axes: int) -> Lengths:
    """A positive number for each axis."""
    message = f"{opname}: {what} must be a positive integer, or {axes} of them, not {option_value!r}"
    if isinstance(option_value, (str, bytes)):
        raise ValueError(message)
    numbers = list(option_value) if isinstance(option_value, Sequence) or np.ndim(option_value) else [option_value] * axes
    try:
        axis_values = tuple(map(operator.index, numbers))
    except TypeError as error:
        raise ValueError(message) from error
    if len(axis_values) != axes or min(axis_values, default=1) < 1:
        raise ValueError(message)
    return axis_values


def _pads_by_name(opname: str, padding: str, lengths: Lengths, spans: list[int], strides: Lengths) -> tuple[tuple[int, int], ...]:
    """The pads of "valid", "same" and "full"; `spans` are the lengths of a window with its dilation."""
    if padding == "valid":
        return tuple([(0, 0) for _ in spans])
    if padding == "full":
        return tuple([(span - 1, span - 1) for span in spans])
    if padding != "same":
        raise ValueError(f'{opname}: padding must be "valid", "same", "full", or numbers, not {padding!r}')
    missing = [max((math.ceil(n / s) - 1) * s + span - n, 0) for n, span, s in zip(lengths, spans, strides, strict=True)]
    return tuple([(total // 2, total - total // 2) for total in missing])


def _pads_by_number(opname: str, padding: tuple[Any, ...], axes: int) -> tuple[tuple[int, int], ...]:
    """The pads of numbers or pairs of numbers."""
    entries = list(padding) if isinstance(padding, Sequence) or np.ndim(padding) else [padding] * axes
    try:
        pairs = [tuple(map(operator.index, p if isinstance(p, Sequence) or np.ndim(p) else (p, p))) for p in entries]
    except TypeError:
        pairs = []
    if len(pairs) != axes or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError(
            f"{opname}: padding must be a number from 0, or for each of {axes} axes a number or a pair (before, after), "
            f"not {padding!r}"
        )
    return tuple([(left, right) for left, right in pairs])
