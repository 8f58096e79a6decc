"""Forward-mode Jacobians of functions that write in place, by batched tangents, or cotangents where tangents raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import grad, jacfwd, jacobian, jacrev, jvp, vmap
from autodiff.reverse import Linearization

Function = Callable[..., Any]
POINT = np.array([0.3, 1.2, 0.7])


def heat(p: Any) -> Any:
    """Explicit steps of the heat equation, one row each."""
    u = np.zeros((6, 9))
    u[0] = p[0] * np.exp(-(((np.linspace(0, 1, 9) - p[1]) / p[2]) ** 2))
    for i in range(5):
        u[i + 1] = u[i]
        u[i + 1, 1:-1] += p[2] * (u[i, 2:] - 2 * u[i, 1:-1] + u[i, :-2])
    return u


def through_views(p: Any) -> Any:
    u = np.zeros((6, 3))
    even = u[::2]
    even[0] = p
    for i in (1, 2):
        even[i] = np.sin(even[i - 1]) * p[0]
    even[:, 1] *= 2
    u[1::2] += even[::-1]
    return u


def into_its_argument(p: Any) -> Any:
    p[1:] *= p[0]
    return np.concatenate([p, p])


def at_chosen_places(p: Any) -> Any:
    u = np.ones((4, 3))
    u[[0, 2, 2]] = p
    u[u > 1] = p[0] ** 2
    np.add.at(u, ([1, 1], [0, 2]), p[:2])
    return u.T


def by_functions(p: Any) -> Any:
    u = np.empty(6)
    np.multiply(p, p[::-1], out=u[:3])
    u[3:] = p
    u.sort()
    np.exp(u, out=u)
    return u


WRITING = {f.__name__: f for f in (heat, through_views, into_its_argument, at_chosen_places, by_functions)}


def require_near(actual: Any, expected: Any) -> None:
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def without_cotangents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let batches of cotangents raise."""

    def pull(*_: Any) -> Any:
        raise AssertionError("cotangents are passed back")

    monkeypatch.setattr(Linearization, "pull", pull)


@pytest.mark.parametrize("operator", [jacfwd, jacobian])
@pytest.mark.parametrize("name", WRITING)
def test_writes_jacobian_columns_use_tangents(name: str, operator: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    f = WRITING[name]
    expected = jacrev(f)(POINT)
    without_cotangents(monkeypatch)
    point = POINT.copy()
    require_near(operator(f)(point), expected)
    assert np.array_equal(point, POINT)


def test_writes_jacobian_tangents_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = jacrev(heat)(POINT)
    without_cotangents(monkeypatch)
    monkeypatch.setattr("autodiff.reverse.linearization.MAX_BATCH_BYTES", 500)
    require_near(jacfwd(heat)(POINT), expected)


def test_writes_jacobian_of_several_arguments_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def f(a: Any, b: Any, scale: float) -> Any:
        calls.append(1)
        u = np.zeros((2, 3))
        u[0], u[1] = a["x"] * b, scale * b
        u[1] *= u[0]
        return {"u": u, "last": u[1, 2], "other": np.sin(a["x"])}, scale

    arguments = {"x": 2.0}, POINT, 3.0
    expected, _ = jacrev(f, (0, 1), has_aux=True)(*arguments)
    without_cotangents(monkeypatch)
    calls.clear()
    jacobians, aux = jacfwd(f, (0, 1), has_aux=True)(*arguments)
    assert (len(calls), aux) == (2, 3.0)
    for key in expected:
        require_near(jacobians[key][0]["x"], expected[key][0]["x"])
        require_near(jacobians[key][1], expected[key][1])


def test_writes_jacobian_complex_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def analytic(z: Any) -> Any:
        u = np.zeros((4, 3), complex)
        u[0] = z
        for i in range(3):
            u[i + 1] = u[i] ** 2 + z[0]
        return u

    def real(z: Any) -> Any:
        u = np.zeros((2, 3))
        u[0], u[1] = np.abs(z), z.imag
        return u

    z = POINT + 1j * POINT[::-1]
    expected = [jacrev(f)(z) for f in (analytic, real)]
    without_cotangents(monkeypatch)
    for f, reference in zip((analytic, real), expected, strict=True):
        require_near(jacfwd(f)(z), reference)


def test_writes_jacobian_keeps_float32() -> None:
    matrix = jacfwd(into_its_argument)(POINT.astype(np.float32))
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, jacrev(into_its_argument)(POINT), rtol=1e-6)


def test_writes_jacobian_structural_zeros() -> None:
    def f(p: Any) -> Any:
        u = np.zeros((2, 3))
        u[0] = np.where(p > 0.5, np.sqrt(p - 0.5), 0)
        u[1] = p
        return u

    point = np.array([0.5, 0.7, 1.0])
    require_near(jacfwd(f)(point), jacrev(f)(point))


def test_writes_jacobian_of_inner_derivatives() -> None:
    def energy(p: Any) -> Any:
        u = np.zeros((2, 3))
        u[0] = np.sin(p)
        u[1] = u[0] * p[0]
        return np.sum(u**2)

    slopes = grad(energy)
    require_near(jacfwd(slopes)(POINT), jacrev(slopes)(POINT))
    require_near(jacfwd(jacfwd(through_views))(POINT), jacrev(jacrev(through_views))(POINT))
    require_near(jacfwd(lambda p: jvp(heat, (p,), (p,))[1])(POINT), jacrev(lambda p: jvp(heat, (p,), (p,))[1])(POINT))


def test_writes_jacobian_ignores_draws_of_second_call() -> None:
    rng = np.random.default_rng(0)
    draws = []

    def noisy(p: Any) -> Any:
        u = np.zeros((2, 3))
        draws.append(rng.normal())
        u[0] = p * draws[-1]
        u[1] = u[0] ** 2
        return u

    matrix = jacfwd(noisy)(POINT)
    require_near(matrix[0], np.eye(3) * draws[0])


def test_writes_jacobian_connects_outer_variables() -> None:
    w = cg.variable(2.0)

    def f(p: Any) -> Any:
        u = np.zeros((2, 3))
        u[0] = p * w**3
        return u

    matrix = jacfwd(f)(POINT)
    assert grad(lambda v: np.sum(jacfwd(lambda p: f(p) * v)(POINT)))(1.0) == 24
    np.testing.assert_allclose(matrix[0], np.eye(3) * 8)


@pytest.mark.parametrize("name", WRITING)
def test_writes_jacobian_is_differentiable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f = WRITING[name]

    def size(operator: Function) -> Function:
        return lambda p, w: np.sum(operator(lambda q: f(q * w))(p) ** 2)

    expected = grad(size(jacrev), (0, 1))(POINT, 1.5)
    without_cotangents(monkeypatch)
    for actual, reference in zip(grad(size(jacfwd), (0, 1))(POINT, 1.5), expected, strict=True):
        np.testing.assert_allclose(actual, reference, rtol=1e-10)


def test_writes_jacobian_within_vmap_and_jvp() -> None:
    rows = np.stack([POINT, 2 * POINT])
    require_near(vmap(jacfwd(through_views))(rows), np.stack([jacrev(through_views)(row) for row in rows]))
    tangent = jvp(lambda w: jacfwd(lambda p: heat(p * w))(POINT), (2.0,), (1.0,))[1]
    require_near(tangent, jvp(lambda w: jacrev(lambda p: heat(p * w))(POINT), (2.0,), (1.0,))[1])
