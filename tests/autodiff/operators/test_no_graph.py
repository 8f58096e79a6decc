"""Results computed within `no_graph` are constants in every mode."""

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

X = np.array([2.0, 3.0])


def factor(x):
    with cg.no_graph():
        y = x * x
    return np.sum(x * y)


def item(x):
    a = np.zeros(2)
    a[:] = x * 2
    with cg.no_graph():
        a[0] = x[1] * 3
    return np.sum(a * x)


def new_array(x):
    with cg.no_graph():
        a = np.zeros(2)
        a[:] = x
    a[1] = x[0]
    return np.sum(a * x)


def in_place(x):
    a = x * 2
    with cg.no_graph():
        a *= x
        np.add(a, x, out=a)
        np.add.at(a, [0, 0], x[1])
        a.sort()
    return np.sum(a * x)


def argument(x):
    x[0] = x[1] * 2
    with cg.no_graph():
        x[1] = x[0]
    return np.sum(x * x)


def number(x):
    s = x[0]
    with cg.no_graph():
        s += x[1]
    return s * x[0] * x[0]


def operators(x):
    with cg.no_graph():
        g = ad.grad(lambda z: np.sum(z**3 * x))(x)
        t = ad.jvp(lambda z: np.sum(z**2 * x), (np.ones(2),), (x,))[1]
        m = ad.vmap(lambda z: z * x[0])(x)
    return np.sum((g + t + m) * x)


@cg.no_graph()
def squares(x):
    return x * x


def decorated(x):
    return np.sum(squares(x) * x)


def view(x):
    with cg.no_graph():
        v = x[::-1].reshape(1, 2)
    return np.sum(v * x)


# The derivative, and that of it, where what no_graph computed is constant.
CASES = {
    factor: ([4, 9], np.zeros((2, 2))), item: ([9, 12], [[0, 0], [0, 4]]), new_array: ([5, 2], [[0, 1], [1, 0]]),
    in_place: ([16, 21], np.zeros((2, 2))), argument: ([0, 24], [[0, 0], [0, 8]]), number: ([20, 0], [[10, 0], [0, 0]]),
    operators: (None, np.zeros((2, 2))), decorated: ([4, 9], np.zeros((2, 2))), view: ([3, 2], np.zeros((2, 2))),
}  # fmt: skip


@for_each("f", CASES, ids=lambda f: f.__name__)
def test_no_graph_blocks_every_derivative(f):
    slopes, curvatures = CASES[f]
    slopes = ad.grad(f)(X) if slopes is None else slopes
    rows = np.stack([X, X + 1])
    pushed = [ad.jvp(f, (X,), (e,)) for e in np.eye(2)]
    batched = [ad.vmap(lambda x, e=e: ad.jvp(f, (x,), (e,))[1])(rows)[0] for e in np.eye(2)]
    around = [ad.jvp(lambda r: ad.vmap(f)(r)[0], (rows,), (np.stack([e, e]),))[1] for e in np.eye(2)]
    gradients = [
        ad.grad(f)(X), [t for _, t in pushed], ad.jacfwd(f)(X), ad.vmap(ad.grad(f))(rows)[0], batched, around,
        ad.grad(lambda r: ad.vmap(f)(r)[0])(rows)[0],
    ]  # fmt: skip
    for gradient in gradients:
        np.testing.assert_allclose(gradient, slopes, rtol=1e-12)
    for hessian in (
        ad.hessian,
        lambda f: ad.jacfwd(ad.grad(f)),
        lambda f: ad.jacfwd(ad.jacfwd(f)),
        lambda f: ad.jacrev(ad.grad(f)),
    ):
        np.testing.assert_allclose(hessian(f)(X), curvatures, atol=1e-12)
    assert {float(pushed[0][0]), float(ad.value_and_grad(f)(X)[0]), float(ad.vmap(f)(rows)[0])} == {float(f(X.copy()))}


@for_each("is_inside", [True, False])
def test_no_graph_view_is_read_only(is_inside):
    def f(x):
        a = x * 1
        with cg.no_graph():
            v = a[:1]
            if is_inside:
                v *= 2
        v *= 2
        return np.sum(a * x)

    for derive in (ad.grad(f), ad.jacfwd(f), lambda x: ad.jvp(f, (x,), (x,)), lambda x: ad.vmap(ad.grad(f))(x[None])):
        with pytest.raises((ValueError, cg.LeakError)):
            derive(X)
