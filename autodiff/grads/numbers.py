"""Rules of NumPy's own special functions, and of the ufuncs that take numbers apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.graph import to_values

from ..rules import elementwise, general
from .corners import choosing, choosing_tangent
from .power_series import series

DEGREE = math.pi / 180

# The derivative of sin(t) / t, as t times a series in t squared
_SINC = [(-1) ** (k + 1) * (2 * k + 2) / math.factorial(2 * k + 3) for k in range(12)]


def _sinc(g: Any, out: Any, x: Any) -> Any:
    t = math.pi * x
    near = np.abs(t) < 1
    small, large = np.where(near, t, 0), np.where(near, 1, t)
    closed = (np.cos(large) - np.sin(large) / large) / large
    return g * (math.pi * np.where(near, small * series(small * small, _SINC), closed))


def _i0(g: Any, out: Any, x: Any) -> Any:
    """The mean of ``cos(angle) exp(x cos(angle))`` over half a turn, exact to rounding with enough angles."""
    size = min(float(np.max(np.abs(x), initial=0, where=np.isfinite(x))), 1000)
    count = 16 + math.ceil(4.5 * math.sqrt(size))
    cosines = np.cos((np.arange(count) + 0.5) * (math.pi / count)).astype(x.dtype)
    return g * np.mean(cosines * np.exp(x[..., None] * cosines), axis=-1)


def _angle(g: Any, out: Any, z: Any, deg: Any = False) -> Any:
    """Im(dz / z), in degrees if wanted; a real number keeps its angle."""
    if z.dtype.kind != "c":
        return np.zeros_like(z) * g
    return g * ((-1j / DEGREE if deg else -1j) / z)


def _copysign(g: Any, out: Any, x: Any, y: Any) -> Any:
    found = g * (np.sign(x) * np.copysign(1, y))
    return choosing(found, g, out, lambda: np.asarray(to_values(x)) == 0, lambda: x, "copysign")


def _copysign_tangent(t: Any, out: Any, x: Any, y: Any) -> Any:
    found = t * (np.sign(x) * np.copysign(1, y))
    return choosing_tangent(found, t, lambda: np.asarray(to_values(x)) == 0, lambda: x, "copysign")


copysign_grad = elementwise("copysign", _copysign, None).tangent(_copysign_tangent, None)
ldexp_grad = elementwise("ldexp", lambda g, out, x, exponent: np.ldexp(g, exponent), None)
frexp_grad = general(
    "frexp", lambda g, out, x: np.ldexp(g[0], -out[1]) if g[0] is not None else np.zeros_like(x)
).tangent(lambda t, out, x: (np.ldexp(t, -out[1]), None))  # fmt: skip
modf_grad = general("modf", lambda g, out, x: g[0] if g[0] is not None else np.zeros_like(x)).tangent(
    lambda t, out, x: (t, np.zeros_like(t))
)
sinc_grad = elementwise("sinc", _sinc)
i0_grad = elementwise("i0", _i0)
angle_grad = elementwise("angle", _angle)
