"""`exact=True` against NumPy: bits, signs of zeros, warnings and errors; and the memory layout of results, in either mode."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from tests.support.for_each import for_each

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -2.3e-308, 1.7e308, 1e-160, -1e160, 0.5, 2.5, 3e38, 1e-45]


def special(dtype: Any, size: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        with np.errstate(all="ignore"):
            return np.array(SPECIAL)[rng.integers(0, len(SPECIAL), size)].astype(dtype)
    limits = np.iinfo(dtype)
    return np.array([0, 1, 2, limits.max, limits.min, limits.max - 1], dtype)[rng.integers(0, 6, size)]


def outcome(f: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """The result and warnings of a call: values with their signs, dtype, shape, strides."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(**settings):
        warnings.simplefilter("always")
        try:
            result = f(*arguments)
        except FloatingPointError as error:
            return str(error)
    plain = np.where(np.isnan(result), np.nan, result).astype(result.dtype) if result.dtype.kind == "f" else result
    return plain.tobytes(), result.dtype, result.shape, result.strides, {str(warning.message) for warning in caught}


SETTINGS = [{"all": "warn"}, {"all": "raise"}, {"all": "ignore", "under": "warn"}, {"all": "ignore", "under": "raise"}]
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("fmax", "fmin", "maximum", "minimum", "multiply", "divide", "floor_divide", "add")},
    **{name: getattr(np, name) for name in ("remainder", "less", "copysign", "heaviside", "hypot")},
    "max": lambda x, y: np.max(x) + np.min(y),
    "axis": lambda x, y: np.max(x.reshape(1, -1) + y, axis=1),
    "ptp": lambda x, y: np.ptp(x * 0.0),
    "clip": lambda x, y: np.clip(x, 0.0, 0.0),
    "clip-arrays": lambda x, y: np.clip(x, y, y[::-1]),
    "fused": lambda x, y: x * y + x - y * y,
    "radians": lambda x, y: np.radians(x) * np.degrees(y),
    "reciprocal": lambda x, y: np.reciprocal(x) - np.square(y),
    "inner": lambda x, y: np.inner(x, y[0]),
    "tensordot": lambda x, y: np.tensordot(x, y[:1], 0),
}


@for_each("name", FUNCTIONS)
@for_each("dtype", [np.float64, np.float32])
def test_exact_mode_matches_bits_warnings_and_errors(name: str, dtype: Any) -> None:
    function, size = FUNCTIONS[name], 67
    jitted = cg.jit(function, exact=True).compile(np.ones(size, dtype), np.ones(size, dtype))
    zeros = [np.where(np.arange(size) % k == 0, 0.0, -0.0).astype(dtype) for k in (2, 3)]
    small = np.full(size, 1e-30, dtype) ** 2
    cases = [(special(dtype, size, k), special(dtype, size, k + 9)) for k in range(3)]
    for arguments in [*cases, tuple(zeros), tuple(zeros[::-1]), (small, small), (small, small + 1)]:
        for settings in SETTINGS:
            assert outcome(jitted, arguments, settings) == outcome(function, arguments, settings), (arguments, settings)


@for_each("dtype", [np.uint8, np.int8, np.int64, np.uint64])
@for_each("exact", [False, True])
def test_exact_mode_clip_by_out_of_range_integers(dtype: Any, exact: bool) -> None:
    x = special(dtype, 20, 0)
    for low, high in ((-1, 1), (0, 300), (-300, None), (2, 5), (None, 2**62)):

        def clipped(x: Any, low: Any = low, high: Any = high) -> Any:
            return np.clip(x, low, high)

        try:
            expected = clipped(x)
        except OverflowError:  # of earlier NumPys
            continue
        np.testing.assert_array_equal(cg.jit(clipped, exact=exact).compile(np.ones(20, dtype))(x), expected)


@pytest.mark.parametrize("name", ["inner", "tensordot", "dot"])
def test_exact_mode_products_with_one_number_match_blas(name: str) -> None:
    function: Any = {"inner": np.inner, "dot": np.dot, "tensordot": lambda a, b: np.tensordot(a, b, 0)}[name]
    x = np.array([0.0, -0.0, 2.0, np.inf, -np.inf, np.nan, -1.0])
    for number in (0.0, -0.0, 2.0, -1.0, np.inf):
        for arguments in ((x, np.float64(number)), (np.float64(number) if name != "tensordot" else np.array([number]), x)):
            jitted = cg.jit(function).compile(*[np.ones_like(a)[()] for a in arguments])
            for settings in ({"all": "ignore"}, {"all": "warn"}):
                assert outcome(jitted, arguments, settings) == outcome(function, arguments, settings), arguments


LAYOUTS: dict[str, Any] = {
    "moved": lambda x: np.transpose(x, (*range(1, x.ndim), 0)) * 1.0,
    "product": lambda x: x * 2.0,
    "sum": lambda x: x + x[::-1] * x[:1],
    "compared": lambda x: x > 0,
    "transposed": lambda x: (np.exp(x) - 1.0).T,
    "swapped": lambda x: np.swapaxes(x, 0, -1) + 1.0,
    "where": lambda x: np.where(x > 0, x, -x),
    "copy": lambda x: np.copy(x),
    "method": lambda x: x.copy(),
    "astype": lambda x: x.astype(np.float32),
    "like": lambda x: np.full_like(x, 2.0) + np.zeros_like(x),
    "written": lambda x: np.add(x, 1.0, out=np.zeros_like(x)),
    "joined": lambda x: np.concatenate([x, x], -1),
    "stacked": lambda x: np.stack([x, x]),
    "reduced": lambda x: np.max(x, axis=0),
    "cumulated": lambda x: np.cumsum(x, -1),
    "rolled": lambda x: np.roll(x, 1, 0),
    "sorted": lambda x: np.sort(x, -1),
    "part": lambda x: x[1:] * 2.0,
    "picked": lambda x: x[[0, 1]],
}


# The shape of the argument, the order of its axes in memory, whether its last axis is reversed, and `exact`.
ARGUMENT_LAYOUTS = [
    (shape, order, is_reversed, exact)
    for shape, exact in (((2, 3, 4), False), ((3, 2), True))
    for order in itertools.permutations(range(len(shape)))
    for is_reversed in (False, True)
]
SAMPLED_LAYOUTS = [
    ((2, 3, 4), (0, 1, 2), True, False),
    ((2, 3, 4), (2, 1, 0), False, False),
    ((2, 3, 4), (1, 2, 0), True, False),
    ((3, 2), (0, 1), False, True),
]


@for_each(
    ("name", "argument_layout"),
    [*itertools.product(LAYOUTS, SAMPLED_LAYOUTS)],
    rest=[
        *itertools.product(
            LAYOUTS, [argument_layout for argument_layout in ARGUMENT_LAYOUTS if argument_layout not in SAMPLED_LAYOUTS]
        )
    ],
)
def test_llvm_results_have_memory_layout_of_numpy(
    name: str, argument_layout: tuple[tuple[int, ...], tuple[int, ...], bool, bool]
) -> None:
    function, (shape, order, is_reversed, exact) = LAYOUTS[name], argument_layout
    x = np.random.default_rng(0).standard_normal([shape[k] for k in order]).transpose(np.argsort(order))
    operand = x[..., ::-1] if is_reversed else x
    expected, result = function(operand), cg.jit(function, exact=exact).compile(operand)(operand)
    np.testing.assert_allclose(result, expected, rtol=1e-14)
    assert (result.strides, result.flags.owndata) == (expected.copy("K").strides, True)
