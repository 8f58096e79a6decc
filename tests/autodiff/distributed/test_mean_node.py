"""The distributed mean as a node of the graph: with other terms, in all operators, in both modes, to all orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from distributed import Client

import autodiff as ad
import autodiff.distributed as dist
import compgraph as cg
from autodiff.optimizers import Adam, minimize
from autodiff.reverse import gradient, gradients
from tests.support.clusters import threads_of
from tests.support.failures import Failures
from tests.support.losses import leaves_of, network, network_parameters, squares, waves

RNG = np.random.default_rng(0)
LINE = {"w": np.array([0.5, -1.0, 2.0]), "b": np.array(0.25)}
U, V = RNG.normal(size=(37, 3)), RNG.normal(size=37)
W = np.array([0.3, -0.2, 0.5])


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with threads_of(2) as client:
        yield client


def ridge(p: Any) -> Any:
    return 0.1 * sum(np.sum(w * w) for w in leaves_of(p))


def test_mean_of_plain_parameters_is_value(mean_squares: dist.DataParallel) -> None:
    value = mean_squares(LINE, U, V)
    assert type(value) is np.float64
    assert value == dist.DataParallel(squares)(LINE, U, V) == mean_squares.value_and_grad(LINE, U, V)[0]
    assert np.isclose(value, squares(LINE, U, V), rtol=1e-13)


def test_first_order_in_both_modes_with_other_terms(mean_squares: dist.DataParallel) -> None:
    def distributed_loss(p: Any) -> Any:
        return np.sin(3 * mean_squares(p, U, V)) + ridge(p)

    def local_loss(p: Any) -> Any:
        return np.sin(3 * squares(p, U, V)) + ridge(p)

    tangent = {"w": np.array([1.0, 2.0, -1.0]), "b": 0.5}
    for actual, expected in (
        (ad.value_and_grad(distributed_loss)(LINE), ad.value_and_grad(local_loss)(LINE)),
        (ad.jvp(distributed_loss, (LINE,), (tangent,)), ad.jvp(local_loss, (LINE,), (tangent,))),
    ):
        assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(leaves_of(actual), leaves_of(expected), strict=True))


def test_mean_node_of_variables(mean_squares: dist.DataParallel) -> None:
    p = {name: cg.variable(value, name) for name, value in LINE.items()}
    actual = gradient(mean_squares(p, U, V) + ridge(p))
    expected = ad.grad(lambda q: squares(q, U, V) + ridge(q))(LINE)
    assert all(np.allclose(actual[name], expected[name], rtol=1e-12) for name in p)


def test_mean_node_in_executor(mean_squares: dist.DataParallel) -> None:
    w = cg.placeholder((3,), np.float64, "w", example=LINE["w"])
    out = mean_squares({"w": w, "b": LINE["b"]}, U, V)
    run = cg.Executor([out, *gradients(out, [w])])
    for start in (LINE["w"], np.ones(3)):
        value, slope = run.run({"w": start})
        expected, expected_slope = ad.value_and_grad(squares)({"w": start, "b": LINE["b"]}, U, V)
        assert np.isclose(value, expected, rtol=1e-12)
        assert np.allclose(slope, expected_slope["w"], rtol=1e-12)


def test_second_order_derivatives(mean_squares: dist.DataParallel) -> None:
    def squared(loss: Any) -> Any:
        return lambda w: loss({"w": w, "b": LINE["b"] * w[0]}, U, V) ** 2

    w = LINE["w"]
    expected = ad.hessian(squared(squares))(w)
    assert np.max(np.abs(expected)) > 1
    for actual in (
        ad.hessian(squared(mean_squares))(w),
        ad.jacfwd(ad.grad(squared(mean_squares)))(w),
        ad.jacobian(ad.grad(squared(mean_squares)))(w),
    ):
        assert np.allclose(actual, expected, rtol=1e-11)
    assert np.allclose(ad.hvp(squared(mean_squares))(w, np.ones(3)), expected @ np.ones(3), rtol=1e-11)


def test_second_order_of_several_parameters(remote_loss: dist.DataParallel) -> None:
    p = network_parameters(3, 4, 2, seed=1)
    y = (V > 0).astype(int)
    direction = {name: np.cos(np.arange(value.size)).reshape(value.shape) for name, value in p.items()}

    def product(loss: Any) -> Any:
        def along(q: Any) -> Any:
            slope = ad.grad(lambda r: loss(r, U, y))(q)
            return sum(np.sum(slope[name] * direction[name]) for name in q)

        return ad.grad(along)(p), ad.jvp(ad.grad(lambda r: loss(r, U, y)), (p,), (direction,))[1]

    for actual, expected in zip(product(remote_loss), product(network), strict=True):
        for name in p:
            assert np.allclose(actual[name], expected[name], rtol=1e-9, atol=1e-12), name


def test_third_order_derivative(client: Client) -> None:
    def loss(p: Any, x: Any) -> Any:
        return np.mean(np.sin(p * x))

    with dist.DataParallel(loss, client) as mean:
        third = ad.grad(ad.grad(ad.grad(lambda p: mean(p, V))))(0.7)
    assert np.isclose(third, np.mean(-(V**3) * np.cos(0.7 * V)), rtol=1e-11)


def test_value_and_grad_of_nodes_returns_nodes(mean_squares: dist.DataParallel) -> None:
    def penalty(p: Any) -> Any:
        value, slope = mean_squares.value_and_grad(p, U, V)
        return value + np.sum(slope["w"] ** 2)

    def local_loss(p: Any) -> Any:
        value, slope = ad.value_and_grad(squares)(p, U, V)
        return value + np.sum(slope["w"] ** 2)

    actual, expected = ad.grad(penalty)(LINE), ad.grad(local_loss)(LINE)
    assert np.allclose(actual["w"], expected["w"], rtol=1e-11)
    assert np.allclose(actual["b"], expected["b"], rtol=1e-11)


def test_value_and_grad_of_variables_evaluates_once(mean_squares: dist.DataParallel) -> None:
    p = {name: cg.variable(value.copy(), name) for name, value in LINE.items()}
    steps = {r.step for r in mean_squares.log}
    value, slope = mean_squares.value_and_grad(p, U, V)
    assert len({r.step for r in mean_squares.log} - steps) == 1
    assert isinstance(slope["w"], cg.Node)
    actual = gradient(value + np.sum(slope["w"] * slope["w"]))["w"]
    expected = ad.grad(lambda q: squares(q, U, V) + np.sum(ad.grad(lambda r: squares(r, U, V))(q)["w"] ** 2))(LINE)["w"]
    assert np.allclose(actual, expected, rtol=1e-11)
    Adam(p, learning_rate=0.1).step(slope)
    with pytest.raises(ValueError, match="updated in place"):
        gradient(np.sum(slope["w"] ** 2))
    assert mean_squares.value_and_grad(p, U, V)[0] != value


def test_overwritten_batch_does_not_change_derivatives(mean_squares: dist.DataParallel) -> None:
    x = U.copy()
    p = {name: cg.variable(value, name) for name, value in LINE.items()}
    slope = mean_squares.value_and_grad(p, x, V)[1]["w"]
    x[:] = 0
    actual = gradient(np.sum(slope**2))["w"]
    expected = ad.grad(lambda w: np.sum(ad.grad(lambda v: squares({"w": v, "b": LINE["b"]}, U, V))(w) ** 2))(LINE["w"])
    assert np.allclose(actual, expected, rtol=1e-11)


def test_minimize_with_mean_node(mean_squares: dist.DataParallel) -> None:
    def distributed_loss(p: Any) -> Any:
        return mean_squares(p, U, V) + ridge(p)

    def local_loss(p: Any) -> Any:
        return squares(p, U, V) + ridge(p)

    for method in ("L-BFGS-B", "trust-ncg"):
        actual, expected = (minimize(f, LINE, method=method, tol=1e-7) for f in (distributed_loss, local_loss))
        assert actual.success
        assert np.allclose(actual.x["w"], expected.x["w"], atol=1e-6)


def stacked(loss: Any) -> Any:
    return lambda w: np.stack([loss(w, U, V), 2 * loss(2 * w, U, V)])


def nested_jvps(loss: Any, *directions: Any) -> Any:
    """Nested directional derivatives, in forward mode."""
    f = lambda w: loss(w, U, V)  # noqa: E731
    for direction in directions:
        f = (lambda g, d: lambda w: ad.jvp(g, (w,), (d,))[1])(f, direction)
    return f(W)


def written_in_place(loss: Any) -> Any:
    def of(w: Any) -> Any:
        z = np.zeros(3) + w
        z[0] = 2 * w[1]
        return loss(z, U, V)

    return ad.grad(of)(W)


ONE, TWO = np.ones(3), np.arange(3.0)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "hessian": lambda loss: ad.hessian(lambda w: loss(w, U, V))(W),
    "sparse hessian": lambda loss: ad.hessian(lambda w: loss(w, U, V), sparse=True)(W).toarray(),
    "hessian in single precision": lambda loss: ad.hessian(lambda w: loss(w, U.astype("f"), V.astype("f")))(W.astype("f")),
    "jacobian of several": lambda loss: ad.jacobian(stacked(loss))(W),
    "jacobian forward": lambda loss: ad.jacfwd(stacked(loss))(W),
    "forward over reverse": lambda loss: ad.jvp(ad.grad(lambda w: loss(w, U, V)), (W,), (ONE,))[1],
    "reverse over forward": lambda loss: ad.grad(lambda w: ad.jvp(lambda v: loss(v, U, V), (w,), (ONE,))[1])(W),
    "forward twice": lambda loss: nested_jvps(loss, ONE, TWO),
    "forward three times": lambda loss: nested_jvps(loss, ONE, TWO, W),
    "forward without a graph": lambda loss: cg.no_graph()(nested_jvps)(loss, ONE, TWO),
    "taylor": lambda loss: ad.taylor(lambda t: loss(W * t, U, V), 1.0, 3),
    "checkpoint": lambda loss: ad.grad(ad.checkpoint(lambda w: loss(w, U, V) * w[0]))(W),
    "written in place": written_in_place,
    "parts": lambda loss: ad.grad(lambda a: loss(np.stack([a, a * a, W[2]]), U, V))(0.4),
}


def test_operators_of_mean_agree_with_those_of_loss() -> None:
    with Failures("operators") as failures:
        for name, operator in PROGRAMS.items():
            with failures.case(name):
                actual, expected = np.asarray(operator(dist.DataParallel(waves))), np.asarray(operator(waves))
                assert np.max(np.abs(expected)) > 1e-3
                assert np.max(np.abs(actual - expected)) < (1e-6 if actual.dtype == np.float32 else 1e-13)
