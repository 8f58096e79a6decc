"""Rules of operations that move, repeat and pad whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import elementwise, gather, linear, moved

roll_grad = linear("roll", lambda g, out, x, *, shift, axis=None: np.roll(g, np.negative(shift), axis))
tile_grad = gather("tile", moved(np.tile))
sliding_window_view_grad = gather(
    "sliding_window_view",
    lambda out, x, *, window_shape, axis=None, **_: np.lib.stride_tricks.sliding_window_view(
        np.arange(x.size).reshape(x.shape), window_shape, axis
    ),
)


def _nan_to_num(g: Any, out: Any, x: Any, **_: Any) -> Any:
    """What is replaced is constant; real and imaginary parts are replaced each by itself."""
    if x.dtype.kind != "c":
        return np.where(np.isfinite(x), g, 0)
    return np.where(np.isfinite(np.real(x)), np.real(g), 0) + 1j * np.where(np.isfinite(np.imag(x)), np.imag(g), 0)


nan_to_num_grad = elementwise("nan_to_num", _nan_to_num)
