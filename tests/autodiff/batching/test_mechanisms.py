"""Batching of each kind of rule, on any shapes and dtypes, against loops: cotangents, tangents, and functions under vmap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

import autodiff as ad
import compgraph as cg
from autodiff.batching import gather_batch, pad_ndim, reduced_axes, scatter_batch
from tests.support.arguments import Case, Shape, real
from tests.support.cases.mechanisms import KINDS, search
from tests.support.checks.batching import require_same, stacked
from tests.support.checks.jacobians import check_one_tangent, check_together, check_together_on_gradients

pytestmark = pytest.mark.portable

FEW_AND_MANY = [pytest.param(30, id="few"), pytest.param(200, id="many", marks=pytest.mark.exhaustive)]
FEW_AND_MANY_CHEAP = [pytest.param(40, id="few"), pytest.param(600, id="many", marks=pytest.mark.exhaustive)]

# -------------------------------------------------------------------- batches of cotangents and tangents


def check_directions(case: Case) -> None:
    check_one_tangent(case)
    check_together(case)
    check_together_on_gradients(case)


@pytest.mark.parametrize("count", FEW_AND_MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_batched_directions_of_rule_kind_match_loop(kind: str, count: int) -> None:
    """Batches of cotangents and of tangents, by the rule and by its gradient, are passed as by a loop."""
    search(check_directions, count, case=KINDS[kind])


def check_positions(shape: Shape, places: Sequence[int], out: Shape, size: int) -> None:
    x = real(*shape)
    width = max(1, int(np.prod(out)))
    chosen = np.resize([p % (x.size + 1) - 1 for p in places] or [-1], width)[: np.prod(out, dtype=int)].reshape(out)
    tangents, cotangents = real(size, *shape, seed=1), real(size, *out, seed=2)
    result = gather_batch(tangents, chosen)
    expected = [[t.flat[p] if p >= 0 else 0 for p in chosen.flat] for t in tangents]
    assert np.array_equal(result, np.reshape(expected, (size, *out)))
    total = np.zeros((size, x.size))
    for row, cotangent in zip(total, cotangents, strict=True):
        for p, a in zip(chosen.flat, cotangent.flat, strict=True):
            if p >= 0:
                row[p] += a
    np.testing.assert_allclose(np.asarray(scatter_batch(cotangents, x, chosen)), total, rtol=1e-14)


@pytest.mark.parametrize("count", FEW_AND_MANY_CHEAP)
def test_moved_positions_follow_batch_axis(count: int) -> None:
    shapes = array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    places = st.lists(st.integers(0, 30), max_size=8)
    search(check_positions, count, shape=shapes, places=places, out=shapes, size=st.integers(1, 3))


def test_reduced_axes_follow_batch_axis() -> None:
    for shape, axis, expected in [((), None, ()), ((2, 3), None, (1, 2)), ((2, 3), -1, (2,)), ((2, 3, 1), (0, -1), (1, 3))]:
        assert reduced_axes(np.ones(shape), axis) == expected


def test_padded_inserts_axes_after_batch_axis() -> None:
    assert pad_ndim(np.ones((4, 3)), 3).shape == (4, 1, 1, 3)
    assert pad_ndim(np.ones((4, 3)), 1).shape == (4, 3)


# ------------------------------------------------------------------------------- functions under vmap


def batch_of(x: Any, count: int, axis: int) -> Any:
    """Different values near `x`, along a batch axis."""
    rows = [np.asarray(x * x.dtype.type(1 + 0.003 * k)) for k in range(count)]
    return np.stack(rows, axis=axis)


def element(x: Any, axis: int | None, k: int) -> Any:
    return x if axis is None else np.asarray(np.moveaxis(x, axis, 0)[k])


def direction(x: Any) -> Any:
    """Numbers of the shape and dtype of an array, the same for all batch elements, along which nothing cancels."""
    return np.cos(1.0 + np.arange(np.prod(x.shape, dtype=int))).reshape(x.shape).astype(x.dtype)


def pull_batch(f: Callable[..., Any]) -> Callable[..., Any]:
    def derivative(*args: Any) -> Any:
        out, pull = ad.vjp(f, *args)
        return pull(direction(out))

    return derivative


def pushed(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: ad.jvp(f, args, tuple(map(direction, args)))[1]


def check_vmap(case: Case, batched: Sequence[bool], size: int, data: st.DataObject) -> None:
    """`vmap` over some of the arguments, along any of their axes, is a loop; of the function and of its derivatives."""
    chosen = list(batched[: len(case.args)])
    if not any(chosen):
        chosen[0] = True
    axes = tuple([data.draw(st.integers(-x.ndim - 1, x.ndim)) if b else None for x, b in zip(case.args, chosen, strict=True)])
    args = [x if axis is None else batch_of(x, size, axis) for x, axis in zip(case.args, axes, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in (case.function, pull_batch(case.function), pushed(case.function)):
            result = ad.vmap(f, in_axes=axes)(*args)
            rows = [[element(x, axis, k) for x, axis in zip(args, axes, strict=True)] for k in range(size)]
            require_same(result, stacked([f(*row) for row in rows]))


@pytest.mark.parametrize("count", FEW_AND_MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_vmap_of_rule_kind(kind: str, count: int) -> None:
    flags = st.tuples(st.booleans(), st.booleans(), st.booleans())
    search(check_vmap, count, case=KINDS[kind], batched=flags, size=st.sampled_from((1, 3)), data=st.data())


def check_nested_vmap(shapes: Any) -> None:
    """Two batch axes, each of another argument."""
    x, y = real(2, *shapes.input_shapes[0], seed=1), real(3, *shapes.input_shapes[1], seed=2)

    def f(x: Any, y: Any) -> Any:
        return np.sum(np.maximum(x * y, np.sin(y)))

    each = ad.vmap(ad.vmap(ad.grad(f), in_axes=(None, 0)), in_axes=(0, None))
    require_same(each(x, y), np.stack([np.stack([np.asarray(ad.grad(f)(a, b)) for b in y]) for a in x]))


@pytest.mark.parametrize("count", FEW_AND_MANY)
def test_nested_vmap_broadcasts_shapes(count: int) -> None:
    search(check_nested_vmap, count, shapes=mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=3, max_side=3))


def test_vmap_of_empty_batch_keeps_element_shape() -> None:
    """Of each kind of rule, with no batch elements."""
    x = np.zeros((0, 2, 3))
    for f, shape in [(np.sin, (2, 3)), (lambda x: np.sum(x, axis=0), (3,)), (np.transpose, (3, 2)), (cg.softmax, (2, 3))]:
        assert ad.vmap(f)(x).shape == (0, *shape)
