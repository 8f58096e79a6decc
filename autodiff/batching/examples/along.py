"""Element by element, and along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compgraph.bind import bind

from .call import Call, OneByOneError, all_axes, flat, front, lifted, shift
from .table import kinds, own

# Names may mean other functions while one is differentiated.
_WHERE, _OF_PLANES = np.where, frozenset({np.fft.fft2, np.fft.ifft2})


def elementwise(call: Call) -> Any:
    """Axes of length one after that of examples, so that these broadcast as they did alone."""
    if call.base is _WHERE and len(call.values) == 1:  # asked for places
        raise OneByOneError
    return bind(call.function, tuple(call.aligned()), call.options)


def reduction(call: Call) -> Any:
    """The axes of an example; what else is given (a mask, a mean) broadcasts against it."""
    ndim = call.ndims[0]
    x = call.values[0] if call.batched[0] else lifted(call.values[0], call.count)
    others = _beside(call, ndim)
    axis, changed = call.options.get("axis"), {}
    if not ndim:
        if axis is not None and axis != ():
            shift(axis, max(ndim, 1))  # as NumPy has it for a number
        if axis != ():
            x, axis = np.reshape(x, (call.count, 1)), 1
            others = [np.reshape(v, (call.count, 1)) if b else v for v, b in zip(others, call.batched[1:], strict=True)]
            changed = {"keepdims": False} if call.options.get("keepdims") else {}
    else:
        axis = all_axes(ndim) if axis is None else shift(axis, ndim)
    return call.run((x, *others), axis=axis, **changed)


def _beside(call: Call, ndim: int) -> list[Any]:
    """The operands after the first, aligned with it; the number that a reduction begins with cannot be another for each."""
    cut = len(call.values) - len(call.names)
    found = []
    for place in range(1, len(call.values)):
        value = call.values[place]
        if call.batched[place]:
            name = call.names[place - cut] if place >= cut else None
            if name != "where" and name != "mean":
                raise OneByOneError
            value = front(value, ndim)
        found.append(value)
    return found


def position(call: Call) -> Any:
    """Where the largest element is, counted along one axis or the flattened example."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is not None and ndim:
        return call.on_first(x, axis=shift(axis, ndim))
    keeps = call.options.get("keepdims", False)
    found = call.on_first(flat(x), axis=1, **({"keepdims": False} if keeps else {}))
    return np.reshape(found, (call.count, *(1,) * ndim)) if keeps else found


def cumulative(call: Call) -> Any:
    """Along one axis; of the flattened example by default."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if axis is None or not ndim:
        if call.options.get("include_initial") and not ndim:
            raise OneByOneError
        return call.on_first(flat(x), axis=1)
    return call.on_first(x, axis=shift(axis, ndim))


def ordering(call: Call) -> Any:
    """Along one axis, the last by default."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis", -1)
    if not ndim:
        raise OneByOneError
    return call.on_first(flat(x), axis=1) if axis is None else call.on_first(x, axis=shift(axis, ndim))


def along(call: Call) -> Any:
    """Along one axis, the last by default, which must be there."""
    x, ndim = call.first(), call.ndims[0]
    return call.on_first(x, axis=shift(call.options.get("axis", -1), ndim))


def matrices(call: Call) -> Any:
    """Of stacks of matrices; fewer axes are an error of NumPy's own."""
    x = call.first()
    if call.ndims[0] < 2:
        raise OneByOneError
    return call.on_first(x)


def transform(call: Call) -> Any:
    """Along several axes, all by default, or the last two."""
    x, ndim = call.first(), call.ndims[0]
    axes, s = call.options.get("axes"), call.options.get("s")
    if axes is None:
        count = 2 if call.base in _OF_PLANES else ndim if s is None else len(s)
        axes = tuple(range(ndim - count, ndim))
    return call.on_first(x, axes=shift(tuple(np.atleast_1d(axes).tolist()), ndim))


def folded(call: Call) -> Any:
    """``np.hypot.reduce`` and kin."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis", 0)
    if axis is None or not ndim:
        raise OneByOneError
    return call.on_first(x, axis=shift(axis, ndim))


def from_end(default: Any) -> Any:
    """A function along an axis, or several, of an example."""

    def way(call: Call) -> Any:
        x, ndim = call.first(), call.ndims[0]
        axis = call.options.get("axis", default)
        if not ndim:
            raise OneByOneError
        return call.on_first(x, axis=all_axes(ndim) if axis is None else shift(axis, ndim))

    return way


def quantile(call: Call) -> Any:
    """``np.quantile``, ``np.median`` and kin: the axes of several quantiles come first."""
    x, ndim, axis = call.first(), call.ndims[0], call.options.get("axis")
    if not ndim or not all(x.shape) or call.options.get("weights") is not None:
        raise OneByOneError
    found = call.on_first(x, axis=all_axes(ndim) if axis is None else shift(axis, ndim))
    return np.moveaxis(found, np.ndim(call.options.get("q", 0)), 0)


def convolution(call: Call) -> Any:
    """``np.convolve`` and ``np.correlate``: products with windows of the longer operand."""
    (a, v), (in_a, in_v) = call.values, call.batched
    is_correlation = call.base is _CORRELATE
    mode = call.options.get("mode", "valid" if is_correlation else "full")
    m, n = a.shape[-1:], v.shape[-1:]
    if call.ndims != [1, 1] or mode not in _WHICH or not min(m[0], n[0]) or (is_correlation and n > m):
        raise OneByOneError
    if is_correlation:
        v = np.conj(v[..., ::-1])
    elif n > m:
        a, v, in_a, in_v, m, n = v, a, in_v, in_a, n, m
    before, after = _WHICH[mode](n[0])
    padded = np.concatenate([np.zeros((*a.shape[:-1], before), a.dtype), a, np.zeros((*a.shape[:-1], after), a.dtype)], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, n[0], axis=-1)
    return np.matmul(windows, np.expand_dims(v[..., ::-1], -1))[..., 0] if in_a or in_v else None


_CORRELATE = np.correlate
# How many zeros stand before and after the longer operand, of a shorter one of a length.
_WHICH: dict[str, Callable[[int], tuple[int, int]]] = {
    "full": lambda n: (n - 1, n - 1),
    "same": lambda n: (n - 1 - (n - 1) // 2, (n - 1) // 2),
    "valid": lambda n: (0, 0),
}


def only(place: int) -> Any:
    """Element by element in one operand, where that alone differs."""

    def way(call: Call) -> Any:
        if call.batched != [i == place for i in range(len(call.values))] or call.options.get("axis") is not None:
            raise OneByOneError
        return call.run(call.values)

    return way


def made_like(call: Call) -> Any:
    """``np.zeros_like(x)`` and kin, of the shape of `x` or another."""
    shape = call.options.get("shape")
    x = call.values[0] if call.batched[0] else lifted(call.values[0], call.count)
    others = [front(v, call.ndims[0] if shape is None else np.size(shape)) if b else v
              for v, b in zip(call.values[1:], call.batched[1:], strict=True)]  # fmt: skip
    if shape is None:
        return call.run((x, *others))
    return call.run((x, *others), shape=(call.count, *np.atleast_1d(np.asarray(shape, int)).tolist()))


kinds |= {
    "elementwise": elementwise, "reduction": reduction, "position": position, "cumulative": cumulative, "ordering": ordering,
    "along": along, "matrices": matrices, "transform": transform,
}  # fmt: skip
own |= {
    "folded": folded, "softmax": from_end(-1), "log_softmax": from_end(-1), "logsumexp": from_end(None), "interp": only(0),
    "searchsorted": only(1), "digitize": only(0), "polyval": only(1), "isin": only(0), "zeros_like": made_like,
    "ones_like": made_like, "empty_like": made_like, "full_like": made_like, "convolve": convolution, "correlate": convolution,
    **dict.fromkeys(("median", "quantile", "percentile", "nanmedian", "nanquantile", "nanpercentile"), quantile),
}  # fmt: skip
