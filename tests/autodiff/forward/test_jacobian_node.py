"""Jacobians by `autodiff.forward.variables` and `autodiff.reverse.variables`."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import (
    checkpoint,
    custom_gradient,
    directional_derivative,
    elementwise_grad,
    forward,
    grad,
    hessian,
    jacfwd,
    jvp,
    numeric,
    reverse,
    root,
    rule,
    taylor,
    vjp,
)
from autodiff.rules.rule import by_function, rules
from tests.support.checks.jacobian_node import carried, check, close, differences, pulled
from tests.support.for_each import for_each

pytestmark = pytest.mark.portable

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def test_jacobian_check_detects_wrong_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([0.5, 1.0, 1.5])
    check(np.cumsum, x)
    monkeypatch.setattr(rules["cumsum"], "batched_push", lambda tangents, out, x: 2 * np.cumsum(tangents[0], axis=1))
    with pytest.raises(AssertionError):
        check(np.cumsum, x)


X, V, M = 0.7, np.array([0.5, -1.2, 2.0]), np.arange(1.0, 7.0).reshape(3, 2) / 5


def filled(a: Any, v: Any, m: Any) -> Any:
    """Writes of every kind: by slices, masks, lists, through views, of carried and of plain values."""
    b = np.zeros_like(m, shape=(2, 4, 3))
    b[0, 1:] = v
    b[1, :, [0, 2]] = m.T[:, :1] * a
    b[..., 1] += a
    b[:, [0, 3], 2] = 5.0
    view = b.transpose(2, 0, 1)[::-1]
    view[0] *= a
    view[view > 4.5] = a**2
    b[1, 0] = v[::-1] * b[0, 0]
    b.ravel()[3] = a
    return b * b


SEVERAL: dict[str, Function] = {
    "numbers from all": lambda a, v, m: np.sum(v @ m) * a,
    "vector": lambda a, v, m: np.tanh(m.T @ v * a),
    "matrix": lambda a, v, m: np.exp(a) * m + v[:, None],
    "without one": lambda a, v, m: v * np.sin(v),
    "of one number": lambda a, v, m: a**3 / (1 + a),
    "constant": lambda a, v, m: np.floor(v * 1.1) + 0 * a,
    "input itself": lambda a, v, m: v,
    "where": lambda a, v, m: np.where(v > a, v * a, -m[:, 0]),
    "masked sum": lambda a, v, m: np.sum(m * a, axis=0, where=m > 0.5),
    "branches": lambda a, v, m: v * a if v[0] > 0 else v,
    "eigenvectors": lambda a, v, m: np.linalg.eigh(np.outer(v, v) + np.diag(m[:, 0]) * a)[1],
    "eigenvalues": lambda a, v, m: np.linalg.eigh(np.outer(v, v) + np.diag(m[:, 0]) * a).eigenvalues,
    "remainders": lambda a, v, m: np.multiply(*divmod(v, a)),
    "views": lambda a, v, m: np.concatenate([m.T[::-1, 1:].ravel(), v[[0, 0, -1]] * a]),
    "composed": lambda a, v, m: np.vstack([v, np.gradient(v * a)]) - np.polyval(v, a),
    "gathered": lambda a, v, m: cg.array([a, v[1], 2.0]) * cg.full(3, a),
    "losses": lambda a, v, m: cg.softmax_cross_entropy(m * a, np.array([0, 1, 1])),
    "complex result": lambda a, v, m: np.fft.fft(v) * (a + 1j * m[0, 1]),
    "by numbers of Python": lambda a, v, m: sum(x * x * a for x in v) - 2,
    "rebound": lambda a, v, m: _rebound(a, v),
    "written": filled,
    "filled": lambda a, v, m: _fill_diagonal(a, v),
    "nothing": lambda a, v, m: (v * a)[:0],
    "recomputed": lambda a, v, m: checkpoint(lambda x, y: np.sin(x) * y)(v, a),
    "with a rule of its own": lambda a, v, m: custom_gradient(lambda x: (np.sin(x), lambda g: (g * np.cos(x),)))(v * a),
    "implicit": lambda a, v, m: root(lambda y, p: y**3 + y - p, np.zeros(3), v * a),
}


def _rebound(a: Any, v: Any) -> Any:
    total = v[0]
    total *= a
    for x in v[1:]:
        total += x * total
    return total


def _fill_diagonal(a: Any, v: Any) -> Any:
    b = np.outer(v, v)
    np.fill_diagonal(b, a)
    np.add.at(b, [0, 0], v)
    np.multiply(b, a, out=b[::-1])
    return np.sort(b, axis=None)


@for_each("label", SEVERAL)
def test_forward_variables_of_scalars_vectors_and_matrices(label: str) -> None:
    f = SEVERAL[label]
    jacobians = check(f, X, V, M)
    out = np.asarray(f(X, V.copy(), M.copy()))
    assert [j.shape for j in jacobians] == [out.shape, (*out.shape, 3), (*out.shape, 3, 2)]


@for_each("label", SEVERAL)
def test_forward_variables_second_order(label: str) -> None:
    """Jacobians of forward mode under an outer `gradient` and `jvp`; those of reverse mode under `gradient`."""
    f = SEVERAL[label]
    if label == "complex result":
        return check_second_order(lambda a, v, m: np.real(f(a, v, m) ** 2))
    return check_second_order(f)


def check_second_order(f: Function) -> None:
    weights = np.random.default_rng(0)

    def total(jacobians: list[Any]) -> Any:
        return sum(np.sum(np.cos(1.0 + np.arange(j.size)).reshape(j.shape) * j) for j in jacobians)

    expected = numeric.gradient(lambda *args: total(carried(f, args)), [X, V, M])
    along = [weights.normal(size=np.shape(x)) for x in (X, V, M)]
    slope = sum(np.sum(e * t) for e, t in zip(expected, along, strict=True))
    outside = grad(lambda *args: total(carried(f, args)), argnums=(0, 1, 2))(X, V, M)
    inputs = reverse.variables(X, V, M)
    swept = total(reverse.jacobian(f(*inputs), inputs, create_graph=True))
    again = reverse.gradient(swept, inputs, unused="zero")
    for i, e in enumerate(expected):
        close(outside[i], e, 1e-6)
        close(again[inputs[i]], e, 1e-6)
    close(jvp(lambda *args: total(carried(f, args)), [X, V, M], along)[1], slope, 1e-6)


def test_forward_variables_shapes_of_one_input() -> None:
    x, v, m = forward.variables(2.0), forward.variables(V), forward.variables(M)
    assert (x**2).jacobian == 4
    assert type((x**2).jacobian) is np.float64
    assert (v @ v).jacobian.shape == (3,)
    assert (v[:2] * v[1:]).jacobian.shape == (2, 3)
    assert (m @ m.T).jacobian.shape == (3, 3, 3, 2)
    assert v.jacobian.tolist() == np.eye(3).tolist()
    assert isinstance(forward.variables(2.0, V), tuple)
    assert isinstance(reverse.variables(V), cg.VariableNode)
    w = reverse.variables(V)
    assert reverse.jacobian(w * 2, w).tolist() == reverse.jacobian(w * 2, [w])[0].tolist() == (2 * np.eye(3)).tolist()


@for_each("shapes", [[(0,)], [(0, 3), (2,)], [(), (0,)]])
def test_forward_variables_of_zero_size(shapes: list[tuple[int, ...]]) -> None:
    args = [np.ones(s) for s in shapes]
    check(lambda *xs: sum(np.sum(np.exp(x)) for x in xs), *args)
    check(lambda *xs: np.concatenate([np.ravel(x) * 2 for x in xs]), *args)
    check(lambda *xs: np.linalg.svd(np.ones((2, 2)) + np.sum(xs[0]) * np.eye(2))[1], *args)

    def written(*xs: Any) -> Any:
        b = np.zeros_like(xs[0], shape=(3,))
        b[1:] = np.sum(xs[0])
        return b * 2

    check(written, *args)


def test_forward_variables_keep_float32() -> None:
    a, v = np.float32(X), V.astype(np.float32)
    for f in (lambda a, v: np.sin(v) * a, lambda a, v: np.linalg.norm(v - a)):
        for actual, expected in zip(check(f, a, v, rtol=1e-2), differences(f, (X, V)), strict=True):
            assert actual.dtype == np.float32
            assert np.allclose(actual, expected, rtol=1e-5)
    mixed = lambda a, v: v * a  # noqa: E731
    for jacobians in (carried(mixed, (a, V)), pulled(mixed, (a, V))):
        assert [j.dtype for j in jacobians] == [np.float64, np.float64]


def test_jacobian_shares_no_memory() -> None:
    """It shares memory with nothing: neither writes into the value change it, nor writing into it the value."""
    array = V.copy()
    x = forward.variables(array)
    before = x.jacobian
    x[0] = x[1] * 3
    array[:] = 0
    assert before.tolist() == np.eye(3).tolist()
    assert x.jacobian.tolist() == [[0, 3, 0], [0, 1, 0], [0, 0, 1]]
    x.jacobian[:] = 7
    (y := +x)[2] = 0
    assert x.jacobian.tolist() == [[0, 3, 0], [0, 1, 0], [0, 0, 1]]
    assert y.jacobian.tolist() == [[0, 3, 0], [0, 1, 0], [0, 0, 0]]


def test_variables_names_option() -> None:
    for mode in (forward, reverse):
        assert [x.name for x in mode.variables(1.0, V, names=["a", "v"])] == ["a", "v"]
        assert mode.variables(1.0, names=["a"]).name == "a"
        assert mode.variables(1.0).name
        for names in (["a"], "av"):
            with pytest.raises(ValueError, match="2 names"):
                mode.variables(1.0, V, names=names)


# ---------------------------------------------------------------------------------- operations of the user


@pytest.fixture
def _own_rules() -> Iterator[None]:
    """Remove the rules that a test declares."""
    before = dict(rules)
    yield
    rules.clear()
    rules.update(before)
    by_function.clear()


def _declare_rule(how: str) -> Any:
    if how in ("jacobian", "tangents", "numerically in general"):

        @cg.primitive(opname=f"carried {how}")
        def f(x: Any, y: Any) -> Any:
            return np.sin(x)[::-1] * y

    else:

        @cg.primitive(opname=f"carried {how}")
        def f(x: Any, y: Any) -> Any:
            return np.sin(x) * y

    if how == "formula":
        rule(f, lambda g, out, x, y: g * np.cos(x) * y, lambda g, out, x, y: g * np.sin(x), kind="elementwise")
    elif how == "derivative":
        rule(f, derivative=[lambda x, y: np.cos(x) * y, lambda x, y: np.sin(x)], check=True)
    elif how == "jacobian":
        flipped = [lambda x, y: np.diag(np.cos(x))[::-1] * y, lambda x, y: np.sin(x)[::-1]]
        rule(f, jacobian=flipped, check=True)
    elif how == "tangents":
        rule(
            f,
            lambda g, out, x, y: (g * y)[::-1] * np.cos(x),
            lambda g, out, x, y: g * np.sin(x)[::-1],
            tangents=(lambda t, out, x, y: (t * np.cos(x))[::-1] * y, lambda t, out, x, y: t * np.sin(x)[::-1]),
        )
    else:
        rule(f, numerically=True, kind="elementwise" if how == "numerically" else None)
    return f


@pytest.mark.usefixtures("_own_rules")
@for_each("how", ["formula", "derivative", "jacobian", "tangents", "numerically", "numerically in general"])
def test_forward_variables_through_user_primitives(how: str) -> None:
    f = _declare_rule(how)
    x, y = V[::-1].copy(), 1.3
    expected = differences(lambda x, y: f.function(x * 2, y), (x, y))
    for jacobians in (carried(lambda x, y: f(x * 2, y), (x, y)), pulled(lambda x, y: f(x * 2, y), (x, y))):
        for a, e in zip(jacobians, expected, strict=True):
            close(a, e, 1e-6)


@pytest.mark.usefixtures("_own_rules")
@for_each("size", [1, 3])
def test_rule_is_checked_for_batched_directions(size: int) -> None:
    wrong = cg.primitive(lambda x: x**3, opname="wrong cube")
    for mode in (carried, pulled):
        rule(wrong, derivative=lambda x: 2 * x, check=True)
        with pytest.raises(ArithmeticError, match="wrong cube"):
            mode(lambda x: wrong(x - np.mean(x) + 1), (np.arange(2.0, 2.0 + size) ** 2,)) if size > 1 else mode(
                wrong, (np.ones(1),)
            )


@pytest.mark.usefixtures("_own_rules")
def test_forward_variables_operation_without_rule_raises() -> None:
    bare = cg.primitive(lambda x: x**3, opname="bare cube")
    with pytest.raises(TypeError, match="bare cube has no derivative rule"):
        bare(forward.variables(V))


# ------------------------------------------------------------------------- with other derivatives, and errors


def test_jvp_of_forward_variables() -> None:
    def f(a: Any, v: Any) -> Any:
        return jvp(lambda x: x**3 * a, (v,), (a * np.ones(3),))[1] + jvp(lambda x: x * v, (1.0,), (1.0,))[1]

    for actual, expected in zip(carried(f, (X, V)), differences(lambda a, v: 3 * v**2 * a**2 + v, (X, V)), strict=True):
        close(actual, expected, 1e-6)
    t = forward.variables(0.3)
    close(taylor(lambda s: np.exp(s * t), 0.0, 2)[2].jacobian, 0.3, 1e-12)
    close(directional_derivative(np.sin, V, t * np.ones(3)).jacobian, np.cos(V), 1e-12)


def test_jvp_of_forward_variables_with_writes() -> None:
    """Buffers and tangents of an inner derivative may hold values with a Jacobian."""

    def inner(x: Any, v: Any) -> Any:
        b = np.zeros_like(x, shape=(4,))
        b[:3] = v * x
        b[3] = x**2
        b[1:] *= x
        return b

    result = carried(lambda a, v: jvp(lambda x: inner(x, v), (a,), (1.0,))[1], (X, V))
    expected = differences(lambda a, v: np.array([v[0], 2 * a * v[1], 2 * a * v[2], 3 * a**2]), (X, V))
    for a, e in zip(result, expected, strict=True):
        close(a, e, 1e-6)


def test_jvp_within_no_graph_is_constant() -> None:
    """Tangents of the inner jvp are pushed, also in buffers; tangents from outside of no_graph are not."""

    def filled(x: Any, make: Function) -> Any:
        b = make(x)
        b[0] = x
        b[1] = 1.0
        return b * x

    t = forward.variables(2.0)
    for make in (lambda x: cg.zeros(2), lambda x: np.zeros_like(x, shape=(2,))):
        with cg.no_graph():
            one = jvp(lambda x: filled(x, make), (2.0,), (1.0,))[1]  # noqa: B023
            two = jvp(lambda y: jvp(lambda x: filled(x * y, make), (2.0,), (1.0,))[1], (2.0,), (1.0,))[1]  # noqa: B023
            both = jvp(lambda x: filled(x * t, make), (2.0,), (1.0,))[1]  # noqa: B023
        assert [one.tolist(), two.tolist(), both.tolist()] == [[4, 1], [16, 1], [16, 2]]
        assert type(both) is np.ndarray
    with cg.no_graph():
        assert type(t**2) is np.float64
        assert type(cg.zeros(2)) is np.ndarray


def test_forward_variables_connect_to_outer_graph() -> None:
    w = cg.variable([1.0, 2.0, 3.0], "w")
    x = forward.variables(V)
    j = (np.sin(x) * w).jacobian
    close(j, np.diag(np.cos(V) * w.value), 1e-12)
    close(reverse.gradient(np.sum(j), w)[w], np.cos(V), 1e-12)


FOLLOWED: dict[str, Function] = {  # their rules have no batched tangent: one formula is recorded for all directions
    "qr": lambda a: np.linalg.qr(a)[1],
    "cumprod": np.cumprod,
    "solve": lambda a: np.linalg.solve(a, a[0] ** 2),
    "cholesky": lambda a: np.linalg.cholesky(a @ a.T),
}


@for_each("label", FOLLOWED)
def test_forward_variables_rules_connect_to_outer_graph(label: str) -> None:
    start = np.random.default_rng(0).normal(size=(3, 3)) + 3 * np.eye(3)

    def total(a: Any) -> Any:
        j = FOLLOWED[label](forward.variables(a)).jacobian
        return np.sum(np.cos(np.arange(j.size)).reshape(j.shape) * j)

    w = cg.variable(start, "w")
    close(reverse.gradient(total(w))[w], numeric.gradient(total, [start])[0], 1e-6)


TWO_CALLS: dict[str, Function] = {
    "operation": lambda x, y: x * y,
    "the other way": lambda x, y: y * x,
    "list": lambda x, y: np.concatenate([x, y]),
    "input": lambda x, y: forward.variables(x),
    "written": lambda x, y: x.__setitem__(0, y[0]),
    "written into the earlier": lambda x, y: y.__setitem__(0, x[0]),
    "jvp": lambda x, y: jvp(lambda z: z * x, (y,), (y,)),
}


@for_each("label", TWO_CALLS)
def test_forward_variables_of_two_calls_do_not_mix(label: str) -> None:
    x, y = forward.variables(V), forward.variables(V)
    with pytest.raises(TypeError, match="make all inputs in one call"):
        TWO_CALLS[label](x, y)


@for_each("operator", [grad, hessian, lambda f: jacfwd(lambda x: f(x) * x), lambda f: lambda x: vjp(f, x), elementwise_grad])
def test_reverse_mode_of_forward_variables_raises(operator: Function) -> None:
    x = forward.variables(V)
    for call in (lambda: operator(lambda y: np.sum(y * y))(x), lambda: operator(lambda y: np.sum(y * x))(V)):
        with pytest.raises(TypeError, match=r"use autodiff\.jvp inside"):
            call()
    with pytest.raises(TypeError, match=r"use autodiff\.jvp inside"):
        vjp(lambda y: y * 2, V)[1](x)


def test_inner_value_used_outside_its_derivative_raises() -> None:
    with pytest.raises(TypeError, match=r"Return its \.jacobian"):
        jvp(lambda y: forward.variables(y * 1.0) ** 3, (1.0,), (1.0,))
    with pytest.raises(TypeError, match="carries a Jacobian"):
        grad(lambda y: forward.variables(y * 1.0) ** 3)(1.0)


BAD_INPUTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "integers": ((np.arange(3),), r"Convert it \(x\.astype\(float\)\)"),
    "a list of integers": ((1.0, [1, 2]), "is not differentiable"),
    "booleans": ((np.array([True]),), "is not differentiable"),
    "words": (("x",), "is not differentiable"),
    "complex": ((1.0, 1j), "input 1 is complex"),
    "none": ((), "one value for each"),
}


@for_each("mode", [forward, reverse])
@for_each("label", BAD_INPUTS)
def test_variables_bad_inputs_raise(label: str, mode: Any) -> None:
    values, message = BAD_INPUTS[label]
    with pytest.raises(TypeError, match=message):
        mode.variables(*values)


def test_reverse_variables_of_nodes_raise() -> None:
    for node in (forward.variables(1.0), cg.variable(1.0) * 2):
        with pytest.raises(TypeError, match=r"use autodiff\.jacrev"):
            reverse.variables(node)


def test_forward_variables_lost_tangents_raise() -> None:
    x = forward.variables(V)
    with pytest.raises(cg.LeakError, match=r"takes the numbers of"):
        np.asarray(x)
    for lost in (x > 0, np.argmax(x), x.value, cg.variable(1.0)):
        with pytest.raises(TypeError, match="carries no Jacobian"):
            forward.jacobian(lost)
    lost = pytest.raises(TypeError, match=r"float\(\) at .*test_jacobian_node")
    with pytest.warns(RuntimeWarning, match=r"float\(\) at .*has no derivative"), lost:
        forward.jacobian(float(x[0]) * 2)
    with pytest.raises(cg.LeakError, match="as_strided"):
        np.lib.stride_tricks.as_strided(x, subok=True)
    with pytest.raises(TypeError, match=r"np\.zeros_like\(x, shape=shape\)"):
        cg.zeros(3)[:] = x
    with pytest.raises(TypeError, match="attribute jacobian"):
        reverse.gradient(x * 2)


def test_reverse_variables_unsupported_requests_raise() -> None:
    x = reverse.variables(V)
    for node, wrt, message in (
        (x > 0, x, "not floating"),
        (x.value, x, "jacobian needs a node"),
        (x * 2, x * 2, "wrt takes variables"),
        (x * 2, ["x"], "wrt takes variables"),
        (forward.variables(V), x, "attribute jacobian"),
    ):
        with pytest.raises(TypeError, match=message):
            reverse.jacobian(node, wrt)
    y = x * x
    x += 1.0
    with pytest.raises(ValueError, match="updated"):
        reverse.jacobian(y, x)


# ------------------------------------------------------------------------------------------------ memory


def _chain(x: Any, count: int) -> tuple[Any, int]:
    """A long computation, and how many blocks of memory it held towards its end, beyond those at its beginning."""
    for _ in range(1000):
        x = x * 1.000001
    before = sys.getallocatedblocks()
    for _ in range(count - 1000):
        x = x * 1.000001
    return x, sys.getallocatedblocks() - before


def test_forward_variables_scalar_memory_is_bounded() -> None:
    counts = []

    def f(x: Any, count: int) -> Any:
        y, blocks = _chain(x, count)
        counts.append(blocks)
        return y

    close(jvp(lambda x: f(x, 20_000), (1.5,), (1.0,))[1], 1.000001**20_000, 1e-10)
    close(f(forward.variables(V), 5_000).jacobian, 1.000001**5_000 * np.eye(3), 1e-10)
    assert max(counts) < 10
    gc.collect()  # objects of earlier tests would be subtracted
    _, stored = _chain(cg.variable(V), 3000)
    assert stored > 2000, "a graph that is stored would be seen"


def test_forward_variables_array_memory_is_bounded() -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        x = forward.variables(np.ones(30))
        y = np.ones((30, 30)) / 30
        for _ in range(count):
            x = np.tanh(y @ x) * x[::-1]
            x[0] = x[1] * 2
        assert x.jacobian.shape == (30, 30)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    few = peak(50)
    assert min(peak(300) for _ in range(3)) < 1.2 * few  # apart from objects that are created once, in one of them
