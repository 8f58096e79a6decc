"""Long loops: extrapolated from a few iterations, or compiled with all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.compiled import loop_truncation
from tests.support.for_each import for_each
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm import backend
from compgraph.compiled.llvm.backend import TableProgram
from compgraph.compiled.llvm.buffer_ir import Buffer, BufferView, Loop, LoopIndex, Map
from compgraph.compiled.llvm.planning import StepProgram, extrapolation, loop_rerolling

Array = np.ndarray[Any, Any]
LENGTH = 200


@pytest.fixture
def cut_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short loops are cut too."""
    monkeypatch.setattr(loop_rerolling, "MIN_STEPS", 0)
    monkeypatch.setattr(loop_rerolling, "MIN_LOOP_STEPS", 8)
    monkeypatch.setattr(loop_truncation, "MIN_GRAPH_SIZE", 0)
    monkeypatch.setattr(loop_truncation, "MIN_ROWS", 0)


def is_cut(jitted: Any) -> bool:
    """Whether the program was extrapolated from a few iterations."""
    return any(isinstance(v.program, TableProgram) for p in jitted._caches_by_signature.values() for v in p.specializations)


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [np.asarray(value)]


def check_compiled(g: Callable[..., Any], *args: Array, cut: bool = True) -> Any:
    """The compiled function agrees with NumPy, also at other values."""
    jitted = compiled(g, *args)
    assert is_compiled(jitted), jitted.report()
    assert is_cut(jitted) == cut, jitted.source()
    single = args[0].dtype == np.float32
    for change in (lambda x: x, lambda x: (x[::-1] * 0.7 + 0.05).astype(x.dtype)):
        values = tuple(map(change, args))
        for actual, expected in zip(flat(jitted(*values)), flat(g(*values)), strict=True):
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=1e-4 if single else 1e-9, atol=1e-5 if single else 1e-11)
    assert is_compiled(jitted), jitted.report()
    return jitted


# ------------------------------------------------------------------------------------------------------- kinds of loops


def neighbors(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i] * x[i + 1]
    return total


def in_place(x: Any) -> Any:
    y = x.copy()
    for i in range(1, len(x)):
        y[i] += np.tanh(y[i - 1]) * 0.9
    return np.sum(y * y)


def two_back(x: Any) -> Any:
    a, b = x[0], x[1]
    for i in range(2, len(x)):
        a, b = b, np.tanh(a) * 0.5 + b * x[i]
    return a * b


def far_back(x: Any) -> Any:
    history = [x[k] for k in range(5)]
    for i in range(5, len(x)):
        history.append(history[-1] * 0.3 + history[-5] * x[i])
    return history[-1] + history[-3] + history[2]


def far_back_in_memory(x: Any) -> Any:
    y = x.copy()
    for i in range(9, len(x)):
        y[i] = np.sin(y[i - 9]) * 0.8 + y[i] * y[i - 1]
    return np.sum(y * y)


def numbers_that_change(x: Any) -> Any:
    y = x[0]
    for i in range(len(x)):
        y = y + 0.01 * (np.cos(0.1 * i) - x[i] * y) + x[1] * (0.3 - i) / (i + 1)
    return y


def numbers_that_change_late(x: Any) -> Any:
    y = x[0]
    for i in range(len(x)):
        y = y * 0.9 + x[i] * (0.5 if i < len(x) - 3 else -2.0)
    return y


def heat(u: Any) -> Any:
    u = u[:9].copy()
    for _ in range(LENGTH):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def fresh_arrays(x: Any) -> Any:
    u, history = x[:7], []
    for i in range(LENGTH):
        u = np.sin(u) * 0.5 + x[i] * u[::-1]
        history.append(u)
    return np.sum(history[3] * history[-1]) + np.sum(history[-4])


def own_buffers(x: Any) -> Any:
    total = x[0]
    for i in range(len(x)):
        y = np.zeros(3, x.dtype)
        y[0], y[1:] = total, x[i]
        y[2] += y[0]
        total = np.sum(y) * 0.3
    return total


def relax(x: Any) -> Any:
    """Equal statements that differ in the array: an iteration has twice their period."""
    a, b = x.copy(), np.zeros_like(x)
    for _ in range(len(x)):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3
    return np.sum(a * b)


def swap_buffers(x: Any) -> Any:
    y = x.copy()
    for i in range(len(x) - 1):
        y[i], y[i + 1] = y[i + 1] * 0.5, y[i] + 1.0
    return np.sum(y * np.arange(len(x)))


def backwards(x: Any) -> Any:
    total = x[0]
    for i in range(len(x) - 1, -1, -1):
        total = np.sin(total) + x[i] * x[i - 1]
    return total


def peel_first_iterations(x: Any) -> Any:
    total = x[3] * x[4]
    for i in range(len(x)):
        if i == 0:
            total = np.exp(total) * x[i]
        elif i == len(x) - 1:
            total = np.cos(total) / (2.0 + x[i])
        else:
            total = np.sin(total) + x[i]
    return total


def in_a_row(x: Any) -> Any:
    y, total = x.copy(), x[0]
    for i in range(1, len(x)):
        y[i] += y[i - 1] * 0.5
    middle = np.sum(y)
    for i in range(len(x) - 7):
        total = np.sin(total) * 0.5 + y[i] * middle * 0.01
    for i in range(len(x) - 1):
        total = total + y[i] * x[i + 1] * 0.1
    return total * middle


def within_loops(x: Any) -> Any:
    total = x[0]
    for i in range(140):
        for j in range(4):
            total = total * 0.9 + np.sin(x[i] - 2 * x[j])
        total = np.tanh(total)
    return total


def recurrent(x: Any) -> Any:
    h, m = np.zeros(4, x.dtype), x[:16].reshape(4, 4)
    for i in range(len(x)):
        h = np.tanh(m @ h + x[i])
    return np.sum(h * h)


def choose_by_values(x: Any) -> Any:
    total = x[0]
    for i in range(len(x)):
        total = np.where(total > x[i], total * 0.9, np.maximum(x[i], 0.2))
    return total


KINDS: list[Callable[..., Any]] = [
    neighbors, in_place, two_back, far_back, far_back_in_memory, numbers_that_change, numbers_that_change_late, heat,
    fresh_arrays, own_buffers, relax, swap_buffers, backwards, peel_first_iterations, in_a_row, within_loops, recurrent,
    choose_by_values,
]  # fmt: skip


def value(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, beside `ad.value_and_grad`."""
    return f


# Values alone are compiled as a part of values and gradients.
@for_each(
    ("f", "transform"),
    [*((f, ad.value_and_grad) for f in KINDS), *((f, value) for f in KINDS[::5])],
    rest=[(f, value) for k, f in enumerate(KINDS) if k % 5],
)
def test_long_loop_is_extrapolated(cut_soon: None, f: Callable[..., Any], transform: Any) -> None:
    check_compiled(transform(f), np.linspace(-0.8, 0.9, LENGTH) * 0.8)


def test_long_loop_is_detected_by_samples(cut_soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods of a long trace are looked for in a few parts of it."""
    monkeypatch.setattr(loop_truncation, "SAMPLE_SIZE", 100)
    check_compiled(ad.value_and_grad(neighbors), np.linspace(-0.6, 0.7, LENGTH))


@pytest.mark.parametrize("f", [numbers_that_change, in_place, recurrent])
def test_long_loop_in_single_precision(cut_soon: None, f: Callable[..., Any]) -> None:
    check_compiled(ad.value_and_grad(f), np.linspace(-0.6, 0.7, LENGTH).astype(np.float32))


def branch_on_values(x: Any) -> Any:
    total = x[0]
    for i in range(len(x)):
        total = total * 0.5 + x[i] if total > -100 else total
    return total


def triangular(x: Any) -> Any:
    total = x[0]
    for i in range(40):
        for j in range(i):
            total = total + x[i] * x[j] * 0.01
    return total


def read_backwards(x: Any) -> Any:
    terms, total = [np.exp(-x[i]) for i in range(len(x))], x[0]
    for i in range(len(x)):
        total = total * 0.5 + terms[len(x) - 1 - i] * terms[i]
    return total


def read_in_the_middle(x: Any) -> Any:
    history = [x[0]]
    for i in range(len(x)):
        history.append(np.sin(history[-1]) + x[i])
    return history[-1] * history[60]


def read_all(x: Any) -> Any:
    history = [x[0]]
    for i in range(len(x)):
        history.append(np.sin(history[-1]) + x[i])
    return np.sum(np.stack(history) ** 2)


def powers(x: Any) -> Any:
    total = x[0]
    for i in range(60):
        total = total * 0.5 + x[i] ** i
    return total


@pytest.mark.parametrize("f", [branch_on_values, triangular, read_backwards, read_in_the_middle, read_all, powers])
def test_long_loop_without_extrapolation_compiles_fully(cut_soon: None, f: Callable[..., Any]) -> None:
    x = np.linspace(0.1, 0.9, LENGTH)
    check_compiled(ad.value_and_grad(f), x, cut=False)


def test_long_loop_other_derivatives(cut_soon: None) -> None:
    x = np.linspace(0.1, 0.9, LENGTH)
    check_compiled(ad.grad(lambda x: np.sum(ad.grad(in_place)(x) ** 2)), x)
    check_compiled(lambda x: ad.hvp(two_back)(x, np.cos(x)), x)
    check_compiled(lambda x: ad.jvp(two_back, (x,), (np.sin(x),)), x)


def test_long_loop_nested_arguments_and_results(cut_soon: None) -> None:
    def f(p: Any, x: Any) -> Any:
        y, state = p["y"], p["s"] * 1.0
        for i in range(len(x)):
            y = np.sin(y) * p["a"] + x[i]
            state = state * 0.5 + y
        return np.sum(state), {"state": state, "two": 2.0}

    p = {"a": np.array([0.3, 0.7]), "s": np.arange(2.0), "y": np.ones(2)}
    jitted = cg.jit(ad.value_and_grad(f, has_aux=True), cache=False).compile(p, np.linspace(0, 1, LENGTH))
    assert is_cut(jitted), jitted.report()
    for actual, expected in zip(
        flat(jitted(p, np.linspace(1, 0, LENGTH))),
        flat(ad.value_and_grad(f, has_aux=True)(p, np.linspace(1, 0, LENGTH))),
        strict=True,
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_long_loop_in_exact_mode(cut_soon: None) -> None:
    def f(x: Any) -> Any:
        total = x[0]
        for i in range(len(x)):
            total = total * x[i] + 0.3 * i
        return total

    x = np.linspace(0.1, 0.9, LENGTH)
    jitted = cg.jit(ad.value_and_grad(f), cache=False, exact=True).compile(x)
    assert is_cut(jitted), jitted.report()
    for actual, expected in zip(flat(jitted(x)), flat(ad.value_and_grad(f)(x)), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_long_loop_warnings_match_numpy(cut_soon: None) -> None:
    def f(x: Any) -> Any:
        total = x[0]
        for i in range(len(x)):
            total = total * 0.5 + 1.0 / x[i]
        return total

    x = np.linspace(0.1, 0.9, LENGTH)
    jitted = compiled(f, x)
    assert is_cut(jitted)
    x[100] = 0.0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        expected = f(x)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert jitted(x) == expected
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("error")
        assert jitted(x) == expected


def test_long_loop_compares_globals_before_each_run(cut_soon: None) -> None:
    factors = [0.5]

    def f(x: Any) -> Any:
        total = x[0]
        for i in range(len(x)):
            total = total * factors[0] + x[i]
        return total

    x = np.linspace(0.1, 0.9, LENGTH)
    jitted = compiled(f, x)
    assert is_cut(jitted)
    factors[0] = 0.25
    np.testing.assert_allclose(jitted(x), f(x))


# ------------------------------------------------------------------------------------------------------- random loops


def _program(seed: int) -> Callable[[Any], Any]:
    """Loops of random statements that read values of this and of earlier iterations."""
    rng = np.random.default_rng(seed)
    loops = [rng.integers(0, 13, int(rng.integers(1, 5))).tolist() for _ in range(int(rng.integers(1, 3)))]
    iterations, shift = int(rng.integers(110, 150)), int(rng.integers(1, 5))
    late = rng.integers(1, 6, 2).tolist()

    def f(x: Any) -> Any:
        a, b, u, w = x[0], x[1] * 1.0, x[:5] * 1.0, np.zeros(5)
        y, history = np.zeros(LENGTH, x.dtype), [x[k] for k in range(6)]
        for statements in loops:
            for i in range(iterations):
                for statement in statements:
                    if statement == 0:
                        a = np.sin(a) * 0.9 + x[i]
                    elif statement == 1:
                        b = b * 0.5 + a * x[i + shift]
                    elif statement == 2:
                        y[i + 1] = y[i] * 0.5 + a
                    elif statement == 3:
                        y[i + shift] += b * 0.1
                    elif statement == 4:
                        u = u * 0.7 + a
                    elif statement == 5:
                        u[1:] = u[:-1] * 0.3 + x[i]
                    elif statement == 6:
                        history.append(a * history[-shift] * 0.5)
                    elif statement == 7:
                        a = a * (0.5 + 0.001 * i) + u[2] * 0.1
                    elif statement == 8:
                        y[2:12] = y[1:11] * 0.5 + u[0]
                    elif statement == 9:
                        a, b = b * 0.5, a
                    elif statement == 10:
                        v = y[i : i + 3]
                        v *= 0.9
                        b = b + v[0]
                    elif statement == 11:
                        y[i] = np.tanh(y[i + 7] + y[LENGTH - 1 - i] * 0.3 + x[i])
                    elif statement == 12:
                        w[1:] = u[:-1] * 0.4 + 0.1
                        u[1:] = w[:-1] * 0.4 + 0.1
        total = a + b * 0.5 + np.sum(u) + np.sum(y * y)
        for k in late:
            total = total + history[-k] * (k + 1)
        return total

    return f


@for_each("seed", range(4), rest=range(4, 40))
def test_long_loop_random_programs_match_numpy(cut_soon: None, seed: int) -> None:
    x = np.random.default_rng(seed).uniform(-0.8, 0.8, LENGTH)
    f = _program(seed)
    for g in (f, ad.value_and_grad(f)):
        jitted = compiled(g, x)
        assert is_compiled(jitted), jitted.report()
        for values in (x, np.cos(3 * x) * 0.6):
            for actual, expected in zip(flat(jitted(values)), flat(g(values)), strict=True):
                np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


# ------------------------------------------------------------------------------------------------------- failed extrapolation


def test_long_loop_wrong_extrapolation_is_not_used(cut_soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(programs: Any, iterations: Any, lengths: Any) -> Any:
        requests.append(lengths)
        return extrapolation.extrapolate(programs, iterations, tuple(n - 1 for n in lengths))

    requests: list[Any] = []
    monkeypatch.setattr(backend, "extrapolate", wrong)
    check_compiled(ad.value_and_grad(neighbors), np.linspace(0.1, 0.9, LENGTH), cut=False)
    assert requests == [(LENGTH - 2,)] or requests == [(LENGTH - 1,)]


@pytest.mark.parametrize("broken", ["truncate_graph", "retrace_graph", "select_guards"])
def test_long_loop_failing_with_few_iterations_compiles_fully(
    cut_soon: None, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Also where the function catches the error."""

    def fails(*args: Any) -> Any:
        raise ValueError("broken")

    def careless(x: Any) -> Any:
        try:
            return ad.grad(neighbors)(x)
        except Exception:
            return x * 2

    monkeypatch.setattr(loop_truncation, broken, fails)
    x = np.linspace(0.1, 0.9, LENGTH)
    check_compiled(ad.value_and_grad(neighbors), x, cut=False)
    check_compiled(careless, x, cut=False)


def _loop(iterations: int, offset: int, by: int, size: int) -> StepProgram:
    """A program with one loop, that writes into a buffer."""
    buffer, own, counter = Buffer(np.dtype(float), 40, is_external=True), Buffer(np.dtype(float), size), LoopIndex(iterations)
    out = BufferView(own, offset, (), (), ((counter, by),))
    step = Map("copy", (BufferView(buffer, 0, (), (), ((counter, 1),)),), out, np.dtype(float))
    return StepProgram([Loop(counter, [step])], [buffer], [BufferView(own, 0, (size,), (1,))])


def test_extrapolation_of_growing_numbers() -> None:
    program = extrapolation.extrapolate([_loop(n, n - 1, -1, n) for n in (5, 6, 9)], [(5,), (6,), (9,)], (30,))
    (loop,) = program.steps
    (step,) = loop.steps
    assert loop.loop_index.trip_count == 30
    assert (step.out.offset, step.out.buffer.size, step.out.loop_strides) == (29, 30, ((loop.loop_index, -1),))
    assert program.outputs[0].buffer is step.out.buffer
    assert program.inputs[0] is step.operands[0].buffer


@pytest.mark.parametrize(
    ("programs", "trip_count", "what"),
    [
        ([_loop(n, n * n, 0, 100) for n in (5, 6, 9)], 12, "not linear"),
        ([_loop(n, n - 1, -1, n) for n in (5, 6)] + [_loop(9, 8, -1, 10)], 12, "not linear"),
        ([_loop(n, n - 1, -1, n) for n in (5, 6)] + [StepProgram([], [None], [])], 12, "differ in structure"),
        ([_loop(n, n - 1, -1, n) for n in (5, 6, 9)], 41, "out of bounds"),
        ([_loop(n, 0, 1, 30) for n in (5, 6, 9)], 31, "out of bounds"),
    ],
)
def test_extrapolation_of_uneven_growth_is_rejected(programs: Any, trip_count: int, what: str) -> None:
    with pytest.raises(NotImplementedError, match=what):
        extrapolation.extrapolate(programs, [(5,), (6,), (9,)], (trip_count,))


# ------------------------------------------------------------------------------------------------------- very long ones


@pytest.mark.exhaustive
@pytest.mark.parametrize("iterations", [10_001])
@pytest.mark.parametrize("f", [neighbors, in_place, numbers_that_change])
def test_long_loop_of_very_many_iterations(f: Callable[..., Any], iterations: int) -> None:
    check_compiled(ad.value_and_grad(f), np.random.default_rng(1).uniform(-0.5, 0.5, iterations))


@pytest.mark.exhaustive
def test_long_loop_of_hundred_thousand_iterations() -> None:
    x = np.random.default_rng(1).uniform(-0.5, 0.5, 100_001)
    jitted = cg.jit(ad.value_and_grad(neighbors), cache=False).compile(x)
    assert is_cut(jitted), jitted.report()
    value, slope = jitted(x)
    np.testing.assert_allclose(value, np.dot(x[1:], x[:-1]), rtol=1e-12)
    np.testing.assert_allclose(slope, np.append(x[1:], 0) + np.append(0, x[:-1]), rtol=1e-12)
    assert len(jitted.source().splitlines()) < 60


def test_long_loop_with_living_placeholder() -> None:
    """While one lives lengths are guarded; a program is of one shape."""
    placeholder = cg.placeholder((3,), name="p")
    f = ad.value_and_grad(neighbors)
    jitted = cg.jit(f).compile(np.linspace(0.0, 1.0, 4000))
    assert is_cut(jitted)
    assert placeholder.shape == (3,)
