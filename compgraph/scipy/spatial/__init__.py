"""``scipy.spatial``: distances, shapes and rotations, in recorded steps."""

from __future__ import annotations

from ..policy import Policy
from . import shapes
from .distance import distance_matrix, minkowski_distance, minkowski_distance_p

_CHOICES = "node.value, and index the nodes with the result (the choice of neighbors has no derivative)"

POLICY = Policy(
    module="scipy.spatial",
    replacements={
        "KDTree": shapes.init_kdtree,
        "KDTree.query": shapes.query_kdtree,
        "distance_matrix": distance_matrix,
        "geometric_slerp": shapes.geometric_slerp,
        "minkowski_distance": minkowski_distance,
        "minkowski_distance_p": minkowski_distance_p,
        "procrustes": shapes.procrustes,
    },
    plain=frozenset({"QhullError"}),
    unsupported={
        **dict.fromkeys(["ConvexHull", "Delaunay", "HalfspaceIntersection", "SphericalVoronoi", "Voronoi", "tsearch"], _CHOICES),
        **dict.fromkeys(["convex_hull_plot_2d", "delaunay_plot_2d", "voronoi_plot_2d"], _CHOICES),
        "KDTree.query_ball_point": _CHOICES,
        "KDTree.query_pairs": _CHOICES,
        "KDTree.count_neighbors": _CHOICES,
        "Rectangle": "np.clip and np.linalg.norm for the distance to a box",
        "cKDTree": "scipy.spatial.KDTree, whose query() records distances",
    },
)
