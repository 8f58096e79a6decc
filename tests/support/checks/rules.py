"""Rules against central differences of plain NumPy: both modes, second order, dtypes, memory layouts.

A check is a function of a `Case` that raises AssertionError. The tests also apply checks to wrong rules, which must fail.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import compgraph as cg
from autodiff import numeric
from autodiff.forward import jvp
from autodiff.operators.grad import grad, vjp
from autodiff.reverse import gradient
from autodiff.rules.rule import rules
from compgraph import ops
from tests.support.arguments import Case

Array = np.ndarray[Any, Any]
Layout = Callable[[Array], Array]

# ------------------------------------------------------------------------------------------------ tools


def close(actual: Any, expected: Any, rtol: float, what: str) -> None:
    """Fail unless `actual` is a plain array of the shape of `expected` and near it."""
    actual = np.asarray(actual)
    assert actual.shape == np.shape(expected), f"{what} has shape {actual.shape}, not {np.shape(expected)}"
    size = 1 + np.max(np.abs(expected), initial=0)
    error = np.max(np.abs(actual - expected), initial=0)
    assert error <= rtol * size, f"{what} is off by {error / size:.2g}: {actual} instead of {expected}"


def random_like(array: Any, rng: np.random.Generator) -> Array:
    """Random numbers of the shape and dtype of an array."""
    array = np.asarray(array)
    numbers = rng.normal(size=array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(size=array.shape)
    return np.asarray(numbers, array.dtype)


def directions(case: Case) -> tuple[Array, list[Array]]:
    """The cotangent of the case's result, and a tangent for each of its arguments."""
    rng = np.random.default_rng(zlib.crc32(f"{case.opname}: {case.label}".encode()))
    return random_like(case.function(*case.args), rng), [random_like(x, rng) for x in case.args]


def recorded(case: Case, copy: bool = True) -> tuple[list[Any], Any]:
    """Variables in place of the arguments, and the graph of the case."""
    variables = [cg.variable(x, copy=copy) for x in case.args]
    return variables, case.function(*variables)


def flat(arrays: Any) -> Any:
    """Concatenate the elements of several arrays or nodes."""
    return np.concatenate([np.ravel(a) for a in arrays])


def product(cotangents: Any, tangents: Any) -> float:
    """The real inner product of cotangents and tangents."""
    return float(sum(np.sum(np.real(a * t)) for a, t in zip(cotangents, tangents, strict=True)))


# ----------------------------------------------------------------------------------------------- checks


def check_value(case: Case) -> None:
    """Recorded values are NumPy's bit for bit, and real arrays."""
    expected = np.asarray(case.function(*case.args))
    _, out = recorded(case)
    pushed, _ = jvp(case.function, case.args, [np.zeros_like(x) for x in case.args])
    pulled, _ = vjp(case.function, *case.args)
    assert isinstance(out, np.ndarray)
    for output in (out, pushed, pulled):
        plain = np.asarray(output)
        assert (plain.dtype, plain.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(plain, expected, equal_nan=True), f"{plain} instead of {expected}"
        for part in (np.real, np.imag):
            assert np.array_equal(np.signbit(part(plain)), np.signbit(part(expected))), f"signs of {plain} and {expected} differ"


def check_reverse(case: Case) -> None:
    """Cotangents agree with central differences, by `gradient` and by `vjp`, whichever arguments are constants."""
    u, _ = directions(case)
    variables, out = recorded(case)
    gradients = gradient(out, variables, adjoint=u)
    expected = numeric.gradient(case.function, case.args, weights=u)
    pulled = vjp(case.function, *case.args)[1](u)
    for i, (x, reference) in enumerate(zip(variables, expected, strict=True)):
        close(gradients[x], reference, 1e-6, f"cotangent {i}")
        close(pulled[i], gradients[x], 1e-14, f"cotangent {i} by vjp")
        assert gradients[x].dtype == pulled[i].dtype == x.dtype
        alone = [*case.args[:i], x, *case.args[i + 1 :]]
        close(
            gradient(case.function(*alone), x, adjoint=u)[x], gradients[x], 1e-12, f"cotangent {i} when the others are constants"
        )


def check_forward(case: Case) -> None:
    """Tangents agree with central differences and with reverse mode, whichever arguments are constants."""
    u, v = directions(case)
    value, tangent = jvp(case.function, case.args, v)
    close(tangent, numeric.directional(case.function, case.args, v), 1e-6, "tangent")
    assert tangent.dtype == value.dtype
    cotangents = vjp(case.function, *case.args)[1](u)
    forward, reverse = product([u], [tangent]), product(cotangents, v)
    size = 1 + sum(float(np.sum(np.abs(a * t))) for a, t in zip(cotangents, v, strict=True))
    assert abs(forward - reverse) <= 1e-10 * size, f"<u, Jv> = {forward}, <J^T u, v> = {reverse}"
    total = np.zeros_like(tangent)
    for i, x in enumerate(case.args):
        total = total + jvp(functools.partial(with_argument, case, i), [x], [v[i]])[1]
    close(total, tangent, 1e-12, "the sum of the tangents of each argument")


def with_argument(case: Case, position: int, x: Any) -> Any:
    return case.function(*case.args[:position], x, *case.args[position + 1 :])


def check_second_order(case: Case) -> None:
    """The derivative of the gradient along a direction, in all four orders of modes."""
    u, v = directions(case)

    def first(*args: Any) -> Any:
        return flat(vjp(case.function, *args)[1](u))

    expected = numeric.directional(first, case.args, v)
    variables, out = recorded(case)
    slopes = gradient(out, variables, adjoint=u, create_graph=True)
    slope = sum(np.sum(slopes[x] * t) for x, t in zip(variables, v, strict=True))
    twice = gradient(slope, variables, adjoint=1.0)
    close(flat([twice[x] for x in variables]), expected, 1e-6, "reverse over reverse")

    positions = range(len(case.args))
    gradients = grad(lambda *args: np.real(np.sum(u * case.function(*args))), argnums=positions)
    close(jvp(lambda *args: flat(gradients(*args)), case.args, v)[1], expected, 1e-6, "forward over reverse")

    def along(*args: Any) -> Any:
        return jvp(case.function, args, v)[1]

    close(flat(vjp(along, *case.args)[1](u)), expected, 1e-6, "reverse over forward")
    curvature = product([u], [jvp(along, case.args, v)[1]])
    reference = product([expected], [flat(v)])
    size = 1 + float(np.sum(np.abs(expected * flat(v))))
    assert abs(curvature - reference) <= 1e-6 * size, f"forward over forward: {curvature} instead of {reference}"


def check_single_precision(case: Case) -> None:
    """Cotangents have the precision of their arguments, all or each alone single, and values have NumPy's dtype."""
    u, v = directions(case)
    exact = vjp(case.function, *case.args)[1](u)
    exact_tangent = jvp(case.function, case.args, v)[1]
    positions = range(len(case.args))
    for chosen in [positions, *([i] for i in positions if len(case.args) > 1)]:
        mixed = in_single_precision(case, chosen)
        variables, out = recorded(mixed)
        assert out.dtype == np.asarray(case.function(*mixed.args)).dtype
        result, graph = (gradient(out, variables, adjoint=u, create_graph=graph) for graph in (False, True))
        for i, x in enumerate(variables):
            assert result[x].dtype == graph[x].dtype == x.dtype, f"cotangent {i} is {result[x].dtype}, {graph[x].dtype}"
            close(result[x], exact[i], 3e-5, f"cotangent {i} in single precision")
            close(graph[x], result[x], 1e-6, f"cotangent {i} in single precision with create_graph")
        tangent = jvp(case.function, mixed.args, [t.astype(x.dtype) for t, x in zip(v, mixed.args, strict=True)])[1]
        assert tangent.dtype == out.dtype
        close(tangent, exact_tangent, 3e-5, "tangent in single precision")


def in_single_precision(case: Case, positions: Sequence[int]) -> Case:
    """The case with the arguments at some positions in half the precision."""
    halves = {"f": np.float32, "c": np.complex64}
    return dataclasses.replace(
        case, args=tuple(x.astype(halves[x.dtype.kind]) if i in positions else x for i, x in enumerate(case.args))
    )


LAYOUTS: dict[str, Layout] = {
    "Fortran": lambda x: np.asfortranarray(x) if x.ndim else x.copy(),
    "every second": lambda x: _windowed(x, 2),
    "backwards": lambda x: _windowed(x, -1),
    "every second backwards": lambda x: _windowed(x, -2),
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
}


def _windowed(x: Array, step: int) -> Array:
    """The same numbers as a view of a larger array whose other elements are nan."""
    larger = np.full([1 + n * abs(step) for n in x.shape], np.nan, x.dtype)
    start = 1 if step > 0 else -1
    steps: Any = (..., *(slice(start, None, step) for _ in x.shape))
    sizes: Any = (..., *map(slice, x.shape))
    window: Array = larger[steps][sizes]
    window[...] = x
    return window


def check_layouts(case: Case) -> None:
    """Derivatives do not depend on the memory layout of the arguments."""
    u, v = directions(case)
    expected = vjp(case.function, *case.args)[1](u)
    tangent = jvp(case.function, case.args, v)[1]
    for layout, lay in LAYOUTS.items():
        variables, out = recorded(dataclasses.replace(case, args=tuple(map(lay, case.args))), copy=False)
        for create_graph in (False, True):
            gradients = gradient(out, variables, adjoint=lay(u), create_graph=create_graph)
            for i, x in enumerate(variables):
                close(gradients[x], expected[i], 1e-13, f"cotangent {i}, {layout}, create_graph={create_graph}")
        pushed = jvp(case.function, [lay(x) for x in case.args], [lay(t) for t in v])[1]
        close(pushed, tangent, 1e-13, f"tangent, {layout}")


def check_call(case: Case) -> None:
    """``opname_grad(adjoint, node)`` lists the cotangents of all operands."""
    u, _ = directions(case)
    variables, out = recorded(case)
    if out.opname != case.opname:
        return
    cotangents = rules[case.opname](u, out)
    record = out.args[0] if isinstance(out.function, ops.Output) else out
    operands = record.args[: ops.operand_count(record.function, len(record.args))]
    assert len(cotangents) == max(2, len(operands))
    assert cotangents[1] is None or len(operands) > 1
    totals = {x: np.zeros_like(x.value) for x in variables}
    for cotangent, operand in zip(cotangents, operands, strict=False):
        if cotangent is None:
            continue
        assert (cotangent.shape, cotangent.dtype) == (np.shape(operand), np.asarray(operand).dtype)
        if isinstance(operand, cg.Node):
            further = gradient(operand, adjoint=cotangent)
            for x in variables:
                totals[x] = totals[x] + further[x] if x in further else totals[x]
    expected = gradient(out, variables, adjoint=u)
    for i, x in enumerate(variables):
        close(totals[x], expected[x], 1e-13, f"cotangent {i} by the rule itself")
    of_ones = rules[case.opname](np.ones(out.shape, out.dtype), out)
    listed = np.ones(out.shape, int).tolist() if out.size else 1  # an empty list has one axis
    for number in (1.0, 1, np.float32(1), np.array(1), np.ones(out.shape[1:]), listed):
        for cotangent, reference in zip(rules[case.opname](number, out), of_ones, strict=True):
            assert (cotangent is None) == (reference is None)
            if cotangent is not None:
                assert cotangent.dtype == reference.dtype
                assert np.array_equal(cotangent, reference, equal_nan=True), f"{cotangent} for a cotangent of {number!r}"


CHECKS: dict[str, Callable[[Case], None]] = {
    "value": check_value,
    "reverse": check_reverse,
    "forward": check_forward,
    "second order": check_second_order,
    "single precision": check_single_precision,
    "layouts": check_layouts,
    "call": check_call,
}
