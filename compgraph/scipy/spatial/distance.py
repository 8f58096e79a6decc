"""``scipy.spatial.distance`` in recorded steps: formulas along the last axis, for two vectors, two sets of points, or one set.

Between equal points a distance is not differentiable; its derivative is defined as 0 there, like that of ``np.linalg.norm``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance
import scipy.special

from ...array_types import Array
from ...graph import to_values
from ...interception import unpatched
from ..policy import Policy
from ..tools import to_array, to_double, to_numpy

Formula = Callable[..., Any]


def _weighted_sum(x: Array, w: Array) -> Any:
    return np.sum(x if w is None else w * x, axis=-1)


def _root(x: Any, power: object = 0.5) -> Any:
    """A root, whose derivative at 0 is defined as 0."""
    is_zero = to_numpy(x) == 0
    return x**power if not np.any(is_zero) else np.where(is_zero, 0.0, np.where(is_zero, 1.0, x) ** power)


def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The root of the sum of squares."""
    return np.linalg.norm(u - v, axis=-1) if w is None else _root(_weighted_sum((u - v) ** 2, w))


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of squares."""
    return _weighted_sum((u - v) ** 2, w)


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of absolute values."""
    return _weighted_sum(np.abs(u - v), w)


def chebyshev(u: Any, v: Any, w: object = None) -> Any:
    """The largest absolute value of the elements with positive weight."""
    gaps = np.abs(u - v)
    return np.max(gaps if w is None else np.where(to_numpy(w) > 0, gaps, 0.0), axis=-1)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """The root of order p of the sum of powers."""
    if to_numpy(p) <= 0:
        raise ValueError("p must be greater than 0")
    if to_numpy(p) == np.inf:
        return chebyshev(u, v, w)
    if to_numpy(p) == 1 and type(p) in (int, float):
        return cityblock(u, v, w)
    if to_numpy(p) == 2 and type(p) in (int, float):
        return euclidean(u, v, w)
    return _root(_weighted_sum(_root(np.abs(u - v), p), w), 1 / p)


def seuclidean(u: Any, v: Any, V: object) -> Any:  # noqa: N803
    """The Euclidean distance in units of the standard deviations, with the variances `V`."""
    return _root(np.sum((u - v) ** 2 / to_double(V), axis=-1))


def mahalanobis(u: Any, v: Any, VI: object) -> Any:  # noqa: N803
    """The Mahalanobis distance, with the inverse `VI` of the covariance matrix."""
    difference = u - v
    inverse = to_double(VI)
    inverse = inverse if inverse.ndim > 1 else np.reshape(inverse, (1, -1))
    return _root(np.sum((difference @ inverse) * difference, axis=-1))


def canberra(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of relative differences; two zeros contribute 0."""
    denominator = np.abs(u) + np.abs(v)
    is_zero = to_numpy(denominator) == 0
    return _weighted_sum(np.where(is_zero, 0.0, np.abs(u - v) / np.where(is_zero, 1.0, denominator)), w)


def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of absolute differences divided by the sum of absolute sums."""
    return cityblock(u, v, w) / _weighted_sum(np.abs(u + v), w)


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """One minus the correlation."""
    if w is not None:
        w = to_array(w)
        w = w / np.sum(w)
    if centered:
        if w is None:
            u, v = u - np.mean(u, axis=-1, keepdims=True), v - np.mean(v, axis=-1, keepdims=True)
        else:
            u, v = u - np.sum(u * w, axis=-1, keepdims=True), v - np.sum(v * w, axis=-1, keepdims=True)
    return np.clip(1.0 - _weighted_sum(u * v, w) / np.sqrt(_weighted_sum(u * u, w) * _weighted_sum(v * v, w)), 0.0, 2.0)


def cosine(u: object, v: object, w: object = None) -> Any:
    """One minus the cosine of the angle between two vectors."""
    return correlation(u, v, w, centered=False)


def _jensen_shannon(p: Array, q: Array, base: float | None, axis: int, keepdims: bool) -> Any:
    p, q = p / np.sum(p, axis=axis, keepdims=True), q / np.sum(q, axis=axis, keepdims=True)
    m = (p + q) / 2.0
    divergence = sum(np.sum(scipy.special.rel_entr(x, m), axis=axis, keepdims=keepdims) for x in (p, q))
    return _root((divergence if base is None else divergence / np.log(base)) / 2.0)


def jensenshannon(p: object, q: object, base: float | None = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """``scipy.spatial.distance.jensenshannon``."""
    return _jensen_shannon(to_array(p), to_array(q), base, axis, keepdims)


# The named metrics of cdist and pdist, and their further arguments.
METRICS: dict[str, tuple[Formula, tuple[str, ...]]] = {
    "euclidean": (euclidean, ("w",)),
    "sqeuclidean": (sqeuclidean, ("w",)),
    "cityblock": (cityblock, ("w",)),
    "chebyshev": (chebyshev, ("w",)),
    "minkowski": (minkowski, ("p", "w")),
    "seuclidean": (seuclidean, ("V",)),
    "mahalanobis": (mahalanobis, ("VI",)),
    "canberra": (canberra, ("w",)),
    "braycurtis": (braycurtis, ("w",)),
    "correlation": (correlation, ("w",)),
    "cosine": (cosine, ("w",)),
    "jensenshannon": (lambda u, v: _jensen_shannon(u, v, None, -1, False), ()),
}
_ALIASES = {
    "euclid": "euclidean", "eu": "euclidean", "e": "euclidean", "sqe": "sqeuclidean", "sqeuclid": "sqeuclidean",
    "cblock": "cityblock", "cb": "cityblock", "c": "cityblock", "chebychev": "chebyshev", "cheby": "chebyshev",
    "cheb": "chebyshev", "ch": "chebyshev", "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "se": "seuclidean",
    "s": "seuclidean", "mahal": "mahalanobis", "mah": "mahalanobis", "co": "correlation", "cos": "cosine", "js": "jensenshannon",
}  # fmt: skip


def vector_distance(name: str) -> Formula:
    """The function of two vectors for a named metric."""
    formula, _ = METRICS[name]

    def distance(u: object, v: object, *args: object, **kwargs: object) -> Any:
        arguments = [to_array(a) if isinstance(a, (list, tuple)) else a for a in (u, v, *args)]
        kwargs = {key: to_array(a) if isinstance(a, (list, tuple)) else a for key, a in kwargs.items()}
        scipy_function = unpatched(getattr(scipy.spatial.distance, name))
        scipy_function(*map(to_values, arguments), **{key: to_values(a) for key, a in kwargs.items()})  # raises where SciPy does
        return formula(*arguments, **kwargs)

    return distance


def _formula(metric: str, options: dict[str, Any], get_points: Callable[[], Any]) -> tuple[Formula, dict[str, Any]]:
    """Return the formula of a named metric, and its options; variances and covariances default to those of the points."""
    name = metric.lower()
    name = _ALIASES.get(name, name)
    if name not in METRICS:
        raise TypeError(
            f"scipy.spatial.distance: metric={metric!r} has no derivative. Use one of "
            f"{', '.join(METRICS)}, or plain numbers (node.value)"
        )
    formula, parameters = METRICS[name]
    if set(options) - set(parameters):
        raise TypeError(
            f"scipy.spatial.distance: metric={metric!r} takes {', '.join(parameters) or 'nothing'}, not {', '.join(options)}"
        )
    options = {key: to_double(value) for key, value in options.items() if value is not None} | (
        {"p": options["p"]} if "p" in options else {}
    )
    if name == "seuclidean" and "V" not in options:
        options["V"] = np.var(get_points(), axis=0, ddof=1)
    if name == "mahalanobis" and "VI" not in options:
        options["VI"] = np.transpose(np.linalg.inv(np.atleast_2d(np.cov(np.transpose(get_points())))))
    return formula, options


def cdist(XA: object, XB: object, metric: Callable[..., Any] | str = "euclidean", *, out: object = None, **kwargs: object) -> Any:  # noqa: N803
    """``scipy.spatial.distance.cdist``."""
    if out is not None:
        raise TypeError("scipy.spatial.distance.cdist: out= cannot hold nodes. Use the result")
    xa, xb = to_double(XA), to_double(XB)
    if xa.ndim != 2 or xb.ndim != 2 or xa.shape[1] != xb.shape[1]:
        raise ValueError("XA and XB must be 2-dimensional, with the same number of columns.")
    if callable(metric):
        distances = [metric(xa[i], xb[j], **kwargs) for i in range(xa.shape[0]) for j in range(xb.shape[0])]
        return np.reshape(np.stack(distances), (xa.shape[0], xb.shape[0]))
    formula, options = _formula(metric, kwargs, lambda: np.concatenate([xa, xb]))
    return formula(xa[:, None], xb[None], **options)


def pdist(X: object, metric: Callable[..., Any] | str = "euclidean", *, out: object = None, **kwargs: object) -> Any:  # noqa: N803
    """``scipy.spatial.distance.pdist``."""
    if out is not None:
        raise TypeError("scipy.spatial.distance.pdist: out= cannot hold nodes. Use the result")
    x = to_double(X)
    if x.ndim != 2:
        raise ValueError("A 2-dimensional array must be passed.")
    i, j = np.triu_indices(x.shape[0], 1)
    if callable(metric):
        return np.stack([metric(x[a], x[b], **kwargs) for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    formula, options = _formula(metric, kwargs, lambda: x)
    return formula(x[i], x[j], **options)


def squareform(X: object, force: str = "no", checks: bool = True) -> Any:  # noqa: N803
    """``scipy.spatial.distance.squareform``."""
    x = to_array(X)
    scipy.spatial.distance.squareform(to_numpy(x), force, checks)  # raises where SciPy does
    if x.ndim == 2:
        return x[np.triu_indices(x.shape[0], 1)]
    if not x.size:
        return np.zeros((1, 1), x.dtype)
    n = int(np.ceil(np.sqrt(2 * x.size)))
    indices = np.zeros((n, n), int)
    indices[np.triu_indices(n, 1)] = np.arange(x.size)
    indices += indices.T
    return np.where(np.eye(n, dtype=bool), np.zeros((), x.dtype), x[indices])


def directed_hausdorff(u: Any, v: Any, rng: int = 0, **other: object) -> Any:
    """``scipy.spatial.distance.directed_hausdorff``: the distance between the two points that attain it."""
    u, v = to_double(u), to_double(v)
    _, i, j = scipy.spatial.distance.directed_hausdorff(to_numpy(u), to_numpy(v), rng, **other)
    return euclidean(u[i], v[j]), i, j


# ------------------------------------------------------------------------------------------ functions of scipy.spatial


def minkowski_distance_p(x: object, y: object, p: float = 2.0) -> Any:
    """``scipy.spatial.minkowski_distance_p``."""
    gaps = np.abs(to_double(y) - to_double(x))
    if to_numpy(p) == np.inf:
        return np.max(gaps, axis=-1)
    return np.sum(gaps if to_numpy(p) == 1 else _root(gaps, p), axis=-1)


def minkowski_distance(x: object, y: object, p: float = 2.0) -> Any:
    """``scipy.spatial.minkowski_distance``."""
    total = minkowski_distance_p(x, y, p)
    return total if to_numpy(p) in (1, np.inf) else _root(total, 1.0 / p)


def distance_matrix(x: Any, y: Any, p: Any = 2.0, threshold: int = 1000000) -> Any:
    """``scipy.spatial.distance_matrix``."""
    x, y = to_double(x), to_double(y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x contains {x.shape[1]}-dimensional vectors but y contains {y.shape[1]}-dimensional vectors")
    return minkowski_distance(x[:, None], y[None], p)


# ------------------------------------------------------------------------------------------ policy

_METRIC_ADVICE = "a smooth metric, such as 'euclidean', 'cosine' or 'canberra' (this one counts elements)"
_PLAIN_ADVICE = "node.value, because its result has no derivative"

POLICY = Policy(
    module="scipy.spatial.distance",
    replacements={
        **{name: vector_distance(name) for name in METRICS if name != "jensenshannon"},
        "jensenshannon": jensenshannon,
        "cdist": cdist,
        "pdist": pdist,
        "squareform": squareform,
        "directed_hausdorff": directed_hausdorff,
    },
    unsupported={
        **dict.fromkeys(["dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"], _METRIC_ADVICE),
        **dict.fromkeys(["is_valid_dm", "is_valid_y", "num_obs_dm", "num_obs_y"], _PLAIN_ADVICE),
    },
)
