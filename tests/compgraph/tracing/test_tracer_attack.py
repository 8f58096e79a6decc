"""Regression tests of code that bypassed tracers silently or crashed: now right, an error or a warning."""

from __future__ import annotations

import contextlib
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
from compgraph.tracing.leak_errors import LeakError
from tests.support.failures import Failures

POINT = np.array([0.7, 1.3, 0.4])
FLOATING = ("f8", "f4", "f2", "g")
COMPLEX = ("c16", "c8", "G")


def tracer(dtype: str, shape: tuple[int, ...]) -> Any:
    with cg.strict():
        return cg.variable(np.arange(1, 1 + math.prod(shape)).reshape(shape).astype(dtype))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_tracer_gives_no_array_to_numpy(shape: tuple[int, ...]) -> None:
    """A scalar becomes an object array that contains the tracer; its numbers are not exposed."""
    takers: list[Callable[[Any], Any]] = [
        np.asarray, np.array, np.asanyarray, np.ascontiguousarray, lambda a: np.asarray(a, float),
        lambda a: np.array(a, subok=True), lambda a: np.array([a, a], float),
        lambda a: np.zeros(a.shape).__setitem__(..., a), lambda a: np.frombuffer(a, "u1"),
    ]  # fmt: skip
    with Failures("takers") as failures:
        for dtype, (position, take) in itertools.product([*FLOATING, *COMPLEX], enumerate(takers)):
            with failures.case(f"{dtype}, taker {position}"):
                value = tracer(dtype, shape)
                try:
                    array = take(value)
                except (TypeError, ValueError):
                    continue
                assert not shape
                assert array.dtype == object
                assert array[()] is value


def test_tracer_list_imaginary_part_is_right() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.array([x[0] * 1j, x[1] * (1 + 1j)]).imag) + np.sum(x)

    cg.interception(True)
    try:
        assert ad.grad(f)(POINT).tolist() == [2.0, 2.0, 1.0]
    finally:
        cg.interception(False)


@pytest.mark.parametrize("decide", [np.any, np.all, np.count_nonzero, lambda a: a.astype(bool).sum(), np.argmax])
def test_tracer_float32_array_decides_as_numbers(decide: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        narrow = x.astype(np.float32)
        return float(decide(np.array([narrow[0] * 0, narrow[1]]))) * np.sum(x**2)

    expected = f(POINT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ad.value_and_grad(f)(POINT)[0] == pytest.approx(expected)


OF_FUNCTIONS = (np.mean, np.std, np.var, np.sum, np.median, np.average, np.prod, np.max)


def test_tracer_list_statistics_are_right() -> None:
    cg.interception(True)
    try:
        with Failures("statistics") as failures:
            for dtype, function in itertools.product([np.float64, np.float32], OF_FUNCTIONS):
                with failures.case(f"{function.__name__} of {dtype.__name__}"):
                    check_statistics(function, dtype)
    finally:
        cg.interception(False)


def test_tracer_list_statistics_without_interception() -> None:
    with Failures("statistics") as failures:
        for dtype, function in itertools.product([np.float64, np.float32], OF_FUNCTIONS):
            with failures.case(f"{function.__name__} of {dtype.__name__}"), contextlib.suppress(LeakError):
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


def test_tracer_invented_strides_read_no_foreign_memory() -> None:
    process = subprocess.run([sys.executable, "-X", "faulthandler", "-c", STRIDES], capture_output=True, text=True, check=False)
    assert process.stdout == "alive\n", process.stderr


def sum_in_loop(x: Any) -> Any:
    """Numbers that come one at a time of an iterator, to code that is at no call."""
    total = 0.0
    for number in map(math.sin, x):
        total += number
    return total


def sum_by_unpacking(x: Any) -> Any:
    """The same, of an assignment to several names."""
    first, *_ = map(math.sin, x)
    return first


CONVERTED: dict[str, Callable[[Any], Any]] = {
    "loop": sum_in_loop,
    "unpacked": sum_by_unpacking,
    "star": lambda x: sum([*map(math.sin, x)]),
    "starmap": lambda x: sum(itertools.starmap(math.hypot, [(x[0], x[1])])),
    "contained": lambda x: 1.0 + (5.0 in map(math.sin, x)),
    "bytes": lambda x: np.sum(np.frombuffer(bytes(x))),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_tracer_conversion_to_number_warns(name: str) -> None:
    with pytest.warns(RuntimeWarning, match="has no derivative"):
        value, _ = ad.value_and_grad(lambda x: CONVERTED[name](x) * x[0])(POINT)
    assert value == pytest.approx(CONVERTED[name](POINT) * POINT[0])


def test_tracer_formatted_number_does_not_warn() -> None:
    assert ad.grad(lambda x: ("%.3f" % x[0], x[0])[1])(POINT)[0] == 1  # noqa: UP031


# ------------------------------------------------------------------------------------------------ threads


def call_in_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that was there before, with a context of its own."""
    with ThreadPoolExecutor(1) as pool:
        contextvars.Context().run(lambda: pool.submit(int).result())
        return pool.submit(function).result()


def write_into_plain(x: Any) -> Any:
    """A scalar that a thread assigns into a plain array."""
    array = np.zeros(3)
    array[0] = x[0]
    return np.sum(array)


def of_buffer(x: Any) -> Any:
    """A buffer that is created in a thread and passed to other code."""
    array = np.zeros_like(x)
    array[0], array[1:] = x[1], x[1:]
    return math.fsum(np.asarray(array))


@pytest.mark.parametrize("function", [write_into_plain, of_buffer, lambda x: np.asarray(x) * 2, lambda x: math.sin(x[0])])
def test_tracer_conversion_in_thread_raises(function: Callable[[Any], Any]) -> None:
    with pytest.raises(LeakError):
        ad.grad(lambda x: call_in_thread(lambda: function(x)) + np.sum(x))(POINT)


def test_tracer_conversion_in_thread_warns_every_time() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        for _ in range(2):
            with pytest.warns(RuntimeWarning, match="has no derivative"):
                ad.grad(lambda x: pool.submit(lambda: float(x[0])).result() * x[1])(POINT)


def test_tracer_scalar_in_array_of_thread_is_differentiated() -> None:
    slope = ad.grad(lambda x: call_in_thread(lambda: np.asarray(x[0]) * 2) + np.sum(x))(POINT)
    assert slope.tolist() == [3.0, 1.0, 1.0]


def test_tracer_write_into_outer_buffer_raises() -> None:
    """Its memory is an array's, which would show the numbers to C code."""
    outer = cg.zeros(3)

    def f(x: Any) -> Any:
        outer[:] = x**2
        return np.sum(outer * x)

    for differentiate in (lambda: ad.grad(f)(POINT), lambda: ad.jvp(f, (POINT,), (POINT,))):
        with pytest.raises(TypeError, match=r"(array from outside the function|made without one)[.;] .*[Cc]opy (the array|it)"):
            differentiate()
    assert outer.value.tolist() == [0.0, 0.0, 0.0]


def test_tracer_conversion_to_float64_raises_in_every_thread() -> None:
    with ThreadPoolExecutor(4) as pool:
        for k in range(20):
            there = pool.submit(ad.grad(lambda x: np.sum(np.float64(x) ** 2)), np.full(20, float(k)))
            with pytest.raises(LeakError, match=r"Use x\.astype\(np\.float64\)"):
                there.result(10)
            assert np.array_equal(pool.submit(ad.grad(lambda x: np.sum(x.astype(np.float64) ** 2)), POINT).result(10), 2 * POINT)


def test_threads_at_top_level_make_arrays() -> None:
    inside, finish = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        inside.set()
        finish.wait(10)
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
        finish.set()
        other.join()
