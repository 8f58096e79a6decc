"""Arguments that share memory are read-only: a write into one raises."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import autodiff as ad
from compgraph.trees import flatten
from tests.support.for_each import for_each

X, DIRECTION = np.array([1.0, 2.0]), np.array([1.0, -1.0])


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any


def reads(a, b):
    return np.sum(a * a * b)


def scales(a, b):
    a *= 2
    return np.sum(a * b)


def stores(a, b):
    b[0] = a[1] * 3
    return np.sum(a * b)


def writes_out(a, b):
    np.add(a, 1.0, out=a)
    return np.sum(a * b)


OPERATORS = {
    "grad": lambda f, x, y: ad.grad(f)(x, y),
    "grad, keyword": lambda f, x, y: ad.grad(lambda a, b: f(a, b))(x, b=y),
    "grad, second argument": lambda f, x, y: ad.grad(f, argnums=1)(x, y),
    "grad, both arguments": lambda f, x, y: ad.grad(f, argnums=(0, 1))(x, y),
    "grad, list": lambda f, x, y: ad.grad(lambda d: f(*d))([x, y]),
    "grad, tuple": lambda f, x, y: ad.grad(lambda d: f(*d))((x, y)),
    "grad, dictionary": lambda f, x, y: ad.grad(lambda d: f(**d))({"a": x, "b": y}),
    "grad, dataclass": lambda f, x, y: ad.grad(lambda d: f(d.a, d.b))(Pair(x, y)),
    "grad, captured": lambda f, x, y: ad.grad(lambda a: f(a, y))(x),
    "grad of grad": lambda f, x, y: ad.grad(lambda a, b: np.sum(ad.grad(f)(a, b)))(x, y),
    "grad around": lambda f, x, y: ad.grad(lambda t: ad.value_and_grad(f)(t, t)[0])(x),
    "vjp": lambda f, x, y: ad.vjp(f, x, y)[1](1.0),
    "jvp": lambda f, x, y: ad.jvp(f, (x, y), (DIRECTION, DIRECTION)),
    "jacobian": lambda f, x, y: ad.jacobian(f, argnums=(0, 1))(x, y),
    "jacfwd": lambda f, x, y: ad.jacfwd(f)(x, y),
    "hessian": lambda f, x, y: ad.hessian(f)(x, y),
    "vmap": lambda f, x, y: _twice(ad.vmap(f), x),
    "vmap of grad": lambda f, x, y: _twice(ad.vmap(ad.grad(f)), x),
    "vmap, shared": lambda f, x, y: ad.vmap(f, in_axes=(0, None))(np.stack([x, x]), y),
}


def _twice(f, x):
    rows = np.stack([x, x + 1])
    return f(rows, rows)


@for_each("f", [scales, stores, writes_out], ids=lambda f: f.__name__)
@for_each("name", OPERATORS)
def test_write_into_repeated_argument_raises(name, f):
    if name == "vmap, shared" and f is not stores:
        pytest.skip("only the argument of each example is written into")
    with pytest.raises((ValueError, TypeError), match=r"share.* memory|array from outside|all batch elements share"):
        OPERATORS[name](f, x := X.copy(), x)
    np.testing.assert_array_equal(x, X)


@for_each("name", [name for name in OPERATORS if name not in ("vmap", "vmap of grad", "grad around")])
def test_repeated_argument_is_readable(name):
    alias_output, apart = OPERATORS[name](reads, X, X), OPERATORS[name](reads, X, X.copy())
    for one, other in zip(flatten(alias_output)[0], flatten(apart)[0], strict=True):
        np.testing.assert_array_equal(one, other)


@for_each(("first", "second", "overlap"), [
    (np.s_[:2], np.s_[1:3], True), (np.s_[::-1], np.s_[:], True), (np.s_[::2], np.s_[1::2], False), (np.s_[:2], np.s_[2:], False),
])  # fmt: skip
def test_write_into_overlapping_view_raises(first, second, overlap):
    base = np.arange(1.0, 5)

    def f(a, b):
        a[0] *= b[0]
        return a[0] * b[1]

    if overlap:
        with pytest.raises(ValueError, match="share memory"):
            ad.grad(f, argnums=(0, 1))(base[first], base[second])
    else:
        a, b = base[first], base[second]
        np.testing.assert_allclose(ad.grad(f)(a, b)[0], b[0] * b[1])


def test_write_into_argument_sharing_captured_memory_raises():
    x = X.copy()

    def f(a):
        a[0] = 5.0
        return np.sum(a * x)

    with pytest.raises(ValueError, match="share memory"):
        ad.grad(f)(x)
    with pytest.raises(ValueError, match="share memory"):
        ad.jvp(f, (x,), (DIRECTION,))


def test_write_into_list_element_sharing_memory_raises():
    def f(a, others):
        others[0] *= 2
        return np.sum(a * others[0])

    with pytest.raises(ValueError, match=r"shares? memory"):
        ad.grad(f)(x := X.copy(), [x])


def test_vmap_write_into_unbatched_argument_raises():
    def f(x, total):
        total += 1
        return np.sum(x * total)

    with pytest.raises(ValueError, match="all batch elements share"):
        ad.vmap(f, in_axes=(0, None))(np.ones((2, 2)), np.zeros(2))
    returned = ad.vmap(lambda a, b: a, in_axes=(0, 0))(rows := np.ones((2, 2)), rows)
    assert returned.flags.writeable
    assert not np.shares_memory(returned, rows)
