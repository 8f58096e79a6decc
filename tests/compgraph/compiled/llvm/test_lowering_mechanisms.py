"""Each kind of lowering at random shapes, dtypes and memory layouts, zero sizes among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

import compgraph as cg
from tests.support.machine_code import assert_same, compiled, program_of

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.executor import passes

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
FLOATING = [np.float64, np.float32]
DTYPES = [*FLOATING, np.int64, np.int16, np.uint8, np.bool_]
SHAPES = array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9)


def numbers(draw: Any, shape: Shape, dtype: Any, low: int = -3, high: int = 4) -> Array:
    """Small integers, with exact sums and products, in one of several memory layouts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    layout = draw(st.sampled_from(["C", "F", "strided", "reversed", "broadcast"]))
    wide = rng.integers(low, high, tuple(2 * n for n in shape)).astype(dtype)
    array: Array = wide[tuple(slice(n) for n in shape)]
    if layout == "strided":
        return wide[(slice(None, None, 2),) * len(shape)]
    if layout == "reversed":
        return array[(slice(None, None, -1),) * len(shape)]
    if layout == "broadcast" and shape and shape[0]:
        return np.broadcast_to(array[:1], shape)
    return np.asfortranarray(array) if layout == "F" else array.copy()


def assert_lowered(function: Callable[..., Any], *values: Array) -> None:
    """Compiled at ones, a function has the bits of NumPy, and nothing of it is called."""
    holders = [cg.placeholder(v.shape, v.dtype, example=np.ones(v.shape, v.dtype)) for v in values]
    executor = compiled([function(*holders), *holders])  # a write of no elements reads no operand
    outputs, *_ = executor.run(dict(zip(holders, values, strict=True)))
    assert_same(outputs, function(*values))
    if all(v.size for v in values):
        assert program_of(executor).report == []


def check_elementwise(data: st.DataObject) -> None:
    function = data.draw(
        st.sampled_from([np.add, np.multiply, np.maximum, np.less, np.equal, np.logical_or, lambda a, b: np.where(a > b, a, b)])
    )
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=9)).input_shapes
    a, b = (numbers(data.draw, shape, data.draw(st.sampled_from(DTYPES))) for shape in shapes)
    assert_lowered(function, a, b)


def check_reduction(data: st.DataObject) -> None:
    x = numbers(data.draw, data.draw(SHAPES), data.draw(st.sampled_from(DTYPES)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    reductions = [np.sum, np.prod, np.any, np.all, np.cumsum]
    if x.shape[axis]:
        reductions += [np.max, np.min, np.argmax, np.argmin]
    function = data.draw(st.sampled_from(reductions))
    keywords = {} if function is np.cumsum else {"keepdims": data.draw(st.booleans())}
    assert_lowered(lambda x: function(x, axis=axis, **keywords), x)


def check_views(data: st.DataObject) -> None:
    x = numbers(data.draw, data.draw(SHAPES), data.draw(st.sampled_from(DTYPES)))
    start, step = data.draw(st.integers(-3, 3)), data.draw(st.sampled_from([1, 2, -1, -2]))
    views: list[Callable[[Any], Any]] = [
        np.transpose,
        lambda x: np.moveaxis(x, 0, -1),
        lambda x: x[start::step],
        lambda x: x[..., None, start:],
        lambda x: np.broadcast_to(x, (2, *x.shape)),
        lambda x: np.reshape(x, (-1,)) if x.size else np.ravel(x),
        np.flip,
    ]
    first, second = data.draw(st.sampled_from(views)), data.draw(st.sampled_from(views))
    assert_lowered(lambda x: np.logical_not(second(np.logical_not(first(x)))), x)


def check_gather(data: st.DataObject) -> None:
    shape = data.draw(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
    x = numbers(data.draw, shape, data.draw(st.sampled_from(DTYPES)))
    axis = data.draw(st.integers(0, x.ndim - 1))
    n = x.shape[axis]
    index = numbers(data.draw, data.draw(array_shapes(min_dims=1, max_dims=2, max_side=5)), np.int64, -n, n)
    assert_lowered(lambda x: x[(slice(None),) * axis + (index,)], x)
    assert_lowered(lambda x: np.take(x, index, axis=axis), x)


def check_scatter(data: st.DataObject) -> None:
    shape = data.draw(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
    x = numbers(data.draw, shape, data.draw(st.sampled_from(FLOATING)))
    index = numbers(data.draw, (data.draw(st.integers(0, 5)),), np.int64, -len(x), len(x))
    value = numbers(data.draw, (len(index), *x.shape[1:]), x.dtype)
    kind = data.draw(st.sampled_from(["write", "update", "add.at"]))

    def scattered(x: Any, value: Any) -> Any:
        y = x * 2
        if kind == "write":
            y[index] = value
        elif kind == "update":
            y[index] += value
        else:
            np.add.at(y, index, value)
        return y

    assert_lowered(scattered, x, value)


def check_joining(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    shape = data.draw(SHAPES)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, y = (numbers(data.draw, shape, dtype) for _ in "xy")
    amount = data.draw(st.integers(0, 3))
    joined: list[Callable[[Any, Any], Any]] = [
        lambda x, y: np.concatenate([x, y, x], axis=axis),
        lambda x, y: np.stack([x, y], axis=axis),
        lambda x, y: np.roll(np.maximum(x, y), amount, axis=axis),
        lambda x, y: np.repeat(np.maximum(x, y), amount, axis=axis),
        lambda x, y: np.pad(np.maximum(x, y), amount),
        lambda x, y: np.tile(np.maximum(x, y), amount + 1),
    ]
    assert_lowered(data.draw(st.sampled_from(joined)), x, y)


def check_product(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(FLOATING))
    shapes = data.draw(mutually_broadcastable_shapes(signature="(m,k),(k,n)->(m,n)", max_dims=1, max_side=20)).input_shapes
    a, b = (numbers(data.draw, shape, dtype) for shape in shapes)
    assert_lowered(np.matmul, a, b)


CHECKS = [check_elementwise, check_reduction, check_views, check_gather, check_scatter, check_joining, check_product]


@pytest.mark.parametrize("examples", [pytest.param(6, id="few"), pytest.param(300, id="many", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("check", CHECKS)
def test_lowering_has_bits_of_numpy(
    check: Callable[[st.DataObject], None], examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        cg.reset()
        check(data)

    run()
