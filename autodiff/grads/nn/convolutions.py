"""Rules of cross-correlations: a form that is linear in three arrays, of which each operation computes one."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.nn import conv, cross_correlate, cross_correlate_back, cross_correlate_kernel, places

from ...rules import Formula, general


def _real(kernel: Any) -> Any:
    """The kernel as `cross_correlate` takes it: a complex one conjugated."""
    return np.conjugate(kernel) if kernel.dtype.kind == "c" else kernel


def _plain(x: Any, kernel: Any, **options: Any) -> Any:
    """`cross_correlate`, without conjugation."""
    return cross_correlate(x, _real(kernel), **options)


def _flipped(kernel: Any) -> Any:
    return np.flip(kernel, places(kernel))


def _term(compute: Formula, place: int, *others: int) -> Formula:
    """The formula that calls `compute` with the adjoint or tangent at a place among some of the operands."""

    def formula(g: Any, out: Any, *operands: Any, **options: Any) -> Any:
        chosen = [operands[i] for i in others]
        return compute(*chosen[:place], g, *chosen[place:], **options)

    return formula


cross_correlate_grad = general(
    "cross_correlate",
    _term(lambda g, k, x, **o: cross_correlate_back(g, _real(k), x, **o), 0, 1, 0),
    _term(lambda x, g, k, **o: _real(cross_correlate_kernel(x, g, k, **o)), 1, 0, 1),
).tangent(_term(cross_correlate, 0, 1), _term(cross_correlate, 1, 0))
conv_grad = general(
    "conv",
    _term(lambda g, k, x, **o: cross_correlate_back(g, _flipped(k), x, **o), 0, 1, 0),
    _term(lambda x, g, k, **o: _flipped(cross_correlate_kernel(x, g, k, **o)), 1, 0, 1),
).tangent(_term(conv, 0, 1), _term(conv, 1, 0))
cross_correlate_back_grad = general(
    "cross_correlate_back", _term(_plain, 0, 1), _term(cross_correlate_kernel, 0, 0, 1), None
).tangent(_term(cross_correlate_back, 0, 1, 2), _term(cross_correlate_back, 1, 0, 2), None)
cross_correlate_kernel_grad = general(
    "cross_correlate_kernel", _term(cross_correlate_back, 1, 1, 0), _term(_plain, 1, 0), None
).tangent(_term(cross_correlate_kernel, 0, 1, 2), _term(cross_correlate_kernel, 1, 0, 2), None)
