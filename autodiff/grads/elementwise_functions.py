"""Rules of elementwise operations, from simple to difficult.

Each formula has the form ``(cotangent, out, *operands) -> contribution``. Where the one-sided derivatives differ (abs at 0,
ties of maximum), the value is their mean, as in a central difference. In the texts of `with_formula`, a and b are the operands
and y is the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.array_types import Array, Operand
from compgraph.protocols import stop_gradient
from compgraph.scipy import zero_to_order

from ..rules import Formula, Rule, elementwise, general
from .corners import choice_formula, choice_tangent, is_zero, norm_formula, safe_quotient

LN2 = math.log(2.0)
LN10 = math.log(10.0)
DEGREE = math.pi / 180

# ------------------------------------------------------------------------------------------ arithmetic

add_grad = elementwise("add", lambda g, out, x, y: g, lambda g, out, x, y: g).with_formula("1", "1")
sub_grad = elementwise("sub", lambda g, out, x, y: g, lambda g, out, x, y: -g).with_formula("1", "-1")
mul_grad = elementwise("mul", lambda g, out, x, y: g * y, lambda g, out, x, y: g * x).with_formula("b", "a")
div_grad = elementwise("div", lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y).with_formula("1 / b", "-a / b**2")
neg_grad = elementwise("neg", lambda g, out, x: -g).with_formula("-1")
positive_grad = elementwise("positive", lambda g, out, x: g).with_formula("1")
conj_grad = elementwise("conj", lambda g, out, x: np.conjugate(g))
real_grad = elementwise("real", lambda g, out, x: g)
imag_grad = elementwise("imag", lambda g, out, x: g * -1j)
square_grad = elementwise("square", lambda g, out, x: g * (2 * x)).with_formula("2 * a")
reciprocal_grad = elementwise("reciprocal", lambda g, out, x: -g * out * out).with_formula("-1 / a**2")
deg2rad_grad = elementwise("deg2rad", lambda g, out, x: g * DEGREE).with_formula("pi / 180")
radians_grad = elementwise("radians", lambda g, out, x: g * DEGREE).with_formula("pi / 180")
rad2deg_grad = elementwise("rad2deg", lambda g, out, x: g * (180 / math.pi)).with_formula("180 / pi")
degrees_grad = elementwise("degrees", lambda g, out, x: g * (180 / math.pi)).with_formula("180 / pi")

# x % y is x - floor(x / y) * y, and fmod truncates the quotient. The rounded x / y may exceed the next integer, so both rules
# compute the quotient without rounding it.
remainder_grad = elementwise("remainder", lambda g, out, x, y: g, lambda g, out, x, y: -g * np.floor_divide(x, y)).with_formula(
    "1", "-floor(a / b)"
)
fmod_grad = elementwise("fmod", lambda g, out, x, y: g, lambda g, out, x, y: -g * np.rint((x - out) / y))
divmod_grad = general(
    "divmod",
    lambda g, out, x, y: g[1] if g[1] is not None else np.zeros_like(out[1]),
    lambda g, out, x, y: -g[1] * out[0] if g[1] is not None else np.zeros_like(out[1]),
).tangent(
    lambda t, out, x, y: (np.zeros_like(out[0]), t),
    lambda t, out, x, y: (np.zeros_like(out[0]), -t * out[0]),
)

# --------------------------------------------------------------------------------- powers, exponentials


def to_dtype_of(x: Any, out: Any) -> Any:
    """Convert `x` to the dtype of the result, which differs for ``np.emath`` (complex) and small integers (float16)."""
    if out.dtype.kind == "c" and not np.iscomplexobj(x):
        return x + np.zeros((), out.dtype)
    return x if getattr(x, "dtype", out.dtype) == out.dtype else x.astype(out.dtype)


def _power_base(g: Array, out: object, x: Array, y: Operand) -> Any:
    """Multiply by ``y * x**(y - 1)``, or by 0 for y = 0, even at x = 0."""
    x = to_dtype_of(x, out)
    if isinstance(y, (int, float)):
        return g * (y * x ** (y - 1)) if y else np.zeros_like(x) * g
    return g * (y * x ** np.where((y == 0) & (x == 0), 1, y - 1))


def _power_exponent(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Multiply by ``x**y * log(x)``, or by 0 at x = 0 for positive y."""
    x = to_dtype_of(x, out)
    return g * (out * np.log(np.where((x == 0) & (np.real(y) > 0), 1, x)))


pow_grad = elementwise("pow", _power_base, _power_exponent).with_formula("b * a**(b - 1)", "a**b * log(a)")
float_power_grad = elementwise("float_power", _power_base, _power_exponent).with_formula("b * a**(b - 1)", "a**b * log(a)")
sqrt_grad = elementwise("sqrt", lambda g, out, x: 0.5 * g / out).with_formula("1 / (2 * sqrt(a))")
cbrt_grad = elementwise("cbrt", lambda g, out, x: g / (3 * out * out)).with_formula("1 / (3 * cbrt(a)**2)")
exp_grad = elementwise("exp", lambda g, out, x: g * out).with_formula("exp(a)")
exp2_grad = elementwise("exp2", lambda g, out, x: g * out * LN2).with_formula("2**a * log(2)")
expm1_grad = elementwise("expm1", lambda g, out, x: g * (out + 1)).with_formula("exp(a)")
log_grad = elementwise("log", lambda g, out, x: g / x).with_formula("1 / a")
log2_grad = elementwise("log2", lambda g, out, x: g / (x * LN2)).with_formula("1 / (a * log(2))")
log10_grad = elementwise("log10", lambda g, out, x: g / (x * LN10)).with_formula("1 / (a * log(10))")
# log(x) / log(n), where either logarithm may be complex
logn_grad = elementwise(
    "logn",
    lambda g, out, n, x: -g * out / (n * np.emath.log(n)),
    lambda g, out, n, x: g / (x * np.emath.log(n)),
)
log1p_grad = elementwise("log1p", lambda g, out, x: g / (1 + x)).with_formula("1 / (1 + a)")


def _log_share(x: NDArray[Any], out: NDArray[Any], y: ArrayLike) -> Any:
    """Compute x - out, the logarithm of the share of x in a sum, without ``inf - inf`` unless x and y are the same infinity."""
    is_infinite = np.isinf(out)
    if not np.any(is_infinite):
        return x - out
    is_unequal = is_infinite & (x != y)
    return np.where(is_unequal, np.where(x == out, 0, -np.inf), x - np.where(is_unequal, 0, out))


logaddexp_grad = elementwise(
    "logaddexp",
    lambda g, out, x, y: g * np.exp(_log_share(x, out, y)),
    lambda g, out, x, y: g * np.exp(_log_share(y, out, x)),
).with_formula("exp(a - y)", "exp(b - y)")
logaddexp2_grad = elementwise(
    "logaddexp2",
    lambda g, out, x, y: g * np.exp2(_log_share(x, out, y)),
    lambda g, out, x, y: g * np.exp2(_log_share(y, out, x)),
).with_formula("2**(a - y)", "2**(b - y)")

# ------------------------------------------------------------------------ trigonometric and hyperbolic


def _root(out: Array, from_operand: Any, from_result: Any) -> Any:
    """Return the root in the derivative of an inverse function, computed from the operand, or from a complex result.

    On a branch cut, only the result determines the side.
    """
    return from_result(out) if out.dtype.kind == "c" else from_operand()


sin_grad = elementwise("sin", lambda g, out, x: g * np.cos(x)).with_formula("cos(a)")
cos_grad = elementwise("cos", lambda g, out, x: -g * np.sin(x)).with_formula("-sin(a)")
tan_grad = elementwise("tan", lambda g, out, x: g * (1 + out * out)).with_formula("1 / cos(a)**2")
arcsin_grad = elementwise("arcsin", lambda g, out, x: g / _root(out, lambda: np.sqrt((1 - x) * (1 + x)), np.cos)).with_formula(
    "1 / sqrt(1 - a**2)"
)
arccos_grad = elementwise("arccos", lambda g, out, x: -g / _root(out, lambda: np.sqrt((1 - x) * (1 + x)), np.sin)).with_formula(
    "-1 / sqrt(1 - a**2)"
)
arctan_grad = elementwise("arctan", lambda g, out, x: g / (1 + x * x)).with_formula("1 / (1 + a**2)")
sinh_grad = elementwise("sinh", lambda g, out, x: g * np.cosh(x)).with_formula("cosh(a)")
cosh_grad = elementwise("cosh", lambda g, out, x: g * np.sinh(x)).with_formula("sinh(a)")
tanh_grad = elementwise("tanh", lambda g, out, x: g * (1 - out * out)).with_formula("1 - tanh(a)**2")
arcsinh_grad = elementwise("arcsinh", lambda g, out, x: g / _root(out, lambda: np.sqrt(x * x + 1), np.cosh)).with_formula(
    "1 / sqrt(a**2 + 1)"
)
arccosh_grad = elementwise(
    "arccosh", lambda g, out, x: g / _root(out, lambda: np.sqrt(x - 1) * np.sqrt(x + 1), np.sinh)
).with_formula("1 / sqrt(a**2 - 1)")
arctanh_grad = elementwise("arctanh", lambda g, out, x: g / ((1 - x) * (1 + x))).with_formula("1 / (1 - a**2)")
arctan2_grad = elementwise(
    "arctan2", lambda g, out, x, y: g * (y / (x * x + y * y)), lambda g, out, x, y: -g * (x / (x * x + y * y))
).with_formula("b / (a**2 + b**2)", "-a / (a**2 + b**2)")

# ------------------------------------------------------------------------------------- corners and ties


def _maximum_share(g: Any, out: NDArray[Any] | None, x: Any, y: Any) -> Any:
    """Return the share of x in a maximum: all, nothing, or half at a tie. If x or y is nan, both have the whole share."""
    return np.where(x < y, 0, np.where(x == y, 0.5 * g, g))


def _minimum_share(g: object, out: NDArray[Any] | None, x: object, y: Operand) -> Any:
    """Return the share of x in a minimum."""
    return _maximum_share(g, out, y, x)


def _fmax_share(g: NDArray[Any], out: object, x: object, y: object) -> Any:
    """Return the share of x in fmax or fmin, which skip nan if the other operand is a number."""
    return np.where((x == out) | (y != y), np.where(x == y, 0.5 * g, g), 0)  # y is nan if y != y


def _fmax_share_second(g: Any, out: Any, x: Any, y: Any) -> Any:
    return _fmax_share(g, out, y, x)


def _declare_choice(opname: str, first_share: Callable[..., Any], second_share: Callable[..., Any]) -> Any:
    """Declare a choice between two operands, whose shares jump by 1/2 on either side of a tie."""

    def make_pull(share: Callable[..., Any], position: int) -> Any:
        def formula(g: NDArray[Any], out: NDArray[Any], x: NDArray[Any], y: Operand) -> Any:
            operand = y if position else x
            return choice_formula(share(g, out, x, y), g, out, np.equal, (x, y), lambda: 0.5 * (operand - out), opname)

        return formula

    def make_push(share: Any) -> Any:
        def tangent(t: object, out: object, x: object, y: Any) -> Any:
            return choice_tangent(share(t, out, x, y), t, out, np.equal, (x, y), lambda: x - y, opname)

        return tangent

    rule = elementwise(opname, make_pull(first_share, 0), make_pull(second_share, 1))
    return rule.tangent(make_push(first_share), make_push(second_share)).selects_elements()


def _declare_abs(opname: str) -> Rule:
    """Declare an absolute value: the derivative is the sign, or for complex numbers the direction, which is 0 at 0."""

    def pull(g: Any, out: Any, x: Any) -> Any:
        if x.dtype.kind == "c":
            return norm_formula(g, out, np.conjugate(x), opname)
        return choice_formula(g * np.sign(x), g, out, is_zero, (x,), lambda: x, opname)

    def push(t: Array, out: Array, x: Array) -> Any:
        if x.dtype.kind == "c":
            return t * safe_quotient(np.conjugate(x), out, opname)
        return choice_tangent(t * np.sign(x), t, out, is_zero, (x,), lambda: x, opname)

    return elementwise(opname, pull).tangent(push).with_formula("sign(a)")


nextafter_grad = elementwise("nextafter", lambda g, out, x, y: g, None)
heaviside_grad = elementwise("heaviside", None, lambda g, out, x, y: np.where(x == 0, g, 0)).selects_elements()
abs_grad = _declare_abs("abs")
fabs_grad = _declare_abs("fabs")
# z / abs(z) does not change with the length of z
complex_sign_grad = general("complex_sign", lambda g, out, z: (g - np.real(g * out) * np.conjugate(out)) / np.abs(z)).tangent(
    lambda t, out, z: (t - np.real(t * np.conjugate(out)) * out) / np.abs(z)
)
hypot_grad = (
    elementwise(
        "hypot", lambda g, out, x, y: norm_formula(g, out, x, "hypot"), lambda g, out, x, y: norm_formula(g, out, y, "hypot")
    )
    .tangent(
        lambda t, out, x, y: t * safe_quotient(x, out, "hypot"),
        lambda t, out, x, y: t * safe_quotient(y, out, "hypot"),
    )
    .with_formula("a / y", "b / y")
)
maximum_grad = _declare_choice("maximum", _maximum_share, _minimum_share)
minimum_grad = _declare_choice("minimum", _minimum_share, _maximum_share)
fmax_grad = _declare_choice("fmax", _fmax_share, _fmax_share_second)
fmin_grad = _declare_choice("fmin", _fmax_share, _fmax_share_second)
where_grad = elementwise(
    "where", None, lambda g, out, mask, x, y: np.where(mask, g, 0), lambda g, out, mask, x, y: np.where(mask, 0, g)
).selects_elements()


# clip(x, low, high) is minimum(maximum(x, low), high), and None omits a bound.


def _maximum_cotangent(g: NDArray[Any], x: NDArray[Any], low: Any, high: Any) -> Any:
    """Return the cotangent of ``maximum(x, low)``."""
    return g if high is None else _minimum_share(g, None, x if low is None else np.maximum(x, low), high)


def _clip_share_x(g: NDArray[Any], out: object, x: NDArray[Any], low: object = None, high: object = None) -> Any:
    g = _maximum_cotangent(g, x, low, high)
    return g if low is None else _maximum_share(g, None, x, low)


def _clip_share_min(g: Any, out: object, x: Any, low: Any = None, high: Any = None) -> Any:
    return _maximum_share(_maximum_cotangent(g, x, low, high), None, low, x)


def _clip_share_max(g: Any, out: object, x: Any, low: Any = None, high: Any = None) -> Any:
    return _minimum_share(g, None, high, x if low is None else np.maximum(x, low))


def _is_at_bound(x: Any, low: Operand, high: Operand) -> Any:
    """Return where a number equals a bound."""
    ties = [np.equal(x, bound) for bound in (low, high) if bound is not None]
    return functools.reduce(np.logical_or, ties, np.False_)


def _clip_formula(share: Callable[..., Any], position: int) -> Any:
    def pull(g: Any, out: Any, x: Any, low: Any = None, high: Any = None) -> Any:
        operand = (x, low, high)[position]
        cotangent = share(g, out, x, low, high)
        return choice_formula(cotangent, g, out, _is_at_bound, (x, low, high), lambda: 0.5 * (operand - out), "clip")

    return pull


def _clip_tangent(share: Callable[..., Any]) -> Any:
    def push(t: Any, out: Any, x: ArrayLike, low: Any = None, high: Any = None) -> Any:
        tangent = share(t, out, x, low, high)

        def deviation() -> Any:  # 0 at a bound, but with derivative 1
            return np.where(_is_at_bound(x, low, high), x - stop_gradient(x), 1)

        return choice_tangent(tangent, t, out, _is_at_bound, (x, low, high), deviation, "clip")

    return push


clip_grad = (
    elementwise("clip", *[_clip_formula(f, i) for i, f in enumerate((_clip_share_x, _clip_share_min, _clip_share_max))])
    .tangent(*map(_clip_tangent, (_clip_share_x, _clip_share_min, _clip_share_max)))
    .selects_elements()
)


# The derivative of sin(t) / t, as t times a series in t squared
_SINC_DERIVATIVE_SERIES = [(-1) ** (k + 1) * (2 * k + 2) / math.factorial(2 * k + 3) for k in range(12)]


def _pull_sinc(g: Array, out: object, x: Operand) -> Any:
    t = math.pi * x
    is_small = np.abs(t) < 1
    small, large = np.where(is_small, t, 0), np.where(is_small, 1, t)
    closed_form = (np.cos(large) - np.sin(large) / large) / large
    return g * (math.pi * np.where(is_small, small * power_series(small * small, _SINC_DERIVATIVE_SERIES), closed_form))


def _pull_i0(g: Any, out: object, x: Any) -> Any:
    """Average ``cos(angle) exp(x cos(angle))`` over angles from 0 to pi, enough of them to be exact up to rounding."""
    size = min(float(np.max(np.abs(x), initial=0, where=np.isfinite(x))), 1000)
    count = 16 + math.ceil(4.5 * math.sqrt(size))
    cosines = np.cos((np.arange(count) + 0.5) * (math.pi / count)).astype(x.dtype)
    return g * np.mean(cosines * np.exp(x[..., None] * cosines), axis=-1)


def _pull_angle(g: Array, out: object, z: NDArray[Any], deg: object = False) -> Any:
    """Compute Im(dz / z), in degrees if `deg`; the angle of a real number is constant."""
    if z.dtype.kind != "c":
        return np.zeros_like(z) * g
    return g * ((-1j / DEGREE if deg else -1j) / z)


def _pull_copysign(g: Any, out: Any, x: Any, y: Operand) -> Any:
    cotangent = g * (np.sign(x) * np.copysign(1, y))
    return choice_formula(cotangent, g, out, is_zero, (x,), lambda: x, "copysign")


def _push_copysign(t: Array, out: object, x: Operand, y: Operand) -> Any:
    tangent = t * (np.sign(x) * np.copysign(1, y))
    return choice_tangent(tangent, t, out, is_zero, (x,), lambda: x, "copysign")


copysign_grad = elementwise("copysign", _pull_copysign, None).tangent(_push_copysign, None)
ldexp_grad = elementwise("ldexp", lambda g, out, x, exponent: np.ldexp(g, exponent), None)
frexp_grad = general(
    "frexp", lambda g, out, x: np.ldexp(g[0], -out[1]) if g[0] is not None else np.zeros_like(x)
).tangent(lambda t, out, x: (np.ldexp(t, -out[1]), None))  # fmt: skip
modf_grad = general("modf", lambda g, out, x: g[0] if g[0] is not None else np.zeros_like(x)).tangent(
    lambda t, out, x: (t, np.zeros_like(t))
)
sinc_grad = elementwise("sinc", _pull_sinc)
i0_grad = elementwise("i0", _pull_i0)
angle_grad = elementwise("angle", _pull_angle)


def _lower_order(g: object, out: object, x: object, order: int, description: str) -> Any:
    """Return the cotangent of a value with exact derivatives up to `order`; the cotangent has one order less."""
    if order == 0:
        raise TypeError(f"{description} has no derivative of this order. Its computation is exact for lower orders only")
    return g * zero_to_order(x, order - 1, description)


zero_to_order_grad = elementwise("zero_to_order", _lower_order)


def power_series(x: Operand, coefficients: list[float]) -> Any:
    """Evaluate ``sum(coefficients[k] * x**k)`` by Horner's scheme."""
    total = 0 * x + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def series_near_zero(x: Any, radius: float, coefficients: list[float], closed_form: Formula) -> Any:
    """Evaluate a function by its power series near 0, where its closed form is 0 / 0, and by the closed form elsewhere."""
    is_near = np.abs(x) < radius
    regular = np.where(is_near, 0.5, x)
    return np.where(is_near, power_series(np.where(is_near, x, 0), coefficients), closed_form(regular))


def _pull_nan_to_num(g: NDArray[Any], out: object, x: NDArray[Any], **_: object) -> Any:
    """Return 0 for replaced elements; real and imaginary parts are replaced independently."""
    if x.dtype.kind != "c":
        return np.where(np.isfinite(x), g, 0)
    return np.where(np.isfinite(np.real(x)), np.real(g), 0) + 1j * np.where(np.isfinite(np.imag(x)), np.imag(g), 0)


def _has_finite_part(x: Array, **_: object) -> Any:
    """Return where a number, or one part of a complex number, is not replaced."""
    return np.isfinite(np.real(x)) | np.isfinite(np.imag(x)) if x.dtype.kind == "c" else np.isfinite(x)


nan_to_num_grad = elementwise("nan_to_num", _pull_nan_to_num).selects_elements(_has_finite_part)
