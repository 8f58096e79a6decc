"""Complex functions as formulas of real and imaginary parts.

The expansions take `Parts` for complex operands, and return `Parts`, or the result itself if it is real; None for options that
they do not support. The formulas are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .... import ops
from ....array_types import Array
from ....bind import bind
from ....values import Value


class Parts(NamedTuple):
    """The real and the imaginary part of an array: nodes, arrays or numbers."""

    real: Any
    imag: Any


Expansion = Callable[..., Any]


def with_dtype(part: Array | complex, dtype: np.dtype[Any]) -> Any:
    """Return a part, a node or a number, with a dtype."""
    if isinstance(part, np.ndarray):
        return part if part.dtype == dtype else part.astype(dtype)
    return dtype.type(part)


# --------------------------------------------------------------------------------------------- elementwise


def _elementwise(expand: Expansion) -> Expansion:
    """Give an expansion the parts of all operands; real arrays are converted to floating point."""

    def parts_of(operand: NDArray[Any] | float | Parts) -> Parts:
        if isinstance(operand, Parts):
            return operand
        if isinstance(operand, (np.ndarray, np.generic)):
            return Parts(operand if operand.dtype.kind == "f" else operand.astype(float), 0.0)
        return Parts(float(operand), 0.0)

    def expand_parts(*operands: Any, **options: object) -> Any:
        return None if options else expand(*map(parts_of, operands))

    return expand_parts


def _on_parts(function: Callable[..., Any]) -> Expansion:
    """Return the expansion of a function that acts on the parts separately."""
    return _elementwise(lambda *operands: Parts(*[function(*parts) for parts in zip(*operands, strict=True)]))


def _test(function: Callable[..., Any], combine: Callable[..., Any]) -> Expansion:
    """Return the expansion of a test of both parts."""
    return _elementwise(lambda *operands: combine(*[function(*parts) for parts in zip(*operands, strict=True)]))


def _multiply(a: Parts, b: Parts) -> Parts:
    return Parts(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _divide(a: Parts, b: Parts) -> Parts:
    """Smith's algorithm (1962), Algorithm 116; by zero, the parts are divided."""
    length_real, length_imag = np.abs(b.real), np.abs(b.imag)
    is_steep, is_zero = length_real < length_imag, np.logical_and(length_real == 0.0, length_imag == 0.0)
    ratio = np.where(is_steep, b.real, b.imag) / np.where(is_steep, b.imag, b.real)
    scale = 1.0 / np.where(is_steep, b.imag + b.real * ratio, b.real + b.imag * ratio)
    real = np.where(is_steep, a.real * ratio + a.imag, a.real + a.imag * ratio) * scale
    imag = np.where(is_steep, a.imag * ratio - a.real, a.imag - a.real * ratio) * scale
    divisor = np.where(is_zero, length_real, 1.0)
    return Parts(np.where(is_zero, a.real / divisor, real), np.where(is_zero, a.imag / divisor, imag))


def _exp(z: Parts) -> Parts:
    length = np.exp(z.real)
    return Parts(length * np.cos(z.imag), length * np.sin(z.imag))


def _log(z: Parts) -> Parts:
    """``log|z|`` from ``|z|**2 - 1`` near the unit circle."""
    length = np.hypot(z.real, z.imag)
    large, small = np.maximum(np.abs(z.real), np.abs(z.imag)), np.minimum(np.abs(z.real), np.abs(z.imag))
    is_near_one = np.logical_and(length > 0.7, length < 1.4)
    excess = np.where(is_near_one, (large - 1.0) * (large + 1.0) + small * small, 0.0)
    real = np.where(is_near_one, 0.5 * np.log1p(excess), np.log(np.where(is_near_one, 1.0, length)))
    return Parts(real, np.arctan2(z.imag, z.real))


def _sqrt(z: Parts) -> Parts:
    """The square root with a nonnegative real part."""
    root = np.sqrt(0.5 * (np.abs(z.real) + np.hypot(z.real, z.imag)))
    other = np.where(root == 0.0, 0.0, np.abs(z.imag) / (2.0 * np.where(root == 0.0, 1.0, root)))
    is_right = z.real >= 0.0
    return Parts(np.where(is_right, root, other), np.copysign(np.where(is_right, other, root), z.imag))


def _scale(function: Callable[[Parts], Parts], factor: float) -> Callable[[Parts], Parts]:
    """Return a function whose results are multiplied by a real factor."""

    def scaled(z: Parts) -> Parts:
        value = function(z)
        return Parts(value.real * factor, value.imag * factor)

    return scaled


def _expm1(z: Parts) -> Parts:
    half_sine = np.sin(0.5 * z.imag)
    real = np.expm1(z.real) * np.cos(z.imag) - 2.0 * half_sine * half_sine
    return Parts(real, np.exp(z.real) * np.sin(z.imag))


def _log1p(z: Parts) -> Parts:
    real = z.real + 1.0
    return Parts(np.log(np.hypot(real, z.imag)), np.arctan2(z.imag, real))


def _tanh(z: Parts) -> Parts:
    """Kahan's algorithm (1987), `CTANH`."""
    length = np.abs(z.real)
    is_far = length > 22.0
    tangent, sine = np.tan(z.imag), np.sinh(np.where(is_far, 0.0, z.real))
    slope = 1.0 + tangent * tangent
    scale = 1.0 + slope * (sine * sine)
    far = 4.0 * np.sin(z.imag) * np.cos(z.imag) * np.exp(-2.0 * np.where(is_far, length, 22.0))
    real = slope * np.sqrt(1.0 + sine * sine) * sine / scale
    return Parts(np.where(is_far, np.copysign(1.0, z.real), real), np.where(is_far, far, tangent / scale))


def _arctanh(z: Parts) -> Parts:
    """By the logarithm of ``|1 + z| / |1 - z|``, and the difference of the angles."""
    length = np.abs(z.real)
    square = z.imag * z.imag
    real = 0.25 * np.log1p(4.0 * length / ((length - 1.0) * (length - 1.0) + square))
    return Parts(np.copysign(real, z.real), 0.5 * np.arctan2(2.0 * z.imag, (1.0 - length) * (1.0 + length) - square))


def _root_products(a: Parts, b: Parts) -> tuple[Parts, Parts, Any, Any]:
    """Return the roots of both, the real part of their product, and the imaginary part of ``conj(a) b`` of the roots."""
    a, b = _sqrt(a), _sqrt(b)
    return a, b, a.real * b.real - a.imag * b.imag, a.real * b.imag - a.imag * b.real


def _arcsin(z: Parts) -> Parts:
    """Kahan's algorithm (1987), `CASIN`."""
    _, _, product, cross = _root_products(Parts(1.0 - z.real, -z.imag), Parts(1.0 + z.real, z.imag))
    return Parts(np.arctan2(z.real, product), np.arcsinh(cross))


def _arccos(z: Parts) -> Parts:
    """Kahan's algorithm (1987), `CACOS`."""
    a, b, _, cross = _root_products(Parts(1.0 - z.real, -z.imag), Parts(1.0 + z.real, z.imag))
    return Parts(2.0 * np.arctan2(a.real, b.real), -np.arcsinh(cross))


def _arccosh(z: Parts) -> Parts:
    """Kahan's algorithm (1987), `CACOSH`."""
    a, b = _sqrt(Parts(z.real - 1.0, z.imag)), _sqrt(Parts(z.real + 1.0, z.imag))
    return Parts(np.arcsinh(a.real * b.real + a.imag * b.imag), 2.0 * np.arctan2(a.imag, b.real))


def _along_imaginary_axis(function: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """Return ``-i f(i z)``: the trigonometric function of a hyperbolic one, and vice versa."""

    def rotated(z: Parts) -> Parts:
        value = function(Parts(-z.imag, z.real))
        return Parts(value.imag, -value.real)

    return rotated


def _sign(z: Parts) -> Parts:
    """``z / |z|``, and 0 at 0."""
    length = np.hypot(z.real, z.imag)
    length = np.where(length == 0.0, 1.0, length)
    return Parts(z.real / length, z.imag / length)


def _power(z: object, exponent: Any, **options: object) -> Any:
    """Powers with small integer exponents, by repeated squaring; others by the logarithm."""
    if options:
        return None
    if isinstance(exponent, (Value, Parts)) or np.ndim(exponent) or isinstance(exponent, complex) or not isinstance(z, Parts):
        return _elementwise(_power_by_logarithm)(z, exponent)
    count = int(exponent) if np.isfinite(exponent) else 0
    if count != exponent or not 0 < abs(count) < 100:
        return _elementwise(_power_by_logarithm)(z, exponent)
    result, factor, bits = None, z, abs(count)
    while bits:
        if bits & 1:
            result = factor if result is None else _multiply(result, factor)
        bits >>= 1
        factor = _multiply(factor, factor) if bits else factor
    assert result is not None
    return result if count > 0 else _divide(Parts(1.0, 0.0), result)


def _power_by_logarithm(z: Parts, exponent: Parts) -> Parts:
    """``exp(exponent * log(z))``; at 0 it is 0 if the exponent has a positive real part, else nan, where NumPy warns."""
    is_zero = np.logical_and(z.real == 0.0, z.imag == 0.0)
    is_one = np.logical_and(exponent.real == 0.0, exponent.imag == 0.0)
    safe = Parts(np.where(is_zero, 1.0, z.real), z.imag)
    value = _exp(_multiply(exponent, _log(safe)))
    is_undefined = np.logical_and(np.logical_and(is_zero, np.logical_not(is_one)), exponent.real <= 0.0)
    at_zero = np.abs(z.real) / np.where(is_undefined, np.abs(z.real), 1.0)  # 0 / 0, which sets the flag of NumPy's warning
    real, imag = (np.where(is_zero, at_zero, part) for part in value)
    return Parts(np.where(is_one, 1.0, real), np.where(is_one, 0.0, imag))


def _float_power(z: object, exponent: object) -> Any:
    """``np.float_power``, which computes in double precision."""
    double = np.dtype(np.float64)
    operands = [Parts(*[with_dtype(part, double) for part in z]) if isinstance(z, Parts) else z for z in (z, exponent)]
    return _power(*operands)


def _where(condition: Any, x: object, y: object) -> Any:
    if isinstance(condition, Parts):
        return None
    return _on_parts(lambda a, b: np.where(condition, a, b))(x, y)


def _copy(z: object, order: str = "C") -> Any:
    return _on_parts(lambda part: part)(z)


def _astype(z: object, dtype: DTypeLike, **options: object) -> Any:
    if np.dtype(dtype).kind != "c" or not {"order", "casting", "copy"}.issuperset(options):
        return None
    return _on_parts(lambda part: part)(z)


def _angle(z: Parts, deg: bool = False) -> Any:
    angle = np.arctan2(z.imag, z.real)
    return angle * (180 / np.pi) if deg else angle


# --------------------------------------------------------------------------------------------- linear functions


def _linear(function: Callable[..., Any]) -> Expansion:
    """Return the expansion of a function that moves or adds elements of its first operand: it is applied to each part."""

    def expand(z: object, *others: object, **options: object) -> Any:
        if not isinstance(z, Parts) or any(isinstance(other, Parts) for other in others) or options.get("dtype") is not None:
            return None
        return Parts(*[bind(function, (part, *others), options) for part in z])

    return expand


def _linear_in_all(function: Callable[..., Any]) -> Expansion:
    """Return the expansion of a function that moves elements of all operands: it is applied to each part."""

    def expand(*operands: Any, **options: object) -> Any:
        if options.get("dtype") is not None:
            return None
        parts = [z if isinstance(z, Parts) else Parts(z, np.zeros(np.shape(z))) for z in operands]
        return Parts(*[bind(function, part, options) for part in zip(*parts, strict=True)])

    return expand


def _scatter(function: Callable[..., Any]) -> Expansion:
    """Return the expansion of `scatter`: its first operand, and the values before each group of indices, have parts."""

    def expand(*operands: Any, index_counts: tuple[int, ...]) -> Any:
        values, position = [0], 1
        for count in index_counts:
            values.append(position)
            position += 1 + count
        parts = [
            z if isinstance(z, Parts) else Parts(z, np.zeros(np.shape(z)) if k in values else z) for k, z in enumerate(operands)
        ]
        return Parts(*[bind(function, part, {"index_counts": index_counts}) for part in zip(*parts, strict=True)])

    return expand


def _bilinear(function: Callable[..., Any]) -> Expansion:
    """Return the expansion of a product of two operands."""

    def expand(*operands: Any, **options: object) -> Any:
        if len(operands) != 2 or options.get("dtype") is not None:
            return None
        a, b = operands

        def product(x: object, y: object) -> Any:
            return bind(function, (x, y), options)

        if not isinstance(a, Parts):
            return Parts(product(a, b.real), product(a, b.imag))
        if not isinstance(b, Parts):
            return Parts(product(a.real, b), product(a.imag, b))
        return Parts(product(a.real, b.real) - product(a.imag, b.imag), product(a.real, b.imag) + product(a.imag, b.real))

    return expand


def _variance(function: Callable[..., Any]) -> Expansion:
    """Return the expansion of the variance, the sum of the variances of the parts, or of its root."""

    def expand(z: object, **options: Any) -> Any:
        if not isinstance(z, Parts) or options.get("dtype") is not None:
            return None
        total = bind(numpy.var, (z.real,), options) + bind(numpy.var, (z.imag,), options)
        return total if function is numpy.var else np.sqrt(total)

    return expand


def _norm(z: object, ord: object = None, **options: Any) -> Any:
    """The Euclidean norm of both parts, and other norms of vectors by the lengths of the elements."""
    if not isinstance(z, Parts) or not {"axis", "keepdims"}.issuperset(options):
        return None
    axis = options.get("axis")
    is_vector = isinstance(axis, int) or (axis is None and np.ndim(z.real) == 1)
    if ord is None or ord == "fro" or (ord == 2 and is_vector):
        return np.sqrt(np.sum(z.real * z.real + z.imag * z.imag, **options))
    return bind(np.linalg.norm, (np.hypot(z.real, z.imag),), {"ord": ord, **options}) if is_vector else None


def _vdot(a: object, b: object) -> Any:
    conjugated = Parts(a.real, -a.imag) if isinstance(a, Parts) else a
    return _bilinear(numpy.vdot)(conjugated, b)


def _like(real: float) -> Expansion:
    """Return the expansion of an array of zeros or ones."""

    def expand(z: object, **options: Any) -> Any:
        dtype = np.dtype(options.get("dtype") or complex)
        return Parts(real, 0.0) if dtype.kind == "c" else real

    return expand


def _full_like(z: object, value: object, **options: Any) -> Any:
    if np.dtype(options.get("dtype") or complex).kind != "c":
        return None if isinstance(value, Parts) else value
    return value if isinstance(value, Parts) else Parts(value, 0.0)


def expansion_of(function: Callable[..., Any]) -> Expansion | None:
    """Return the expansion of a function, or None."""
    expand = EXPANSIONS.get(function)
    if expand is not None:
        return expand
    if isinstance(function, ops.Packed):
        return _linear_in_all(function) if function.function in (numpy.concatenate, numpy.stack) else None
    name = getattr(function, "__name__", "")
    if name in NAMED_EXPANSIONS and ops.function_by_opname(name) is function:
        return NAMED_EXPANSIONS[name](function)
    return None


numpy = ops.NUMPY
_MOVING_FUNCTIONS = (
    *[spec.function for spec in ops.OPERATIONS if spec.moves_elements and spec.policy == "rule"],
    *[numpy.diag, ops.function_by_opname("pad"), ops.function_by_opname("added_at")],
)
_ADDING_FUNCTIONS = (numpy.sum, np.add.reduce, numpy.mean, numpy.cumsum, numpy.trace, numpy.diff)
_PRODUCTS = (
    np.matmul, ops.stacked_matmul, numpy.dot, numpy.outer, numpy.inner, numpy.tensordot, ops.einsum,
    ops.ufunc_method(np.multiply, "outer"),
)  # fmt: skip
EXPANSIONS: dict[Any, Expansion] = {
    np.add: _on_parts(lambda a, b: a + b),
    np.subtract: _on_parts(lambda a, b: a - b),
    np.negative: _on_parts(lambda a: -a),
    np.positive: _on_parts(lambda a: a),
    np.conjugate: _elementwise(lambda z: Parts(z.real, -z.imag)),
    np.multiply: _elementwise(_multiply),
    np.square: _elementwise(lambda z: _multiply(z, z)),
    np.divide: _elementwise(_divide),
    np.reciprocal: _elementwise(lambda z: _divide(Parts(1.0, 0.0), z)),
    np.absolute: _elementwise(lambda z: np.hypot(z.real, z.imag)),
    np.exp: _elementwise(_exp),
    np.log: _elementwise(_log),
    np.sqrt: _elementwise(_sqrt),
    np.sin: _elementwise(lambda z: Parts(np.sin(z.real) * np.cosh(z.imag), np.cos(z.real) * np.sinh(z.imag))),
    np.cos: _elementwise(lambda z: Parts(np.cos(z.real) * np.cosh(z.imag), -(np.sin(z.real) * np.sinh(z.imag)))),
    np.sinh: _elementwise(lambda z: Parts(np.sinh(z.real) * np.cos(z.imag), np.cosh(z.real) * np.sin(z.imag))),
    np.cosh: _elementwise(lambda z: Parts(np.cosh(z.real) * np.cos(z.imag), np.sinh(z.real) * np.sin(z.imag))),
    np.equal: _test(np.equal, np.logical_and),
    np.not_equal: _test(np.not_equal, np.logical_or),
    np.isfinite: _test(np.isfinite, np.logical_and),
    np.isnan: _test(np.isnan, np.logical_or),
    np.isinf: _test(np.isinf, np.logical_or),
    np.power: _power,
    ops.power: _power,
    np.float_power: _float_power,
    np.log10: _elementwise(_scale(_log, math.log10(math.e))),
    np.log2: _elementwise(_scale(_log, math.log2(math.e))),
    np.exp2: _elementwise(lambda z: _exp(Parts(z.real * math.log(2), z.imag * math.log(2)))),
    np.log1p: _elementwise(_log1p),
    np.expm1: _elementwise(_expm1),
    np.tanh: _elementwise(_tanh),
    np.tan: _elementwise(_along_imaginary_axis(_tanh)),
    np.arctanh: _elementwise(_arctanh),
    np.arctan: _elementwise(_along_imaginary_axis(_arctanh)),
    np.arcsin: _elementwise(_arcsin),
    np.arcsinh: _elementwise(_along_imaginary_axis(_arcsin)),
    np.arccos: _elementwise(_arccos),
    np.arccosh: _elementwise(_arccosh),
    ops.complex_sign: _elementwise(_sign),
    numpy.where: _where,
    ops.astype: _astype,
    numpy.angle: _angle,
    **dict.fromkeys((ops.copy, numpy.copy, ops.input_of, ops.copy_with_layout, ops.stop_gradient), _copy),
    **{function: _linear(function) for function in (*_MOVING_FUNCTIONS, *_ADDING_FUNCTIONS)},
    **{function: _bilinear(function) for function in _PRODUCTS},
    numpy.vdot: _vdot,
    numpy.var: _variance(numpy.var),
    numpy.std: _variance(numpy.std),
    np.linalg.norm: _norm,
    **{spec.function: _like(float(spec.fill == 1)) for spec in ops.OPERATIONS if spec.fill is not None},
    numpy.full_like: _full_like,
}
# Functions whose formulas may overflow, or differ from NumPy's for infinities and nan. The largest real and imaginary part
# for which they are compiled, in units of the logarithm of the largest number; None for a hundredth of the root of that number.
_EXPONENTIAL, _CIRCULAR, _ALGEBRAIC = (0.98, None), (None, 0.98), (None, None)
LIMITS: dict[Any, tuple[float | None, float | None]] = {
    **dict.fromkeys((np.exp, np.exp2, np.expm1, np.sinh, np.cosh), _EXPONENTIAL),
    **dict.fromkeys((np.sin, np.cos), _CIRCULAR),
    **dict.fromkeys((np.log, np.log2, np.log10, np.log1p, np.sqrt, np.tan, np.tanh, np.arcsin, np.arccos, np.arctan), _ALGEBRAIC),
    **dict.fromkeys((np.arcsinh, np.arccosh, np.arctanh, np.power, ops.power, np.float_power, ops.complex_sign), _ALGEBRAIC),
}
NAMED_EXPANSIONS: dict[str, Callable[[Any], Expansion]] = {"scatter": _scatter, "over": _linear}
