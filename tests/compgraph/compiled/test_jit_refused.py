"""Functions that are not compiled run as NumPy, with the reason in the report."""

from __future__ import annotations

import functools
import io
import logging
import os
import queue
import random
import threading
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.jitting import assert_not_compiled, compiled, is_compiled, same

X = np.linspace(1.0, 2.0, 6)
COUNT = 0
RNG = np.random.default_rng(0)


def counts(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x * COUNT


def test_jit_rejects_global_counters() -> None:
    before = COUNT
    jitted = assert_not_compiled(counts, X, words="assigns the global 'COUNT'")
    for _ in range(5):
        jitted(X)
    assert before + 5 == COUNT


def test_jit_rejects_nonlocal_assignment() -> None:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        return x

    jitted = assert_not_compiled(f, X, words="nonlocal 'count'")
    jitted(X)
    assert count == 1


def test_jit_rejects_changed_lists_and_dictionaries() -> None:
    log: list[Any] = []
    cache: dict[str, Any] = {}
    array = np.zeros(6)

    def appends(x: Any) -> Any:
        log.append(1)
        return x * 2

    def stores(x: Any) -> Any:
        cache["last"] = x.sum()
        return x * 2

    def adds(x: Any) -> Any:
        array[...] += 1
        return x * 2

    jitted = assert_not_compiled(appends, X, words="changed by a call")
    log.clear()
    jitted(X)
    assert len(log) == 1
    assert_not_compiled(stores, X, words="'cache'")
    jitted = assert_not_compiled(adds, X, words="'array'")
    before = array.copy()
    jitted(X)
    assert same(array, before + 1)


class Counter:
    def __init__(self) -> None:
        self.calls, self.last = 0, None

    def counted(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls

    def remembering(self, x: Any) -> Any:
        self.last = x * 2
        return self.last


def test_jit_rejects_attribute_assignment() -> None:
    counter = Counter()
    jitted = assert_not_compiled(counter.counted, X, words="calls was changed")
    counter.calls = 0
    assert same(jitted(X), X)
    assert counter.calls == 1
    assert_not_compiled(counter.remembering, X, words="last was changed")


def test_jit_rejects_writes_into_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        x += y
        return x.sum()

    def g(d: Any) -> Any:
        d["a"][0] = 7.0
        return d["a"] * 2

    jitted = assert_not_compiled(f, X.copy(), X, words="writes into an argument")
    x = X.copy()
    jitted(x, X)
    assert same(x, X + X)
    jitted = assert_not_compiled(g, {"a": X.copy()}, words="writes into an argument")
    d = {"a": X.copy()}
    assert jitted(d)[0] == 14.0
    assert d["a"][0] == 7.0


def test_jit_rejects_value_dependent_writes_into_arguments() -> None:
    def f(x: Any) -> Any:
        if x[0] > 100:
            x[0] = 0.0
        return x * 2

    jitted = compiled(f, X)
    x = X + 100
    assert same(jitted(x), f(X + 100))
    assert x[0] == 0.0
    x = X + 100
    jitted(x)
    assert x[0] == 0.0


def test_jit_rejects_keys_added_to_argument() -> None:
    def f(d: Any) -> Any:
        d["b"] = d["a"] * 2
        return d["b"]

    jitted = assert_not_compiled(f, {"a": X})
    d = {"a": X}
    jitted(d)
    assert "b" in d


def test_jit_rejects_results_that_are_not_numbers() -> None:
    assert_not_compiled(lambda x: f"{x.sum():.2f}", X)
    assert_not_compiled(lambda x: (x, "text"), X, words="returns a str")
    assert_not_compiled(lambda x: iter(x), X)
    assert_not_compiled(lambda x: {1, 2}, X, words="returns a set")


@pytest.mark.parametrize(
    "function", [lambda x: x * float(x[0]), lambda x: x.tolist(), lambda x: x * x[0].item()], ids=["float", "tolist", "item"]
)
@pytest.mark.filterwarnings("ignore:.*no derivative")
def test_jit_conversions_to_python_numbers_match_function(function: Any) -> None:
    jitted = cg.jit(function).compile(X)
    for x in (X, X * 2, -X):
        assert same(jitted(x), function(x))


def test_jit_conversions_in_c_match_function() -> None:
    import math

    jitted = cg.jit(lambda x: np.array([math.hypot(a, 1.0) for a in x])).compile(X)
    for x in (X, X * 2):
        assert same(jitted(x), jitted.__wrapped__(x))
    assert_not_compiled(lambda x: np.frombuffer(x.tobytes()), X)


DRAWS = {
    "legacy": lambda x: x + np.random.normal(),  # noqa: NPY002
    "uniform": lambda x: x + np.random.rand(6),  # noqa: NPY002
    "python's": lambda x: x + random.random(),
    "a global": lambda x: x + RNG.normal(size=6),
    "a permutation": lambda x: x[RNG.permutation(6)],
    "without a seed": lambda x: x + np.random.default_rng().normal(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_jit_rejects_random_numbers(name: str) -> None:
    jitted = assert_not_compiled(DRAWS[name], X, words="random")
    assert not np.array_equal(jitted(X), jitted(X))


def test_jit_rejects_generators_in_containers() -> None:
    container = {"rng": np.random.default_rng(0)}
    jitted = assert_not_compiled(lambda x: x + container["rng"].normal(), X)
    assert not np.array_equal(jitted(X), jitted(X))
    jitted = assert_not_compiled(lambda x, rng: x + rng.normal(), X, np.random.default_rng(0), words="random")
    rng = np.random.default_rng(1)
    assert not np.array_equal(jitted(X, rng), jitted(X, rng))
    old = np.random.RandomState(0)
    jitted = assert_not_compiled(lambda x, rng=old: x + rng.rand(), X)
    assert not np.array_equal(jitted(X), jitted(X))


def test_jit_compiles_generator_seeded_inside() -> None:
    jitted = compiled(lambda x: x + np.random.default_rng(0).normal(size=6), X)
    assert is_compiled(jitted), jitted.report()
    assert same(jitted(X * 2), jitted.__wrapped__(X * 2))


def test_jit_rejects_print(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(x.sum())
        return x

    jitted = assert_not_compiled(f, X, words="it prints")
    assert "test_jit_refused.py" in jitted.report()
    capsys.readouterr()
    jitted(X)
    assert capsys.readouterr().out == f"{X.sum()}\n"


def test_jit_rejects_clock() -> None:
    assert_not_compiled(lambda x: x * time.perf_counter(), X, words="reads the clock")


def test_jit_rejects_globals_call_and_eval() -> None:
    assert_not_compiled(lambda x: x * globals()["COUNT"], X, words="globals()")
    assert_not_compiled(lambda x: eval("x * 2"), X, words="evaluates a string")


def test_jit_rejects_value_dependent_scipy_families() -> None:
    import scipy
    from scipy.interpolate import interp1d

    knots, values = np.arange(5.0), np.arange(5.0) ** 2
    table = interp1d(knots, values)
    for f in (lambda x: interp1d(knots, values)(x), lambda x: table(x), lambda x: scipy.interpolate.interp1d(knots, values)(x)):
        jitted = assert_not_compiled(f, X, words="scipy.interpolate")
        assert same(jitted(X + 1.7), f(X + 1.7))
    special = compiled(lambda x: scipy.special.gammaln(x), X)
    assert is_compiled(special), special.report()
    assert same(special(X + 1), scipy.special.gammaln(X + 1))


def test_jit_rejects_plain_results_of_numpy() -> None:
    f = lambda x, i: x.reshape(2, 3)[np.ix_(i, i)]  # noqa: E731
    jitted = assert_not_compiled(f, X, np.array([0, 1]), words="np.ix_")
    assert same(jitted(X, np.array([1, 1])), f(X, np.array([1, 1])))


def test_jit_range_lengths_match_function() -> None:
    f = lambda n, a: (np.arange(n) * 1.0, np.arange(0, a, 0.5), np.r_[0:a:0.5])  # noqa: E731
    jitted = cg.jit(f).compile(3, np.float64(2)).compile(np.array(3), np.float64(2))
    for n, a in ((3, 2.0), (5, 2.0), (3, 4.0), (5, 2.2)):
        for length in (n, np.array(n)):
            assert same(jitted(length, np.float64(a)), f(length, np.float64(a)))


def test_jit_rejects_no_graph_block() -> None:
    def f(x: Any) -> Any:
        with cg.no_graph():
            y = x * 2
        return x + y

    jitted = assert_not_compiled(f, X, words="no_graph")
    assert same(jitted(X * 2), X * 6)


def test_jit_of_captured_variable_is_recorded() -> None:
    w = cg.variable(3.0, "w")
    jitted = assert_not_compiled(lambda x: x * w, X)
    w[...] = 4.0
    assert same(jitted(X).value, X * 4)


def test_jit_plain_array_indexed_by_values_is_recorded() -> None:
    table = np.arange(20.0)
    places = np.array([1, 5, 2])
    for f in (lambda i: table[i], lambda i: table[i + 1] * 2, lambda i: table[np.argsort(i)]):
        jitted = cg.jit(f).compile(places)
        for other in (places, places + 3):
            assert same(jitted(other), f(other))
        assert "as NumPy" not in jitted.report(), jitted.report()


def test_jit_take_of_plain_array_is_recorded() -> None:
    table, places = np.arange(20.0), np.array([1, 5, 2])
    jitted = cg.jit(lambda i: np.take(table, i)).compile(places)
    for other in (places, places + 3):
        assert same(jitted(other), table[other])


def test_jit_plain_array_indexed_within_derivative() -> None:
    table = np.array([10.0, 20.0, 30.0])
    f = ad.grad(lambda x: np.sum(table[np.argsort(x)] * x))
    jitted = cg.jit(f).compile(np.array([3.0, 1.0, 2.0]))
    for x in (np.array([3.0, 1.0, 2.0]), np.array([0.1, 2.0, 3.0])):
        assert same(jitted(x), f(x))


def test_jit_one_hot_by_index_writes() -> None:
    def f(labels: Any) -> Any:
        rows = np.zeros((len(labels), 4))
        rows[np.arange(len(labels)), labels] = 1
        return rows

    jitted = cg.jit(f).compile(np.array([0, 1]))
    for labels in (np.array([0, 1]), np.array([3, 2])):
        assert same(jitted(labels), f(labels))


def test_jit_class_checks_see_values() -> None:
    def f(x: Any) -> Any:
        s = np.sum(x)
        return x * 2 if isinstance(s, float) else x * 3

    jitted = compiled(f, X)
    assert is_compiled(jitted)
    assert same(jitted(X), X * 2)


def test_jit_of_function_that_catches_conversion_errors() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(6, int)
        try:
            y[...] = x
        except TypeError:
            return x * 5
        return y + x

    jitted = cg.jit(f).compile(X)
    for x in (X, X * 2):
        assert same(jitted(x), f(x))


def test_jit_ignores_draws_outside() -> None:
    jitted = cg.jit(lambda x: np.linalg.norm(x))
    for _ in range(4):
        jitted(X)
        np.random.rand()  # noqa: NPY002
        RNG.normal()
    assert jitted.wait(30)
    assert is_compiled(jitted), jitted.report()


def test_jit_rejects_conversion_to_text() -> None:
    assert_not_compiled(lambda x: x * len(str(np.round(x))), X, words="str()")
    assert_not_compiled(lambda x: x * len(repr(x)), X, words="repr()")
    assert_not_compiled(lambda x: x * len(f"{np.argsort(x)}"), X, words="format()")


class Log:
    """Counts the effects below."""

    count = 0

    def __init__(self) -> None:
        self.n, self.items, self.done = 0, list[int](), False
        self.text, self.queue, self.event = io.StringIO(), queue.SimpleQueue[int](), threading.Event()

    def __enter__(self) -> None:
        self.n += 1

    def __exit__(self, *exception: object) -> None: ...

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def _counts(log: Log) -> None:
    log.__dict__["n"] += 1


def _class_attribute(log: Log) -> None:
    type(log).count += 1


def _within(log: Log) -> None:
    with log:
        pass


EFFECTS: dict[str, Callable[[Log], Any]] = {
    "write": lambda log: log.text.write("a"),
    "print": lambda log: print("a", file=log.text),
    "put": lambda log: log.queue.put(1),
    "set": lambda log: log.event.set(),
    "append": lambda log: log.items.append(1),
    "setattr": lambda log: setattr(log, "n", log.n + 1),
    "__dict__": _counts,
    "class attribute": _class_attribute,
    "with": _within,
    "warn": lambda log: warnings.warn("told", UserWarning, stacklevel=1),
    "log": lambda log: logging.getLogger("compgraph.tests").info("told"),
    "thread": lambda log: threading.Thread(target=log.items.append, args=(1,)).start(),
    "partial": lambda log: functools.partial(log.items.append, 1)(),
    "os": lambda log: os.environ.update(COMPGRAPH_TESTS="1"),
    "print options": lambda log: np.set_printoptions(precision=8),
    "seterr": lambda log: np.seterr(under="ignore"),
    "pop": lambda log: log.items and log.items.pop(),
}


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.filterwarnings("ignore:told")
def test_jit_repeats_side_effects(name: str) -> None:
    log, plain, effect = Log(), Log(), EFFECTS[name]

    def f(x: Any, to: Any = log) -> Any:
        effect(to)
        return x * 2

    jitted = cg.jit(f)
    for _ in range(6):
        assert same(jitted(X), X * 2)
        f(X, plain)
        assert jitted.wait(30)
    assert "program" not in jitted.report()
    for log_entry in (log, plain):
        log_entry.state = (
            log_entry.n,
            len(log_entry.items),
            log_entry.text.getvalue(),
            log_entry.queue.qsize(),
            log_entry.event.is_set(),
        )  # type: ignore[attr-defined]
    assert log.state == plain.state  # type: ignore[attr-defined]


def test_jit_repeats_undone_side_effect() -> None:
    namespace = types.SimpleNamespace()

    def f(x: Any) -> Any:
        namespace.state = True
        return x * 2

    jitted = cg.jit(f)
    for _ in range(8):
        vars(namespace).pop("seen", None)
        jitted(X)
        assert jitted.wait(30)
        assert namespace.state


def test_jit_compiles_despite_unreached_side_effect() -> None:
    settings = {"verbose": False}
    log: list[Any] = []

    def f(x: Any) -> Any:
        if settings["verbose"]:
            log.append(x.sum())
        return x * 2

    jitted = compiled(f, X)
    assert is_compiled(jitted), jitted.report()
    settings["verbose"] = True
    jitted(X)
    assert len(log) == 1
