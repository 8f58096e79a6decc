"""Every rule against central differences of plain NumPy: both modes, second order, dtypes, memory layouts.

The checks are functions of a `Case` that raise AssertionError, so that they can be run on wrong rules too: a check
that never fails proves nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases import CASES, COMPLEX_CASES, SKETCHES, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import BroadcastableShapes, mutually_broadcastable_shapes

import compgraph as cg
from autodiff import grads, numeric, registry
from autodiff.forward import jvp
from autodiff.operators import grad, vjp
from autodiff.registry import rules
from autodiff.reverse import gradient
from compgraph import operations

Array = np.ndarray[Any, Any]
Layout = Callable[[Array], Array]

# ------------------------------------------------------------------------------------------------ tools


def close(found: Any, expected: Any, rtol: float, what: str) -> None:
    """Fail unless `found` is a plain array of the shape of `expected` and near it."""
    found = np.asarray(found)
    assert found.shape == np.shape(expected), f"{what} has shape {found.shape}, not {np.shape(expected)}"
    size = 1 + np.max(np.abs(expected), initial=0)
    error = np.max(np.abs(found - expected), initial=0)
    assert error <= rtol * size, f"{what} is off by {error / size:.2g}: {found} instead of {expected}"


def random_like(array: Any, rng: np.random.Generator) -> Array:
    """Random numbers of the shape and dtype of an array."""
    array = np.asarray(array)
    numbers = rng.normal(size=array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(size=array.shape)
    return np.asarray(numbers, array.dtype)


def directions(case: Case) -> tuple[Array, list[Array]]:
    """The adjoint of the case's result, and a tangent for each of its arguments."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    return random_like(case.function(*case.args), rng), [random_like(x, rng) for x in case.args]


def recorded(case: Case, copy: bool = True) -> tuple[list[Any], Any]:
    """Variables in place of the arguments, and the graph of the case."""
    variables = [cg.variable(x, copy=copy) for x in case.args]
    return variables, case.function(*variables)


def flat(arrays: Any) -> Any:
    """All numbers of several arrays, or nodes, in one row."""
    return np.concatenate([np.ravel(a) for a in arrays])


def product(adjoints: Any, tangents: Any) -> float:
    """What adjoints make of tangents."""
    return float(sum(np.sum(np.real(a * t)) for a, t in zip(adjoints, tangents, strict=True)))


# ----------------------------------------------------------------------------------------------- checks


def check_value(case: Case) -> None:
    """Recorded values are NumPy's bit for bit, and real arrays."""
    expected = np.asarray(case.function(*case.args))
    _, out = recorded(case)
    pushed, _ = jvp(case.function, case.args, [np.zeros_like(x) for x in case.args])
    pulled, _ = vjp(case.function, *case.args)
    assert isinstance(out, np.ndarray)
    for found in (out, pushed, pulled):
        plain = np.asarray(found)
        assert (plain.dtype, plain.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(plain, expected, equal_nan=True), f"{plain} instead of {expected}"
        for part in (np.real, np.imag):
            assert np.array_equal(np.signbit(part(plain)), np.signbit(part(expected))), f"signs of {plain} and {expected} differ"


def check_reverse(case: Case) -> None:
    """Adjoints agree with central differences, by `gradient` and by `vjp`, whichever arguments are constants."""
    u, _ = directions(case)
    variables, out = recorded(case)
    found = gradient(out, variables, adjoint=u)
    expected = numeric.gradient(case.function, case.args, weights=u)
    pulled = vjp(case.function, *case.args)[1](u)
    for i, (x, wanted) in enumerate(zip(variables, expected, strict=True)):
        close(found[x], wanted, 1e-6, f"adjoint {i}")
        close(pulled[i], found[x], 1e-14, f"adjoint {i} by vjp")
        assert found[x].dtype == pulled[i].dtype == x.dtype
        alone = [*case.args[:i], x, *case.args[i + 1 :]]
        close(gradient(case.function(*alone), x, adjoint=u)[x], found[x], 1e-12, f"adjoint {i} when the others are constants")


def check_forward(case: Case) -> None:
    """Tangents agree with central differences and with reverse mode, whichever arguments are constants."""
    u, v = directions(case)
    value, tangent = jvp(case.function, case.args, v)
    close(tangent, numeric.directional(case.function, case.args, v), 1e-6, "tangent")
    assert tangent.dtype == value.dtype
    adjoints = vjp(case.function, *case.args)[1](u)
    forward, reverse = product([u], [tangent]), product(adjoints, v)
    size = 1 + sum(float(np.sum(np.abs(a * t))) for a, t in zip(adjoints, v, strict=True))
    assert abs(forward - reverse) <= 1e-10 * size, f"<u, Jv> = {forward}, <J^T u, v> = {reverse}"
    total = np.zeros_like(tangent)
    for i, x in enumerate(case.args):
        total = total + jvp(functools.partial(_with_argument, case, i), [x], [v[i]])[1]
    close(total, tangent, 1e-12, "the sum of the tangents of each argument")


def _with_argument(case: Case, position: int, x: Any) -> Any:
    return case.function(*case.args[:position], x, *case.args[position + 1 :])


def check_second_order(case: Case) -> None:
    """The derivative of the gradient along a direction, in all four orders of modes."""
    u, v = directions(case)

    def first(*args: Any) -> Any:
        return flat(vjp(case.function, *args)[1](u))

    expected = numeric.directional(first, case.args, v)
    variables, out = recorded(case)
    found = gradient(out, variables, adjoint=u, create_graph=True)
    slope = sum(np.sum(found[x] * t) for x, t in zip(variables, v, strict=True))
    twice = gradient(slope, variables)
    close(flat([twice[x] for x in variables]), expected, 1e-6, "reverse over reverse")

    positions = range(len(case.args))
    gradients = grad(lambda *args: np.sum(u * case.function(*args)), argnums=positions)
    close(jvp(lambda *args: flat(gradients(*args)), case.args, v)[1], expected, 1e-6, "forward over reverse")

    def along(*args: Any) -> Any:
        return jvp(case.function, args, v)[1]

    close(flat(vjp(along, *case.args)[1](u)), expected, 1e-6, "reverse over forward")
    curvature = product([u], [jvp(along, case.args, v)[1]])
    wanted = product([expected], [flat(v)])
    size = 1 + float(np.sum(np.abs(expected * flat(v))))
    assert abs(curvature - wanted) <= 1e-6 * size, f"forward over forward: {curvature} instead of {wanted}"


def check_single_precision(case: Case) -> None:
    """Arguments of single precision give adjoints of single precision, and a value of the dtype NumPy gives it."""
    u, v = directions(case)
    single = in_single_precision(case)
    variables, out = recorded(single)
    assert out.dtype == np.asarray(case.function(*single.args)).dtype
    found, graph = (gradient(out, variables, adjoint=u, create_graph=graph) for graph in (False, True))
    exact = vjp(case.function, *case.args)[1](u)
    for i, x in enumerate(variables):
        assert found[x].dtype == graph[x].dtype == x.dtype, f"adjoint {i} is {found[x].dtype}, {graph[x].dtype}"
        close(found[x], exact[i], 3e-5, f"adjoint {i} in single precision")
        close(graph[x], found[x], 1e-6, f"adjoint {i} in single precision with create_graph")
    tangent = jvp(case.function, single.args, [t.astype(x.dtype) for t, x in zip(v, single.args, strict=True)])[1]
    assert tangent.dtype == out.dtype
    close(tangent, jvp(case.function, case.args, v)[1], 3e-5, "tangent in single precision")


def in_single_precision(case: Case) -> Case:
    """The case with arguments of half the precision."""
    halves = {"f": np.float32, "c": np.complex64}
    return dataclasses.replace(case, args=tuple(x.astype(halves[x.dtype.kind]) for x in case.args))


LAYOUTS: dict[str, Layout] = {
    "Fortran": lambda x: np.asfortranarray(x) if x.ndim else x.copy(),
    "every second": lambda x: _windowed(x, 2),
    "backwards": lambda x: _windowed(x, -1),
    "every second backwards": lambda x: _windowed(x, -2),
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
}


def _windowed(x: Array, step: int) -> Array:
    """The same numbers, as a window on a larger array whose other elements are nan."""
    larger = np.full([1 + n * abs(step) for n in x.shape], np.nan, x.dtype)
    start = 1 if step > 0 else -1
    window = larger[..., *(slice(start, None, step) for _ in x.shape)][..., *(slice(n) for n in x.shape)]
    window[...] = x
    return window


def check_layouts(case: Case) -> None:
    """How arguments lie in memory does not matter."""
    u, v = directions(case)
    expected = vjp(case.function, *case.args)[1](u)
    tangent = jvp(case.function, case.args, v)[1]
    for layout, lay in LAYOUTS.items():
        variables, out = recorded(dataclasses.replace(case, args=tuple(map(lay, case.args))), copy=False)
        for create_graph in (False, True):
            found = gradient(out, variables, adjoint=lay(u), create_graph=create_graph)
            for i, x in enumerate(variables):
                close(found[x], expected[i], 1e-13, f"adjoint {i}, {layout}, create_graph={create_graph}")
        pushed = jvp(case.function, [lay(x) for x in case.args], [lay(t) for t in v])[1]
        close(pushed, tangent, 1e-13, f"tangent, {layout}")


def check_call(case: Case) -> None:
    """``opname_grad(adjoint, node)`` lists the adjoints of all operands."""
    u, _ = directions(case)
    variables, out = recorded(case)
    if out.opname != case.opname:
        return
    found = rules[case.opname](u, out)
    record = out.args[0] if isinstance(out.function, operations.Output) else out
    operands = record.args[: operations.operand_count(record.function, len(record.args))]
    assert len(found) == max(2, len(operands))
    assert found[1] is None or len(operands) > 1
    totals = {x: np.zeros_like(x.value) for x in variables}
    for adjoint, operand in zip(found, operands, strict=False):
        if adjoint is None:
            continue
        assert (adjoint.shape, adjoint.dtype) == (np.shape(operand), np.asarray(operand).dtype)
        if isinstance(operand, cg.Node):
            further = gradient(operand, adjoint=adjoint)
            for x in variables:
                totals[x] = totals[x] + further[x] if x in further else totals[x]
    expected = gradient(out, variables, adjoint=u)
    for i, x in enumerate(variables):
        close(totals[x], expected[x], 1e-13, f"adjoint {i} by the rule itself")


CHECKS: dict[str, Callable[[Case], None]] = {
    "value": check_value,
    "reverse": check_reverse,
    "forward": check_forward,
    "second order": check_second_order,
    "single precision": check_single_precision,
    "layouts": check_layouts,
    "call": check_call,
}
EVERY = [*(pytest.param(c, id=str(c)) for c in CASES), *(pytest.param(c, id=f"complex {c}") for c in COMPLEX_CASES)]


@pytest.mark.parametrize("check", [pytest.param(check, id=label) for label, check in CHECKS.items()])
@pytest.mark.parametrize("case", EVERY)
def test_rule(case: Case, check: Callable[[Case], None]) -> None:
    check(case)


# ---------------------------------------------------------------------------------------- completeness

INTERNAL = {"scatter", "input", "output"}


def test_every_rule_has_cases() -> None:
    assert set(SKETCHES) == set(rules) - INTERNAL


def test_every_smooth_function_has_a_rule_and_every_rule_a_function() -> None:
    smooth = {*operations.SMOOTH_UFUNCS, *operations.SMOOTH_FUNCTIONS, *operations.SMOOTH_SPECIALS}
    smooth |= set(operations.PACKED_FUNCTIONS.values())
    assert {operations.opname_of(f) for f in smooth} <= set(rules)
    for opname, rule in rules.items():
        assert rule.opname == opname
        assert callable(operations.function_named(opname)), f"no function is recorded as {opname}"
        assert operations.function_named(opname) not in operations.PIECEWISE


def test_every_rule_has_its_name_in_grads() -> None:
    modules = [m for m in vars(grads).values() if getattr(m, "__package__", None) == grads.__name__]
    named = {name: rule for m in modules for name, rule in vars(m).items() if isinstance(rule, registry.Rule)}
    assert {f"{opname}_grad": rule for opname, rule in rules.items()} == named


def test_every_rule_is_checked_by_itself_with_zero_size_and_in_single_precision() -> None:
    """What the checks pass over in some cases, they see in others."""
    called, empty, single = set(), set(), set()
    for case in CASES:
        called.add(recorded(case)[1].opname)
        if any(x.size == 0 for x in case.args):
            empty.add(case.opname)
        if recorded(in_single_precision(case))[1].dtype == np.float32:
            single.add(case.opname)
    assert called >= set(SKETCHES)
    assert set(SKETCHES) - empty == {"softmax_cross_entropy", "sigmoid_cross_entropy"}
    assert set(SKETCHES) - single == {"float_power"}


def test_cases_have_names_of_their_own() -> None:
    assert len({str(c) for c in CASES}) == len(CASES)
    assert len({str(c) for c in COMPLEX_CASES}) == len(COMPLEX_CASES)


# ------------------------------------------------------------------------------------------ wrong rules


@pytest.fixture
def registered() -> Iterator[None]:
    """Undo what a test declares."""
    tables: list[dict[Any, Any]] = [rules, operations.OPNAMES, operations._by_opname]
    kept = [dict(table) for table in tables]
    yield
    for table, before in zip(tables, kept, strict=True):
        table.clear()
        table.update(before)
    registry.by_function.clear()


def primitive(function: Callable[..., Any]) -> Any:
    """A recorded function of its own opname, whatever was declared before."""
    return cg.primitive(opname="tried")(function)


X, Y = np.array([[0.5, -1.5, 2.0], [1.0, 0.3, -0.7]]), np.array([1.5, -0.5, 0.8])


def wrong_sine(formula: Any) -> Case:
    registry.elementwise("tried", formula)
    return Case("tried", "sine", primitive(lambda x: np.sin(x)), (X,))


def wrong_product(first: Any, second: Any) -> Case:
    registry.elementwise("tried", first, second)
    return Case("tried", "product", primitive(lambda x, y: x * y), (X, Y))


def wrong_sum(weights: Any) -> Case:
    registry.reduction("tried", weights)

    def total(x: Any, *, axis: Any = None) -> Any:
        return np.sum(x, axis=axis)

    return Case("tried", "sum", functools.partial(primitive(total), axis=0), (X,))


def wrong_cube(formula: Any, tangent: Any) -> Case:
    registry.general("tried", formula).tangent(tangent)
    return Case("tried", "cube", primitive(lambda x: x**3), (X,))


def wrong_linear(formula: Any, function: Callable[..., Any] = lambda x: 3 * x) -> Case:
    registry.linear("tried", formula)
    return Case("tried", "linear", primitive(function), (X,))


def wrong_matmul(first: Any, second: Any) -> Case:
    registry.multilinear("tried", first, second)
    return Case("tried", "matmul", primitive(lambda x, y: np.matmul(x, y)), (X, X.T))


def _first(g: Any, out: Any, x: Any, y: Any) -> Any:
    return g * y


def _second(g: Any, out: Any, x: Any, y: Any) -> Any:
    return g * x


RIGHT: dict[str, Callable[[], Case]] = {
    "sine": lambda: wrong_sine(lambda g, out, x: g * np.cos(x)),
    "product": lambda: wrong_product(_first, _second),
    "sum": lambda: wrong_sum(lambda out, x, axis: np.ones_like(x)),
    "cube": lambda: wrong_cube(lambda g, out, x: g * (3 * x * x), lambda t, out, x: t * (3 * x * x)),
    "linear": lambda: wrong_linear(lambda g, out, x: 3 * g),
    "matmul": lambda: wrong_matmul(lambda g, out, x, y: g @ y.T, lambda g, out, x, y: x.T @ g),
}
ALWAYS = {"reverse", "forward", "second order"}
WRONG: dict[str, tuple[Callable[[], Case], set[str]]] = {
    "sign": (lambda: wrong_sine(lambda g, out, x: -g * np.cos(x)), {"reverse", "forward", "single precision"}),
    "factor": (lambda: wrong_sine(lambda g, out, x: g * (1.001 * np.cos(x))), {"reverse", "forward"}),
    "small factor": (lambda: wrong_sine(lambda g, out, x: g * (1.00001 * np.cos(x))), {"reverse", "forward"}),
    "forgets an operand": (lambda: wrong_product(_first, None), {"reverse", "forward"}),
    "swaps operands": (lambda: wrong_product(_second, _first), {"reverse", "forward"}),
    "only under broadcasting": (
        lambda: wrong_product(_first, lambda g, out, x, y: g * x if x.shape == y.shape else g * x / x.shape[0]),
        {"reverse", "forward"},
    ),
    "undoes broadcasting twice": (
        lambda: wrong_product(_first, lambda g, out, x, y: np.broadcast_to(np.sum(g * x, axis=0), g.shape)),
        {"reverse"},
    ),
    "factor of a reduction": (lambda: wrong_sum(lambda out, x, axis: np.full_like(x.plain, 0.5) if isinstance(x, cg.Node) else x * 0 + 0.5), {"reverse", "forward"}),
    "only the tangent": (
        lambda: wrong_cube(lambda g, out, x: g * (3 * x * x), lambda t, out, x: t * (3 * abs(x) * x)),
        {"forward", "second order"},
    ),
    "only the adjoint": (
        lambda: wrong_cube(lambda g, out, x: g * (3 * abs(x) * x), lambda t, out, x: t * (3 * x * x)),
        {"reverse", "forward"},
    ),
    "adjoint and tangent alike": (
        lambda: wrong_cube(lambda g, out, x: g * (2 * x * x), lambda t, out, x: t * (2 * x * x)),
        {"reverse", "forward"},
    ),
    "only the second order": (lambda: wrong_sine(lambda g, out, x: g * np.cos(cg.stop_gradient(x))), {"second order"}),
    "a linear adjoint": (lambda: wrong_linear(lambda g, out, x: 3.001 * g), {"reverse", "forward"}),
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
}  # fmt: skip


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("declared", RIGHT.values(), ids=RIGHT)
def test_right_rules_pass(declared: Callable[[], Case]) -> None:
    case = declared()
    for check in CHECKS.values():
        check(case)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("declared", "failing"), WRONG.values(), ids=WRONG)
def test_wrong_rules_fail(declared: Callable[[], Case], failing: set[str]) -> None:
    case = declared()
    check_value(case)
    for label in failing:
        with pytest.raises(AssertionError):
            CHECKS[label](case)
