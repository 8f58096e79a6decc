"""Rules of operations that move elements: each is linear, and its adjoint moves them back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.nodes import record
from compgraph.operations import getitem

from ..deferred import Scatter, scatter
from ..registry import Variadic, general, linear


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


def _joined(position: int, g: Any, out: Any, *operands: Any, axis: Any = 0, **_: Any) -> Any:
    """The part of a concatenation's adjoint that belongs to one operand."""
    along = 0 if axis is None else axis % out.ndim
    sizes = [math.prod(np.shape(x)) if axis is None else np.shape(x)[along] for x in operands[: position + 1]]
    part = g[(slice(None),) * along + (slice(sum(sizes[:-1]), sum(sizes)),)]
    return np.reshape(part, operands[position].shape)


astype_grad = linear("astype", _same)
input_grad = linear("input", _same)
copy_grad = linear("copy", _same)
view_grad = linear("view", _viewed)
broadcast_to_grad = linear("broadcast_to", _same)
reshape_grad = linear("reshape", _reshaped)
ravel_grad = linear("ravel", _reshaped)
flatten_grad = linear("flatten", _reshaped)
squeeze_grad = linear("squeeze", lambda g, out, x, axis=None: np.reshape(g, x.shape))
expand_dims_grad = linear("expand_dims", lambda g, out, x, axis: np.reshape(g, x.shape))
transpose_grad = linear("transpose", _transposed)
swapaxes_grad = linear("swapaxes", lambda g, out, x, axis1, axis2: np.swapaxes(g, axis1, axis2))
moveaxis_grad = linear("moveaxis", lambda g, out, x, source, destination: np.moveaxis(g, destination, source))
concatenate_grad = linear("concatenate", variadic=_joined)
stack_grad = linear(
    "stack", variadic=lambda position, g, out, *operands, axis=0, **_: g[(slice(None),) * (axis % out.ndim) + (position,)]
)

# ------------------------------------------------------------------------------------------- indexing

getitem_grad = general("getitem", lambda g, out, x, *index: Scatter(g, index)).tangent(
    lambda t, out, x, *index: getitem(t, *index)
)


def _parts_at(position: int, layout: tuple[int, ...]) -> int:
    """How many parts the index of the piece at a position has."""
    start = 1
    for count in layout:
        if start == position:
            return count
        start += 1 + count
    raise IndexError(f"no piece stands at position {position}")


def _scattered(position: int, g: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> Any:
    """The part of the adjoint of a scatter that belongs to one piece: what its index finds."""
    return getitem(g, *flat[position : position + _parts_at(position, layout)])


def _scattered_tangent(position: int, t: Any, out: Any, like: Any, *flat: Any, layout: tuple[int, ...]) -> Any:
    """One piece's tangent, scattered alone."""
    count = _parts_at(position, layout)
    return record(scatter, (like, t, *flat[position : position + count]), {"layout": (count,)})


# The first operand of scatter only gives the shape.
scatter_grad = general("scatter", variadic=_scattered, fixed=1)
scatter_grad.tangents = Variadic(_scattered_tangent, fixed=1)
