"""Vectorized mathematical functions, as LLVM IR.

Each is computed without branches on its usual range. C's library recomputes lanes with exceptional operands
(`call_libm_where`). Errors are at most 2.5 units in the last place (1 for float32, which is computed in double and rounded).
The processor's flags for division by zero, invalid operands and overflow are set exactly where NumPy's function warns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir_builder import DOUBLE, FLOAT, IRBuilder, Value
from . import single_precision
from .error_function import erf, erfc, erfcinv, erfinv, log_ndtr, ndtr, ndtri
from .exponentials import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from .gamma_functions import gamma, gammaln, psi, trigamma
from .logarithms import (
    arccosh,
    arcsinh,
    arctanh,
    entr,
    log,
    log1p,
    log2,
    log10,
    log_expit,
    logaddexp,
    logaddexp2,
    logit,
    softplus,
)
from .powers import cbrt, hypot, power
from .trigonometry import arccos, arcsin, arctan, arctan2, cos, sin, tan

_INTRINSIC = {"sqrt": "sqrt", "absolute": "fabs", "floor": "floor", "ceil": "ceil", "rint": "rint", "trunc": "trunc"}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    function.__name__: function
    for function in (
        exp, exp2, expm1, tanh, sigmoid, sinh, cosh, log, log2, log10, log1p, sin, cos, tan, arcsin, arccos, arctan, arctan2,
        arcsinh, arccosh, arctanh, erf, erfc, erfinv, erfcinv, ndtr, log_ndtr, ndtri, gamma, gammaln, psi, trigamma, power,
        cbrt, softplus, logaddexp, logaddexp2, log_expit, logit, entr, hypot,
    )
}  # fmt: skip
_SINGLE_PRECISION: dict[str, Callable[..., Value]] = {
    name: getattr(single_precision, name)
    for name in (
        "exp", "expm1", "tanh", "sigmoid", "softplus", "log", "log1p", "sin", "cos", "power", "gammaln", "entr", "log_ndtr",
    )
}  # fmt: skip

MULTI_INSTRUCTION = frozenset(_FUNCTIONS)  # functions of many instructions
NAMES = frozenset({*_INTRINSIC, *_FUNCTIONS})
"""The names that `emit` supports."""


def emit(ir: IRBuilder, name: str, *operands: Value) -> Value:
    """Emit a function of doubles or floats.

    Parameters
    ----------
    ir : IRBuilder
        The function under construction.
    name : str
        One of `NAMES`: NumPy's names, ``"sigmoid"``, ``"softplus"``, and names of ``scipy.special``.
    *operands : Value
        Floating-point values of one type.

    Returns
    -------
    Value
        A value of the same type.
    """
    type = operands[0].type
    if name in _INTRINSIC:
        return ir.intrinsic(_INTRINSIC[name], *operands)
    if type.scalar == FLOAT.scalar:
        wide = [ir.cast("fpext", v, DOUBLE) for v in operands]
        key, function = (f"{name}.single", _SINGLE_PRECISION[name]) if name in _SINGLE_PRECISION else (name, _FUNCTIONS[name])
        return ir.cast("fptrunc", _call_function(ir, key, function, wide), FLOAT)
    return _call_function(ir, name, _FUNCTIONS[name], operands)


def _call_function(ir: IRBuilder, name: str, function: Callable[..., Value], operands: Sequence[Value]) -> Value:
    """Call a function of doubles, which is emitted into the module on first use."""
    type = operands[0].type
    mangled = f".{name}.{type.mangled}"

    def write() -> None:
        builder = ir.module.function(mangled, type, [v.type for v in operands])
        builder.ret(function(builder, *builder.operands))

    return ir.call(ir.module.define_shared(mangled, write), type, *operands)
