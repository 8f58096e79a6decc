"""``ufunc.at`` within `vmap`, at indices per batch element, against a loop over the elements and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.numeric import gradient
from tests.support.for_each import for_each

RNG = np.random.default_rng(0)
XS, VS = RNG.uniform(0.5, 1.5, size=(3, 4)), RNG.uniform(0.5, 1.5, size=(3, 5))
INDICES = np.array([[0, 0, 3, -1, 0], [1, 2, -4, 3, 3], [2, 1, 0, -2, 1]])  # some name a place several times
OTHERS = np.array([[0, 1, 0, 0, 1], [1, 1, 1, 0, 1], [0, 0, -1, 1, 0]])
Function = Callable[..., Any]


def update_at(ufunc: Any, target: Any, index: Any, *others: Any) -> Any:
    ufunc.at(target, index, *others)
    return target


def update_view(x: Any, i: Any, v: Any) -> Any:
    """Update a view, and the array that it is a view of."""
    whole = np.zeros((2, 4))
    np.add.at(whole[1], i, v)
    np.multiply.at(whole, (i % 2, i), v)
    return whole * x


def update_sequentially(x: Any, i: Any, v: Any) -> Any:
    y = np.zeros(4)
    for k in range(5):
        np.add.at(y, i[k], v[k] * x[k % 4])
    return y


def update_at_shared_indices(x: Any, i: Any, v: Any) -> Any:
    """At places that all examples share, too."""
    y = update_at(np.add, x * 1.0, np.array([0, 0, 1, -1, 2]), v)
    np.add.at(y, [3, 3], 2.0)
    np.subtract.at(y, np.array([True, False, True, False]), v[:2])
    np.multiply.at(y, slice(0, 2), v[:2])
    return update_at(np.add, y, ..., v[0])


CHANGES: dict[str, Function] = {
    **{
        ufunc.__name__: lambda x, i, v, ufunc=ufunc: update_at(ufunc, x * 1.0, i, v)
        for ufunc in (np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.hypot)
    },
    "negative": lambda x, i, v: update_at(np.negative, x * v[0], i),
    "square": lambda x, i, v: update_at(np.square, x * v[0], i),
    "number": lambda x, i, v: update_at(np.add, x * v[0], i, 2.0),
    "zeros": lambda x, i, v: update_at(np.add, np.zeros(4), i, v) * x,
    "zeros like": lambda x, i, v: update_at(np.multiply, np.ones_like(x), i, v) * x,
    "rows": lambda x, i, v: update_at(np.add, np.zeros((4, 5)), i, v * x[0]),
    "tuple": lambda x, i, v: update_at(np.add, np.outer(x, x[:2]), (i, i[::-1] % 2), v),
    "after a slice": lambda x, i, v: update_at(np.add, np.outer(x, x), (slice(1, 3), i), v[:2, None]),
    "before a slice": lambda x, i, v: update_at(np.add, np.outer(x, x), (i, slice(None, None, 2)), v[:, None]),
    "apart": lambda x, i, v: update_at(np.add, np.ones((4, 3, 4)) * x, (i, slice(None), i[::-1]), v[:, None]),
    "a number apart": lambda x, i, v: update_at(np.multiply, np.ones((3, 4, 4)) * x, (0, slice(None), i), v[:, None]),
    "ellipsis": lambda x, i, v: update_at(np.add, np.ones((3, 4)) * x, (..., i), v),
    "new axis": lambda x, i, v: update_at(np.add, x * 1.0, (None, i), v[None]),
    "table": lambda x, i, v: update_at(np.add, x * 1.0, np.reshape(i[:4], (2, 2)), np.reshape(v[:4], (2, 2))),
    "no places": lambda x, i, v: update_at(np.add, x * v[0], i[:0], 2.0),
    "one by one": update_sequentially,
    "view": update_view,
    "its own numbers": lambda x, i, v: update_at(np.add, x * v[0], i[:4], x * v[0]),
    "shared places": update_at_shared_indices,
}


@for_each("name", CHANGES)
def test_vmap_ufunc_at_matches_loop(name: str) -> None:
    f = CHANGES[name]
    each = list(zip(XS, INDICES, VS, strict=True))
    np.testing.assert_allclose(ad.vmap(f)(XS, INDICES, VS), np.stack([f(*one) for one in each]))

    total = lambda x, i, v: np.sum(f(x, i, v) ** 2)  # noqa: E731
    for position in (0, 2):
        of_each = ad.grad(total, argnums=position)
        gradients = np.stack([of_each(*one) for one in each])
        np.testing.assert_allclose(ad.vmap(of_each)(XS, INDICES, VS), gradients, atol=1e-12)

        def of_all(inputs: Any, position: int = position) -> Any:
            args = [inputs if k == position else a for k, a in enumerate((XS, INDICES, VS))]
            return np.sum(ad.vmap(f)(*args) ** 2)

        inputs = (XS, INDICES, VS)[position]
        along = RNG.normal(size=inputs.shape)
        np.testing.assert_allclose(ad.grad(of_all)(inputs), gradients, atol=1e-12)
        np.testing.assert_allclose(gradient(of_all, (inputs,))[0], gradients, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(ad.jvp(of_all, (inputs,), (along,))[1], np.sum(gradients * along))
    tangent = lambda x, i, v: ad.jvp(lambda x, v: f(x, i, v), (x, v), (x, v))[1]  # noqa: E731
    np.testing.assert_allclose(ad.vmap(tangent)(XS, INDICES, VS), np.stack([tangent(*one) for one in each]), atol=1e-12)


def test_vmap_ufunc_at_hessian() -> None:
    f = lambda x, i, v: np.sum(CHANGES["multiply"](x, i, v) ** 2)  # noqa: E731
    h = ad.hessian(f, argnums=2)
    expected = np.stack([h(*one) for one in zip(XS, INDICES, VS, strict=True)])
    np.testing.assert_allclose(ad.vmap(h)(XS, INDICES, VS), expected)


NESTED: dict[str, Function] = {
    "both": lambda x, i, j, v: update_at(np.add, np.zeros((4, 2)), (i, j), v * x[0]),
    "inner": lambda x, i, j, v: update_at(np.multiply, np.ones(2) + x[0] + np.sum(0.0 * j), j, v),
    "outer": lambda x, i, j, v: update_at(np.multiply, np.ones(4) * x + np.sum(0.0 * j), i, v),
    "numbers": lambda x, i, j, v: update_at(np.subtract, np.zeros(8), i + 4 * (j % 2), 2.0) * x[0],
}


@for_each("name", NESTED)
def test_nested_vmap_ufunc_at_indices(name: str) -> None:
    f = NESTED[name]
    expected = np.stack([[f(x, i, j, v) for j in OTHERS] for x, i, v in zip(XS, INDICES, VS, strict=True)])
    nested = lambda x, i, v: ad.vmap(lambda j: f(x, i, j, v))(OTHERS)  # noqa: E731
    np.testing.assert_allclose(ad.vmap(nested)(XS, INDICES, VS), expected)
    other = lambda j: ad.vmap(lambda x, i, v: f(x, i, j, v))(XS, INDICES, VS)  # noqa: E731
    np.testing.assert_allclose(ad.vmap(other, out_axes=1)(OTHERS), expected)

    g = ad.grad(lambda x, i, j, v: np.sum(f(x, i, j, v) ** 2))
    expected = np.stack([[g(x, i, j, v) for j in OTHERS] for x, i, v in zip(XS, INDICES, VS, strict=True)])
    within = lambda x, i, v: ad.vmap(lambda j: g(x, i, j, v))(OTHERS)  # noqa: E731
    np.testing.assert_allclose(ad.vmap(within)(XS, INDICES, VS), expected)


def test_vmap_ufunc_at_dtypes() -> None:
    single = ad.vmap(lambda x, i, v: update_at(np.add, x * 1, i, v))
    for xs, vs in ((XS.astype("f4"), VS), (XS, 1j), (INDICES, OTHERS), (XS[:0], VS[:0])):
        inputs = np.broadcast_to(vs, (len(xs), 5)) if np.ndim(vs) == 0 else vs
        xs = xs * (1j if np.iscomplexobj(vs) else 1)
        places = INDICES[: len(xs)]
        result = single(xs, places, inputs)
        rows = [update_at(np.add, np.copy(x), i, v) for x, i, v in zip(xs, places, inputs, strict=True)]
        expected = np.stack(rows) if rows else np.zeros((0, 4))
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_vmap_ufunc_at_keeps_array_of_caller() -> None:
    before = XS.copy()
    result = ad.vmap(lambda x, i: update_at(np.add, x, i, 1.0))(XS, INDICES)
    np.testing.assert_array_equal(XS, before)
    rows = [update_at(np.add, np.copy(x), i, 1.0) for x, i in zip(XS, INDICES, strict=True)]
    np.testing.assert_array_equal(result, np.stack(rows))


ERRORS: dict[str, tuple[Function, str]] = {
    "mask": (lambda x, i, v: update_at(np.add, x, x > 1, 1.0), "np.where"),
    "out of range": (lambda x, i, v: update_at(np.add, x, i + 9, 1.0), "out of bounds"),
    "shapes": (lambda x, i, v: update_at(np.add, x, i, v[:3]), "broadcast"),
    "more axes": (lambda x, i, v: update_at(np.add, x, i, v[None]), "not broadcastable"),
    "one for all": (lambda x, i, v: ad.vmap(lambda j: update_at(np.add, x, j, 1.0))(INDICES), "all batch elements share"),
    "a graph's": (lambda x, i, v: update_at(np.add, cg.constant(XS[0]), i, 1.0), "not supported"),
    "a number": (lambda x, i, v: update_at(np.add, x[0], (), 1.0), "scalar"),
    "too few": (lambda x, i, v: update_at(np.add, x, i), "second operand"),
    "too many": (lambda x, i, v: update_at(np.negative, x, i, v), "unary"),
}


@for_each("name", ERRORS)
def test_vmap_ufunc_at_bad_calls_raise(name: str) -> None:
    f, message = ERRORS[name]
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        ad.vmap(f)(XS, INDICES, VS)
