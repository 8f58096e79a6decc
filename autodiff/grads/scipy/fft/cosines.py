"""Rules of ``scipy.fft``'s sine and cosine transforms.

The types I and IV are symmetric, II and III transposes of each other, all but for factors at the ends: an element at an end
stands for one cosine where the others stand for two (G. Strang, "The discrete cosine transform", 1999). With
``orthogonalize=True`` there are no such factors left, whatever the norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from ....rules import Rule, linear
from .lengths import along, fit, places

_TRANSPOSED = {2: 3, 3: 2}
# By kind and type: the factors at the first and the last element of the adjoint before, and after the transposed transform.
_ENDS = {
    ("c", 1): ((1.0, 1.0), (1.0, 1.0)),
    ("c", 2): ((2.0, 1.0), (1.0, 1.0)),
    ("c", 3): ((1.0, 1.0), (0.5, 1.0)),
    ("s", 2): ((1.0, 2.0), (1.0, 1.0)),
    ("s", 3): ((1.0, 1.0), (1.0, 0.5)),
}


def _weighted(g: Any, axes: Any, ends: tuple[float, float], inner: float = 1.0) -> Any:
    """With factors at both ends along axes, and for all between; an only element has those of both ends."""
    for axis in axes:
        weights = np.full(g.shape[axis], inner, np.finfo(g.dtype).dtype)
        if len(weights) > 1:
            weights[0], weights[-1] = ends
        elif len(weights):
            weights[0] = ends[0] * ends[1]
        g = g * along(weights, axis)
    return g


def _transposed(name: str, g: Any, axes: Any, kind: int, norm: Any, orthogonalize: Any, workers: Any) -> Any:
    """The transposed transform along axes."""
    function = getattr(scipy.fft, f"{name}n")
    options = {"axes": axes, "norm": norm, "orthogonalize": orthogonalize, "workers": workers}
    if norm == "ortho" if orthogonalize is None else orthogonalize:
        return function(g, _TRANSPOSED.get(kind, kind), **options)
    acting = _TRANSPOSED.get(kind, kind) if name.startswith("i") else kind  # an inverse of type II is a transform of type III
    before, after = _ENDS.get((name[-2], acting), ((1.0, 1.0), (1.0, 1.0)))
    halved, doubled = (0.5, 2.0) if (name[-2], acting) == ("c", 1) else (1.0, 1.0)
    found = function(_weighted(g, axes, before, halved), _TRANSPOSED.get(kind, kind), **options)
    return _weighted(found, axes, after, doubled)


def _one(name: str) -> Rule:
    """The rule of a transform along one axis."""

    def formula(
        g: Any, out: Any, x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        axes, _ = places(x, None if n is None else [n], [axis])
        return fit(_transposed(name, g, axes, type, norm, orthogonalize, workers), x, axes)

    return linear(f"scipy_fft_{name}", formula)


def _several(name: str) -> Rule:
    """The rule of a transform along several axes."""

    def formula(
        g: Any, out: Any, x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        found, _ = places(x, s, axes)
        return fit(_transposed(name[:-1], g, found, type, norm, orthogonalize, workers), x, found)

    return linear(f"scipy_fft_{name}", formula)


scipy_fft_dct_grad, scipy_fft_idct_grad = _one("dct"), _one("idct")
scipy_fft_dst_grad, scipy_fft_idst_grad = _one("dst"), _one("idst")
scipy_fft_dctn_grad, scipy_fft_idctn_grad = _several("dctn"), _several("idctn")
scipy_fft_dstn_grad, scipy_fft_idstn_grad = _several("dstn"), _several("idstn")
