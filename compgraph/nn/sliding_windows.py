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

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """The geometry of windows along the last axes of an array. Each attribute has one entry per axis.

    Attributes
    ----------
    lengths : tuple of int
        The lengths of the axes.
    window : tuple of int
        The number of elements of a window.
    strides : tuple of int
        The steps from one window to the next.
    dilation : tuple of int
        The steps from one element of a window to the next.
    pad_width : tuple of (int, int)
        The number of elements that are added before and after.
    """

    lengths: Ints
    window: Ints
    strides: Ints
    dilation: Ints
    pad_width: tuple[tuple[int, int], ...]

    @property
    def padded_shape(self) -> Ints:
        """The lengths of the axes after padding."""
        return tuple([n + left + right for n, (left, right) in zip(self.lengths, self.pad_width, strict=True)])

    @property
    def counts(self) -> Ints:
        """The number of windows."""
        geometry = zip(self.padded_shape, self.window, self.strides, self.dilation, strict=True)
        return tuple([(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in geometry])

    @property
    def interior(self) -> tuple[Any, ...]:
        """The index of the array within the padded array."""
        return (..., *[slice(left, left + n) for n, (left, _) in zip(self.lengths, self.pad_width, strict=True)])

    def pad(self, x: NDArray[Any], value: object = 0) -> Any:
        """Return `x` with its padding, in C order."""
        if not any(map(any, self.pad_width)):
            return np.ascontiguousarray(x)
        padded = np.full((*x.shape[: x.ndim - len(self.lengths)], *self.padded_shape), value, x.dtype)
        padded[self.interior] = x
        return padded

    def view(self, padded: NDArray[Any]) -> Any:
        """Return all windows, as a view of the padded array, of shape ``(*batch_shape, *window, *counts)``."""
        batch_ndim = padded.ndim - len(self.lengths)
        steps = padded.strides[batch_ndim:]
        element_strides = [step * d for step, d in zip(steps, self.dilation, strict=True)]
        window_strides = [step * s for step, s in zip(steps, self.strides, strict=True)]
        shape = (*padded.shape[:batch_ndim], *self.window, *self.counts)
        return as_strided(padded, shape, (*padded.strides[:batch_ndim], *element_strides, *window_strides))


def compute_windows(
    opname: str,
    lengths: Ints,
    window: Ints,
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
        If an option is invalid, or no window fits.
    """
    n_axes = len(lengths)
    strides = _per_axis(opname, "strides", strides, n_axes)
    dilation = _per_axis(opname, "dilation", dilation, n_axes)
    if min(window, default=1) < 1:
        raise ValueError(f"{opname}: a window of shape {window} has no elements. Pass positive lengths")
    spans = [d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True)]
    if isinstance(padding, str):
        pads = _pads_by_name(opname, padding, lengths, spans, strides)
    else:
        pads = _pads_by_number(opname, padding, n_axes)
    windows = Windows(lengths, tuple(window), strides, dilation, pads)
    if min(windows.counts, default=1) < 1:
        raise ValueError(
            f"{opname}: no window of shape {tuple(window)} and dilation {dilation}, which spans {tuple(spans)}, fits into "
            f"shape {lengths} with padding {pads}. Pass more padding, or a smaller window"
        )
    return windows


def _per_axis(opname: str, option: str, value: Any, n_axes: int) -> Ints:
    """Return an option as one positive integer for each axis; raise a ValueError otherwise."""
    message = f"{opname}: {option} must be a positive integer, or {n_axes} of them, not {value!r}"
    if isinstance(value, (str, bytes)):
        raise ValueError(message)
    numbers = list(value) if isinstance(value, Sequence) or np.ndim(value) else [value] * n_axes
    try:
        per_axis = tuple(map(operator.index, numbers))
    except TypeError as error:
        raise ValueError(message) from error
    if len(per_axis) != n_axes or min(per_axis, default=1) < 1:
        raise ValueError(message)
    return per_axis


def _pads_by_name(opname: str, padding: str, lengths: Ints, spans: list[int], strides: Ints) -> tuple[tuple[int, int], ...]:
    """Return the padding of "valid", "same" or "full"; `spans` are the lengths of a window with its dilation."""
    if padding == "valid":
        return tuple([(0, 0) for _ in spans])
    if padding == "full":
        return tuple([(span - 1, span - 1) for span in spans])
    if padding != "same":
        raise ValueError(f'{opname}: padding must be "valid", "same", "full", or numbers, not {padding!r}')
    pad_totals = [max((math.ceil(n / s) - 1) * s + span - n, 0) for n, span, s in zip(lengths, spans, strides, strict=True)]
    return tuple([(total // 2, total - total // 2) for total in pad_totals])


def _pads_by_number(opname: str, padding: tuple[Any, ...], n_axes: int) -> tuple[tuple[int, int], ...]:
    """Return the padding given by numbers or pairs (before, after)."""
    entries = list(padding) if isinstance(padding, Sequence) or np.ndim(padding) else [padding] * n_axes
    try:
        pairs = [tuple(map(operator.index, p if isinstance(p, Sequence) or np.ndim(p) else (p, p))) for p in entries]
    except TypeError:
        pairs = []
    if len(pairs) != n_axes or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError(
            f"{opname}: padding must be a nonnegative integer, or one or a pair (before, after) for each of {n_axes} axes, "
            f"not {padding!r}"
        )
    return tuple([(left, right) for left, right in pairs])
