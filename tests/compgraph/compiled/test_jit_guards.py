"""Branches on values: each outcome has its own program, and no GuardError reaches the user."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import assert_agrees, assert_not_compiled, compiled, is_compiled, same

X = np.linspace(-1.0, 2.0, 6)


def clip_by_branches(x: Any) -> Any:
    if x.max() > 10:
        return x / x.max()
    if np.any(x < -5):
        return np.zeros_like(x)
    return x * 2


def newton(x: Any, most: int = 50) -> Any:
    y = x
    for _ in range(most):
        step = (y * y - x) / (2 * y)
        y = y - step
        if abs(step) < 1e-10:
            break
    return y


def sort_by_hand(x: Any) -> Any:
    values = [x[i] for i in range(len(x))]
    for i in range(len(values)):
        for j in range(len(values) - 1 - i):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
    return np.stack(values)


def test_jit_guards_branches() -> None:
    assert_agrees(clip_by_branches, (X,), (X * 20,), (X * -20,), (X,), (X * 20,), programs=None)


def test_jit_guards_value_dependent_loops() -> None:
    jitted = assert_agrees(newton, (np.float64(2),), (np.float64(100),), (np.float64(2.1),), programs=None)
    assert same(jitted(np.float64(3)), newton(np.float64(3)))


def test_jit_guards_keep_both_branches() -> None:
    jitted = assert_agrees(lambda x: x if x[0] > 0 else -x, (X,), (-X,), programs=2)
    for _ in range(3):
        for x in (X, -X):
            assert same(jitted(x), jitted.__wrapped__(x))
    assert jitted.report().count("program") == 2


def test_jit_guards_integer_conversions() -> None:
    def f(x: Any, n: Any) -> Any:
        for _ in range(int(n)):
            x = x * 1.5
        return x

    assert_agrees(f, (X, 2))
    jitted = assert_not_compiled(f, X, np.array(2))
    assert "int(n)" in jitted.report()
    for n in (2, 3):
        assert same(jitted(X, np.array(n)), f(X, np.array(n)))


def test_jit_guards_of_numbers_are_machine_code() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0:
            x = x * 2
        n = int(x[1])
        while abs(x[2]) > 1:
            x = x / 2
        k = int(np.argmax(x))
        if not np.any(x > 3) and x[k]:
            x = x - n
        return (x * x * (1 + k)).sum()

    jitted = cg.jit(ad.value_and_grad(f), cache=False)
    expected = ad.value_and_grad(f)
    rng = np.random.default_rng(0)
    jitted.compile(np.array([1.0, 2.0, 3.0]))
    (cache,) = jitted._caches_by_signature.values()
    assert cache.specializations[0].program._direct_calls is not None  # without calls of Python
    for _ in range(60):
        x = rng.integers(-4, 5, 3) * rng.choice([0.5, 1.0, 1.5])
        for value, reference in zip(jitted(x), expected(x), strict=True):
            np.testing.assert_array_equal(value, reference)
    with pytest.raises(ValueError, match="NaN"):
        f(np.array([1.0, np.nan, 1.0]))
    with pytest.raises(ValueError, match="NaN"):
        jitted(np.array([1.0, np.nan, 1.0]))


def test_jit_guards_list_indices() -> None:
    functions = [np.sin, np.cos, np.tan]
    assert_agrees(lambda x, k: functions[k](x), (X, 0))
    assert_agrees(lambda x: functions[int(x[0] > 0)](x), (X,), (-X,), programs=2)


def test_jit_guards_mask_lengths() -> None:
    assert_agrees(lambda x: x[x > 0].sum(), (X,), (-X,), (X + 1,), programs=None)
    assert_agrees(lambda x: np.flatnonzero(x > 0), (X,), (-X,), programs=None)
    assert_agrees(lambda x: np.unique(np.round(x)), (X,), (X * 3,), programs=None)


def test_jit_guards_too_many_branches_run_as_numpy() -> None:
    def f(x: Any) -> Any:
        n = 0
        while x.sum() > n:
            n += 1
        return x * n

    jitted = compiled(f, np.ones(3))
    for n in range(40):
        x = np.full(3, float(n))
        assert same(jitted(x), f(x))
    assert "more than 16 ways" in jitted.report()
    assert same(jitted(np.ones(3)), f(np.ones(3)))


def test_jit_guards_hand_written_sort() -> None:
    rng = np.random.default_rng(0)
    jitted = compiled(sort_by_hand, rng.normal(size=3))
    for _ in range(20):
        x = rng.normal(size=3)
        assert same(jitted(x), sort_by_hand(x))
    assert is_compiled(jitted)


def test_jit_guards_branches_without_effect() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * (2 if y > 0 else 3)

    assert_agrees(f, (X, np.float64(1)), (X, np.float64(-1)), (X, np.float64(1)), programs=2)


def test_jit_guards_boolean_results() -> None:
    alive = cg.placeholder((None,))  # while one is alive, reads of shapes are recorded
    assert_agrees(lambda x: bool(x[0] > 0), (X,), (-X,), programs=2)
    assert_agrees(lambda x: (len(x), x.shape, x.ndim, x.sum() > 0), (X,), (-X,), programs=None)
    del alive
    assert_agrees(lambda x: (len(x), x.shape, x.ndim, x.sum() > 0), (X,), (-X,), programs=None)


def test_jit_guards_branch_that_returns_constants() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0:
            return 1.0
        return 2.0

    assert_agrees(f, (X,), (-X,), (X,), programs=2)


def test_jit_guards_value_dependent_errors() -> None:
    def f(x: Any) -> Any:
        assert x[0] < 0, "not negative"
        return x

    jitted = compiled(f, X)
    for _ in range(4):
        with pytest.raises(AssertionError, match="not negative"):
            jitted(-X)
    assert same(jitted(X), X)


def test_jit_guards_emath_and_value_dependent_dtypes() -> None:
    assert_agrees(lambda x: np.emath.sqrt(x), (X + 2,), (X,), programs=None)


def test_jit_guards_value_dependent_writes() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        if y[0] < 0:
            y[1:3] = y[0]
        y[y > 1] = 1.0
        return y

    assert_agrees(f, (X,), (-X,), (X * 3,), programs=None)


def test_jit_guards_try_last_program_first() -> None:
    jitted = cg.jit(lambda x: x if x[0] > 0 else -x).compile(X).compile(-X)
    (cache,) = jitted._caches_by_signature.values()
    jitted(X)
    first = cache.specializations[0]
    jitted(-X)
    assert cache.specializations[0] is not first


above_one = cg.primitive(lambda x: x[x > 1])
LENGTHS = {
    "primitive": lambda x: x * len(above_one(x)),
    "len": lambda x: x * len(x[x > 1]),
    "size": lambda x: x * (x[x > 1] * 2).size,
    "shape": lambda x: x * x[x > 1].shape[0],
    "function": lambda x: x * np.size(x[x > 1]),
    "where": lambda x: x * np.where(x > 1)[0].size,
    "nonzero": lambda x: x * len(np.nonzero(x > 1)[0]),
    "indices": lambda x: x * x[np.where(x > 1)].size,
    "argwhere": lambda x: x * len(np.argwhere(x > 1)),
    "unique": lambda x: x * len(np.unique(np.round(x))),
    "compress": lambda x: x * len(np.compress(x > 1, x)),
    "extract": lambda x: x * len(np.extract(x > 1, x)),
    "bincount": lambda x: x * len(np.bincount(np.abs(x).astype(int))),
    "repeat": lambda x: x * len(np.repeat(x, (x > 1).astype(int))),
    "repeats": lambda x: x * len(np.repeat(x, repeats=(x > 1).astype(int))),
    "delete": lambda x: x * len(np.delete(x, np.where(x > 1)[0])),
    "intersect1d": lambda x: x * len(np.intersect1d(np.round(x), [1.0, 2.0, 3.0])),
    "split": lambda x: x * len(np.split(x, np.where(x > 1)[0])),
    "roots": lambda x: x * len(np.roots(np.round(x))),
    "range": lambda x: sum([x * i for i in range(len(x[x > 1]))], x),
    "loop": lambda x: sum([v * v for v in x[x > 1]], x),
    "unpacked": lambda x: (lambda *values: x * len(values))(*x[x > 1]),
    "slice": lambda x: x[: len(x[x > 1])],
    "zeros": lambda x: np.zeros(len(x[x > 1])),
    "zeros_like": lambda x: np.zeros_like(x[x > 1]),
    "ones_like": lambda x: x * np.ones_like(x[x > 1]).sum(),
    "tile": lambda x: np.tile(x, len(x[x > 1])),
    "rows": lambda x: np.outer(x, x)[x > 1].shape[0] * x,
    "mean": ad.grad(lambda x: x[x > 1].mean()),
    "ratio": ad.grad(lambda x: x[x > 1].sum() / len(x[x > 1])),
}


@for_each("name", LENGTHS)
def test_jit_guards_value_dependent_lengths(name: str) -> None:
    f = LENGTHS[name]
    jitted = cg.jit(f).compile(np.array([1.0, 2.0, 3.0, 0.5]))
    for values in ([3, -1, 0.4, 0.4], [1, 2, 3, 0.5], [5, 6, 7, 8], [0.5, 3, 2, 1]):
        x = np.array(values, float)
        assert same(jitted(x), f(x)), values


def test_jit_guards_pad_widths_in_gradients() -> None:
    gradient = ad.grad(lambda x, widths: np.sum(np.pad(x, (widths[0], widths[1])) ** 2 * np.arange(10)))
    jitted = cg.jit(gradient).compile(X, np.array([2, 2]))
    for widths in ([2, 2], [3, 1], [1, 3]):
        assert same(jitted(X, np.array(widths)), gradient(X, np.array(widths))), widths


# Operations computed only for their error or warning: a call without one, and a call with one.
UNUSED: dict[str, tuple[Any, Any, Any]] = {
    "log": (lambda x: np.log(x), [1.5, 2.0], [-1.0, 2.0]),
    "scalar": (lambda x: [np.sqrt(x[i]) for i in range(2)], [1.5, 2.0], [1.0, -2.0]),
    "chain": (lambda x: np.sum(np.arcsin(x) * 2), [0.5, 0.2], [0.5, 2.0]),
    "divide": (lambda x: x / x[::-1], [1.5, 2.0], [0.0, 2.0]),
    "exp": (lambda x: np.exp(x), [1.5, 2.0], [1000.0, 2.0]),
    "power": (lambda x: x**0.5, [1.5, 2.0], [-1.0, 2.0]),
    "of shape alone": (lambda x: np.ones_like(np.log(x)), [1.5, 2.0], [-1.0, 2.0]),
    "astype": (lambda x: x.astype(np.int64), [1.5, 2.0], [np.nan, 2.0]),
    "integer division": (lambda x: 7 // x.astype(np.int64), [1.5, 2.0], [0.5, 2.0]),
    "index": (lambda x: x[x.astype(np.int64) % 5], [0.5, 1.0], [0.5, 4.0]),
    "take": (lambda x: np.take(x, x.astype(np.int64)), [0.5, 1.0], [0.5, 4.0]),
    "cholesky": (lambda x: np.linalg.cholesky(np.diag(x)), [1.5, 2.0], [-1.0, 2.0]),
    "inv": (lambda x: np.linalg.inv(np.diag(x)), [1.5, 2.0], [0.0, 2.0]),
    "several results": (lambda x: np.linalg.eig(np.diag(x)), [1.5, 2.0], [np.inf, 2.0]),
}


def outcome(f: Any, x: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            f(x)
        except Exception as error:
            return type(error)
    return {str(warning.message) for warning in caught}


@for_each("name", UNUSED)
def test_jit_keeps_errors_and_warnings_of_unused_results(name: str) -> None:
    unused, good, bad = UNUSED[name]

    def f(x: Any) -> Any:
        unused(x)
        return np.sum(x * 2)

    for g in (f, ad.grad(f)):
        jitted = compiled(g, np.array(good))
        assert is_compiled(jitted)
        for x in map(np.array, (good, bad, good)):
            assert outcome(jitted, x) == outcome(g, x)
        assert not outcome(g, np.array(good))
        assert outcome(g, np.array(bad))


def test_jit_keeps_overflow_warning_of_unused_arithmetic() -> None:
    def f(x: Any) -> Any:
        x * 1e300
        return x + 1

    jitted = compiled(f, X)
    with pytest.warns(RuntimeWarning, match="overflow encountered in multiply"):
        jitted(X * 1e300)


def test_jit_drops_unused_results_that_cannot_warn() -> None:
    def f(x: Any) -> Any:
        np.argsort(x), x.reshape(2, 3), x > 0, np.maximum(x, 1)
        return x * 2

    assert "argsort" not in compiled(f, X).report()
    assert "1 operations" in compiled(f, X).report() or "2 operations" in compiled(f, X).report()
