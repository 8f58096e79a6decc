"""Functions of numbers, several lanes at a time: what `math.h` has, written in the language of `Code`.

Each is computed without branches on its usual range; lanes with awkward operands are done again by C's library (`slow`). Errors
are at most 2.5 units in the last place (1 for float32, which is computed in double and rounded). The flags of the processor for
division by zero, invalid operands and overflow are set where NumPy's function warns of them, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..code import DOUBLE, FLOAT, Code, Value
from . import single
from .combined import logaddexp, logaddexp2, softplus
from .errors import erf, erfc
from .exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from .hyperbolic import arccosh, arcsinh, arctanh
from .inverse import arccos, arcsin, arctan, arctan2
from .logarithm import log, log1p, log2, log10
from .powers import cbrt, hypot, power
from .trigonometric import cos, sin, tan

_INTRINSIC = {"sqrt": "sqrt", "absolute": "fabs", "floor": "floor", "ceil": "ceil", "rint": "rint", "trunc": "trunc"}
_WRITTEN: dict[str, Callable[..., Value]] = {
    function.__name__: function
    for function in (
        exp, exp2, expm1, tanh, sigmoid, sinh, cosh, log, log2, log10, log1p, sin, cos, tan, arcsin, arccos, arctan, arctan2,
        arcsinh, arccosh, arctanh, erf, erfc, power, cbrt, softplus, logaddexp, logaddexp2, hypot,
    )
}  # fmt: skip
_SINGLE: dict[str, Callable[..., Value]] = {
    name: getattr(single, name) for name in ("exp", "expm1", "tanh", "sigmoid", "softplus", "log", "log1p", "sin", "cos", "power")
}

WRITTEN = frozenset(_WRITTEN)  # of many instructions
NAMES = frozenset({*_INTRINSIC, *_WRITTEN})
"""The names that `emit` knows."""


def emit(code: Code, name: str, *operands: Value) -> Value:
    """Write a function of doubles, or of floats.

    Parameters
    ----------
    code : Code
        Where it is written.
    name : str
        One of `NAMES`; as NumPy has it, and ``"sigmoid"``, ``"softplus"``, ``"erf"``, ``"erfc"``.
    *operands : Value
        Floating values of one type.

    Returns
    -------
    Value
        Of the same type.
    """
    type = operands[0].type
    if name in _INTRINSIC:
        return code.intrinsic(_INTRINSIC[name], *operands)
    if type.of == FLOAT.of:
        wide = [code.cast("fpext", v, DOUBLE) for v in operands]
        function = _SINGLE.get(name)
        value = _called(code, f"{name}.single", function, wide) if function else _called(code, name, _WRITTEN[name], wide)
        return code.cast("fptrunc", value, FLOAT)
    return _called(code, name, _WRITTEN[name], operands)


def _called(code: Code, name: str, function: Callable[..., Value], operands: Sequence[Value]) -> Value:
    """What a function of doubles gives, that is written into the module when it is first called."""
    type = operands[0].type
    full = f".{name}.{type.mangled}"

    def write() -> None:
        made = code.module.function(full, type, [v.type for v in operands])
        made.give(function(made, *made.operands))

    return code.call(code.module.shared(full, write), type, *operands)
