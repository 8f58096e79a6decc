"""Operators between scalars, 0-d arrays and numbers equal NumPy's bit for bit. NumPy has separate loops for scalars."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from tests.support.failures import Failures

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "divmod": divmod, "power": np.power, "arctan2": np.arctan2,
}  # fmt: skip
FORMS: dict[str, Callable[[Any], Any]] = {
    "an element": lambda a: a[0],
    "a sum": lambda a: np.sum(a),
    "an array without axes": lambda a: a[0:1].reshape(()),
    "a scalar of a scalar": lambda a: np.sin(a[1]) * 2 + 3,
}
# On the left of a node NumPy's scalars call the ufunc, as `np.power` does: the two cannot be distinguished.
ON_THE_LEFT = ("float", "half", "two", "three", "int", "zero", "bool", "array", "integers")


def numbers(rng: np.random.Generator) -> dict[str, Any]:
    """The other operands of a scalar."""
    return {
        "int": int(rng.integers(-5, 6)), "float": float(rng.uniform(0.1, 3)), "half": 0.5, "two": 2, "three": 3, "zero": 0,
        "bool": True, "float64": np.float64(rng.uniform(-3, 3)), "float32": np.float32(rng.uniform(-3, 3)),
        "float16": np.float16(rng.uniform(0, 2)), "int64": np.int64(rng.integers(-4, 5)), "int8": np.int8(3),
        "uint8": np.uint8(2), "int32": np.int32(-3), "array": np.array(rng.uniform(0.2, 2)), "integers": np.array([2, 3]),
    }  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    """The bits of the result, or the type of the error."""
    try:
        result = call()
    except Exception as error:
        return type(error)
    parts = result if isinstance(result, tuple) else (result,)
    arrays = [np.asarray(p.value if isinstance(p, cg.Node) else p) for p in parts]
    return [(a.dtype, a.shape, np.where(np.isnan(a), np.nan, a).astype(a.dtype).tobytes()) for a in arrays]


def check_bits(sign: str, dtype: Any, repeats: int) -> None:
    """Check an operator between all forms of scalars and all kinds of numbers, for random values."""
    rng = np.random.default_rng(sum(map(ord, sign)))
    operate = OPERATORS[sign]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            plain = rng.uniform(0.1, 3, 3).astype(dtype)
            node = cg.variable(plain)
            for form, of in FORMS.items():
                a, x = of(plain), of(node)
                for kind, number in numbers(rng).items():
                    place = f"{form} {sign} {kind}: {a!r}, {number!r}"
                    assert outcome(lambda: operate(x, number)) == outcome(lambda: operate(a, number)), place  # noqa: B023
                    if kind in ON_THE_LEFT:
                        assert outcome(lambda: operate(number, x)) == outcome(lambda: operate(number, a)), place  # noqa: B023
                other, another = FORMS["a sum"](plain), FORMS["a sum"](node)
                assert outcome(lambda: operate(x, another)) == outcome(lambda: operate(a, other)), form  # noqa: B023


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("repeats", [4, pytest.param(12, marks=pytest.mark.exhaustive)])
def test_scalar_operators_have_bits_of_numpy(dtype: Any, repeats: int) -> None:
    with Failures("operators") as failures:
        for sign in OPERATORS:
            with failures.case(sign):
                check_bits(sign, dtype, repeats)
