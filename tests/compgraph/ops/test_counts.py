"""Integer nodes where NumPy takes integers: axes, shifts, sizes, numbers of sections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads
from autodiff.reverse import gradient
from tests.support.arguments import real
from tests.support.failures import Failures

X = real(4, 6)
CALLS: dict[str, Any] = {
    "roll": lambda a, n: np.roll(a, n(2)),
    "roll along": lambda a, n: np.roll(a, (n(2), 1), axis=(0, 1)),
    "sum": lambda a, n: np.sum(a, axis=n(1)),
    "max": lambda a, n: np.max(a, n(0)),
    "repeat": lambda a, n: np.repeat(a, n(2)),
    "repeat some": lambda a, n: np.repeat(a, n([1, 2, 0, 1]), axis=n(0)),
    "reshape": lambda a, n: np.reshape(a, (n(3), -1)),
    "reshape, a node of sizes": lambda a, n: np.reshape(a, n([3, 8])),
    "take": lambda a, n: np.take(a, n([0, 7]), mode="wrap", axis=n(1)),
    "pad": lambda a, n: np.pad(a, ((n(1), 0), (0, n(2))), mode="reflect"),
    "linspace": lambda a, n: np.linspace(a[0, 0], a[1, 1], num=n(5)),
    "tile": lambda a, n: np.tile(a, (n(2), 1)),
    "transpose": lambda a, n: np.transpose(a, n([1, 0])),
    "cumsum": lambda a, n: np.cumsum(a, axis=n(1)),
    "fft": lambda a, n: np.abs(np.fft.fft(a, n=n(4))),
    "norm": lambda a, n: np.linalg.norm(a, axis=n(1)),
    "matrix_power": lambda a, n: np.linalg.matrix_power(a[:3, :3], n(3)),
    "concatenate": lambda a, n: np.concatenate([a, a], axis=n(1)),
    "stack": lambda a, n: np.stack([a, a], axis=n(1)),
    "split": lambda a, n: np.split(a, n(2))[1],
    "tril": lambda a, n: np.tril(a, n(1)),
    "polyder": lambda a, n: np.polyder(a[0], n(2)),
    "tensordot": lambda a, n: np.tensordot(a, a.T, axes=n(1)),
    "percentile": lambda a, n: np.percentile(a, 30, axis=n(0)),
    "hypot.reduce": lambda a, n: np.hypot.reduce(a, axis=n(1)),
}


def test_integer_argument_may_be_a_node() -> None:
    with Failures("calls") as failures:
        for name, call in CALLS.items():
            with failures.case(name):
                check_count(call)


def check_count(call: Any) -> None:
    """Compare a call whose integers are nodes with NumPy's, and check its derivatives."""
    expected = call(X, lambda value: value)
    result = call(cg.variable(X), lambda value: cg.constant(np.array(value)))
    assert isinstance(result, cg.Node)
    assert np.array_equal(result.value, expected)
    assert result.dtype == expected.dtype
    check_grads(lambda x: call(x, lambda value: cg.constant(np.array(value)) if isinstance(x, cg.Node) else value), [X])


def test_integer_argument_computed_by_argmax() -> None:
    x = cg.variable(X)
    row = np.argmax(x[:, 0])
    rolled = np.roll(x, row, axis=0)
    assert any(operand is row for operand in rolled.operands)
    expected = np.zeros(X.shape)
    expected[-int(row), 0] = 1
    assert np.array_equal(gradient(rolled[0, 0])[x], expected)
    curved = gradient(np.sum(np.roll(x**3, row, axis=0)), create_graph=True)[x]
    np.testing.assert_allclose(gradient(np.sum(curved))[x], 6 * X)


def test_integer_argument_of_float_node_raises() -> None:
    x, k = cg.variable(X), cg.variable(1.0)
    for call in (lambda: np.roll(x, k), lambda: np.sum(x, axis=(k, 0)), lambda: np.linalg.norm(x, ord=k)):
        with pytest.raises(TypeError, match="cannot be a node"):
            call()
