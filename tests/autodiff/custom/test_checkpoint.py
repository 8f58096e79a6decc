"""checkpoint and checkpointed_chain: derivatives, closures, memory, writes, functions that change."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, checkpoint, checkpointed_chain, grad, jvp, vjp
from autodiff.checks import check_graph
from autodiff.reverse import gradient
from tests.support.for_each import for_each

X, V = np.array([1.0, 2.0, 0.3]), np.array([1.0, -1.0, 0.5])


def f(x: Any) -> Any:
    return np.sum(np.sin(x) ** 3 * x)


class TestDerivatives:
    def test_checkpoint_derivatives_of_any_order_and_mode(self) -> None:
        g = checkpoint(f)
        assert np.array_equal(grad(g)(X), grad(f)(X))
        hessian = jvp(grad(f), (X,), (V,))[1]
        for result in (
            jvp(grad(g), (X,), (V,))[1],
            grad(lambda x: np.sum(grad(g)(x) * V))(X),
            grad(lambda x: jvp(g, (x,), (V,))[1])(X),
            jvp(checkpoint(grad(f)), (X,), (V,))[1],
        ):
            assert np.allclose(result, hessian, rtol=1e-13)
        check_grads(checkpoint(lambda x, y: np.tanh(x) @ y), [X, V], order=3)

    def test_checkpoint_nested_arguments_and_results(self) -> None:
        def g(parts: Any, *, scale: float, mode: str) -> Any:
            assert mode == "up"
            return {"a": parts["x"] * scale, "b": (np.sum(parts["x"] * parts["y"]), None, "text", np.argmax(parts["x"]))}

        def total(function: Any) -> Any:
            def value(x: Any, y: Any) -> Any:
                out = function({"x": x, "y": y}, scale=2.0, mode="up")
                assert out["b"][1:3] == (None, "text")
                assert int(out["b"][3]) == 1
                return np.sum(out["a"] ** 2) * out["b"][0]

            return value

        for actual, expected in zip(
            grad(total(checkpoint(g)), argnums=(0, 1))(X, V), grad(total(g), argnums=(0, 1))(X, V), strict=True
        ):
            assert np.allclose(actual, expected, rtol=1e-14)
        tangent = jvp(total(checkpoint(g)), (X, V), (V, X))[1]
        assert np.isclose(float(tangent), float(jvp(total(g), (X, V), (V, X))[1]))
        second = [jvp(grad(total(h)), (X, V), (V, X))[1] for h in (g, checkpoint(g))]
        assert np.allclose(*second, rtol=1e-13)

    def test_checkpoint_with_unused_results(self) -> None:
        two = checkpoint(lambda x: (np.sin(x), np.exp(x)))
        assert np.array_equal(grad(lambda x: np.sum(two(x)[1]))(X), np.exp(X))

    def test_checkpoint_repeated_argument(self) -> None:
        product = checkpoint(lambda x, y: x * y)
        assert float(grad(lambda x: product(x, x))(3.0)) == 6.0

    def test_checkpoint_returning_its_argument(self) -> None:
        w = cg.variable(3.0, "w")
        y = checkpoint(lambda x: (x, x[1:], w))(cg.variable(X, "x"))
        g = gradient(np.sum(y[0]) + 2 * np.sum(y[1]) * y[2])
        assert np.array_equal(g["x"], [1.0, 7.0, 7.0])
        assert np.isclose(float(g["w"]), 2 * (2.0 + 0.3))

    def test_checkpoint_keeps_float32_and_values(self) -> None:
        x = cg.variable(np.float32(0.5), "x")
        y = checkpoint(np.sin)(x)
        assert (y.dtype, float(y)) == (np.float32, float(np.sin(np.float32(0.5))))
        assert gradient(y)["x"].dtype == np.float32
        assert type(checkpoint(np.sin)(X)) is np.ndarray

    def test_checkpoint_records_one_node(self) -> None:
        x = cg.variable(X, "x")
        y = checkpoint(f)(x)
        assert (y.opname, [o.name for o in y.operands]) == ("checkpoint", ["x"])
        assert check_graph(y) == []

    def test_checkpoint_within_no_graph_is_plain(self) -> None:
        with cg.no_graph():
            assert type(checkpoint(np.sin)(cg.variable(1.0))) is np.float64


class TestClosures:
    def test_checkpoint_connects_captured_variables(self) -> None:
        w = cg.variable(2.0, "w")
        twice = w * 2
        y = checkpoint(lambda x: np.sum(np.sin(w * x) * twice))(cg.variable(X, "x"))
        plain = np.sum(np.sin(w * cg.variable(X, "x")) * twice)
        assert [float(gradient(y)["w"])] == pytest.approx([float(gradient(plain)["w"])])
        again = gradient(gradient(y, create_graph=True)["w"])
        expected = gradient(gradient(plain, create_graph=True)["w"])
        assert np.isclose(float(again["w"]), float(expected["w"]))
        assert np.allclose(again["x"], expected["x"])

    def test_checkpoint_captured_variable_and_inner_writes(self) -> None:
        w = cg.variable(2.0, "w")
        twice = w * 2

        def g(x: Any) -> Any:
            a = cg.zeros(3)
            a[1:] = x[1:] * w
            a *= twice
            return np.sum(np.sin(a))

        x = cg.variable(X, "x")
        expected, gradients = gradient(g(x)), gradient(checkpoint(g)(x))
        assert np.isclose(float(gradients["w"]), float(expected["w"]))
        assert np.allclose(gradients["x"], expected["x"])

    def test_checkpoint_of_captured_variables_alone(self) -> None:
        w = cg.variable(2.0, "w")
        assert float(gradient(checkpoint(lambda x: w**3 * x)(2.0))["w"]) == 24.0

    @for_each("d", [grad, lambda g: lambda x: jvp(g, (x,), (1.0,))[1]], ids=["reverse", "forward"])
    def test_checkpoint_captures_argument_of_outer_function(self, d: Any) -> None:
        assert float(d(lambda x: x * grad(checkpoint(lambda y: x * y * y))(3.0))(2.0)) == 24.0
        assert float(d(lambda x: checkpoint(lambda y: x * y)(3.0))(2.0)) == 3.0
        assert float(d(lambda x: jvp(checkpoint(lambda y: x * y * y), (3.0,), (1.0,))[1])(2.0)) == 6.0

    def test_checkpoint_captured_variable_updated_later(self) -> None:
        w = cg.variable(2.0, "w")
        y = checkpoint(lambda x: w * x * x)(cg.variable(1.0, "x"))
        with cg.no_graph():
            w += 1.0
        with pytest.raises(ValueError, match="updated in place after checkpoint had used its old value"):
            gradient(y)

    def test_checkpoint_captured_array_written_later(self) -> None:
        x = cg.variable(X, "x")
        buffer = x * 1.0
        inside = checkpoint(lambda y: np.sum(buffer * y))(x)
        argument = checkpoint(f)(buffer)
        buffer[0] = 7.0
        with pytest.raises(ValueError, match=r"the captured .* has changed since the function was called"):
            gradient(inside)
        assert np.array_equal(gradient(argument)["x"], grad(f)(X))
        with pytest.raises(TypeError, match=r"captures the .*, which was written into\. Pass it as an argument"):
            checkpoint(lambda y: np.sum(buffer * y))(x)


class TestWrites:
    def test_checkpoint_writes_inside(self) -> None:
        def g(x: Any) -> Any:
            a = cg.zeros(3)
            a[:2] = x[1:] ** 2
            a *= x
            return np.sum(np.sin(a))

        assert np.allclose(grad(checkpoint(g))(X), grad(g)(X), rtol=1e-14)
        assert np.allclose(jvp(grad(checkpoint(g)), (X,), (V,))[1], jvp(grad(g), (X,), (V,))[1], rtol=1e-13)

    def test_checkpoint_write_to_outer_array_raises(self) -> None:
        x = cg.variable(X, "x")
        buffer, w = cg.zeros(3), cg.variable(X, "w")

        def into(target: Any) -> Any:
            def g(y: Any) -> Any:
                (y if target is None else target)[0] = 5.0
                return np.sum(y)

            return g

        for target in (buffer, w, None, x):
            with pytest.raises(TypeError, match="was made outside of it"):
                checkpoint(into(target))(x)
        assert float(buffer[0]) == 0.0
        buffer[0] = 1.0  # afterwards it may be written into again
        with pytest.raises(ValueError, match="read-only"):
            checkpoint(lambda y, a: a.fill(1.0) or np.sum(y))(x, X.copy())

    @for_each(
        "update", [lambda w: w.__iadd__(1.0), lambda w: w[1:].__imul__(2.0), lambda w: w.fill(0.0)], ids=["sum", "view", "fill"]
    )
    def test_checkpoint_update_of_outer_variable_raises(self, update: Any) -> None:
        w = cg.variable(X, "w")
        with pytest.raises(TypeError, match="was made outside of it"):
            grad(checkpoint(lambda x: np.sum(x * x) if update(w) is None else np.sum(x)))(X)
        assert np.array_equal(w.value, X)
        update(w)  # afterwards it may


class TestImpure:
    def test_checkpoint_random_numbers_raise(self) -> None:
        rng = np.random.default_rng(0)
        y = checkpoint(lambda x: np.sum(x * rng.normal(size=3)))(cg.variable(X))
        with pytest.raises(ValueError, match=r"different numbers when it was called again. It draws random numbers"):
            gradient(y)

    def test_checkpoint_changed_captured_arrays_raise(self) -> None:
        choices = [cg.variable(2.0, "a"), cg.variable(2.0, "b")]
        y = checkpoint(lambda x: x * choices[0])(cg.variable(3.0))
        choices.reverse()
        with pytest.raises(ValueError, match="captured different arrays when it was called again"):
            gradient(y)


class TestChain:
    @for_each("count", [0, 1, 3, 4, 10, 37])
    @for_each("levels", [0, 1, 2, 3])
    def test_checkpointed_chain_gradients(self, count: int, levels: int) -> None:
        weights = [cg.variable(0.9 + 0.01 * k, f"w{k}") for k in range(count)]
        steps = [lambda x, w=w: np.tanh(w * x) + 0.1 * x for w in weights]
        x = cg.variable(X, "x")
        out = x * 1.0
        for step in steps:
            out = step(out)
        expected, gradients = gradient(np.sum(out)), gradient(np.sum(checkpointed_chain(steps, x * 1.0, levels=levels)))
        assert set(gradients) == {"x", *(w.name for w in weights)}
        for name in gradients:
            assert np.allclose(gradients[name], expected[name], rtol=1e-12)

    def test_checkpointed_chain_call_counts(self) -> None:
        for levels in (0, 1, 2):
            calls: list[int] = []
            steps = [lambda x, calls=calls: calls.append(1) or np.sin(x)] * 64
            pull = vjp(lambda x, n=levels, s=steps: checkpointed_chain(s, x, levels=n), 1.0)[1]
            assert len(calls) == 64
            pull(1.0)
            assert len(calls) == 64 * (levels + 1)

    def test_checkpointed_chain_peak_memory(self) -> None:
        steps = [lambda x: np.tanh(1.01 * x) + 0.5 * np.sin(x)] * 1000
        x = cg.variable(np.linspace(-1, 1, 2000), "x")
        peaks = []
        for levels in (0, 1):
            tracemalloc.start()
            gradient(np.sum(checkpointed_chain(steps, x, levels=levels)))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < peaks[0] / 10

    def test_checkpointed_chain_nested_states_and_second_order(self) -> None:
        def chain(levels: int) -> Any:
            def value(x: Any) -> Any:
                pair = checkpointed_chain([lambda s: (s[1], np.sin(s[0]) * s[1])] * 9, (x, x * 2), levels=levels)
                return pair[0] * pair[1]

            return value

        assert np.isclose(float(grad(grad(chain(2)))(0.9)), float(grad(grad(chain(0)))(0.9)), rtol=1e-12)

    def test_checkpointed_chain_negative_levels_raise(self) -> None:
        with pytest.raises(ValueError, match="levels must be at least 0, not -1"):
            checkpointed_chain([np.sin], 1.0, levels=-1)
