"""Rules of what writing in place is made of: parts of buffers, and repeated additions."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph import operations
from compgraph.memory import laid, overlaps_itself, window
from compgraph.nodes import record

from ..deferred import scatter
from ..registry import linear


def _window(g: Any, out: Any, buffer: Any, *, shape: Any, dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """Zeros with `g` where the window is; seen through its real parts, a complex buffer has the conjugate adjoint."""
    if overlaps_itself(window(np.empty(buffer.size, buffer.dtype), shape, dtype, offset, strides)):
        places = np.full(shape, offset // dtype.itemsize)
        for axis, step in enumerate(strides):
            places += np.expand_dims(np.arange(shape[axis]) * (step // dtype.itemsize), tuple(range(1, len(shape) - axis)))
        return record(scatter, (buffer, np.ravel(g), np.ravel(places)), {"layout": (1,)})
    placed = record(laid, (g,), {"count": buffer.size, "dtype": buffer.dtype, "offset": offset, "strides": strides})
    return np.conjugate(placed) if dtype != buffer.dtype else placed


def _laid(g: Any, out: Any, values: Any, *, count: int, dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    place = {"shape": values.shape, "dtype": values.dtype, "offset": offset, "strides": strides}
    return record(window, (g,), place)


def _totals(g: Any, region: Any, places: Any) -> Any:
    """What adds up at each place."""
    return record(scatter, (np.ravel(region), np.ravel(g), np.ravel(places)), {"layout": (1,)})


window_grad = linear("window", _window).selecting()
laid_grad = linear("laid", _laid).selecting()
added_at_grad = linear(
    "added_at",
    lambda g, out, region, values, places: np.reshape(_totals(g, region, places), region.shape),
    lambda g, out, region, values, places: _totals(g, region, places)[places],
).moving()
operations.enter(window, "window")
operations.enter(laid, "laid")
