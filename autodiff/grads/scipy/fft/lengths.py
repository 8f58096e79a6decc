"""Along which axes a transform goes, and how long it is along each, before and after it cuts or pads."""

from __future__ import annotations

from typing import Any

import numpy as np

Axes = tuple[int, ...]


def places(x: Any, s: Any, axes: Any) -> tuple[Axes, list[int]]:
    """The axes, counted from the end, and the lengths to which `x` is cut or padded along them."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - np.size(s), x.ndim)
    found = tuple([int(axis) % x.ndim - x.ndim for axis in np.ravel(axes).astype(int)])
    lengths = [-1] * len(found) if s is None else np.ravel(s).tolist()
    return found, [int(x.shape[axis] if n in (None, -1) else n) for axis, n in zip(found, lengths, strict=True)]


def fit(g: Any, like: Any, axes: Axes) -> Any:
    """Cut, or pad with zeros, to the lengths of `like` along some axes, as transforms do: it is its own transpose."""
    missing = [(0, 0)] * g.ndim
    kept = [slice(None)] * g.ndim
    for axis in axes:
        missing[axis] = (0, max(like.shape[axis] - g.shape[axis], 0))
        kept[axis] = slice(like.shape[axis])
    if any(after for _, after in missing):
        g = np.pad(g, missing)
    return g[tuple(kept)]


def along(weights: Any, axis: int) -> Any:
    """A vector, of length 1 along all axes but one, which is counted from the end."""
    return np.reshape(weights, (-1, *[1] * (-1 - axis)))
