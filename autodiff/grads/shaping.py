"""Rules of operations that move elements: each is linear, and its adjoint moves them back."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from compgraph.bind import bind

from ..rules import Shared, fetched, fetched_at, general, linear, scatter


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


# Of operations with any number of operands (`Shared`).


def _joined(positions: list[int], g: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> list[Any]:
    """The parts of a concatenation's adjoint that belong to operands."""
    shapes = [np.shape(x) for x in operands]
    along = 0 if axis is None else axis % out.ndim
    ends = list(itertools.accumulate([math.prod(s) if axis is None else s[along] for s in shapes], initial=0))
    before = (slice(None),) * along
    return [np.reshape(g[(*before, slice(ends[p], ends[p + 1]))], shapes[p]) for p in positions]


def _stacked(positions: list[int], g: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> list[Any]:
    """The parts of a stack's adjoint that belong to operands."""
    before = (slice(None),) * (axis % out.ndim)
    return [g[(*before, p)] for p in positions]


astype_grad = linear("astype", _same).moving()
input_grad = linear("input", _same).moving()
copy_grad = linear("copy", _same).moving()
view_grad = linear("view", _viewed)
broadcast_to_grad = linear("broadcast_to", _same).moving()
reshape_grad = linear("reshape", _reshaped).moving()
ravel_grad = linear("ravel", _reshaped).moving()
flatten_grad = linear("flatten", _reshaped).moving()
squeeze_grad = linear("squeeze", lambda g, out, x, axis=None: np.reshape(g, x.shape)).moving()
expand_dims_grad = linear("expand_dims", lambda g, out, x, axis: np.reshape(g, x.shape)).moving()
transpose_grad = linear("transpose", _transposed).moving().said("g.T")
swapaxes_grad = linear("swapaxes", lambda g, out, x, axis1, axis2: np.swapaxes(g, axis1, axis2)).moving()
moveaxis_grad = linear("moveaxis", lambda g, out, x, source, destination: np.moveaxis(g, destination, source)).moving()
concatenate_grad = linear("concatenate", shared=_joined).moving()
stack_grad = linear("stack", shared=_stacked).moving()

# ------------------------------------------------------------------------------------------- indexing


getitem_grad = general("getitem", fetched).tangent(lambda t, out, x, *index: fetched_at(t, *index)).selecting()


def _indices_at(positions: list[int], layout: tuple[int, ...]) -> list[slice]:
    """Where, in `flat`, the indices of the pieces at the positions stand."""
    places = itertools.accumulate([1, *[count + 1 for count in layout[:-1]]])
    lengths = dict(zip(places, layout, strict=True))
    return [slice(p, p + lengths[p]) for p in positions]


def _scattered(positions: list[int], g: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> list[Any]:
    """The parts of the adjoint of a scatter that belong to pieces: what their indices find."""
    return [fetched_at(g, *flat[place]) for place in _indices_at(positions, layout)]


def _scattered_tangent(tangents: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> Any:
    """The tangents of the pieces, scattered."""
    positions = [p for p, t in enumerate(tangents) if t is not None and p > 0]
    if not positions:
        return None
    indices = [flat[place] for place in _indices_at(positions, layout)]
    parts = [part for p, index in zip(positions, indices, strict=True) for part in (tangents[p], *index)]
    return bind(scatter, (like, *parts), {"layout": tuple(map(len, indices))})


# The first operand of scatter only gives the shape.
scatter_grad = general("scatter", shared=_scattered, fixed=1).moving()
scatter_grad.tangents = Shared(_scattered_tangent, fixed=1)
