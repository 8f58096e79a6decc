"""Rules of operations that move, repeat and pad whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.guards import guarded_value

from ..rules import elementwise, gather, general, linear, moved
from .selection import fetched, numbered, returned

roll_grad = linear("roll", lambda g, out, x, *, shift, axis=None: np.roll(g, np.negative(shift), axis)).moving()
tile_grad = gather("tile", moved(np.tile))
sliding_window_view_grad = gather(
    "sliding_window_view",
    lambda out, x, *, window_shape, axis=None, **_: np.lib.stride_tricks.sliding_window_view(numbered(x), window_shape, axis),
)


def _nan_to_num(g: Any, out: Any, x: Any, **_: Any) -> Any:
    """What is replaced is constant; real and imaginary parts are replaced each by itself."""
    if x.dtype.kind != "c":
        return np.where(np.isfinite(x), g, 0)
    return np.where(np.isfinite(np.real(x)), np.real(g), 0) + 1j * np.where(np.isfinite(np.imag(x)), np.imag(g), 0)


def _is_kept(x: Any, **_: Any) -> Any:
    """Where a number is kept; of a complex one, a part."""
    return np.isfinite(np.real(x)) | np.isfinite(np.imag(x)) if x.dtype.kind == "c" else np.isfinite(x)


nan_to_num_grad = elementwise("nan_to_num", _nan_to_num).selecting(_is_kept)


# --------------------------------------------------------------------------------------------- padding


def _copied(x: Any, pad_width: Any, mode: Any, reflect_type: str = "even", **_: Any) -> Any:
    """The positions that each element of a padded array has in `x`; None if some are computed."""
    if mode in ("edge", "wrap") or (mode in ("reflect", "symmetric") and reflect_type == "even"):
        return np.pad(numbered(x), pad_width, mode)
    return None


_WIDTHS = "the widths of np.pad"


def _pairs(value: Any, ndim: int) -> Any:
    """What is given for the two ends of each axis."""
    if isinstance(value, dict):
        pairs = {axis % ndim: np.broadcast_to(guarded_value(pair, _WIDTHS), 2).tolist() for axis, pair in value.items()}
        return [pairs.get(axis, [0, 0]) for axis in range(ndim)]
    return np.broadcast_to(guarded_value(value, _WIDTHS), (ndim, 2)).tolist()


def _inner(x: Any, pad_width: Any) -> tuple[slice, ...]:
    """Where `x` stands in the padded array."""
    return tuple([slice(left, left + n) for (left, _), n in zip(_pairs(pad_width, x.ndim), x.shape, strict=True)])


def _shares(x: Any, mode: Any) -> Any:
    """The derivatives of a statistic of the last axis."""
    if mode == "mean":
        return np.full((1, x.shape[-1]), 1 / x.shape[-1])
    if mode == "median":
        ranks = np.argsort(np.argsort(x, kind="stable"), kind="stable")
        middle = x.shape[-1] - 1
        return ((ranks == middle // 2) * 0.5 + (ranks == (middle + 1) // 2) * 0.5)[..., None, :]
    best = (np.max if mode == "maximum" else np.min)(x, axis=-1, keepdims=True)
    ties = np.where(x == best, 1.0, 0.0)
    return (ties / np.sum(ties, axis=-1, keepdims=True))[..., None, :]


def _ends(x: Any, widths: list[int], mode: Any, lengths: list[Any], reflect_type: str) -> list[tuple[Any, slice]]:
    """For both ends of the last axis: the weights of each new element, of which elements."""
    count = x.shape[-1]
    if mode in ("reflect", "symmetric"):
        reach = [count, count] if max(widths) >= count else [min(count, width + 1) for width in widths]
        both = [widths, widths] if max(widths) >= count else [[widths[0], 0], [0, widths[1]]]
        left, right = (
            np.pad(np.eye(near), (pair, (0, 0)), mode, reflect_type=reflect_type) for near, pair in zip(reach, both, strict=True)
        )
        return [(left[: widths[0]], slice(0, reach[0])), (right[len(right) - widths[1] :], slice(count - reach[1], count))]
    if mode == "linear_ramp":
        left, right = (np.arange(width)[:, None] / max(width, 1) for width in widths)
        return [(left, slice(0, 1)), (right[::-1], slice(count - 1, count))]
    reach = [count if length is None else min(count, length) for length in lengths]
    places = [slice(0, reach[0]), slice(count - reach[1], count)]
    return [(_shares(x[..., place], mode), place) for place in places]


def _steps(out: Any, x: Any, pad_width: Any, mode: Any, stat_length: Any = None, reflect_type: str = "even", **_: Any) -> Any:
    """For each axis that is padded: its number, its widths, and the weights of its ends."""
    widths, lengths = _pairs(pad_width, x.ndim), _pairs(stat_length, x.ndim)
    inner = _inner(x, pad_width)
    for axis in range(x.ndim):
        if any(widths[axis]):  # what has been padded before is padded along
            before = np.moveaxis(out[(*(slice(None),) * axis, *inner[axis:])], axis, -1)
            yield axis, widths[axis], _ends(before, widths[axis], mode, lengths[axis], reflect_type)


def _pad(g: Any, out: Any, x: Any, *, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode in ("constant", "empty"):
        return g[_inner(x, pad_width)]
    places = _copied(x, pad_width, mode, **options)
    if places is not None:
        return returned(g, x, places)
    for axis, widths, ends in reversed([*_steps(out, x, pad_width, mode, **options)]):
        g = np.moveaxis(g, axis, -1)
        left, count = widths[0], x.shape[axis]
        total = g[..., left : left + count]
        for end, (weights, near) in zip((g[..., :left], g[..., left + count :]), ends, strict=True):
            part = np.sum(weights * end[..., None], axis=-2)
            total = total + np.pad(part, [*[(0, 0)] * (g.ndim - 1), (near.start, count - near.stop)])
        g = np.moveaxis(total, -1, axis)
    return g


def _pad_tangent(t: Any, out: Any, x: Any, *, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode in ("constant", "empty"):
        return np.pad(t, pad_width)
    places = _copied(x, pad_width, mode, **options)
    if places is not None:
        return fetched(t, places)
    for axis, widths, ends in _steps(out, x, pad_width, mode, **options):
        t = np.moveaxis(t, axis, -1)
        left, right = (
            np.broadcast_to(np.sum(weights * t[..., None, near], axis=-1), (*t.shape[:-1], width))
            for width, (weights, near) in zip(widths, ends, strict=True)
        )
        t = np.moveaxis(np.concatenate([left, t, right], axis=-1), -1, axis)
    return t


def _only_moves(*, mode: Any = "constant", **_: Any) -> bool:
    """Whether nothing is computed from several elements."""
    return mode in ("constant", "empty", "edge", "wrap")


pad_grad = general("pad", _pad).tangent(_pad_tangent).moving(_only_moves)
