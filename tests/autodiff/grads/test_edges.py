"""First and second derivatives at corners, ends of domains and singular matrices, in both modes.

A derivative that exists is right. Otherwise a warning names the operation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special as special

import autodiff as ad
import compgraph as cg
from autodiff.reverse import corner_slopes
from tests.support.for_each import for_each, sampled
from tests.support.growth import calls

WARNS = None
UNASKED: Any = "not asked"


class Edge(NamedTuple):
    """A function of one array at a point; what its derivatives are, or that they warn."""

    f: Callable[[Any], Any]
    x: Any
    first: Any
    second: Any
    names: str = ""  # what a warning names


norm = np.linalg.norm
TWICE = 2 * np.eye(2)
NONE = np.zeros((2, 2))
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 0.5, 2.5], [-1.0, 0.3, -0.7]])  # the third column is the sum of the others
WEIGHTS = np.random.default_rng(5).normal(size=(3, 3, 3))

SMOOTH = {
    "norm(x)**2": Edge(lambda x: norm(x) ** 2, (0, 0), (0, 0), TWICE),
    "norm(x)*norm(x)": Edge(lambda x: norm(x) * norm(x), (0, 0), (0, 0), TWICE),
    "norm(x)**2, one of two": Edge(
        lambda x: np.sum(norm(x, axis=-1) ** 2), ((0, 0), (1, 2)), (0, 0, 2, 4), 2 * np.eye(4)
    ),
    "norm keepdims": Edge(lambda x: np.sum(norm(x, axis=0, keepdims=True) ** 2), ((0, 1), (0, 2)), (0, 2, 0, 4), 2 * np.eye(4)),
    "vector_norm(x)**2": Edge(lambda x: np.linalg.vector_norm(x) ** 2, (0, 0), (0, 0), TWICE),
    "norm fro": Edge(lambda x: norm(x, "fro") ** 2, NONE, np.zeros(4), 2 * np.eye(4)),
    "norm(x)**3": Edge(lambda x: norm(x) ** 3, (0, 0), (0, 0), NONE),
    "norm(x)**4": Edge(lambda x: norm(x) ** 4, (0, 0), (0, 0), NONE),
    "cos(norm)": Edge(lambda x: np.cos(norm(x)), (0, 0), (0, 0), -np.eye(2)),
    "exp(-norm**2/2)": Edge(lambda x: np.exp(-(norm(x) ** 2) / 2), (0, 0), (0, 0), -np.eye(2)),
    "hypot**2": Edge(lambda x: np.hypot(x[0], x[1]) ** 2, (0, 0), (0, 0), TWICE),
    "abs**2": Edge(lambda x: np.sum(np.abs(x) ** 2), (0, 1), (0, 2), TWICE),
    "abs*abs": Edge(lambda x: np.sum(np.abs(x) * np.abs(x)), (0, 1), (0, 2), TWICE),
    "square(abs)": Edge(lambda x: np.sum(np.square(np.abs(x))), (0, 1), (0, 2), TWICE),
    "abs dot abs": Edge(lambda x: np.dot(np.abs(x), np.abs(x)), (0, 1), (0, 2), TWICE),
    "fabs**2": Edge(lambda x: np.sum(np.fabs(x) ** 2), (0, 1), (0, 2), TWICE),
    "abs**2 * y": Edge(lambda x: np.abs(x[0]) ** 2 * x[1], (0, 3), (0, 0), [[6, 0], [0, 0]]),
    "abs**3": Edge(lambda x: np.sum(np.abs(x) ** 3), (0, 1), (0, 3), [[0, 0], [0, 6]]),
    "complex abs**2": Edge(lambda x: np.abs(x[0] + 1j * x[1]) ** 2, (0, 0), (0, 0), TWICE),
    "copysign**2": Edge(lambda x: np.sum(np.copysign(x, 1.0) ** 2), (0, 1), (0, 2), TWICE),
    "maximum(x, -x)**2": Edge(lambda x: np.sum(np.maximum(x, -x) ** 2), (0, 1), (0, 2), TWICE),
    "fmax(x, -x)**2": Edge(lambda x: np.sum(np.fmax(x, -x) ** 2), (0, 1), (0, 2), TWICE),
    "minimum(x, -x)**2": Edge(lambda x: np.sum(np.minimum(x, -x) ** 2), (0, 1), (0, 2), TWICE),
    "both sides of maximum": Edge(
        lambda x: np.sum(np.maximum(x, 0) ** 2 + np.maximum(-x, 0) ** 2), (0, 1), (0, 2), TWICE
    ),
    "both sides of relu": Edge(lambda x: np.sum(cg.relu(x) ** 2 + cg.relu(-x) ** 2), (0, 1), (0, 2), TWICE),
    "both sides of clip": Edge(
        lambda x: np.sum(np.clip(x, 0, None) ** 2 + np.clip(x, None, 0) ** 2), (0, 1), (0, 2), TWICE
    ),
    "max(x, -x)": Edge(lambda x: np.max(np.stack([x[0], -x[0]])) ** 2, (0,), (0,), [[2]]),
    "std**2": Edge(lambda x: np.std(x) ** 2, (1, 1), (0, 0), [[0.5, -0.5], [-0.5, 0.5]]),
    "var": Edge(np.var, (1, 1), (0, 0), [[0.5, -0.5], [-0.5, 0.5]]),
    "sort": Edge(lambda x: np.sum(np.sort(x) ** 2), (1, 1), (2, 2), TWICE),
    "x**2": Edge(lambda x: np.sum(x**2), (0, 0), (0, 0), TWICE),
    "x**3.5": Edge(lambda x: np.sum(x**3.5), (0, 1), (0, 3.5), [[0, 0], [0, 8.75]]),
    "x**[0, 1, 2, 3]": Edge(
        lambda x: np.sum(x ** np.arange(4.0)), (0, 0, 0, 0), (0, 1, 0, 0), np.diag([0, 0, 2, 0])
    ),
    "x**y": Edge(lambda x: x[0] ** x[1], (0, 2), (0, 0), [[2, 0], [0, 0]]),
    "prod": Edge(np.prod, (0, 0, 3), (0, 0, 0), [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    "cumprod": Edge(lambda x: np.sum(np.cumprod(x)), (0, 0, 3), (1, 0, 0), [[0, 4, 0], [4, 0, 0], [0, 0, 0]]),
    "multiply.reduce": Edge(np.multiply.reduce, (0, 0, 3), (0, 0, 0), [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    "logaddexp(inf, 0)": Edge(lambda x: np.logaddexp(x[0], x[1]), (np.inf, 0), (1, 0), NONE),
    "logaddexp(-inf, 0)": Edge(lambda x: np.logaddexp(x[0], x[1]), (-np.inf, 0), (0, 1), NONE),
    "logaddexp2(0, inf)": Edge(lambda x: np.logaddexp2(x[0], x[1]), (0, np.inf), (0, 1), NONE),
    "sinc": Edge(lambda x: np.sinc(x[0]), (0,), (0,), [[-np.pi**2 / 3]]),
    "i0": Edge(lambda x: np.i0(x[0]), (0,), (0,), [[0.5]]),
    "special.i0": Edge(lambda x: special.i0(x[0]), (0,), (0,), [[0.5]]),
    "special.jv": Edge(lambda x: special.jv(2, x[0]), (0,), (0,), [[0.25]]),
    "xlogy(0, 2)": Edge(lambda x: special.xlogy(x[0], x[1]), (0, 2), (np.log(2), 0), [[0, 0.5], [0.5, 0]]),
    "exprel": Edge(lambda x: special.exprel(x[0]), (0,), (0.5,), [[1 / 3]]),
    "boxcox": Edge(lambda x: special.boxcox(2.0, x[0]), (0,), (np.log(2) ** 2 / 2,), [[np.log(2) ** 3 / 3]]),
    "pseudo_huber": Edge(lambda x: special.pseudo_huber(1.0, x[0]), (0,), (0,), [[1]]),
    "squares of singular values": Edge(
        lambda x: np.sum(np.linalg.svd(x, compute_uv=False) ** 2), ((2, 0), (0, 0)), (4, 0, 0, 0), 2 * np.eye(4)
    ),
    "the largest singular value": Edge(
        lambda x: norm(x, 2), ((2, 0), (0, 0)), (1, 0, 0, 0), np.diag([0, 0.5, 0.5, 0])
    ),
    "a sum of equal eigenvalues": Edge(
        lambda x: np.sum(np.linalg.eigvalsh(x)), np.eye(2), (1, 0, 0, 1), UNASKED
    ),
    "matrix_power of zeros": Edge(
        lambda x: np.linalg.matrix_power(x, 2)[0, 0], NONE, np.zeros(4), [[2, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0] * 4]
    ),
    "det of rank 1": Edge(
        lambda x: np.linalg.det(x), ((1, 2), (2, 4)), (4, -2, -2, 1), np.fliplr(np.diag([1, -1, -1, 1]))
    ),
    "det of rank 0": Edge(lambda x: np.linalg.det(x), np.zeros((3, 3)), np.zeros(9), np.zeros((9, 9))),
}  # fmt: skip

UNDEFINED = {
    "norm": Edge(norm, (0, 0), (0, 0), WARNS, "linalg_norm"),
    "hypot": Edge(lambda x: np.hypot(x[0], x[1]), (0, 0), (0, 0), WARNS, "hypot"),
    "complex abs": Edge(lambda x: np.abs(x[0] + 1j * x[1]), (0, 0), (0, 0), WARNS, "abs"),
    "complex sign": Edge(lambda x: np.real(np.sign(x[0] + 1j * x[1])), (0, 0), WARNS, WARNS, "complex_sign"),
    "std": Edge(np.std, (1, 1), (0, 0), WARNS, "std"),
    "abs * y": Edge(lambda x: np.abs(x[0]) * x[1], (0, 0), (0, 0), WARNS, "abs"),
    "abs * x": Edge(lambda x: np.sum(np.abs(x) * x), (0, 1), (0, 2), WARNS, "abs"),
    "sum(abs)**2": Edge(lambda x: np.sum(np.abs(x)) ** 2, (0, 0), (0, 0), WARNS, "abs"),
    "abs(x)*abs(-x)": Edge(lambda x: np.sum(np.abs(x) * np.abs(-x)), (0, 1), (0, 2), WARNS, "abs"),
    "norm(x, 1)**2": Edge(lambda x: norm(x, 1) ** 2, (0, 0), (0, 0), WARNS, "linalg_norm"),
    "norm(x, 3)**2": Edge(lambda x: norm(x, 3) ** 2, (0, 0), (0, 0), WARNS, "linalg_norm"),
    "norm(x, inf)**2": Edge(lambda x: norm(x, np.inf) ** 2, (0, 0), (0, 0), WARNS, "linalg_norm"),
    "quantile**2": Edge(lambda x: np.quantile(x, 0.5) ** 2, (0, 0), (0, 0), WARNS, "quantile"),
    "nuclear norm, rank 1": Edge(lambda x: norm(x, "nuc"), ((1, 0, 0), (0, 0, 0)), (1, 0, 0, 0, 0, 0), WARNS, "linalg_norm"),
    "nuclear norm, rank 1 up to rounding": Edge(
        lambda x: norm(x, "nuc"), ((1, 2, 3), (2, 4, 6)), np.outer((1, 2), (1, 2, 3)) / 70**0.5, WARNS, "linalg_norm"
    ),
    "nuclear norm, tall": Edge(lambda x: norm(x, "nuc"), ((0, 0), (0, 0), (2, 0)), (0, 0, 0, 0, 1, 0), WARNS, "linalg_norm"),
    "the smallest singular value": Edge(lambda x: norm(x, -2), ((2, 0), (0, 0)), np.zeros(4), WARNS, "linalg_norm"),
    "an eigenvector": Edge(lambda x: np.sum(np.linalg.eigh(x)[1][:, 0]), np.eye(2), WARNS, WARNS, "linalg_eigh"),
    "double roots": Edge(lambda x: np.sum(np.real(np.roots(x)) ** 2), (1, -2, 1), WARNS, WARNS, ""),
    "qr of columns that depend on each other": Edge(
        lambda x: np.sum(np.linalg.qr(x)[0]), ((1, 2), (2, 4), (3, 6)), WARNS, WARNS, "linalg_qr"
    ),
    "qr of a first column of zeros": Edge(lambda x: np.linalg.qr(x)[1][1, 1], ((0, 2), (0, 4)), WARNS, WARNS, "linalg_qr"),
    "slogdet": Edge(lambda x: np.linalg.slogdet(x)[1], ((1, 0), (0, 0)), WARNS, WARNS, "linalg_slogdet"),
    "cond": Edge(lambda x: np.linalg.cond(x), ((1, 0), (0, 0)), WARNS, WARNS, "linalg_cond"),
    "x**1.5": Edge(lambda x: np.sum(x**1.5), (0, 1), (0, 1.5), WARNS, "pow"),
    "0**0": Edge(lambda x: x[0] ** x[1], (0, 0), WARNS, WARNS, "pow"),
    "x**y of 0, 1": Edge(lambda x: x[0] ** x[1], (0, 1), (1, 0), WARNS, "pow"),
    "sqrt": Edge(lambda x: np.sum(np.sqrt(x)), (0, 1), WARNS, WARNS, "sqrt"),
    "sqrt(x*x)": Edge(lambda x: np.sum(np.sqrt(x * x)), (0, 1), WARNS, WARNS, "sqrt"),
    "cbrt": Edge(lambda x: np.sum(np.cbrt(x)), (0, 1), WARNS, WARNS, "cbrt"),
    "arcsin": Edge(lambda x: np.sum(np.arcsin(x)), (1, 0), WARNS, WARNS, "arcsin"),
    "arccos": Edge(lambda x: np.sum(np.arccos(x)), (1, 0), WARNS, WARNS, "arccos"),
    "arccosh": Edge(lambda x: np.sum(np.arccosh(x)), (1, 2), WARNS, WARNS, "arccosh"),
    "arctanh": Edge(lambda x: np.sum(np.arctanh(x)), (1, 0), WARNS, WARNS, "arctanh"),
    "arctan2": Edge(lambda x: np.arctan2(x[0], x[1]), (0, 0), WARNS, WARNS, "arctan2"),
    "logaddexp(-inf, -inf)": Edge(lambda x: np.logaddexp(x[0], x[1]), (-np.inf, -np.inf), WARNS, WARNS, "logaddexp"),
    "xlogy(0, 0)": Edge(lambda x: special.xlogy(x[0], x[1]), (0, 0), WARNS, WARNS, "special_xlogy"),
    "entr": Edge(lambda x: np.sum(special.entr(x)), (0, 1), WARNS, WARNS, "special_entr"),
    "rel_entr": Edge(lambda x: special.rel_entr(x[0], x[1]), (0, 1), WARNS, WARNS, "special_rel_entr"),
    "kl_div": Edge(lambda x: special.kl_div(x[0], x[1]), (0, 1), WARNS, WARNS, "special_kl_div"),
}  # fmt: skip


def directions(x: Any) -> Any:
    return np.eye(x.size).reshape(x.size, *x.shape)


def each(derived: Callable[[Any], Any], x: Any) -> Any:
    """Derivatives along each direction."""
    return np.stack([derived(e) for e in directions(x)])


FIRST: dict[str, Callable[[Any, Any], Any]] = {
    "reverse": lambda f, x: ad.grad(f)(x),
    "forward": lambda f, x: each(lambda e: ad.jvp(f, (x,), (e,))[1], x),
    "columns": lambda f, x: ad.jacfwd(f)(x),
}
SECOND: dict[str, Callable[[Any, Any], Any]] = {
    "hessian": lambda f, x: ad.hessian(f)(x),
    "sparse hessian": lambda f, x: ad.hessian(f, sparse=True)(x).toarray(),
    "hvp": lambda f, x: each(lambda e: ad.hvp(f)(x, e), x),
    "reverse over reverse": lambda f, x: each(lambda e: ad.grad(lambda y: np.sum(ad.grad(f)(y) * e))(x), x),
    "jacobians": lambda f, x: ad.jacrev(ad.jacrev(f))(x),
    "columns of rows": lambda f, x: ad.jacfwd(ad.grad(f))(x),
}
FORWARD: dict[str, Callable[[Any, Any], Any]] = {
    "forward over reverse": lambda f, x: each(lambda e: ad.jvp(ad.grad(f), (x,), (e,))[1], x),
    "reverse over forward": lambda f, x: each(lambda e: ad.grad(lambda y: ad.jvp(f, (y,), (e,))[1])(x), x),
    "forward over forward": lambda f, x: each(lambda e: ad.jacfwd(lambda y: ad.jvp(f, (y,), (e,))[1])(x), x),
}


def derivative_and_warnings(how: Callable[[Any, Any], Any], edge: Edge) -> tuple[Any, list[str]]:
    """The derivatives, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        derivative = np.asarray(how(edge.f, np.asarray(edge.x, float)))
    assert all(issubclass(w.category, RuntimeWarning) for w in caught)
    return derivative, [str(w.message) for w in caught]


def is_close(actual: Any, expected: Any) -> bool:
    return np.allclose(np.ravel(actual), np.ravel(np.asarray(expected, float)), rtol=1e-9, atol=1e-9)


@for_each("mode", FIRST)
@for_each("name", [*SMOOTH, *UNDEFINED])
def test_edges_first_derivative_is_right_or_warns(name: str, mode: str) -> None:
    edge = {**SMOOTH, **UNDEFINED}[name]
    result, messages = derivative_and_warnings(FIRST[mode], edge)
    if edge.first is WARNS:
        assert messages
        assert any(edge.names in message for message in messages)
    else:
        assert is_close(result, edge.first), result
        assert not messages


@sampled
@for_each("mode", [*SECOND, *FORWARD])
@for_each("name", [name for name, edge in SMOOTH.items() if edge.second is not UNASKED])
def test_edges_smooth_second_derivative_is_exact(name: str, mode: str) -> None:
    """The result is right, or forward mode gives nan with a warning, because it does not depend on later uses of a norm."""
    edge = SMOOTH[name]
    result, messages = derivative_and_warnings((SECOND | FORWARD)[mode], edge)
    if mode in SECOND or not messages:
        assert not messages
        assert is_close(result, edge.second), result
    else:
        assert not np.isfinite(result).all()


@for_each("mode", [*SECOND, *FORWARD])
@for_each("name", [name for name, edge in UNDEFINED.items() if edge.second is not UNASKED])
def test_edges_undefined_second_derivative_warns(name: str, mode: str) -> None:
    edge = UNDEFINED[name]
    _, messages = derivative_and_warnings((SECOND | FORWARD)[mode], edge)
    assert any(edge.names in message for message in messages), messages


def test_edges_unused_corner_does_not_warn() -> None:
    x = np.array([[0.0, 0.0], [1.0, 2.0]])
    lengths = lambda x: np.linalg.norm(x, axis=-1)  # noqa: E731
    for f in (lambda x: lengths(x)[1], lambda x: np.sum(np.where(np.array([False, True]), lengths(x), 0.0))):
        expected = ad.hessian(lambda y: np.linalg.norm(y))(x[1])
        for how in ("hessian", "hvp", "forward over reverse", "reverse over forward"):
            result, messages = derivative_and_warnings((SECOND | FORWARD)[how], Edge(f, x, None, None))
            assert not messages, how
            np.testing.assert_allclose(result.reshape(4, 4)[2:, 2:], expected, atol=1e-12)
            assert not result.reshape(4, 4)[:2].any()


def test_edges_third_derivative_is_right_or_warns() -> None:
    """A third derivative at a corner is right, or nan with a warning."""
    x = np.array([0.0, 0.0, 3.0])
    third, messages = derivative_and_warnings(
        lambda f, x: ad.jacrev(ad.hessian(f))(x), Edge(lambda x: norm(x[:2]) ** 2 * np.sin(x[2]), x, None, None)
    )
    expected = np.zeros((3, 3, 3))
    for i in range(2):
        expected[i, i, 2] = expected[i, 2, i] = expected[2, i, i] = 2 * np.cos(3.0)
    is_finite = np.isfinite(third)
    np.testing.assert_allclose(third[is_finite], expected[is_finite], atol=1e-12)
    assert is_finite.all() or any("linalg_norm" in message for message in messages)


@for_each("power", [2, 3])
def test_edges_gradient_recorded_at_corner_replays_elsewhere(power: int) -> None:
    """Slopes determined at a corner apply only at that corner."""
    x = cg.variable([0.0, 0.0], "x")
    (g,) = ad.reverse.gradients(np.linalg.norm(x) ** power, [x])
    (output,) = cg.Executor([g]).run({x: np.array([3.0, 4.0])})
    np.testing.assert_allclose(output, power * 5.0 ** (power - 2) * np.array([3.0, 4.0]))


# ------------------------------------------------------------------------------------------------------ qr


def difference(f: Callable[[Any], Any], x: Any, step: float = 1e-5) -> Any:
    """Central differences of plain NumPy, extrapolated to remove the third-order error."""

    def columns(h: float) -> Any:
        return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in directions(x)])

    return (4 * columns(step) - columns(2 * step)) / 3


@for_each("wide", [False, True])
def test_qr_of_singular_matrix(wide: bool) -> None:
    """The other columns determine the last column of a square q, and r is smooth."""
    x = np.hstack([SINGULAR, WEIGHTS[0][:, :2]]) if wide else SINGULAR

    def f(x: Any) -> Any:
        q, r = np.linalg.qr(x)
        return np.sum(WEIGHTS[0] * q**2 + WEIGHTS[1] * q + WEIGHTS[2] * r[:, -3:] ** 2)

    expected = difference(f, x).reshape(x.shape)
    for mode in FIRST.values():
        np.testing.assert_allclose(np.reshape(mode(f, x), x.shape), expected, rtol=1e-6, atol=1e-8)
    second = difference(ad.grad(f), x).reshape(x.size, x.size)
    for other in (SECOND | FORWARD).values():
        np.testing.assert_allclose(np.reshape(other(f, x), second.shape), second, rtol=1e-6, atol=1e-7)


def test_qr_r_of_singular_matrix() -> None:
    f = lambda x: np.sum(WEIGHTS[0] * np.linalg.qr(x, mode="r") ** 2)  # noqa: E731
    expected = difference(f, SINGULAR).reshape(3, 3)
    np.testing.assert_allclose(ad.grad(f)(SINGULAR), expected, rtol=1e-6, atol=1e-8)
    second = difference(ad.grad(f), SINGULAR).reshape(9, 9)
    np.testing.assert_allclose(ad.hessian(f)(SINGULAR).reshape(9, 9), second, rtol=1e-6, atol=1e-7)


@for_each("corner", [lambda x: np.maximum(x, 0.0), np.abs])
def test_edges_chain_of_corners_has_linear_cost(corner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search from a corner to its cotangent visits at most `MAX_DISTANCE` of the later corners."""
    monkeypatch.setattr(corner_slopes, "MAX_DISTANCE", 16)

    def chain(n: int) -> Callable[[], object]:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = corner(x * 1.01)
            return np.sum(x * x)

        return lambda: ad.hvp(f)(np.array([0.0, 0.3]), np.ones(2))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b, c = (calls(chain(n)) for n in (40, 80, 160))
    assert c - b < 2.2 * (b - a)


@pytest.mark.parametrize("function", [np.median, lambda x, **options: np.percentile(x, 30.0, **options), np.nanmedian])
def test_overwrite_input_is_ignored(function: Any) -> None:
    x = np.array([3.0, 1.0, 2.0, 7.0])
    gradient = ad.grad(lambda x: function(x * x, overwrite_input=True) + x[0])(x)
    np.testing.assert_allclose(gradient, ad.grad(lambda x: function(x * x) + x[0])(x))
