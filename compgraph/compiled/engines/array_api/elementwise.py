"""Elementwise operations in terms of the array API standard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .positions import UnsupportedError, is_complex, is_floating, move_elements, number

Namespace = Any
Array = Any


def same(xp: Namespace, x: Array) -> Array:
    """Return the array itself: arrays are never written into, so a copy is unnecessary."""
    return x


copy = input_of = copy_with_layout = stop_gradient = positive = same


def power(xp: Namespace, x: Array, y: Array) -> Array:
    """See `ops.power`."""
    return xp.pow(x, y)


float_power = power


def fabs(xp: Namespace, x: Array) -> Array:
    return xp.abs(x)


def cbrt(xp: Namespace, x: Array) -> Array:
    root = xp.pow(xp.abs(x), number(xp, 1 / 3, x))
    return xp.copysign(root, x)


def exp2(xp: Namespace, x: Array) -> Array:
    return xp.pow(number(xp, 2.0, x), x)


def logaddexp2(xp: Namespace, x: Array, y: Array) -> Array:
    log_2 = math.log(2.0)
    return xp.logaddexp(x * log_2, y * log_2) / log_2


def divmod_(xp: Namespace, x: Array, y: Array) -> tuple[Array, Array]:
    return xp.floor_divide(x, y), xp.remainder(x, y)


def fmod(xp: Namespace, x: Array, y: Array) -> Array:
    rest = xp.remainder(xp.abs(x), xp.abs(y))
    return xp.where(x < 0, -rest, rest)


def modf(xp: Namespace, x: Array) -> tuple[Array, Array]:
    whole = xp.trunc(x)
    return xp.copysign(xp.where(xp.isinf(x), xp.zeros_like(x), x - whole), x), whole


def ldexp(xp: Namespace, x: Array, exponent: Array) -> Array:
    return x * xp.pow(number(xp, 2.0, x), xp.astype(exponent, x.dtype))


def frexp(xp: Namespace, x: Array) -> tuple[Array, Array]:
    two = number(xp, 2.0, x)
    is_nonzero_number = xp.isfinite(x) & (x != 0)
    magnitude = xp.where(is_nonzero_number, xp.abs(x), xp.ones_like(x))
    exponent = xp.floor(xp.log2(magnitude)) + 1
    fraction = magnitude / xp.pow(two, exponent)
    exponent = exponent + xp.astype(fraction >= 1, x.dtype) - xp.astype(fraction < 0.5, x.dtype)
    fraction = xp.copysign(magnitude / xp.pow(two, exponent), x)
    return xp.where(is_nonzero_number, fraction, x), xp.astype(xp.where(is_nonzero_number, exponent, xp.zeros_like(x)), xp.int32)


def deg2rad(xp: Namespace, x: Array) -> Array:
    return x * (math.pi / 180)


def rad2deg(xp: Namespace, x: Array) -> Array:
    return x * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


def sinc(xp: Namespace, x: Array) -> Array:
    angles = math.pi * xp.where(x == 0, xp.full_like(x, 1e-20), x)
    return xp.sin(angles) / angles


def unwrap(xp: Namespace, p: Array, discont: object = None, axis: int = -1, *, period: float = 2 * math.pi) -> Array:
    if p.ndim == 0 or not xp.isdtype(p.dtype, "real floating"):
        raise UnsupportedError("unwrap of scalars or integers is not supported")
    size = p.shape[axis]
    steps = xp.diff(p, axis=axis)
    wrapped_steps = xp.remainder(steps + period / 2, number(xp, period, p)) - period / 2
    wrapped_steps = xp.where((wrapped_steps == -period / 2) & (steps > 0), number(xp, period / 2, p), wrapped_steps)
    jumps = xp.where(xp.abs(steps) < (period / 2 if discont is None else discont), xp.zeros_like(steps), wrapped_steps - steps)
    first = move_elements(xp, np.take, p, np.arange(min(size, 1)), axis=axis)
    return p + xp.concat([xp.zeros_like(first), xp.cumulative_sum(jumps, axis=axis)], axis=axis)


def fmax(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, xp.maximum(x, y))) if is_floating(xp, x) else xp.maximum(x, y)


def fmin(xp: Namespace, x: Array, y: Array) -> Array:
    return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, xp.minimum(x, y))) if is_floating(xp, x) else xp.minimum(x, y)


def clip(xp: Namespace, a: Array, low: Any = None, high: Any = None, **bounds: Any) -> Array:
    low, high = bounds.get("min", bounds.get("a_min", low)), bounds.get("max", bounds.get("a_max", high))
    for bound, choose in ((low, xp.maximum), (high, xp.minimum)):
        if bound is not None:
            a = choose(a, bound if hasattr(bound, "shape") else number(xp, bound, a))
    return a


def heaviside(xp: Namespace, x: Array, at_zero: Array) -> Array:
    step = xp.where(x < 0, xp.zeros_like(x), xp.where(x > 0, xp.ones_like(x), x))
    return xp.where(x == 0, at_zero, step)


def nan_to_num(
    xp: Namespace, x: Array, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    if not xp.isdtype(x.dtype, "real floating"):
        raise UnsupportedError("nan_to_num of complex numbers or integers is not supported")
    limits = xp.finfo(x.dtype)
    x = xp.where(xp.isnan(x), number(xp, nan, x), x)
    x = xp.where(x == math.inf, number(xp, float(limits.max) if posinf is None else posinf, x), x)
    return xp.where(x == -math.inf, number(xp, float(limits.min) if neginf is None else neginf, x), x)


def conj(xp: Namespace, x: Array) -> Array:
    return xp.conj(x) if is_complex(xp, x) else x


def real(xp: Namespace, x: Array) -> Array:
    return xp.real(x) if is_complex(xp, x) else x


def imag(xp: Namespace, x: Array) -> Array:
    return xp.imag(x) if is_complex(xp, x) else xp.zeros_like(x)


def angle(xp: Namespace, z: Array, deg: bool = False) -> Array:
    radians = xp.atan2(imag(xp, z), real(xp, z))
    return rad2deg(xp, radians) if deg else radians


def complex_sign(xp: Namespace, z: Array) -> Array:
    length = xp.abs(z)
    return z / xp.where(length == 0, xp.ones_like(length), length)


def over(xp: Namespace, x: Array, length: Array, of: str) -> Array:
    return x / xp.where(length == 0, xp.ones_like(length), length)


def cornered(xp: Namespace, t: Array, z: Array, of: str) -> Array:
    return xp.zeros_like(t * z)


def rint(xp: Namespace, x: Array) -> Array:
    return xp.round(x)


def fix(xp: Namespace, x: Array) -> Array:
    return xp.trunc(x)


def round_(xp: Namespace, a: Array, decimals: int = 0) -> Array:
    if not decimals:
        return xp.round(a)
    scale = 10.0 ** abs(int(decimals))
    return xp.round(a * scale) / scale if decimals > 0 else xp.round(a / scale) * scale


def isposinf(xp: Namespace, x: Array) -> Array:
    return x == math.inf


def isneginf(xp: Namespace, x: Array) -> Array:
    return x == -math.inf


def iscomplex(xp: Namespace, x: Array) -> Array:
    return imag(xp, x) != 0


def isreal(xp: Namespace, x: Array) -> Array:
    return imag(xp, x) == 0


def isclose(xp: Namespace, a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    close = (xp.abs(a - b) <= atol + rtol * xp.abs(b)) & xp.isfinite(b) | (a == b)
    return close | (xp.isnan(a) & xp.isnan(b)) if equal_nan else close
