"""The convolution of ``autograd.scipy.signal``, which also batches and contracts axes."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np


def convolve(
    A: Any,  # noqa: N803  (autograd's names)
    B: Any,  # noqa: N803
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Any:
    """The convolution of two arrays along some axes; along others they are multiplied and summed, or combined as outer product.

    Parameters
    ----------
    A, B : array or box
        The arrays.
    axes : pair of sequences of int, optional
        The axes of `A` and of `B` along which to convolve; by default all.
    dot_axes : pair of sequences of int
        The axes of `A` and of `B` over which to sum products.
    mode : {"full", "valid", "same"}
        As in ``scipy.signal.convolve``.

    Returns
    -------
    array or box
        The axes are the others of `A`, the others of `B`, those of the convolution.

    Raises
    ------
    ValueError
        If `mode` is unknown, or "valid" and neither array is the larger one along all axes.

    Examples
    --------
    >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 1., 12., 20.])
    >>> convolve(np.ones((5, 8)), np.ones((3, 2)), axes=([1], [1]), mode="valid").shape
    (5, 3, 7)
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve: mode is 'full', 'valid' or 'same', not {mode!r}")
    axes_a, axes_b = (range(A.ndim), range(A.ndim)) if axes is None else axes
    pairs = [(a % A.ndim, b % B.ndim) for a, b in zip(axes_a, axes_b, strict=True)]
    convolved = [a for a, _ in pairs], [b for _, b in pairs]
    is_swapped = False
    if mode == "valid" and any(A.shape[a] < B.shape[b] for a, b in pairs):
        if any(A.shape[a] > B.shape[b] for a, b in pairs):
            raise ValueError("convolve: in mode 'valid' one array must be the larger one along all axes of the convolution")
        is_swapped = True
    free = iter(string.ascii_letters)
    letters_a, letters_b = [[next(free) for _ in range(x.ndim)] for x in (A, B)]
    for a, b in zip(*dot_axes, strict=True):
        letters_b[b] = letters_a[a]
    places = [next(free) for _ in pairs]
    others = [
        [letter for k, letter in enumerate(letters) if k not in {*conv, *(d % x.ndim for d in dots)}]
        for letters, conv, dots, x in zip((letters_a, letters_b), convolved, dot_axes, (A, B), strict=True)
    ]
    sliding, stationary = ((B, letters_b), (A, letters_a)) if is_swapped else ((A, letters_a), (B, letters_b))
    windows, letters = sliding[0], [*sliding[1]]
    kernel = stationary[0]
    for (a, b), place in zip(pairs, places, strict=True):
        axis, fixed = (b, a) if is_swapped else (a, b)
        length = kernel.shape[fixed]
        kernel = np.flip(kernel, fixed)
        half = (length - 1) // 2
        left, right = {"full": (length - 1, length - 1), "valid": (0, 0), "same": (length - 1 - half, half)}[mode]
        where = letters.index(sliding[1][axis])  # windows have more axes than the array already
        widths = [(0, 0)] * len(letters)
        widths[where] = (left, right)
        padded = np.pad(windows, widths)
        count = padded.shape[where] - length + 1
        index = np.arange(count)[:, None] + np.arange(length)
        windows = np.take(padded, index, axis=where)
        letters[where : where + 1] = [place, stationary[1][fixed]]
    result = "".join([*others[0], *others[1], *places])
    return np.einsum(f"{''.join(letters)},{''.join(stationary[1])}->{result}", windows, kernel)
