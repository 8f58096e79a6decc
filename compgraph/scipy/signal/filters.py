"""Recursive filters; a filter with an initial state is composed of filters without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from ... import ops
from ...bind import bind
from ...graph import as_operand

ops.register_operation(scipy.signal.lfilter, "scipy_signal_lfilter")


def arrays(*values: object) -> tuple[Any, ...]:
    """Convert values to arrays; nodes are unchanged."""
    return tuple([ops.ensure_array(as_operand(value)) for value in values])


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: object = None) -> Any:
    """As ``scipy.signal.lfilter``. An initial state is an input to the recursive part alone, ``A y = B x + zi``."""
    b, a, x = arrays(b, a, x)
    output = bind(scipy.signal.lfilter, (b, a, x), {"axis": axis})
    if zi is None:
        return output
    state = _state(zi, b, a, x, axis)
    count = x.shape[axis]
    length = state.shape[-1]
    first = a[:1]
    state_input = _fit_length(state, count)
    y = np.moveaxis(output, axis, -1) + bind(scipy.signal.lfilter, (first, a, state_input), {"axis": -1})
    remainder = _tail(b / first, np.moveaxis(x, axis, -1), length) - _tail(a / first, y, length)
    remainder = remainder + _fit_length(state[..., count:], length)
    return np.moveaxis(y, -1, axis), np.moveaxis(remainder, -1, axis)


def _state(zi: Any, b: Any, a: Any, x: Any, axis: int) -> Any:
    """The state along the last axis, with axes of length one repeated, as SciPy repeats them."""
    shape = list(x.shape)
    shape[axis] = max(len(a), len(b)) - 1
    (zi,) = arrays(zi)
    if np.ndim(zi) != x.ndim or np.shape(zi)[axis] != shape[axis]:
        raise ValueError(f"scipy.signal.lfilter: zi has shape {np.shape(zi)}, and the state {tuple(shape)}")
    return np.moveaxis(np.broadcast_to(zi, shape), axis, -1)


def _fit_length(x: Any, length: int) -> Any:
    """Cut, or padded with zeros, along the last axis."""
    missing = length - x.shape[-1]
    return x[..., :length] if missing <= 0 else np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], axis=-1)


def _tail(coefficients: object, x: Any, length: int) -> Any:
    """The results of a convolution after the end of the signal, ``sum over k of c[k] x[n + m - k]`` for m from 0 on."""
    c = _fit_length(coefficients, 2 * length + 1)
    m, j = np.ogrid[:length, :length]
    last = np.flip(_fit_length(np.flip(x, -1), length), -1)
    return np.matmul(last, np.transpose(c[m + length - j]))


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """As ``scipy.signal.sosfilt``: one section after the other."""
    sos, x = arrays(sos, x)
    if np.ndim(sos) != 2 or np.shape(sos)[1] != 6:
        raise ValueError(f"scipy.signal.sosfilt: sos has shape {np.shape(sos)}; it takes sections of 6 coefficients each")
    if zi is None:
        for section in range(len(sos)):
            x = lfilter(sos[section, :3], sos[section, 3:], x, axis)
        return x
    shape = list(np.shape(x))
    shape[axis] = 2
    (zi,) = arrays(zi)
    if np.shape(zi) != (len(sos), *shape):
        raise ValueError(f"scipy.signal.sosfilt: zi has shape {np.shape(zi)}, and the state {(len(sos), *shape)}")
    remainder = []
    for section in range(len(sos)):
        x, state = lfilter(sos[section, :3], sos[section, 3:], x, axis, zi[section])
        remainder.append(state)
    return x, np.stack(remainder)
