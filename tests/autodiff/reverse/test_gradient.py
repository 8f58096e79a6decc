"""gradient, gradients, check_gradient and unbroadcast_adjoint: behavior apart from numerical correctness."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import autodiff
import compgraph as cg
from autodiff import numeric
from autodiff.reverse import check_gradient, gradient, gradients, unbroadcast_adjoint
from autodiff.reverse.sweep import collect
from autodiff.rules.broadcasting import unbroadcast
from tests.support.for_each import for_each


def tutorial(x: Any, y: Any, z: Any) -> Any:
    return np.sin(x ** (y + z)) - 3 * np.log((x**2) * (y**3))


class TestTutorial:
    def test_gradient_of_tutorial(self) -> None:
        x, y, z = cg.variable(0.5, "x"), cg.variable(4, "y"), cg.variable(-2.3, "z")
        f = cg.sin(x ** (y + z)) - 3 * cg.log((x**2) * (y**3))
        assert f"f = {f}".startswith("f = -8.01481664426")
        g = gradient(f)
        assert g["x"] == g[x]
        a, b, c = 0.5, 4.0, -2.3
        power = a ** (b + c)
        assert np.isclose(g["x"], math.cos(power) * (b + c) * a ** (b + c - 1) - 6 / a, rtol=1e-14)
        assert np.isclose(g["y"], math.cos(power) * power * math.log(a) - 9 / b, rtol=1e-14)
        assert np.isclose(g["z"], math.cos(power) * power * math.log(a), rtol=1e-14)

    def test_check_gradient_of_tutorial(self) -> None:
        x, y, z = cg.variable(0.5, "x"), cg.variable(4, "y"), cg.variable(-2.3, "z")
        g = gradient(tutorial(x, y, z))
        assert check_gradient(tutorial, [0.5, 4, -2.3], [g[v] for v in ("x", "y", "z")]) is True
        assert check_gradient(tutorial, [0.5, 4, -2.3], [g["x"], g["y"], g["z"] + 1e-3]) is False
        assert check_gradient(tutorial, [0.5, 4, -2.3]) is True


class TestMapping:
    def test_gradient_mapping_iterates_over_names(self) -> None:
        w, b = cg.variable([1.0, 2.0], "w"), cg.variable(3.0, "b")
        g = gradient(w * b)
        assert dict(g).keys() == {"w", "b"}
        assert len(g) == 2
        assert "w" in g
        assert w in g
        assert "v" not in g

    def test_gradient_mapping_unknown_variable_raises(self) -> None:
        x, y = cg.variable(1.0, "x"), cg.variable(1.0, "y")
        g = gradient(x * x)
        with pytest.raises(KeyError, match="does not depend on the variable 'y'"):
            g[y]
        with pytest.raises(KeyError, match="no variable called 'y'; known: 'x'"):
            g["y"]

    def test_gradient_mapping_ambiguous_name_raises(self) -> None:
        a, b = cg.variable(2.0, "w"), cg.variable(3.0, "w")
        g = gradient(a * b)
        assert (g[a], g[b]) == (3.0, 2.0)
        with pytest.raises(KeyError, match="several variables are called 'w'"):
            g["w"]
        with pytest.raises(ValueError, match="2 variables of the graph are called 'w'"):
            gradient(a * b, wrt="w")

    def test_gradient_mapping_releases_the_graph(self) -> None:
        import weakref

        x = cg.variable(2.0, "x")
        f = np.exp(x) * x
        ghost = weakref.ref(f)
        g = gradient(f)
        del f
        assert ghost() is None
        assert g["x"] > 0


class TestWrt:
    def test_wrt_by_node_name_and_list(self) -> None:
        x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
        assert dict(gradient(x * y, wrt=x)) == {"x": 3.0}
        assert dict(gradient(x * y, wrt="y")) == {"y": 2.0}
        assert dict(gradient(x * y, wrt=["y", x])) == {"y": 2.0, "x": 3.0}

    def test_wrt_accepts_operations(self) -> None:
        x = cg.variable(2.0, "x")
        square = x * x
        f = np.sin(square) * x
        g = gradient(f, wrt=[square, x])
        assert np.isclose(g[square], np.cos(4.0) * 2)
        assert np.isclose(g[x], np.cos(4.0) * 2 * 4 + np.sin(4.0))

    def test_wrt_the_node_itself_is_one(self) -> None:
        x = cg.variable([1.0, 2.0], "x")
        assert np.array_equal(gradient(x)[x], [1.0, 1.0])

    def test_wrt_independent_variable_raises(self) -> None:
        x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
        with pytest.raises(ValueError, match="does not depend on the variable 'y'"):
            gradient(x * x, wrt=y)
        with pytest.raises(ValueError, match="no variable called 'y'"):
            gradient(x * x, wrt="y")
        with pytest.raises(TypeError, match="wrt takes nodes and names"):
            gradient(x * x, wrt=[3])

    def test_wrt_piecewise_constant_dependence_is_zero(self) -> None:
        x = cg.variable([1.5, 2.5], "x")
        assert np.array_equal(gradient(np.floor(x) * 2.0 + 0 * x)["x"], [0.0, 0.0])
        assert np.array_equal(gradient(np.floor(x))["x"], [0.0, 0.0])

    def test_wrt_skips_other_variables(self) -> None:
        calls: list[int] = []

        @cg.primitive
        def watched(a: Any, b: Any) -> Any:
            return a * b

        from autodiff import rule

        def formula(position: int) -> Any:
            def vjp(g: Any, out: Any, a: Any, b: Any) -> Any:
                calls.append(position)
                return g * (b if position == 0 else a)

            return vjp

        rule(watched, formula(0), formula(1), kind="multilinear")
        x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
        gradient(watched(x, y), wrt=x)
        assert calls == [0]
        gradient(watched(cg.constant(5.0), y))
        assert calls == [0, 1]
        gradient(watched(7.0, y))
        assert calls == [0, 1, 1]
        side = watched(x, x)
        del calls[:]
        gradient(side * y, wrt=y)
        assert calls == []


class TestCotangent:
    def test_cotangent_defaults_to_sum(self) -> None:
        x = cg.variable([1.0, 2.0], "x")
        assert np.array_equal(gradient(x * x)["x"], [2.0, 4.0])
        assert np.array_equal(gradient(x * x, adjoint=[1.0, 10.0])["x"], [2.0, 40.0])

    def test_cotangent_wrong_shape_raises(self) -> None:
        x = cg.variable([1.0, 2.0], "x")
        with pytest.raises(ValueError, match=r"shape \(3,\)"):
            gradient(x * x, adjoint=np.ones(3))

    def test_cotangent_argument_is_not_changed(self) -> None:
        x = cg.variable([1.0, 2.0], "x")
        seed = np.ones(2)
        g = gradient(x + 0, adjoint=seed)["x"]
        g += 5
        assert np.array_equal(seed, [1.0, 1.0])

    def test_gradient_shares_no_memory(self) -> None:
        x, y = cg.variable([1.0, 2.0], "x"), cg.variable([3.0, 4.0], "y")
        for f in (x + y, np.sum(x + y), np.reshape(x + y, (2, 1)), (x + y)[::-1], np.sum(x * y)):
            g = gradient(f)
            assert not np.shares_memory(g["x"], g["y"])
            assert not any(np.shares_memory(g[n], v.value) for n in "xy" for v in (x, y))
            assert all(g[n].flags.writeable for n in "xy")

    def test_gradient_does_not_change_array_of_user_rule(self) -> None:
        array = np.array([2.0, 3.0])

        @cg.primitive
        def scaled(x: Any) -> Any:
            return array * x

        autodiff.rule(scaled, lambda g, out, x: array)
        pair = autodiff.custom_gradient(lambda x: (array * x, lambda g: array))
        x = cg.variable([1.0, 2.0], "x")
        for f in (scaled(x), pair(x), scaled(x) + scaled(x) + pair(x) + pair(x)):
            g = gradient(np.sum(f))["x"]
            g += 5
            assert np.array_equal(array, [2.0, 3.0])

    def test_gradient_has_shape_and_dtype_of_operand(self) -> None:
        x = cg.variable(np.ones((1, 3), np.float32), "x")
        y = cg.variable(np.ones((2, 1), np.float64), "y")
        g = gradient(x * y + np.ones(3) * x)
        assert (g["x"].shape, g["x"].dtype) == ((1, 3), np.float32)
        assert (g["y"].shape, g["y"].dtype) == ((2, 1), np.float64)


class TestErrors:
    def test_gradient_of_plain_array_raises(self) -> None:
        with pytest.raises(TypeError, match="has lost its graph"):
            gradient(np.ones(3))

    def test_gradient_of_integer_node_raises(self) -> None:
        with pytest.raises(TypeError, match="not floating or complex"):
            gradient(np.argmax(cg.variable([1.0, 2.0])))

    def test_gradient_after_variable_update_raises(self) -> None:
        w = cg.variable([1.0, 2.0], "w")
        loss = np.sum(w * w)
        w -= 0.1
        with pytest.raises(ValueError, match=r"variable 'w'.*updated in place after mul had used its old value"):
            gradient(loss)
        assert np.allclose(gradient(np.sum(w * w))["w"], [1.8, 3.8])

    def test_gradient_operation_without_rule_raises(self) -> None:
        @cg.primitive
        def unruly(x: Any) -> Any:
            return x * 2

        with pytest.raises(TypeError, match=r"unruly has no derivative rule\. Declare one with autodiff.rule"):
            gradient(unruly(cg.variable(1.0)))


class TestHigherOrders:
    def test_create_graph_to_fifth_order(self) -> None:
        x = cg.variable(0.7, "x")
        f = np.sin(x) * np.exp(x)
        expected = [np.exp(0.7) * np.imag((1 + 1j) ** n * np.exp(0.7j)) for n in range(6)]
        for n in range(1, 6):
            f = gradient(f, create_graph=True)["x"]
            assert np.isclose(float(f), expected[n], rtol=1e-12)

    def test_create_graph_constant_gradient_is_connected(self) -> None:
        x, y = cg.variable([1.0, 2.0], "x"), cg.variable(3.0, "y")
        g = gradient(np.sum(3 * x) + y, create_graph=True)
        assert np.array_equal(gradient(g["x"])["x"], [0.0, 0.0])
        assert gradient(g["x"])["y"] == 0.0
        assert gradient(g["y"])["x"].shape == (2,)
        zero = gradient(np.sum(x * 0.0) + np.floor(y), create_graph=True)["y"]
        assert gradient(zero)["x"].shape == (2,)

    def test_gradients_returns_nodes_in_order(self) -> None:
        x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
        dy, dx = gradients(x * x * y, [y, x])
        assert (float(dy), float(dx)) == (4.0, 12.0)
        assert all(isinstance(d, cg.Node) for d in (dx, dy))
        assert float(gradients(dx, [y])[0]) == 4.0

    def test_create_graph_within_no_graph(self) -> None:
        x = cg.variable(2.0, "x")
        f = x**3
        with cg.no_graph():
            g = gradient(f, create_graph=True)["x"]
        assert float(gradient(g)["x"]) == 12.0

    def test_create_graph_loop_over_elements(self) -> None:
        x = cg.variable(np.linspace(0.1, 1, 6), "x")
        total: Any = 0.0
        for i in range(5):
            total = total + x[i] ** 2 * x[i + 1]
        first = gradient(total, create_graph=True)["x"]
        weights = np.arange(1.0, 7.0)
        second = gradient(first, adjoint=weights)["x"]

        def slope(v: Any) -> Any:
            t = cg.variable(v, "t")
            s: Any = 0.0
            for i in range(5):
                s = s + t[i] ** 2 * t[i + 1]
            return gradient(s)["t"]

        assert np.allclose(second, numeric.gradient(slope, [x.value], weights)[0], rtol=1e-7)


class TestTheSweep:
    def test_sweep_visits_diamonds_once(self) -> None:
        x = cg.variable(1.0, "x")
        y: Any = x
        for _ in range(64):
            y = y + y
        assert gradient(y)["x"] == 2.0**64
        assert len(collect(y)) == 65

    def test_sweep_node_used_late_and_early(self) -> None:
        x = cg.variable(2.0, "x")
        a = x * x
        b = np.sin(a)
        assert check_gradient(lambda v: (v * v) * np.sin(v * v) + v, [2.0], [gradient(a * b + x)["x"]])

    def test_sweep_order_is_by_sequence_number(self) -> None:
        x = cg.variable(2.0, "x")
        sequence_numbers = [node.sequence_number for node in collect(np.sin(x) * x + np.exp(x))]
        assert sequence_numbers == sorted(sequence_numbers, reverse=True)

    def test_sweep_of_element_loops_is_linear(self) -> None:
        def work(n: int) -> int:
            """The number of elements written by settling the cotangent of x."""
            x = cg.variable(np.ones(n), "x")
            total: Any = 0.0
            for i in range(n):
                total = total + x[i]
            pieces = [node for node in collect(total) if node.opname == "getitem"]
            g = gradient(total)["x"]
            assert np.array_equal(g, np.ones(n))
            return len(pieces)

        assert work(200) == 200

    def test_sweep_adds_repeated_indices(self) -> None:
        x = cg.variable([1.0, 2.0, 3.0], "x")
        assert np.array_equal(gradient(x[[0, 0, 2]])["x"], [2.0, 0.0, 1.0])
        assert np.array_equal(gradient(x[np.array([[0, 1], [1, 1]])])["x"], [1.0, 3.0, 0.0])
        mask = x > 1.5
        assert np.array_equal(gradient(x[mask] * 3.0)["x"], [0.0, 3.0, 3.0])

    def test_sweep_of_first_order_records_nothing(self) -> None:
        type_names: list[str] = []

        @cg.primitive
        def probe(x: Any) -> Any:
            return x * 1.0

        from autodiff import rule

        def formula(g: Any, out: Any, x: Any) -> Any:
            type_names.extend(type(v).__name__ for v in (g, out, x))
            return g

        rule(probe, formula, kind="elementwise")
        gradient(probe(cg.variable([1.0])))
        assert type_names == ["ndarray"] * 3
        gradient(probe(cg.variable([1.0])), create_graph=True)
        assert all(name.endswith("Node") for name in type_names[3:])


class TestUnbroadcast:
    @for_each("shape", [(), (1,), (4,), (1, 1), (3, 1), (1, 4), (3, 4), (1, 1, 4), (2, 1, 1), (1, 3, 1), (2, 3, 4), (2, 1, 4)])
    def test_unbroadcast_every_pattern(self, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(0)
        cotangent = rng.normal(size=(2, 3, 4))
        operand = rng.normal(size=shape)
        undone = unbroadcast_adjoint(cg.variable(operand), cotangent)
        assert undone.shape == shape
        # <cotangent, broadcast(v)> == <undone, v>
        v = rng.normal(size=shape)
        assert np.isclose(np.sum(cotangent * np.broadcast_to(v, (2, 3, 4))), np.sum(undone * v))

    def test_unbroadcast_zero_size(self) -> None:
        assert np.array_equal(unbroadcast(np.ones((0, 3)), (1, 3)), np.zeros((1, 3)))
        assert unbroadcast(np.ones((2, 0)), (2, 0)).shape == (2, 0)

    def test_unbroadcast_keeps_nodes(self) -> None:
        a = cg.variable(np.ones((2, 3)), "a")
        undone = unbroadcast_adjoint(np.ones(3), a)
        assert isinstance(undone, cg.Node)
        assert np.array_equal(gradient(undone)["a"], np.ones((2, 3)))


class TestCheckGradient:
    def test_check_gradient_wrong_number_and_shape_raise(self) -> None:
        with pytest.raises(ValueError, match="2 arguments have 2 gradients, not 1"):
            check_gradient(lambda x, y: x * y, [1.0, 2.0], [2.0])
        with pytest.raises(ValueError, match="gradient 0 has shape"):
            check_gradient(lambda x: np.sum(x), [[1.0, 2.0]], [1.0])

    def test_check_gradient_rejects_nan(self) -> None:
        assert check_gradient(lambda x: x * x, [1.0], [np.nan]) is False

    def test_check_gradient_keeps_arguments(self) -> None:
        x = np.array([1.0, 2.0])
        check_gradient(lambda v: np.sum(v * v), [x])
        assert np.array_equal(x, [1.0, 2.0])


class TestWarnings:
    def test_warnings_name_operation_and_remedy(self) -> None:
        x = cg.variable([0.0, 1.0], "x")
        with pytest.warns(RuntimeWarning, match=r"in the derivative of sqrt.*np\.where\(safe, f\(x\), 0\)"):
            g = gradient(np.sqrt(x))["x"]
        assert np.array_equal(g, [np.inf, 0.5])

    def test_warnings_can_be_silenced_or_raised(self) -> None:
        x = cg.variable([0.0], "x")
        f = np.sqrt(x)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            gradient(f)
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            gradient(f)
        before = np.geterr()
        with pytest.warns(RuntimeWarning):
            gradient(f)
        assert np.geterr() == before


@for_each("count", [3, 9, 12])
def test_sweep_adds_each_element_read_at_its_position(count: int) -> None:
    """Also where only a part of the index is a node: such reads were added up as if they were of whole rows."""
    x = np.random.default_rng(0).standard_normal((count, 9))
    right = np.zeros_like(x)
    right[np.arange(count), x.argmax(axis=1)] = 2 * x.max(axis=1)

    def largest(x: Any) -> Any:
        return sum(x[i, np.argmax(x[i])] ** 2 for i in range(count))

    v = cg.variable(x)
    np.testing.assert_array_equal(gradient(largest(v))[v], right)
    np.testing.assert_array_equal(autodiff.grad(largest)(x), right)
    np.testing.assert_allclose(autodiff.hvp(largest)(x, x), right)


def test_sweep_joins_reads_of_elements_rows_and_windows() -> None:
    """In any order, with a dense contribution between."""
    x = np.random.default_rng(1).standard_normal((12, 4))
    right = 2 * x + 2 * np.outer(np.arange(12), [1, 1, 1, 1])
    right[2:5] += 3
    right[4, 1] += 7

    def f(x: Any) -> Any:
        total = 3 * np.sum(x[2:5]) + 7 * x[4, 1]
        for i in range(12):
            total = total + 2 * i * np.sum(x[i])
        return total + np.sum(x**2)

    v = cg.variable(x)
    np.testing.assert_allclose(gradient(f(v))[v], right)
    np.testing.assert_allclose(autodiff.grad(lambda x: np.sum(autodiff.grad(f)(x) * x))(x), 2 * x + right)
