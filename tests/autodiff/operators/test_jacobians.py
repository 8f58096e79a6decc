"""Jacobians, Hessians and products with them, and that every rule is batched correctly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff import checkpoint, custom_gradient, grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, linearize, numeric, rule, vjp
from autodiff.batching import batched_derivatives
from autodiff.batching.rules import LOOP_COUNTS
from autodiff.reverse import gradient, linearization
from autodiff.reverse.sweep import collect, sweep_batch
from autodiff.rules.rule import rules
from tests.support.arguments import Case
from tests.support.cases import cases_of
from tests.support.checks.jacobians import COUNT, check_together, check_together_in_both_precisions, near
from tests.support.failures import Failures
from tests.support.for_each import for_each

Array = np.ndarray[Any, Any]


def test_jacobian_of_every_index_batches_directions() -> None:
    """Arrays with slices between them move the axis of the directions, other indices leave it in front."""
    with Failures("indices") as failures:
        for case in cases_of("getitem"):
            with failures.case(str(case)):
                check_together_in_both_precisions(case)


SQUARE = np.array([[3.0, 0.5, 0.2], [0.4, 2.0, -0.3], [0.1, 0.6, 1.0]])
TOGETHER: dict[str, Any] = {
    "linalg_solve": lambda x: np.linalg.solve(x, x.T + 1) + np.linalg.solve(x, x[0]),
    "linalg_det": lambda x: np.linalg.det(x) * x,
    "linalg_cholesky": lambda x: np.linalg.cholesky(x @ x.T),
    "linalg_qr": lambda x: np.linalg.qr(x)[0],
    "linalg_svd": lambda x: np.linalg.svd(x)[0],
    "linalg_eigh": lambda x: np.linalg.eigh(x)[1],
    "linalg_eigvals": lambda x: np.linalg.eigvals(x + x.T),
    "linalg_pinv": lambda x: np.linalg.pinv(x[:, :2]),
    "linalg_matrix_power": lambda x: np.linalg.matrix_power(x, 3),
    "products": lambda x: np.tensordot(x, np.inner(x, x), 1) + np.vdot(x, x) + np.matvec(x, np.vecmat(x[0], x)),
    "kron": lambda x: np.kron(x, x),
    "cross": lambda x: np.cross(x, x[::-1]),
    "convolve": lambda x: np.convolve(x[0], x[1]) + np.correlate(x[2], x[0], "full"),
    "fft": lambda x: np.abs(np.fft.rfftn(x)) ** 2 + np.abs(np.fft.fft(x, axis=0)[:, :2]),
    "order": lambda x: np.median(x, axis=1) + np.sort(x, axis=0) + np.quantile(x, 0.3),
    "cumprod": lambda x: np.cumprod(x, axis=1) + np.trace(x),
    "interp": lambda x: np.interp(x, [0.0, 1.0, 4.0], x[0]),
    "pad": lambda x: np.pad(x, 1),
    "softmax_cross_entropy": lambda x: cg.softmax_cross_entropy(x, np.eye(3)) * x,
}


@for_each("operator", [jacrev, jacfwd], ids=lambda o: o.__name__)
@for_each("label", TOGETHER)
def test_jacobian_rules_receive_batched_directions(label: str, operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_differences(TOGETHER[label], SQUARE)
    result = operator(TOGETHER[label])(SQUARE)

    def alone(rule: Any, *_: Any) -> Any:
        raise AssertionError(f"{rule} looped")

    monkeypatch.setattr(batched_derivatives, "_pull_per_element", alone)
    monkeypatch.setattr(batched_derivatives, "_push_per_element", alone)
    LOOP_COUNTS.clear()
    near(operator(TOGETHER[label])(SQUARE), result, label)
    assert not LOOP_COUNTS
    error = np.max(np.abs(result - expected))
    assert error < 1e-6 * (1 + np.max(np.abs(expected))), f"{label} is off by {error:.2g}"


def test_jacobian_rule_reading_cotangent_gets_each_direction() -> None:
    x = cg.variable(np.eye(3))
    out: Any = np.linalg.eigh(x)[0]
    seeds = np.zeros((COUNT, 3))
    sweep_batch(collect(out), out, seeds, {x}, False)
    seeds[-1, 0] = 1
    with pytest.warns(RuntimeWarning, match="equal eigenvalues"):
        sweep_batch(collect(out), out, seeds, {x}, False)


def test_jacobian_user_rules_are_called_per_direction() -> None:
    @cg.primitive
    def thirded(x: Any) -> Any:
        return x / 3

    calls = []

    @rule(thirded, kind="general", tangents=[lambda t, out, x: t / 3])
    def thirded_grad(cotangent: Any, out: Any, x: Any) -> Any:
        calls.append(1)
        return cotangent / 3 if np.any(np.asarray(cotangent)) else np.zeros_like(x)

    near(jacrev(thirded)(np.arange(6.0)), np.eye(6) / 3, "jacrev")
    assert len(calls) == 6


def test_jacobian_check_detects_wrongly_batched_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("transpose", "", np.transpose, (np.arange(6.0).reshape(2, 3),))
    check_together(case)
    monkeypatch.setattr(rules["transpose"], "batched_pull", lambda position, g, out, x: 2 * np.swapaxes(g, 1, 2))
    with pytest.raises(AssertionError, match="cotangents of 5"):
        check_together(case)
    monkeypatch.setattr(rules["transpose"], "batched_pull", None)
    monkeypatch.setattr(rules["transpose"], "batched_push", lambda tangents, out, x: -np.swapaxes(tangents[0], 1, 2))
    with pytest.raises(AssertionError, match="tangents of 5"):
        check_together(case)


def test_jacobian_rule_that_ignores_cotangent() -> None:
    @cg.primitive
    def scaled(x: Any, steps: Any) -> Any:
        return x * np.floor(steps)

    rule(scaled, lambda g, out, x, steps: g * np.floor(steps), lambda g, out, x, steps: np.zeros_like(x), kind="elementwise")
    for operator in (jacrev, jacfwd):
        for x in (POINT, np.concatenate([POINT, POINT])):
            near(operator(lambda x: scaled(x, 4 + x))(x), np.diag(np.floor(4 + x)), operator.__name__)


@for_each(("tangent", "expected"), [
    (lambda t, out, x: (2 * x[0] * t[0] if t[0] else None, 3 * t[1] if t[1] else None), [[4.0, 0.0], [0.0, 3.0]]),
    (lambda t, out, x: (2 * x[0] * t[0], np.zeros(())) if t[0] else None, [[4.0, 0.0], [0.0, 0.0]]),
], ids=["of one output", "of all outputs"])  # fmt: skip
def test_jacfwd_tangent_that_is_none_for_some_directions(tangent: Callable[..., Any], expected: Any) -> None:
    @cg.primitive
    def pair(x: Any) -> Any:
        return x[0] ** 2, 3 * x[1]

    rule(pair, lambda g, out, x: x, tangents=[tangent])
    near(jacfwd(lambda x: np.stack(pair(x)))(np.array([2.0, 5.0])), np.array(expected), "jacfwd")


def test_jacobian_rule_losing_directions_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules["transpose"], "batched_pull", lambda position, g, *_, **__: g[0])
    with pytest.raises(ValueError, match="for a batch of 6"):
        jacrev(np.transpose)(np.ones((2, 3)))


# ------------------------------------------------------------------------------------ against differences

Function = Callable[..., Any]


def by_differences(f: Function, x: Any) -> Array:
    """The Jacobian by central differences, element by element."""
    x = np.asarray(x)
    columns = [numeric.directional(f, [x], [e.reshape(x.shape)]) for e in np.eye(x.size)]
    shape = np.shape(f(x))
    return np.moveaxis(np.reshape(columns, (x.size, *shape)), 0, -1).reshape((*shape, *x.shape))


def looped(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i] * np.sin(x[i + 1])
    return np.stack([total, total**2, x[0]])


def layered(x: Any) -> Any:
    w = np.arange(12.0).reshape(4, 3) / 10
    return cg.softmax(np.tanh(w @ x) @ w) + np.mean(x) - np.max(x)


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] * x[1:]
    y[0] += np.sin(x[2])
    return y


def pick_elements(x: Any) -> Any:
    table = np.outer(x, x)
    return table[[0, 2, 0], :][:, [1, 1]] + np.sort(x)[:, None] + table[[0, 1], [2, 2]]


POINT = np.array([0.3, -0.7, 1.1])
MAPS: dict[str, tuple[Function, Any]] = {
    "elementwise": (lambda x: np.exp(x) * x - 1 / (2 + x), POINT),
    "a loop": (looped, POINT),
    "layers": (layered, POINT),
    "written in place": (written, POINT),
    "indices": (pick_elements, POINT),
    "number to vector": (lambda t: np.stack([np.cos(t), np.sin(t)]), 0.4),
    "vector to number": (lambda x: np.sum(x**3), POINT),
    "number to number": (lambda t: t**3, 1.5),
    "matrix to matrix": (lambda x: x @ x.T + np.linalg.inv(x[:, :2]), POINT[:2, None] + np.arange(6.0).reshape(2, 3) ** 2),
    "several outputs": (lambda x: np.linalg.qr(x)[1] @ np.linalg.eigh(x + x.T)[0], np.array([[2.0, 0.3], [-0.4, 1.0]])),
    "identity": (lambda x: x, POINT),
    "no part of it": (lambda x: x[:0], POINT),
    "nothing": (lambda x: x * 2, np.zeros((2, 0))),
    "nothing to a number": (lambda x: np.sum(x), np.zeros(0)),
    "constant": (lambda x: cg.constant(np.ones(2)) * 3, POINT),
    "piecewise constant": (lambda x: np.floor(x) * x, POINT),
}


@for_each("operator", [jacrev, jacfwd, jacobian], ids=lambda o: o.__name__)
@for_each("label", MAPS)
def test_jacobian_matches_differences(label: str, operator: Function) -> None:
    f, x = MAPS[label]
    result = operator(f)(x)
    assert type(result) in (np.ndarray, np.float64)
    near(result, by_differences(lambda y: np.asarray(f(y)), x), label, 1e-7)
    if isinstance(result, np.ndarray):
        result += 1  # belongs to the caller
        near(operator(f)(x), result - 1, label)


@for_each("operator", [jacrev, jacfwd], ids=lambda o: o.__name__)
@for_each("bytes_", [1, 50, 400])
def test_jacobian_directions_in_chunks(operator: Function, bytes_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = MAPS["layers"]
    whole = operator(f)(x)
    monkeypatch.setattr(linearization, "MAX_BATCH_BYTES", bytes_)
    near(operator(f)(x), whole, "in parts", 1e-15)


def test_jacobian_several_arguments_aux_and_keywords() -> None:
    def f(x: Any, y: Any, *, scale: float) -> Any:
        return scale * x[:, None] * np.sin(y), "aux"

    x, y = POINT, np.array([0.2, 0.5])
    calls = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return f(*args, **kwargs)

    for operator in (jacrev, jacfwd, jacobian):
        (by_y, by_x), aux = operator(counted, argnums=(1, 0), has_aux=True)(x, y, scale=2.0)
        assert aux == "aux"
        near(by_x, by_differences(lambda a: f(a, y, scale=2.0)[0], x), "by x", 1e-8)
        near(by_y, by_differences(lambda b: f(x, b, scale=2.0)[0], y), "by y", 1e-8)
        near(operator(lambda *a: f(*a, scale=2.0)[0], argnums=-1)(x, y), by_y, "the last")
    assert len(calls) == 3
    same = jacrev(lambda a, b: a + b, (0, 1))(x, x)
    same[0][...] = 7
    near(same[1], np.eye(3), "not the same array")


def test_jacobian_keeps_float32() -> None:
    x = POINT.astype(np.float32)
    for operator in (jacrev, jacfwd, jacobian):
        assert operator(lambda x: np.sin(x) * x)(x).dtype == np.float32
    cube = lambda x: np.sum(x**3)  # noqa: E731
    assert hessian(cube)(x).dtype == hvp(cube)(x, x).dtype == np.float32
    assert hessian(cube, sparse=True)(x).dtype == np.float32


# ------------------------------------------------------------------------------------------ Hessians


def bowl(x: Any) -> Any:
    return np.sum(np.sin(x[1:] * x[:-1])) + np.prod(x) ** 2 + np.log(x @ x)


def test_hessian_matches_differences() -> None:
    expected = by_differences(grad(bowl), POINT)
    near(hessian(bowl)(POINT), expected, "hessian", 1e-7)
    value, aux = hessian(lambda x: (bowl(x), 5), has_aux=True)(POINT)
    assert aux == 5
    near(value, expected, "with aux", 1e-7)
    near(hessian(lambda x: bowl(x.reshape(3)))(POINT.reshape(1, 3)), expected.reshape(1, 3, 1, 3), "shape", 1e-7)
    near(hessian(lambda x: np.sum(x))(POINT), np.zeros((3, 3)), "linear")
    near(hessian(lambda t: t**4)(1.0), np.asarray(12.0), "number")
    near(hessian(lambda x: np.sum(x**2))(np.zeros(0)), np.zeros((0, 0)), "nothing")
    near(
        hessian(lambda x: np.sum(written(x) ** 2))(POINT),
        by_differences(grad(lambda x: np.sum(written(x) ** 2)), POINT),
        "written",
        1e-7,
    )


def test_hessian_blocks_of_several_arguments() -> None:
    y = np.array([0.2, 0.5])
    f = lambda x, y: np.sum(x) ** 2 * np.sum(np.exp(y)) + x[0] * y[1]  # noqa: E731
    blocks = hessian(f, (0, 1))(POINT, y)
    for i in (0, 1):
        for j in (0, 1):
            near(blocks[i][j], jacfwd(grad(f, i), j)(POINT, y), f"block {i}, {j}")


ORDERS: dict[str, Function] = {
    "jacfwd(jacrev)": lambda f: jacfwd(jacrev(f)),
    "jacrev(jacrev)": lambda f: jacrev(jacrev(f)),
    "jacrev(jacfwd)": lambda f: jacrev(jacfwd(f)),
    "jacfwd(jacfwd)": lambda f: jacfwd(jacfwd(f)),
    "jacobian(grad)": lambda f: jacobian(grad(f)),
    "hvp": lambda f: lambda x: np.stack([hvp(f)(x, e) for e in np.eye(3)]),
    "linearize(grad)": lambda f: lambda x: np.stack([linearize(grad(f), x)[1](e) for e in np.eye(3)]),
    "jvp(jacrev)": lambda f: lambda x: np.stack([jvp(jacrev(f), (x,), (e,))[1] for e in np.eye(3)]),
    "jvp(jacfwd)": lambda f: lambda x: np.stack([jvp(jacfwd(f), (x,), (e,))[1] for e in np.eye(3)]),
    "vjp(jacrev)": lambda f: lambda x: np.stack([vjp(jacrev(f), x)[1](e)[0] for e in np.eye(3)]),
}


@for_each("order", ORDERS)
def test_jacobians_nest_in_every_order(order: str) -> None:
    near(ORDERS[order](bowl)(POINT), hessian(bowl)(POINT), order, 1e-11)
    near(ORDERS[order](lambda x: np.sum(written(x) ** 3))(POINT), hessian(lambda x: np.sum(written(x) ** 3))(POINT), order, 1e-11)


def test_hessian_is_differentiable() -> None:
    third = by_differences(lambda x: hessian(bowl)(x), POINT)
    v = np.array([0.5, -1.0, 2.0])
    near(jacrev(hessian(bowl))(POINT), third, "jacrev", 1e-6)
    near(jacfwd(hessian(bowl))(POINT), third, "jacfwd", 1e-6)
    near(grad(lambda x: np.sum(hessian(bowl)(x)))(POINT), third.sum((0, 1)), "grad of the sum", 1e-6)
    near(jvp(hessian(bowl), (POINT,), (v,))[1], third @ v, "jvp", 1e-6)
    near(
        hessian(lambda x: np.sum(grad(bowl)(x) ** 2))(POINT),
        by_differences(grad(lambda x: np.sum(grad(bowl)(x) ** 2)), POINT),
        "grad inside",
        1e-6,
    )
    near(jacrev(lambda x: hvp(bowl)(x, v))(POINT), third @ v, "of hvp by x", 1e-6)
    near(jacrev(lambda v: hvp(bowl)(POINT, v))(v), hessian(bowl)(POINT), "of hvp by v", 1e-11)
    both = jvp(lambda x: hvp(bowl)(x, x * v), (POINT,), (v,))[1]
    near(both, third @ v @ (POINT * v) + hessian(bowl)(POINT) @ (v * v), "of hvp by both", 1e-6)
    pushed = jvp(lambda x: linearize(bowl, x)[1](x * v), (POINT,), (v,))[1]
    near(pushed, np.asarray(v @ hessian(bowl)(POINT) @ (POINT * v) + grad(bowl)(POINT) @ (v * v)), "of linearize", 1e-10)


def test_jacobian_connects_outer_variables() -> None:
    c = cg.variable(np.array([0.5, 2.0, -1.0]))
    for operator in (jacrev, jacfwd, jacobian):
        table = operator(lambda x: np.sin(c * x) * c[0])(POINT)
        assert isinstance(table, cg.Node)
        derivative = gradient(np.sum(table * np.arange(9.0).reshape(3, 3)), c)[c]
        expected = by_differences(lambda k: np.sum(np.diag(np.cos(k * POINT) * k * k[0]) * np.arange(9.0).reshape(3, 3)), c.value)
        near(derivative, expected, operator.__name__, 1e-8)
    curved = hessian(lambda x: np.sum(np.sin(x * c)))(POINT)
    near(gradient(np.sum(curved), c)[c], by_differences(lambda k: np.sum(-np.sin(k * POINT) * k**2), c.value), "hessian", 1e-8)
    product = hvp(lambda x: np.sum(np.sin(x * c)))(POINT, POINT)
    near(
        gradient(np.sum(product), c)[c], by_differences(lambda k: np.sum(-np.sin(k * POINT) * k**2 * POINT), c.value), "hvp", 1e-8
    )
    for operator in (jacrev, jacfwd):
        linear = operator(lambda x: x * 2 + c)(POINT)
        assert isinstance(linear, cg.Node)  # constant, but not reported as a lost graph
        near(linear.value, 2 * np.eye(3), operator.__name__)
    grows = grad(lambda s: np.sum(jacrev(lambda x: s * x**2)(POINT)))(3.0)
    near(grows, np.asarray(np.sum(2 * POINT)), "perturbations are distinct")
    with cg.no_graph():
        assert type(jacrev(lambda x: c * x)(POINT)) is np.ndarray


# ------------------------------------------------------------------------------------ linearize and hvp


def test_linearize_detects_later_writes() -> None:
    """A write into an array that the function used changes the tangent or raises, as the recorded value differs."""
    captures: list[Any] = []

    def f(x: Any) -> Any:
        captures.append(np.exp(x))
        return captures[-1] * np.sin(x)

    push = linearize(f, POINT)[1]
    t = np.array([1.0, -2.0, 0.5])
    near(push(t), jvp(f, (POINT,), (t,))[1], "before the write")
    captures[0][1:] = 100.0
    near(push(t), jvp(f, (POINT,), (t,))[1], "after the write")
    large = np.ones((400, 400))
    push = linearize(lambda x: np.sum((large @ x) * x), np.ones(400))[1]
    large[0, 0] = 5.0
    with pytest.raises(ValueError, match="was written"):
        push(np.ones(400))


def test_linearize_with_writes_to_large_operands() -> None:
    large = np.ones((400, 400))
    _, push = linearize(lambda x: np.sum((large @ x) * x), np.ones(400))
    near(linearize(written, POINT)[1](POINT), jvp(written, (POINT,), (POINT,))[1], "written")
    near(push(np.ones(400)), 2 * 400.0**2, "large")


def test_linearize_calls_function_once() -> None:
    calls = []

    def f(x: Any, y: Any) -> Any:
        calls.append(1)
        return np.sin(x)[:, None] * y

    y = np.array([2.0, 3.0])
    value, push = linearize(f, POINT, y)
    near(value, f(POINT, y), "value")
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        tangents = [rng.normal(size=3), rng.normal(size=2)]
        near(push(*tangents), jvp(f, (POINT, y), tangents)[1], "tangent")
    assert len(calls) == 1 + 1 + 2  # linearize, the value here, each jvp here
    near(linearize(written, POINT)[1](POINT), jvp(written, (POINT,), (POINT,))[1], "written")
    t = np.ones(3)
    linearize(lambda x: x, POINT)[1](t)[...] = 5
    near(t, np.ones(3), "the caller's tangent")
    near(jacrev(linearize(np.sin, POINT)[1])(t), np.diag(np.cos(POINT)), "a linear function")
    with pytest.raises(ValueError, match="tangent 0 has shape"):
        push(y, y)
    with pytest.raises(ValueError, match="1 tangents were passed for 2"):
        push(POINT)


def test_hvp_matches_hessian() -> None:
    v = np.array([1.0, -2.0, 0.5])
    near(hvp(bowl)(POINT, v), hessian(bowl)(POINT) @ v, "product")
    near(hvp(lambda x, k, power=1: k * np.sum(x**power))(POINT, v, 2.0, power=3), 12 * POINT * v, "with more arguments")
    near(hvp(np.sum)(POINT, v), np.zeros(3), "linear")
    product = hvp(lambda x: np.sum(x * x) / 2)(POINT, v)
    product += 1
    near(v, np.array([1.0, -2.0, 0.5]), "the caller's vector")
    assert type(hvp(lambda x: np.sum(grad(bowl)(x)))(POINT, v)) is np.ndarray  # nothing outside is recorded
    with pytest.raises(ValueError, match="tangent 0 has shape"):
        hvp(bowl)(POINT, v[:2])


def with_own_gradient(x: Any) -> Any:
    @custom_gradient
    def cubed(x: Any) -> Any:
        return x**3, lambda cotangent: 3 * x**2 * cotangent

    return cubed(x) * np.sin(x)


FURTHER: dict[str, tuple[Function, Any]] = {
    "custom gradient": (with_own_gradient, POINT),
    "checkpoint": (checkpoint(lambda x: np.tanh(layered(x)) * x[0]), POINT),
    "a gradient inside": (lambda x: x * grad(lambda y: np.sum(np.sin(y * x)))(x), POINT),
    "a product inside": (lambda x: hvp(lambda y: np.sum(y**3 * x))(x, x), POINT),
    "complex inside": (lambda x: np.abs(np.fft.fft(np.exp(1j * x))) ** 2, POINT),
    "svd": (lambda x: np.linalg.svd(x * x)[1][:, None] * x, np.array([[2.0, 0.3], [-0.4, 1.0]])),
    "divmod": (lambda x: np.stack(np.divmod(x, 0.4 + x[0] ** 2)), POINT),
}


@for_each("label", [*MAPS, *FURTHER])
def test_hvp_equals_hessian_times_vector(label: str) -> None:
    f, x = {**MAPS, **FURTHER}[label]

    def number(x: Any) -> Any:
        y = f(x)
        return np.sum(np.log(1 + y * y) * np.sum(x))

    v = np.random.default_rng(8).normal(size=np.shape(x))
    product = hvp(number)(x, v)
    near(product, np.tensordot(hessian(number)(x), v, np.ndim(x)), "product", 1e-10)
    near(product, numeric.directional(grad(number), [np.asarray(x)], [v]), "against differences", 1e-6)


def test_recorded_gradient_nodes_have_source_lines() -> None:
    """Each node of the derivative has the line of the differentiated operation."""
    x = cg.variable(POINT)
    y = np.tanh(x)
    u, _, _ = np.linalg.svd(np.outer(y, x) + np.diag(y[[0, 0, 1]]))
    out = np.sum(u * y)
    nodes = {n for n in collect(out) if isinstance(n, cg.Node)}
    lines = {n.line for n in nodes}
    derivative = gradient(out, create_graph=True)[x]
    added = [n for n in collect(derivative) if isinstance(n, cg.Node) and n not in nodes and n.opname != "ones_like"]
    assert len(added) > 20
    assert {n.line for n in added} <= lines
    assert {y.line, u.line} <= {n.line for n in added}


def test_recorded_gradient_of_written_array_has_source_lines() -> None:
    """Each node has the line of its operation or write, or of the call of `gradient`; never a line of this package."""
    x = cg.variable(POINT)
    y = np.zeros_like(x)
    y[1:] = np.sin(x)[:-1] * x[1:]
    y[0] += np.tanh(x[2])
    out = np.sum(y * y)
    nodes = set(collect(out))
    derivative = gradient(out, create_graph=True)[x]
    added = [n for n in collect(derivative) if n not in nodes and isinstance(n, cg.Node)]
    texts = [n.line.rpartition(": ")[2] for n in added]
    assert {"y[1:] = np.sin(x)[:-1] * x[1:]", "y[0] += np.tanh(x[2])", "out = np.sum(y * y)"} <= set(texts)
    elsewhere = [f"{n.opname}: {n.line}" for n in added if Path(__file__).name not in n.line]
    assert not elsewhere, elsewhere


# --------------------------------------------------------------------------- complex numbers and refusals


@for_each(
    "f", [lambda t: np.exp(1j * t), lambda t: t + 0j, lambda t: np.conj(t + 1j), lambda t: np.sum(np.fft.fft(np.stack([t, t])))]
)
@for_each("point", [0.3, 0.3 + 0.2j])
def test_gradient_of_complex_result_raises(f: Any, point: Any) -> None:
    operators: dict[str, Any] = {
        "grad": lambda f: ad.grad(f)(point),
        "value_and_grad: ": lambda f: ad.value_and_grad(f)(point),
        "grad: the function": lambda f: ad.grad(lambda t: (f(t), t), has_aux=True)(point),
        "hessian": lambda f: ad.hessian(f)(point),
        "hvp": lambda f: ad.hvp(f)(point, point),
    }
    for name, derive in operators.items():
        with pytest.raises(TypeError, match=rf"^{name}.*complex number.*Take its real part \(np.real\).*autodiff.jacobian"):
            derive(f)
    x = cg.variable(point)
    for create_graph in (False, True):
        with pytest.raises(TypeError, match=r"gradient: the .* is complex, and has no gradient. Take its real part \(np.real\)"):
            gradient(f(x), create_graph=create_graph)
        for cotangent, part in ((1.0, np.real), (-1j, np.imag)):
            expected = numeric.gradient(lambda t, part=part: part(f(t)), [point])[0]
            assert np.allclose(gradient(f(x), adjoint=cotangent, create_graph=create_graph)[x], expected, rtol=1e-6)
            assert np.allclose(ad.grad(lambda t, part=part: part(f(t)))(point), expected, rtol=1e-6)


def test_jacobian_of_complex_arguments() -> None:
    z = np.array([0.5 + 0.2j, -1.0 + 0.7j])
    a = np.array([[1.0, 2j], [1 - 1j, 0.5]])
    for operator in (jacrev, jacfwd, jacobian):
        name = operator.__name__
        near(operator(lambda z: np.sin(a @ z))(z), np.cos(a @ z)[:, None] * a, f"{name}: analytic", 1e-14)
        near(operator(lambda t: np.exp(1j * t * z))(0.3), 1j * z * np.exp(0.3j * z), f"{name}: of a real argument", 1e-14)
        rows = operator(lambda z: np.stack([np.abs(z[0]) ** 2, np.real(z[1]) * 3]))(z)
        near(rows, np.array([[2 * np.conj(z[0]), 0], [0, 3]]), f"{name}: real results", 1e-14)
        with pytest.raises(TypeError, match=f"{name}: the complex function is not analytic"):
            operator(lambda z: np.conj(z) * z)(z)
    near(jacrev(lambda z: np.sum(np.abs(z) ** 2))(z), grad(lambda z: np.sum(np.abs(z) ** 2))(z), "as grad", 1e-14)
    for operator in (hessian, lambda f: lambda z: hvp(f)(z, z)):
        with pytest.raises(TypeError, match="second derivatives do not form one matrix"):
            operator(lambda z: np.sum(np.abs(z) ** 2))(z)


ERRORS: dict[str, tuple[Function, type[Exception], str]] = {
    "integers": (lambda: jacrev(np.sin)(np.arange(3)), TypeError, "is not differentiable"),
    "argnums": (lambda: jacfwd(np.sin, argnums=1)(POINT), ValueError, "jacfwd: argnums 1 is out of range"),
    "None": (lambda: jacobian(lambda x: None)(POINT), TypeError, "jacobian: the function returned None"),
    "lost": (lambda: jacrev(lambda x: x.value)(POINT), TypeError, "was not recorded"),
    "no scalar": (lambda: hessian(np.sin)(POINT), ValueError, "hessian: the function returned shape"),
    "no scalar to hvp": (lambda: hvp(np.sin)(POINT, POINT), ValueError, "hvp: the function returned shape"),
}


@for_each("label", ERRORS)
def test_jacobian_bad_calls_raise(label: str) -> None:
    call, error, message = ERRORS[label]
    with pytest.raises(error, match=message):
        call()
