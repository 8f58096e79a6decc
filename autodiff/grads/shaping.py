"""Rules of operations that move elements: each is linear, and its adjoint moves them back."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from compgraph.graph import record

from ..batching import found_at, put_at, zeros_like_batch
from ..rules import Scatter, Shared, fetched, fetched_at, general, linear, scatter


def _same(g: Any, out: Any, x: Any, **_: Any) -> Any:
    return g


def _reshaped(g: Any, out: Any, x: Any, *, order: Any = "C", **_: Any) -> Any:
    return np.reshape(g, x.shape, order=order)


def _viewed(g: Any, out: Any, x: Any, dtype: Any) -> Any:
    """The real and imaginary part of ``a`` are given ``Re g`` and ``-Im g`` of a complex adjoint."""
    if x.dtype.kind == "c":
        return np.conjugate(g.copy().view(np.result_type(g.dtype, np.complex64)))
    return np.conjugate(g).copy().view(np.finfo(g.dtype).dtype)


def _transposed(g: Any, out: Any, x: Any, axes: Any = None) -> Any:
    return np.transpose(g, None if axes is None else tuple(np.argsort([a % x.ndim for a in axes]).tolist()))


# Of operations with any number of operands (`Shared`). The adjoint may have a batch axis before its own.


def _joined(positions: list[int], g: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> list[Any]:
    """The parts of a concatenation's adjoint that belong to operands."""
    shapes = [np.shape(x) for x in operands]
    along = 0 if axis is None else axis % out.ndim
    ends = list(itertools.accumulate([math.prod(s) if axis is None else s[along] for s in shapes], initial=0))
    several = g.shape[: g.ndim - out.ndim]
    before = (slice(None),) * (len(several) + along)
    return [np.reshape(g[(*before, slice(ends[p], ends[p + 1]))], (*several, *shapes[p])) for p in positions]


def _stacked(positions: list[int], g: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> list[Any]:
    """The parts of a stack's adjoint that belong to operands."""
    before = (slice(None),) * (g.ndim - out.ndim + axis % out.ndim)
    return [g[(*before, p)] for p in positions]


# Of a batch, whose axis comes first:


def _same_batch(position: int, g: Any, out: Any, x: Any, **_: Any) -> Any:
    return g


def _same_push(tangents: Any, out: Any, x: Any, **_: Any) -> Any:
    return tangents[0]


def _reshaped_batch(position: int, g: Any, out: Any, x: Any, *, order: Any = "C", **_: Any) -> Any:
    return np.reshape(g, (g.shape[0], *x.shape)) if order == "C" else NotImplemented


def _reshaped_push(tangents: Any, out: Any, x: Any, *, order: Any = "C", **_: Any) -> Any:
    return np.reshape(tangents[0], (tangents[0].shape[0], *out.shape)) if order == "C" else NotImplemented


def _broadcast_push(tangents: Any, out: Any, x: Any, **_: Any) -> Any:
    missing = out.ndim - x.ndim
    (t,) = tangents
    return np.broadcast_to(np.reshape(t, (t.shape[0], *[1] * missing, *x.shape)), (t.shape[0], *out.shape))


def _order(x: Any, axes: Any) -> list[int]:
    """The order in which a transposition takes the axes."""
    return [a % x.ndim for a in axes] if axes is not None else list(range(x.ndim))[::-1]


def _transposed_batch(position: int, g: Any, out: Any, x: Any, axes: Any = None) -> Any:
    return np.transpose(g, (0, *[1 + a for a in np.argsort(_order(x, axes)).tolist()]))


def _transposed_push(tangents: Any, out: Any, x: Any, axes: Any = None) -> Any:
    return np.transpose(tangents[0], (0, *[1 + a for a in _order(x, axes)]))


def _later(x: Any, axis: Any) -> Any:
    """An axis, or several, of what has a batch axis before those of `x`."""
    return tuple([1 + a % x.ndim for a in axis]) if isinstance(axis, (tuple, list, range)) else 1 + axis % x.ndim


def _swapped_batch(position: int, g: Any, out: Any, x: Any, axis1: Any, axis2: Any) -> Any:
    return np.swapaxes(g, _later(x, axis1), _later(x, axis2))


def _moved_batch(position: int, g: Any, out: Any, x: Any, source: Any, destination: Any) -> Any:
    return np.moveaxis(g, _later(x, destination), _later(x, source))


def _zeros_for(tangents: Any, operands: Any) -> list[Any]:
    """The tangents of all operands, zeros where there are none."""
    like = next(t for t in tangents if t is not None)
    return [
        np.zeros((like.shape[0], *np.shape(x)), like.dtype) if t is None else t for t, x in zip(tangents, operands, strict=True)
    ]


def _joined_push(tangents: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> Any:
    parts = _zeros_for(tangents, operands)
    if axis is None:
        parts = [np.reshape(t, (t.shape[0], math.prod(t.shape[1:]))) for t in parts]
    return np.concatenate(parts, axis=1 if axis is None else 1 + axis % out.ndim)


def _stacked_push(tangents: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> Any:
    return np.stack(_zeros_for(tangents, operands), axis=1 + axis % out.ndim)


astype_grad = linear("astype", _same).moving().batched(_same_batch, _same_push)
input_grad = linear("input", _same).moving().batched(_same_batch, _same_push)
copy_grad = linear("copy", _same).moving().batched(_same_batch, _same_push)
view_grad = linear("view", _viewed)
broadcast_to_grad = linear("broadcast_to", _same).moving().batched(_same_batch, _broadcast_push)
reshape_grad = linear("reshape", _reshaped).moving().batched(_reshaped_batch, _reshaped_push)
ravel_grad = linear("ravel", _reshaped).moving().batched(_reshaped_batch, _reshaped_push)
flatten_grad = linear("flatten", _reshaped).moving().batched(_reshaped_batch, _reshaped_push)
squeeze_grad = (
    linear("squeeze", lambda g, out, x, axis=None: np.reshape(g, x.shape)).moving().batched(_reshaped_batch, _reshaped_push)
)
expand_dims_grad = (
    linear("expand_dims", lambda g, out, x, axis: np.reshape(g, x.shape)).moving().batched(_reshaped_batch, _reshaped_push)
)
transpose_grad = linear("transpose", _transposed).moving().batched(_transposed_batch, _transposed_push).said("g.T")
swapaxes_grad = (
    linear("swapaxes", lambda g, out, x, axis1, axis2: np.swapaxes(g, axis1, axis2))
    .moving()
    .batched(_swapped_batch, lambda tangents, out, x, axis1, axis2: _swapped_batch(0, tangents[0], out, x, axis1, axis2))
)
moveaxis_grad = (
    linear("moveaxis", lambda g, out, x, source, destination: np.moveaxis(g, destination, source))
    .moving()
    .batched(
        _moved_batch,
        lambda tangents, out, x, source, destination: np.moveaxis(tangents[0], _later(x, source), _later(x, destination)),
    )
)
concatenate_grad = linear("concatenate", shared=_joined).moving().batched(push=_joined_push)
stack_grad = linear("stack", shared=_stacked).moving().batched(push=_stacked_push)

# ------------------------------------------------------------------------------------------- indexing


def _keeps_order(index: tuple[Any, ...]) -> bool:
    """Whether a further axis may come before those of an index, as a slice: arrays with slices between them move it."""
    parts = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
    basic = [isinstance(part, (slice, type(None), type(Ellipsis))) for part in parts]
    if all(
        is_basic or (isinstance(part, (int, np.integer)) and part.__class__ is not bool)
        for part, is_basic in zip(parts, basic, strict=True)
    ):
        return True
    picked = [i for i, is_basic in enumerate(basic) if not is_basic]
    return picked[-1] - picked[0] < len(picked)


def _with_all(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index with the whole batch before it."""
    return (slice(None), *(index[0] if len(index) == 1 and isinstance(index[0], tuple) else index))


def _places(x: Any, index: tuple[Any, ...]) -> Any:
    return fetched_at(np.arange(math.prod(x.shape)).reshape(x.shape), *index)


def _item_batch(position: int, g: Any, out: Any, x: Any, *index: Any) -> Any:
    if _keeps_order(index):
        return Scatter(g, _with_all(index))
    return np.reshape(put_at(g, x, _places(x, index)), (g.shape[0], *x.shape))


def _items(t: Any, x: Any, index: tuple[Any, ...]) -> Any:
    """What an index finds in each of a batch."""
    return fetched_at(t, *_with_all(index)) if _keeps_order(index) else found_at(t, _places(x, index))


getitem_grad = (
    general("getitem", fetched)
    .tangent(lambda t, out, x, *index: fetched_at(t, *index))
    .batched(_item_batch, lambda tangents, out, x, *index: _items(tangents[0], x, index))
    .selecting()
)


def _indices_at(positions: list[int], layout: tuple[int, ...]) -> list[slice]:
    """Where, in `flat`, the indices of the pieces at the positions stand."""
    places = itertools.accumulate([1, *[count + 1 for count in layout[:-1]]])
    lengths = dict(zip(places, layout, strict=True))
    return [slice(p, p + lengths[p]) for p in positions]


def _scattered(positions: list[int], g: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> list[Any]:
    """The parts of the adjoint of a scatter that belong to pieces: what their indices find."""
    found: Any = fetched_at if g.ndim == out.ndim else lambda g, *index: _items(g, like, index)
    return [found(g, *flat[place]) for place in _indices_at(positions, layout)]


def _scattered_tangent(tangents: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> Any:
    """The tangents of the pieces, scattered."""
    positions = [p for p, t in enumerate(tangents) if t is not None and p > 0]
    if not positions:
        return None
    indices = [flat[place] for place in _indices_at(positions, layout)]
    parts = [part for p, index in zip(positions, indices, strict=True) for part in (tangents[p], *index)]
    return record(scatter, (like, *parts), {"layout": tuple(map(len, indices))})


def _scattered_push(tangents: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> Any:
    """The tangents of all pieces that have some, scattered together."""
    flat_b: list[Any] = []
    parts: list[int] = []
    further = None
    positions = [p for p, t in enumerate(tangents) if t is not None and p > 0]
    for position, place in zip(positions, _indices_at(positions, layout), strict=True):
        t, index = tangents[position], flat[place]
        if _keeps_order(index):
            flat_b += [t, *_with_all(index)]
            parts.append(len(_with_all(index)))
        else:
            placed = np.reshape(put_at(t, like, _places(like, index)), (t.shape[0], *like.shape))
            further = placed if further is None else further + placed
    if not parts:
        return further
    zeros = zeros_like_batch(like.shape, like.dtype, flat_b[0].shape[0])
    scattered = record(scatter, (zeros, *flat_b), {"layout": tuple(parts)})
    return scattered if further is None else scattered + further


# The first operand of scatter only gives the shape.
scatter_grad = general("scatter", shared=_scattered, fixed=1).moving().batched(push=_scattered_push)
scatter_grad.tangents = Shared(_scattered_tangent, fixed=1)
