"""reduce, accumulate, reduceat and outer of ufuncs: values bit for bit, derivatives against central differences."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads, grad, jvp
from autodiff.grads.ufunc_reductions import Fold
from autodiff.reverse import gradient
from tests.support.arguments import positive, real
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.hypot, np.maximum, np.minimum, np.fmax, np.fmin,
    np.logaddexp, np.logaddexp2, np.remainder, np.fmod, np.heaviside,
]  # fmt: skip
X = positive(3, 4)


def agree(function: Any, *args: Any) -> None:
    result, expected = function(*map(cg.variable, args)), function(*args)
    assert isinstance(result, cg.Node)
    assert (result.shape, result.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    assert np.array_equal(result.value, expected, equal_nan=True)


def check_outer(ufunc: np.ufunc) -> None:
    """Check ``outer`` of arrays, numbers and lists."""
    agree(ufunc.outer, X[0], X[:, 0])
    agree(lambda x: ufunc.outer(X, x), X[0, 0])
    agree(lambda x: ufunc.outer(x, [1.5, 0.7]), X)
    check_grads(ufunc.outer, [X[0], positive(2, seed=3)], order=1)


def check_reduce(ufunc: np.ufunc) -> None:
    """Check ``reduce`` along each axis, and of a vector."""
    order = 2 if ufunc not in (np.remainder, np.fmod) else 1
    for axis in (0, 1, -1):
        agree(lambda x, axis=axis: ufunc.reduce(x, axis=axis), X)
        agree(lambda x, axis=axis: ufunc.reduce(x, axis=axis, keepdims=True), X)
        check_grads(lambda x, axis=axis: ufunc.reduce(x, axis), [X], order=order)
    agree(ufunc.reduce, X[0])
    agree(ufunc.reduce, X[0, :1])
    agree(lambda x: ufunc.reduce(x, dtype=np.float64), X[0].astype(np.float32))


def check_accumulate(ufunc: np.ufunc) -> None:
    """Check ``accumulate`` along each axis."""
    for axis in (0, 1):
        agree(lambda x, axis=axis: ufunc.accumulate(x, axis=axis), X)
    check_grads(lambda x: ufunc.accumulate(x, axis=1), [X], order=1)


def check_reduceat(ufunc: np.ufunc) -> None:
    """Check ``reduceat`` of ordered and unordered indices."""
    for indices in ([0, 2], [1, 0, 3], [0, 1, 2, 3]):
        agree(lambda x, at=indices: ufunc.reduceat(x, at, axis=1), X)
    check_grads(lambda x: ufunc.reduceat(x, [0, 2], axis=1), [X], order=1)


def check_at(ufunc: np.ufunc) -> None:
    """Check ``at`` of single, unordered and repeated rows."""
    for rows in ([0], [2, 0], [1, 1], [0, 2, 0, 0]):

        def changed(x: Any, y: Any, rows: list[int] = rows) -> Any:
            target = x * 1.0
            ufunc.at(target, rows, y)
            return target

        others = positive(len(rows), 4, seed=5)
        agree(changed, X, others)
        agree(lambda x, changed=changed: changed(x, 0.8), X)
        check_grads(changed, [X, others], order=2 if ufunc not in (np.remainder, np.fmod) else 1)


METHODS = {
    "outer": check_outer,
    "reduce": check_reduce,
    "accumulate": check_accumulate,
    "reduceat": check_reduceat,
    "at": check_at,
}


@pytest.mark.parametrize("method", METHODS)
def test_ufunc_methods_of_binary_ufuncs(method: str) -> None:
    with Failures(method) as failures:
        for ufunc in BINARY:
            with failures.case(ufunc.__name__):
                METHODS[method](ufunc)


def test_reduce_where_and_initial() -> None:
    mask = X > 1.2
    agree(lambda x: np.logaddexp.reduce(x, axis=1, where=mask), X)
    agree(lambda x: np.hypot.reduce(x, axis=1, where=mask, initial=2.0), X)
    agree(lambda x: np.subtract.reduce(x, axis=0, initial=2.0), X)
    check_grads(lambda x: np.logaddexp.reduce(x, axis=1, where=mask), [X])
    check_grads(lambda x: np.logaddexp.reduce(x, axis=0, initial=0.3), [np.array(1.2)])  # NumPy accepts axes of a 0-d array
    with pytest.raises(ValueError, match="does not have an identity"):
        np.subtract.reduce(cg.variable(X), where=mask)


def test_ufunc_methods_unsupported_arguments_raise() -> None:
    x = cg.variable(X)
    with pytest.raises(TypeError, match=r"np\.logaddexp\.reduce\(\.\.\., out=plain array\)"):
        np.logaddexp.reduce(x, out=np.empty(4))
    with pytest.raises(TypeError, match=r"np\.logaddexp\.reduce.*that dtype"):
        np.logaddexp.reduce(x, out=cg.zeros(4, np.float32))
    with pytest.raises(IndexError, match="out-of-bounds"):
        np.add.reduceat(x, [0, 9])


OPTIONS: dict[str, dict[str, Any]] = {
    "all axes": {"axis": None},
    "two axes": {"axis": (2, 0)},
    "two axes, keepdims": {"axis": (0, -1), "keepdims": True},
    "no axes": {"axis": ()},
    "all axes, where": {"axis": None, "where": positive(2, 3, 2) > 1},
    "two axes, where, keepdims": {"axis": (0, 2), "where": np.array([True, False]), "keepdims": True},
    "initial": {"axis": (0, 1), "initial": 1.5},
    "initial None": {"axis": 1, "initial": None},
    "dtype": {"axis": 0, "dtype": np.float64},
}


@pytest.mark.parametrize("ufunc", [np.hypot, np.logaddexp, np.logaddexp2], ids=lambda u: u.__name__)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_reduce_over_several_axes(ufunc: np.ufunc, options: dict[str, Any]) -> None:
    x = real(2, 3, 2)
    agree(lambda x: ufunc.reduce(x, **options), x)
    check_grads(lambda x: ufunc.reduce(x, **options), [x])


@pytest.mark.parametrize("ufunc", [np.fmax, np.fmin], ids=lambda u: u.__name__)
def test_reduce_without_an_identity_over_several_axes(ufunc: np.ufunc) -> None:
    agree(lambda x: ufunc.reduce(x, axis=None), X)
    check_grads(lambda x: ufunc.reduce(x, axis=(0, 1), keepdims=True), [X])


def test_reduce_starts_with_identity() -> None:
    """``hypot.reduce`` of one number is its absolute value."""
    agree(np.hypot.reduce, np.array([-3.0]))
    assert grad(np.hypot.reduce)(np.array([-3.0]))[0] == -1
    agree(np.hypot.accumulate, np.array([-3.0, 1.0]))
    check_grads(np.hypot.accumulate, [np.array([-3.0, 1.0])])
    check_grads(lambda x: np.hypot.reduceat(x, [0, 1]), [np.array([-3.0, 1.0])])


def test_reduce_initial_as_node() -> None:
    mask = X > 1.2
    for call in (
        lambda x, y: np.hypot.reduce(x, axis=(0, 1), initial=y),
        lambda x, y: np.subtract.reduce(x, axis=1, initial=y, keepdims=True),
        lambda x, y: np.divide.reduce(x, axis=0, initial=y, where=mask),
        lambda x, y: np.logaddexp.reduce(x[:, :0], axis=1, initial=y),
    ):
        agree(call, X, np.array(1.3))
        check_grads(call, [X, np.array(1.3)])


def test_reduce_where_as_node() -> None:
    check_grads(lambda x: np.hypot.reduce(x, axis=1, where=x > 1.2), [X])


def test_ufunc_methods_of_empty_arrays() -> None:
    for call in (lambda x: np.hypot.reduce(x, axis=0), np.hypot.accumulate, lambda x: np.hypot.reduce(x, axis=1, initial=2.0)):
        for shape in ((0, 3), (3, 0)):
            agree(call, np.zeros(shape))
            x = cg.variable(np.zeros(shape))
            assert gradient(np.sum(call(x)))[x].shape == shape


@pytest.mark.parametrize("ufunc", [np.subtract, np.hypot, np.arctan2], ids=lambda u: u.__name__)
def test_ufunc_methods_dtype_option(ufunc: np.ufunc) -> None:
    x = X.astype(np.float32)
    agree(lambda x: ufunc.accumulate(x, axis=1, dtype=np.float64), x)
    agree(lambda x: ufunc.outer(x, X[0], dtype=np.float64), x)
    agree(lambda x: ufunc.reduceat(x, [0, 2], axis=1, dtype=np.float64), x)
    assert grad(lambda x: np.sum(ufunc.accumulate(x, dtype=np.float64)))(x).dtype == np.float32
    agree(lambda x: ufunc.outer(x, x, dtype=np.float32, casting="same_kind"), X[0])


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2, np.float_power], ids=lambda u: u.__name__)
def test_accumulate_and_outer_of_unreliable_reductions(ufunc: np.ufunc) -> None:
    agree(lambda x: ufunc.accumulate(x, axis=1), X)
    agree(ufunc.outer, X[0], X[:, 0])
    check_grads(lambda x: ufunc.accumulate(x, axis=1), [X], order=1)


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2, np.float_power, np.subtract], ids=lambda u: u.__name__)
def test_reduce_differing_from_its_steps_raises(ufunc: np.ufunc) -> None:
    with Failures(ufunc.__name__) as failures:
        for axis, length in itertools.product((0, 1), (2, 4, 19)):
            with failures.case(f"axis {axis}, length {length}"):
                check_reductions(ufunc, axis, length)


def check_reductions(ufunc: np.ufunc, axis: int, length: int) -> None:
    """Check that a derivative is that of NumPy's value, or raises.

    NumPy 2.4 with AVX-512: power.reduce([2.3, 1.3, 1.9]) is not (2.3 ** 1.3) ** 1.9.
    """
    x = 1 + 0.1 * positive(2, length).reshape((2, length) if axis else (length, 2))
    steps = np.moveaxis(x, axis, 0)
    for call, expected in (
        (lambda x: ufunc.reduce(x, axis=axis), functools.reduce(ufunc, steps)),
        (lambda x: ufunc.reduceat(x, [0], axis=axis), np.expand_dims(functools.reduce(ufunc, steps), axis)),
    ):
        agree(call, x)
        if np.allclose(call(x), expected):
            check_grads(call, [x], order=1)
        else:
            with pytest.raises(RuntimeError, match=rf"np\.{ufunc.__name__}\.reduce.*Use np\.{ufunc.__name__}\.accumulate"):
                grad(lambda x, call=call: np.sum(call(x)))(x)
            with pytest.raises(RuntimeError, match="differs from that of its steps"):
                jvp(call, [x], [x])


def test_reduce_check_detects_wrong_value() -> None:
    """Whatever NumPy does on this machine."""
    fold = Fold(np.power, np.array([2.3, 1.3, 1.9]))
    assert fold.verify("reduce", fold.results[-1], (2.3**1.3) ** 1.9) is fold
    with pytest.raises(RuntimeError, match=r"np\.power\.reduce"):
        fold.verify("reduce", fold.results[-1], 4.867241422451982)


@pytest.mark.parametrize("ufunc", [np.greater, np.not_equal, np.logical_xor, np.logical_and], ids=lambda u: u.__name__)
def test_ufunc_methods_of_comparisons_are_recorded(ufunc: np.ufunc) -> None:
    agree(ufunc.outer, X[0], X[:, 0])
    agree(lambda x: ufunc.reduce(x > 1.2, axis=1), X)
    agree(lambda x: ufunc.accumulate(x > 1.2, axis=1), X)
    agree(lambda x: ufunc.reduceat(x > 1.2, [0, 2], axis=1), X)


def test_accumulate_of_floor_divide_keeps_first_element() -> None:
    x = positive(3, 4) * [[9.0], [1.0], [1.0]]
    agree(np.floor_divide.outer, x[0], x[1])
    for call in (
        np.floor_divide.accumulate,
        np.floor_divide.reduce,
        lambda x: np.floor_divide.reduceat(x, [0, 2], axis=0),
        lambda x: np.floor_divide.reduce(x[:1]),
    ):
        agree(call, x)
        check_grads(call, [x])
    assert np.array_equal(grad(lambda x: np.sum(np.floor_divide.accumulate(x)))(x), [[1.0] * 4, [0.0] * 4, [0.0] * 4])


@pytest.mark.parametrize(
    "clip",
    [
        lambda p, x: p.clip(0.5, x),
        lambda p, x: p.clip(x, 1.5),
        lambda p, x: p.clip(x - 1, x + 0.5),
        lambda p, x: p.clip(max=x),
        lambda p, x: p.clip(x),
        lambda p, x: p.clip(None, x),
    ],
)
def test_clip_of_plain_array(clip: Any) -> None:
    """`ndarray.clip` calls a ufunc that has no public name in NumPy."""
    plain, x = np.array([0.1, 1.2, 3.0]), np.array([0.4, 0.8, 1.4])
    result = clip(plain, cg.variable(x))
    assert isinstance(result, cg.Node)
    assert np.array_equal(result.value, clip(plain, x))
    check_grads(lambda x: clip(plain, x), [x])


def test_clip_of_plain_array_into_node() -> None:
    x, out = cg.variable([0.4, 0.8, 1.4]), cg.zeros(3)
    assert np.array([0.1, 1.2, 3.0]).clip(0.0, x, out=out) is out
    assert np.array_equal(gradient(out)[x], [0, 1, 1])
