"""Lowering of functions of SciPy: logsumexp, softmax, log_softmax, entropies, beta functions, and zeta of order 2.

The steps of sums of exponentials are those of SciPy, in the same order. Where SciPy suppresses warnings (sums of no terms,
infinite terms), no step sets a flag of the processor, because NumPy would then repeat the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.special

from ....values import Value
from ..buffer_ir import BufferView, dense_view
from .lowering_state import EMPTY, EXACT_BITS, UNSUPPORTED, LoweringState, operands_and_options
from .reductions import append_reduction, drop_reduced_axes, reduced_axes

_BOOL = np.dtype(bool)


def _sum_operands(state: LoweringState, item: Value, args: Sequence[Any]) -> tuple[list[BufferView], str]:
    """Return the operands in the dtype and the shape of the sum; or none, and the reason."""
    views, dtype = [state.view(a) for a in args], np.asarray(item.raw_value).dtype
    operands = [view for view in views if view is not None]
    if len(operands) < len(views) or dtype.kind != "f":
        return [], UNSUPPORTED
    if state.is_exact:
        return [], EXACT_BITS
    shape = np.broadcast_shapes(*[view.shape for view in operands])
    if 0 in shape or not shape:
        return [], EMPTY
    operands = [view if view.buffer.dtype == dtype else state.copy_of(view, dtype) for view in operands]
    return [view.broadcast(shape) for view in operands], ""


def _reduce(state: LoweringState, operation: str, operand: BufferView, axes: frozenset[int]) -> BufferView:
    """Return a reduction, with strides of 0 along the axes; along axes of length 1 it is the operand."""
    if all(operand.shape[k] == 1 for k in axes):
        return operand
    return append_reduction(state, operation, operand, axes)


def _logsumexp(state: LoweringState, item: Value) -> str:
    """Lower ``log1p(s / m) + log(m) + maximum``: `m` is the weight of the greatest terms, `s` the sum of the others."""
    args, options = operands_and_options(item)
    weight = options.pop("b", None)
    if len(args) > 1 or options.pop("return_sign", False) or not {"axis", "keepdims"}.issuperset(options):
        return UNSUPPORTED
    operands, reason = _sum_operands(state, item, args if weight is None else (*args, weight))
    if reason:
        return reason
    axes = reduced_axes(item, len(operands[0].shape))
    if len(operands) == 2:
        return _weighted_logsumexp(state, item, operands, axes)
    (x,) = operands
    maximum = _reduce(state, "maximum", x, axes)
    is_greatest = state.map_like("equal", x, maximum, like=x, dtype=_BOOL)
    m = _reduce(state, "add", state.map_like("where", is_greatest, 1.0, 0.0, like=x), axes)
    s = _reduce(state, "add", _scaled_exponentials(state, x, is_greatest, maximum), axes)
    maximum, m, s = (drop_reduced_axes(view, axes, item) for view in (maximum, m, s))
    m = state.map_like("maximum", m, 1.0, like=m)  # 0 if the maximum is nan
    state.append_map(
        "add", (_log_of_terms(state, m, state.map_like("divide", s, m, like=m)), maximum), state.allocate_result(item)
    )
    return ""


def _scaled_exponentials(state: LoweringState, x: BufferView, is_greatest: BufferView, maximum: BufferView) -> BufferView:
    """Return ``exp(x - maximum)``, 0 for the greatest elements. Nothing is subtracted from ``-inf``."""
    shift = state.map_like("where", state.map_like("equal", maximum, -np.inf, like=x, dtype=_BOOL), 0.0, maximum, like=x)
    others = state.map_like("where", is_greatest, -np.inf, x, like=x)
    return state.map_like("exp", state.map_like("subtract", others, shift, like=x), like=x)


def _log_of_terms(state: LoweringState, m: BufferView, ratio: BufferView) -> BufferView:
    """Return ``log1p(ratio) + log(m)``."""
    return state.map_like("add", state.map_like("log1p", ratio, like=ratio), state.map_like("log", m, like=ratio), like=ratio)


def _weighted_logsumexp(state: LoweringState, item: Value, operands: list[BufferView], axes: frozenset[int]) -> str:
    """Lower a sum with weights. Without a finite result, it is the logarithm of the unscaled sum, as in SciPy."""
    x, b = operands
    is_unweighted = state.map_like("equal", b, 0.0, like=x, dtype=_BOOL)
    weighted = state.map_like("where", is_unweighted, -np.inf, x, like=x)
    maximum = _reduce(state, "maximum", weighted, axes)
    is_greatest = state.map_like("equal", weighted, maximum, like=x, dtype=_BOOL)
    m = _reduce(state, "add", state.map_like("where", is_greatest, b, 0.0, like=x), axes)
    exponentials = _scaled_exponentials(state, weighted, is_greatest, maximum)
    others = state.map_like("multiply", state.map_like("where", is_greatest, 0.0, b, like=x), exponentials, like=x)
    s = _reduce(state, "add", others, axes)
    unscaled = _reduce(state, "add", _unscaled_terms(state, x, b, is_unweighted), axes)
    maximum, m, s, unscaled = (drop_reduced_axes(view, axes, item) for view in (maximum, m, s, unscaled))
    is_canceled = state.map_like("equal", m, 0.0, like=m, dtype=_BOOL)
    m = state.map_like("where", is_canceled, 1.0, m, like=m)
    ratio = state.map_like("divide", s, m, like=m)
    rest = state.map_like("subtract", state.map_like("negative", ratio, like=m), 2.0, like=m)
    is_below = state.map_like("less", ratio, -1.0, like=m, dtype=_BOOL)
    logarithm = _log_of_terms(
        state, state.map_like("absolute", m, like=m), state.map_like("where", is_below, rest, ratio, like=m)
    )
    sign = state.map_like("multiply", state.map_like("add", ratio, 1.0, like=m), state.map_like("sign", m, like=m), like=m)
    logarithm = state.map_like("add", logarithm, maximum, like=m)
    for condition in (is_canceled, state.map_like("less", sign, 0.0, like=m, dtype=_BOOL)):
        logarithm = state.map_like("where", condition, np.nan, logarithm, like=m)
    is_finite = state.map_like("isfinite", logarithm, like=m, dtype=_BOOL)
    state.append_map("where", (is_finite, logarithm, _log_or_nan(state, unscaled)), state.allocate_result(item))
    return ""


def _unscaled_terms(state: LoweringState, x: BufferView, b: BufferView, is_unweighted: BufferView) -> BufferView:
    """Return ``b * exp(x)``. Overflow is silent, as is the nan of a term that overflows and has no weight."""
    is_large = state.map_like("greater", x, float(np.log(np.finfo(x.buffer.dtype).max)), like=x, dtype=_BOOL)
    exponentials = state.map_like("exp", state.map_like("where", is_large, np.inf, x, like=x), like=x)
    is_indefinite = state.map_like("logical_and", is_large, is_unweighted, like=is_large)
    exponentials = state.map_like("where", is_indefinite, np.nan, exponentials, like=x)
    return state.map_like("multiply", b, exponentials, like=x)


def _log_or_nan(state: LoweringState, x: BufferView) -> BufferView:
    """Return ``log(x)``, silently ``-inf`` of 0 and nan of negative numbers."""
    is_nan = state.map_like("isnan", x, like=x, dtype=_BOOL)
    x = state.map_like("where", is_nan, -1.0, x, like=x)  # a comparison with nan sets a flag
    is_positive = state.map_like("greater", x, 0.0, like=x, dtype=_BOOL)
    is_zero = state.map_like("equal", x, 0.0, like=x, dtype=_BOOL)
    logarithm = state.map_like("log", state.map_like("where", is_positive, x, 1.0, like=x), like=x)
    otherwise = state.map_like("where", is_zero, -np.inf, np.nan, like=x)
    return state.map_like("where", is_positive, logarithm, otherwise, like=x)


def _softmax(state: LoweringState, item: Value) -> str:
    """Lower ``exp(x - maximum) / sum(exp(x - maximum))``."""
    operands, reason = _sum_operands(state, item, item.args)
    if reason or len(item.args) > 1 or not {"axis"}.issuperset(item.options):
        return reason or UNSUPPORTED
    (x,) = operands
    axes = reduced_axes(item, len(x.shape))
    exponentials = state.map_like("subtract", x, _reduce(state, "maximum", x, axes), like=x)
    exponentials = state.map_like("exp", exponentials, like=x)
    state.append_map("divide", (exponentials, _reduce(state, "add", exponentials, axes)), state.allocate_result(item))
    return ""


def _log_softmax(state: LoweringState, item: Value) -> str:
    """Lower ``x - maximum - log(sum(exp(x - maximum)))``, with 0 for a maximum that is not finite."""
    operands, reason = _sum_operands(state, item, item.args)
    if reason or len(item.args) > 1 or not {"axis"}.issuperset(item.options):
        return reason or UNSUPPORTED
    (x,) = operands
    axes = reduced_axes(item, len(x.shape))
    maximum = _reduce(state, "maximum", x, axes)
    is_finite = state.map_like("isfinite", maximum, like=x, dtype=_BOOL)
    shifted = state.map_like("subtract", x, state.map_like("where", is_finite, maximum, 0.0, like=x), like=x)
    total = _reduce(state, "add", state.map_like("exp", shifted, like=x), axes)
    state.append_map("subtract", (shifted, state.map_like("log", total, like=x)), state.allocate_result(item))
    return ""


# --------------------------------------------------------------------------------------------- elementwise


def _product_with_logarithm(name: str) -> Callable[[LoweringState, Any], str]:
    """Return the lowering of ``x * log(y)`` or ``x * log1p(y)``, 0 where `x` is 0 unless `y` is nan."""

    def lower(state: LoweringState, item: Value) -> str:
        x, y = map(state.operand, item.args)
        dtype = np.asarray(item.raw_value).dtype
        if x is None or y is None or item.options or dtype.kind != "f" or state.is_exact:
            return EXACT_BITS if state.is_exact else UNSUPPORTED
        out = state.allocate_result(item)
        is_zero = state.map_like("equal", x, 0, like=out, dtype=np.dtype(bool))
        is_nan = state.map_like("isnan", y, like=out, dtype=np.dtype(bool))
        safe_y = state.map_like("where", is_zero, state.map_like("where", is_nan, y, 1, like=out), y, like=out)
        state.append_map("multiply", (x, state.map_like(name, safe_y, like=out)), out)
        return ""

    return lower


def _hurwitz_zeta(state: LoweringState, item: Value) -> str:
    """Lower ``zeta(2, x)``, the trigamma function, which is the derivative of psi."""
    order, x = map(state.operand, item.args)
    dtype = np.asarray(item.raw_value).dtype
    if not isinstance(x, BufferView) or item.options or dtype.kind != "f":
        return UNSUPPORTED
    if isinstance(order, BufferView) or order != 2:
        return "zeta is compiled only of order 2"
    if state.is_exact:
        return EXACT_BITS
    state.append_map("trigamma", (x,), state.allocate_result(item))
    return ""


ViewOrNumber: TypeAlias = BufferView | np.generic | float


class _Doubles:
    """Elementwise operations in double precision, of one shape."""

    def __init__(self, state: LoweringState, shape: tuple[int, ...]) -> None:
        self._state, self._like = state, dense_view(np.float64, shape)

    def __call__(self, name: str, *operands: ViewOrNumber) -> BufferView:
        """Append an operation; comparisons and operations on booleans return booleans."""
        if name in ("less", "less_equal", "equal", "isnan"):
            return self._state.map_like(name, *operands, like=self._like, dtype=_BOOL)
        if name.startswith("logical_"):
            assert isinstance(operands[0], BufferView)
            return self._state.map_like(name, *operands, like=operands[0])
        return self._state.map_like(name, *operands, like=self._like)

    def require(self, condition: BufferView) -> None:
        """Append a check; NumPy computes the program where it fails."""
        self._state.append_map("require", (condition,), dense_view(bool, condition.shape))


def _in_doubles(compute: Callable[[_Doubles, ViewOrNumber, ViewOrNumber], BufferView]) -> Callable[[LoweringState, Any], str]:
    """Return the lowering of a function of two operands that is computed in double precision."""

    def lower(state: LoweringState, item: Value) -> str:
        x, y = map(state.operand, item.args)
        if x is None or y is None or item.options or np.asarray(item.raw_value).dtype.kind != "f":
            return UNSUPPORTED
        if state.is_exact:
            return EXACT_BITS
        out = state.allocate_result(item)
        state.append_map("copy", (compute(_Doubles(state, out.shape), x, y),), out, np.dtype(np.float64))
        return ""

    return lower


def _relative_entropy(f: _Doubles, x: ViewOrNumber, y: ViewOrNumber) -> BufferView:
    """``x log(x / y)``, by ``log1p`` near 1 and by two logarithms if the quotient is out of range."""
    is_positive, x_positive, y_positive, ratio = _positive_ratio(f, x, y)
    is_near = f("logical_and", f("less", 0.5, ratio), f("less", ratio, 2.0))
    excess = f("divide", f("subtract", f("where", is_near, x_positive, y_positive), y_positive), y_positive)
    is_normal = f("logical_and", f("less", np.finfo(np.float64).tiny, ratio), f("less", ratio, np.inf))
    logarithms = [f("log", f("where", is_normal, 1.0, part)) for part in (x_positive, y_positive)]
    logarithm = f("where", is_normal, f("log", f("where", is_normal, ratio, 1.0)), f("subtract", *logarithms))
    value = f("multiply", x_positive, f("where", is_near, f("log1p", excess), logarithm))
    return _or_limit(f, x, y, is_positive, value, 0.0)


def _kl_divergence(f: _Doubles, x: ViewOrNumber, y: ViewOrNumber) -> BufferView:
    """``x log(x / y) - x + y``."""
    is_positive, x_positive, y_positive, ratio = _positive_ratio(f, x, y)
    product = f("multiply", x_positive, f("log", ratio))
    value = f("add", f("subtract", product, x_positive), y_positive)
    return _or_limit(f, x, y, is_positive, value, y)


def _positive_ratio(f: _Doubles, x: ViewOrNumber, y: ViewOrNumber) -> tuple[BufferView, BufferView, BufferView, BufferView]:
    """Return a mask of positive operands, both operands with 1 where it is False, and their quotient."""
    is_positive = f("logical_and", f("less", 0.0, x), f("less", 0.0, y))
    x, y = f("where", is_positive, x, 1.0), f("where", is_positive, y, 1.0)
    return is_positive, x, y, f("divide", x, y)


def _or_limit(
    f: _Doubles, x: ViewOrNumber, y: ViewOrNumber, is_positive: BufferView, value: BufferView, at_zero: ViewOrNumber
) -> BufferView:
    """Return a value where both operands are positive, otherwise `at_zero` where `x` is 0, else infinity or nan."""
    is_zero = f("logical_and", f("equal", x, 0.0), f("less_equal", 0.0, y))
    value = f("where", is_positive, value, f("where", is_zero, at_zero, np.inf))
    return f("where", f("logical_or", f("isnan", x), f("isnan", y)), np.nan, value)


# log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2 as a polynomial of 1 / x**2, divided by x, for x >= 10 (DLMF 5.11.1)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_LARGE = 10.0
_LEAST, _GREATEST = 1e-290, 1e290  # operands of compiled beta functions
_LARGEST_SUM = 170.0  # whose gamma function is finite


def _stirling_rest(f: _Doubles, x: BufferView) -> BufferView:
    inverse = f("divide", 1.0, x)
    square, value = f("multiply", inverse, inverse), f("copy", _STIRLING[-1])
    for coefficient in _STIRLING[-2::-1]:
        value = f("add", f("multiply", value, square), coefficient)
    return f("multiply", value, inverse)


def _log_beta(f: _Doubles, a: ViewOrNumber, b: ViewOrNumber) -> BufferView:
    """The logarithm of the beta function of positive operands (DiDonato and Morris 1992, Algorithm 708: `betaln`)."""
    small, large, total = _ordered_operands(f, a, b)
    is_large = f("less_equal", _LARGE, large)
    p, q, p_plus_q = (f("where", is_large, safe, x) for safe, x in ((1.0, small), (1.0, large), (2.0, total)))
    product = f("log", f("multiply", f("gamma", p), f("divide", f("gamma", q), f("gamma", p_plus_q))))
    p, q, p_plus_q = (f("where", is_large, x, safe) for safe, x in ((1.0, small), (_LARGE, large), (_LARGE + 1, total)))
    return f("where", is_large, _log_beta_of_large(f, p, q, p_plus_q), product)


def _log_beta_of_large(f: _Doubles, small: BufferView, large: BufferView, total: BufferView) -> BufferView:
    """The logarithm of the beta function if the larger operand is at least `_LARGE`."""
    are_large = f("less_equal", _LARGE, small)
    p, moderate = f("where", are_large, small, _LARGE), f("where", are_large, 1.0, small)
    rest = f("subtract", _stirling_rest(f, large), _stirling_rest(f, total))
    tail = f("log1p", f("negative", f("divide", small, total)))
    mixed = f("subtract", moderate, f("multiply", moderate, f("log", total)))
    mixed = f("add", f("add", f("gammaln", moderate), mixed), f("multiply", f("subtract", large, 0.5), tail))
    far = f("add", f("multiply", -0.5, f("log", large)), 0.5 * math.log(2 * math.pi))
    far = f("add", f("add", far, _stirling_rest(f, p)), f("multiply", large, tail))
    far = f("add", far, f("multiply", f("subtract", p, 0.5), f("log", f("divide", small, total))))
    return f("add", f("where", are_large, far, mixed), rest)


def _ordered_operands(f: _Doubles, a: ViewOrNumber, b: ViewOrNumber) -> tuple[BufferView, BufferView, BufferView]:
    """Return the smaller and the larger operand, and their sum; require that the gamma functions are defined and in range."""
    small, large = f("minimum", a, b), f("maximum", a, b)
    f.require(f("logical_and", f("less_equal", _LEAST, small), f("less_equal", large, _GREATEST)))
    return small, large, f("add", small, large)


def _beta(f: _Doubles, a: ViewOrNumber, b: ViewOrNumber) -> BufferView:
    """A product of gamma functions, or the exponential of the logarithm where one of them is out of range."""
    small, large, total = _ordered_operands(f, a, b)
    is_moderate = f("less_equal", total, _LARGEST_SUM)
    p, q, p_plus_q = (f("where", is_moderate, x, 1.0) for x in (small, large, total))
    product = f("multiply", f("gamma", p), f("divide", f("gamma", q), f("gamma", p_plus_q)))
    p, q, p_plus_q = (f("where", is_moderate, safe, x) for safe, x in ((1.0, small), (_LARGE, large), (_LARGE + 1, total)))
    return f("where", is_moderate, product, f("exp", _log_beta_of_large(f, p, q, p_plus_q)))


LOWERINGS: dict[Any, Any] = {
    scipy.special.logsumexp: _logsumexp,
    scipy.special.softmax: _softmax,
    scipy.special.log_softmax: _log_softmax,
    scipy.special.xlogy: _product_with_logarithm("log"),
    scipy.special.xlog1py: _product_with_logarithm("log1p"),
    scipy.special._ufuncs._zeta: _hurwitz_zeta,
    scipy.special.rel_entr: _in_doubles(_relative_entropy),
    scipy.special.kl_div: _in_doubles(_kl_divergence),
    scipy.special.betaln: _in_doubles(_log_beta),
    scipy.special.beta: _in_doubles(_beta),
}
NODE_KEYWORDS = frozenset({"b"})
KEYWORD_LOWERINGS: dict[Any, Any] = {scipy.special.logsumexp: _logsumexp}
