"""Rules of what writing in place is made of: parts of buffers, and repeated additions."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph import ops
from compgraph.bind import bind
from compgraph.graph import to_values
from compgraph.storage import overlaps_itself, place_of, scatter_to_buffer, window

from ..rules import linear, scatter


def _window(g: Any, out: Any, buffer: Any, *, shape: Any, dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """Zeros with `g` where the window is; seen through its real parts, a complex buffer has the conjugate adjoint."""
    whole: Any = to_values(buffer)
    low, high = np.lib.array_utils.byte_bounds(whole) if whole.size else (0, 0)
    start = place_of(whole, low)["offset"]
    count, offset = -(-(high - low) // whole.itemsize), offset + start
    is_flat = whole.ndim == 1 and whole.flags.c_contiguous
    if overlaps_itself(window(np.empty(count, buffer.dtype), shape, dtype, offset, strides)):
        like = buffer if is_flat and dtype == buffer.dtype else np.zeros(count * whole.itemsize // dtype.itemsize, dtype)
        flat = _added(g, like, shape, offset, strides)
    else:
        flat = bind(scatter_to_buffer, (g,), {"count": count, "dtype": buffer.dtype, "offset": offset, "strides": strides})
    if flat.dtype != buffer.dtype:
        flat = flat[::2] + 1j * flat[1::2]
    if not is_flat:
        flat = bind(window, (flat,), {"shape": whole.shape, "dtype": whole.dtype, "offset": start, "strides": whole.strides})
    return np.conjugate(flat) if dtype != buffer.dtype else flat


def _added(g: Any, like: Any, shape: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """What adds up in flat memory below a window that overlaps itself."""
    places = np.full(shape, offset // like.itemsize)
    for axis, step in enumerate(strides):
        places += np.expand_dims(np.arange(shape[axis]) * (step // like.itemsize), tuple(range(1, len(shape) - axis)))
    return bind(scatter, (like, np.ravel(g), np.ravel(places)), {"layout": (1,)})


def _laid(g: Any, out: Any, values: Any, *, count: int, dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    place = {"shape": values.shape, "dtype": values.dtype, "offset": offset, "strides": strides}
    return bind(window, (g,), place)


def _totals(g: Any, region: Any, places: Any) -> Any:
    """What adds up at each place."""
    return bind(scatter, (np.ravel(region), np.ravel(g), np.ravel(places)), {"layout": (1,)})


window_grad = linear("window", _window).selecting()
laid_grad = linear("laid", _laid).selecting()
added_at_grad = linear(
    "added_at",
    lambda g, out, region, values, places: np.reshape(_totals(g, region, places), region.shape),
    lambda g, out, region, values, places: _totals(g, region, places)[places],
).moving()
ops.enter(window, "window")
ops.enter(scatter_to_buffer, "laid")
