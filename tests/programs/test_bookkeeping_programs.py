"""Programs with buffers of every origin, integer bookkeeping, and functions of `math`."""

from __future__ import annotations

import cmath
import itertools
import math
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures

POINT = np.array([0.7, 1.3, 2.1])
STEPS = 1e-6 * np.eye(3)


def fill_buffer(array: Any, p: Any) -> Any:
    """A function of a buffer and its contents, with nodes written into it."""
    array[0] = p[0]
    array[1:3] *= p[1] * p[2]
    array += p[2]
    return np.sum(array * array)


def with_generator(p: Any) -> Any:
    rng = np.random.default_rng(0)
    return fill_buffer(rng.normal(size=4), p) + fill_buffer(rng.random(4), p) + fill_buffer(rng.permutation(4) * 1.0, p)


def with_points(p: Any) -> Any:
    x, y = np.meshgrid(np.arange(3), np.arange(3))
    return fill_buffer((x * 1.0)[0], p) + fill_buffer(y[1] / 2, p)


BUFFERS: dict[str, Callable[[Any], Any]] = {
    "arange times a number": lambda p: fill_buffer(np.arange(4) * 0.1, p),
    "integer zeros": lambda p: fill_buffer(np.zeros(4, int) * 1.0, p),
    "mask": lambda p: fill_buffer((np.arange(4) > 1) * 0.5, p),
    "square root of integers": lambda p: fill_buffer(np.sqrt(np.arange(1, 5) ** 2), p),
    "windows": lambda p: fill_buffer(np.hanning(5), p) + fill_buffer(np.hamming(5), p) + fill_buffer(np.kaiser(5, 2.0), p),
    "frequencies": lambda p: fill_buffer(np.fft.fftfreq(5, 0.1), p) + fill_buffer(np.fft.rfftfreq(6), p),
    "mgrid": lambda p: fill_buffer(np.mgrid[0:1:4j], p) + fill_buffer(np.mgrid[0:3, 0:3][0].ravel() * 1.0, p),
    "ogrid": lambda p: fill_buffer(np.ogrid[0:1:4j], p),
    "meshgrid": with_points,
    "indices": lambda p: fill_buffer(np.hypot(*np.indices((3, 3)))[2], p),
    "fromfunction": lambda p: fill_buffer(np.fromfunction(lambda i: i / 2, (4,)), p),
    "Gauss points": lambda p: fill_buffer(np.polynomial.legendre.leggauss(4)[1], p),
    "generator": with_generator,
    "count of a node": lambda p: fill_buffer(np.zeros((p > 0).sum()), p) + fill_buffer(np.ones(np.count_nonzero(p > 0)), p),
    "points of a node": lambda p: (
        fill_buffer(np.linspace(0, 1, (p > 0).sum()), p) + fill_buffer(np.arange((p > 0).sum()) * 0.5, p)
    ),
    "updated by a list": lambda p: fill_buffer(np.zeros(3).__iadd__([p[0], p[1], 2.0]), p) + np.sum(np.ones(2) * [p[0], p[2]]),
    "list of a length": lambda p: sum([None if k else p[0] for k in range(3)][:1]) * len([None] * np.argmax(p)),
}


def write_by_mask(p: Any) -> Any:
    mask = np.zeros(3, bool)
    mask |= p < 1
    mask ^= p > 2
    return np.sum(p**2 * mask) + np.sum(p[mask])


def count_values(p: Any) -> Any:
    count, cells = np.zeros(3, int), np.zeros(4, int)
    count += p > 1
    count[p > 2] += 3
    np.add.at(cells, np.floor(p).astype(int), 1)
    return np.sum(p * count) + np.sum(p * cells[:3])


def visit_nodes(p: Any) -> Any:
    is_visited, total = np.zeros(3, bool), 0.0
    for _ in range(3):
        k = np.argmax(np.where(is_visited, -np.inf, p))
        is_visited[k] = True
        total = 2 * total + p[k] ** 2
    return total


def label_values(p: Any) -> Any:
    labels, order = np.zeros(3, int), np.zeros(3, int)
    labels[p > 1] = 2
    order[:] = np.argsort(-p)
    cells = np.empty(3, int)
    for k in range(3):
        cells[k] = np.floor(p[k])
    np.putmask(labels, p > 2, 1)
    return np.sum(labels * p) + np.sum(p[order] * np.arange(3)) + np.sum(cells * p**2)


def histogram(p: Any) -> Any:
    sums, counts = np.zeros(3), [1] * 3
    for v in p:
        sums[int(v)] += v
        counts[int(v)] += 1
    return np.sum(sums**2 / counts)


def union_find(p: Any) -> Any:
    parent, total = np.arange(3), 0.0
    order = np.argsort(p)
    for a, b in itertools.pairwise(order):
        if parent[a] != parent[b]:
            parent[parent == parent[a]] = parent[b]
            total += (p[b] - p[a]) ** 2
    return total


def _add_at(array: Any, p: Any) -> Any:
    np.add.at(array, [0, 2, 2], [p[0], p[1], p[2] ** 2])
    cells = np.floor(p / 2).astype(int)
    np.add.at(square := np.zeros((3, 3)), (cells, cells), p**2)
    array *= np.sum(square**2)
    return np.sum(array**2)


def in_threads(p: Any) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(math.sin, p)) + sum(pool.map(lambda v: math.exp(v) * math.hypot(v, 1.0), p))


def integrand(p: Any) -> Any:
    def f(t: float) -> Any:
        parts = np.zeros(2)
        parts[0], parts[1] = p[0] * t, math.cos(p[1] * t)
        return np.sum(parts**2)

    return quad(f, 0, p[2])[0]


def scalars(p: Any) -> Any:
    fraction, whole = math.modf(p[2])
    mantissa, exponent = math.frexp(p[1])
    return fraction**2 * whole + mantissa * exponent + math.ldexp(p[0], 2)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    **{
        f.__name__: f
        for f in (write_by_mask, count_values, visit_nodes, label_values, histogram, union_find, in_threads, scalars)
    },
    "hypot": lambda p: math.hypot(*p) + math.hypot(p[0]) + math.hypot(*p, 1.0),
    "trunc": lambda p: math.trunc(p[2]) * p[0] + math.floor(p[1]) * p[1] + math.ceil(p[0]) * p[2],
    "remainder": lambda p: math.remainder(p[2], p[0] + 0.1) + math.fmod(p[2], p[1]) + math.copysign(p[0], -p[1]),
    "isclose": lambda p: p[1] ** 2 if math.isclose(p[0], 0.7, rel_tol=0.2) and not math.isnan(p[1]) else p[2],
    "several": lambda p: math.dist(p[:2], p[1:]) + math.prod(p) + math.fsum([p[0], p[1] ** 2]) + math.log(p[2], p[1]),
    "cmath": lambda p: abs(cmath.exp(1j * p[0]) * cmath.sqrt(-p[1])) + cmath.phase(p[0] + 1j * p[2]),
    "reduce": lambda p: (
        np.sum(np.maximum.reduce([p, p**2, 2 - p])) + np.logaddexp.reduce([p[0], p[1]]) + np.add.accumulate([p, p])[1, 0]
    ),
    "at": lambda p: _add_at(np.zeros(3), p),
    "quad": lambda p: quad(lambda t: math.exp(-p[0] * t), 0, 1)[0] * p[1],
    "quad of a buffer": integrand,
}

# The corpus of SciPy has dblquad in every run.
LONG: dict[str, Callable[[Any], Any]] = {
    "dblquad": lambda p: dblquad(lambda y, x: math.exp(-p[0] * x * y) + math.hypot(p[1], x), 0, 1, 0, 1)[0],
}


@pytest.mark.parametrize(
    "programs",
    [
        pytest.param(BUFFERS, id="buffers"),
        pytest.param(PROGRAMS, id="bookkeeping"),
        pytest.param(LONG, id="dblquad", marks=pytest.mark.exhaustive),
    ],
)
def test_bookkeeping_program_derivatives(programs: dict[str, Callable[[Any], Any]]) -> None:
    with Failures("derivatives of programs") as failures:
        for name, f in programs.items():
            with failures.case(name):
                check_derivatives(f)


def check_derivatives(f: Callable[[Any], Any]) -> None:
    expected = np.array([(f(POINT + e) - f(POINT - e)) / 2e-6 for e in STEPS])
    compiled = cg.jit(ad.grad(f))
    for derivative in (ad.grad(f)(POINT), ad.jacfwd(f)(POINT), *[compiled(POINT) for _ in range(3)]):
        np.testing.assert_allclose(derivative, expected, rtol=1e-5, atol=1e-7)
    hessian = np.array([(ad.grad(f)(POINT + e) - ad.grad(f)(POINT - e)) / 2e-6 for e in STEPS])
    np.testing.assert_allclose(ad.hessian(f)(POINT), hessian, rtol=1e-4, atol=1e-5)
    other = POINT + np.array([0.9, 0.1, -0.6])
    expected = np.array([(f(other + e) - f(other - e)) / 2e-6 for e in STEPS])
    np.testing.assert_allclose(compiled(other), expected, rtol=1e-5, atol=1e-7)


def test_bookkeeping_program_derivatives_in_vmap() -> None:
    rows = np.stack([POINT, POINT + 0.05])
    with Failures("derivatives of programs in vmap") as failures:
        for name in ("mask", "generator", "windows", "visit_nodes", "hypot", "remainder"):
            with failures.case(name):
                f = (BUFFERS | PROGRAMS)[name]
                np.testing.assert_allclose(ad.vmap(ad.grad(f))(rows), [ad.grad(f)(row) for row in rows])
        for name in ("count_values", "label_values", "scalars"):  # a number of each batch element decides
            with failures.case(name), pytest.raises((cg.BatchedValueError, cg.LeakError)):
                ad.vmap(ad.grad(PROGRAMS[name]))(rows)


def test_float_node_written_into_integers_raises() -> None:
    for write in (lambda a, p: a.__setitem__(0, p[0]), lambda a, p: a.__setitem__(slice(2), [p[0], p[1]])):
        with pytest.raises(cg.LeakError, match=r"takes the numbers of the result of getitem"):
            ad.grad(lambda p, write=write: write(np.zeros(3, int), p))(POINT)


def cubes(x: Any, k: float = 2.0) -> Any:
    """A function that is pickled by its name."""
    return k * np.sum(x**3)


@ad.grad
def decorated(x: Any) -> Any:
    """A function whose name means its gradient."""
    return np.sum(x**2)


OPERATORS: dict[str, tuple[Any, Any]] = {
    **{operator.__name__: (operator(cubes), POINT) for operator in (ad.grad, ad.jacobian, ad.hessian, ad.laplacian, ad.jacfwd)},
    "vmap": (ad.vmap(ad.grad(cubes)), np.stack([POINT, POINT])),
    "argnums": (ad.grad(cubes, argnums=(0,)), POINT),
    "jit": (cg.jit(ad.grad(cubes)), POINT),
    "decorator": (decorated, POINT),
}


def test_derivative_pickles() -> None:
    with Failures("pickled derivatives") as failures:
        for name, (function, x) in OPERATORS.items():
            for pickler in (pickle, cloudpickle):
                with failures.case(f"{name}, {pickler.__name__}"):
                    assert np.array_equal(pickler.loads(pickler.dumps(function))(x), function(x))


@pytest.mark.slow
def test_derivative_in_process_pool() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        gradients = pool.map(ad.grad(cubes), [POINT, 2 * POINT])
    assert np.allclose(gradients, [6 * POINT**2, 24 * POINT**2])


def test_derivative_as_method_is_bound() -> None:
    class Model:
        slope = ad.grad(lambda self, x: self.k * np.sum(x**2), argnums=1)
        k = 3.0

    assert np.array_equal(Model().slope(POINT), 6 * POINT)
    assert ad.grad(cubes).__name__ == "cubes"
    assert np.array_equal(cg.jit(ad.grad(cubes))(POINT), ad.grad(cubes)(POINT))
