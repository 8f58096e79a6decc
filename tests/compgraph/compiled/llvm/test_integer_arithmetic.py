"""Quotients, remainders, shifts, and conversions as machine code: NumPy's bits, and its warnings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from tests.support.for_each import for_each, sampled
from tests.support.machine_code import assert_same, compiled, program_of

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.executor import passes

SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.0, 0.1, -7.25, 1e17, 5e-324, 1.7e308, -3e-310, np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    cg.reset()
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())


def compiled_output(function: Callable[..., Any], *values: Any) -> Any:
    """The results of machine code recorded at ones, without NumPy calls."""
    holders = [cg.placeholder(v.shape, v.dtype, example=np.ones(v.shape, v.dtype)) for v in values]
    executor = compiled(function(*holders))
    output = executor.run(dict(zip(holders, values, strict=True)))
    assert program_of(executor).report == []
    return output


OF_TWO = [np.fmod, np.remainder, np.floor_divide, np.copysign, np.heaviside]


@for_each("function", OF_TWO)
@for_each("dtype", [np.float64, np.float32])
def test_floor_divide_of_floats_matches_numpy(function: Any, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL).astype(dtype)
        a, b = (x.ravel().copy() for x in np.meshgrid(special, special))
        assert_same(compiled_output(function, a, b), function(a, b))
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal(1001).astype(dtype) * 10 for _ in "ab")
        assert_same(compiled_output(function, a, b), function(a, b))
        assert_same(compiled_output(lambda x: function(x, 0.75), a), function(a, 0.75))


@pytest.mark.parametrize("function", [np.fmod, np.remainder, np.floor_divide])
def test_floor_divide_of_floats_by_zero_warns_as_numpy(function: Any) -> None:
    x, y = cg.placeholder((3,), name="x"), cg.placeholder((3,), name="y", example=np.ones(3))
    executor = compiled(function(x, y))
    executor.run({"x": np.ones(3), "y": np.ones(3)})
    with pytest.warns(RuntimeWarning, match="invalid" if function is not np.floor_divide else "divide by zero"):
        executor.run({"x": np.ones(3), "y": np.array([1.0, 0.0, 2.0])})


INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]
OF_TWO_INTEGERS = [np.floor_divide, np.remainder, np.fmod, np.left_shift, np.right_shift]


def integers(dtype: Any, count: int) -> Any:
    """Integers of all sizes, the extreme ones among them."""
    limits = np.iinfo(dtype)
    numbers = np.random.default_rng(1).integers(limits.min, limits.max, count, dtype, endpoint=True)
    numbers[:3] = limits.min, limits.max, 0
    numbers[3::3] %= 11
    return numbers


@sampled
@for_each("function", OF_TWO_INTEGERS)
@for_each("dtype", INTEGERS)
def test_integer_quotients_and_shifts_match_numpy(function: Any, dtype: Any) -> None:
    a = integers(dtype, 200)
    b = integers(dtype, 200)[::-1].copy()
    b[b == 0] = 3
    if np.dtype(dtype).kind == "i":
        b[b == -1] = 5
    assert_same(compiled_output(function, a, b), function(a, b))
    b = np.arange(200).astype(dtype) % 70
    if function in (np.left_shift, np.right_shift):
        assert_same(compiled_output(function, a, b), function(a, b))
    assert_same(compiled_output(lambda x: function(x, 3), a), function(a, np.array(3, dtype)))


@sampled
@for_each("function", [np.floor_divide, np.remainder, np.fmod])
@for_each("dtype", INTEGERS)
def test_integer_division_by_zero_warns_as_numpy(function: Any, dtype: Any) -> None:
    a, b = np.array([7, 3, 5], dtype), np.array([2, 0, 1], dtype)
    with np.errstate(all="ignore"):
        assert_same(compiled_output(function, a, b), function(a, b))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        compiled_output(function, a, b)
    if np.dtype(dtype).kind == "i":
        least, less = np.array([np.iinfo(dtype).min]), np.array([-1], dtype)
        with np.errstate(all="ignore"):
            assert_same(compiled_output(function, least, less), function(least, less))


UNARY: list[Callable[[Any], Any]] = [
    np.absolute, np.sign, np.floor, np.ceil, np.trunc, np.isnan, np.isinf, np.isfinite, np.logical_not,
    lambda x: np.logical_and(x, x - 1), lambda x: np.logical_xor(x, x - x), lambda x: x**2, lambda x: x**1,
]  # fmt: skip


FLOATING = [np.float64, np.float32]


# Each function of integers of two sizes, and of floating numbers.
SAMPLE = [(f, dtype) for k, f in enumerate(UNARY) for dtype in (INTEGERS[k % 7], INTEGERS[(k + 1) % 7], FLOATING[k % 2])]


SAMPLE += product([np.rad2deg, np.deg2rad, np.degrees, np.radians, np.signbit], FLOATING)


@for_each(("function", "dtype"), SAMPLE, rest=[c for c in product(UNARY, [*INTEGERS, *FLOATING]) if c not in SAMPLE])
def test_unary_functions_match_numpy(function: Any, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        a = np.array(SPECIAL * 3).astype(dtype) if np.dtype(dtype).kind == "f" else integers(dtype, 50)
        assert_same(compiled_output(function, a), function(a))


@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.less, np.greater_equal, np.equal])
def test_boolean_functions_match_numpy(function: Any) -> None:
    a, b = np.array([True, True, False, False] * 9), np.array([True, False] * 18)
    assert_same(compiled_output(function, a, b), function(a, b))
    assert_same(compiled_output(np.absolute, a), np.absolute(a))


@sampled
@for_each("dtype", INTEGERS)
@for_each("source_dtype", FLOATING)
def test_conversion_to_integers_matches_numpy(dtype: Any, source_dtype: Any) -> None:
    limits = np.iinfo(dtype)
    a = np.array([0.0, -0.0, 0.99, -0.99, 1.5, 100.7, 5.0] * 9, source_dtype)
    if limits.min < 0:
        a[::5] *= -1

    def function(x: Any) -> Any:
        return x.astype(dtype)

    assert_same(compiled_output(function, a), function(a))
    near = [np.nextafter(source_dtype(limits.max) + source_dtype(1), source_dtype(0)), source_dtype(limits.min)]
    near = np.array([x for x in near if limits.min <= int(x) <= limits.max], source_dtype)
    assert_same(compiled_output(function, near), function(near))
    x = cg.placeholder((2,), source_dtype, name="x", example=np.ones(2, source_dtype))
    executor = compiled(function(x))
    for bad in ([np.nan, 1.0], [1e30, 1.0], [1.0, -np.inf]):
        with np.errstate(all="ignore"):
            expected = np.array(bad, source_dtype).astype(dtype)
            assert_same(executor.run({"x": np.array(bad, source_dtype)}), expected)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        executor.run({"x": np.array([np.nan, 1.0], source_dtype)})


OUT_OF_RANGE: list[Callable[[Any], Any]] = [
    lambda x: x == 300, lambda x: x < 300, lambda x: np.less_equal(x, 300), lambda x: np.greater(300, x),
    lambda x: x == 200, lambda x: x == -56, lambda x: x == 2**40 + 44, lambda x: x != -(2**40) + 44, lambda x: x >= -300,
    lambda x: np.clip(x, 0, 300), lambda x: np.clip(x, -(2**40), None), lambda x: np.where(x == 300, 0, x),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32])
def test_comparisons_with_out_of_range_numbers_are_exact(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, 0, 44, 100, limits.max, np.array(-56).astype(dtype)], dtype)
    for f in OUT_OF_RANGE:
        assert_same(cg.jit(f).compile(np.ones(6, dtype))(values), f(values))


def test_shifts_beyond_width_match_numpy() -> None:
    for dtype in INTEGERS:
        bits = 8 * np.dtype(dtype).itemsize
        a = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 100, 99], dtype)
        a[2:] = -a[2:] if np.dtype(dtype).kind == "i" else a[2:]
        for function in (np.left_shift, np.right_shift):
            for count in (bits - 1, bits, bits + 3, 120):
                b = np.full(4, count, dtype)
                assert_same(compiled_output(function, a, b), function(a, b))
