"""Every documented leak behaves as its table states, and never gives a silently wrong derivative."""

from __future__ import annotations

import array
import cmath
import copy
import ctypes
import decimal
import fractions
import functools
import importlib
import io
import itertools
import json
import linecache
import math
import operator
import os
import pickle
import random
import re
import runpy
import statistics
import struct
import tempfile
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import autodiff as ad
import compgraph as cg
from autodiff.forward import variables
from autodiff.reverse import check_gradient, gradient
from compgraph.guards import leaks as leak_log
from compgraph.values import ACTIVE
from tests.support.failures import Failures
from tests.support.leak_routes import AT_TOP, ROUTES, WITHIN, Route

pandas = pytest.importorskip("pandas", reason="pandas is optional")

PARTS = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats")
for part in PARTS:
    importlib.import_module(f"scipy.{part}")

pytestmark = [
    pytest.mark.portable,
    pytest.mark.filterwarnings("ignore"),  # snippets leave files open, for example
]
DOCS = Path(__file__).resolve().parents[3] / "docs"
NARROW = re.compile("float32|float16|complex64")  # differences in these need longer steps
POINT = np.array([0.6, 1.1, 1.7])


def attempt(function: Callable[[], Any]) -> Any:
    """The result of a function, or zero if it raises: code that tries alternatives."""
    try:
        return function()
    except Exception:
        return 0.0


def in_thread(function: Callable[[], Any]) -> Any:
    """The result of a function that runs in a separate thread, or its exception."""
    results: list[Any] = []

    def call() -> None:
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0]


AROUND = {
    **{m.__name__: m for m in (array, cmath, copy, ctypes, decimal, fractions, functools, io, itertools, json, math, operator)},
    **{m.__name__: m for m in (os, pandas, pickle, random, scipy, statistics, struct, tempfile, types)},
    "np": np,
    "cg": cg,
    "attempt": attempt,
    "in_thread": in_thread,
}


class Plain(np.ndarray[Any, Any]):
    """A plain array with the one attribute of nodes that the snippets read."""

    value = property(np.asarray)


def expression(code: str) -> bool:
    try:
        compile(code, "", "eval")
    except SyntaxError:
        return False
    return True


@functools.cache
def compiled(code: str) -> Callable[..., Any]:
    """A snippet as a function in a file of its own, as users write it, so that messages can show its lines."""
    *statements, last = code.split("; ")
    lines = [*statements, f"return {last}" if expression(last) else last]
    source = "def snippet(x, plain, square):\n" + "".join(f"    {line}\n" for line in lines)
    name = f"snippet_{len(linecache.cache)}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    around = dict(AROUND)
    exec(compile(source, name, "exec"), around)
    return around["snippet"]  # type: ignore[no-any-return]


def run(code: str, x: Any) -> Any:
    """The result of a snippet."""
    if ".value" in code and not isinstance(x, cg.Node):
        x = x.view(Plain)
    return compiled(code)(x, np.zeros(3), np.zeros((3, 3)))


def total(result: Any) -> Any:
    """The sum of all numbers in a result."""
    if isinstance(result, (list, tuple)):
        return sum(map(total, result), 0.0)
    if isinstance(result, (np.ndarray, np.generic)):
        return np.sum(np.real(result)) if result.dtype.kind in "fciuOV" else 0.0
    return 0.0 if result is None or isinstance(result, (str, bytes)) else np.real(result + 0.0)


def belongs_to_a_graph(result: Any) -> bool:
    """Whether a node that derivatives pass is in a result."""
    if isinstance(result, (list, tuple)) or (isinstance(result, np.ndarray) and result.dtype == object):
        return any(map(belongs_to_a_graph, result))
    return type(result) in ACTIVE


def function_of(route: Route) -> Callable[[Any], Any]:
    """The snippet as a function whose derivative is wrong if the snippet leaks."""
    return lambda x: np.sum(x) + total(run(route.code, x * 1))


@functools.cache
def slopes(route: Route) -> Any:
    """The derivatives of that function, by central differences of plain NumPy."""
    f, size = function_of(route), 2.0**-5 if NARROW.search(route.code) else 1e-6
    return np.array([(float(f(POINT + step)) - float(f(POINT - step))) / (2 * size) for step in size * np.eye(3)])


def is_right(derivative: Any, route: Route) -> bool:
    return bool(np.allclose(derivative, slopes(route), rtol=1e-3, atol=0.1 if NARROW.search(route.code) else 1e-5))


# What SciPy 1.18 computes by the functions of the array's own namespace, which are recorded; older ones take the numbers.
IS_NEW = "xp_promote" in scipy.integrate.simpson.__code__.co_names
NEW = {"scipy.integrate.simpson(x)": {"top": "recorded", "within": "recorded", "instead": ""}} if IS_NEW else {}
ALL = [route._replace(**NEW.get(route.code, {})) for routes in ROUTES.values() for route in routes]


def node() -> Any:
    return cg.variable(POINT) * 1


def each(condition: Callable[[Route], Any]) -> Callable[[Callable[[Route], None]], Callable[[], None]]:
    """Parametrize a check of a route over all routes that satisfy a condition."""

    def decorate(check: Callable[[Route], None]) -> Callable[[], None]:
        def test() -> None:
            with Failures("routes") as failures:
                for route in filter(condition, ALL):
                    with failures.case(route.code):
                        check(route)

        test.__doc__ = check.__doc__
        return test

    return decorate


# -------------------------------------------------------------------------------------------- at the top level


def at_top(f: Callable[[Any], Any]) -> Any:
    x = cg.variable(POINT)
    return gradient(f(x))[x]


@each(lambda route: route.top != "raises")
def test_escape_route_at_top_level_behaves_as_documented(route: Route) -> None:
    with leak_log.collecting_leaks() as leaks, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", RuntimeWarning)
        result = run(route.code, node())
        derivative = at_top(function_of(route))
    messages = [str(w.message) for w in warned if w.category is cg.errors.LeakWarning]
    assert all(m.startswith("gradient: numbers left their graph") for m in messages)
    assert not messages or route.top == "noticed"  # elsewhere the program may intend to use the numbers
    if route.within == "meant":
        assert np.array_equal(derivative, np.ones(3))
    elif route.top in ("recorded", "constant"):
        assert is_right(derivative, route)
    else:
        assert not is_right(derivative, route)
        assert bool(leaks) is (route.top == "noticed")
    if route.top == "recorded":
        assert belongs_to_a_graph(result)


@each(lambda route: route.top == "raises")
def test_escape_route_raises_at_top_level(route: Route) -> None:
    run(route.code, POINT.copy())
    with pytest.raises((TypeError, ValueError)):
        run(route.code, node())


# --------------------------------------------------------------------------------------------- within operators


def guarded(context: Any) -> Callable[[Callable[[Any], Any]], Any]:
    def differentiate(f: Callable[[Any], Any]) -> Any:
        with context(), leak_log.collecting_leaks():
            x = cg.variable(POINT)
            out = f(x)
        return gradient(out)[x]

    return differentiate


MODES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: ad.grad(f)(POINT),
    "jvp": lambda f: np.array([ad.jvp(f, (POINT,), (step,))[1] for step in np.eye(3)]),
    "strict": guarded(cg.strict),
    "debug": guarded(cg.debug),
}


def outcome(route: Route, mode: str = "grad") -> str:
    """The expected outcome of a snippet within operators, or in strict contexts, on this Python."""
    return route.strict if route.strict and mode in ("strict", "debug") else route.within


def in_modes(*outcomes: str) -> Callable[[Callable[[Route, str], None]], Callable[[str], None]]:
    """Parametrize a check of a route over all routes with the given outcomes and over all modes."""

    def decorate(check: Callable[[Route, str], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("mode", MODES)
        def test(mode: str) -> None:
            with Failures(mode) as failures:
                for route in ALL:
                    if outcome(route, mode) in outcomes:
                        with failures.case(route.code):
                            check(route, mode)

        test.__doc__ = check.__doc__
        return test

    return decorate


def names_the_line(message: str, route: Route) -> bool:
    """Whether a message shows a line of the snippet, or of the function that is called in it."""
    return any(f": {line}" in message or f": return {line}" in message for line in route.code.split("; "))


@in_modes("recorded", "constant")
def test_escape_route_keeping_graph_has_right_derivative(route: Route, mode: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)
        assert is_right(MODES[mode](function_of(route)), route)


@each(lambda route: outcome(route) in ("recorded", "constant") and not NARROW.search(route.code))
def test_escape_route_is_accepted_by_verification(route: Route) -> None:
    ad.grad(function_of(route), verify="first")(POINT)
    assert check_gradient(function_of(route), [POINT])


@in_modes("raises", "used")
def test_escape_route_losing_graph_raises(route: Route, mode: str) -> None:
    """The message names the user's line and a remedy, unless NumPy's protocols raise before anything is computed."""
    run(route.code, POINT.copy())
    with pytest.raises((TypeError, ValueError), match=r"[Uu]se |[Ww]rite |make it by|Make the array|pass |Draw ") as caught:
        MODES[mode](function_of(route))
    message = str(caught.value)
    if isinstance(caught.value, cg.LeakError):
        is_used = outcome(route, mode) == "used" and "test_leak_table" in message
        assert is_used or names_the_line(message, route), message
        assert "x.value or cg.stop_gradient(x)" in message or "node.value" in message or "blank.value" in message
    else:
        assert outcome(route, mode) == "raises"
        assert "compgraph" in str(caught.traceback[-1].path)
        assert any("snippet_" in str(entry.path) for entry in caught.traceback)


@in_modes("error")
def test_escape_route_rejected_by_python_raises(route: Route, mode: str) -> None:
    run(route.code, POINT.copy())
    with pytest.raises((TypeError, ValueError)):
        MODES[mode](function_of(route))


@in_modes("warns")
def test_escape_route_by_explicit_conversion_warns(route: Route, mode: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        derivative = MODES[mode](function_of(route))
    messages = [str(w.message) for w in warned if w.category is cg.errors.LeakWarning]
    assert messages
    assert len(messages) == len(set(messages)) * (3 if mode == "jvp" else 1)  # one a line
    assert all(names_the_line(text, route) for text in messages)
    assert all("has no derivative" in text or "may lack a derivative" in text for text in messages)
    assert is_right(derivative, route) is (route.top == "constant")


@each(lambda route: outcome(route) == "warns" and route.top == "noticed")
def test_escape_route_that_warns_is_detected_by_verification(route: Route) -> None:
    f = function_of(route)
    if np.array_equal(slopes(route), np.ones(3)):
        return
    with pytest.raises(ad.DetachedGradientError, match="Values left the graph here"):
        ad.grad(f, verify="first")(POINT)
    with pytest.raises(ad.DetachedGradientError, match="Values left the graph here"):
        check_gradient(f, [POINT])


@in_modes("meant")
def test_escape_route_of_intended_numbers_is_silent(route: Route, mode: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)
        assert np.array_equal(MODES[mode](function_of(route)), np.ones(3))


@each(lambda route: outcome(route) == "text")
def test_escape_route_undetectable_is_found_by_verification(route: Route) -> None:
    """Routes without a conversion, or with a conversion to text, are detected by ``verify="first"`` alone."""
    f = function_of(route)
    assert not is_right(ad.grad(f)(POINT), route)
    with pytest.raises(ad.DetachedGradientError, match=r"No conversion was recorded|(str|format)\(\) at File"):
        ad.grad(f, verify="first")(POINT)
    assert not check_gradient(f, [POINT])


@each(lambda route: outcome(route, "strict") in ("raises", "used", "recorded") and route.top in ("hole", "raises"))
def test_escape_route_of_forward_variables(route: Route) -> None:
    """Outside of operators, forward variables give the right Jacobian or NumPy's own error."""
    f = function_of(route)
    try:
        jacobian = f(variables(POINT)).jacobian
    except (TypeError, ValueError, RuntimeError, struct.error):
        return
    assert is_right(jacobian, route)


@each(lambda route: route.patched)
def test_escape_route_kept_by_patched_numpy(route: Route) -> None:
    with cg.patched_numpy():
        ad.grad(function_of(route), verify="first")(POINT)


def renamed(route: Route) -> str | None:
    """The snippet with the function under ``cg`` in place of NumPy's, where that is what the row advises."""
    name = route.instead.removeprefix("cg.")
    plain = f"np.lib.stride_tricks.{name}" if name == "as_strided" else f"np.{name}"
    return route.code.replace(plain, route.instead, 1) if name != route.instead and plain in route.code else None


@each(renamed)
def test_escape_route_replacement_keeps_graph(route: Route) -> None:
    f = function_of(Route(str(renamed(route)), "recorded", "recorded"))
    assert belongs_to_a_graph(run(str(renamed(route)), node()))
    ad.grad(f, verify="first")(POINT)


def test_escape_route_losing_graph_has_replacement() -> None:
    safe_outcomes = {"recorded", "constant"}
    for route in ALL:
        is_lost = not {route.top, route.within} <= safe_outcomes
        assert bool(route.instead) is is_lost or route.within in ("warns", "meant"), route.code


def test_leak_table_is_complete() -> None:
    assert {route.top for route in ALL} == AT_TOP.keys()
    assert {route.within for route in ALL} == WITHIN.keys()
    assert len({route.code for route in ALL}) == len(ALL) > 300


def test_escape_of_whole_result_names_line() -> None:
    x = cg.variable(POINT, "x")
    with pytest.raises(TypeError, match=r"float\(\) at File .*test_leak_table"):
        gradient(float(x[0]))


def test_escape_page_is_current() -> None:
    page = runpy.run_path(str(DOCS / "make_leaks.py"))["page"]
    assert (DOCS / "leaks.md").read_text() == page(), "run python docs/make_leaks.py"
