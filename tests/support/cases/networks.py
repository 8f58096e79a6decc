"""Cases for `test_rules`: convolutions and poolings."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import compgraph as cg
from compgraph.nn.convolutions import cross_correlate_back, cross_correlate_kernel
from compgraph.nn.pooling import max_pool_along, max_pool_back, mean_pool_back
from tests.support.arguments import Array, Function, Shape, Sketch, complexes, real, shifted

SLIDING: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "signal": ((6,), (3,), {}),
    "signal, same, even": ((5,), (2,), {"padding": "same"}),
    "signal, full, longer kernel": ((2,), (3,), {"padding": "full"}),
    "signal, strides, dilation, padding": ((7,), (2,), {"strides": 2, "dilation": 3, "padding": ((1, 2),)}),
    "channels": ((2, 2, 4), (3, 2, 2), {"padding": "same"}),
    "two axes, all options": (
        (1, 2, 4, 5), (2, 1, 2, 2),
        {"strides": (2, 1), "dilation": (1, 2), "padding": ((1, 0), (0, 2)), "groups": 2},
    ),
    "three axes": ((1, 1, 2, 3, 2), (1, 1, 2, 2, 1), {}),
    "zero size": ((0, 2, 3), (1, 2, 2), {}),
}  # fmt: skip
POOLED: dict[str, tuple[Shape, dict[str, Any]]] = {
    "batch and channels": ((2, 2, 4, 4), {"window": (2, 2)}),
    "overlapping, padded": ((2, 4, 5), {"window": (3, 2), "strides": 1, "padding": (1, (0, 1))}),
    "same": ((5,), {"window": 3, "padding": "same", "strides": 2}),
    "dilated": ((6,), {"window": 2, "dilation": 3, "strides": 1}),
    "zero size": ((0, 4), {"window": 2}),
}


def slides(function: Function, make: Any = real, back: bool = False, kernel: bool = False) -> list[Sketch]:
    """Correlations, or the operations that are their derivatives, on every kind of sliding."""
    sketches: list[Sketch] = []
    for label, (x, k, options) in SLIDING.items():
        out = np.shape(cg.cross_correlate(np.zeros(x), np.zeros(k), **options))
        first, second = (out, k) if back else (x, out) if kernel else (x, k)
        rest = [np.zeros(x)] if back else [np.zeros(k)] if kernel else []
        sketches.append(
            (label, partial(_with_fixed_operands, function, rest, options), make(*first, seed=1), make(*second, seed=2))
        )
    return sketches


def _with_fixed_operands(function: Function, rest: list[Any], options: dict[str, Any], *args: Any) -> Any:
    return function(*args, *rest, **options)


def pools(function: Function) -> list[Sketch]:
    """Pooling with every kind of windows."""
    return [(label, partial(function, **options), real(*shape)) for label, (shape, options) in POOLED.items()]


def pooled_with(function: Function, along: bool = False, mean: bool = False) -> list[Sketch]:
    """Cases of the derivatives of a pooling at fixed numbers, as functions of a tangent or cotangent."""
    sketches: list[Sketch] = []
    for label, (shape, overrides) in POOLED.items():
        options = {"strides": None, "padding": "valid", "dilation": 1, **overrides}
        x: Array = shifted(*shape)
        maxima = cg.max_pool(x, **overrides)
        rest = [x] if mean else [x, maxima]
        sketches.append(
            (label, partial(_with_fixed_operands, function, rest, options), real(*(shape if along else maxima.shape)))
        )
    return sketches


SKETCHES: dict[str, list[Sketch]] = {
    "cross_correlate": slides(cg.cross_correlate),
    "conv": slides(cg.conv),
    "cross_correlate_back": slides(cross_correlate_back, back=True),
    "cross_correlate_kernel": slides(cross_correlate_kernel, kernel=True),
    "max_pool": pools(cg.max_pool),
    "mean_pool": pools(cg.mean_pool),
    "max_pool_back": pooled_with(max_pool_back),
    "max_pool_along": pooled_with(max_pool_along, along=True),
    "mean_pool_back": pooled_with(mean_pool_back, mean=True),
}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {
    "cross_correlate": slides(cg.cross_correlate, complexes)[3:5],
    "conv": slides(cg.conv, complexes)[3:5],
    "mean_pool": [("vector", partial(cg.mean_pool, window=2), complexes(6))],
}
COMPOSED_SKETCHES: dict[str, list[Sketch]] = {
    "expand_dims": [("expand", cg.expand, real(3))],
    "mse": [
        ("both differentiated", cg.mse, real(2, 3, seed=1), real(2, 3, seed=2)),
        ("broadcast targets", cg.mse, real(2, 3), real(3)),
        ("broadcast predictions", cg.mse, real(1, 3), real(2, 3)),
        ("a number", lambda x: cg.mse(x, 1), real(4)),
        ("integers", lambda x: cg.mse(np.arange(3), x), real(3)),
        ("numbers", cg.mse, real(), real(seed=1)),
    ],
    "huber": [
        ("both differentiated", partial(cg.huber, delta=0.75), real(2, 3, seed=1), 2 * real(2, 3, seed=2)),
        ("broadcast targets", cg.huber, real(2, 3), real(3)),
        ("inside", partial(cg.huber, delta=100), real(4), real(4, seed=1)),
        ("outside", partial(cg.huber, delta=1e-3), real(4), real(4, seed=1)),
        ("numbers", cg.huber, real(), real(seed=1)),
    ],
}
