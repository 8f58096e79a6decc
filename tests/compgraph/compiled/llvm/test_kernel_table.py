"""Kernels: units of one structure share code, independent of shapes, strides, offsets and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.compiled.llvm import backend
from compgraph.compiled.llvm.planning import Kernel, KernelTable, LoopNest
from compgraph.compiled.llvm.planning.kernel_table import block_levels
from tests.support.random_slices import program_of_slices

Program = Callable[[Any], Any]
rng = np.random.default_rng(5)


def jacobi(iterations: int) -> Program:
    """Two alternating buffers."""

    def f(a: Any) -> Any:
        a, b = a.copy(), np.zeros_like(a)
        for _ in range(iterations):
            b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) * 0.25
            a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) * 0.25
        return np.sum(a) + np.sum(b)

    return f


def triangular_solve(n: int) -> Program:
    """Slices that grow."""

    def f(a: Any) -> Any:
        x = np.zeros(n)
        for i in range(n):
            x[i] = (a[i, -1] - a[i, :i] @ x[:i]) / (2 + a[i, i])
        return np.sum(x * x)

    return f


def cholesky(n: int) -> Program:
    def f(a: Any) -> Any:
        a = a @ a.T + np.eye(n)
        a[0, 0] = np.sqrt(a[0, 0])
        for i in range(1, n):
            for j in range(i):
                a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
            a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))
        return np.sum(np.tril(a) ** 2)

    return f


def growing_statistics(n: int) -> Program:
    """Means, extrema and sums of growing columns: strides, counts and blocks of reductions differ."""

    def f(a: Any) -> Any:
        total = 0.0
        for i in range(1, n):
            part = a[:i, ::2]
            total = total + np.mean(part) * np.max(part) + np.sum(np.mean(part, 0) * i) - np.min(np.sum(part, 1))
        return total

    return f


def growing_gathers(n: int) -> Program:
    """Gathered rows, columns and elements, and their scatters, of growing lengths, strides and bounds."""
    indices = [np.random.default_rng(i).integers(-i, i, 2 * i) for i in range(n + 1)]

    def f(a: Any) -> Any:
        total, out = 0.0, np.zeros_like(a)
        for i in range(1, n):
            part = a[:i, n - i :]
            rows, elements = part[indices[i]], part[indices[i], indices[i][::-1]]
            total = total + np.sum(rows**2) + np.sum(elements**3) + np.sum(part[:, indices[i][::2]] ** 2)
            out[indices[i], : n - i] = np.sin(a[0, i:])
            out[::2][indices[i // 2]] += a[i]
        return total + np.sum(out**2)

    return f


def kernels_of(f: Program, x: Any, monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """Compile a value with its gradient, and return its kernels."""
    tables: list[KernelTable] = []

    class Recorded(KernelTable):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            tables.append(self)

    monkeypatch.setattr(backend, "KernelTable", Recorded)
    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(x)
    assert compiled.report().splitlines()[0].endswith("compiled by llvm"), compiled.report()
    return [kernel for table in tables for kernel in table.kernels.values()]


@pytest.mark.parametrize(
    ("make", "sizes"), [(jacobi, (4, 10)), (triangular_solve, (24, 48)), (cholesky, (12, 18)), (growing_gathers, (12, 24))]
)
def test_kernel_count_is_independent_of_iterations(
    make: Callable[[int], Program], sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (kernels_of(make(n), rng.random((n, n) if make is not jacobi else 40), monkeypatch) for n in sizes)
    assert len(many) <= len(few) + 4  # the ends of loops may differ


@pytest.mark.parametrize("make", [jacobi, triangular_solve, cholesky, growing_statistics, growing_gathers])
@pytest.mark.parametrize("n", [3, 9, 21])
def test_kernel_programs_match_numpy(make: Callable[[int], Program], n: int) -> None:
    f, x = make(n), rng.random((n, n) if make is not jacobi else 37)
    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(x)
    other = rng.random(x.shape)
    value, slope = compiled(other)
    expected, expected_slope = ad.value_and_grad(f)(other)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-10, atol=1e-12)


def test_kernel_gathers_of_float32_rows() -> None:
    """Rows that are shorter than a vector, and those that are not, share a kernel."""
    f, x = growing_gathers(21), rng.random((21, 21)).astype(np.float32)
    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(x)
    for actual, expected in zip(compiled(x), ad.value_and_grad(f)(x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_kernel_sums_and_products_keep_bits() -> None:
    f, x = jacobi(12), rng.random(50)
    value, slope = cg.jit(ad.value_and_grad(f), cache=False).compile(x)(x)
    expected, expected_slope = ad.value_and_grad(f)(x)
    assert value == expected or abs(value - expected) < 1e-14 * abs(expected)  # only the sums are in another order
    np.testing.assert_array_equal(slope, expected_slope)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, bool])
def test_kernel_records_of_mixed_dtypes_and_layouts(dtype: Any) -> None:
    """Reads and writes of slices with all strides, and numbers that change in each iteration."""

    def f(a: Any) -> Any:
        out = np.zeros(a.shape, a.dtype)
        for k in range(1, 9):
            step = (-1) ** k * k
            part = a[::step][:3]
            if dtype is bool:
                out[k : k + len(part)] = ~part ^ out[k : k + len(part)]
            else:
                out[k : k + len(part)] = part * dtype(k) - dtype(2 * k + 1)
                out[k : k + 1] += out[k - 1 : k]
        return out

    x = (rng.random(30) * 50).astype(dtype)
    compiled = cg.jit(f, cache=False).compile(x)
    y = (rng.random(30) * 50).astype(dtype)
    np.testing.assert_array_equal(compiled(y), f(y))


def test_kernel_loops_of_different_lengths_share_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that start later are shorter, and their arrays are elsewhere."""

    def f(x: Any) -> Any:
        total = 0.0
        for i in range(6):
            row = x[i]
            for _ in range(20 + i):
                row = np.tanh(row) * 0.5 + x[i] * 0.1
            total = total + np.sum(row) * (i + 1.5)
        return total

    x = rng.random((6, 16))
    assert len(kernels_of(f, x, monkeypatch)) < 20
    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(x)
    for actual, expected in zip(compiled(x + 0.1), ad.value_and_grad(f)(x + 0.1), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("columns", [(), (7,)])
def test_kernel_sequences_of_equal_operations_share_code(columns: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are in random order, so that no loop covers them."""
    order = np.random.default_rng(1).permutation(24)

    def f(a: Any) -> Any:
        out = np.zeros_like(a)
        for i in order:
            out[i] = np.sin(a[i]) * np.cos(a[i]) + np.exp(a[i])
        return np.sum(out)

    nests = [kernel.example.unit for kernel in kernels_of(f, rng.random((24, *columns)), monkeypatch)]
    assert max(sum(step.operation == "sin" for step in nest.steps) for nest in nests if isinstance(nest, LoopNest)) <= 2


@pytest.mark.parametrize("columns", [(), (5,)])
@pytest.mark.parametrize("seed", range(6))
def test_kernel_nests_of_related_sequences_match_numpy(seed: int, columns: tuple[int, ...]) -> None:
    """Rows that are equal in structure, of which some read others, before or after these are overwritten."""
    random = np.random.default_rng(seed)
    rows = [tuple(map(int, random.integers(0, 40, 3))) for _ in range(60)]

    def f(a: Any) -> Any:
        out = np.ones_like(a)
        for target, source, earlier in rows:
            product = np.sin(a[source]) * 0.5
            out[target] = product + a[earlier] if target % 3 else product * out[earlier]
        return np.sum(out * out)

    x, y = random.random((2, 40, *columns))
    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(x)
    assert compiled.report().splitlines()[0].endswith("compiled by llvm"), compiled.report()
    for actual, expected in zip(compiled(y), ad.value_and_grad(f)(y), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_kernel_minimum_in_loops_with_writes() -> None:
    """Dynamic time warping: the choices of `np.minimum` differ between calls, and one program serves all of them."""

    def f(a: Any, b: Any) -> Any:
        d = np.full((7, 7), 1e3)
        d[0, 0] = 0.0
        for i in range(6):
            for j in range(6):
                d[i + 1, j + 1] = (a[i] - b[j]) ** 2 + np.minimum(np.minimum(d[i, j + 1], d[i + 1, j]), d[i, j])
        return d[6, 6]

    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(rng.random(6), rng.random(6))
    for _ in range(5):
        a, b = rng.random(6), rng.random(6)
        for actual, expected in zip(compiled(a, b), ad.value_and_grad(f)(a, b), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert "NumPy" not in compiled.report(), compiled.report()
    assert "program 2" not in compiled.report(), compiled.report()


def test_kernel_index_out_of_range_in_one_record() -> None:
    def f(x: Any, i: Any) -> Any:
        return sum(np.sum(x[i + k]) * k for k in range(5))

    x, i = np.arange(12.0), np.array([0, 3, 7])
    compiled = cg.jit(f, cache=False).compile(x, i)
    assert compiled(x, i) == f(x, i)
    with pytest.raises(IndexError):
        compiled(x, i + 2)
    assert compiled(x, i - 3) == f(x, i - 3)


@pytest.mark.parametrize(("iterations", "levels"), [(1, 0), (64, 0), (65, 1), (4096, 1), (4097, 2)])
def test_block_levels_of_iteration_counts(iterations: int, levels: int) -> None:
    assert block_levels(iterations) == levels


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(200))
def test_kernel_random_programs_of_slices_match_numpy(seed: int) -> None:
    """Programs of random statements on slices of two arrays agree with NumPy, with their gradients."""
    f, x, y = program_of_slices(seed)
    compiled = cg.jit(ad.value_and_grad(f), cache=False).compile(x)
    for actual, expected in zip(compiled(y), ad.value_and_grad(f)(y), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))
