"""``scipy.spatial``: distances, shapes and rotations, in recorded steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.spatial

from ...interception import unpatched
from ...values import Value
from ..policy import Policy
from ..tools import add_mixin, to_array, to_double, to_numpy
from .distance import distance_matrix, minkowski_distance, minkowski_distance_p


def procrustes(data1: object, data2: object) -> Any:
    """``scipy.spatial.procrustes``: J. C. Gower, "Generalized procrustes analysis", Psychometrika 40 (1975)."""
    one, two = to_double(data1), to_double(data2)
    if one.ndim != 2 or one.shape != two.shape or not one.size:
        raise ValueError("Input matrices must be two-dimensional, of the same shape, and not empty")
    one, two = one - np.mean(one, 0), two - np.mean(two, 0)
    sizes = np.linalg.norm(one), np.linalg.norm(two)
    if any(to_numpy(size) == 0 for size in sizes):
        raise ValueError("Input matrices must contain >1 unique points")
    one, two = one / sizes[0], two / sizes[1]
    rotation, scale = scipy.linalg.orthogonal_procrustes(one, two)
    two = two @ np.transpose(rotation) * scale
    return one, two, np.sum((one - two) ** 2)


def geometric_slerp(start: Any, end: Any, t: Any, tol: float = 1e-07) -> Any:
    """``scipy.spatial.geometric_slerp``: K. Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985."""
    start, end, t = to_double(start), to_double(end), to_double(t)
    unpatched(scipy.spatial.geometric_slerp)(
        to_numpy(start), to_numpy(end), to_numpy(t), tol
    )  # raises and warns where SciPy does
    if np.array_equal(to_numpy(start), to_numpy(end)):
        raise ValueError("scipy.spatial.geometric_slerp: start and end are equal, so the path has no direction and no derivative")
    length = np.linalg.norm(start)
    first = start / length
    rest = end - (first @ end) * first
    height = np.linalg.norm(rest)
    angle = np.arctan2(length * height, start @ end)
    t = t[..., None] * angle
    return np.cos(t) * first + np.sin(t) * (rest / height)


# ------------------------------------------------------------------------------------------ nearest points


class NodeKDTree:
    """The methods of a ``KDTree`` over points that are nodes."""

    _nodes: Any
    data = property(lambda self: self._nodes)

    def query(self, x: object, k: int = 1, eps: float = 0.0, p: float = 2.0, **options: object) -> Any:
        """The distances of the nearest points, and their indices."""
        return query_kdtree(self, x, k, eps, p, **options)

    def _raise_unsupported(self, *args: object, **kwargs: object) -> Any:
        raise TypeError("a KDTree over nodes supports only query(). Use scipy.spatial.distance.cdist for other distances")

    sparse_distance_matrix = _raise_unsupported


def init_kdtree(self: Any, data: Any, *args: object, **kwargs: object) -> None:
    """``KDTree.__init__``."""
    data = to_double(data)
    unpatched(scipy.spatial.KDTree.__init__)(self, to_numpy(data), *args, **kwargs)
    if isinstance(data, Value):
        self._nodes = data
        add_mixin(self, NodeKDTree)


def query_kdtree(self: Any, x: Any, k: list[int] | int = 1, eps: float = 0.0, p: float = 2.0, **options: object) -> Any:
    """``KDTree.query``: the distances are recorded; the choice of the nearest points has no derivative."""
    x = to_array(x)
    plain_distances, neighbors = unpatched(scipy.spatial.KDTree.query)(self, to_numpy(x), k, eps, p, **options)
    if self.boxsize is not None:
        raise TypeError("scipy.spatial.KDTree: distances on a torus (boxsize=) are not recorded. Pass plain numbers (node.value)")
    points = self.data
    is_finite = np.isfinite(plain_distances)
    base = x[..., None, :] if np.ndim(neighbors) == x.ndim else x
    distances = minkowski_distance(base, points[np.where(is_finite, neighbors, 0)], p)
    return np.where(is_finite, distances, np.inf) if not np.all(is_finite) else distances, neighbors


_CHOICE_ADVICE = "node.value, and index the nodes with the result (the choice of neighbors has no derivative)"

POLICY = Policy(
    module="scipy.spatial",
    replacements={
        "KDTree": init_kdtree,
        "KDTree.query": query_kdtree,
        "distance_matrix": distance_matrix,
        "geometric_slerp": geometric_slerp,
        "minkowski_distance": minkowski_distance,
        "minkowski_distance_p": minkowski_distance_p,
        "procrustes": procrustes,
    },
    plain=frozenset({"QhullError"}),
    unsupported={
        **dict.fromkeys(
            ["ConvexHull", "Delaunay", "HalfspaceIntersection", "SphericalVoronoi", "Voronoi", "tsearch"], _CHOICE_ADVICE
        ),
        **dict.fromkeys(["convex_hull_plot_2d", "delaunay_plot_2d", "voronoi_plot_2d"], _CHOICE_ADVICE),
        "KDTree.query_ball_point": _CHOICE_ADVICE,
        "KDTree.query_pairs": _CHOICE_ADVICE,
        "KDTree.count_neighbors": _CHOICE_ADVICE,
        "Rectangle": "np.clip and np.linalg.norm for the distance to a box",
        "cKDTree": "scipy.spatial.KDTree, whose query() records distances",
    },
)
