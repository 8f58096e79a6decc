"""Numbers stated in the texts behind this project; `docs/sources.md` lists the texts and the places in them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import autodiff as ad
import compgraph as cg
from autodiff import grads, numeric
from autodiff.reverse import check_gradient, gradient, gradients, unbroadcast_adjoint
from autodiff.visualize import animate

# ------------------------------------------------------------------------------------------ the tutorial


def chain() -> tuple[Any, list[Any]]:
    """A sine of twice a logarithm at 2: the result, and its operands."""
    x = cg.variable(2.0, "x")
    logarithm = cg.log(x, name="logarithm")
    double = cg.multiply(2, logarithm, name="double")
    return cg.sin(double, name="f"), [double, logarithm, x]


def test_published_chain_gradient() -> None:
    result, parts = chain()
    np.testing.assert_allclose([result, *parts[:2]], [0.983, 1.386, 0.693], atol=5e-4)
    slopes = gradient(result, wrt=parts)
    np.testing.assert_allclose([slopes[part] for part in parts], [0.183, 0.366, 0.183], atol=1e-3)


def test_published_chain_animation_shows_one_edge_per_frame() -> None:
    lines = [str(frame) for frame in animate(chain()[0]).frames]
    assert [line.split(" passes")[0] for line in lines[1:-1]] == ["f", "double", "logarithm"]
    assert "1 × 0.18346 = 0.18346" in lines[1]
    assert "0.18346 × 2 = 0.36691" in lines[2]
    assert "0.36691 × 0.5 = 0.18346" in lines[3]


def test_published_sum_of_two_paths() -> None:
    x = cg.variable(4.0, "x")
    result = x**2 + 2**x
    assert gradient(result)["x"] == pytest.approx(8 + 16 * np.log(2), rel=1e-15)
    *_, last, end = [str(frame) for frame in animate(result).frames]
    assert last.endswith("∂f/∂x = 11.09 + 8 = 19.09")
    assert end == "The gradient is complete. ∂f/∂x = 19.09"


def test_published_gradient_of_three_variables() -> None:
    x, y, z = (cg.variable(value, name) for value, name in zip([1.0, 2.0, 3.0], "xyz", strict=True))
    slopes = gradient(np.sin(x + y) + (x * y) ** z)
    expected = [np.cos(3) + 24, np.cos(3) + 12, 8 * np.log(2)]
    np.testing.assert_allclose([slopes[name] for name in "xyz"], expected, rtol=1e-14)


def test_published_simplify_merges_common_subexpression() -> None:
    x = cg.variable(0.7, "x")
    result = np.sin(x) ** np.sin(x)
    original, smaller = (cg.topological_order([node]) for node in (result, cg.simplify(result)))
    assert [sum(node.opname == "sin" for node in nodes) for nodes in (original, smaller)] == [2, 1]


def test_published_node_kinds_names_and_operands() -> None:
    cg.reset()
    x, c = cg.variable(3), cg.constant(2.0)
    result = x + c
    for node, kind, name in [
        (x, cg.VariableNode, "var_0"),
        (c, cg.ConstantNode, "const_0"),
        (result, cg.OperationalNode, "add_0"),
    ]:
        assert isinstance(node, kind)
        assert isinstance(node, cg.Node)
        assert isinstance(node, np.ndarray)
        assert node.name == name
    assert (result.opname, result.operand_a, result.operand_b) == ("add", x, c)
    assert np.sqrt(x).operand_b is None
    assert (2 - x).operand_b is x
    assert cg.Node((2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match="constant"):
        c += 1


MATRIX = np.array([[0, 1, 4], [0, 7, 1]])


@pytest.mark.parametrize(
    ("values", "axis", "expected"),
    [([1, 4, 4], None, [0, 0.5, 0.5]), (MATRIX, 0, [[0.5, 0, 1], [0.5, 1, 0]]), (MATRIX, 1, [[0, 0, 1], [0, 1, 0]])],
)
def test_published_max_splits_ties(values: Any, axis: Any, expected: Any) -> None:
    ones = np.ones(np.max(values, axis=axis).shape)
    cotangent, nothing = grads.max_grad(ones, cg.max(cg.variable(np.array(values)), axis=axis))
    assert nothing is None
    np.testing.assert_array_equal(cotangent, expected)


def test_published_rules_take_cotangent_and_node() -> None:
    rng = np.random.default_rng(0)
    a, b = cg.variable(rng.normal(size=(4, 3))), cg.variable(rng.normal(size=(3, 2)))
    cotangent = rng.normal(size=(4, 2))
    for actual, expected in zip(
        grads.dot_grad(cotangent, cg.dot(a, b)), [cotangent @ b.value.T, a.value.T @ cotangent], strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
    c, d = cg.variable(6.0), cg.variable(3.0)
    np.testing.assert_allclose(grads.mul_grad(2.0, c * d), [6, 12])
    np.testing.assert_allclose(grads.div_grad(2.0, c / d), [2 / 3, -4 / 3])
    np.testing.assert_array_equal(grads.sum_grad(1.0, cg.sum(a))[0], np.ones((4, 3)))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 1), (1, 1), (), (4, 3)])
def test_published_unbroadcast_sums_repeated_axes(shape: tuple[int, ...]) -> None:
    cotangent = np.arange(12.0).reshape(4, 3)
    undone = unbroadcast_adjoint(cg.variable(np.ones(shape)), cotangent)
    assert undone.shape == shape
    padded = (1,) * (2 - len(shape)) + shape
    axes = tuple(axis for axis in range(2) if padded[axis] == 1)
    np.testing.assert_array_equal(undone, cotangent.sum(axis=axes, keepdims=True).reshape(shape))


def test_published_check_gradient() -> None:
    def f(*point: float) -> Any:
        a, b, c = (cg.variable(value, name) for value, name in zip(point, "abc", strict=True))
        return cg.sin(a ** (b + c)) - 3 * c * cg.log(a**2 * b**3)

    point = [0.5, 4, -2.3]
    slopes = gradient(f(*point))
    assert check_gradient(f, point, [slopes[name] for name in "abc"])
    assert not check_gradient(f, point, [slopes[name] + 0.01 for name in "abc"])


def test_published_network_learns_by_plain_updates() -> None:
    """Two layers, successive slices, losses that are nodes in a list and averaged, ``-=`` on the variables."""
    digits = load_digits()
    images, labels, rng = digits.data / 16, np.eye(10)[digits.target], np.random.default_rng(0)
    sizes = {"w1": (64, 32), "b1": 32, "w2": (32, 10), "b2": 10}
    p = {name: cg.variable(rng.normal(scale=0.15, size=size) * (name[0] == "w"), name) for name, size in sizes.items()}

    def scores(x: Any) -> Any:
        h = cg.dot(x, p["w1"]) + p["b1"]
        return cg.dot(cg.where(h > 0, h, 0), p["w2"]) + p["b2"]

    recent: list[Any] = []
    averages = []
    for step in range(1200):
        rows = slice(step % 46 * 32, step % 46 * 32 + 32)
        loss = cg.softmax_cross_entropy(scores(images[rows]), labels[rows])
        recent = [*recent[-45:], loss]
        averages.append(np.mean(recent))
        slopes = gradient(loss)
        for name, parameter in p.items():
            parameter -= 0.1 * slopes[name]
    assert averages[-1] < 0.1 * averages[45]
    shares = cg.exp(scores(images[1472:]))
    guesses = np.argmax(shares / cg.sum(shares, axis=-1, keepdims=True), axis=-1)
    assert np.mean(guesses == digits.target[1472:]) > 0.88


def test_published_softmax_cross_entropy_gradient() -> None:
    rng = np.random.default_rng(0)
    scores, truth = cg.variable(rng.normal(size=(5, 3)), "scores"), np.eye(3)[[0, 2, 1, 1, 0]]
    derivative = gradient(cg.softmax_cross_entropy(scores, truth))["scores"]
    np.testing.assert_allclose(derivative, (cg.softmax(scores, axis=1).value - truth) / 5, atol=1e-15)


# -------------------------------------------------------------------------------------- the static graph


def test_published_derivative_in_four_ways() -> None:
    def f(x: Any) -> Any:
        return x * (1 - 2 * x) ** 2

    assert ad.grad(f)(1.0) == 5
    assert (f(1 + 1e-3) - f(1 - 1e-3)) / 2e-3 == pytest.approx(5.000003999999669, rel=1e-14)
    assert numeric.gradient(f, [np.array(1.0)])[0] == pytest.approx(5, rel=1e-9)


def test_published_forward_and_reverse_mode_table() -> None:
    def f(a: Any, b: Any) -> Any:
        return np.log(a) + a * b - np.sin(b)

    assert f(2.0, 5.0) == pytest.approx(11.652, abs=5e-4)
    value, tangent = ad.jvp(f, (2.0, 5.0), (1.0, 0.0))
    assert (value, tangent) == (f(2.0, 5.0), 5.5)
    np.testing.assert_allclose(ad.grad(f, argnums=(0, 1))(2.0, 5.0), [5.5, 2 - np.cos(5)], rtol=1e-15)


def test_published_sweep_is_in_topological_order() -> None:
    a = cg.variable(2.0, "a")
    b = np.exp(a)
    c = b + 1
    d = b * c
    assert [node for node in cg.topological_order([d]) if not isinstance(node, cg.ConstantNode)] == [a, b, c, d]
    e2 = np.exp(2)
    cotangents = gradient(d, wrt=[d, c, b, a])
    np.testing.assert_allclose([cotangents[node] for node in (d, c, b, a)], [1, e2, 2 * e2 + 1, e2 * (2 * e2 + 1)], rtol=1e-14)


def test_published_logistic_regression_by_fed_weights() -> None:
    images, labels = load_digits(n_class=2, return_X_y=True)
    images = images / 16
    x, y = cg.placeholder((None, 64), name="x"), cg.placeholder((None, 1), name="y")
    w, b = cg.placeholder((64, 1), name="w"), cg.placeholder((1,), name="b")
    z = x @ w + b
    loss = cg.sigmoid_cross_entropy(z, y)
    executor = cg.Executor([loss, *gradients(loss, [w, b]), cg.sigmoid(z)])
    weights, bias = np.zeros((64, 1)), np.zeros(1)
    for _ in range(10):
        for start in range(0, 300, 30):
            rows = slice(start, start + 30)
            feed = {x: images[rows], y: labels[rows, None], w: weights, b: bias}
            _, slope, tilt, _ = executor.run(feed)
            weights, bias = weights - 0.1 * slope, bias - 0.1 * tilt
    feed = {x: images[300:], y: labels[300:, None], w: weights, b: bias}
    assert np.all((executor.run(feed)[3] >= 0.5) == labels[300:, None])


# ---------------------------------------------------------------------------------------------- ArrayFlow


def test_published_total_derivative_is_sum_over_branches() -> None:
    """The total derivative is the sum over branches of the derivative with all other branches constant."""
    branches = [np.sin, np.exp, np.sqrt, np.tanh]

    def tree(*v: Any) -> Any:
        return (v[0] * v[1]) ** 2 + np.cos(v[2] - v[3])

    at = 0.8
    fixed = [ad.grad(lambda x, i=i: tree(*[f(x) if i == j else f(at) for j, f in enumerate(branches)]))(at) for i in range(4)]
    assert ad.grad(lambda x: tree(*[f(x) for f in branches]))(at) == pytest.approx(sum(fixed), rel=1e-14)


def test_published_max_pool() -> None:
    x = cg.variable([3.0, 1, -5, 0, 2, 2, 9, 5], "x")
    cells = cg.max_pool(x, 2)
    np.testing.assert_array_equal(cells, [3, 0, 2, 9])
    weights = np.array([1.0, 10, 100, 1000])
    np.testing.assert_array_equal(gradient(cells @ weights)["x"], [1, 0, 0, 10, 50, 50, 1000, 0])  # equals share it


def test_published_cross_correlation_derivatives() -> None:
    rng = np.random.default_rng(0)
    s, k, cotangent = cg.variable(rng.normal(size=21), "s"), cg.variable(rng.normal(size=3), "k"), rng.normal(size=19)
    slopes = gradient(cg.cross_correlate(s, k) @ cotangent)
    np.testing.assert_allclose(slopes["k"], np.correlate(s.value, cotangent), rtol=1e-12)
    np.testing.assert_allclose(slopes["s"], np.convolve(k.value, cotangent, mode="full"), atol=1e-13)


def test_published_oscillator_solution() -> None:
    """The initial values, and the equation, of the solution that is stated for them."""

    def y(t: Any) -> Any:
        return np.exp(-t / 4) * (np.sqrt(15) * np.sin(np.sqrt(15) * t / 4) + 3 * np.cos(np.sqrt(15) * t / 4)) / 3

    slope = ad.grad(y)
    assert (y(0.0), slope(0.0)) == pytest.approx((1, 1))
    for t in (0.3, 2.0, 6.1):
        assert 2 * ad.grad(slope)(t) + slope(t) + 2 * y(t) == pytest.approx(0, abs=1e-13)


def test_published_executor_reuses_arrays() -> None:
    """Of six large results only the one that is handed out takes new memory."""
    x = cg.placeholder((None,), name="x")
    executor = cg.Executor(np.tanh(np.exp(np.sin(np.cos(x * 2) * 3) + 1)))
    values = np.linspace(0, 1, 200_000)
    executor.run({"x": values})
    tracemalloc.start()
    try:
        executor.run({"x": values})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert values.nbytes <= peak < 1.2 * values.nbytes
