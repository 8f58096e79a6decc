"""Cross-correlations as steps (see `compgraph.nn.convolutions`); signals are images of one line."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....nn import Correlation
from ..geometry import Geometry
from ..steps import Convolution, Place, dense
from .placing import Placing

PHASES = 256  # kinds of elements in the adjoint of images, each with a call of its own


def forward(program: Placing, item: Any) -> str:
    """`cross_correlate`: append its steps, or say why it has none."""
    x, kernel = map(program.place, item.args)
    if x is None or kernel is None:
        return "an operand is not known to the compiler"
    return _appended(program, item, "forward", Correlation(item.opname, x.shape, kernel.shape, **_options(item)), x, kernel)


def convolved(program: Placing, item: Any) -> str:
    """`conv`."""
    x, kernel = map(program.place, item.args)
    if x is None or kernel is None:
        return "an operand is not known to the compiler"
    first = 2 if len(kernel.shape) > 1 else 0
    strides = tuple(s if k < first else -s for k, s in enumerate(kernel.strides))
    offset = kernel.offset + sum(s * (n - 1) for n, s in zip(kernel.shape[first:], kernel.strides[first:], strict=True))
    found = Correlation(item.opname, x.shape, kernel.shape, **_options(item))
    return _appended(program, item, "forward", found, x, Place(kernel.buffer, offset, kernel.shape, strides))


def back(program: Placing, item: Any) -> str:
    """`cross_correlate_back`."""
    g, kernel = map(program.place, item.args[:2])
    if g is None or kernel is None:
        return "an operand is not known to the compiler"
    found = Correlation(item.opname, np.shape(item.raw_value), kernel.shape, **_options(item))
    return _appended(program, item, "back", found, g, kernel)


def kernel(program: Placing, item: Any) -> str:
    """`cross_correlate_kernel`."""
    x, g = map(program.place, item.args[:2])
    if x is None or g is None:
        return "an operand is not known to the compiler"
    found = Correlation(item.opname, x.shape, np.shape(item.raw_value), **_options(item))
    return _appended(program, item, "kernel", found, x, g)


def _options(item: Any) -> dict[str, Any]:
    return {"strides": 1, "padding": "valid", "dilation": 1, "groups": 1, **item.options}


def _appended(program: Placing, item: Any, kind: str, found: Correlation, a: Place, b: Place) -> str:
    dtype, shape = item.raw_value.dtype, np.shape(item.raw_value)
    if program.is_exact:
        return "exact=True asks for NumPy's bits"
    if dtype.kind != "f" or a.buffer.dtype != dtype or b.buffer.dtype != dtype:
        return f"convolutions of {a.buffer.dtype} and {b.buffer.dtype} are not compiled"
    if len(found.windows.lengths) > 2:
        return "images of more than two axes are not compiled"
    geometry = _geometry(found)
    if kind == "back" and geometry.strides[0] * geometry.strides[1] > PHASES:
        return "the adjoint of long steps is not compiled"
    place = dense(dtype, shape, item)
    program.places[item] = place
    if 0 in (geometry.batch, geometry.groups, geometry.channels, geometry.results) or 0 in geometry.lengths:
        program.map("copy", (0.0,), place)
        return ""
    a, b = (p if p.is_dense else program.copied(p, dtype) for p in (a, b))
    sizes = geometry.work_sizes(kind)
    program.steps.append(Convolution(kind, (a, b, program.work(dtype, sum(sizes))), place, geometry))
    return ""


def _geometry(found: Correlation) -> Geometry:
    """With a line of its own for what has one axis; without lines where they make no difference."""
    w = found.windows
    batch, groups, channels, results = found.batch, found.groups, found.channels, found.results
    is_pointwise = not any(map(any, w.pads)) and {*w.window, *w.strides} == {1}
    if is_pointwise:
        flat = 1, prod(w.lengths)
        return Geometry(batch, groups, channels, results, flat, (1, 1), flat, (1, 1), (1, 1), (0, 0), (0, 0))
    before, after = zip(*w.pads, strict=True)
    return Geometry(
        batch, groups, channels, results, _pair(w.lengths), _pair(w.window), _pair(w.counts), _pair(w.strides), _pair(w.dilation),
        _pair(before, 0), _pair(after, 0),
    )  # fmt: skip


def _pair(lengths: tuple[int, ...], first: int = 1) -> tuple[int, int]:
    """Of an axis alone, what holds for the one line that it is."""
    return (first, lengths[0]) if len(lengths) == 1 else (lengths[0], lengths[1])
