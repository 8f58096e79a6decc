"""`vmap`: axes, nesting, writes, composition with derivatives, and errors."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.batching.rules import LOOP_COUNTS, RULES_BY_KIND, RULES_BY_OPNAME
from autodiff.batching.rules.call import has_elementwise_derivative
from autodiff.rules import scatter
from compgraph import ops
from compgraph.bind import bind
from tests.support.failures import Failures
from tests.support.for_each import for_each

RNG = np.random.default_rng(0)
XS, W = RNG.normal(size=(3, 4)), RNG.normal(size=4)


def same(actual: Any, expected: Any) -> None:
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(w * x) ** 2) + w[0] * x[1]


def written(w: Any, x: Any) -> Any:
    """Writes into its argument, into views of it, and into arrays of its own."""
    v = w[1:]
    w[2] = x[0] * 2
    v[0] *= x[1]
    u = w.reshape(2, 2)
    u[1, 1] += np.sum(v)
    a, c = np.zeros_like(x), np.zeros(4)
    b, d = a[::-1], c[1:3]
    a[0] = x[1]
    b[0] = w[2]
    d[...] = a[:2] * w[0]
    c[np.argsort(x)[0]] = 5 * w[1]
    a[x > 0] = w[3]
    np.putmask(a, x > 1, x)
    return np.sum(w * w * x) + np.sum(u) + np.sum(a + c * x)


# ------------------------------------------------------------------------------------------------- axes


def test_vmap_in_axes_and_out_axes() -> None:
    f = lambda x, y: x[:, None] * y  # noqa: E731
    ys = RNG.normal(size=(2, 3))
    expected = np.stack([f(x, y) for x, y in zip(XS, ys.T, strict=True)])
    same(ad.vmap(f, in_axes=(0, 1))(XS, ys), expected)
    same(ad.vmap(f, in_axes=(-2, -1), out_axes=-1)(XS, ys), np.moveaxis(expected, 0, -1))
    same(ad.vmap(f, in_axes=(0, None), out_axes=1)(XS, ys[0]), np.stack([f(x, ys[0]) for x in XS], axis=1))


def test_vmap_nested_arguments_and_results() -> None:
    class Pair(NamedTuple):
        one: Any
        other: Any

    f = lambda p, k: {"sum": p["a"] + k, "both": Pair(p["b"][0], [np.sum(p["a"])])}  # noqa: E731
    tree = {"a": XS.T, "b": (W,)}
    result = ad.vmap(f, in_axes=({"a": 1, "b": None}, None), out_axes={"both": 0, "sum": -1})(tree, 2.0)
    same(result["sum"], XS.T + 2)
    same(result["both"].one, np.stack([W] * 3))
    same(result["both"].other[0], XS.sum(axis=1))
    same(ad.vmap(lambda x: (x, W), out_axes=(0, None))(XS)[1], W)


def test_vmap_keywords_batch_first_axis() -> None:
    same(ad.vmap(lambda x, *, y: x * y)(XS, y=XS), XS * XS)
    same(ad.vmap(lambda: np.ones(2), axis_size=3)(), np.ones((3, 2)))


def test_vmap_of_empty_batch() -> None:
    none = np.zeros((0, 3))
    assert ad.vmap(lambda x: np.convolve(x, [1.0, 2.0]))(none).shape == (0, 4)
    assert ad.vmap(ad.grad(lambda x: np.sum(x**2)))(none).shape == (0, 3)


def test_vmap_keeps_arguments_of_caller() -> None:
    xs = XS.copy()

    def f(x: Any) -> Any:
        x[0] = 7
        return x

    result = ad.vmap(f)(xs)
    assert np.array_equal(xs, XS)
    assert np.all(result[:, 0] == 7)
    same_array = ad.vmap(lambda x: x)(xs)
    assert not np.shares_memory(same_array, xs)


def test_vmap_argument_has_shape_of_one_element() -> None:
    properties: list[Any] = []

    def f(x: Any) -> Any:
        properties.append((x.shape, len(x), x.ndim, x.dtype, isinstance(x, np.ndarray), type(x), type(x > 0), np.shape(x)))
        return sum(row for row in x)

    same(ad.vmap(f)(XS), XS.sum(axis=1))
    assert properties == [((4,), 4, 1, np.dtype(float), True, np.ndarray, np.ndarray, (4,))]


# ------------------------------------------------------------------------------------------- composition

Function = Callable[..., Any]
DERIVATIVES: dict[str, Callable[[Function, Any, Any], Any]] = {
    "grad": lambda f, w, x: ad.grad(f)(w, x),
    "value_and_grad": lambda f, w, x: np.concatenate([[ad.value_and_grad(f)(w, x)[0]], ad.value_and_grad(f)(w, x)[1]]),
    "jvp": lambda f, w, x: ad.jvp(lambda w: f(w, x), (w,), (W,))[1],
    "vjp": lambda f, w, x: ad.vjp(f, w, x)[1](2.0)[1],
    "grad of grad": lambda f, w, x: ad.grad(lambda w: np.sum(ad.grad(f)(w, x) * x))(w),
    "jvp of grad": lambda f, w, x: ad.jvp(lambda w: ad.grad(f)(w, x), (w,), (x,))[1],
    "grad of jvp": lambda f, w, x: ad.grad(lambda w: ad.jvp(lambda w: f(w, x), (w,), (x,))[1])(w),
}


@for_each("f", [loss, written])
@for_each("name", DERIVATIVES)
def test_vmap_of_derivatives_matches_loop(name: str, f: Function) -> None:
    derive = DERIVATIVES[name]
    # Of a single example the last is refused, where an array made within is written into; it is the same as the one before.
    alone = DERIVATIVES["jvp of grad"] if name == "grad of jvp" else derive
    same(ad.vmap(lambda x: derive(f, W, x))(XS), np.stack([alone(f, W, x) for x in XS]))
    both = ad.vmap(lambda x: ad.vmap(lambda y: derive(f, W, x * y))(XS))(XS)
    same(both, np.stack([[alone(f, W, x * y) for y in XS] for x in XS]))


@for_each("f", [loss, written])
@for_each("operator", [ad.grad, ad.hessian, ad.jacobian, ad.jacfwd, lambda f: lambda w: ad.jvp(f, (w,), (W,))[1]])
def test_derivatives_of_vmap_match_loop(operator: Any, f: Function) -> None:
    def of_all(w: Any) -> Any:  # a batch element cannot write into a shared array
        return np.sum(ad.vmap(lambda w, x: f(w + np.zeros_like(x), x), in_axes=(None, 0))(w, XS) ** 2)

    def of_each(w: Any) -> Any:
        return sum(f(np.copy(w), x) ** 2 for x in XS)

    same(operator(of_all)(W), operator(of_each)(W))


def test_vmap_of_pullback_matches_loop() -> None:
    _, pull = ad.vjp(lambda x: np.cumsum(x * x), W)
    same(ad.vmap(pull)(XS)[0], np.stack([pull(x)[0] for x in XS]))


def test_vmap_connects_variables_of_outer_graph() -> None:
    w = cg.variable(W, "w")
    total = np.sum(ad.vmap(loss, in_axes=(None, 0))(w, XS))
    same(ad.reverse.gradient(total)["w"], sum(ad.grad(loss)(W, x) for x in XS))


INDICES = RNG.integers(0, 4, size=(3, 2))


def assigned(target: Any, index: Any, value: Any) -> Any:
    target[index] = value
    return target


# Of a value of one vmap and an index of another, both ways round; `inner` is given the index of each, or the value of each.
ACROSS: dict[str, Callable[[Any, Any], Any]] = {
    "taken": lambda x, k: x[k],
    "taken of two axes": lambda x, k: np.reshape(x, (2, 2))[k // 2, k % 2],
    "written": lambda x, k: assigned(x * 1.0, k, 7.0),
    "written into an array made inside": lambda x, k: assigned(np.zeros(4), k, x[:2]),
    "written where a mask holds": lambda x, k: assigned(x * 1.0, np.arange(4) > k[0], 7.0),
    "masked sum": lambda x, k: np.sum(x, where=np.arange(4) > k[0]),
}


@for_each("name", ACROSS)
def test_nested_vmap_batched_indices(name: str) -> None:
    f = ACROSS[name]
    expected = np.stack([[f(x, k) for x in XS] for k in INDICES])
    same(ad.vmap(lambda k: ad.vmap(lambda x: f(x, k))(XS))(INDICES), expected)
    inner = ad.vmap(lambda x: ad.vmap(lambda k: f(x, k))(INDICES), out_axes=1)
    if name in ("written", "written where a mask holds"):  # into an array shared by all elements of the inner vmap
        with pytest.raises(TypeError, match="all batch elements share"):
            inner(XS)
    else:
        same(inner(XS), expected)
    g = ad.grad(lambda x, k: np.sum(f(x, k) ** 2))
    expected = np.stack([[g(x, k) for x in XS] for k in INDICES])
    same(ad.vmap(lambda k: ad.vmap(lambda x: g(x, k))(XS))(INDICES), expected)


def test_nested_vmap_batched_mask_raises() -> None:
    with pytest.raises(cg.BatchedValueError, match=r"np\.where"):
        ad.vmap(lambda k: ad.vmap(lambda x: x[np.arange(4) > k[0]])(XS))(INDICES)


# --------------------------------------------------------------------------------------------- refusals

ERRORS: dict[str, tuple[Function, str]] = {
    "if": (lambda x: x if x.sum() > 0 else -x, "np.where"),
    "float": (lambda x: float(x[0]), "np.where"),
    "int": (lambda x: np.zeros(int(x[0])), "np.where"),
    "value": (lambda x: x.value, "np.where"),
    "in": (lambda x: 1.0 in x, "np.where"),
    "mask": (lambda x: x[x > 0], "np.where"),
    "lengths": (lambda x: np.flatnonzero(x > 0.3), "np.where"),
    "drawn": (lambda x: x * np.random.normal(), "randomness"),  # noqa: NPY002
    "drawn by Python": (lambda x: x * random.random(), "randomness"),
    "add.at": (lambda x: np.add.at(np.zeros(4), x > 0, x), "np.where"),
    "places": (lambda x: np.where(x > 0)[0], "different shapes"),
    "index of a plain array": (lambda x: pickle.loads(pickle.dumps(W))[np.argsort(x)], "cg.take"),
    "written into a shared array": (lambda x: cg.constant(W).__setitem__(0, x[0]), "np.zeros_like"),
    "gradient": (lambda x: ad.reverse.gradient(np.sum(x))["x"], "vmap"),
    "pickle": (lambda x: pickle.dumps(x), "vmap"),
    "arange": (lambda x: np.arange(x[0]), "vmap"),
    "no array": (lambda x: "text", "not an array"),
    "variables": (lambda x: ad.forward.variables(W).primal * x, "vmap"),
    "verify": (ad.grad(lambda x: np.sum(x * x), verify="first"), "vmap"),
    "executor": (lambda x: cg.Executor(x), "vmap"),
}


NO_LINE = ("no array", "drawn", "drawn by Python", "verify")  # errors raised when no line of the function runs


@for_each("name", ERRORS)
def test_vmap_unsupported_call_raises_with_advice(name: str) -> None:
    """The error names a remedy and the user's line."""
    f, advice = ERRORS[name]
    with pytest.raises((TypeError, ValueError), match=advice) as raised:
        ad.vmap(f)(XS)
    assert name in NO_LINE or str(raised.value).count('test_vmap.py", line') == 1


TABLE, ROWS = np.linspace(0.0, 2.0, 9), np.arange(18.0).reshape(9, 2)


def ranks(x: Any) -> Any:
    """The places of the numbers of an example, in order."""
    return np.argsort(x)


LOOKUPS: dict[str, Function] = {
    "closure": lambda x: TABLE[ranks(x)] * x,
    "rows": lambda x: ROWS[ranks(x)] * x[0],
    "parts": lambda x: ROWS[ranks(x), 1] + ROWS[ranks(x)[0], ranks(x)[1] % 2],
    "take": lambda x: np.take(TABLE, ranks(x)) + TABLE.take(ranks(x)) + np.take(TABLE, indices=ranks(x), axis=0),
    "one of many": lambda x: np.eye(5)[ranks(x)] @ np.ones(5) * x[0],
    "made within": lambda x: np.linspace(0, 1, 5)[ranks(x)] * x,
    "default": lambda x, table=TABLE: table[ranks(x)] * x,
}


@for_each("name", LOOKUPS)
def test_vmap_plain_array_at_batched_indices(name: str) -> None:
    """Plain arrays, of the caller's and the function's own, at indices that differ between the examples."""
    f = LOOKUPS[name]
    np.testing.assert_allclose(ad.vmap(f)(XS), np.stack([f(x) for x in XS]))
    total = ad.grad(lambda x: np.sum(f(x) * np.sum(x)))
    np.testing.assert_allclose(ad.vmap(total)(XS), np.stack([total(x) for x in XS]))
    moved = ad.jvp(lambda x: f(x) * np.sum(x), (XS[0],), (XS[1],))[1]
    np.testing.assert_allclose(moved, ad.jacobian(lambda x: f(x) * np.sum(x))(XS[0]) @ XS[1])
    as_argument = ad.vmap(lambda table, x: table[ranks(x)], in_axes=(None, 0))
    np.testing.assert_allclose(as_argument(TABLE, XS), np.stack([TABLE[ranks(x)] for x in XS]))


def test_vmap_different_batch_sizes_raise() -> None:
    with pytest.raises(ValueError, match="different batch sizes"):
        ad.vmap(lambda x, y: x[0] * y[0])(XS, XS[:2])
    with pytest.raises(ValueError, match="no argument"):
        ad.vmap(np.sin, in_axes=None)(XS)
    with pytest.raises(ValueError, match="axis 2"):
        ad.vmap(np.sin, in_axes=2)(XS)
    with pytest.raises(ValueError, match="out_axes is None"):
        ad.vmap(np.sin, out_axes=None)(XS)
    with pytest.raises(TypeError, match="nests differently"):
        ad.vmap(lambda p: p[0], in_axes=([0, 1],))([XS])
    with pytest.raises(ValueError, match="randomness"):
        ad.vmap(np.sin, randomness="some")


# ------------------------------------------------------------------------------------------------ table


def test_vmap_every_operation_has_batching_rule() -> None:
    """Ufuncs and elementwise rules are batched by kind, SciPy's and users' functions in a loop, others by declared rules."""
    numpys = {
        function
        for function, name in ops.OPNAMES.items()
        if not name.startswith("scipy_") and not (isinstance(function, np.ufunc) and function.signature is None)
    }
    numpys = {f for f in numpys if (getattr(f, "__module__", None) or "").partition(".")[0] in ("numpy", "compgraph", "autodiff")}
    by_form = {function for function in numpys if has_elementwise_derivative(function)}
    by_opname = {function for function in numpys if ops.opname_of(function) in RULES_BY_OPNAME}
    specs = [*ops.OPERATIONS, *filter(None, map(ops.spec_of, numpys))]
    by_kind = {spec.function for spec in specs if spec.kind in RULES_BY_KIND and spec.policy in ("rule", "piecewise")}
    assert numpys <= by_kind | by_form | by_opname
    of_any_kind = {spec.function for spec in ops.OPERATIONS if spec.kind not in ("elementwise", "shape")}
    assert not of_any_kind & by_kind & by_opname
    assert {spec.kind for spec in ops.OPERATIONS} == {*RULES_BY_KIND, "own"}


@cg.primitive
def cube_each(x: Any) -> Any:
    return x**3


@cg.primitive
def weighed(x: Any, w: Any) -> Any:
    assert x.ndim == w.ndim == 1  # the batch axes are hidden
    return np.cumsum(x * w)


ad.rule(cube_each, derivative=lambda x: 3 * x * x)
ad.rule(weighed, lambda g, out, x, w: np.cumsum(g[::-1])[::-1] * w, lambda g, out, x, w: np.cumsum(g[::-1])[::-1] * x)


def test_vmap_primitives_by_kind_or_in_loop() -> None:
    LOOP_COUNTS.clear()
    same(ad.vmap(cube_each)(XS), XS**3)
    same(ad.vmap(ad.grad(lambda x: np.sum(cube_each(x))))(XS), 3 * XS**2)
    assert not LOOP_COUNTS
    same(ad.vmap(weighed, (0, None))(XS, W), np.cumsum(XS * W, axis=1))
    assert LOOP_COUNTS == {"weighed": 1}
    f = ad.grad(lambda x, w: np.sum(weighed(x, w) ** 2), (0, 1))
    for axes, inputs in (((0, 0), (XS, XS + 1)), ((None, 0), (W, XS))):
        each = [f(XS[i] if axes[0] == 0 else W, inputs[1][i]) for i in range(3)]
        for actual, expected in zip(ad.vmap(f, axes)(*inputs), zip(*each, strict=True), strict=True):
            same(actual, np.stack(expected))
    total = ad.grad(lambda w: np.sum(ad.vmap(weighed, (0, None))(XS, w) ** 2))(W)
    same(total, sum(ad.grad(lambda w, x=x: np.sum(weighed(x, w) ** 2))(W) for x in XS))


NATIVE: dict[str, Function] = {
    "quantile": lambda x: np.quantile(x, 0.3),
    "quantiles along an axis": lambda x: np.quantile(x.reshape(2, 2), [[0.3], [0.5]], axis=1, keepdims=True),
    "median": lambda x: np.median(x.reshape(2, 2), axis=0),
    "nanmedian": lambda x: np.nanmedian(x),
    "percentile": lambda x: np.percentile(x.reshape(2, 2), [20, 30], axis=(0, 1)),
    **{
        f"{f.__name__} {mode} {n} {which}": lambda x, f=f, mode=mode, n=n, which=which: (
            f(x, W[:n], mode) if which == "first" else f(W[:n], x[:n], mode) if which == "second" else f(x, x[:n] ** 2, mode)
        )
        for f in (np.convolve, np.correlate)
        for mode in ("full", "same", "valid")
        for n in (1, 2, 3, 4)
        for which in ("first", "second", "both")
    },
}


@for_each("name", NATIVE)
def test_vmap_native_batching_rules_do_not_loop(name: str) -> None:
    f = NATIVE[name]
    LOOP_COUNTS.clear()
    same(ad.vmap(f)(XS), np.stack([f(x) for x in XS]))
    assert not LOOP_COUNTS
    g = ad.grad(lambda x: np.sum(f(x) ** 2))
    same(ad.vmap(g)(XS), np.stack([g(x) for x in XS]))


def test_vmap_convolution_with_longer_operand() -> None:
    for f in (np.convolve, np.correlate):
        for mode in ("full", "same", "valid"):
            same(ad.vmap(lambda x, f=f, mode=mode: f(x[:2], W, mode))(XS), np.stack([f(x[:2], W, mode) for x in XS]))
            same(ad.vmap(lambda x, f=f, mode=mode: f(x * 1j, W + 2j, mode))(XS), np.stack([f(x * 1j, W + 2j, mode) for x in XS]))
            inputs = (XS * 9).astype(int)
            result = ad.vmap(lambda x, f=f, mode=mode: f(x, np.arange(3), mode))(inputs)
            assert result.dtype == np.dtype(int)
            same(result, np.stack([f(x, np.arange(3), mode) for x in inputs]))


# ---------------------------------------------------------------------------------------------- pictures


def test_visualize_draws_vmap_as_box_with_batch_size() -> None:
    w = cg.variable(W, "w")
    total = np.sum(ad.vmap(loss, in_axes=(None, 0))(w, XS))
    assert total.scope == ()
    source = cg.visualize_at(total).source
    assert "vmap loss × 3" in source
    assert "cluster_0" in source
    nested = ad.vmap(lambda x: ad.vmap(lambda y: y * np.sum(x))(np.ones(2) * w[:2]))(XS)
    titles = {scope for node in cg.topological_order([nested]) for scope in node.scope}
    assert titles == {"vmap × 3", "vmap × 2"}


@for_each("derivative", ["grad", "jvp", "hessian", "jacobian", "hvp"])
def test_vmap_works_while_a_placeholder_lives(derivative: str) -> None:
    """Shapes are noted then, of values of many examples too: of the array of all of them."""
    living = cg.placeholder((None,), example=np.ones(2))
    f = lambda x: np.sum(np.tanh(x) ** 3)  # noqa: E731
    each = {
        "grad": ad.grad(f),
        "jvp": lambda x: ad.jvp(f, (x,), (np.ones(2),))[1],
        "hessian": ad.hessian(f),
        "jacobian": ad.jacobian(lambda x: np.tanh(x) * x[0]),
        "hvp": lambda x: ad.hvp(f)(x, np.ones(2)),
    }[derivative]
    xs = np.array([[0.1, 0.2], [0.3, -0.4], [1.0, 2.0]])
    np.testing.assert_allclose(ad.vmap(each)(xs), [each(x) for x in xs], rtol=1e-12)
    assert living.shape == (2,)


PLAIN: dict[str, Function] = {
    "product": lambda a, b: ad.jvp(lambda q: q @ b, (a,), (a,))[1],
    "written": lambda a, b: ad.jvp(lambda q: np.where(q < 0, q @ b, q), (a,), (a,))[1],
    "twice": lambda a, b: ad.jvp(lambda q: ad.jvp(lambda r: (r @ b) ** 2, (q,), (q,))[1], (a,), (a,))[1],
}


@for_each("name", PLAIN)
def test_vmap_result_is_plain_outside_of_operators(name: str) -> None:
    f = PLAIN[name]
    result = ad.vmap(f)(XS, XS)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, np.stack([f(x, x) for x in XS]))
    variable = cg.variable(W)
    assert isinstance(ad.vmap(lambda x: f(x * variable, x))(XS), cg.Node)
    slope = ad.grad(lambda w: np.sum(ad.vmap(lambda x: f(x * w, x))(XS)))(W)
    np.testing.assert_allclose(slope, ad.grad(lambda w: sum(np.sum(f(x * w, x)) for x in XS))(W))


def test_vmap_object_array_raises() -> None:
    with pytest.raises(TypeError, match="convert the operands"):
        ad.jvp(lambda x: x @ np.array([1.0, 2.0, 3.0, 4.0], object), (W,), (W,))


def test_vmap_matmul_of_constant_stack_and_batched_vectors() -> None:
    stack = np.arange(24.0).reshape(2, 3, 4)
    vectors = np.arange(20.0).reshape(5, 4)
    np.testing.assert_allclose(ad.vmap(lambda v: stack @ v)(vectors), np.stack([stack @ v for v in vectors]))


def test_vmap_scatter_adds_batched_pieces() -> None:
    def f(p: Any, q: Any) -> Any:
        return bind(scatter, (np.zeros(5), p, [0, 2, 2], q, slice(1, 3)), {"index_counts": (1, 1)})

    pieces, others = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)
    result = ad.vmap(f)(pieces, others)
    np.testing.assert_array_equal(result, [[p[0], q[0], p[1] + p[2] + q[1], 0, 0] for p, q in zip(pieces, others, strict=True)])


def test_vmap_ufunc_reductions_match_loop() -> None:
    x = np.linspace(0.1, 2.4, 24).reshape(4, 3, 2)
    with Failures("ufunc.reduce") as failures:
        for ufunc in (np.hypot, np.logaddexp, np.logaddexp2, np.fmax, np.add, np.multiply):
            for options in ({}, {"axis": 1}, {"axis": -2, "keepdims": True}):
                with failures.case(f"{ufunc.__name__} {options}"):
                    expected = np.stack([ufunc.reduce(a, **options) for a in x])
                    np.testing.assert_allclose(ad.vmap(lambda a: ufunc.reduce(a, **options))(x), expected)  # noqa: B023


def test_vmap_keyword_arguments_batch_first_axis() -> None:
    x, y = np.arange(12.0).reshape(4, 3), np.arange(20.0).reshape(4, 5)
    result = ad.vmap(lambda x, *, y: np.outer(x, y))(x, y=y)
    np.testing.assert_array_equal(result, [np.outer(a, b) for a, b in zip(x, y, strict=True)])


def test_vmap_function_reading_class_matches_loop() -> None:
    x = np.arange(12.0).reshape(3, 4)
    result = ad.vmap(lambda x: np.sum(x) * (2.0 if x.__class__ is list else 1.0), in_axes=1)(x)
    np.testing.assert_array_equal(result, x.sum(axis=0))
    with pytest.raises(ad.DetachedGradientError, match=r"returns 24\. for numbers, but 12\. for nodes"):
        ad.vmap(lambda x: np.sum(x) * (2.0 if x.__class__ is np.ndarray else 1.0), in_axes=1)(x)


def test_vmap_of_keyword_arguments_batches_their_first_axis() -> None:
    result = ad.vmap(lambda x, y: x * np.sum(y))(np.ones(2), y=np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(result, [3.0, 12.0])


def test_vmap_full_like_of_shared_array() -> None:
    result = ad.vmap(lambda v: np.full_like(np.zeros(3), v))(np.arange(2.0))
    np.testing.assert_array_equal(result, [[0.0] * 3, [1.0] * 3])


WRITES: dict[str, Function] = {
    "put": lambda x, i, v: np.put(x, i, v),
    "put_along_axis": lambda x, i, v: np.put_along_axis(x, i, v, 0),
    "place": lambda x, i, v: np.place(x, x > 0.5, v),
    "putmask": lambda x, i, v: np.putmask(x, x > 0.5, v),
    "copyto": lambda x, i, v: np.copyto(x, v[0], where=x > 0.5),
    "put keywords": lambda x, i, v: np.put(a=x, ind=i, v=v),
    "place keywords": lambda x, i, v: np.place(arr=x, mask=x > 0.5, vals=v),
}


@for_each("name", WRITES)
def test_vmap_writing_function_keeps_arguments(name: str) -> None:
    x, v = np.linspace(0.1, 1.2, 8).reshape(2, 4), np.array([[5.0, 6.0], [7.0, 8.0]])
    i = np.array([[0, 1], [2, 3]])

    def written(x: Any, i: Any, v: Any) -> Any:
        WRITES[name](x, i, v)
        return x

    before = x.copy()
    expected = np.stack([written(*row) for row in zip(x.copy(), i, v, strict=True)])
    np.testing.assert_array_equal(ad.vmap(written)(x, i, v), expected)
    np.testing.assert_array_equal(ad.vmap(written)(x[:1], i[:1], v[:1]), expected[:1])  # sequentially, of one batch element
    np.testing.assert_array_equal(x, before)


def test_vmap_write_at_batched_index_into_plain_integers_raises() -> None:
    integers = np.zeros(3, int)
    cg.interception(False)
    try:
        with pytest.raises(cg.BatchedValueError, match=r"an argument of np\.put"):
            ad.vmap(lambda i: np.put(integers, i, 1))(np.array([0, 1]))
    finally:
        cg.interception(True)
    assert not integers.any()


def test_vmap_write_into_shared_elements_raises() -> None:
    def assigned(x: Any) -> Any:
        y = np.broadcast_to(x, (3, 4))
        y[0] = 1.0
        return y

    def added(x: Any) -> Any:
        y = np.broadcast_to(x, (3, 4))
        np.add.at(y, 0, 1.0)
        return y

    for write in (assigned, added):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            ad.vmap(write)(XS)


@pytest.mark.parametrize("batched", [(True, True), (True, False), (False, True)])
def test_vmap_scatter_keeps_shape_and_dtype_of_first_operand(batched: tuple[bool, bool]) -> None:
    likes, pieces = np.zeros((4, 5, 2), np.float32), np.arange(24.0).reshape(4, 3, 2)
    like, piece = likes if batched[0] else likes[0], pieces if batched[1] else pieces[0]
    indices = np.array([[0, 2, 2], [1, 1, 1], [4, 3, 0], [0, 0, 4]])

    def f(like: Any, piece: Any, index: Any) -> Any:
        return bind(scatter, (like, piece, index), {"index_counts": (1,)})

    result = ad.vmap(f, in_axes=(0 if batched[0] else None, 0 if batched[1] else None, 0))(like, piece, indices)
    expected = np.zeros((4, 5, 2), np.float32)
    for k, index in enumerate(indices):
        np.add.at(expected[k], index, (pieces[k] if batched[1] else piece).astype(np.float32))
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.float32


def test_vmap_write_through_view_of_other_dtype() -> None:
    def set_imaginary_parts(x: Any) -> Any:
        z = x + 0j
        z.view(float)[..., 1::2] = 2 * x
        return z

    same(ad.vmap(set_imaginary_parts)(XS), XS + 2j * XS)
    slope = ad.vmap(ad.grad(lambda x: np.sum(np.abs(set_imaginary_parts(x)) ** 2)))(XS)
    same(slope, 10 * XS)
    with pytest.raises(ValueError, match="contiguous"):
        ad.vmap(lambda x: np.reshape(x + 0j, (2, 2)).T.view(float))(XS)


def test_vmap_writes_into_arrays_without_elements() -> None:
    def f(x: Any) -> Any:
        rows = np.stack([x[4:], x[4:]])
        rows[0] -= rows[1] ** 2
        rows += 1
        return np.sum(rows) + np.sum(x)

    same(ad.vmap(f)(XS), np.sum(XS, axis=1))
    same(ad.vmap(ad.grad(f))(XS), np.ones((3, 4)))
