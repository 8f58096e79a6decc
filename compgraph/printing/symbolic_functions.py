"""The functions of SymPy that elementwise operations are, by opname.

Each holds wherever both sides are defined. Booleans are the numbers 0 and 1: ``Piecewise((1, x > 0), (0, True))``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

from .symbolic_arrays import Choice, protected

E = Any  # an expression of SymPy's, which has no types


def condition(x: E) -> Any:
    """A number as a condition."""
    if isinstance(x, (sp.Piecewise, Choice)) and len(x.args) == 2 and (x.args[0].expr, x.args[1].expr) == (1, 0):
        return x.args[0].cond
    return sp.Ne(protected(x), 0)


def truth(holds: Any) -> E:
    """A condition as a number."""
    return sp.Piecewise((1, protected(sp.sympify(holds))), (0, True))


def choice(holds: E, x: E, y: E) -> E:
    """One value or another, as `np.where`."""
    return sp.Piecewise((x, protected(condition(holds))), (y, True))


def _comparison(relation: Any) -> Callable[[E, E], E]:
    return lambda x, y: truth(relation(protected(x), protected(y)))


def _connective(connective: Any) -> Callable[..., E]:
    return lambda *args: truth(connective(*map(condition, args)))


def _unguarded(x: E, zero: E | None = None) -> E:
    """The operand of a logarithm or power, without the 1 that rules put in its place where `zero`, or it itself, is 0.

    There the other side is not defined.
    """
    if not isinstance(x, (sp.Piecewise, Choice)) or len(x.args) != 2 or x.args[0].expr != 1:
        return x
    other, asked = x.args[1].expr, x.args[0].cond
    zero = other if zero is None else zero
    return other if sp.Eq(zero, 0) in (asked, *(asked.args if isinstance(asked, sp.And) else ())) else x


def _truncated(x: E) -> E:
    return sp.sign(x) * sp.floor(sp.Abs(x))


def _clip(x: E, low: E | None = None, high: E | None = None) -> E:
    x = x if low is None else sp.Max(x, low)
    return x if high is None else sp.Min(x, high)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "over": lambda x, y: x / y,
    "neg": lambda x: -x,
    "pow": lambda x, y: x ** _unguarded(y, x),
    "float_power": lambda x, y: x ** _unguarded(y, x),
    "square": lambda x: x**2,
    "reciprocal": lambda x: 1 / x,
    "sqrt": sp.sqrt,
    "cbrt": lambda x: sp.sign(x) * sp.cbrt(sp.Abs(x)),
    "hypot": lambda x, y: sp.sqrt(x**2 + y**2),
    "exp": sp.exp,
    "exp2": lambda x: sp.Integer(2) ** x,
    "expm1": lambda x: sp.exp(x) - 1,
    "log": lambda x: sp.log(_unguarded(x)),
    "log2": lambda x: sp.log(x) / sp.log(2),
    "log10": lambda x: sp.log(x) / sp.log(10),
    "log1p": lambda x: sp.log(1 + x),
    "logaddexp": lambda x, y: sp.log(sp.exp(x) + sp.exp(y)),
    "logaddexp2": lambda x, y: sp.log(2**x + 2**y) / sp.log(2),
    "sin": sp.sin,
    "cos": sp.cos,
    "tan": sp.tan,
    "arcsin": sp.asin,
    "arccos": sp.acos,
    "arctan": sp.atan,
    "arctan2": sp.atan2,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "tanh": sp.tanh,
    "arcsinh": sp.asinh,
    "arccosh": sp.acosh,
    "arctanh": sp.atanh,
    **dict.fromkeys(("deg2rad", "radians"), lambda x: x * sp.pi / 180),
    **dict.fromkeys(("rad2deg", "degrees"), lambda x: x * 180 / sp.pi),
    **dict.fromkeys(("abs", "fabs"), sp.Abs),
    "sign": sp.sign,
    "copysign": lambda x, y: sp.Abs(x) * sp.Piecewise((-1, protected(y) < 0), (1, True)),
    "heaviside": lambda x, middle: sp.Piecewise((0, protected(x) < 0), (middle, sp.Eq(protected(x), 0)), (1, True)),
    **dict.fromkeys(("maximum", "fmax"), sp.Max),
    **dict.fromkeys(("minimum", "fmin"), sp.Min),
    "clip": _clip,
    "remainder": sp.Mod,
    "fmod": lambda x, y: sp.sign(x) * sp.Mod(sp.Abs(x), sp.Abs(y)),
    "floor_divide": lambda x, y: sp.floor(x / y),
    "divmod_0": lambda x, y: sp.floor(x / y),
    "divmod_1": sp.Mod,
    "floor": sp.floor,
    "ceil": sp.ceiling,
    "trunc": _truncated,
    "conj": sp.conjugate,
    "real": sp.re,
    "imag": sp.im,
    "greater": _comparison(sp.Gt),
    "greater_equal": _comparison(sp.Ge),
    "less": _comparison(sp.Lt),
    "less_equal": _comparison(sp.Le),
    "equal": _comparison(sp.Eq),
    "not_equal": _comparison(sp.Ne),
    "logical_and": _connective(sp.And),
    "logical_or": _connective(sp.Or),
    "logical_xor": _connective(sp.Xor),
    "logical_not": _connective(sp.Not),
    "where": choice,
    "relu": lambda x: sp.Max(x, 0),
    **dict.fromkeys(("sigmoid", "special_expit"), lambda x: 1 / (1 + sp.exp(-x))),
    "softplus": lambda x: sp.log(1 + sp.exp(x)),
    "special_log_expit": lambda x: -sp.log(1 + sp.exp(-x)),
    "special_logit": lambda x: sp.log(x / (1 - x)),
    "special_exp10": lambda x: sp.Integer(10) ** x,
    "special_exp2": lambda x: sp.Integer(2) ** x,
    "special_expm1": lambda x: sp.exp(x) - 1,
    "special_log1p": lambda x: sp.log(1 + x),
    "special_cbrt": lambda x: sp.sign(x) * sp.cbrt(sp.Abs(x)),
    "special_erf": sp.erf,
    "special_erfc": sp.erfc,
    "special_erfi": sp.erfi,
    "special_erfinv": sp.erfinv,
    "special_erfcinv": sp.erfcinv,
    "special_ndtr": lambda x: (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "special_gamma": sp.gamma,
    "special_rgamma": lambda x: 1 / sp.gamma(x),
    "special_gammaln": lambda x: sp.log(sp.Abs(sp.gamma(x))),
    **dict.fromkeys(("special_psi", "special_digamma"), sp.digamma),
    "special_beta": lambda x, y: sp.gamma(x) * sp.gamma(y) / sp.gamma(x + y),
    "special_ellipk": sp.elliptic_k,
    "special_ellipe": sp.elliptic_e,
    "special_jv": sp.besselj,
    "special_yv": sp.bessely,
    "special_iv": sp.besseli,
    "special_kv": sp.besselk,
    **{f"special_{name}{order}": lambda x, f=function, n=order: f(n, x)
       for name, function in (("j", sp.besselj), ("y", sp.bessely), ("i", sp.besseli), ("k", sp.besselk)) for order in (0, 1)},
}  # fmt: skip
OF_BOOLEANS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not"}
