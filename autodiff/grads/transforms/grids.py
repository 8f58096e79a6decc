"""Rules of grids between two ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rules import general, linear


def _along(g: Any, weights: Any, axis: int) -> Any:
    """The sum of the adjoint along an axis, with weights."""
    return np.sum(g * np.reshape(weights, (-1, *[1] * (g.ndim - 1 - axis % g.ndim))), axis=axis)


def _shares(num: Any, endpoint: Any) -> tuple[Any, int]:
    """How far along each point is, from 0 to 1, and the number of steps."""
    steps = int(num) - 1 if endpoint else int(num)
    return np.arange(num) / max(steps, 1), steps


def _linspace(sign: int, g: Any, out: Any, num: Any, endpoint: Any, retstep: Any, axis: Any) -> Any:
    """What start (-1) or stop (1) adds to the grid, and to the step."""
    shares, steps = _shares(num, endpoint)
    points, step = g if retstep else (g, None)
    grid = out[0] if retstep else out
    total = np.zeros(())
    if points is not None and grid.dtype.kind in "fc":
        total = total + _along(points, shares if sign > 0 else 1 - shares, axis)
    return total if step is None else total + step * (sign / steps)


linspace_grad = linear(
    "linspace",
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        -1, g, out, num, endpoint, retstep, axis
    ),
    lambda g, out, start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: _linspace(
        1, g, out, num, endpoint, retstep, axis
    ),
)


def _geomspace(which: int) -> tuple[Any, Any]:
    """Formula and tangent for start (0) or stop (1): each point is ``start**(1 - share) * stop**share``."""

    def formula(g: Any, out: Any, *ends: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
        shares, _ = _shares(num, endpoint)
        return _along(g * out, shares if which else 1 - shares, axis) / ends[which]

    def tangent(t: Any, out: Any, *ends: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
        shares, _ = _shares(num, endpoint)
        place = axis % out.ndim
        relative = np.broadcast_to(t / ends[which], out.shape[:place] + out.shape[place + 1 :])
        weights = np.reshape(shares if which else 1 - shares, (-1, *[1] * (out.ndim - 1 - place)))
        return np.expand_dims(relative, axis) * weights * out

    return formula, tangent


_start, _stop = _geomspace(0), _geomspace(1)
geomspace_grad = general("geomspace", _start[0], _stop[0]).tangent(_start[1], _stop[1])
