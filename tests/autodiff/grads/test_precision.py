"""A derivative has the dtype precision of the differentiated result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import autodiff as ad
from tests.support.for_each import for_each

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "**": lambda x, a: a**x,
    "power": lambda x, a: np.power(a, x),
    "float_power": lambda x, a: np.float_power(a, x),
    "xlogy": lambda x, a: special.xlogy(x, a),
    "xlog1py": lambda x, a: special.xlog1py(x, a),
}


@for_each("dtype", [np.int8, np.uint8, np.int16, np.int32, np.float16, np.float32])
@for_each("name", FUNCTIONS)
def test_derivative_has_precision_of_result(name: str, dtype: Any) -> None:
    """NumPy's logarithm of an int8 is of half precision."""
    f, x, a = FUNCTIONS[name], np.array([0.7, 0.9, 1.3]), np.array([2, 3, 5], dtype)
    wide = a.astype(float)
    np.testing.assert_allclose(ad.grad(lambda x: np.sum(f(x, a)))(x), ad.grad(lambda x: np.sum(f(x, wide)))(x), rtol=1e-14)
    result, expected = (ad.jvp(lambda x, b=b: f(x, b), (x,), (x,))[1] for b in (a, wide))
    np.testing.assert_allclose(result, expected, rtol=1e-14)
