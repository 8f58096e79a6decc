"""Constructors of arrays from nodes: NumPy's values, with a complete graph."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads
from autodiff.reverse import gradient
from tests.support.failures import Failures

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


CREATED: list[tuple[Any, Any]] = [
    (lambda x: cg.array([x[0, 0], x[1, 2] * 2, 3.0]), lambda x: np.array([x[0, 0], x[1, 2] * 2, 3.0])),
    (lambda x: cg.array([[x[0, 0], 1], [2, x[1, 1]]]), lambda x: np.array([[x[0, 0], 1], [2, x[1, 1]]])),
    (lambda x: cg.array([x, x]), lambda x: np.array([x, x])),
    (lambda x: cg.array(x, ndmin=4), lambda x: np.array(x, ndmin=4)),
    (lambda x: cg.array(x, dtype="float32"), lambda x: np.array(x, dtype="float32")),
    (lambda x: cg.array(x, order="F"), lambda x: np.array(x, order="F")),
    (lambda x: cg.asarray([x[0], (1.0, 2.0, 3.0)]), lambda x: np.asarray([x[0], (1.0, 2.0, 3.0)])),
    (lambda x: cg.asarray(x, "float64"), lambda x: np.asarray(x, "float64")),
    (lambda x: cg.asarray(x, order="F"), lambda x: np.asarray(x, order="F")),
    (cg.asarray_chkfinite, np.asarray_chkfinite),
    (lambda x: cg.ascontiguousarray(x.T), lambda x: np.ascontiguousarray(x.T)),
    (lambda x: cg.ascontiguousarray(x[0, 0]), lambda x: np.ascontiguousarray(x[0, 0])),
    (cg.asfortranarray, np.asfortranarray),
    (lambda x: cg.full((4, 2, 3), x), lambda x: np.full((4, 2, 3), x)),
    (lambda x: cg.full(5, x[0, 0], dtype="float32"), lambda x: np.full(5, x[0, 0], dtype="float32")),
    (lambda x: cg.full((2, 3), x, order="F"), lambda x: np.full((2, 3), x, order="F")),
    (
        lambda x: cg.as_strided(x, (4, 3), (8, 8)),
        lambda x: np.lib.stride_tricks.as_strided(x, (4, 3), (8, 8)),
    ),
    (lambda x: cg.as_strided(x, (2, 2), (8, 24)), lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (8, 24))),
]


def test_creation_functions_match_numpy_and_differences() -> None:
    with Failures("functions that make arrays") as failures:
        for k, (ours, numpys) in enumerate(CREATED):
            with failures.case(f"call {k}"):
                check_creation(ours, numpys)


def check_creation(ours: Any, numpys: Any) -> None:
    """Compare value, dtype and order with NumPy's, and derivatives with differences."""
    result, expected = ours(cg.variable(X)), numpys(X)
    assert isinstance(result, cg.Node)
    assert np.array_equal(result.value, expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert result.flags.f_contiguous == expected.flags.f_contiguous
    plain = ours(X)
    assert (plain.shape, plain.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(plain, expected)
    tolerance = 1e-2 if expected.dtype == np.float32 else 1e-6
    check_grads(lambda x: ours(x).astype(float), [X], order=2 if tolerance < 1e-3 else 1, rtol=tolerance)


@pytest.mark.parametrize("make", [cg.array, lambda a: cg.full((4, 2, 3), a), cg.zeros_like, cg.empty_like, lambda a: cg.ones(3)])
def test_creation_functions_return_writable_arrays(make: Any) -> None:
    """Of plain numbers: a node without operands, over memory of its own; without a graph a plain array."""
    array = make(cg.variable(X) if make in (cg.zeros_like, cg.empty_like) else X)
    array[...] = 7
    assert isinstance(array, cg.OperationalNode)
    assert np.all(array.value == 7)
    assert X[0, 0] == 1
    with cg.no_graph():
        assert type(make(X)) is np.ndarray


@pytest.mark.parametrize("convert", [cg.asarray, cg.asanyarray, cg.asarray_chkfinite, cg.ascontiguousarray, cg.asfortranarray])
def test_conversion_functions_keep_plain_arrays(convert: Any) -> None:
    assert type(convert(X)) is np.ndarray
    assert type(cg.as_strided(X, (4, 3), (8, 8))) is np.ndarray


def test_conversion_functions_keep_matching_node() -> None:
    x = cg.variable(X)
    assert cg.asarray(x) is x
    assert cg.ascontiguousarray(x) is x
    assert cg.array(x) is not x


def test_creation_functions_bad_requests_raise() -> None:
    x = cg.variable(X)
    with pytest.raises(ValueError, match="infs or NaNs"):
        cg.asarray_chkfinite([x[0, 0], np.inf])
    with pytest.raises(ValueError, match="lead beyond the 6 elements"):
        cg.as_strided(x, (4, 4), (8, 8))
    with pytest.raises(ValueError, match="C-contiguous"):
        cg.as_strided(x.T, (2, 2), (8, 8))
    with pytest.raises(ValueError, match="shape"):
        cg.array([x, x[0]])


def test_array_of_list_filled_in_loop() -> None:
    x = cg.variable([0.5, 1.5], "x")
    rows = [x * k for k in range(5)]
    assert np.array_equal(gradient(np.sum(cg.array(rows)))["x"], [10.0, 10.0])


MODES = [True, None, False, 1, 0, np._CopyMode.ALWAYS, np._CopyMode.IF_NEEDED, np._CopyMode.NEVER]
OPERANDS: dict[str, Any] = {
    "array": lambda x: x,
    "another order": lambda x: x.T,
    "list": lambda x: [[x[0, 0], x[1, 1]], [1.0, 2.0]],
    "list of rows": lambda x: [x[0], x[1]],
}


OPTIONS: list[dict[str, Any]] = [{}, {"dtype": "float32"}, {"dtype": "float64"}, {"order": "C"}, {"order": "F"}, {"order": "A"}]


@pytest.mark.parametrize("name", ["array", "asarray", "asanyarray"])
def test_copy_option_matches_numpy(name: str) -> None:
    with Failures(name) as failures:
        for options, operand, copy in itertools.product(OPTIONS, OPERANDS, MODES):
            with failures.case(f"copy={copy!r} of {operand}, {options}"):
                check_copy(name, options, operand, copy)


def check_copy(name: str, options: dict[str, Any], operand: str, copy: Any) -> None:
    """Compare value, dtype, order, and whether memory is shared, with NumPy's."""
    x = cg.variable(X)
    node, plain = OPERANDS[operand](x), OPERANDS[operand](X)
    try:
        expected = getattr(np, name)(plain, copy=copy, **options)
    except ValueError:
        with pytest.raises(ValueError, match="Unable to avoid copy while creating an array as requested"):
            getattr(cg, name)(node, copy=copy, **options)
        return
    result = getattr(cg, name)(node, copy=copy, **options)
    assert np.array_equal(result.value, expected)
    assert (result.dtype, result.flags.f_contiguous) == (expected.dtype, expected.flags.f_contiguous)
    shared = isinstance(plain, np.ndarray) and np.shares_memory(plain, expected)
    assert np.shares_memory(result.value, x.value) == shared
    assert gradient(result)[x][0, 0] == 1


def test_nan_to_num_copy_option_matches_numpy() -> None:
    with Failures("nan_to_num") as failures:
        for copy in MODES:
            with failures.case(f"copy={copy!r}"):
                plain, node = np.array([1.0, np.nan]), np.copy(cg.variable([1.0, np.nan]))
                assert np.array_equal(np.nan_to_num(plain, copy=copy), np.nan_to_num(node, copy=copy))
                assert np.isnan(plain[1]) == np.isnan(node.value[1])
