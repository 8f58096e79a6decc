"""Compiled functions called on nodes are recorded as one operation, with compiled derivatives of every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient

pytest.importorskip("llvmlite", reason="without a compiler these functions run as NumPy")

pytestmark = pytest.mark.portable

Array = np.ndarray[Any, Any]
X = np.linspace(0.1, 0.9, 5)


def wait_for_programs(jitted: Any) -> None:
    """Wait for the programs of a function and of its derivatives."""
    assert jitted.wait()
    for pull in jitted.__dict__.get("_pulls", {}).values():
        wait_for_programs(pull)


def repeat_derivative(jitted: Any, derivative: Callable[..., Any], *args: Any) -> list[Any]:
    """The results of a derivative while programs of its functions are compiled, and afterwards."""
    derivatives = []
    for _ in range(8):
        derivatives.append(derivative(*args))
        wait_for_programs(jitted)
    return derivatives


def energy(x: Any, scale: Any = 2.0) -> Any:
    y = np.tanh(x * scale)
    for _ in range(3):
        y = np.sin(y) + x
    return np.sum(y * y)


@pytest.mark.parametrize(
    "operator",
    [ad.grad, ad.value_and_grad, ad.jacobian, ad.hessian, ad.jacfwd, lambda f: ad.grad(lambda x: np.sum(ad.grad(f)(x) ** 2))],
    ids=["grad", "value_and_grad", "jacobian", "hessian", "jacfwd", "grad-of-grad"],
)
def test_jit_derivatives_match_function(operator: Any) -> None:
    jitted = cg.jit(energy)
    expected = operator(energy)(X)
    for derivative in repeat_derivative(jitted, operator(jitted), X):
        for a, e in (
            zip(np.atleast_1d(derivative), np.atleast_1d(expected), strict=True)
            if not isinstance(derivative, tuple)
            else zip(derivative, expected, strict=True)
        ):
            np.testing.assert_allclose(a, e, rtol=1e-10)


def test_jit_call_is_one_operation_with_compiled_derivative() -> None:
    jitted = cg.jit(energy)
    jitted.compile(X)
    x = cg.variable(X, "x")
    for _ in range(6):
        y = jitted(x) * 2.0
        assert y.args[0].opname == "jit"
        np.testing.assert_allclose(gradient(y)["x"], 2 * ad.grad(energy)(X), rtol=1e-10)
        wait_for_programs(jitted)
    (pull,) = jitted._pulls.values()
    assert "program 1" in pull.report()
    assert " 0 runs" not in pull.report()


def test_jit_jvp_and_hvp() -> None:
    jitted, v = cg.jit(energy), np.cos(X)
    for derivative in repeat_derivative(jitted, lambda x: ad.jvp(jitted, (x,), (v,)), X):
        np.testing.assert_allclose(derivative, ad.jvp(energy, (X,), (v,)), rtol=1e-10)
    for derivative in repeat_derivative(jitted, lambda x: ad.hvp(jitted)(x, v), X):
        np.testing.assert_allclose(derivative, ad.hvp(energy)(X, v), rtol=1e-10)


def test_jit_nested_arguments_and_several_results() -> None:
    def layers(p: Any, x: Any, steps: int = 2) -> Any:
        h = x @ p["w"] + p["b"]
        for _ in range(steps):
            h = np.tanh(h)
        return {"out": h, "size": np.sum(h * h)}

    rng = np.random.default_rng(0)
    p, x = {"w": rng.normal(size=(4, 3)), "b": np.ones(3)}, rng.normal(size=(6, 4))
    jitted = cg.jit(layers)

    def loss(f: Any) -> Any:
        return lambda p: f(p, x, steps=3)["size"] + np.sum(f(p, x)["out"] ** 3)

    expected = ad.grad(loss(layers))(p)
    for gradients in repeat_derivative(jitted, ad.grad(loss(jitted)), p):
        for name in p:
            np.testing.assert_allclose(gradients[name], expected[name], rtol=1e-10)


def test_jit_branches_on_values_are_reevaluated() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * x) if x[0] > 0.5 else np.sum(np.sin(x))

    jitted = cg.jit(f)
    for _ in range(6):
        for x in (X, X + 1.0):
            np.testing.assert_allclose(ad.grad(jitted)(x), ad.grad(f)(x), rtol=1e-12)
        wait_for_programs(jitted)


def test_jit_captured_state_may_change() -> None:
    scale = np.array([2.0])

    def f(x: Any) -> Any:
        return np.sum(np.sin(x * scale))

    jitted = cg.jit(f)
    for k in range(10):
        scale[0] = 2.0 + k // 5
        np.testing.assert_allclose(ad.grad(jitted)(X), scale * np.cos(X * scale), rtol=1e-12)
        wait_for_programs(jitted)


def test_jit_captured_variables_have_gradients() -> None:
    w = cg.variable(3.0, "w")

    @cg.jit
    def f(x: Any) -> Any:
        return np.sum(np.sin(x * w))

    x = cg.variable(X, "x")
    for _ in range(6):
        gradients = gradient(f(x))
        np.testing.assert_allclose(gradients["w"], np.sum(X * np.cos(3 * X)), rtol=1e-12)
        np.testing.assert_allclose(gradients["x"], 3 * np.cos(3 * X), rtol=1e-12)
        wait_for_programs(f)


def test_jit_keeps_values_of_argument_at_call() -> None:
    jitted = cg.jit(lambda x, a: np.sum(np.sin(x * a)))
    a = np.full(5, 2.0)
    jitted.compile(X, a)
    for at in (X, np.zeros(5)):  # at zero the value does not depend on the other argument
        a[:] = 2.0
        x = cg.variable(at, "x")
        y = jitted(x, a)
        assert y.opname == "jit"
        a[:] = 3.0
        np.testing.assert_allclose(gradient(y)["x"], 2 * np.cos(2 * at))


def test_jit_within_vmap_and_jit_is_recorded() -> None:
    jitted = cg.jit(energy)
    rows = np.stack([X, X * 0.5, X + 0.2])
    for _ in range(5):
        np.testing.assert_allclose(ad.vmap(ad.grad(jitted))(rows), ad.vmap(ad.grad(energy))(rows), rtol=1e-10)
        wait_for_programs(jitted)
    outer = cg.jit(ad.grad(lambda x: jitted(x) * 2.0)).compile(X)
    assert "program 1" in outer.report()
    np.testing.assert_allclose(outer(X), 2 * ad.grad(energy)(X), rtol=1e-10)


def test_jit_operation_replays() -> None:
    jitted = cg.jit(energy).compile(X)
    x = cg.placeholder((5,), example=X)
    y = jitted(x) + np.sum(x)
    executor = cg.Executor([y])
    np.testing.assert_allclose(executor.run({x: X * 0.3})[0], energy(X * 0.3) + np.sum(X * 0.3), rtol=1e-12)


def test_jit_distinguishes_rounding_from_changed_function() -> None:
    x = np.linspace(-1.0, 1.0, 60)

    def f(x: Any, b: Any) -> Any:  # the sum is rounding alone, another in each program
        return np.sum(x * b), x * 2.0

    def total(f: Any) -> Any:
        return lambda x: (lambda s, v: s + np.sum(v**2))(*f(x, np.full(60, 3.0)))

    jitted = cg.jit(f).compile(x, x)
    for derivative in repeat_derivative(jitted, ad.grad(total(jitted)), x):
        np.testing.assert_allclose(derivative, ad.grad(total(f))(x), rtol=1e-10)


EFFECTS: dict[str, Callable[..., Any]] = {
    "list": lambda x, state, rng: state.append(1),
    "count": lambda x, state, rng: state.__setitem__(0, state[0] + 1),
    "array": lambda x, state, rng: np.add(state[1], 1, out=state[1]),
    "generator": lambda x, state, rng: rng.random(),
    "argument": lambda x, state, rng: np.multiply(x, 2, out=x),
    "none": lambda x, state, rng: None,
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {  # of a function and of a compiler of functions
    "jit": lambda f, jit: jit(f),
    "grad of jit": lambda f, jit: ad.grad(jit(f)),
    "value_and_grad of jit": lambda f, jit: ad.value_and_grad(jit(f)),
    "jit of grad": lambda f, jit: jit(ad.grad(f)),
    "jvp of jit": lambda f, jit: (lambda g: lambda x: ad.jvp(g, (x,), (np.ones(5),))[0])(jit(f)),
    "vmap of jit": lambda f, jit: (lambda g: lambda x: ad.vmap(g, randomness="same")(np.stack([x, x])))(jit(f)),
    "jit of jit": lambda f, jit: (lambda g: jit(lambda x: 2 * g(x)))(jit(f)),
    "grad of jit of jit": lambda f, jit: (lambda g: ad.grad(jit(lambda x: 2 * g(x))))(jit(f)),
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("effect", EFFECTS)
def test_jit_side_effects_occur_once_per_call(effect: str, operator: str) -> None:
    def history(jit: Any) -> list[Any]:
        state: list[Any] = [0, np.zeros(2)]
        rng = np.random.default_rng(0)
        functions: list[Any] = []

        def f(x: Any) -> Any:
            EFFECTS[effect](x, state, rng)
            return np.sum(x * x) * 3

        def compiled(g: Any) -> Any:
            functions.append(jit(g))
            return functions[-1]

        call, history_entries = OPERATORS[operator](f, compiled), []
        for _ in range(6):
            x = X.copy()
            values = call(x)
            for jitted in functions:
                if jitted.__class__.__name__ == "Jitted":
                    wait_for_programs(jitted)
            history_entries.append((values, x, (len(state), state[0], state[1].tolist(), rng.bit_generator.state["state"])))
        return history_entries

    for history_entries, expected in zip(history(cg.jit), history(lambda f: f), strict=True):
        for a, e in zip(*(v if isinstance(v, tuple) else (v,) for v in (history_entries[0], expected[0])), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-10)
        np.testing.assert_array_equal(history_entries[1], expected[1])
        assert history_entries[2] == expected[2]
