"""Results computed within `no_graph` are constants in every mode."""

import numpy as np
import pytest
from scipy import optimize

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


def read_earlier_view(x):
    a = np.sin(x) * x
    view = a[::-1]
    with cg.no_graph():
        np.cos(view)
    return np.sum(np.cos(a) * x)


def read_view_of_written_array(x):
    a = np.zeros(2)
    view = a[:]
    a[0] = x[1] ** 3
    with cg.no_graph():
        np.cos(view)
        np.cos(a)
    return np.sum(np.cos(a) * x + view * x * x)


def solve_with_captured_view(x):
    a = np.sin(x) * x
    optimize.fsolve(lambda q: q + 0.3 * np.sin(q) - a[:], np.zeros(2))
    return np.sum(np.cos(a) * x)


@for_each("f", [read_earlier_view, read_view_of_written_array, solve_with_captured_view])
def test_reading_a_view_within_no_graph_keeps_its_derivatives(f):
    """A view finds its value and its tangent when it is first read, which may be within `no_graph`."""
    x, direction = np.array([0.3, 0.5]), np.array([1.0, -2.0])
    basis = np.eye(2)
    slopes = lambda x: np.array([(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in basis])  # noqa: E731
    np.testing.assert_allclose(ad.grad(f)(x), slopes(x), rtol=1e-6)
    curvature = (ad.grad(f)(x + 1e-5 * direction) - ad.grad(f)(x - 1e-5 * direction)) / 2e-5
    along = lambda x: ad.jvp(f, (x,), (direction,))[1]  # noqa: E731
    np.testing.assert_allclose(along(x), slopes(x) @ direction, rtol=1e-6)
    np.testing.assert_allclose(ad.jvp(ad.grad(f), (x,), (direction,))[1], curvature, rtol=1e-6)
    np.testing.assert_allclose(ad.grad(along)(x), curvature, rtol=1e-6)
    np.testing.assert_allclose(ad.jvp(along, (x,), (direction,))[1], curvature @ direction, rtol=1e-6)
    if f is not solve_with_captured_view:
        np.testing.assert_allclose(ad.vmap(ad.grad(f))(x[None])[0], slopes(x), rtol=1e-6)
        np.testing.assert_allclose(ad.grad(lambda xs: np.sum(ad.vmap(f)(xs)))(x[None])[0], slopes(x), rtol=1e-6)
