"""Derivatives of ``scipy.spatial.transform``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import autodiff as ad
from tests.support.arguments import real
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions

Q = real(3, 4) + np.array([0.1, -0.2, 0.3, 0.4])
R = real(3, 3) * 0.7
X = real(3, 3, seed=4)
PLAIN = Rotation.from_rotvec(R)
MATRICES = PLAIN.as_matrix()
TIMES = np.array([0, 1.0, 2.5])
ORDERS = ["xyz", "ZYX", "zxz", "XYX", "yzx", "YXY"]


def of(r: Any) -> Any:
    return Rotation.from_rotvec(r)


SECOND: dict[str, list[tuple[Any, ...]]] = {
    "from_quat": [
        ("to a quaternion", lambda q: Rotation.from_quat(q).as_quat(), Q),
        (
            "one, turned about",
            lambda q: Rotation.from_quat(q, scalar_first=True).as_quat(canonical=True, scalar_first=True),
            Q[0],
        ),
        ("to a matrix", lambda q: Rotation.from_quat(q).as_matrix(), Q),
        ("to a vector", lambda q: Rotation.from_quat(q).as_rotvec(), Q),
        ("made", lambda q: Rotation(q).as_matrix(), Q),
    ],
    "from_rotvec": [
        ("to a matrix", lambda r: of(r).as_matrix(), R),
        ("near zero", lambda r: of(r).as_rotvec(), R * 1e-8),
        ("degrees", lambda r: Rotation.from_rotvec(r, degrees=True).as_rotvec(degrees=True), R[0] * 30),
    ],
    "apply": [
        ("to each", lambda r, x: of(r).apply(x), R, X),
        ("one, back", lambda r, x: of(r[0]).apply(x, inverse=True), R, X),
        ("one vector", lambda r, x: of(r).apply(x[0]), R, X),
        ("of numbers", lambda x: PLAIN.apply(x), X),
    ],
}
FIRST: dict[str, list[tuple[Any, ...]]] = {
    "from_matrix": [
        ("of rotations", lambda m: Rotation.from_matrix(m).as_quat(), MATRICES),
        ("of others", lambda m: Rotation.from_matrix(m).as_matrix(), MATRICES + 0.1 * np.abs(real(3, 3, 3))),
        ("half turns", lambda r: Rotation.from_matrix(of(r).as_matrix()).as_matrix(), np.eye(3) * 3.1),
    ],
    "euler": [
        *[(f"from {o}", lambda a, o=o: Rotation.from_euler(o, a).as_matrix(), R) for o in ORDERS],
        *[(f"to {o}", lambda q, o=o: Rotation.from_quat(q).as_euler(o), Q) for o in ORDERS],
        ("one axis", lambda a: Rotation.from_euler("z", a, degrees=True).as_quat(), 30.0),
        ("one axis, many", lambda a: Rotation.from_euler("z", a).as_quat(), R[:, :1]),
        ("two axes", lambda a: Rotation.from_euler("zy", a).as_euler("zyx", degrees=True), R[:, :2]),
    ],
    "mrp": [("there and back", lambda q: Rotation.from_mrp(Rotation.from_quat(q).as_mrp() * 1.1).as_matrix(), Q)],
    "composition": [
        ("of nodes", lambda r, s: (of(r) * of(s)).as_rotvec(), R, X),
        ("with numbers", lambda r: (PLAIN * of(r) * PLAIN.inv()).as_matrix(), R[0]),
        ("powers", lambda r, n: (of(r) ** n).as_matrix(), R, 0.5),
        ("of numbers, powers", lambda n: (PLAIN**n).as_matrix(), 0.5),
        ("inverse", lambda r: of(r).inv().magnitude(), R),
        ("indices", lambda r: of(r)[1:].as_matrix()[0] + sum(x.as_matrix() for x in of(r)), R),
        ("joined", lambda r: Rotation.concatenate([of(r), of(r * 2)]).as_matrix(), R),
    ],
    "Slerp": [
        ("rotations and places", lambda r, t: Slerp(TIMES, of(r))(t).as_matrix(), R, np.array([0.3, 1.2])),
        ("places", lambda t: Slerp(TIMES, PLAIN)(t).as_rotvec(), np.array([0.3, 1.2])),
        ("times", lambda t: Slerp(t, PLAIN)(0.7).as_rotvec(), TIMES),
        ("rotations", lambda r: Slerp(TIMES, of(r))([0.0, 0.7, 2.5]).as_matrix(), R),
    ],
}


@pytest.mark.parametrize("rows", functions(SECOND))
def test_rotation_second_derivatives(rows: Rows) -> None:
    rows.check()


@pytest.mark.parametrize("rows", functions(FIRST))
def test_rotation_first_derivatives(rows: Rows) -> None:
    rows.check(order=1, tolerance=1e-5)


def test_rotation_derivatives_at_zero_vector() -> None:
    """First and second derivatives of the rotation matrix at the zero vector."""
    x = np.array([1.0, 2.0, 3.0])
    table = ad.jacobian(lambda r: of(r).apply(x))(np.zeros(3))
    np.testing.assert_allclose(table, np.cross(np.eye(3), x).T, atol=1e-15)
    twice = ad.hessian(lambda r: of(r).apply(x)[0])(np.zeros(3))
    expected = np.array([[0.0, x[1] / 2, x[2] / 2], [x[1] / 2, -x[0], 0.0], [x[2] / 2, 0.0, -x[0]]])
    np.testing.assert_allclose(twice, expected, atol=1e-12)


def test_rotation_keeps_class() -> None:
    def f(r: Any) -> Any:
        turned = of(r)
        assert isinstance(turned, Rotation)
        assert len(turned) == 3
        assert not turned.single
        assert turned[0].single
        return np.sum(turned.as_matrix())

    assert ad.grad(f)(R).shape == (3, 3)


def test_rotation_fit_beside_penalty() -> None:
    """Points and the rotated points: the gradient vanishes at the rotation."""
    target = PLAIN[0].apply(X)

    def loss(r: Any) -> Any:
        return np.sum((of(r).apply(X) - target) ** 2) + 0.1 * np.sum((r - R[0]) ** 2)

    np.testing.assert_allclose(ad.grad(loss)(R[0]), 0, atol=1e-12)
    rows = ad.jacrev(lambda r: of(r).apply(X))(R[0])
    np.testing.assert_allclose(ad.jacfwd(lambda r: of(r).apply(X))(R[0]), rows, atol=1e-14)


@for_each(
    ("wrong", "match", "error"),
    [
        (lambda r: of(r).mean().as_quat(), "not supported", TypeError),
        (lambda r: Rotation.align_vectors(r, X)[0].as_quat(), "orthogonal_procrustes", TypeError),
        (lambda r: of(r * np.array([0, 0, 0])).as_euler("zxz"), "Gimbal", ValueError),
        (lambda r: Rotation.from_quat(r[:, :1] * np.zeros(4)).as_quat(), "zero norm", ValueError),
        (lambda r: Rotation.from_matrix(0 * r - np.eye(3)).as_quat(), "determinant", ValueError),
        (lambda r: Slerp(TIMES, of(r))([3.0]).as_quat(), "within the range", ValueError),
        (lambda r: Rotation.from_euler("xxy", r).as_quat(), "consecutive ones different", ValueError),
    ],
)  # fmt: skip
def test_rotation_unsupported_calls_raise(wrong: Any, match: str, error: Any) -> None:
    with pytest.raises(error, match=match):
        ad.grad(lambda r: np.sum(wrong(r)))(R)
