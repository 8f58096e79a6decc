"""Captured arrays that are written into after use: the derivative uses their values at the time of use, or raises."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures

remembered = importlib.import_module("compgraph.values.saved_operands")
N = 6
START = np.linspace(0.3, 1.2, N)
Program = Callable[[Any, dict[str, Any]], Any]


def arrays() -> dict[str, Any]:
    """The inputs of a program: a vector, a matrix, a mask, indices, places, a short vector, and a number."""
    return {
        "a": np.linspace(1.0, 2.0, N), "m": np.eye(N) * 3 + 0.1 * np.arange(N), "where": np.array([1, 0, 1, 1, 0, 1], bool),
        "i": np.array([0, 2, 1, 1, 5, 3]), "t": np.linspace(0.0, 2.0, N), "k": np.array([0.2, 0.5, 0.3]), "c": np.array(2.0),
    }  # fmt: skip


def overwrite_all(captures: dict[str, Any]) -> None:
    """Write other numbers into all of them."""
    for array in captures.values():
        array[...] = ~array if array.dtype == bool else (array + 1) % N if array.dtype.kind == "i" else array * 1.7 + 0.3


# ------------------------------------------------------------------------------------------ right


def fill_buffers(x: Any, d: Any) -> Any:
    """Buffers of the program's own, filled by masks, by indices and from the arrays."""
    b = np.zeros((4, N))
    np.multiply(x, d["a"], out=b[0], where=d["where"])
    b[1, d["where"]] = x[d["where"]] * 2
    b[2, d["i"]] += x**2
    b[3] = d["a"]
    np.add.at(b[0], d["i"], x**2)
    b *= d["a"]
    return b[0] * b[3] + b[1] + b[2]


def in_place(x: Any, d: Any) -> Any:
    """Operators in place with the arrays on their right."""
    y = x * 1
    y *= d["a"]
    y **= 2
    y -= d["a"]
    return y * x


def nested(x: Any, d: Any) -> Any:
    """Nested derivatives, with the arrays as tangents and cotangents too."""
    slope = ad.grad(lambda z: np.sum(z**2 * x * d["a"]))(x * d["a"])
    rows = ad.jacobian(lambda z: z**2 * x * d["a"])(x * d["a"]) @ d["a"]
    moved = ad.jvp(lambda z: z**2 * x * d["a"], (x,), (d["a"],))[1]
    curved = ad.hvp(lambda z: np.sum(z**3 * d["a"]))(x, d["a"])
    return slope + rows + moved + curved + ad.linearize(lambda z: z**3 * d["a"], x)[1](d["a"])


def batched_slope(x: Any, d: dict[str, Any]) -> Any:
    """Derivatives for each row of a captured matrix, with a write into a part of the row."""

    def slope(v: Any, row: Any) -> Any:
        row = row[1:]
        row[0] = v * 2
        return ad.grad(lambda z: np.sum(z**2 * row * d["a"][1:]))(v)

    return ad.vmap(slope)(x, d["m"]) + ad.vmap(lambda row: np.sum(np.sin(row * x)), in_axes=1)(d["m"])


RIGHT: dict[str, Program] = {
    "buffers": fill_buffers,
    "in place": in_place,
    "derivatives within": nested,
    "operators": lambda x, d: (x * d["a"] + d["a"] / x) ** d["a"] + d["a"] ** x + d["m"] @ x @ d["m"],
    "functions": lambda x, d: np.arctan2(d["a"], x) + np.hypot(x, d["a"]) + np.where(d["where"], x, d["a"] * x),
    "reductions": lambda x, d: np.sum(x * x, where=d["where"]) + np.average(x**2, weights=d["a"]) + np.cov(x, d["a"])[0],
    "clip": lambda x, d: np.clip(x, 0.1, d["a"]) * x + np.clip(x, d["a"] * 0.5, d["a"]) ** 2,
    "indices": lambda x, d: x[d["i"]] ** 2 + x[None][0, d["i"]] + np.take(x, d["i"]) * x + np.take_along_axis(x, d["i"], 0) ** 2,
    "masks": lambda x, d: x[d["where"]] ** 2,
    "interpolation": lambda x, d: np.interp(x, d["t"], d["a"]) * x + np.sum(np.interp(d["k"], d["t"], x) ** 2),
    "choice": lambda x, d: np.select([d["where"], ~d["where"]], [x * 2, d["a"] * x]) + np.choose(1 * d["where"], [x, x * d["a"]]),
    "products": lambda x, d: np.einsum("i,ij,j->i", x, d["m"], d["a"]) + np.outer(x, d["a"]) ** 2 + np.kron(x, d["a"])[:N] ** 2,
    "convolution": lambda x, d: np.convolve(x, d["k"]) ** 2,
    "equations": lambda x, d: np.linalg.solve(d["m"], x) + scipy.linalg.solve(d["m"], x**2) + np.linalg.lstsq(d["m"], x)[0],
    "polynomials": lambda x, d: np.polyval(d["a"], x),
    "loops": lambda x, d: sum(d["a"][j] * x[j] for j in range(N)) * sum(u * v for u, v in zip(x, d["a"], strict=True)),
    "lists": lambda x, d: np.array([x[0] * d["a"][0], d["a"][1] * x[1]]),
    "numbers": lambda x, d: x * float(d["c"]) * d["a"].flat[2] + np.broadcast_to(d["c"], (N,)) * x,
    "splines": lambda x, d: (
        scipy.interpolate.CubicSpline(d["t"], d["a"])(x) * scipy.interpolate.CubicSpline(d["t"], x)(d["k"])[0]
    ),
    "filters": lambda x, d: scipy.signal.lfilter(d["k"], [1.0, 0.2], x) + scipy.ndimage.correlate1d(x, d["k"]) ** 2,
    "distributions": lambda x, d: scipy.stats.norm.logpdf(x, d["t"], d["a"]) + scipy.special.gammainc(d["a"], x),
    "distances": lambda x, d: scipy.spatial.distance.cdist(x[:, None], d["a"][:, None]),
    "sparse": lambda x, d: scipy.sparse.csr_array(d["m"]) @ x + scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(d["m"]), x),
    "rates": lambda x, d: scipy.integrate.solve_ivp(lambda t, y, a, z: -y * a * z, (0, 1), np.ones(N), args=(d["a"], x)).y[:, -1],
    "vmap": lambda x, d: ad.vmap(lambda v, w: v * w * d["k"][0] + np.sum(w * d["a"]))(x, d["a"]) + batched_slope(x, d),
    "arguments of a solver": lambda x, d: scipy.optimize.root(lambda z, a, x: z**3 + z * a - x, np.ones(N), args=(d["a"], x)).x,
}

# Functions that a derivative calls again: changed values of their captured arrays are detected.
RAISING: dict[str, Program] = {
    "quad": lambda x, d: scipy.integrate.quad(lambda t: np.sum(np.sin(t * d["a"] * x)), 0, 1)[0],
    "quad_vec": lambda x, d: scipy.integrate.quad_vec(lambda t: np.sin(t * d["a"] * x), 0, 1)[0],
    "dblquad": lambda x, d: scipy.integrate.dblquad(lambda u, v: u * v * x[0] * d["a"][1] + x[1], 0, 1, 0, 1)[0],
    "scipy's root": lambda x, d: scipy.optimize.root(lambda z: z**3 + z * d["a"] - x, np.ones(N)).x,
    "scipy's minimize": lambda x, d: scipy.optimize.minimize(lambda z: np.sum((z - x * d["a"]) ** 2 + z**4), np.ones(N)).x,
    "brentq": lambda x, d: scipy.optimize.brentq(lambda z: z**3 + z * d["c"] - x[0], -3, 3),
    "root": lambda x, d: ad.root(lambda z, x: z**3 + z * d["a"] - x, np.ones(N), x),
    "fixed_point": lambda x, d: ad.fixed_point(lambda z, x: np.cos(z * d["a"]) * 0.3 * x, np.ones(N), x),
    "minimize": lambda x, d: ad.minimize(lambda z, x: np.sum((z - x * d["a"]) ** 2 + z**4), np.ones(N), x).x,
    "odeint": lambda x, d: ad.odeint(lambda y, t, x: -y * x * np.interp(t, d["t"], d["a"]), np.ones(N), d["t"], x)[-1],
    "checkpoint": lambda x, d: ad.checkpoint(lambda x: np.sin(x * d["a"]) * d["a"])(x),
}


def by_graph(program: Program, captures: dict[str, Any], then: Callable[[Any], None]) -> Any:
    """The gradient of a graph of a variable."""
    x = cg.variable(START)
    out = np.sum(program(x, captures) ** 2)
    then(captures)
    return ad.reverse.gradients(out, [x])[0]


def by_grad(program: Program, captures: dict[str, Any], then: Callable[[Any], None]) -> Any:
    """The gradient of a function that writes before it returns."""

    def whole(x: Any) -> Any:
        out = np.sum(program(x, captures) ** 2)
        then(captures)
        return out

    return ad.grad(whole)(START)


def by_arguments(program: Program, captures: dict[str, Any], then: Callable[[Any], None]) -> Any:
    """The same, with the arrays as arguments."""

    def whole(x: Any, *values: Any) -> Any:
        inputs = dict(zip(captures, values, strict=True))
        out = np.sum(program(x, inputs) ** 2)
        then(inputs)
        return out

    return ad.grad(whole)(START, *captures.values())


def by_pullback(program: Program, captures: dict[str, Any], then: Callable[[Any], None]) -> Any:
    """The result of a pullback that is called after the arrays were written into."""
    _, pull = ad.vjp(lambda x: np.sum(program(x, captures) ** 2), START)
    then(captures)
    return pull(1.0)[0]


WAYS = [by_graph, by_grad, by_arguments, by_pullback]


WITHIN_FUNCTIONS = ["buffers", "lists"]  # programs that make arrays which become nodes only while a function is differentiated


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_derivative_after_later_write_is_unchanged(way: Any) -> None:
    """The same as where nothing is written."""
    with Failures("arrays written after their use") as failures:
        for name, program in RIGHT.items():
            if way is not by_graph or name not in WITHIN_FUNCTIONS:
                with failures.case(name):
                    undisturbed = way(program, arrays(), lambda captures: None)
                    assert np.any(undisturbed)
                    np.testing.assert_allclose(way(program, arrays(), overwrite_all), undisturbed, rtol=1e-9)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_derivative_of_changed_function_raises(way: Any) -> None:
    """The derivative calls the function again, and notices other results."""
    with Failures("functions that are called again") as failures:
        for name, program in RAISING.items():
            with failures.case(name):
                assert np.any(way(program, arrays(), lambda captures: None))
                with pytest.raises(ValueError, match="returned different numbers when it was called again"):
                    way(program, arrays(), overwrite_all)


LARGE = 2**19  # elements: 4 MiB, which are not copied

OF_LARGE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "operator": lambda x, a, i: x * a,
    "reflected": lambda x, a, i: a / x,
    "function": lambda x, a, i: np.arctan2(x, a),
    "method": lambda x, a, i: x @ a,
    "index": lambda x, a, i: x[i],
    "part of an index": lambda x, a, i: x[None, :][0, i],
    "take": lambda x, a, i: np.take(x, i),
    "option": lambda x, a, i: np.var(x, mean=a),
    "strided": lambda x, a, i: x[::2] * a[::2],
    "fortran": lambda x, a, i: np.reshape(x, (512, -1)) * np.reshape(a, (512, -1), order="F"),
}


def test_large_array_written_at_one_element_raises() -> None:
    """The first, one in the middle, one of the last; with the element restored, the gradient is there again."""
    with Failures("large arrays") as failures:
        for name, program in OF_LARGE.items():
            a, i, x = np.full(LARGE, 3.0), np.arange(LARGE), cg.variable(np.ones(LARGE))
            out = np.sum(program(x, a, i) ** 2)
            right = ad.reverse.gradients(out, [x])[0]
            for place in (0, LARGE // 2, LARGE - 2):
                with failures.case(f"{name}, element {place}"):
                    a[place] += 1.0
                    i[place] = 5
                    try:
                        with pytest.raises(ValueError, match="was written into"):
                            ad.reverse.gradients(out, [x])
                    finally:
                        a[place] -= 1.0
                        i[place] = place
            with failures.case(f"{name}, restored"):
                np.testing.assert_array_equal(ad.reverse.gradients(out, [x])[0], right)


HUGE = 2**21 + 3  # elements: 16 MiB and some


def test_huge_array_written_raises() -> None:
    """All numbers are compared, for every kind of write."""
    with Failures("huge arrays") as failures:
        for number, write in enumerate(
            [lambda a: a.__setitem__(12345, 1.0), lambda a: a[6:9].sort(), lambda a: np.add.at(a, [77], 1)]
        ):
            a, x = np.random.default_rng(0).normal(size=HUGE), cg.variable(np.ones(HUGE))
            out = np.sum((x * a) ** 2)
            np.testing.assert_allclose(ad.reverse.gradients(out, [x])[0], 2 * a**2)
            write(a)
            with failures.case(f"write {number}"), pytest.raises(ValueError, match="was written into"):
                ad.reverse.gradients(out, [x])


WRITES: dict[str, Callable[[Any], Any]] = {
    "one element": lambda a: a.__setitem__(5, 100.0),
    "a part": lambda a: a[3:6].fill(100.0),
    "operator": lambda a: a.__imul__(2),
    "operator on a part": lambda a: a[5:7].__iadd__(2),
    "out=": lambda a: np.add(a[:2], 1, out=a[:2]),
    "out= of a sum": lambda a: np.sum(np.ones((2, 2)), axis=0, out=a[:2]),
    "copyto": lambda a: np.copyto(a[:2], 100.0),
    "put": lambda a: np.put(a, [5], 100.0),
    "put, the method": lambda a: a.put([5], 100.0),
    "place": lambda a: np.place(a, a == a[5], 100.0),
    "flat": lambda a: a.flat.__setitem__(5, 100.0),
    "a row": lambda a: a.reshape(2, -1)[1].__setitem__(5, 100.0),
    "sort": lambda a: a[:4].sort(),
    "copyto by name": lambda a: np.copyto(dst=a[:2], src=100.0),
}

UNSEEN: dict[str, Callable[[Any], Any]] = {
    "add.at": lambda a: np.add.at(a, [5], 97.0),
    "out= of accumulate": lambda a: np.add.accumulate(np.ones(3), out=a[4:7]),
    "C code": lambda a: np.random.default_rng(0).random(out=a[4:7]),
    "another name": lambda a: a.base.__setitem__(5, 100.0),
}


def test_write_into_large_argument_raises() -> None:
    """Whatever writes, and however few elements: all numbers are compared."""

    def f(x: Any, a: Any, write: Callable[[Any], Any]) -> Any:
        out = np.sum((x * a) ** 2)
        write(a)
        return out

    a = np.arange(LARGE, 0.0, -1.0)
    np.testing.assert_array_equal(ad.grad(f)(np.ones(LARGE), a, lambda a: None), 2 * a**2)
    with Failures("writes into a large argument") as failures:
        for name, write in (WRITES | UNSEEN).items():
            with failures.case(name), pytest.raises(ValueError, match="was written into"):
                ad.grad(f)(np.ones(LARGE), a.copy(), write)


def test_write_into_huge_argument_before_use() -> None:
    """The write belongs to the value and to its derivative."""
    a = np.ones(HUGE)

    def f(x: Any, a: Any) -> Any:
        a[5] = 3.0
        return np.sum(x * a)

    assert ad.grad(f)(np.ones(HUGE), a)[5] == 3.0


def test_large_array_unused_by_derivative_may_be_written() -> None:
    """As sums do not."""
    a, x = np.full(LARGE, 3.0), cg.variable(np.ones(LARGE))
    out = np.sum((x + a - a) ** 2)
    a[...] = 0
    np.testing.assert_array_equal(ad.reverse.gradients(out, [x])[0], np.full(LARGE, 2.0))


def test_executor_keeps_recorded_large_arrays() -> None:
    """A write into a large array before the executor is made raises; a later write changes nothing."""
    with Failures("executors of large arrays") as failures:
        for name, program in {**OF_LARGE, "sum": lambda x, a, i: x + a}.items():
            with failures.case(name):
                a, i, x = np.full(LARGE, 3.0), np.arange(LARGE), cg.placeholder((LARGE,), example=np.ones(LARGE))
                out = np.sum(program(x, a, i) ** 2)
                run, feed = cg.Executor(out).run, {x: np.linspace(1.0, 2.0, LARGE)}
                right = run(feed)
                a[...] = 0.0
                i[...] = 0
                assert run(feed) == right != 0
                with pytest.raises(ValueError, match="was written into"):
                    cg.Executor(out)


def test_large_array_copy_is_shared_until_change() -> None:
    """A loop over one array keeps one copy of it, until it changes."""
    a, x = np.full(8192, 0.5), cg.variable(np.ones(8192))
    nodes = [x * a for _ in range(3)]
    a[7] = 2.0
    nodes += [x * a for _ in range(2)]
    operands = [node.args[1] for node in nodes]
    assert operands[0] is operands[1] is operands[2] is not operands[3] is operands[4]
    assert [operands[0][7], operands[3][7]] == [0.5, 2.0]


def test_large_array_copies_of_freed_graphs_are_freed() -> None:
    """Neither copies nor records of tracked arrays remain."""
    x = cg.variable(np.ones(LARGE))
    gc.collect()
    before = len(remembered._copies), len(remembered._views)
    for size in (8192, LARGE):
        y = x[:size] * np.full(size, 2.0)
        del y
    assert (len(remembered._copies), len(remembered._views)) == before
