"""Filters that choose an element of each neighbourhood, and convolutions in two dimensions with boundaries, in steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from ... import ops
from ...bind import bind
from .filters import arrays

ops.register_operation(scipy.signal.convolve2d, "scipy_signal_convolve2d")

_BOUNDARIES: dict[str, Any] = {"wrap": "wrap", "circular": "wrap", "symm": "symmetric", "symmetric": "symmetric"}


def order_filter(a: Any, domain: Any, rank: int) -> Any:
    """As ``scipy.signal.order_filter``: zeros stand around the array."""
    (a,) = arrays(a)
    mask = np.asarray(domain) != 0
    if any(n % 2 == 0 for n in mask.shape):
        raise ValueError(f"scipy.signal.order_filter: domain has shape {mask.shape}; it takes odd lengths")
    if mask.ndim != np.ndim(a):
        raise ValueError(f"scipy.signal.order_filter: domain has {mask.ndim} axes, and the array {np.ndim(a)}")
    padded = np.pad(a, [(n // 2, n // 2) for n in mask.shape])
    around = np.lib.stride_tricks.sliding_window_view(padded, mask.shape)
    return np.sort(around[..., mask], axis=-1)[..., rank]


def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """As ``scipy.signal.medfilt``."""
    (volume,) = arrays(volume)
    sizes = np.broadcast_to(3 if kernel_size is None else kernel_size, (np.ndim(volume),))
    return order_filter(volume, np.ones(tuple(sizes.tolist())), int(np.prod(sizes)) // 2)


def medfilt2d(input: Any, kernel_size: int = 3) -> Any:
    """As ``scipy.signal.medfilt2d``."""
    (input,) = arrays(input)
    if np.ndim(input) != 2:
        raise ValueError(f"scipy.signal.medfilt2d takes two axes, not {np.ndim(input)}")
    return medfilt(input, kernel_size)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """As ``scipy.signal.convolve2d``: elements beyond the boundary are added first."""
    in1, in2 = arrays(in1, in2)
    plain = boundary in ("fill", "pad") and not np.any(fillvalue)
    if plain or mode == "valid":
        return bind(scipy.signal.convolve2d, (in1, in2), {"mode": mode})
    ends = [(n - 1, n - 1) for n in in2.shape]
    if boundary in _BOUNDARIES:
        padded = np.pad(in1, ends, _BOUNDARIES[boundary])
    elif boundary in ("fill", "pad"):
        padded = np.pad(in1, ends, constant_values=fillvalue)
    else:
        raise ValueError("scipy.signal.convolve2d: boundary is 'fill', 'circular' or 'symmetric'")
    full = bind(scipy.signal.convolve2d, (padded, in2), {"mode": "valid"})
    if mode == "full":
        return full
    if mode != "same":
        raise ValueError("scipy.signal.convolve2d: mode is 'full', 'same' or 'valid'")
    starts = [(n - 1) // 2 for n in in2.shape]
    return full[tuple([slice(start, start + n) for start, n in zip(starts, in1.shape, strict=True)])]


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: int = 0) -> Any:
    """As ``scipy.signal.correlate2d``: a convolution with the kernel turned around, and conjugated."""
    in1, in2 = arrays(in1, in2)
    flipped = np.conjugate(np.flip(in2))
    if mode != "same":
        return convolve2d(in1, flipped, mode, boundary, fillvalue)
    full = convolve2d(in1, flipped, "full", boundary, fillvalue)
    starts = [n // 2 for n in in2.shape]  # of an even kernel, the other one of the two in the middle
    return full[tuple([slice(start, start + n) for start, n in zip(starts, in1.shape, strict=True)])]


def choose_conv_method(in1: object, in2: object, mode: str = "full", measure: bool = False) -> Any:
    """As ``scipy.signal.choose_conv_method``, which depends on shapes alone for floating-point arrays."""
    return scipy.signal.choose_conv_method(*[np.zeros(x.shape, x.dtype) for x in arrays(in1, in2)], mode, measure)
