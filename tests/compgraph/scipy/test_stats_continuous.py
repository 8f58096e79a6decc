"""Every method of every continuous distribution of SciPy's, by its argument, location, scale and shape parameters."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import autodiff as ad
from tests.support.distributions import INTEGRATED, LAWS, NUMBERS, SOLVED, UNKNOWN
from tests.support.failures import Failures
from tests.support.for_each import for_each, sampled
from tests.support.scipy_checks import checked, checked_briefly

LOC, SCALE = 0.3, 8.0
LEVELS = np.array([0.31, 0.45, 0.71])
OF_X = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf")
OF_Q = ("ppf", "isf")


def test_continuous_distributions_are_all_tested() -> None:
    assert {name for name in st.__all__ if isinstance(getattr(st, name), st.rv_continuous)} == LAWS.keys()


def differentiable_shapes(name: str, method: str) -> list[int]:
    """The shape parameters with a known derivative."""
    if name in (INTEGRATED if method in OF_X[2:] else SOLVED if method in OF_Q else ()):
        return []
    return [k for k in range(len(LAWS[name])) if k not in UNKNOWN.get(name, ())]


def point(name: str, method: str) -> Any:
    return LEVELS if method in OF_Q else LOC + SCALE * getattr(st, name).ppf(LEVELS, *LAWS[name])


def method_of(name: str, method: str) -> Any:
    """A method as a function of its argument, location, scale, and the shape parameters with a known derivative."""
    function, places = getattr(getattr(st, name), method), differentiable_shapes(name, method)

    def call(x: Any, loc: Any, scale: Any, *shape_values: Any) -> Any:
        shapes: list[Any] = list(LAWS[name])
        for place, shape in zip(places, shape_values, strict=True):
            shapes[place] = shape
        return function(x, *shapes, loc=loc, scale=scale)

    return call


GROUPS = {"densities": OF_X[:2], "distribution functions": OF_X[2:], "quantiles": OF_Q}
REGULAR = [name for name in LAWS if name not in NUMBERS]
IN_FULL = REGULAR[::8]  # whose distribution functions and quantiles are checked to second order in every run


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["", "every method"])
@pytest.mark.parametrize("name", REGULAR)
def test_continuous_distributions_derivatives(name: str, every: bool) -> None:
    """Densities to second order; distribution functions and quantiles too of some laws, and to first order of the others."""
    with Failures(name) as failures:
        for group, methods in GROUPS.items():
            check = checked if every or group == "densities" or name in IN_FULL else checked_briefly
            arguments = (point(name, methods[0]), LOC, SCALE, *[LAWS[name][k] for k in differentiable_shapes(name, methods[0])])
            functions = [method_of(name, method) for method in methods]
            # SciPy searches for the quantiles of norminvgauss among integrals, so that differences are rough.
            calls = functions if name == "norminvgauss" else [in_a_tuple(functions)]
            for function in calls:
                with failures.case(group):
                    warnings.simplefilter("ignore")  # of integrals in float32
                    check(function, arguments)


def in_a_tuple(functions: list[Any]) -> Any:
    return lambda *at: tuple([f(*at) for f in functions])


@sampled
@for_each("method", ["cdf", "sf", "ppf", "isf"])
@for_each("name", sorted(NUMBERS - {"levy_stable"}))
def test_rv_continuous_numeric_density_has_first_derivative_only(name: str, method: str) -> None:
    function = lambda x: getattr(getattr(st, name), method)(x, *LAWS[name], LOC, SCALE)  # noqa: E731
    x = point(name, method)
    step = 1e-4 * (1 if method in OF_Q else SCALE)
    expected = (function(x + step) - function(x - step)) / (2 * step)
    np.testing.assert_allclose(ad.grad(lambda x: np.sum(function(x)))(x), expected, rtol=1e-4)
    with pytest.raises(TypeError, match="density has no formula"):
        ad.grad(lambda x: np.sum(ad.grad(lambda x: np.sum(function(x)))(x)))(x)


@for_each("name", sorted(NUMBERS))
def test_rv_continuous_numeric_density_raises(name: str) -> None:
    with pytest.raises(TypeError, match="density has no formula"):
        ad.grad(lambda x: np.sum(getattr(st, name).pdf(x, *LAWS[name], LOC, SCALE)))(point(name, "pdf"))


@for_each(
    ("name", "method"),
    [(name, method) for name in sorted(SOLVED) for method in ("cdf", "ppf") if not differentiable_shapes(name, method)],
)
def test_rv_continuous_solved_shape_raises(name: str, method: str) -> None:
    function, x = getattr(getattr(st, name), method), getattr(st, name).ppf(0.4, *LAWS[name]) if method == "cdf" else 0.4
    with pytest.raises(TypeError, match="no derivative"):
        ad.grad(lambda shape: function(x, *LAWS[name][:-1], shape))(LAWS[name][-1])


@for_each("group", GROUPS)
@for_each(
    ("name", "shapes"),
    [
        ("genpareto", (0.0,)),
        ("genpareto", (-0.3,)),
        ("genextreme", (0.0,)),
        ("genextreme", (0.2,)),
        ("kappa4", (0.3, 0.0)),
        ("kappa4", (-0.3, 0.2)),
        ("skewnorm", (0.0,)),
        ("tukeylambda", (0.0,)),
        ("pearson3", (-0.7,)),
        ("truncnorm", (-3.0, 0.4)),
        ("truncnorm", (0.4, 9.0)),
        ("t", (300.0,)),
    ],
)
def test_rv_continuous_special_shapes_match_differences(name: str, shapes: Any, group: str) -> None:
    x = LEVELS if group == "quantiles" else getattr(st, name).ppf(LEVELS, *shapes)
    checked(in_a_tuple([getattr(getattr(st, name), method) for method in GROUPS[group]]), (x, *shapes))


def test_noncentrality_of_zero_is_limit_of_domain() -> None:
    for method in ("pdf", "logpdf", "cdf", "sf", "ppf", "isf"):
        function = partial(getattr(st.ncx2, method), 0.7, 3.0)
        assert ad.grad(function)(0.0) == pytest.approx((function(1e-6) - function(0.0)) / 1e-6, rel=1e-5)


def test_skewness_of_zero_raises() -> None:
    with pytest.raises(TypeError, match="normal distribution"):
        ad.grad(lambda skew: st.pearson3.logpdf(0.4, skew))(0.0)
    assert ad.grad(lambda x: st.pearson3.logpdf(x, 0.0))(0.4) == pytest.approx(-0.4)


@for_each("method", [*OF_X, *OF_Q])
def test_continuous_distributions_outside_support_or_domain(method: str) -> None:
    """The value is SciPy's, the derivative 0; a wrong parameter returns nan without a derivative."""
    x = np.array([-1.0, 0.0, 0.2, 0.6, 1.0, 3.0])
    function = lambda x, a: getattr(st.beta, method)(x, a, 3.0)  # noqa: E731
    a = np.array([2.0, 2.0, -1.0, 2.0, 2.0, 2.0])
    value, (of_x, of_a) = ad.value_and_grad(
        lambda x, a: (lambda v: np.sum(np.where(np.isfinite(v), v, 0)))(function(x, a)), (0, 1)
    )(x, a)
    expected = function(x, a)
    assert value == pytest.approx(np.sum(expected[np.isfinite(expected)]))
    assert np.all(np.isfinite([of_x, of_a]))
    assert np.all(np.array([of_x[3], of_a[3]]) != 0)
    assert of_x[0] == of_x[2] == of_x[5] == of_a[0] == of_a[2] == of_a[5] == 0
    with np.errstate(all="ignore"):
        values = [np.asarray(v) for v in [output_for_nodes(function, x, a), expected]]
    np.testing.assert_array_equal(np.isnan(values[0]), np.isnan(values[1]))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-14)


def output_for_nodes(function: Any, *arguments: Any) -> Any:
    """The result of a function for nodes."""
    values: list[Any] = []

    def value_of(*inputs: Any) -> Any:
        result = function(*inputs)
        values.append(result.value)
        return np.sum(inputs[0]) + 0 * np.sum(np.where(np.isfinite(result), result, 0))

    ad.grad(value_of)(*arguments)
    return values[0]


FORMS = {
    "broadcast": lambda x, s: st.gamma.logpdf(x[:, None] ** 2, np.exp(s), scale=2.0),
    "lists": lambda x, s: st.norm.logpdf([x[0], 1.0, s[1]], [0.0, s[0], 1], 2),
    "nothing": lambda x, s: st.norm.pdf(x[:0], s[0]),
    "a number": lambda x, s: st.norm.cdf(x[0], s[1], 2),
    "frozen": lambda x, s: st.gamma(np.exp(s[0]), scale=np.exp(s[1])).logpdf(x**2),
    "frozen of plain ones": lambda x, s: st.gamma(1.5, loc=-0.2, scale=2.0).cdf(x**2) * s[0],
    "frozen by loc": lambda x, s: st.norm(loc=s[0], scale=np.exp(s[1])).sf([0.3, 0.4]),
    "frozen quantiles": lambda x, s: st.norm(s[0], 1.5).interval(0.9)[1] + st.norm(s[1], 2).median(),
    "of counts": lambda x, s: st.expon.logpdf(np.array([1, 2, 3]), scale=np.exp(s[0])) * x[0],
    "a histogram": lambda x, s: st.rv_histogram(np.histogram([1, 2, 2, 3, 3, 3], bins=4)).cdf(2 + 0.1 * x) + s[0],
    "negative likelihood": lambda x, s: st.norm.nnlf((s[0], np.exp(s[1])), x),
    "of shapes": lambda x, s: st.gamma.nnlf((np.exp(s[0]), -9.0, np.exp(s[1])), x),
    "its support": lambda x, s: np.stack(st.uniform.support(s[0], np.exp(s[1]))) * x[0],
}


@for_each("name", FORMS)
def test_continuous_distributions_argument_forms(name: str) -> None:
    checked(FORMS[name], (np.array([0.4, 1.3, -0.7]), np.array([0.5, 0.3])))


class Triangle(st.rv_continuous):
    """A distribution of a user's: the density rises to `top` from 0 to 1."""

    def _pdf(self, x: Any, top: Any) -> Any:
        return 1 + (top - 1) * (2 * x - 1)


triangle = Triangle(a=0, b=1, name="triangle")


def test_rv_continuous_subclass_of_user() -> None:
    checked(triangle.logpdf, (np.array([0.2, 0.7]), 1.4))
    checked(lambda x: triangle.cdf(x, 1.4), (np.array([0.2, 0.7]),))
    checked(lambda q, loc: triangle.ppf(q, 1.4, loc), (np.array([0.2, 0.7]), 0.3), tolerance=2e-5)
    with pytest.raises(TypeError, match="shape parameters"):
        ad.grad(lambda top: triangle.cdf(0.3, top))(1.4)


MOMENTS = "norm expon uniform gamma beta lognorm t chi2 f weibull_min pareto logistic laplace gumbel_r rayleigh triang invgamma"


@for_each("method", ["mean", "var", "std", "entropy"])
@for_each("name", MOMENTS.split())
def test_continuous_distributions_moments(name: str, method: str) -> None:
    shapes = {"f": (12.0, 18.0), "t": (6.5,)}.get(name, LAWS[name])
    function = getattr(getattr(st, name), method)
    checked(lambda loc, scale, *shapes: function(*shapes, loc=loc, scale=scale) + 0 * loc, (0.3, 2.0, *shapes))


def test_continuous_distributions_higher_moments() -> None:
    checked(lambda a, s: st.gamma.stats(a, scale=s, moments="mvsk")[0:2], (2.0, 1.5))
    checked(lambda a: st.gamma.stats(a, moments="sk"), (2.0,))
    for order in (1, 2, 3, 4, 5):
        checked(lambda a, loc, s, order=order: st.gamma.moment(order, a, loc, s), (2.0, 0.3, 1.5))
    checked(lambda loc, s: st.norm(loc, s).mean() * st.norm(loc, s).std(), (0.3, 1.5))


def test_rvs_match_scipy() -> None:
    draw = lambda loc, scale: st.norm.rvs(loc, scale, size=(4, 3), random_state=1)  # noqa: E731
    checked(draw, (0.3, 2.0))
    checked(lambda loc: st.gamma.rvs(2.0, loc, random_state=np.random.default_rng(2)), (np.array([0.3, 1.0]),))
    checked(lambda loc, s: st.vonmises.rvs(2.0, loc, 1.0, size=3, random_state=1) * s, (0.3, 1.0))
    with pytest.raises(TypeError, match="only with respect to loc and scale"):
        ad.grad(lambda a: np.sum(st.gamma.rvs(a, size=3)))(2.0)
    with pytest.raises(ValueError, match="positive"):
        ad.grad(lambda s: np.sum(st.norm.rvs(0, s, size=3)))(-2.0)


@for_each("method", [*OF_X, *OF_Q])
def test_continuous_distributions_jacobians_agree(method: str) -> None:
    x = LEVELS if method in OF_Q else np.array([0.5, 1.5, -1.0])
    function = lambda x: getattr(st.gamma, method)(x, 2.5, scale=1.5)  # noqa: E731
    if method.startswith("log"):
        x = np.abs(x)
    np.testing.assert_allclose(ad.jacobian(function)(x), ad.jacfwd(function)(x), rtol=1e-10, atol=1e-13)
    of_shape = lambda a: getattr(st.gamma, method)(np.abs(x), a)  # noqa: E731
    np.testing.assert_allclose(ad.jacobian(of_shape)(2.5), ad.jacfwd(of_shape)(2.5), rtol=1e-10, atol=1e-13)
    total = lambda a: np.sum(of_shape(a))  # noqa: E731
    np.testing.assert_allclose(ad.hessian(total)(2.5), ad.jacfwd(ad.grad(total))(2.5), rtol=1e-8)


def test_mixture_likelihood_fit() -> None:
    """A mixture, its likelihood, and a prior, as people write them."""
    data = np.array([0.1, 0.4, 2.2, 2.6, 2.9, -0.3])

    def loss(means: Any, logs: Any, share: Any) -> Any:
        one = st.norm.pdf(data, means[0], np.exp(logs[0]))
        two = st.norm(means[1], np.exp(logs[1])).pdf(data)
        prior = np.sum(st.norm.logpdf(means, scale=5.0)) + st.beta(2, 2).logpdf(share)
        return -np.sum(np.log(share * one + (1 - share) * two)) - prior

    checked(loss, (np.array([0.1, 2.5]), np.array([-0.5, -0.7]), 0.4))
