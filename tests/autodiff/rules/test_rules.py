"""Declared rules: completeness, direct calls, wrong rules, special points."""

from __future__ import annotations

import functools
import importlib
import operator
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import DerivativeWarning, grads, numeric
from autodiff.forward import jvp
from autodiff.reverse import gradient
from autodiff.rules import (  # fmt: skip
    Rule,
    by_function,
    elementwise,
    general,
    linear,
    multilinear,
    reduction,
)
from autodiff.rules.rule import rules
from compgraph import ops
from tests.support.arguments import Case, complexes, real
from tests.support.cases import COARSE, INTERNAL
from tests.support.checks.rules import (
    CHECKS,
    Layout,
    check_value,
    close,
    in_single_precision,
    recorded,
    with_argument,
)
from tests.support.for_each import for_each
from tests.support.package_rules import RULES

pytestmark = pytest.mark.portable

Array = np.ndarray[Any, Any]

# ---------------------------------------------------------------------------------------- completeness


@pytest.fixture
def tables() -> Any:
    """The tables of cases, which are built when a test needs them."""
    return importlib.import_module("tests.support.cases.tables")


def test_rules_all_have_cases(tables: Any) -> None:
    assert {*tables.SKETCHES, *tables.COMPLEX_SKETCHES} == set(RULES) - INTERNAL - {*COARSE}


def test_rules_cover_every_smooth_function() -> None:
    smooth = {*ops.SMOOTH_FUNCTIONS, *[spec.function for spec in ops.OPERATIONS if spec.policy == "rule"]}
    smooth |= set(ops.PACKED_FUNCTIONS.values())
    opnames = {ops.opname_of(f) for f in smooth}
    assert {name for name in opnames if not name.startswith("scipy_")} <= set(RULES)  # those of SciPy: test_policies
    for opname, rule in RULES.items():
        assert rule.opname == opname
        assert callable(ops.function_by_opname(opname)), f"no function is recorded as {opname}"
        assert ops.function_by_opname(opname) not in ops.PIECEWISE


@for_each("dtype", [float, complex])
@for_each("ufunc", sorted(ops.PIECEWISE_UFUNCS, key=str), ids=lambda ufunc: ufunc.__name__)
def test_piecewise_ufunc_has_zero_slope(ufunc: np.ufunc, dtype: type) -> None:
    others: list[Any] = [np.array([1.3, -0.6, 2.2])] * ufunc.nin
    for position in range(ufunc.nin):
        function = functools.partial(with_argument, Case(ufunc.__name__, "", ufunc, tuple(others)), position)
        x = complexes(3) if dtype is complex else real(3)
        try:
            value, node = function(x), function(cg.variable(x))
        except TypeError:  # NumPy has it for integers only, or not for complex numbers
            continue
        if node.opname in RULES:
            continue  # np.sign of complex numbers is recorded as another operation
        slope = numeric.directional(function, [x], [np.ones(3)]) if value.dtype.kind in "fc" else np.zeros(3)
        close(slope, np.zeros(3), 1e-6, f"the slope of {ufunc.__name__} along operand {position}")


def test_rules_all_have_names_in_grads() -> None:
    modules = [module for name, module in sys.modules.items() if name.startswith(f"{grads.__name__}.")]
    named = {name: rule for m in modules for name, rule in vars(m).items() if isinstance(rule, Rule)}
    assert {f"{rule.opname}_grad": rule for rule in named.values()} == named
    assert {f"{opname}_grad" for opname in RULES} <= named.keys()


def test_rules_all_have_standalone_empty_and_float32_cases(tables: Any) -> None:
    """Every rule has a case in which it is checked alone, one of zero size, and one in single precision.

    Zero sizes of elementwise operations are those of tests/autodiff/rules/test_mechanisms.py.
    """
    called, empty, single = set(), set(), set()
    for case in tables.CASES:
        _, out = recorded(case)
        called.add(out.opname)
        if out.size == 0 or any(x.size == 0 for x in case.args):
            empty.add(case.opname)
        if recorded(in_single_precision(case, range(len(case.args))))[1].dtype == np.float32:
            single.add(case.opname)
    assert called >= set(tables.SKETCHES)
    sized = {opname for opname in set(tables.SKETCHES) - empty if RULES[opname].kind != "elementwise"}
    assert sized == {"softmax_cross_entropy", "sigmoid_cross_entropy"}
    # NumPy and SciPy compute these in double precision; the Kelvin functions are complex
    double = {"float_power", "interp", "bincount", "special_eval_hermite", "special_eval_hermitenorm", "special_kelvin"}
    if np.iscomplexobj(np.linalg.eigvals(np.eye(2))):  # from NumPy 2.5 on, whatever the eigenvalues
        double |= {"linalg_eig", "linalg_eigvals"}
    assert set(tables.SKETCHES) - single == double


def test_case_names_are_unique(tables: Any) -> None:
    for cases in (tables.CASES, tables.COMPLEX_CASES):
        assert len({str(c) for c in cases}) == len(cases)


class TestCalledByHand:
    x = np.array([1.0, 4.0, 4.0])

    def test_direct_call_with_numbers(self) -> None:
        node = cg.variable(np.array([1, 4, 4]))
        assert np.array_equal(grads.max_grad(1.0, cg.max(node))[0], [0, 0.5, 0.5])
        assert np.array_equal(grads.max_grad(1, cg.max(node, axis=0))[0], [0, 0.5, 0.5])
        assert np.array_equal(grads.sum_grad(1.0, cg.sum(node))[0], [1, 1, 1])
        assert np.array_equal(grads.sum_grad([1, 2], cg.sum(np.stack([node, node]), axis=1))[0], [[1, 1, 1], [2, 2, 2]])

    def test_direct_call_with_node_is_connected(self) -> None:
        """The result is connected to it."""
        w = cg.variable(3.0)
        by_x = grads.square_grad(w, np.square(cg.variable(self.x)))[0]
        assert np.array_equal(gradient(by_x, w)[w], 2 * np.sum(self.x))
        assert np.array_equal(grads.square_grad([w, 1, 2], np.square(cg.variable(self.x)))[0].value, [6, 8, 16])

    def test_direct_call_returns_own_memory(self) -> None:
        """Not a view of one number repeated."""
        cotangent = grads.positive_grad(1.0, np.positive(cg.variable(self.x)))[0]
        cotangent[0] = 7
        assert np.array_equal(cotangent, [7, 1, 1])

    @for_each("cotangent", [np.ones(2), [1.0, 2.0], np.ones((2, 3)), np.ones((1, 3)), []])
    def test_direct_call_wrong_shape_raises(self, cotangent: Any) -> None:
        message = re.escape(f"the cotangent of shape {np.shape(cotangent)} does not broadcast to the result of square")
        with pytest.raises(ValueError, match=message):
            grads.square_grad(cotangent, np.square(cg.variable(self.x)))

    @for_each(("cotangent", "message"), [(1j, "is complex"), (None, "not a NoneType"), ("one", "not a str")])
    def test_direct_call_wrong_type_raises(self, cotangent: Any, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            grads.square_grad(cotangent, np.square(cg.variable(self.x)))


# ------------------------------------------------------------------------------------------ wrong rules


@pytest.fixture
def registered() -> Iterator[None]:
    """Undo what a test declares."""
    tables: list[dict[Any, Any]] = [rules, ops.OPNAMES, ops.FUNCTIONS_BY_OPNAME]
    snapshots = [dict(table) for table in tables]
    yield
    for table, before in zip(tables, snapshots, strict=True):
        table.clear()
        table.update(before)
    by_function.clear()


def primitive(function: Callable[..., Any]) -> Any:
    """A recorded function of its own opname, whatever was declared before."""
    return cg.primitive(opname="tried")(function)


X, Y = np.array([[0.5, -1.5, 2.0], [1.0, 0.3, -0.7]]), np.array([1.5, -0.5, 0.8])


def wrong_sine(formula: Any) -> Case:
    elementwise("tried", formula)
    return Case("tried", "sine", primitive(lambda x: np.sin(x)), (X,))


def wrong_conjugate(formula: Any) -> Case:
    elementwise("tried", formula)
    return Case("tried", "conjugate", primitive(lambda x: np.conjugate(x)), (X + 1j,))


def wrong_product(first: Any, second: Any) -> Case:
    elementwise("tried", first, second)
    return Case("tried", "product", primitive(lambda x, y: x * y), (X, Y))


def wrong_sum(weights: Any) -> Case:
    reduction("tried", weights)

    def total(x: Any, *, axis: Any = None) -> Any:
        return np.sum(x, axis=axis)

    return Case("tried", "sum", functools.partial(primitive(total), axis=0), (X,))


def wrong_cube(formula: Any, tangent: Any) -> Case:
    general("tried", formula).tangent(tangent)
    return Case("tried", "cube", primitive(lambda x: x**3), (X,))


def wrong_linear(formula: Any, function: Callable[..., Any] = lambda x: 3 * x) -> Case:
    linear("tried", formula)
    return Case("tried", "linear", primitive(function), (X,))


def wrong_matmul(first: Any, second: Any) -> Case:
    multilinear("tried", first, second)
    return Case("tried", "matmul", primitive(lambda x, y: np.matmul(x, y)), (X, X.T))


def _first(g: Any, out: Any, x: Any, y: Any) -> Any:
    return g * y


def _second(g: Any, out: Any, x: Any, y: Any) -> Any:
    return g * x


RIGHT: dict[str, Callable[[], Case]] = {
    "sine": lambda: wrong_sine(lambda g, out, x: g * np.cos(x)),
    "conjugate": lambda: wrong_conjugate(lambda g, out, x: np.conjugate(g)),
    "product": lambda: wrong_product(_first, _second),
    "sum": lambda: wrong_sum(lambda out, x, axis: np.ones_like(x)),
    "cube": lambda: wrong_cube(lambda g, out, x: g * (3 * x * x), lambda t, out, x: t * (3 * x * x)),
    "linear": lambda: wrong_linear(lambda g, out, x: 3 * g),
    "matmul": lambda: wrong_matmul(lambda g, out, x, y: g @ y.T, lambda g, out, x, y: x.T @ g),
}
WRONG: dict[str, tuple[Callable[[], Case], set[str]]] = {
    "sign": (lambda: wrong_sine(lambda g, out, x: -g * np.cos(x)), {"reverse", "forward"}),
    "factor": (lambda: wrong_sine(lambda g, out, x: g * (1.001 * np.cos(x))), {"reverse", "forward"}),
    "small factor": (lambda: wrong_sine(lambda g, out, x: g * (1.00001 * np.cos(x))), {"reverse", "forward"}),
    "forgets an operand": (lambda: wrong_product(_first, None), {"reverse", "forward"}),
    "no conjugation": (lambda: wrong_conjugate(lambda g, out, x: g), {"reverse", "forward"}),
    "swaps operands": (lambda: wrong_product(_second, _first), {"reverse", "forward"}),
    "only under broadcasting": (
        lambda: wrong_product(_first, lambda g, out, x, y: g * x if x.shape == y.shape else g * x / x.shape[0]),
        {"reverse", "forward"},
    ),
    "undoes broadcasting twice": (
        lambda: wrong_product(_first, lambda g, out, x, y: np.broadcast_to(np.sum(g * x, axis=0), g.shape)),
        {"reverse"},
    ),
    "weights of a reduction": (lambda: wrong_sum(lambda out, x, axis: np.ones_like(x) / x.shape[0]), {"reverse", "forward"}),
    "only the tangent": (
        lambda: wrong_cube(lambda g, out, x: g * (3 * x * x), lambda t, out, x: t * (3 * abs(x) * x)),
        {"forward", "second order"},
    ),
    "only the cotangent": (
        lambda: wrong_cube(lambda g, out, x: g * (3 * abs(x) * x), lambda t, out, x: t * (3 * x * x)),
        {"reverse", "forward"},
    ),
    "cotangent and tangent alike": (
        lambda: wrong_cube(lambda g, out, x: g * (2 * x * x), lambda t, out, x: t * (2 * x * x)),
        {"reverse", "forward"},
    ),
    "only the second order": (lambda: wrong_sine(lambda g, out, x: g * np.cos(cg.stop_gradient(x))), {"second order"}),
    "a linear cotangent": (lambda: wrong_linear(lambda g, out, x: 3.001 * g), {"reverse", "forward"}),
    "not linear": (lambda: wrong_linear(lambda g, out, x: 2 * g * x, lambda x: x * x), {"forward"}),
    "no transpose": (
        lambda: wrong_matmul(lambda g, out, x, y: g @ y.T, lambda g, out, x, y: np.reshape(x, y.shape) @ g),
        {"reverse", "forward", "second order"},
    ),
    "only in single precision": (
        lambda: wrong_sine(lambda g, out, x: g * np.cos(x) * (1 if x.dtype == float else 1.001)),
        {"single precision"},
    ),
    "only in other layouts": (
        lambda: wrong_linear(lambda g, out, x: 3 * g if x.flags.c_contiguous else 3 * g[::-1]),
        {"layouts"},
    ),
}


@pytest.mark.usefixtures("registered")
@for_each("declared", RIGHT.values(), ids=RIGHT)
def test_checks_accept_right_rules(declared: Callable[[], Case]) -> None:
    case = declared()
    for check in CHECKS.values():
        check(case)


@pytest.mark.usefixtures("registered")
@for_each(("declared", "failing"), WRONG.values(), ids=WRONG)
def test_checks_detect_wrong_rules(declared: Callable[[], Case], failing: set[str]) -> None:
    case = declared()
    check_value(case)
    for label in failing:
        with pytest.raises(AssertionError):
            CHECKS[label](case)


@for_each(
    "function",
    [
        lambda x: x * (1 + 1e-15) if isinstance(x, cg.Node) else x * 1.0,
        lambda x: x * 0 * -1.0 if isinstance(x, cg.Node) else abs(x) * 0.0,
        lambda x: x.astype(np.longdouble) if isinstance(x, cg.Node) else x * 1.0,
        lambda x: x[None] if isinstance(x, cg.Node) else x * 1.0,
    ],
    ids=["last bit", "sign of zero", "dtype", "shape"],
)
def test_checks_detect_wrong_values(function: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError):
        check_value(Case("tried", "value", function, (X,)))


# ------------------------------------------------------------------------------------- order in memory

PERMUTED: dict[str, Layout] = {
    "C": np.copy,
    "Fortran": np.asfortranarray,
    "axes permuted": lambda x: np.copy(np.moveaxis(x, 0, 1)).swapaxes(0, 1),
    "backwards": lambda x: x[::-1].copy()[::-1],
}
IN_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "ravel": lambda x, order: np.ravel(x, order),
    "ravel, method": lambda x, order: x.ravel(order),
    "flatten": lambda x, order: x.flatten(order),
    "reshape": lambda x, order: np.reshape(x, (4, 3), order=order if order != "K" else "A"),
}


@for_each("function", IN_ORDER.values(), ids=IN_ORDER)
@for_each("order", ["C", "F", "A", "K"])
@for_each("lay", PERMUTED.values(), ids=PERMUTED)
def test_order_option_follows_memory_layout(lay: Layout, order: str, function: Callable[[Any, Any], Any]) -> None:
    x = lay(real(2, 3, 2))
    places = np.empty_like(x, dtype=int)
    places[...] = np.reshape(np.arange(12), x.shape)
    went = function(places, order)
    variable = cg.variable(x, copy=False)
    out = function(variable, order)
    assert np.array_equal(out.value, function(x, order))
    u = real(*out.shape, seed=1)
    expected = np.zeros(12)
    expected[went] = u
    assert np.array_equal(gradient(out, adjoint=u)[variable], expected.reshape(x.shape))
    tangent = real(2, 3, 2, seed=2)
    assert np.array_equal(jvp(lambda x: function(x, order), [x], [tangent])[1], np.ravel(tangent)[went])


# -------------------------------------------------------------------------------------- special points


def both_modes(function: Callable[..., Any], *args: Any) -> list[Array]:
    """The Jacobian summed over the results, by reverse mode, and the same by forward mode."""
    arrays = [np.asarray(a, float) for a in args]
    variables = [cg.variable(a) for a in arrays]
    gradients = gradient(function(*variables), variables)
    for i, x in enumerate(arrays):
        pushed = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            unit = [np.zeros(a.shape) for a in arrays]
            unit[i][index] = 1
            pushed[index] = np.sum(jvp(function, arrays, unit)[1])
        assert np.array_equal(pushed, gradients[variables[i]], equal_nan=True), (
            f"forward {pushed}, reverse {gradients[variables[i]]}"
        )
    return [np.asarray(gradients[x]) for x in variables]


def second(function: Callable[[Any], Any], x: Any) -> Array:
    """The Hessian, by reverse over reverse."""
    variable = cg.variable(x)
    slopes = np.ravel(gradient(function(variable), create_graph=True)[variable])
    return np.array([np.ravel(gradient(slope)[variable]) for slope in slopes])


class TestTies:
    @for_each(
        ("function", "x", "expected"),
        [
            (np.max, [1, 4, 4], [0, 0.5, 0.5]),
            (np.min, [1, 4, 1, 1], [1 / 3, 0, 1 / 3, 1 / 3]),
            (functools.partial(np.max, axis=0), [[1, 4, 4], [1, 5, 4]], [[0.5, 0, 0.5], [0.5, 1, 0.5]]),
            (functools.partial(np.max, axis=1), [[1, 4, 4], [5, 5, 5]], [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]),
            (functools.partial(np.max, axis=(0, 1), keepdims=True), [[1, 4], [4, 4]], [[0, 1 / 3], [1 / 3, 1 / 3]]),
            (functools.partial(np.max, axis=-1), [[4, 4]], [[0.5, 0.5]]),
            (functools.partial(np.max, axis=0, where=np.array([True, True, False]), initial=-9), [4, 4, 4], [0.5, 0.5, 0]),
            (lambda x: np.max(x, initial=4), [1, 4], [0, 0.5]),
            (lambda x: np.min(x, axis=0, initial=1), [[1, 4], [1, 0]], [[1 / 3, 0], [1 / 3, 1]]),
            (np.max, [np.inf, np.inf, 1], [0.5, 0.5, 0]),
            (functools.partial(np.maximum, 4), [1, 4, 5], [0, 0.5, 1]),
            (lambda x: np.minimum(x, 4.0), [1, 4, 5], [1, 0.5, 0]),
            (lambda x: np.clip(x, 1, 4), [0, 1, 2, 4, 5], [0, 0.5, 1, 0.5, 0]),
            (lambda x: np.clip(x, 4, 4), [3, 4, 5], [0, 0.25, 0]),
            (lambda x: np.clip(x, None, 4), [3, 4, 5], [1, 0.5, 0]),
            (np.abs, [-2, 0, 2], [-1, 0, 1]),
            (np.fabs, [-2, 0, 2], [-1, 0, 1]),
            (cg.relu, [-2, 0, 2], [0, 0, 1]),
        ],
    )
    def test_ties_split_among_elements(self, function: Callable[..., Any], x: Any, expected: Any) -> None:
        (derivative,) = both_modes(function, x)
        np.testing.assert_allclose(derivative, expected, rtol=1e-15)

    @for_each("function", [np.maximum, np.minimum, np.fmax, np.fmin])
    def test_ties_split_between_two_operands(self, function: Callable[..., Any]) -> None:
        x, y = both_modes(function, [4.0, 0.0], [[4.0, -0.0], [4.0, 0.0]])
        assert np.array_equal(x, [1, 1])
        assert np.array_equal(y, np.full((2, 2), 0.5))

    def test_ties_of_clip_at_bounds(self) -> None:
        x, low, high = both_modes(np.clip, [1.0, 4.0], 1.0, 4.0)
        assert np.array_equal(x, [0.5, 0.5])
        assert low == 0.5
        assert high == 0.5

    def test_ties_match_central_difference(self) -> None:
        functions: list[Callable[..., Any]] = [np.max, lambda x: np.clip(x, 1, 4), np.abs]
        for function in functions:
            x = np.array([-1.0, 4.0, 0.0])
            np.testing.assert_allclose(both_modes(function, x)[0], numeric.gradient(function, [x])[0], atol=1e-9)


class TestFiniteSubgradients:
    def test_subgradient_of_hypot_at_origin(self) -> None:
        assert both_modes(np.hypot, 0.0, 0.0) == [0, 0]
        x, y = both_modes(np.hypot, [0.0, 3.0], [0.0, 4.0])
        np.testing.assert_allclose([x, y], [[0, 0.6], [0, 0.8]], rtol=1e-15)

    @for_each("options", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"ddof": 1}])
    def test_subgradient_of_std_of_equal_elements(self, options: dict[str, Any]) -> None:
        (derivative,) = both_modes(functools.partial(np.std, **options), np.full((2, 3), 7.0))
        assert np.array_equal(derivative, np.zeros((2, 3)))

    def test_subgradient_of_std_of_one_element(self) -> None:
        assert both_modes(np.std, 3.0) == [0]

    def test_subgradient_of_complex_abs_at_zero(self) -> None:
        z = cg.variable([0j, 3 + 4j])
        np.testing.assert_allclose(gradient(np.abs(z))[z], [0, 0.6 - 0.8j], rtol=1e-15)

    @for_each(
        ("x", "first", "hessian"),
        [
            ([2, 0, 3], [0, 6, 0], [[0, 3, 0], [3, 0, 2], [0, 2, 0]]),
            ([2, 0, 0], [0, 0, 0], [[0, 0, 0], [0, 0, 2], [0, 2, 0]]),
            ([0, 0, 0], [0, 0, 0], np.zeros((3, 3))),
            ([2, 5, 3], [15, 6, 10], [[0, 3, 5], [3, 0, 2], [5, 2, 0]]),
        ],
    )
    def test_derivative_of_prod_with_zeros(self, x: Any, first: Any, hessian: Any) -> None:
        (derivative,) = both_modes(np.prod, x)
        np.testing.assert_allclose(derivative, first, rtol=1e-15)
        np.testing.assert_allclose(second(np.prod, x), hessian, rtol=1e-15)

    @for_each("power", [operator.pow, np.power, np.float_power])
    @for_each("exponent", [0, 1, 2, 3, 0.0, 1.0, 2.0, 3.0, np.array(2), np.array(2.0), np.array([0.0, 1.0, 2.0])])
    def test_derivative_of_powers_of_zero(self, exponent: Any, power: Callable[..., Any]) -> None:
        (derivative,) = both_modes(lambda x: power(x, exponent), np.zeros(3))
        assert np.array_equal(derivative, np.broadcast_to(np.where(np.asarray(exponent) == 1, 1.0, 0.0), 3))
        curved = second(lambda x: np.sum(power(x, exponent)), np.zeros(3))
        assert np.array_equal(curved, np.diag(np.broadcast_to(np.where(np.asarray(exponent) == 2, 2.0, 0.0), 3)))

    @for_each("exponent", [0, 0.0, np.zeros(2)])
    def test_derivative_of_power_with_exponent_zero(self, exponent: Any) -> None:
        assert np.array_equal(both_modes(lambda x: x**exponent, [0.0, -3.0])[0], [0, 0])

    def test_derivative_of_zero_to_a_power(self) -> None:
        assert np.array_equal(both_modes(lambda y: 0.0**y, [0.5, 2.0])[0], [0, 0])
        x, y = both_modes(operator.pow, [0.0, 0.0, 2.0], [2.0, 1.0, 3.0])
        np.testing.assert_allclose(x, [0, 1, 12], rtol=1e-15)
        np.testing.assert_allclose(y, [0, 0, 8 * np.log(2)], rtol=1e-15)

    def test_second_derivative_of_zero_to_a_power(self) -> None:
        x, y = cg.variable(0.0, "x"), cg.variable(2.0, "y")
        slopes = gradient(x**y, create_graph=True)
        assert gradient(slopes[x])[x] == 2
        assert gradient(slopes[x])[y] == 0
        assert gradient(slopes[y])[x] == 0
        assert gradient(slopes[y])[y] == 0

    def test_cross_entropy_of_large_logits(self) -> None:
        logits = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]])
        for labels in (np.array([1, 2]), np.eye(3)[[1, 2]]):
            x = cg.variable(logits)
            loss = cg.softmax_cross_entropy(x, labels)
            assert np.isclose(loss, (2e4 + np.log(2)) / 2, rtol=1e-15)
            np.testing.assert_allclose(gradient(loss)[x], [[0.5, -0.5, 0], [0, 0.25, -0.25]], atol=1e-15)
        x = cg.variable(logits)
        loss = cg.sigmoid_cross_entropy(x, np.eye(3)[[1, 2]])
        assert np.isclose(loss, (1e4 + 1e4 + np.log(2) + 1e4) / 6, rtol=1e-14)
        np.testing.assert_allclose(gradient(loss)[x], np.array([[1, -1, 0.5], [0, 1, 0]]) / 6, atol=1e-15)


class TestRounding:
    """Where a formula that is right on paper would lose its digits."""

    @for_each("function", [np.fmod, np.remainder, lambda x, y: np.divmod(x, y)[1]])
    def test_floor_divide_of_rounded_quotients(self, function: Callable[..., Any]) -> None:
        """1.0 / 0.1 rounds to 10, but 0.1 is a little more than a tenth and goes into 1.0 nine times."""
        assert both_modes(function, 1.0, 0.1) == [1, -9]

    @for_each(("size", "number"), [(3, 0.1), (7, 0.1), (10, 1 / 3), (6, 1e10 / 7)])
    def test_std_of_equal_elements_with_rounded_mean(self, size: int, number: float) -> None:
        (derivative,) = both_modes(np.std, np.full(size, number))
        np.testing.assert_allclose(derivative, np.zeros(size), atol=1e-12)

    @for_each(("function", "sign"), [(np.arcsin, 1), (np.arccos, -1)])
    def test_arcsine_slope_near_end_of_domain(self, function: Callable[..., Any], sign: int) -> None:
        for x in (1 - 1e-15, -1 + 1e-15):
            gap = 1 - abs(x)
            np.testing.assert_allclose(both_modes(function, x)[0], sign / np.sqrt(gap * (2 - gap)), rtol=1e-14)

    @for_each("x", [-800.0, -40.0, 40.0, 800.0])
    def test_sigmoid_and_softplus_of_large_arguments(self, x: float) -> None:
        np.testing.assert_allclose(both_modes(cg.softplus, x)[0], np.exp(min(x, 0)), rtol=1e-14)
        np.testing.assert_allclose(both_modes(cg.sigmoid, x)[0], np.exp(-abs(x)), atol=1e-16)

    def test_logsumexp_of_infinities(self) -> None:
        assert np.array_equal(both_modes(cg.logsumexp, [-np.inf, 1.0])[0], [0, 1])
        with pytest.warns(RuntimeWarning, match="invalid value in the derivative of logsumexp"):
            derivative = gradient(cg.logsumexp(x := cg.variable([np.inf, 1.0])))[x]
        assert np.isnan(derivative[0])
        assert derivative[1] == 0


def poles() -> dict[str, tuple[Callable[[Any], Any], float, float]]:
    """By the name of the operation: the function, where its derivative is infinite, and its sign."""
    return {
        "sqrt": (np.sqrt, 0.0, 1),
        "cbrt": (np.cbrt, 0.0, 1),
        "log": (np.log, 0.0, 1),
        "log2": (np.log2, 0.0, 1),
        "log10": (np.log10, 0.0, 1),
        "log1p": (np.log1p, -1.0, 1),
        "arcsin": (np.arcsin, 1.0, 1),
        "arccos": (np.arccos, -1.0, -1),
        "arccosh": (np.arccosh, 1.0, 1),
        "arctanh": (np.arctanh, 1.0, 1),
        "pow": (lambda x: x**0.5, 0.0, 1),
        "float_power": (lambda x: np.float_power(x, 0.25), 0.0, 1),
    }


@contextmanager
def warning_of(opname: str) -> Iterator[None]:
    """Expect a warning with the name of the operation and advice; NumPy may warn of the value itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages = [str(w.message) for w in caught if w.category is DerivativeWarning]
    assert any(re.search(rf"in the derivative of {opname}\b.*np\.where", message) for message in messages), messages


class TestPoles:
    @for_each("opname", poles())
    @for_each("shape", [(), (2,)])
    def test_poles_are_infinite_and_warn(self, opname: str, shape: tuple[int, ...]) -> None:
        function, at, sign = poles()[opname]
        x = cg.variable(np.full(shape, at))
        with np.errstate(all="ignore"):
            out = function(x)
        for create_graph in (False, True):
            with warning_of(opname):
                derivative = gradient(out, create_graph=create_graph)[x]
            assert np.array_equal(derivative, np.full(shape, sign * np.inf))
        with warning_of(opname):
            _, tangent = jvp(function, [np.full(shape, at)], [np.ones(shape)])
        assert np.array_equal(tangent, np.full(shape, sign * np.inf))

    @for_each("function", [np.reciprocal, lambda x: 1 / x, lambda x: x**-1])
    def test_poles_of_infinite_values(self, function: Callable[[Any], Any]) -> None:
        """NumPy has warned already, of the value."""
        x = cg.variable([0.0, 1.0])
        with np.errstate(divide="ignore"):
            assert np.array_equal(gradient(function(x))[x], [-np.inf, -1])

    def test_poles_ignored_error_is_silent(self) -> None:
        x = cg.variable(0.0)
        with np.errstate(all="ignore"):
            assert gradient(np.sqrt(x))[x] == np.inf
            assert jvp(np.sqrt, [0.0], [1.0])[1] == np.inf

    def test_poles_errstate_raise_raises(self) -> None:
        x = cg.variable(0.0)
        with np.errstate(all="raise"):
            with pytest.raises(FloatingPointError, match="divide by zero"):
                gradient(np.sqrt(x))
            with pytest.raises(FloatingPointError, match="divide by zero"):
                jvp(np.sqrt, [0.0], [1.0])

    def test_poles_ignore_one_kind_of_error(self) -> None:
        x = cg.variable(0.0)
        with np.errstate(divide="ignore"):
            assert gradient(np.sqrt(x))[x] == np.inf
            with pytest.warns(RuntimeWarning, match=r"invalid value.* in the derivative of sqrt\b"):
                assert np.isnan(gradient(np.sqrt(x), adjoint=0.0)[x])

    def test_poles_keep_errstate(self) -> None:
        before = np.geterr(), np.geterrcall()
        x = cg.variable(0.0)
        with pytest.warns(RuntimeWarning):
            gradient(np.sqrt(x))
        assert (np.geterr(), np.geterrcall()) == before

    @for_each("x", [0.0, [0.0, 1.0]])
    def test_poles_zero_times_infinity_warns(self, x: Any) -> None:
        with np.errstate(divide="ignore"):
            variable = cg.variable(x)
            out = np.exp(np.log(variable))
        with warning_of("log"):
            derivative = np.ravel(gradient(out)[variable])
        assert np.isnan(derivative[0])
        with warning_of("log"):
            _, tangent = jvp(lambda x: np.exp(np.log(x)), [np.asarray(x)], [np.ones(np.shape(x))])
        assert np.isnan(np.ravel(tangent)[0])

    def test_poles_square_of_root(self) -> None:
        x = cg.variable(0.0)
        with pytest.warns(RuntimeWarning, match="in the derivative of sqrt"):
            assert np.isnan(gradient(np.sqrt(x) ** 2)[x])


class TestNaN:
    """The derivative at nan must not be 0."""

    @for_each("function", [np.maximum, np.minimum])
    @for_each("args", [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan)])
    def test_nan_passes_binary_operations(self, function: Callable[..., Any], args: tuple[float, float]) -> None:
        for actual, x in zip(both_modes(function, *args), args, strict=True):
            assert actual != 0 or not np.isnan(x)

    @for_each("function", [np.max, np.min, functools.partial(np.max, axis=0), np.sum, np.prod, np.std, cg.logsumexp])
    def test_nan_passes_reduction(self, function: Callable[..., Any]) -> None:
        x = cg.variable([1.0, np.nan, 3.0])
        assert gradient(function(x))[x][1] != 0
        assert jvp(function, [x.value], [np.array([0.0, 1.0, 0.0])])[1] != 0

    @for_each("function", [np.abs, np.fabs, cg.relu, cg.sigmoid, cg.softplus, np.square, lambda x: np.clip(x, 0, 1)])
    @for_each("x", [np.nan, [0.5, np.nan]])
    def test_nan_passes_unary_operations(self, function: Callable[..., Any], x: Any) -> None:
        variable = cg.variable(x)
        with np.errstate(invalid="ignore"):
            assert np.ravel(gradient(function(variable))[variable])[-1] != 0
            assert np.ravel(jvp(function, [variable.value], [np.ones(np.shape(x))])[1])[-1] != 0

    def test_fmax_ignores_nan(self) -> None:
        assert both_modes(np.fmax, np.nan, 1.0) == [0, 1]
        assert both_modes(np.fmin, 1.0, np.nan) == [1, 0]
