"""What a compiled function reaches besides its arguments: a change of it is seen, and another program made."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np
import pytest
from jitting import compiled, is_compiled, refused, same

import compgraph as cg

X = np.linspace(-1.0, 2.0, 5)
FACTOR = 2.0
TABLE = np.arange(5.0)
SETTINGS = {"rate": 0.5, "steps": [1.0, 2.0]}


def helper(x: Any) -> Any:
    return x * FACTOR


def uses_helper(x: Any) -> Any:
    return helper(x) + 1


def follows(jitted: Any, *changes: Any) -> None:
    """After each change the compiled function gives what the function gives."""
    assert is_compiled(jitted), jitted.report()
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            assert same(jitted(X), jitted.__wrapped__(X)), jitted.report()
    assert is_compiled(jitted), jitted.report()


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = compiled(lambda x: x * FACTOR, X)
    follows(jitted, lambda: monkeypatch.setitem(globals(), "FACTOR", 3.0), lambda: monkeypatch.setitem(globals(), "FACTOR", 2.0))
    assert "program 2" in jitted.report()
    assert "program 3" not in jitted.report()


def test_globals_of_functions_that_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    follows(
        compiled(uses_helper, X),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 5.0),
        lambda: monkeypatch.setitem(globals(), "helper", lambda x: x - 1),
    )


def test_equal_numbers_need_no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = compiled(uses_helper, X)
    follows(jitted, lambda: monkeypatch.setitem(globals(), "FACTOR", float("2.0")))
    assert "program 2" not in jitted.report()


def test_closures() -> None:
    scale, bias = 2.0, np.ones(5)

    def f(x: Any) -> Any:
        return x * scale + bias

    jitted = compiled(f, X)
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    follows(
        jitted,
        lambda: setattr(cells["scale"], "cell_contents", -1.0),
        lambda: setattr(cells["bias"], "cell_contents", np.zeros(5)),
        lambda: setattr(cells["scale"], "cell_contents", np.float32(3)),
    )


@pytest.mark.parametrize("size", [5, 20_000, 500_000])
def test_arrays_that_are_written_into(size: int) -> None:
    table = np.arange(float(size))
    jitted = compiled(lambda x: x * table.sum() + table[:5] + table[-1], X)

    def write(place: int, value: float) -> None:
        table[place] = value

    follows(jitted, lambda: write(0, 7.0), lambda: write(size // 2, -7.0), lambda: write(-1, np.nan))


def test_zeros_of_another_sign_are_seen() -> None:
    table = np.zeros(5)
    jitted = compiled(lambda x: np.copysign(x, table), X)
    follows(jitted, lambda: table.fill(-0.0))


def test_lists_and_dictionaries() -> None:
    layers = [np.ones(5), np.ones(5) * 2]
    settings: dict[str, Any] = {"rate": 0.5, "more": {"offset": 1.0}}

    def f(x: Any) -> Any:
        for layer in layers:
            x = x * layer
        return x * settings["rate"] + settings["more"]["offset"]

    follows(
        compiled(f, X),
        lambda: layers.append(np.ones(5) * 3),
        lambda: settings.update(rate=2.0),
        lambda: settings["more"].update(offset=-1.0),
        lambda: layers[0].fill(9.0),
        lambda: layers.pop(),
    )


def test_default_values() -> None:
    ones = np.ones(5)

    def f(x: Any, scale: Any = 2.0, *, table: Any = ones) -> Any:
        return x * scale + table

    def change() -> None:
        f.__defaults__ = (4.0,)

    follows(compiled(f, X), change, lambda: f.__kwdefaults__["table"].fill(3.0))


class Net:
    rate = 0.1

    def __init__(self) -> None:
        self.w, self.layers, self.unused = np.ones(5), [np.ones(5)], 0

    def loss(self, x: Any) -> Any:
        return self.inner(x) * self.rate + self.layers[0]

    def inner(self, x: Any) -> Any:
        return self.w * x

    @property
    def doubled(self) -> Any:
        return self.w * 2


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w: Any) -> None:
        self.w = w


def test_attributes_of_self(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    jitted = compiled(net.loss, X)
    follows(
        jitted,
        lambda: setattr(net, "w", np.ones(5) * 2),
        lambda: net.w.fill(5.0),
        lambda: setattr(net, "rate", 0.7),
        lambda: net.layers.insert(0, np.zeros(5)),
        lambda: monkeypatch.setattr(Net, "inner", lambda self, x: x),
    )
    before = jitted.report().count("program")
    net.unused = 1
    jitted(X)
    assert jitted.report().count("program") == before


def test_objects_that_are_reached() -> None:
    net, slotted, space = Net(), Slotted(np.ones(5)), types.SimpleNamespace(a=2.0)
    jitted = compiled(lambda x: net.doubled * x + slotted.w * space.a, X)
    follows(
        jitted,
        lambda: setattr(net, "w", np.ones(5) * 2),
        lambda: setattr(slotted, "w", np.zeros(5)),
        lambda: setattr(space, "a", 3.0),
    )


def test_objects_as_arguments() -> None:
    def f(net: Any, x: Any) -> Any:
        return net.inner(x)

    one, two = Net(), Net()
    two.w = two.w * 3
    jitted = compiled(f, one, X)
    for net in (one, two, one):
        assert same(jitted(net, X), f(net, X))
    one.w = np.zeros(5)
    two.w[0] = 17.0
    for net in (one, two):
        assert same(jitted(net, X), f(net, X))


def test_attributes_by_computed_names() -> None:
    net = Net()
    jitted = compiled(lambda x: getattr(net, "w") * x, X)  # noqa: B009
    follows(jitted, lambda: setattr(net, "w", np.zeros(5)))


def test_partials() -> None:
    table = np.ones(5)
    jitted = compiled(functools.partial(lambda t, x: t * x, table), X)
    follows(jitted, lambda: table.fill(3.0))


def test_constants_of_modules() -> None:
    config = types.ModuleType("config_of_a_user")
    config.__file__ = "/somewhere/config_of_a_user.py"
    config.rate = 2.0  # type: ignore[attr-defined]
    import sys

    sys.modules["config_of_a_user"] = config
    try:
        jitted = compiled(lambda x: x * config.rate, X)  # type: ignore[attr-defined]
        follows(jitted, lambda: setattr(config, "rate", 3.0))
    finally:
        del sys.modules["config_of_a_user"]


def test_what_changes_too_often_runs_as_numpy() -> None:
    state = {"step": 0}
    jitted = compiled(lambda x: x * state["step"], X)
    for step in range(30):
        state["step"] = step
        assert same(jitted(X), X * step)
    assert "state" in jitted.report()
    assert "make it an argument" in jitted.report()


def test_modules_and_their_functions_need_no_comparison() -> None:
    jitted = compiled(lambda x: np.sin(x) + np.linalg.norm(x), X)
    (programs,) = jitted._entries.values()
    assert programs.variants[0].captured is None


def test_too_much_is_refused() -> None:
    many = list(range(5000))
    refused(lambda x: x * many[3], X, words="5000 values")


def test_nodes_that_are_reached() -> None:
    w = cg.variable(2.0)
    jitted = refused(lambda x: x * w, X, words="a node of a graph")
    assert isinstance(jitted(X), cg.Node)
    c = cg.constant(2.0)
    refused(lambda x: x * c, X, words="a node of a graph")


def test_in_the_background() -> None:
    scale = {"a": 1.0}
    jitted = cg.jit(lambda x: x * scale["a"])
    for a in (1.0, 2.0):
        scale["a"] = a
        for _ in range(4):
            assert same(jitted(X), X * a)
        assert jitted.wait(30)
        assert same(jitted(X), X * a)
    assert "program 2" in jitted.report()
