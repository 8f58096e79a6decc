"""Captured arrays in attributes, lists and dictionaries: nodes can be written into copies of them, never into the originals."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg

POINT = np.array([0.7, 1.3, 2.1])
STEPS = 1e-6 * np.eye(3)
TABLE = np.ones(4)


class Heat:
    """A simulator whose initial values and parameters are attributes."""

    weights = np.array([1.0, 0.5, 2.0])

    def __init__(self) -> None:
        self.u0, self.rng, self.count = np.linspace(0.0, 1.0, 5), np.random.default_rng(0), np.zeros(3, int)
        self.options = {"k": [np.full(5, 0.1)], "ends": (np.zeros(2), 1.0)}

    def reset(self, p: Any) -> None:
        self.u = self.u0.copy()
        self.u[1:4] += p

    def step(self) -> None:
        k = self.options["k"][0] * 1.0
        k[0] = self.u[0]
        self.u[1:-1] += k[1:-1] * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])

    def run(self, p: Any) -> Any:
        self.reset(p)
        for _ in range(3):
            self.step()
        ends, table, weights = self.options["ends"][0] + 0, TABLE.copy(), self.weights.copy()
        ends[:], table[1], weights[0] = p[:2], p[2], p[0]
        return np.sum(self.u**2) + np.sum(ends**3) + np.sum(table * table) + np.sum(weights * p)

    def __call__(self, p: Any) -> Any:
        return self.run(p)


class Slotted:
    __slots__ = ("x",)

    def __init__(self) -> None:
        self.x = np.ones(3)


@dataclass(frozen=True)
class Frozen:
    x: np.ndarray = field(default_factory=lambda: np.ones(3))


Pair = namedtuple("Pair", "x y")
HEAT = Heat()
HOLDERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "list": ([np.ones(3)], lambda h: h[0]),
    "deque": (deque([np.ones(3)]), lambda h: h[0]),
    "dictionary": ({"x": np.ones(3)}, lambda h: h["x"]),
    "ordered": (OrderedDict(x=np.ones(3)), lambda h: h["x"]),
    "default": (defaultdict(list, x=[np.ones(3)]), lambda h: h["x"][0]),
    "nested": ({"a": [{"b": (1, [np.ones(3)])}]}, lambda h: h["a"][0]["b"][1][0]),
    "tuple": ([(np.ones(3), 2.0)], lambda h: h[0][0]),
    "named tuple": (Pair(np.ones(3), 1), lambda h: h.x),
    "slots": (Slotted(), lambda h: h.x),
    "frozen": (Frozen(), lambda h: h.x),
    "namespace": (SimpleNamespace(x=np.ones(3)), lambda h: h.x),
    "class": (type("Holder", (), {"x": np.ones(3)}), lambda h: h.x),
    "among many": ([np.ones(3) for _ in range(300)], lambda h: h[299]),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": lambda a: a.copy(),
    "np.copy": np.copy,
    "np.array": lambda a: np.array(a),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "sum": lambda a: a + 0,
    "product": lambda a: a * 1.0,
    "of a slice": lambda a: a[:].copy(),
    "flatten": lambda a: a.reshape(3, 1).flatten(),
    "astype": lambda a: a.astype(float),
    "sine": np.sin,
    "index": lambda a: a[[0, 1, 2]],
}


def check_derivatives(f: Callable[[Any], Any], x: Any = POINT) -> None:
    """Compare the derivatives of a function with central differences."""
    expected = np.array([(f(x + e) - f(x - e)) / 2e-6 for e in STEPS])
    compiled = cg.jit(ad.grad(f)).compile(x)  # at once: while another thread traces, holders have views of their arrays
    many = ad.vmap(ad.grad(f))(np.stack([x, x]))
    for derivative in (ad.grad(f)(x), ad.jacfwd(f)(x), compiled(x), compiled(x), compiled(x), *many):
        np.testing.assert_allclose(derivative, expected, rtol=1e-6, atol=1e-7)
    hessian = np.array([(ad.grad(f)(x + e) - ad.grad(f)(x - e)) / 2e-6 for e in STEPS])
    np.testing.assert_allclose(ad.hessian(f)(x), hessian, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call", [HEAT.run, HEAT, lambda p: HEAT.run(p), partial(lambda sim, p: sim.run(p), Heat()), lambda p: Heat().run(p)]
)
def test_captured_arrays_of_simulator_have_derivatives(call: Callable[[Any], Any]) -> None:
    check_derivatives(call)


def _fill(array: Any, p: Any) -> Any:
    array[0] = p[0]
    array[1:] *= p[1:] ** 2
    return np.sum(array * array)


@pytest.mark.parametrize("name", HOLDERS)
def test_captured_array_copy_accepts_nodes(name: str) -> None:
    holder, read = HOLDERS[name]
    check_derivatives(lambda p: _fill(read(holder).copy(), p))
    assert np.array_equal(ad.grad(lambda p, h: _fill(read(h).copy(), p))(POINT, holder)[:1], [1.4])
    assert type(read(holder)) is np.ndarray
    assert np.array_equal(read(holder), np.ones(3))


@pytest.mark.parametrize("name", COPIES)
def test_captured_array_every_kind_of_copy_accepts_nodes(name: str) -> None:
    holder = {"x": np.ones(3)}
    check_derivatives(lambda p: _fill(COPIES[name](holder["x"]), p))


def _filled_table(p: Any, table: Any = np.ones(3)) -> Any:  # noqa: B008
    return _fill(table.copy(), p)


def _filled_keyword_table(p: Any, *, table: Any = np.ones(3)) -> Any:  # noqa: B008
    return _fill(table.copy(), p)


def _make_closure(table: Any) -> Callable[[Any], Any]:
    return lambda p: _fill(table.copy(), p)


def _delegate(function: Callable[..., Any]) -> Callable[..., Any]:
    return wraps(function)(lambda *args: function(*args))


def _filled_attribute(p: Any) -> Any:
    return _fill(_filled_attribute.table.copy(), p)  # type: ignore[attr-defined]


_filled_attribute.table = np.ones(3)  # type: ignore[attr-defined]
closed = _make_closure(np.ones(3))
decorated = _delegate(_filled_table)
bound_argument = partial(_filled_table, table=np.ones(3))
bound_position = partial(lambda table, p: _fill(table.copy(), p), np.ones(3))
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "default": lambda p: _filled_table(p),
    "keyword default": lambda p: _filled_keyword_table(p),
    "cell": lambda p: closed(p),
    "decorated": lambda p: decorated(p),
    "attribute": lambda p: _filled_attribute(p),
    "partial": lambda p: bound_position(p),
    "partial keyword": lambda p: bound_argument(p),
    "partial itself": bound_position,
    "keyword default itself": _filled_keyword_table,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_captured_array_of_called_function_accepts_nodes(name: str) -> None:
    check_derivatives(FUNCTIONS[name])
    arrays = [
        *(_filled_table.__defaults__ or ()), *(_filled_keyword_table.__kwdefaults__ or {}).values(), *bound_position.args,
        *bound_argument.keywords.values(), closed.__closure__[0].cell_contents, vars(_filled_attribute)["table"],
    ]  # fmt: skip
    assert len(arrays) == 6
    for array in arrays:
        assert type(array) is np.ndarray
        assert np.array_equal(array, np.ones(3))


def test_captured_array_write_of_node_raises() -> None:
    for write in (lambda u, p: u.__setitem__(0, p[0]), lambda u, p: u.__iadd__(p), lambda u, p: np.add.at(u, 0, p[0])):
        sim = Heat()
        with pytest.raises(TypeError, match="array from outside the differentiated function"):
            ad.grad(lambda p, sim=sim, write=write: write(sim.u0[:3], p))(POINT)
        assert type(sim.u0) is np.ndarray
        assert np.array_equal(sim.u0, np.linspace(0, 1, 5))


def test_captured_arrays_are_restored() -> None:
    sim = Heat()
    before = sim.u0

    def f(p: Any) -> Any:
        sim.alias, sim.view = sim.u0, sim.u0[1:]
        sim.u0 += 1.0
        sim.count[np.argmax(p)] += 1
        if p[0] > 1:
            raise KeyError
        return np.sum(sim.u0[:3] * p)

    assert np.array_equal(ad.grad(f)(POINT), [1.0, 1.25, 1.5])
    with pytest.raises(KeyError):
        ad.grad(f)(POINT + 1)
    assert sim.u0 is before
    assert sim.alias is before
    assert type(sim.view) is np.ndarray
    assert np.array_equal(sim.u0, np.linspace(2, 3, 5))
    assert sim.count.tolist() == [0, 0, 2]


def test_captured_arrays_in_several_threads() -> None:
    sim, gradients = Heat(), []
    sim_free = lambda p: _fill(sim.u0[:3] + 1.0, p)  # noqa: E731
    expected = ad.grad(sim_free)(POINT)
    operators = (
        lambda: ad.grad(sim_free)(POINT),
        lambda: ad.jacfwd(sim_free)(POINT),
        lambda: ad.vmap(ad.grad(sim_free))(np.stack([POINT]))[0],
    )

    def work(k: int) -> None:
        gradients.extend(operators[k % 3]() for _ in range(10))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(gradients, [expected] * 60)
