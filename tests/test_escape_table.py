"""The table of routes out of the graph: each does what it says, and none is silently wrong."""

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
import math
import operator
import pickle
import random
import runpy
import statistics
import struct
import tempfile
import threading
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from escape_routes import OUTCOMES, ROUTES, Route

import autodiff as ad
import compgraph as cg
from autodiff.reverse import check_gradient, gradient
from compgraph import escapes
from compgraph.nodes import ACTIVE

PARTS = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats")
for part in PARTS:
    importlib.import_module(f"scipy.{part}")

pytestmark = pytest.mark.filterwarnings("ignore")  # of what the snippets do, such as files that are left open
DOCS = Path(__file__).resolve().parent.parent / "docs"
POINT = np.array([0.6, 1.1, 1.7])
ALL = [route for routes in ROUTES.values() for route in routes]


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function gives in a thread of its own."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


AROUND = {
    **{m.__name__: m for m in (array, cmath, copy, ctypes, decimal, fractions, functools, io, itertools, json, math, operator)},
    **{m.__name__: m for m in (pickle, random, scipy, statistics, struct, tempfile, types)},
    "np": np,
    "cg": cg,
    "in_thread": in_thread,
}


class Plain(np.ndarray[Any, Any]):
    """A plain array with the one attribute of nodes that the snippets read."""

    value = property(np.asarray)


def run(code: str, x: Any) -> Any:
    """The result of a snippet."""
    if ".value" in code and not isinstance(x, cg.Node):
        x = x.view(Plain)
    around = {**AROUND, "x": x, "plain": np.zeros(3), "square": np.zeros((3, 3))}
    *statements, last = code.split("; ")
    for statement in statements:
        exec(statement, around)
    try:
        return eval(last, around)
    except SyntaxError:
        return exec(last, around)


def total(result: Any) -> Any:
    """The sum of all numbers in a result."""
    if isinstance(result, (list, tuple)):
        return sum(map(total, result), 0.0)
    if isinstance(result, (np.ndarray, np.generic, int, float, complex)):
        return np.sum(np.real(result)) if getattr(result, "dtype", np.dtype(float)).kind in "fciuO" else 0.0
    return 0.0


def belongs_to_a_graph(result: Any) -> bool:
    """Whether a node that derivatives pass is in a result."""
    if isinstance(result, (list, tuple)) or (isinstance(result, np.ndarray) and result.dtype == object):
        return any(map(belongs_to_a_graph, result))
    return result.__class__ in ACTIVE


def function_of(route: Route) -> Callable[[Any], Any]:
    """The snippet as a function whose derivative is wrong if the snippet lost a part of it."""
    return lambda x: np.sum(x) + total(run(route.code, x * 1))


def node() -> Any:
    return cg.variable(POINT) * 1


# What SciPy 1.18 computes by the functions of the array's own namespace, which are recorded; older ones take the numbers.
if "xp_promote" in scipy.integrate.simpson.__code__.co_names:
    ALL = [r._replace(outcome="recorded", instead="") if r.code == "scipy.integrate.simpson(x)" else r for r in ALL]


@pytest.mark.parametrize("route", [r for r in ALL if r.outcome != "raises"], ids=lambda r: r.code)
def test_what_does_not_raise_is_right_or_found(route: Route) -> None:
    f = function_of(route)
    with escapes.noticing() as seen:
        result = run(route.code, node())
    if route.outcome in ("recorded", "constant"):
        ad.grad(f, verify="first")(POINT)
        assert check_gradient(f, [POINT])
        assert belongs_to_a_graph(result) is (route.outcome == "recorded")
        return
    assert bool(seen) is (route.outcome == "noticed")
    with pytest.raises(ad.DetachedGradientError, match="Values left the graph here" if seen else "No conversion was noticed"):
        ad.grad(f, verify="first")(POINT)
    if seen:
        with pytest.raises(ad.DetachedGradientError, match=r"Values left the graph here"):
            check_gradient(f, [POINT])
    else:
        assert not check_gradient(f, [POINT])


@pytest.mark.parametrize("route", [r for r in ALL if r.outcome == "raises"], ids=lambda r: r.code)
def test_what_raises_does_so_for_nodes(route: Route) -> None:
    run(route.code, POINT.copy())
    with pytest.raises((TypeError, ValueError)):
        run(route.code, node())


@pytest.mark.parametrize("route", ALL, ids=lambda r: r.code)
def test_what_patching_keeps(route: Route) -> None:
    if not route.patched:
        return
    with cg.patched_numpy():
        ad.grad(function_of(route), verify="first")(POINT)


def renamed(route: Route) -> str | None:
    """The snippet with the function under ``cg`` in place of NumPy's, where that is what the row advises."""
    name = route.instead.removeprefix("cg.")
    plain = f"np.lib.stride_tricks.{name}" if name == "as_strided" else f"np.{name}"
    return route.code.replace(plain, route.instead, 1) if name != route.instead and plain in route.code else None


RENAMED = [r for r in ALL if renamed(r)]


@pytest.mark.parametrize("route", RENAMED, ids=lambda r: r.code)
def test_the_function_that_is_advised_keeps_the_graph(route: Route) -> None:
    f = function_of(Route(str(renamed(route)), "recorded"))
    assert belongs_to_a_graph(run(str(renamed(route)), node()))
    ad.grad(f, verify="first")(POINT)


def test_what_is_lost_has_an_alternative() -> None:
    for route in ALL:
        assert bool(route.instead) is (route.outcome in ("raises", "noticed", "hole")), route.code


def test_the_table_is_whole() -> None:
    counts = Counter(route.outcome for route in ALL)
    assert counts.keys() == OUTCOMES.keys()
    assert len({route.code for route in ALL}) == len(ALL) > 200


def test_a_result_that_is_lost_altogether_names_the_line() -> None:
    x = cg.variable(POINT, "x")
    with pytest.raises(TypeError, match=r"float\(\) at File .*test_escape_table"):
        gradient(math.sin(x[0]))


def test_the_page_is_current() -> None:
    page = runpy.run_path(str(DOCS / "make_escapes.py"))["page"]
    assert (DOCS / "escapes.md").read_text() == page(), "run python docs/make_escapes.py"
