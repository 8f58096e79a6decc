"""Loop rerolling of straight-line traces: right for all kinds of dependence, small code, short compilation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.planning import loop_rerolling
from compgraph.compiled.loop_periodicity import find_unrolled_loops

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are looked for in short programs too."""
    monkeypatch.setattr(loop_rerolling, "MIN_STEPS", 0)
    monkeypatch.setattr(loop_rerolling, "MIN_LOOP_STEPS", 8)


def loops_in(jitted: Any) -> int:
    return sum(line.lstrip().startswith("repeat ") for line in jitted.source().splitlines())


def check_loop(g: Callable[..., Any], *args: Array, loops: int = 1) -> None:
    """Compile a function with at least so many loops, and compare with NumPy, also at other values."""
    jitted = compiled(g, *args)
    assert is_compiled(jitted), jitted.report()
    assert loops_in(jitted) >= loops, jitted.source()
    for change in (lambda x: x, lambda x: (x[::-1] * 0.7 + 0.1).astype(x.dtype)):
        values = tuple(map(change, args))
        single = values[0].dtype == np.float32
        for actual, expected in zip(_flat(jitted(*values)), _flat(g(*values)), strict=True):
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=1e-4 if single else 1e-9, atol=1e-5 if single else 1e-11)
    assert is_compiled(jitted), jitted.report()


def value(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, beside `ad.value_and_grad`."""
    return f


def _flat(value: Any) -> list[Any]:
    return [np.asarray(v) for v in value] if isinstance(value, tuple) else [np.asarray(value)]


# ------------------------------------------------------------------------------------------------------- kinds of loops


def neighbors(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i] * x[i + 1]
    return total


def in_place(x: Any) -> Any:
    y = np.zeros(len(x), x.dtype)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * np.asarray(0.9, x.dtype) + x[i]
    return np.sum(y * y)


def two_back(x: Any) -> Any:
    a, b = x[0], x[1]
    for i in range(2, len(x)):
        a, b = b, np.tanh(a) * 0.5 + b * x[i]
    return a * b


def far_back(x: Any) -> Any:
    history = [x[0], x[1], x[2], x[3], x[4]]
    for i in range(5, len(x)):
        history.append(history[-1] * 0.3 + history[-5] * x[i])
    return history[-1] + history[7]


def backwards(x: Any) -> Any:
    terms = [np.exp(-x[i]) for i in range(len(x))]
    total = x[0]
    for i in range(len(x)):
        total = total * 0.5 + terms[len(x) - 1 - i] * terms[i]
    return total


def every_other(x: Any) -> Any:
    terms = [np.sin(x[i]) for i in range(len(x))]
    total = 0.0
    for i in range(0, len(x), 2):
        total = total + terms[i] * x[i]
    return total


def numbers_that_change(x: Any) -> Any:
    y = x[0]
    for i in range(len(x)):
        y = y + 0.01 * (np.cos(0.1 * i) - x[i] * y)
    return y


def numbers_for_vectors(x: Any) -> Any:
    u, v, y = x[:5] * 1.0, x[5:10] * 1.0, np.zeros((20, 3), x.dtype)
    for i in range(12):
        u = np.sin(u) * 0.5 + 0.1 * i
        v[np.array([0, 3])] = 0.2 * i
        v = v * x[i] + u
        y[i] = x[i] * (0.5 - i)
    return np.sum(u * v) + np.sum(y * y)


def heat(u: Any) -> Any:
    u = u.copy()
    for _ in range(12):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def fresh_arrays(x: Any) -> Any:
    u, history = x, []
    for i in range(12):
        u = np.sin(u) * 0.5 + x[i] * u[::-1]
        history.append(u)
    return np.sum(history[3] * history[-1]) + np.sum(u)


def within_loops(x: Any) -> Any:
    total = x[0]
    for i in range(12):
        for j in range(10):
            total = total * 0.9 + np.sin(x[i] - 2 * x[j])
        total = np.tanh(total)
    return total


def triangular(x: Any) -> Any:
    total = x[0]
    for i in range(len(x)):
        for j in range(i):
            total = total + x[i] * x[j] * 0.01
    return total


def recurrent(w: Any, x: Any) -> Any:
    h = np.zeros(4, x.dtype)
    m = w[:16].reshape(4, 4)
    for i in range(len(x)):
        h = np.tanh(m @ h + x[i])
    return np.sum(h * h)


def read_first(x: Any) -> Any:
    history, total = [], 0.0
    for i in range(len(x)):
        history.append(np.sin(x[i]))
        total = total + history[0] * history[-1]
    return total + history[1] * history[10]


def swap_buffers(x: Any) -> Any:
    y = x.copy()
    for i in range(len(x) - 1):
        y[i], y[i + 1] = y[i + 1] * 0.5, y[i] + 1.0
    return np.sum(y * np.arange(len(x)))


def own_buffers(x: Any) -> Any:
    total = x[0]
    for i in range(len(x)):
        y = np.zeros(3, x.dtype)
        y[0], y[1:] = total, x[i]
        y[2] += y[0]
        total = np.sum(y) * 0.3
    return total


KINDS: list[Callable[..., Any]] = [
    neighbors, in_place, two_back, far_back, backwards, every_other, numbers_that_change, numbers_for_vectors, heat,
    fresh_arrays, within_loops, triangular, read_first, swap_buffers, own_buffers,
]  # fmt: skip


CASES = [*product(KINDS, [ad.value_and_grad, value], [np.float64, np.float32])]
SAMPLE = [(f, ad.value_and_grad, (np.float64, np.float32)[k % 2]) for k, f in enumerate(KINDS)]
SAMPLE += [(f, value, (np.float64, np.float32)[k % 2]) for k, f in enumerate(KINDS[::4])]


@for_each(("f", "transform", "dtype"), SAMPLE, rest=[case for case in CASES if case not in SAMPLE])
def test_repeated_statements_become_loop(f: Callable[..., Any], transform: Any, dtype: Any) -> None:
    check_loop(transform(f), np.linspace(-0.8, 0.9, 31).astype(dtype) * np.asarray(0.8, dtype))


@pytest.mark.parametrize("transform", [ad.value_and_grad, value])
def test_products_in_loop_match_numpy(transform: Any) -> None:
    check_loop(transform(recurrent), np.linspace(-0.5, 0.5, 30), np.linspace(0.1, 1.0, 30))


def test_nested_loops_become_nested_loops() -> None:
    source = compiled(within_loops, np.linspace(0.0, 1.0, 20)).source()
    assert "\n    repeat " in source or source.startswith("    repeat "), source


@pytest.mark.parametrize(
    "derivative",
    [ad.hessian(neighbors), lambda x: ad.hvp(neighbors)(x, np.cos(x)), lambda x: ad.jvp(neighbors, (x,), (np.sin(x),))],
    ids=["hessian", "hvp", "jvp"],
)
def test_loops_other_derivatives(derivative: Any) -> None:
    x = np.linspace(0.1, 0.9, 40)
    jitted = compiled(derivative, x)
    assert is_compiled(jitted), jitted.report()
    for values in (x, x[::-1] * 0.7):
        for actual, expected in zip(_flat(jitted(values)), _flat(derivative(values)), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_long_loop_compiles_to_bounded_code() -> None:
    jitted = compiled(ad.value_and_grad(neighbors), np.linspace(0.0, 1.0, 600))
    assert loops_in(jitted) <= 4
    assert len(jitted.llvm().splitlines()) < 400
    assert len(jitted.source().splitlines()) < 60


def test_loop_of_booleans_and_integers() -> None:
    def f(x: Any) -> Any:
        count, total = np.zeros(len(x), np.int64), 0.0
        for i in range(1, len(x)):
            above = x[i] > x[i - 1]
            count[i] = count[i - 1] + np.where(above, i, 0)
            total = np.where(above, total + x[i], total)
        return total * 1.0 + np.sum(count * x)

    for g in (f, ad.value_and_grad(f)):
        check_loop(g, np.sin(np.arange(30.0)), loops=0)


# -------------------------------------------------------------------------------------------------------- random loops


def _program(seed: int) -> Callable[[Any], Any]:
    """A loop of random statements that read values of this and of earlier iterations."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 14, int(rng.integers(2, 6))).tolist()
    iterations, inner, shift = int(rng.integers(9, 16)), int(rng.integers(8, 11)), int(rng.integers(1, 5))
    late = rng.integers(0, 9, 3).tolist()

    def f(x: Any) -> Any:
        a, b, u = x[0], x[1] * 1.0, x[:5] * 1.0
        y, history = np.zeros(40, x.dtype), [x[k] for k in range(6)]
        for i in range(iterations):
            for statement in chosen:
                if statement == 0:
                    a = np.sin(a) * 0.9 + x[i]
                elif statement == 1:
                    b = b * 0.5 + a * x[i + shift]
                elif statement == 2:
                    y[i + 1] = y[i] * 0.5 + a
                elif statement == 3:
                    y[i] += b * 0.1
                elif statement == 4:
                    u = u * 0.7 + a
                elif statement == 5:
                    u[1:] = u[:-1] * 0.3 + x[i]
                elif statement == 6:
                    history.append(a * history[-shift] * 0.5)
                elif statement == 7:
                    b = b + history[-1 - i % 2] * 0.2
                elif statement == 8:
                    for j in range(inner):
                        b = b * 0.8 + x[j] * y[j] * 0.1
                elif statement == 9:
                    a = a * np.cos(0.1 * i) + u[i % 3] * 0.1
                elif statement == 10:
                    y[2:12] = y[1:11] * 0.5 + u[0]
                elif statement == 11:
                    history.append(np.sum(u * 0.2))
                elif statement == 12:
                    a, b = b * 0.5, a
                elif statement == 13:
                    v = y[i : i + 3]
                    v *= 0.9
                    b = b + v[0]
        total = a + b * 0.5 + np.sum(u) + np.sum(y * y)
        for k in late:
            total = total + history[k % len(history)] * (k + 1)
        for k in range(iterations):
            total = total + history[(iterations - k) % len(history)] * x[k]
        return total

    return f


@for_each("seed", range(6), rest=range(6, 60))
def test_random_loops_match_numpy(seed: int) -> None:
    x = np.random.default_rng(seed).uniform(-0.8, 0.8, 24)
    f = _program(seed)
    for g in (f, ad.value_and_grad(f)):
        jitted = compiled(g, x)
        assert is_compiled(jitted), jitted.report()
        for values in (x, np.cos(3 * x) * 0.6):
            for actual, expected in zip(_flat(jitted(values)), _flat(g(values)), strict=True):
                np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


def test_changing_numbers_become_tables() -> None:
    jitted = compiled(numbers_that_change, np.linspace(0.0, 1.0, 40))
    assert loops_in(jitted) == 1
    assert "0x3FEF" not in jitted.llvm()  # cos(0.1) as a constant of straight-line code


def test_loops_with_common_steps_run_each_step_once() -> None:
    """The last steps of one loop begin the pattern of the next; they belong to one of them."""

    def f(x: Any) -> Any:
        y, z, w = x.copy(), x.copy(), x * 1
        for _ in range(40):
            y += x
            z *= 1.01
            w += z
        for _ in range(40):
            y -= x
            z *= 1.01
            w += z
        return y, z, w

    x = np.arange(1.0, 5.0)
    jitted = compiled(f, x)
    assert is_compiled(jitted), jitted.report()
    for actual, expected in zip(jitted(x + 1), f(x + 1), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-13)


def test_unrolled_loops_are_disjoint() -> None:
    kinds = np.array([0, 1, 2] * 10 + [3, 1, 2] * 10)
    table = SimpleNamespace(kinds=kinds, integers=np.zeros((60, 1), int), may_change=np.zeros((60, 1), bool))
    loops = find_unrolled_loops(table, 1)
    assert len(loops) == 2
    assert loops[0].stop <= loops[1].start
