"""Guards of shapes: a graph is bound to the whole shape, or to the one axis that Python read."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import json
import math
import operator
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from compgraph.executor import passes
from compgraph.executor.schedule import Schedule
from compgraph.guards.guard_logs import logged_guards, logs_of
from compgraph.guards.guarded_shapes import Shape, watch_shapes
from compgraph.values import Value
from tests.support.failures import Failures

ONE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "first": (lambda p: p.shape[0], "[0]"),
    "second": (lambda p: p.shape[1], "[1]"),
    "last": (lambda p: p.shape[-1], "[-1]"),
    "within": (lambda p: np.zeros((p.shape[1] * 2, 1)), "[1]"),
    "argument": (lambda p: range(p.shape[0]), "[0]"),
    "compared": (lambda p: p.shape[0] > 1, "[0]"),
    "variable": (lambda p, k=1: p.shape[k], "[1]"),
    "of NumPy": (lambda p: p.shape[np.int64(1)], "[1]"),
    "kept": (lambda p: (kept := p.shape)[0] + kept[0], "[0]"),
    "in a tuple": (lambda p: (p.shape, 0)[0][1], "[1]"),
    "by name": (lambda p: operator.attrgetter("shape")(p)[1], "[1]"),
    "by itemgetter": (lambda p: operator.itemgetter(1)(p.shape), "[1]"),
}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "whole": lambda s: s,
    "slice": lambda s: s[:1],
    "reversed slice": lambda s: s[::-1],
    "unpacked": lambda s: (lambda a, b: (a, b))(*s),
    "assigned": lambda s: [(a, b) for a, b in [s]],
    "assigned with a rest": lambda s: [a for a, *b in [s]],
    "in a list": lambda s: [*s],
    "in a tuple": lambda s: (0, *s),
    "matched": lambda s: matched(s),
    "equal": lambda s: s == (2, 3),
    "equal, the other way": lambda s: (2, 3) == s,  # noqa: SIM300
    "unequal": lambda s: s != (2, 3),
    "less": lambda s: s < (2, 4),
    "greater, the other way": lambda s: (2, 4) >= s,  # noqa: SIM300
    "a key": lambda s: {(2, 3): 1}[s],
    "in a set": lambda s: s in {(2, 3), (3, 2)},
    "contained": lambda s: 3 in s,
    "counted": lambda s: s.count(2),
    "found": lambda s: s.index(3),
    "length": len,
    "truth": bool,
    "hashed": hash,
    "shown": repr,
    "formatted": lambda s: f"{s}",
    "summed": sum,
    "product": math.prod,
    "NumPy's product": np.prod,
    "greatest": max,
    "sorted": sorted,
    "reversed": lambda s: tuple(reversed(s)),
    "zipped": lambda s: tuple(zip(s, s, strict=True)),
    "enumerated": lambda s: tuple(enumerate(s)),
    "mapped": lambda s: tuple(map(float, s)),
    "reduced": lambda s: functools.reduce(operator.mul, s),
    "chained": lambda s: tuple(itertools.chain(s, s)),
    "as a tuple": tuple,
    "added": lambda s: s + (1,),  # noqa: RUF005
    "added to": lambda s: (1,) + s,  # noqa: RUF005
    "repeated": lambda s: s * 2,
    "repeated, the other way": lambda s: 2 * s,
    "added to an array": lambda s: (s + np.ones(2)).tolist(),
    "an array added": lambda s: (np.ones(2) + s).tolist(),
    "array": lambda s: np.array(s).tolist(),
    "zeros": lambda s: np.zeros(s).tolist(),
    "empty": lambda s: np.empty(s).shape,
    "full": lambda s: np.full(s, 2.0).tolist(),
    "reshape": lambda s: np.arange(6).reshape(s).tolist(),
    "np.reshape": lambda s: np.reshape(np.arange(6), s).tolist(),
    "broadcast_to": lambda s: np.broadcast_to(1.0, s).tolist(),
    "ndindex": lambda s: list(np.ndindex(s)),
    "unravel_index": lambda s: list(map(int, np.unravel_index(4, s))),
    "ravel_multi_index": lambda s: int(np.ravel_multi_index((1, 2), s)),
    "random numbers": lambda s: np.random.default_rng(0).normal(size=s).tolist(),
    "an index": lambda s: int(np.arange(20).reshape(4, 5)[s]),
    "cg.zeros": lambda s: cg.zeros(s).value.tolist(),
    "packed": lambda s: struct.pack("ii", *s),
    "json": json.dumps,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": lambda s: pickle.loads(pickle.dumps(s)),
}
# Code in C that reads a tuple as it is, without asking its class: all is bound if it is alone to read it.
BLIND: dict[str, Callable[[Any], Any]] = {
    "percent": lambda s: operator.mod("%d, %d", s),
    "a tuple's own": lambda s: tuple.__getitem__(s, 1),
}


def matched(shape: Any) -> int:
    match shape:
        case (2, n):
            return n
    raise AssertionError


def guards_of(read: Callable[[Any], Any]) -> set[str]:
    """The guards that are logged when a function reads a placeholder's shape."""
    cg.reset()
    p = cg.placeholder((None, None), name="p", example=np.ones((2, 3)))
    read(p)
    return {
        guard.description.removeprefix(".shape")
        for guard in logged_guards(logs_of([p]))
        if guard.description.startswith(".shape")
    }


def test_shape_guard_of_one_axis() -> None:
    with Failures("reads of a shape") as failures:
        for name, (read, axis) in ONE.items():
            with failures.case(name):
                assert guards_of(read) == {axis}


def test_shape_guard_of_whole_shape() -> None:
    with Failures("reads of a shape") as failures:
        for name, read in (WHOLE | BLIND).items():
            with failures.case(name):
                assert guards_of(lambda p, read=read: read(p.shape)) == {""}
                p = cg.placeholder((None, None), name="p", example=np.ones((2, 3)))
                assert isinstance(p.shape, Shape)
                assert read(p.shape) == read((2, 3))


def test_shape_guard_of_whole_shape_beside_one_axis() -> None:
    with Failures("reads of a shape") as failures:
        for name in [*WHOLE, "another axis"]:
            with failures.case(name):
                check_reads_beside_an_axis(name)


def check_reads_beside_an_axis(name: str) -> None:
    """Read one axis and all of the shape, in either order."""
    read = WHOLE.get(name, operator.itemgetter(1))

    def before(p: Any) -> None:
        shape = p.shape
        assert shape[0] == 2
        read(shape)

    def after(p: Any) -> None:
        shape = p.shape
        read(shape)
        assert shape[0] == 2

    assert guards_of(before) == guards_of(after) == ({""} if name != "whole" else {"[0]"})


def test_shape_guard_late_in_long_function() -> None:
    text = "def f(p):\n" + "\n".join(f"    v{k} = {k}.5" for k in range(300)) + "\n    return p.shape[300 - 299]"
    around: dict[str, Any] = {}
    exec(text, around)
    assert guards_of(around["f"]) == {"[1]"}


def test_shape_guard_of_graph_binds_one_axis() -> None:
    cg.reset()
    p = cg.placeholder((None, None), name="p", example=np.ones((2, 3)))
    scaled = p * p.shape[1]
    assert [guard.description for guard in logged_guards(logs_of([p]))] == [".shape[1]"]
    run = cg.Executor([scaled]).run
    assert run({p: np.ones((5, 3))})[0].shape == (5, 3)
    with pytest.raises(cg.GuardError):
        run({p: np.ones((5, 4))})


def test_shape_guard_program_contains_plain_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[Any] = []

    def look(schedule: Schedule) -> Schedule:
        options.extend(item.options["shape"] for item in schedule.items if "shape" in getattr(item, "options", ()))
        return schedule

    monkeypatch.setitem(passes.PASSES, "look", look)
    p, x = cg.placeholder((None, None), name="p", example=np.ones((2, 3))), cg.variable(np.arange(6.0), "x")
    np.testing.assert_array_equal(cg.Executor(np.reshape(x, p.shape) * p).run({p: np.ones((2, 3))}), [[0, 1, 2], [3, 4, 5]])
    assert [(type(shape), shape) for shape in options] == [(tuple, (2, 3))]


class Thing:
    """Something that lives and dies faster than a placeholder."""


def cost_nothing() -> None:
    """Body of the test below, which needs a process without other placeholders."""
    names = ("shape", "size", "nbytes", "__len__", "__iter__")
    gc.collect()
    before = [Value.__dict__.get(name) for name in names]
    p = cg.placeholder((None,))
    assert Value.__dict__["shape"] is not before[0]
    del p
    gc.collect()
    assert [Value.__dict__.get(name) for name in names] == before

    def live_and_die() -> None:
        for _ in range(3000):
            watch_shapes(Thing())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=live_and_die) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    gc.collect()
    assert [Value.__dict__.get(name) for name in names] == before
    assert type(cg.variable([1.0]).shape) is tuple


def test_shape_guard_costs_nothing_without_placeholder() -> None:
    root = Path(__file__).parents[3]
    code = "from tests.compgraph.guards.test_guarded_shapes import cost_nothing; cost_nothing()"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert process.returncode == 0, process.stderr
