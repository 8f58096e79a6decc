"""Derivatives of ``scipy.spatial`` and ``scipy.spatial.distance``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance
from scipy.spatial import KDTree, distance_matrix, geometric_slerp, minkowski_distance, minkowski_distance_p, procrustes
from scipy.spatial.distance import cdist, directed_hausdorff, pdist, squareform

import autodiff as ad
from tests.support.for_each import for_each
from tests.support.scipy_checks import Rows, functions

# Newer versions of SciPy advise against some of the names that older ones have.
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")

U = np.array([0.3, 1.1, 0.7, 0.2])
V = np.array([0.9, 0.4, 1.6, 0.5])
W = np.array([0.5, 1.3, 0.8, 1.1])
VARIANCE = np.array([[2.0, 0.3, 0.1, 0.0], [0.3, 1.5, 0.2, 0.1], [0.1, 0.2, 1.8, 0.4], [0.0, 0.1, 0.4, 1.2]])
# No two coordinates are nearer than a tenth: where they were the same, distances would have corners.
A = np.array([[0.1, 1.3, 0.6, 2.2], [1.0, 0.4, 1.9, 0.7], [0.5, 2.1, 1.2, 1.5]])
B = np.array([[0.7, 0.2, 0.3, 1.1], [1.6, 1.7, 0.9, 0.4], [0.3, 0.8, 2.3, 1.9], [2.0, 1.0, 1.5, 0.1], [1.2, 2.4, 0.1, 2.6]])
B = np.concatenate([B, [[2.5, 1.5, 2.8, 0.9]]])
A = A + 0.04 * np.sin(np.arange(12.0) ** 2).reshape(3, 4)  # nor are two differences alike
NAMES = [
    *("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "canberra", "braycurtis", "correlation", "cosine"),
    "jensenshannon",
]


def unit(x: Any) -> Any:
    x = np.float64(1) * x
    return x / np.linalg.norm(x)


VECTORS: dict[str, list[tuple[Any, ...]]] = {
    **{name: [("two vectors", getattr(scipy.spatial.distance, name), U, V)] for name in NAMES},
    "seuclidean": [("variances", lambda u, v, s: scipy.spatial.distance.seuclidean(u, v, s), U, V, W)],
    "mahalanobis": [("covariances", lambda u, v, s: scipy.spatial.distance.mahalanobis(u, v, s), U, V, VARIANCE)],
    "minkowski": [
        ("2", scipy.spatial.distance.minkowski, U, V),
        ("3", lambda u, v: scipy.spatial.distance.minkowski(u, v, 3), U, V),
        ("1.5", lambda u, v: scipy.spatial.distance.minkowski(u, v, p=1.5), U, V),
        ("1", lambda u, v: scipy.spatial.distance.minkowski(u, v, p=1), U, V),
        ("infinite", lambda u, v: scipy.spatial.distance.minkowski(u, v, p=np.inf), U, V),
    ],
    "jensenshannon": [
        ("base 2", lambda u, v: scipy.spatial.distance.jensenshannon(u, v, 2.0), U, V),
        ("matrices", lambda a: scipy.spatial.distance.jensenshannon(a[:2], a[1:], axis=1), A),
    ],
    "squareform": [
        ("to a matrix", lambda a: squareform(pdist(a)), A),
        ("there and back", lambda a: squareform(squareform(pdist(a))), A),
    ],
    "directed_hausdorff": [("all", lambda a, b: directed_hausdorff(a, b)[0], A, B)],
}
WITH_WEIGHTS = [name for name in NAMES if name != "jensenshannon"]
FIRST: dict[str, list[tuple[Any, ...]]] = {
    **{
        name: [("weights", lambda u, v, w, name=name: getattr(scipy.spatial.distance, name)(u, v, w=w), U, V, W)]
        for name in WITH_WEIGHTS
    },
    "cdist": [
        *[(name, lambda a, b, name=name: cdist(a, b, name), A[:2], B[:3]) for name in [*NAMES, "seuclidean"]],
        ("mahalanobis", lambda a, b: cdist(a, b, "mahalanobis"), A, B),
        ("another name", lambda a, b: cdist(a, b, "cblock"), A, B),
        ("weights", lambda a, b, w: cdist(a, b, "minkowski", p=3, w=w), A, B, W),
        ("variances", lambda a, b, w: cdist(a, b, "seuclidean", V=w), A, B, W),
        ("a function", lambda a, b: cdist(a, b, lambda x, y: np.sum(x * y)), A, B),
    ],
    "pdist": [
        *[(name, lambda b, name=name: pdist(b, name), B[:4]) for name in [*NAMES, "seuclidean"]],
        ("mahalanobis", lambda b: pdist(b, "mahalanobis"), B),
        ("a function", lambda b: pdist(b, lambda x, y: np.sum(x * y)), B),
    ],
    "distance_matrix": [
        *[(str(p), lambda a, b, p=p: distance_matrix(a, b, p), A, B) for p in (1, 2, 3.0, np.inf)],
        ("of rows", lambda a, b: minkowski_distance(a, b[:3], 3) + minkowski_distance_p(a, b[:3], 3), A, B),
    ],
    "procrustes": [("all", procrustes, B[:5, :2], B[:5, 2:])],
    "geometric_slerp": [
        ("a path", lambda a, b, t: geometric_slerp(unit(a), unit(b), t), U, V, np.array([0.1, 0.7])),
        ("a place", lambda a, b, t: geometric_slerp(unit(a), unit(b), t), U, V, 0.3),
    ],
    "KDTree": [
        ("of nodes", lambda a, b: KDTree(a).query(b, k=2)[0], B, A),
        ("of numbers", lambda b: KDTree(B).query(b)[0], A),
        ("another norm", lambda b: KDTree(B).query(b, k=[1, 3], p=1)[0], A),
    ],
}


@pytest.mark.parametrize("rows", functions(VECTORS))
def test_spatial_second_derivatives(rows: Rows) -> None:
    rows.check()


@pytest.mark.parametrize("rows", functions(FIRST))
def test_spatial_first_derivatives(rows: Rows) -> None:
    rows.check(order=1)


@for_each("metric", [name for name in NAMES if name != "jensenshannon"])
def test_pdist_zero_distances_have_zero_derivative(metric: str) -> None:
    """Distances on the diagonal are 0 and have the derivative 0; the others are right."""

    def f(a: Any) -> Any:
        return np.sum(np.exp(-cdist(a, a, metric)))

    def g(a: Any) -> Any:
        return 2 * np.sum(np.exp(-pdist(a, metric))) + len(A)

    np.testing.assert_allclose(ad.grad(f)(A), ad.grad(g)(A), atol=1e-7)
    np.testing.assert_allclose(f(A), g(A), rtol=1e-7)


def test_cdist_jacobians_of_both_modes_agree() -> None:
    rows = ad.jacrev(lambda a: cdist(a, B))(A)
    np.testing.assert_allclose(ad.jacfwd(lambda a: cdist(a, B))(A), rows, atol=1e-14)
    np.testing.assert_allclose(ad.jacobian(lambda a: cdist(a, B))(A), rows, atol=1e-14)
    twice = ad.hessian(lambda a: np.sum(pdist(a)))(A)
    np.testing.assert_allclose(ad.jacfwd(ad.grad(lambda a: np.sum(pdist(a))))(A), twice, atol=1e-12)


def test_spatial_stress_majorization_beside_penalty() -> None:
    """Stress majorization as it is usually written: distances to their targets, and a penalty."""
    target = pdist(A)

    def stress(a: Any) -> Any:
        return np.sum((pdist(a) - target) ** 2) + np.sum(np.maximum(a - 10, 0))

    np.testing.assert_allclose(ad.grad(stress)(A), 0, atol=1e-12)
    assert np.max(np.abs(ad.grad(stress)(A * 1.1))) > 0.01


@for_each(
    ("wrong", "match"),
    [
        (lambda a: cdist(a, B, "hamming"), "has no derivative"),
        (lambda a: pdist(a, "jaccard"), "has no derivative"),
        (lambda a: cdist(a, B, "euclidean", p=3), "takes"),
        (lambda a: cdist(a, B, out=np.zeros((3, 6))), "out="),
        (lambda a: scipy.spatial.distance.hamming(a[0], a[1]), "hamming"),
        (lambda a: KDTree(a, boxsize=10.0).query(B)[0], "boxsize"),
        (lambda a: scipy.spatial.ConvexHull(a).volume, "ConvexHull"),
    ],
)
def test_spatial_unsupported_calls_raise(wrong: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        ad.grad(lambda a: np.sum(wrong(a)))(A)


@for_each(
    "wrong",
    [
        lambda a: cdist(a, B[:, :3]),
        lambda a: pdist(a[0]),
        lambda a: squareform(a),
        lambda a: procrustes(a, B),
        lambda a: geometric_slerp(a[0], a[1], 0.5),
        lambda a: distance_matrix(a, B[:, :3]),
        lambda a: scipy.spatial.distance.euclidean(a, a[:, :3]),
    ],
)
def test_spatial_errors_equal_scipy(wrong: Any) -> None:
    for function in (wrong, ad.grad(lambda a: np.sum(wrong(a)))):
        with pytest.raises(ValueError, match=r"\S"):
            function(A)
