"""Mechanisms that all rules share, on arbitrary shapes, dtypes and memory layouts: broadcasting, and each kind of rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

import compgraph as cg
from autodiff.forward import jvp
from autodiff.operators.grad import vjp
from autodiff.reverse import gradient
from autodiff.rules.broadcasting import conform, conform_batch, unbroadcast, unbroadcast_batch
from tests.support.arguments import Array, Case, Shape, complexes, real
from tests.support.cases.mechanisms import KINDS, search
from tests.support.checks.rules import (
    LAYOUTS,
    check_forward,
    check_reverse,
    check_second_order,
    check_value,
    close,
    directions,
    in_single_precision,
    recorded,
)

pytestmark = pytest.mark.portable

FEW_AND_MANY = [pytest.param(30, id="few"), pytest.param(300, id="many", marks=pytest.mark.exhaustive)]
FEW_AND_MANY_CHEAP = [pytest.param(40, id="few"), pytest.param(600, id="many", marks=pytest.mark.exhaustive)]

# ---------------------------------------------------------------------------------------- broadcasting


def summed(cotangent: Array, shape: Shape) -> Array:
    """The sum over the copies of each element of an array of a shape, element by element."""
    total = np.zeros(shape, cotangent.dtype)
    positions = np.broadcast_to(np.arange(total.size).reshape(shape), cotangent.shape)
    for index in np.ndindex(cotangent.shape):
        total.flat[positions[index]] += cotangent[index]
    return total


def whole_numbers(shape: Shape, dtype: Any) -> Array:
    """Numbers whose sums are exact."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 11 - 4
    return np.asarray(numbers * (1 - 2j) if np.dtype(dtype).kind == "c" else numbers, dtype)


DTYPES = st.sampled_from([np.float64, np.float32, np.complex128, np.complex64])
ALL_LAYOUTS = st.sampled_from(["C", *LAYOUTS])


def with_layout(x: Array, layout: str) -> Array:
    return x if layout == "C" else LAYOUTS[layout](x)


def in_native_order(dtype: Any) -> np.dtype[Any]:
    """A dtype without its byte order, which cotangents keep or lose."""
    return np.dtype(dtype).newbyteorder("=")


def check_unbroadcast(shapes: Any, dtype: Any, layout: str, is_node: bool) -> None:
    shape, values = shapes.input_shapes[0], whole_numbers(shapes.result_shape, dtype)
    expected = summed(values, shape)
    cotangent = cg.variable(with_layout(values, layout)) if is_node else with_layout(values, layout)
    result = unbroadcast(cotangent, shape)
    assert (result.shape, in_native_order(result.dtype)) == (shape, np.dtype(dtype))
    assert np.array_equal(result, expected)
    batch = np.stack([values, 3 * values])
    together = unbroadcast_batch(cg.variable(batch) if is_node else with_layout(batch, layout), shape)
    assert np.array_equal(together, [expected, 3 * expected])


@pytest.mark.parametrize("count", FEW_AND_MANY_CHEAP)
def test_unbroadcast_sums_over_copies(count: int) -> None:
    shapes = mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=4, max_side=3)
    search(check_unbroadcast, count, shapes=shapes, dtype=DTYPES, layout=ALL_LAYOUTS, is_node=st.booleans())


def check_unbroadcast_of_fewer(shape: Shape, dtype: Any, data: st.DataObject, is_node: bool) -> None:
    small = tuple(data.draw(st.sampled_from((1, n))) for n in shape)[data.draw(st.integers(0, len(shape))) :]
    cotangent = whole_numbers(small, dtype)
    result = unbroadcast(cg.variable(cotangent) if is_node else cotangent, shape)
    assert np.array_equal(result, np.broadcast_to(cotangent, shape))


@pytest.mark.parametrize("count", FEW_AND_MANY_CHEAP)
def test_unbroadcast_repeats_smaller_cotangents(count: int) -> None:
    shape = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
    search(check_unbroadcast_of_fewer, count, shape=shape, dtype=DTYPES, data=st.data(), is_node=st.booleans())


def check_conform(shapes: Any, dtype: Any, to: Any, is_node: bool) -> None:
    operand, contribution = whole_numbers(shapes.input_shapes[0], to), whole_numbers(shapes.result_shape, dtype)
    cotangent = cg.variable(contribution) if is_node else contribution
    expected = summed(contribution, operand.shape)
    expected = (np.real(expected) if operand.dtype.kind != "c" else expected).astype(to)
    result = conform(cotangent, operand)
    assert (result.shape, result.dtype) == (operand.shape, operand.dtype)
    assert np.array_equal(result, expected)
    batch = np.stack([contribution, 3 * contribution])
    together = conform_batch(cg.variable(batch) if is_node else batch, operand, 2)
    assert together.dtype == operand.dtype
    assert np.array_equal(together, [expected, (3 * expected).astype(to)])


@pytest.mark.parametrize("count", FEW_AND_MANY_CHEAP)
def test_conform_gives_shape_and_dtype_of_operand(count: int) -> None:
    shapes = mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=3, max_side=3)
    search(check_conform, count, shapes=shapes, dtype=DTYPES, to=DTYPES, is_node=st.booleans())


def test_conform_batch_of_other_count_raises() -> None:
    with pytest.raises(ValueError, match=r"returned shape \(3,\) for a batch of 2"):
        conform_batch(np.ones(3), np.ones(()), 2)


# ------------------------------------------------------------------------------------- kinds of rules


def check_dtypes_and_layouts(case: Case, layouts: Sequence[str], single: Sequence[bool]) -> None:
    """Derivatives of arguments of other dtypes and memory layouts, each its own, are those of contiguous doubles."""
    u, v = directions(case)
    expected, tangent = vjp(case.function, *case.args)[1](u), jvp(case.function, case.args, v)[1]
    positions = [i for i in range(len(case.args)) if single[i]]
    other = in_single_precision(case, positions)
    rtol = 3e-5 if positions else 1e-12
    args = tuple(with_layout(x, layout) for x, layout in zip(other.args, layouts, strict=False))
    variables, out = recorded(dataclasses.replace(case, args=args), copy=False)
    assert out.dtype == np.asarray(case.function(*args)).dtype
    for create_graph in (False, True):
        gradients = gradient(out, variables, adjoint=with_layout(u, layouts[0]), create_graph=create_graph)
        for i, x in enumerate(variables):
            assert in_native_order(gradients[x].dtype) == in_native_order(x.dtype)
            close(gradients[x], expected[i], rtol, f"cotangent {i}")
    along = [with_layout(t.astype(x.dtype), layout) for t, x, layout in zip(v, other.args, layouts, strict=False)]
    pushed = jvp(case.function, args, along)[1]
    assert in_native_order(pushed.dtype) == in_native_order(out.dtype)
    close(pushed, tangent, rtol, "tangent")


def check_rule(case: Case, layouts: Sequence[str], single: Sequence[bool]) -> None:
    # A variable copies an array with strides of zero, and BLAS rounds products of the copy differently.
    check_value(dataclasses.replace(case, args=tuple(np.array(x) for x in case.args)))
    for check in (check_reverse, check_forward, check_second_order):
        check(case)
    check_dtypes_and_layouts(case, layouts, single)


@pytest.mark.parametrize("count", FEW_AND_MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_rule_kind_agrees_in_both_modes(kind: str, count: int) -> None:
    """Both modes, first and second order, on any shapes, dtypes and layouts."""
    layouts, single = st.tuples(ALL_LAYOUTS, ALL_LAYOUTS, ALL_LAYOUTS), st.tuples(st.booleans(), st.booleans(), st.booleans())
    search(check_rule, count, case=KINDS[kind], layouts=layouts, single=single)


@pytest.mark.parametrize("lay", LAYOUTS.values(), ids=LAYOUTS)
def test_cotangent_layout_is_ignored(lay: Any) -> None:
    """Cotangents that are not contiguous, of a rule that returns its cotangent."""
    for x in (real(2, 3), complexes(2, 3)):
        variable = cg.variable(x)
        u = lay(real(2, 2, 3, seed=1))
        assert np.array_equal(gradient(variable + np.zeros((2, 1, 1)), adjoint=u)[variable], u.sum(axis=0))
