"""NumPy's constructors are patched while a function is differentiated, and only then."""

from __future__ import annotations

import functools
import math
import threading
import types
from typing import Any

import numpy as np
import pytest
from numpy import zeros as made_by_name

import autodiff as ad
import compgraph as cg
from compgraph.interception import intercept
from compgraph.interception.patched_names import _differentiation_patches

ORIGINALS = {(id(space), name): (space, name, space[name]) for space, name, _ in _differentiation_patches()}
X = np.array([0.8, 1.3])
TABLE = np.ones(2)


def is_restored() -> bool:
    return all(space[name] is original for space, name, original in ORIGINALS.values()) and type(TABLE) is np.ndarray


def fill_buffer(x: Any) -> Any:
    a = np.zeros(2)
    a[0] = x[0] ** 2
    return np.sum(a)


def test_patched_names_are_restored() -> None:
    assert ad.grad(fill_buffer)(X).tolist() == [1.6, 0.0]
    assert is_restored()
    with pytest.raises(ZeroDivisionError):
        ad.grad(lambda x: fill_buffer(x) / 0 if np.zeros(1) is None else 1 // 0)(X)
    assert is_restored()


def test_patched_names_imported_directly() -> None:
    def f(x: Any) -> Any:
        a = made_by_name(2)
        a[1] = x[1]
        return np.sum(a)

    before = made_by_name
    assert ad.grad(f)(X).tolist() == [0.0, 1.0]
    assert made_by_name is before


def test_patched_names_bound_later() -> None:
    space: dict[str, Any] = {"np": np}
    exec("def f(x):\n    a = late(2)\n    a[0] = x[0]\n    return np.sum(a)\n", space)
    space["late"] = np.zeros
    assert ad.grad(space["f"])(X).tolist() == [1.0, 0.0]
    space["late"] = replacement = lambda n: np.ones(n)
    assert ad.grad(space["f"])(X).tolist() == [1.0, 0.0]
    assert space["late"] is replacement


def test_patched_name_rebound_meanwhile_is_kept() -> None:
    module = types.ModuleType("someone")
    exec("from numpy import ones\ndef f(x):\n    global ones\n    ones = len\n    return x[0] * ones([1, 2])\n", vars(module))
    assert ad.grad(module.f)(X).tolist() == [2.0, 0.0]
    assert module.ones is len


def test_patched_names_in_other_threads_are_numpys() -> None:
    kinds: list[Any] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: kinds.append((type(np.zeros(2)), type(np.linspace(0, 1, 3)), math.sin(0.5))))
        thread.start()
        thread.join()
        return fill_buffer(x)

    assert ad.grad(f)(X).tolist() == [1.6, 0.0]
    assert kinds == [(np.ndarray, np.ndarray, math.sin(0.5))]


def test_patched_names_in_many_threads() -> None:
    def f(x: Any) -> Any:
        a = TABLE.copy()
        for _ in range(5):
            a[0] = a[0] * x[0]
        return a[0] + math.exp(x[1]) * TABLE[1]

    wrong: list[Any] = []

    def work() -> None:
        for _ in range(40):
            gradient = ad.grad(f)(X)
            if not np.allclose(gradient, [5 * X[0] ** 4, math.exp(X[1])]):
                wrong.append(gradient)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert is_restored()


def test_patched_names_in_nested_operators() -> None:
    def outer(x: Any) -> Any:
        a = np.zeros(2)
        a[:] = ad.grad(fill_buffer)(x)
        return np.sum(a**2)

    np.testing.assert_allclose(ad.grad(outer)(X), [8 * X[0], 0.0])
    np.testing.assert_allclose(ad.jvp(outer, (X,), (X,))[1], 8 * X[0] ** 2)
    assert is_restored()


def test_interception_disabled_raises_on_leaks() -> None:
    cg.interception(False)
    try:
        with pytest.raises(cg.LeakError):
            ad.grad(fill_buffer)(X)
        with pytest.raises(cg.LeakError):
            ad.grad(lambda x: math.sin(x[0]))(X)
    finally:
        cg.interception(True)
    assert ad.grad(fill_buffer)(X).tolist() == [1.6, 0.0]


def test_interception_cannot_be_disabled_within_operator() -> None:
    with pytest.raises(RuntimeError, match="while a function is differentiated"):
        ad.grad(lambda x: cg.interception(False) or fill_buffer(x))(X)
    assert is_restored()


def test_c_code_that_makes_arrays_raises() -> None:
    spatial = pytest.importorskip("scipy.spatial")
    with pytest.raises(cg.LeakError, match="ConvexHull"):
        ad.grad(lambda x: spatial.ConvexHull(np.vstack([np.eye(2), -np.eye(2), x])).volume)(X)


def test_patched_names_with_patched_numpy() -> None:
    def f(x: Any) -> Any:
        with cg.patched_numpy():
            a = np.zeros(2)
            a[1] = x[1]
        return np.sum(a) + fill_buffer(x)

    assert ad.grad(f)(X).tolist() == [1.6, 1.0]
    with cg.patched_numpy():
        assert ad.grad(f)(X).tolist() == [1.6, 1.0]
    assert is_restored()


@pytest.mark.parametrize(
    ("draw", "slope"),
    [
        (lambda rng, x: rng.normal(x[0], x[1]), lambda d, x: [1.0, (d - x[0]) / x[1]]),
        (
            lambda rng, x: rng.uniform(x[0], 2 + x[1]),
            lambda d, x: [1 - (d - x[0]) / (2 + x[1] - x[0]), (d - x[0]) / (2 + x[1] - x[0])],
        ),
        (lambda rng, x: rng.exponential(x[1]), lambda d, x: [0.0, d / x[1]]),
        (lambda rng, x: rng.lognormal(x[0], x[1]), lambda d, x: [d, d * (np.log(d) - x[0]) / x[1]]),
        (lambda rng, x: rng.weibull(x[1]), lambda d, x: [0.0, -d * np.log(d) / x[1]]),
        (lambda rng, x: rng.pareto(x[1]), lambda d, x: [0.0, -(d + 1) * np.log(d + 1) / x[1]]),
    ],
)
def test_random_draws_follow_parameters(draw: Any, slope: Any) -> None:
    sample = draw(np.random.default_rng(7), X)
    outside = np.random.default_rng(7)
    for generator in (lambda: np.random.default_rng(7), lambda: outside):
        value, gradient = ad.value_and_grad(lambda x, generator=generator: draw(generator(), x))(X)
        np.testing.assert_allclose(value, sample, rtol=1e-14)
        np.testing.assert_allclose(gradient, slope(sample, X), rtol=1e-12)
    state = np.random.default_rng(7)
    draw(state, X)
    assert outside.bit_generator.state == state.bit_generator.state


def test_random_draws_without_derivative_raise() -> None:
    with pytest.raises(TypeError, match="standard"):
        ad.grad(lambda x: np.random.default_rng(1).gamma(x[0]))(X)
    with pytest.raises(TypeError, match="standard"):
        ad.grad(lambda x: np.random.poisson(x[0]) * x[1])(X)  # noqa: NPY002


def test_padded_list_of_nodes_does_not_recurse() -> None:
    """It called itself until Python's stack overflowed."""
    x = np.array([1.0, 2.0])
    for mode, slopes in {"constant": [8.0, 16.0], "edge": [32.0, 64.0]}.items():
        for operator in (ad.grad, ad.jacfwd):
            gradient = operator(lambda x, mode=mode: np.sum(np.pad([[x, x], [x, -x]], ((1, 1), (1, 1), (0, 0)), mode) ** 2))(x)
            assert gradient.tolist() == slopes
    assert ad.grad(lambda x: np.sum(np.pad((x[0], 3.0), (1, 2), constant_values=x[1]) ** 2))(x).tolist() == [2, 12]


def test_patched_names_in_nested_parameters_and_operators() -> None:
    """Names are exchanged only where something unknown may be called, since that costs more than a small function."""

    def f(p: Any, x: Any) -> Any:
        return np.sum(np.tanh(x @ p["layers"][0][0] + p["b"]) ** 2)

    p = {"layers": [(np.ones((2, 3)), np.ones(3))], "b": np.ones(3)}
    with intercept(ad.grad(ad.grad(f)), (p, X)) as opened:
        assert opened.calls_only_numpy
    hidden = {"layers": [(np.ones((2, 3)), lambda: np.zeros(2))]}
    looped: list[Any] = []
    looped.append(looped)
    for argument in (hidden, {fill_buffer: 1}, looped, [X] * 100):
        with intercept(ad.grad(f), (argument, X)) as opened:
            assert not opened.calls_only_numpy


def test_patched_names_in_partials() -> None:
    """It may create arrays, as ``filled`` does."""
    inner = functools.partial(lambda g, x: np.sum(x), [fill_buffer])
    with intercept(ad.grad(inner), (X,)) as opened:
        assert opened.calls_only_numpy is False
    of_model = functools.partial(lambda model, x: model.run(x), types.SimpleNamespace(run=fill_buffer))
    assert ad.vmap(ad.grad(of_model))(np.stack([X, X])).tolist() == [[1.6, 0.0]] * 2
