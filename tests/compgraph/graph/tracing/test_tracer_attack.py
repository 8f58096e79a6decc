"""Ways around hollow values that once were silent, or crashed: each is right, refused or warned of."""

from __future__ import annotations

import contextvars
import itertools
import math
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.graph.tracing.refusals import EscapeError
from tests.support.failures import Failures

POINT = np.array([0.7, 1.3, 0.4])
FLOATING = ("f8", "f4", "f2", "g")
COMPLEX = ("c16", "c8", "G")


def body(dtype: str, shape: tuple[int, ...]) -> Any:
    """What code that does not ask is given for a node."""
    with cg.strict():
        return np.asarray(cg.variable(np.arange(1, 1 + math.prod(shape)).reshape(shape).astype(dtype)))


# What would be answered wrongly of an array of objects, or of bytes.
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "any": lambda a: a.any(),
    "as bool": lambda a: a.astype(bool),
    "where": lambda a: np.where(a, 1, 2),
    "view": lambda a: a.view("i2"),
    "float": lambda a: a.astype(float),
    "add": lambda a: a + 1,
    "less": lambda a: a < a[::-1],
    "max": lambda a: a.max(),
    "isnan": lambda a: np.isnan(a),
}
OF_RECORDS: dict[str, Callable[[Any], Any]] = {
    "imag": lambda a: a.imag + 1,
    "isreal": lambda a: np.isreal(a),
    "equal": lambda a: a == a.copy(),
    "sort": lambda a: np.sort(a),
    "nonzero": lambda a: a.nonzero(),
    "unique": lambda a: np.unique(a),
}


def test_backing_buffer_raises_on_use() -> None:
    with Failures("uses") as failures:
        for dtype, question in itertools.product([*FLOATING, *COMPLEX], QUESTIONS):
            with failures.case(f"{question}, {dtype}"), pytest.raises((TypeError, ValueError)):
                QUESTIONS[question](body(dtype, (3,)))


def test_complex_backing_buffer_raises_on_use() -> None:
    with Failures("uses") as failures:
        for dtype, question in itertools.product(COMPLEX, OF_RECORDS):
            with failures.case(f"{question}, {dtype}"), pytest.raises(TypeError):
                OF_RECORDS[question](body(dtype, (3,)))


def test_an_imaginary_part_is_not_zero() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.array([x[0] * 1j, x[1] * (1 + 1j)]).imag) + np.sum(x)

    with pytest.raises(EscapeError):
        ad.grad(f)(POINT)


@pytest.mark.parametrize("decide", [np.any, np.all, np.count_nonzero, lambda a: a.astype(bool).sum(), np.argmax])
def test_an_array_of_float32_nodes_decides_as_numbers_do(decide: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        narrow = x.astype(np.float32)
        return float(decide(np.array([narrow[0] * 0, narrow[1]]))) * np.sum(x**2)

    expected = f(POINT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ad.value_and_grad(f)(POINT)[0] == pytest.approx(expected)


def test_statistics_of_a_list_of_nodes_are_right() -> None:
    with Failures("statistics") as failures:
        functions = (np.mean, np.std, np.var, np.sum, np.median, np.average, np.prod, np.max)
        for dtype, function in itertools.product([np.float64, np.float32], functions):
            with failures.case(f"{function.__name__} of {dtype.__name__}"):
                check_statistics(function, dtype)


def check_statistics(function: Callable[[Any], Any], dtype: Any) -> None:
    """Compare the gradient of a statistic of a list with that of a stacked array."""

    def f(x: Any) -> Any:
        x = x.astype(dtype)
        return function([x[0] ** 2, x[1] * x[0], x[2]])

    def stacked(x: Any) -> Any:
        x = x.astype(dtype)
        return function(np.stack([x[0] ** 2, x[1] * x[0], x[2]]))

    assert np.allclose(ad.grad(f)(POINT), ad.grad(stacked)(POINT))


def test_backing_buffer_of_any_shape_has_one_element() -> None:
    with Failures("shapes") as failures:
        for dtype, shape in itertools.product(["f8", "f4", "c16"], [(), (1,), (3,), (2, 3), (0,), (10**9,), (2**40,), (1,) * 64]):
            with failures.case(f"{dtype}, {shape}"):
                with cg.strict():
                    node = np.broadcast_to(cg.variable(np.ones((), dtype)), shape)
                bare = np.asarray(node)
                assert bare.shape == node.shape == shape
                assert not bare.flags.writeable
                assert not any(bare.strides)


STRIDES = """
import warnings
import numpy as np
import compgraph as cg
from numpy.lib.stride_tricks import as_strided
warnings.simplefilter("ignore")
with cg.strict():
    for dtype in ("f8", "f4", "f2", "g", "c16", "c8", "G"):
        for shape in ((), (1,), (3,), (4, 5), (0,), (2, 3, 4)):
            x = cg.variable(np.ones(shape, dtype))
            wide = tuple(2 * s for s in x.strides)
            for strides in (x.strides, wide, tuple(-s for s in x.strides), (x.itemsize,) * len(shape)):
                for more in (0, 3):
                    for use in (np.copy, str, lambda there: there.tolist(), lambda there: there.astype(float)):
                        try:
                            use(as_strided(x, tuple(n + more for n in shape), strides))
                        except (TypeError, ValueError):
                            pass
print("alive")
"""


def test_strides_that_are_made_up_read_no_foreign_memory() -> None:
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", STRIDES], capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", done.stderr


def looped(x: Any) -> Any:
    """Numbers that come one at a time of an iterator, to code that is at no call."""
    total = 0.0
    for number in map(math.sin, x):
        total += number
    return total


def unpacked(x: Any) -> Any:
    """The same, of an assignment to several names."""
    first, *_ = map(math.sin, x)
    return first


CONVERTED: dict[str, Callable[[Any], Any]] = {
    "loop": looped,
    "unpacked": unpacked,
    "star": lambda x: sum([*map(math.sin, x)]),
    "starmap": lambda x: sum(itertools.starmap(math.hypot, [(x[0], x[1])])),
    "contained": lambda x: 1.0 + (5.0 in map(math.sin, x)),
    "bytes": lambda x: np.sum(np.frombuffer(bytes(x))),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_numbers_that_were_given_are_warned_of(name: str) -> None:
    with pytest.warns(RuntimeWarning, match="has no derivative"):
        value, _ = ad.value_and_grad(lambda x: CONVERTED[name](x) * x[0])(POINT)
    assert value == pytest.approx(CONVERTED[name](POINT) * POINT[0])


def test_a_number_that_is_shown_is_not_warned_of() -> None:
    assert ad.grad(lambda x: ("%.3f" % x[0], x[0])[1])(POINT)[0] == 1  # noqa: UP031


# ------------------------------------------------------------------------------------------------ threads


def elsewhere(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that was there before, with a context of its own."""
    with ThreadPoolExecutor(1) as pool:
        contextvars.Context().run(lambda: pool.submit(int).result())
        return pool.submit(function).result()


def into_plain(x: Any) -> Any:
    """A scalar that a thread assigns into a plain array."""
    array = np.zeros(3)
    array[0] = x[0]
    return np.sum(array)


def of_buffer(x: Any) -> Any:
    """A buffer that is made in a thread, and given to code outside."""
    array = cg.zeros(3) if isinstance(x, cg.Node) else np.zeros(3)
    array[0], array[1:] = x[1], x[1:]
    return math.fsum(np.asarray(array))


@pytest.mark.parametrize("function", [into_plain, of_buffer, lambda x: np.asarray(x[0]) * 2, lambda x: math.sin(x[0])])
def test_what_a_thread_takes_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(EscapeError):
        ad.grad(lambda x: elsewhere(lambda: function(x)) + np.sum(x))(POINT)


def test_what_a_thread_converts_is_warned_of_every_time() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        for _ in range(2):
            with pytest.warns(RuntimeWarning, match="has no derivative"):
                ad.grad(lambda x: pool.submit(lambda: float(x[0])).result() * x[1])(POINT)


def test_a_buffer_from_outside_is_hollow_once_something_hollow_is_in_it() -> None:
    buffer = cg.zeros(3)

    def f(x: Any) -> Any:
        buffer[:] = x**2
        return np.sum(buffer * x)

    assert np.allclose(ad.grad(f)(POINT), 3 * POINT**2)
    with pytest.raises(EscapeError):
        ad.grad(lambda x: f(x) + math.fsum(np.asarray(buffer)))(POINT)


def test_a_copy_that_one_thread_makes_is_no_concern_of_another() -> None:
    """``np.float64(x)`` is a copy until it is used: the derivative of another thread meanwhile neither raises nor takes it."""
    made, taken = threading.Event(), threading.Event()

    def casts(x: Any) -> Any:
        y = np.float64(x)
        made.set()
        assert taken.wait(10)
        return np.sum(y * y)

    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(ad.grad(casts), POINT)
        assert made.wait(10)
        try:
            assert np.array_equal(ad.grad(lambda x: np.sum(np.float64(x) * x))(POINT), 2 * POINT)
        finally:
            taken.set()
        assert np.array_equal(there.result(10), 2 * POINT)
        with pytest.raises(EscapeError, match="was used without its graph"):
            pool.submit(ad.grad(lambda x: (np.float64(x), np.sum(x))[1]), POINT).result(10)


def test_threads_that_copy_at_once() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.float64(x) ** 2)

    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(ad.grad(f), [np.full(20, float(k)) for k in range(100)]):
                assert np.array_equal(found, 2 * np.full(20, found[0] / 2))
    finally:
        sys.setswitchinterval(every)


def test_threads_at_the_top_level_stay_solid() -> None:
    inside, done = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        inside.set()
        done.wait(10)
        return np.sum(x)

    other = threading.Thread(target=lambda: ad.grad(slow)(POINT))
    other.start()
    inside.wait(10)
    try:
        node = np.sin(cg.variable(POINT)) * 2
        buffer = cg.zeros(3)
        buffer[0] = node[1]
        assert np.asarray(node).dtype == np.asarray(buffer).dtype == float
    finally:
        done.set()
        other.join()
