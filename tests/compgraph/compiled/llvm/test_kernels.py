"""Kernels for known shapes against NumPy: convolutions with their adjoints, pooling, products of small matrices."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradients
from tests.support.failures import Failures
from tests.support.for_each import for_each, sampled
from tests.support.jitting import assert_agrees

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.executor import passes

Array = np.ndarray[Any, Any]
DTYPES = [np.float64, np.float32]


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    cg.reset()
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())


class Both:
    """A function's value and gradients by machine code and by NumPy, for operands of some shapes."""

    def __init__(self, function: Any, shapes: Any, dtype: Any, has_gradients: bool = True) -> None:
        self.shapes, self.dtype = shapes, dtype
        self.holders = [cg.placeholder(s, dtype, example=np.ones(s), name=f"x{k}") for k, s in enumerate(shapes)]
        out = function(*self.holders)
        weights = np.cos(np.arange(out.size)).reshape(out.shape).astype(dtype)
        nodes = [out, *(gradients(np.sum(out * weights), self.holders, unused="zero") if has_gradients else [])]
        self.numpy, self.machine = cg.Executor(nodes), cg.Executor(nodes)
        self.machine._backend = "llvm"

    def values(self, seed: int = 0) -> list[Array]:
        rng = np.random.default_rng(seed)
        return [rng.standard_normal(shape).astype(self.dtype) for shape in self.shapes]

    def check(self, values: list[Array] | None = None) -> Any:
        """Compare both, and return the program."""
        feed = dict(zip(self.holders, values or self.values(), strict=True))
        expected, outputs = self.numpy.run(feed), self.machine.run(feed)
        for f, e in zip(outputs, expected, strict=True):
            assert np.shape(f) == np.shape(e)
            assert np.asarray(f).dtype == np.asarray(e).dtype
            size = max(np.max(np.abs(e[np.isfinite(e)]), initial=0), 1.0)
            np.testing.assert_allclose(f, e, rtol=0, atol=(1e-13 if self.dtype == np.float64 else 1e-5) * size)
        return next(iter(self.machine._programs.values()))


# ------------------------------------------------------------------------------------------------------------- convolutions

CONVOLUTIONS = [
    ((2, 4, 6, 6), (4, 4, 3, 3), {"padding": 1}),
    ((2, 16, 28, 28), (32, 16, 3, 3), {"padding": 1}),
    ((1, 20, 14, 13), (33, 20, 3, 3), {"padding": "same", "strides": 2}),  # channels that do not fill the last vector
    ((2, 3, 14, 13), (70, 3, 5, 3), {"padding": ((2, 1), (0, 3)), "strides": (2, 1), "dilation": (2, 3)}),
    ((2, 6, 7, 7), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
    ((2, 5, 7, 7), (5, 1, 3, 3), {"groups": 5, "padding": 1, "strides": 3}),
    ((3, 17, 9, 9), (19, 17, 1, 1), {}),  # a matrix for every pixel
    ((3, 1, 9, 9), (1, 1, 4, 4), {"strides": 4}),  # elements that no window takes
    ((2, 2, 5, 9), (3, 2, 2, 3), {"strides": (3, 2), "dilation": (2, 2), "padding": 2}),  # steps with common factors
    ((2, 3, 10, 11), (4, 3, 2, 2), {"strides": 3, "padding": 3}),  # windows within the padding
    ((2, 3, 10, 11), (4, 3, 1, 1), {"strides": 3, "padding": 3}),
    ((1, 2, 1, 1), (3, 2, 3, 3), {"padding": 1}),
    ((1, 3, 40, 40), (90, 3, 11, 11), {"strides": 4}),
    ((2, 24, 5, 5), (50, 24, 3, 3), {"padding": 1}),  # columns of several tiles
    ((0, 3, 10, 11), (4, 3, 3, 2), {}),
    ((2, 3, 30), (4, 3, 7), {"padding": "same", "strides": 2}),
    ((30,), (7,), {"padding": "full"}),
    ((90,), (80,), {"padding": "same"}),
    ((70,), (6,), {"strides": 2, "padding": 3}),
    ((2, 3, 21, 70), (2, 3, 5, 4), {"strides": (3, 1), "padding": (2, 1)}),  # few channels: vectors along lines
    ((2, 3, 9, 41), (5, 3, 2, 4), {"strides": (2, 4), "dilation": (1, 3), "padding": 1}),
    ((2, 8, 12, 33), (8, 1, 3, 3), {"groups": 8, "padding": "same"}),
    ((1, 1, 50, 67), (1, 1, 7, 5), {"padding": "full"}),
    ((2, 3, 24, 24), (20, 3, 8, 8), {"strides": 8}),  # windows next to each other
    ((1, 1, 40, 40), (3, 1, 2, 2), {"strides": 3}),  # gaps between them
    ((2, 16, 6, 5), (16, 16, 2, 1), {"padding": ((1, 0), 0)}),  # adjoints with zeros on one side alone
    ((2, 16, 6, 5), (16, 16, 2, 1), {"padding": ((0, 1), 0)}),
    ((2, 16, 6, 5), (16, 16, 1, 2), {"padding": (0, (1, 0))}),
    ((2, 16, 6, 5), (16, 16, 1, 2), {"padding": (0, (0, 1))}),
]


@sampled
@for_each("convolution", CONVOLUTIONS)
@for_each("function", [cg.cross_correlate, cg.conv])
@for_each("dtype", DTYPES)
def test_convolution_matches_numpy(convolution: Any, function: Any, dtype: Any) -> None:
    check_convolution(convolution, function, dtype)


def check_convolution(convolution: Any, function: Any, dtype: Any) -> None:
    x, kernel, options = convolution
    both = Both(lambda a, b: function(a, b, **options), [x, kernel], dtype)
    assert both.check().report == []
    both.check(both.values(1))


@pytest.mark.parametrize("options", [{"padding": 1}, {"strides": 2}])
def test_convolution_second_derivatives(options: Any) -> None:
    def squares(x: Any, kernel: Any) -> Any:
        slopes = gradients(np.sum(cg.cross_correlate(x, kernel, **options) ** 2), [x, kernel])
        return np.sum(slopes[0] ** 2) + np.sum(slopes[1] ** 2)

    both = Both(squares, [(2, 3, 8, 7), (4, 3, 3, 3)], np.float64)
    assert both.check([0.1 * v for v in both.values()]).report == []


def test_convolution_operands_of_any_layout() -> None:
    def in_other_layout(x: Any, kernel: Any) -> Any:
        return cg.cross_correlate(np.transpose(x, (3, 2, 0, 1))[:, ::-1, ::2], np.broadcast_to(kernel, (5, 4, 3, 3)), padding=1)

    both = Both(in_other_layout, [(8, 9, 4, 2), (4, 3, 3)], np.float64)
    both.check([np.asfortranarray(v) for v in both.values()])


@pytest.mark.parametrize("dtypes", [(np.float32, np.float64), (np.int64, np.int64), (np.float64, np.complex128)])
def test_convolution_of_other_dtypes_calls_numpy(dtypes: Any) -> None:
    x, kernel = (np.ones(s, d) for s, d in zip([(1, 2, 5, 5), (3, 2, 2, 2)], dtypes, strict=True))
    result = cg.jit(cg.cross_correlate)(x, kernel)
    expected = cg.cross_correlate(x, kernel)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("results", [1, 20])
@pytest.mark.parametrize("options", [{"padding": 1}, {"strides": 2, "padding": (1, 0)}, {}], ids=str)
def test_convolution_of_inf_and_nan_matches_numpy(options: Any, results: int) -> None:
    both = Both(lambda a, b: cg.cross_correlate(a, b, **options), [(2, 3, 8, 8), (results, 3, 3, 3)], np.float32)
    with Failures("operand, bad number, errstate") as failures:
        for operand, bad, errors in product([0, 1], [np.nan, np.inf, -np.inf], ["ignore", "warn"]):
            with failures.case(f"{operand}, {bad}, {errors}"), np.errstate(all=errors):
                values = both.values()
                values[operand][-1, 2, 1, 2] = bad
                warnings.simplefilter("ignore")
                both.check(values)


def test_convolution_padding_lanes_set_no_flags() -> None:
    both = Both(lambda a, b: cg.cross_correlate(a, b, padding=1), [(1, 3, 7, 7), (5, 3, 3, 3)], np.float64)
    for a, b in ((1.0, 1.0), (1e300, 1e-300), (1e-5, 1e300)):  # what earlier calls left in the work space is not looked at
        with np.errstate(all="raise"):
            both.machine.run({both.holders[0]: np.full((1, 3, 7, 7), a), both.holders[1]: np.full((5, 3, 3, 3), b)})
    assert next(iter(both.machine._programs.values()))._numpy_program is None


def test_convolution_overflow_warns_as_numpy() -> None:
    both = Both(cg.cross_correlate, [(1, 3, 7, 7), (5, 3, 3, 3)], np.float64, has_gradients=False)
    with pytest.warns(RuntimeWarning, match="overflow"):
        both.machine.run(dict(zip(both.holders, [np.full((1, 3, 7, 7), 1e200), np.full((5, 3, 3, 3), 1e200)], strict=True)))


def test_convolution_adjoint_of_unsupported_cases_calls_numpy() -> None:
    both = Both(lambda a, b: cg.cross_correlate(a, b, strides=17), [(1, 2, 34, 34), (3, 2, 17, 17)], np.float64)
    assert "large strides" in both.check().report[0]
    both = Both(lambda a, b: cg.cross_correlate(a, b), [(1, 2, 5, 5, 5), (3, 2, 2, 2, 2)], np.float64)
    assert "more than two axes" in both.check().report[0]


def test_convolution_of_equal_shapes_shares_code() -> None:
    def twice(x: Any, kernel: Any) -> Any:
        return cg.cross_correlate(np.tanh(cg.cross_correlate(x, kernel, padding=1)), kernel, padding=1)

    both = Both(twice, [(2, 4, 6, 6), (4, 4, 3, 3)], np.float64)
    assert both.check().llvm.count("define internal i32 @.convolution_forward") == 1


# Each tiling once: along channels, grouped, along rows, with overlapping windows and with gaps.
TILINGS = [(16 if k % 2 == 0 else 32, number) for k, number in enumerate((3, 4, 19, 23, 24))]
OTHERS = [(width, number) for width in (16, 32) for number in (*range(6), *range(19, 25)) if (width, number) not in TILINGS]


@for_each(("width", "number"), TILINGS, rest=OTHERS)
def test_convolution_with_short_vectors_matches_numpy(width: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from compgraph.compiled.llvm import backend
    from compgraph.compiled.llvm.emission import kernel_emission, matmul_emission

    narrow = backend.processor()._replace(vector_bytes=min(width, backend.processor().vector_bytes))
    for module in (backend, matmul_emission, kernel_emission):
        monkeypatch.setattr(module, "processor", lambda: narrow)
    check_convolution(CONVOLUTIONS[number], cg.cross_correlate, np.float64)


# ---------------------------------------------------------------------------------------------------------------- products

PRODUCTS = [
    (1, 1, 1), (3, 3, 1), (1, 5, 7), (7, 5, 1), (2, 2, 2), (5, 8, 16), (16, 3, 15), (17, 9, 33), (31, 16, 10), (9, 1, 9),
    (30, 7, 40), (40, 20, 65), (12, 70, 100), (3, 100, 50), (33, 40, 130),
]  # fmt: skip
MATRIX_LAYOUTS = {
    "nn": lambda a, b: a @ b,
    "tn": lambda a, b: np.swapaxes(np.swapaxes(a, -1, -2) * 1.0, -1, -2) @ b,
    "nt": lambda a, b: a @ np.swapaxes(np.swapaxes(b, -1, -2) * 1.0, -1, -2),
    "reversed": lambda a, b: a[..., ::-1, ::-1] @ b[..., ::-1],
}


@sampled
@for_each("sizes", PRODUCTS)
@for_each("layout", MATRIX_LAYOUTS)
@for_each("dtype", DTYPES)
def test_small_product_matches_numpy(sizes: tuple[int, int, int], layout: str, dtype: Any) -> None:
    m, k, n = sizes
    both = Both(MATRIX_LAYOUTS[layout], [(m, k), (k, n)], dtype)
    program = both.check()
    assert program.report == []
    assert "@.product_" in program.llvm
    both.check(both.values(1))


@pytest.mark.parametrize(
    "shapes",
    [
        [(4, 5, 6), (6, 7)],
        [(5, 6), (3, 4, 6, 7)],
        [(2, 1, 5, 6), (3, 6, 1)],
        [(6,), (3, 6, 4)],
        [(3, 4, 6), (6,)],
        [(6,), (6,)],
        [(3, 0, 6), (6, 4)],
        [(3, 0), (0, 4)],
    ],
)
def test_matmul_of_stacks_matches_numpy(shapes: Any) -> None:
    Both(np.matmul, shapes, np.float64).check()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_matmul_of_inf_and_nan_matches_numpy(bad: float) -> None:
    both = Both(lambda a, b: a @ b, [(9, 5), (5, 21)], np.float64, has_gradients=False)
    values = both.values()
    values[0][2, 3] = bad
    with np.errstate(all="ignore"):  # some BLAS libraries raise the invalid flag for inf, which NumPy's own product then reports
        program = both.check(values)
    with np.errstate(all="raise"):  # our code raises no flag that the arithmetic does not raise
        (output,) = both.machine.run(dict(zip(both.holders, values, strict=True)))
    np.testing.assert_array_equal(np.isfinite(output).all(axis=1), np.arange(9) != 2)
    assert program._numpy_program is None  # NumPy did not run instead


def test_matmul_bits_are_independent_of_alignment() -> None:
    both = Both(lambda a, b: a @ b.T, [(19, 37), (21, 37)], np.float32)
    first = both.machine.run(dict(zip(both.holders, both.values(), strict=True)))
    for start in range(1, 9):
        moved = []
        for value in both.values():
            memory = np.zeros(value.size + start, value.dtype)
            memory[start:] = value.ravel()
            moved.append(memory[start:].reshape(value.shape))
        outputs = both.machine.run(dict(zip(both.holders, moved, strict=True)))
        for f, e in zip(outputs, first, strict=True):
            np.testing.assert_array_equal(f, e)


def test_matmul_of_large_matrices_calls_blas() -> None:
    both = Both(lambda a, b: a @ b, [(600, 600), (600, 40)], np.float64, has_gradients=False)
    assert "blas_dgemm" in both.check().llvm


# ----------------------------------------------------------------------------------------------------------------- pooling

POOLS = [
    ((2, 3, 8, 8), {"window": (2, 2)}),
    ((2, 3, 9, 8), {"window": (3, 3), "strides": 2}),
    ((2, 3, 9, 8), {"window": (3, 3), "strides": 2, "padding": 1}),
    ((2, 3, 9, 8), {"window": (3, 2), "strides": 1, "padding": "same", "dilation": (1, 2)}),
    ((1, 2, 33, 35), {"window": (3, 3), "strides": 3}),
    ((1, 2, 40, 70), {"window": (2, 4)}),
    ((0, 3, 9, 8), {"window": (3, 3)}),
    ((11,), {"window": 3}),
    ((4, 5, 6, 7), {"window": (2, 2, 2)}),
    ((11, 4), {"window": 1}),
]


def assert_same(actual: Any, expected: Any) -> None:
    for f, e in zip(actual, expected, strict=True):
        assert np.asarray(f).dtype == np.asarray(e).dtype
        np.testing.assert_array_equal(f, e)
        numbers = ~np.isnan(e)
        np.testing.assert_array_equal(np.signbit(f)[numbers], np.signbit(e)[numbers])


@sampled
@for_each("pool", POOLS)
@for_each("function", [cg.max_pool, cg.mean_pool])
@for_each("dtype", DTYPES)
def test_pooling_has_bits_of_numpy(pool: Any, function: Any, dtype: Any) -> None:
    x, options = pool
    both = Both(lambda a: function(a, **options), [x], dtype)
    (values,) = both.values()
    holes = np.where(values > 1, np.nan, np.where(values < -0.5, -np.inf, values)).astype(dtype)
    for array in (values, np.round(values), holes):  # with several largest ones; zeros of either sign; inf and nan
        with np.errstate(all="ignore"):
            assert_same(both.machine.run({both.holders[0]: array}), both.numpy.run({both.holders[0]: array}))
    program = next(iter(both.machine._programs.values()))
    assert program.report == ([] if values.size else program.report)
    assert program._numpy_program is None


@pytest.mark.parametrize("function", [cg.max_pool, cg.mean_pool])
def test_pooling_forward_derivatives(function: Any) -> None:
    def tangents(x: Any) -> Any:
        return ad.jvp(lambda a: function(a, (3, 2), strides=2, padding=1), (x,), (np.cos(x),))[1]

    x = np.random.default_rng(0).standard_normal((2, 3, 6, 7)).round(1)
    assert_same([cg.jit(tangents)(x)], [tangents(x)])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32, bool])
def test_pooling_of_integers(dtype: Any) -> None:
    x = np.arange(60).reshape(2, 5, 6).astype(dtype)
    for function in (cg.max_pool, cg.mean_pool):
        assert_same([cg.jit(lambda a, f=function: f(a, (2, 3), padding=1))(x)], [function(x, (2, 3), padding=1)])


def test_network_of_convolutions_and_pooling_compiles_entirely() -> None:
    def network(x: Any, a: Any, b: Any, c: Any) -> Any:
        h = cg.max_pool(np.maximum(cg.cross_correlate(x, a, padding="same"), 0.0), (2, 2))
        h = cg.mean_pool(np.tanh(cg.cross_correlate(h, b, strides=2)), (2, 2), strides=1)
        return np.sum(np.reshape(h, (len(x), -1)) @ c)

    both = Both(network, [(4, 1, 14, 14), (8, 1, 3, 3), (12, 8, 3, 3), (48, 3)], np.float64)
    assert both.check().report == []
    both.check(both.values(1))


# ------------------------------------------------------------------------------------------------------------ among others


def test_matmul_loops_are_rerolled() -> None:
    def recurrent(h: Any, w: Any) -> Any:
        for _ in range(150):
            h = np.tanh(0.2 * (h @ w.T) + 0.1)
        return h

    both = Both(recurrent, [(9, 12), (12, 12)], np.float64, has_gradients=False)
    program = both.check()
    assert program.source.count("product") < 10
    assert program.report == []


@pytest.mark.parametrize("function", [cg.cross_correlate, cg.conv])
def test_kernels_read_values_written_in_place(function: Any) -> None:
    def steps(x: Any, kernel: Any) -> Any:
        y = x.copy()
        for _ in range(3):
            y[:, :, 1:-1] += 0.1 * function(y, kernel, padding=1)[:, :, :-2]
            y[:, 0] = y[:, 1] * cg.max_pool(y, (3, 3), strides=1, padding=1)[:, 2]
            y[0, 0] = y[0, 1] @ y[0, 0].T
        return y

    both = Both(steps, [(2, 3, 8, 8), (3, 3, 3, 3)], np.float64)
    assert both.check([0.3 * v for v in both.values()]).report == []


def test_dot_of_single_elements() -> None:
    a, b = np.float64(3.0), np.array([2.0])
    for product_of in (np.dot, np.inner):
        jitted = cg.jit(lambda a, b, product_of=product_of: product_of(a, b) + 0.0).compile(a, b)
        np.testing.assert_array_equal(jitted(a, b), [6.0])


PAIRS = ((3.0, 2.0), (0.5, -4.0), (0.0, 5.0))


def test_dot_of_single_elements_is_compiled() -> None:
    with Failures("products") as failures:
        for name, f, shapes in (
            ("inner", np.inner, ((1,), (1,))),
            ("inner of a matrix", np.inner, ((1, 1), (1,))),
            ("inner of a number", np.inner, ((1, 1), ())),
            ("tensordot", lambda a, b: np.tensordot(a, b, 0), ((1,), (1,))),
        ):
            with failures.case(name):
                assert_agrees(f, *[tuple(np.full(shape, x)[()] for x, shape in zip(pair, shapes, strict=True)) for pair in PAIRS])
