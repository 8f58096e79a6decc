"""Operations lowered to compositions of others are compiled, and agree with NumPy in value and gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import autodiff as ad
import compgraph as cg
from autodiff.numeric import gradient as numeric_gradient
from tests.support.for_each import for_each, sampled
from tests.support.jitting import compiled, is_compiled

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
X = RNG.standard_normal((5, 6))
WIDE = RNG.standard_normal((40, 70))
STACK = RNG.standard_normal((3, 5, 6))
ROW = RNG.standard_normal(6)
MASK = X > -0.3
MASK[:, 0] = [True, False, False, True, True]
CLASSES = np.array([1, 0, 2, 3, 5])
HOLES = np.where(RNG.random((5, 6)) < 0.3, np.nan, X)
HOLES[0] = X[0]
SPECIAL = X.copy()
SPECIAL[1, :4] = [np.nan, np.inf, -np.inf, -0.0]


def _einsum(text: str, *others: Array) -> Callable[[Any], Any]:
    return lambda x: np.einsum(text, x, *others)


CASES: dict[str, tuple[Callable[[Any], Any], Array]] = {
    "clip": (lambda x: np.clip(x, -0.5, 0.7), X),
    "clip-below": (lambda x: np.clip(x, 0.1, None), X),
    "clip-above": (lambda x: x.clip(None, 0.1), X),
    "clip-arrays": (lambda x: np.clip(x, ROW - 1, np.abs(x[:, :1])), X),
    "clip-crossed": (lambda x: np.clip(x, 1.0, -1.0) * x, X),
    "clip-wider": (lambda x: np.clip(x[0], X - 0.1, STACK), X),
    "clip-scalar": (lambda x: np.clip(x[1, 2], 0.0, x[0, 0]), X),
    "clip-special": (lambda x: np.clip(x, -0.5, 0.7), SPECIAL),
    "clip-nan": (lambda x: np.clip(x, np.nan, 0.7), X),
    "gamma": (lambda x: scipy.special.gamma(x * x + 0.2), X),
    "gamma of negative operands": (lambda x: scipy.special.gamma(-np.abs(np.sin(x)) - 0.01), X),
    "erfinv": (lambda x: scipy.special.erfinv(0.9 * np.sin(x)), X),
    "erfcinv": (lambda x: scipy.special.erfcinv(np.exp(-np.abs(x) - 0.1)), X),
    "ndtri": (lambda x: scipy.special.ndtri(0.5 + 0.49 * np.sin(2 * x)), X),
    "rel_entr": (lambda x: scipy.special.rel_entr(np.abs(x), x * x + 0.1), X),
    "kl_div": (lambda x: scipy.special.kl_div(np.abs(x), 0.7), X),
    "beta": (lambda x: scipy.special.beta(np.abs(x) + 0.1, x * x + 1), X),
    "beta of large operands": (lambda x: scipy.special.beta(10 + x * x, 1), X),
    "betaln": (lambda x: scipy.special.betaln(np.exp(4 * x), np.exp(-x)), X),
    "betaln with a number": (lambda x: scipy.special.betaln(2.5, np.abs(x) * 20 + 0.1), X),
    "xlogy": (lambda x: scipy.special.xlogy(np.abs(x), x * x + 0.1), X),
    "xlog1py": (lambda x: scipy.special.xlog1py(np.abs(x), x * x - 0.1), X),
    "xlog1py-zero": (lambda x: scipy.special.xlog1py(np.where(x > 0, x, 0), np.where(x > 0, x, -1)), X),
    "log_expit": (lambda x: scipy.special.log_expit(3 * x), X),
    "logit": (lambda x: scipy.special.logit(np.exp(-x * x)), X),
    "entr": (lambda x: scipy.special.entr(x * x), X),
    "ndtr": (lambda x: scipy.special.ndtr(2 * x) * x, X),
    "log_ndtr": (lambda x: scipy.special.log_ndtr(4 * x) * x, X),
    "gammaln": (lambda x: scipy.special.gammaln(4 * x * x) + scipy.special.gammaln(-x * x), X),
    "psi": (lambda x: scipy.special.psi(4 * x * x) + scipy.special.digamma(-x * x), X),
    "round": (lambda x: np.round(x, 1) * x + np.round(x, -1) + np.round(x), 7 * WIDE),
    "nan_to_num": (lambda x: np.nan_to_num(x) * 1e-300, SPECIAL),
    "nan_to_num-of": (lambda x: np.nan_to_num(x, nan=2.0, posinf=3, neginf=-4.0), SPECIAL),
    "sum-where": (lambda x: np.sum(x, where=MASK, axis=0), X),
    "sum-where-node": (lambda x: np.sum(x, where=x > 0), WIDE),
    "sum-where-broadcast": (lambda x: np.sum(x * x, where=MASK[:, :1], axis=1, keepdims=True, initial=2.0), X),
    "sum-initial": (lambda x: np.sum(x, initial=2.0, axis=1), X),
    "prod-where": (lambda x: np.prod(x, where=MASK, axis=1), X),
    "mean-where": (lambda x: np.mean(x, where=MASK, axis=0), X),
    "mean-where-node": (
        lambda x: np.mean(x * x, where=x > x[:1], axis=1, keepdims=True),
        X[[1, 0, 2, 3, 4]][:, :] - 5 * np.eye(5, 6),
    ),
    "max-initial": (lambda x: np.max(x, initial=0.5, axis=0), X),
    "max-where": (lambda x: np.max(x, initial=-0.1, where=MASK, axis=0), X),
    "min-where": (lambda x: np.min(x, initial=0.1, where=MASK), X),
    "max-special": (lambda x: np.max(x, initial=-0.1, where=MASK, axis=1), SPECIAL),
    "nansum": (lambda x: np.nansum(x, axis=0), HOLES),
    "nansum-all": (np.nansum, np.full((4, 3), np.nan)),
    "nanprod": (lambda x: np.nanprod(x, axis=1), HOLES),
    "nanmean": (lambda x: np.nanmean(x, axis=0), HOLES),
    "nanmax": (lambda x: np.nanmax(x, axis=0), HOLES),
    "nanmin": (lambda x: np.nanmin(x, keepdims=True), HOLES),
    "nanmax-infinite": (lambda x: np.nanmax(x, axis=1), SPECIAL),
    "nanvar": (lambda x: np.nanvar(x, axis=0), HOLES),
    "nanstd": (lambda x: np.nanstd(x, axis=1, ddof=1), HOLES),
    "inner": (lambda x: np.inner(x, STACK), X),
    "inner-vector": (lambda x: np.inner(x, ROW), X),
    "inner-scalar": (lambda x: np.inner(x, 2.0), X),
    "vdot": (lambda x: np.vdot(x, x * X), X),
    "vdot-shapes": (lambda x: np.vdot(x.T, X.reshape(3, 10)), X),
    "vecdot": (lambda x: np.vecdot(x, STACK), X),
    "matvec": (lambda x: np.matvec(STACK, x[:3]), RNG.standard_normal((3, 6))),
    "vecmat": (lambda x: np.vecmat(x[:, 0], STACK), X),
    "dot": (lambda x: (np.dot(x, STACK.swapaxes(1, 2)), np.dot(STACK, x.T), np.dot(STACK, x[0]), np.dot(x[:, 0], STACK)), X),
    "average": (lambda x: np.average(x, axis=0, weights=np.arange(1.0, 6.0)), X),
    "matrix-transpose": (lambda x: np.matrix_transpose(x) * 2.0, STACK),
    "multiply-dtype": (lambda x: np.multiply(x, CLASSES[:, None], dtype=x.dtype), X),
    "tensordot": (lambda x: np.tensordot(x, STACK, ([0, 1], [1, 2])), X),
    "tensordot-one": (lambda x: np.tensordot(x, STACK, ([1], [2])), X),
    "tensordot-number": (lambda x: np.tensordot(STACK, x.T, 1), X),
    "tensordot-outer": (lambda x: np.tensordot(x, ROW, 0), X),
    "tensordot-negative": (lambda x: np.tensordot(x, STACK, (-1, -1)), X),
    "einsum-product": (_einsum("ij,kj->ik", WIDE), WIDE),
    "einsum-transposed": (_einsum("ij,jk->ki", WIDE.T), WIDE),
    "einsum-implicit": (_einsum("ij,jk", X.T), X),
    "einsum-implicit-sum": (_einsum("ij,ij", X), X),
    "einsum-stack": (_einsum("bij,bkj->bik", STACK), STACK),
    "einsum-stack-inside": (_einsum("ibj,jbk->bik", RNG.standard_normal((6, 5, 2))), STACK),
    "einsum-several": (_einsum("abij,jbk->iak", RNG.standard_normal((4, 3, 2))), RNG.standard_normal((2, 3, 5, 4))),
    "einsum-trace": (lambda x: np.einsum("ii->", x[:, :5]), X),
    "einsum-diagonal": (lambda x: np.einsum("ii->i", x[:, 1:]) * 2, X),
    "einsum-diagonals": (lambda x: np.einsum("ii,ij->j", x[:, 1:], X), X),
    "einsum-view": (lambda x: np.einsum("ij->ji", x), X),
    "einsum-sums": (lambda x: (np.einsum("ij->j", x), np.einsum("ij->", x), np.einsum("ij,kl->il", x, X)), X),
    "einsum-outer": (lambda x: np.einsum("i,j->ij", x[0], x[1]), X),
    "einsum-three": (lambda x: np.einsum("ij,jk,kl->il", x, x.T, x), X),
    "einsum-ellipsis": (lambda x: np.einsum("...j,...j->...", STACK, x), X),
    "einsum-ellipsis-in": (lambda x: np.einsum("i...,...i", x.T, STACK), X),
    "einsum-ellipsis-both": (lambda x: np.einsum("...ij,...kj->...ik", STACK, x), X),
    "einsum-ones": (lambda x: np.einsum("ij,ij->ij", x, X[:1]), X),
    "einsum-ones-summed": (lambda x: np.einsum("ij,jk->ik", x, X[:1]), X),
    "norm": (np.linalg.norm, X),
    "norm-axis": (lambda x: np.linalg.norm(x, axis=1, keepdims=True), WIDE),
    "norm-axes": (lambda x: np.linalg.norm(x, axis=(0, 2)), STACK),
    "norm-frobenius": (lambda x: np.linalg.norm(x, "fro"), X),
    "norm-orders": (lambda x: [np.linalg.norm(x, order, axis=0) for order in (1, 2, np.inf, -np.inf)], X),
    "norm-vector": (lambda x: [np.linalg.norm(x[0], order) for order in (1, np.inf)], X),
    "vector_norm": (lambda x: np.linalg.vector_norm(x, axis=1), X),
    "matrix_norm": (np.linalg.matrix_norm, X),
    "cross-entropy": (lambda x: cg.softmax_cross_entropy(x, CLASSES), X),
    "cross-entropy-axes": (lambda x: cg.softmax_cross_entropy(x, CLASSES.astype(np.int8)[None]), X[None]),
    "logsumexp": (lambda x: (cg.logsumexp(x), cg.logsumexp(x * 1e3, axis=1), cg.logsumexp(x, axis=0, keepdims=True)), X),
    "cumulative": (lambda x: (np.cumulative_sum(x, axis=1), np.cumulative_prod(x, axis=0)), X),
}


def _weight_outputs(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function whose derivative contains all elements of the derivative of `f`."""

    def total(x: Any) -> Any:
        output = f(x)
        parts = output if isinstance(output, (tuple, list)) else [output]
        return sum(np.sum(part * np.cos(np.arange(np.size(part), dtype=part.dtype)).reshape(np.shape(part))) for part in parts)

    return total


def check_values_and_gradient(f: Callable[..., Any], *args: Any, rtol: float = 1e-9) -> Any:
    """Compile a function without NumPy calls, and compare its results with NumPy."""
    jitted = compiled(f, *args)
    assert is_compiled(jitted), jitted.report()
    assert "NumPy call" not in jitted.report(), jitted.report()
    with np.errstate(all="ignore"):
        output, expected = jitted(*args), f(*args)
    one, two = ([r] if not isinstance(r, (tuple, list)) else r for r in (output, expected))
    for a, b in zip(one, two, strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * 1e-2)
    return jitted


def check_value(name: str) -> None:
    f, x = CASES[name]
    check_values_and_gradient(f, x)


def check_gradient(name: str) -> None:
    f, x = CASES[name]
    check_values_and_gradient(ad.grad(_weight_outputs(f)), x, rtol=1e-8)


def check_single_precision(name: str) -> None:
    f, x = CASES[name]
    check_values_and_gradient(f, x.astype(np.float32), rtol=2e-4)


CHECKS = [(check, name) for name in CASES for check in (check_value, check_gradient, check_single_precision)]
CHECKS = [(check, name) for check, name in CHECKS if "nan_to_num" not in name or check is not check_single_precision]
# The gradient of each form, and its value in double or in single precision.
SAMPLE = [(check_gradient, name) for name in CASES]
SAMPLE += [(check_single_precision if k % 2 and "nan_to_num" not in name else check_value, name) for k, name in enumerate(CASES)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@for_each(("check", "name"), SAMPLE, rest=[case for case in CHECKS if case not in SAMPLE])
def test_form_matches_numpy(check: Callable[[str], None], name: str) -> None:
    check(name)


def test_logarithm_of_beta_function_error_is_few_units_in_last_place() -> None:
    mp, rng = pytest.importorskip("mpmath").mp, np.random.default_rng(6)
    a, b = np.exp(rng.uniform(-6, 12, (2, 200)))
    with mp.workprec(200):
        for x, y, value in zip(a, b, compiled(scipy.special.betaln, a, b)(a, b), strict=True):
            expected = mp.log(mp.beta(mp.mpf(float(x)), mp.mpf(float(y))))
            assert abs(mp.mpf(float(value)) - expected) <= 6 * np.spacing(max(1.0, abs(float(expected)))), (x, y, value)


@for_each("function", [scipy.special.rel_entr, scipy.special.kl_div, scipy.special.beta, scipy.special.betaln])
@for_each("dtype", [np.float64, np.float32])
def test_special_function_of_two_operands_matches_scipy(function: Any, dtype: Any) -> None:
    """Random operands of all sizes, and special ones, for which SciPy may be called. Its sums of large logarithms cancel."""
    rng, error = np.random.default_rng(4), 2e-5 if dtype == np.float32 else 1e-10 if "beta" in str(function) else 1e-13
    jitted = compiled(function, *np.ones((2, 300), dtype))
    assert "NumPy call" not in jitted.report(), jitted.report()
    special = [0.0, -0.0, 1.0, -1.0, -2.5, np.nan, np.inf, 1e30, 1e-30, 0.5, 171.0, 2.0, 1e5]
    for k in range(4):
        x, y = np.exp(rng.uniform(-4, 4 if k % 2 else 7, (2, 300))).astype(dtype)
        y[:50] = x[:50] * (1 + 1e-3 * rng.standard_normal(50))
        if k > 1:
            x[100:], y[100:] = rng.choice(special, (2, 200)).astype(dtype)
        with np.errstate(all="ignore"):
            value, expected = jitted(x, y), function(x, y)
        assert value.dtype == expected.dtype
        is_small = np.abs(expected) < 1e-290 if dtype == np.float64 else np.abs(expected) < 1e-30
        np.testing.assert_allclose(np.where(is_small, 0, value), np.where(is_small, 0, expected), rtol=error, atol=error * 1e-2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.clip(x, 1, 3),
        lambda x: np.clip(x, 0.5, None),
        lambda x: np.sum(x, where=x > 1, axis=0),
        lambda x: np.max(x, initial=2, axis=1),
        lambda x: np.nansum(x, axis=1),
        lambda x: np.nanmax(x, axis=1),
        lambda x: np.nanprod(x),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_form_of_integers_matches_numpy(f: Callable[[Any], Any], dtype: Any) -> None:
    check_values_and_gradient(f, np.arange(-3, 9).reshape(3, 4).astype(dtype))


@sampled
@for_each("shape", [(40, 3), (3, 40), (9, 5, 4), (20, 1), (8, 16), (9, 17)])
@for_each("dtype", [np.float64, np.float32, np.int32, np.int64])
def test_search_along_short_axis_matches_numpy(shape: tuple[int, ...], dtype: Any) -> None:
    x = (RNG.integers(-3, 4, shape) / (2 if np.dtype(dtype).kind == "f" else 1)).astype(dtype)

    def f(x: Any) -> Any:
        along = [g(x, axis=axis) for g in (np.argmax, np.argmin) for axis in range(x.ndim)]
        return (*along, np.argmax(x, axis=-1, keepdims=True), np.argmin(x))

    jitted = check_values_and_gradient(f, x)
    if np.dtype(dtype).kind == "f":
        x.ravel()[::3] = np.nan
        x.ravel()[1::5] = np.inf
        for a, b in zip(jitted(x), f(x), strict=True):
            np.testing.assert_array_equal(a, b)


# --------------------------------------------------------------------------------------------- NumPy calls


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.clip(x, 0, 1),
        lambda x: np.sum(x, where=x > 0),
        lambda x: np.sum(x, axis=0, initial=3.0),
        lambda x: np.nansum(x, axis=1),
        lambda x: np.einsum("ij,kj->ik", x, x),
        lambda x: np.einsum("ij->", x),
        lambda x: np.tensordot(x, x, ([1], [1])),
        lambda x: np.tensordot(x.T, x, 1),
        lambda x: np.inner(x, x),
        lambda x: np.linalg.norm(x, axis=1),
        lambda x: np.vdot(x, x),
    ],
)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)], ids=str)
def test_form_of_empty_sum_matches_numpy(f: Callable[[Any], Any], shape: tuple[int, int]) -> None:
    x = np.ones(shape)
    np.testing.assert_array_equal(compiled(f, x)(x), f(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.clip(x, 0.0, 1.0),
        lambda x: np.sum(x, where=x > 0),
        lambda x: np.nansum(x) + np.nanmax(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.inner(x, x) + np.vdot(x, 2.0) + np.tensordot(x, x, 0) + np.einsum(",", x, x),
        lambda x: np.round(x, 2),
    ],
)
def test_form_of_one_number_matches_numpy(f: Callable[[Any], Any]) -> None:
    for x in (np.array(0.512), np.float64(-2.0)):
        result, expected = compiled(f, x)(x), f(x)
        assert type(result) is type(expected)
        np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value")  # given too
@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.nanmean(x, axis=1), "Mean of empty slice"),
        (lambda x: np.nanmax(x, axis=1), "All-NaN"),
        (lambda x: np.nanmin(x, axis=1), "All-NaN"),
        (lambda x: np.nanvar(x, axis=1), "Degrees of freedom"),
        (lambda x: np.nanstd(x, axis=1, ddof=1), "Degrees of freedom"),
        (lambda x: np.mean(x, axis=1, where=x == 0), "Mean of empty slice"),
    ],
)
def test_form_of_empty_slice_warns(f: Callable[[Any], Any], words: str) -> None:
    x = RNG.standard_normal((3, 4))
    jitted = compiled(f, x * 0)
    bad = x.copy()
    bad[1] = np.nan
    with pytest.warns(RuntimeWarning, match=words):
        result = jitted(bad)
    with pytest.warns(RuntimeWarning, match=words):
        expected = f(bad)
    np.testing.assert_allclose(result, expected)


def test_form_with_ignored_warnings_matches_numpy() -> None:
    x = np.array([[np.nan] * 4, [np.nan] * 3 + [2.0], [1.0, np.inf, -np.inf, 0.0], [1.0, np.nan, 3.0, np.nan]])
    for f in (np.nanmean, np.nanmax, np.nanmin, np.nanvar, lambda a, axis: np.nanstd(a, axis=axis, ddof=1)):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(compiled(lambda a, f=f: f(a, axis=1), np.ones((4, 4)))(x), f(x, axis=1))


def test_cross_entropy_class_out_of_range_raises() -> None:
    jitted = check_values_and_gradient(cg.softmax_cross_entropy, X, CLASSES)
    for wrong in (-1, 6):
        labels = CLASSES.copy()
        labels[2] = wrong
        with pytest.raises(ValueError, match="from 0 to 5"):
            jitted(X, labels)
    check_values_and_gradient(ad.grad(cg.softmax_cross_entropy), X, CLASSES.astype(np.uint8))


def test_form_result_may_be_written() -> None:
    def f(x: Any) -> Any:
        a, b, c = np.einsum("ij,kj->ki", x, x), np.clip(x, -1, 1), np.tensordot(x, x, ([1], [1]))
        before = a * 2.0
        a[0] = c[1]
        b[:, 1] = a[2, 3]
        c += before
        return a, b, c, before, np.linalg.norm(b, axis=0)

    check_values_and_gradient(f, X)


def test_form_operands_written_later() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        shown = np.einsum("ij->ji", y) * 1.0
        first, second = np.einsum("ij,kj->ik", y, X), np.clip(y, -0.1, 0.1)
        y[1] = 7.0
        return shown, first, second, np.inner(y, X), np.nansum(y, axis=0)

    x = X.copy()
    jitted = compiled(f, x)
    for a, b in zip(jitted(x), f(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("name", ["clip", "sum-where", "nanmean", "einsum-product", "norm", "vdot", "round", "max-where"])
def test_form_exact_mode_has_bits_of_numpy(name: str) -> None:
    f, x = CASES[name]
    result, expected = cg.jit(f, exact=True).compile(x)(x), f(x)
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "f",
    [
        _einsum("ij,ij->ij", np.ones((1, 3))),
        _einsum("ij,kl->jl", np.ones((1, 3))),
        _einsum("ij->j"),
        _einsum("ij->ji"),
        lambda x: np.tensordot(x, x + 1.0, 0),
        lambda x: np.vecdot(x.T, np.ones((3, 1))),
    ],
)
def test_form_sum_of_one_product_has_zero_of_numpy(f: Callable[[Any], Any]) -> None:
    jitted = compiled(lambda x: f(x) * 1.0, np.ones((1, 3)))
    assert is_compiled(jitted), jitted.report()
    zeros = np.array([[-0.0, 0.0, -0.0]])
    np.testing.assert_array_equal(np.signbit(jitted(zeros)), np.signbit(f(zeros)))


# --------------------------------------------------------------------------------------------- arrays with writes


def _diagonal_then_write(x: Any) -> Any:
    """A diagonal that is a view, so it shows the write after it."""
    z = np.zeros((4, 4))
    z[1, 2], z[0, 0] = x[0], x[1]
    diagonal = np.diag(z)
    z[2, 2] = 3 * x[2]
    return np.sum(diagonal * np.array([1.0, 2.0, 3.0, 4.0])) + z[1, 2]


def _diagonal_of_stack(x: Any) -> Any:
    z = np.zeros((2, 3, 3))
    z[0, 1, 1], z[1, 0, 1] = x[0], x[1]
    return np.sum(np.diagonal(z, 0, 1, 2) * 2.0) + np.sum(np.diagonal(z, 1, 1, 2))


def _empty_like(x: Any) -> Any:
    z = np.empty_like(x)
    z[:] = 1.0
    for i in range(1, len(x)):
        z[i] = np.tanh(z[i - 1]) * x[i]
    return np.sum(z)


def _transposed_reshape_then_write(x: Any) -> Any:
    """A reshape of a transpose that only adds an axis is a view, so it shows the write after it."""
    z = np.zeros((2, 3))
    z[0, 1] = x[0]
    column = np.reshape(z.T, (3, 1, 2))
    z[1, 2] = 3 * x[2]
    return np.sum(column * np.array([1.0, 2.0]))


def _empty_indices(x: Any) -> Any:
    """Rows of a sparse matrix, one of them without entries."""
    columns, bounds = np.array([0, 3, 2, 6, 1]), [0, 2, 2, 5]
    y = np.empty(3)
    for i in range(3):
        part = slice(bounds[i], bounds[i + 1])
        y[i] = np.sum(x[columns[part]] * (i + 1.5))
    return np.sum(y * y)


def _results(output: Any) -> tuple[Any, ...]:
    return output if isinstance(output, tuple) else (output, 0.0)


@pytest.mark.parametrize(
    "f", [_diagonal_then_write, _diagonal_of_stack, _empty_like, _transposed_reshape_then_write, _empty_indices]
)
def test_form_of_written_arrays_is_compiled(f: Callable[..., Any]) -> None:
    x = np.linspace(0.2, 0.9, 7)
    for g in (f, ad.value_and_grad(f)):
        jitted = cg.jit(g).compile(x)
        assert jitted.report().splitlines()[0].endswith("compiled by llvm"), jitted.report()
        output, expected = np.hstack(np.atleast_1d(*_results(jitted(x + 0.05)))), np.hstack(np.atleast_1d(*_results(g(x + 0.05))))
        np.testing.assert_allclose(output, expected, rtol=1e-12)


SPECIAL_FUNCTIONS = ("gammaln", "ndtr", "log_ndtr", "logit", "log_expit", "entr")


@for_each("name", SPECIAL_FUNCTIONS)
def test_special_function_derivatives_match_central_differences(name: str) -> None:
    x = np.random.default_rng(1).uniform(0.1, 0.9, 12)
    function = getattr(scipy.special, name)

    def total(x: Any) -> Any:
        return np.sum(function(x) * np.cos(np.arange(12.0)))

    def slope(x: Any) -> Any:
        return np.sum(ad.grad(total)(x) * np.sin(np.arange(12.0)))

    tangent = np.cos(x)
    gradient = check_values_and_gradient(ad.grad(total), x)(x)
    np.testing.assert_allclose(gradient, numeric_gradient(total, [x])[0], rtol=1e-6, atol=1e-8)
    forward = compiled(lambda x, t: ad.jvp(total, (x,), (t,))[1], x, tangent)(x, tangent)
    np.testing.assert_allclose(forward, np.sum(gradient * tangent), rtol=1e-11)
    second = check_values_and_gradient(ad.grad(slope), x)(x)
    np.testing.assert_allclose(second, numeric_gradient(slope, [x])[0], rtol=1e-5, atol=1e-7)
