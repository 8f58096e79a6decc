"""Cases of order statistics, histograms and correlation, of the family compgraph.ops.families.reductions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import compgraph as cg
from tests.support.arguments import (
    MASKED,
    REDUCED,
    ROW_MASK,
    Function,
    Shape,
    Sketch,
    complexes,
    optional,
    positive,
    real,
    shifted,
)

# ------------------------------------------------------------------------------------- what accumulates

LINES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "axis 1 of 3": ((2, 5, 2), {"axis": 1}),
    "number": ((), {}),
    "dtype": ((3,), {"axis": 0, "dtype": float}),
    "zero size along": ((2, 0), {"axis": 1}),
}
ROWS: dict[str, tuple[Shape, dict[str, Any]]] = {
    **LINES,
    "all, flattened": ((2, 3), {}),
    "axis=None": ((2, 1, 2), {"axis": None}),
}
INITIAL: dict[str, tuple[Shape, dict[str, Any]]] = {
    **LINES,
    **{
        f"{label}, initial": (LINES[label][0], {**LINES[label][1], "include_initial": True})
        for label in ("axis 1 of 3", "number", "zero size along")
    },
}
HOLES = np.array([[False, True, False], [True, False, False]])


def with_holes(function: Function, **options: Any) -> Function:
    """The function of a matrix with some nan elements."""
    return lambda x: function(np.where(HOLES, np.nan, x), **options)


def holes_and(function: Function, keyword: str, **options: Any) -> Function:
    """The same with a second argument, given by keyword."""
    return lambda x, y: function(np.where(HOLES, np.nan, x), **{keyword: y}, **options)


def zeroed(function: Function) -> Function:
    """The function of an array with some zero elements."""
    return lambda x: function(x * np.array([1, 0, 1, 0, 1]))


ACCUMULATING: dict[str, list[Sketch]] = {
    "cumsum": [*optional(np.cumsum, real, ROWS), ("method", lambda x: x.cumsum(1), real(2, 3))],
    "cumprod": [
        *optional(np.cumprod, real, ROWS),
        ("method", lambda x: x.cumprod(axis=0), real(2, 3)),
        ("method, flattened", lambda x: x.cumprod(), real(2, 3)),
        ("zeros", zeroed(np.cumprod), real(5)),
    ],
    "cumulative_sum": optional(np.cumulative_sum, real, INITIAL),
    "cumulative_prod": [
        *optional(np.cumulative_prod, real, INITIAL),
        ("zeros", zeroed(np.cumulative_prod), real(5)),
        ("zeros, initial", zeroed(partial(np.cumulative_prod, include_initial=True)), real(5)),
    ],
    "nancumsum": [
        *optional(np.nancumsum, real, ROWS),
        ("holes", with_holes(np.nancumsum), real(2, 3)),
    ],
    "nancumprod": [
        *optional(np.nancumprod, real, ROWS),
        ("holes", with_holes(np.nancumprod), real(2, 3)),
        ("zeros", zeroed(np.nancumprod), real(5)),
    ],
}

# ----------------------------------------------------------------------------------- composed by NumPy

SPARSE: Any = [None, [0, 1]]
PLACED = np.array([0.3, 1.2, 0.7, 2.5, 1.9, 3.3])
TABLE = np.stack([PLACED, PLACED[::-1] ** 2, np.cos(PLACED)], axis=1)


def joined(bins: Any, edges: Any) -> Any:
    """The bins of a histogram and all its edges, concatenated."""
    return np.concatenate([np.ravel(bins), *edges])


COMPOSED_SKETCHES: dict[str, list[Sketch]] = {
    # The same checks, for functions that NumPy composes of others and that so have no rule of their own.
    "diff": [
        *optional(
            np.diff,
            real,
            {
                "vector": ((4,), {}),
                "n=0": ((3,), {"n": 0}),
                "n=2": ((2, 4), {"n": 2}),
                "n=3, axis": ((5, 2), {"n": 3, "axis": 0}),
                "prepend": ((3,), {"prepend": 1.5}),
                "nothing left": ((1,), {}),
                "zero size": ((2, 0), {"axis": 0}),
            },
        ),
        ("prepend a node", lambda x, y: np.diff(x, prepend=y), real(3), shifted(2)),
        ("prepend a number that is a node", lambda x, y: np.diff(x, axis=0, prepend=y), real(3, 2), shifted()),
        ("both", lambda x, y, z: np.diff(x, prepend=y, append=z), real(3), shifted(), shifted(2)),
        ("only prepend", lambda y: np.diff(np.arange(3.0), prepend=y), shifted()),
    ],
    "average": [
        *optional(np.average, real, {k: v for k, v in REDUCED.items() if "zero size" not in k}),
        ("complex", lambda x, w: np.average(x, axis=0, weights=w), complexes(2, 3), positive(2)),
        ("weights along an axis", lambda x: np.average(x, axis=1, weights=np.array([1.0, 2.0, 4.0])), real(2, 3)),
        ("weights a node", lambda x, w: np.average(x, weights=w), real(2, 3), positive(2, 3)),
        ("weights a node, axis", lambda x, w: np.average(x, axis=0, weights=w), real(2, 3), positive(2)),
        ("weights, axes turned", lambda x, w: np.average(x, axis=(2, 0), weights=w), real(2, 3, 1), positive(1, 2)),
        ("weights, keepdims", lambda x, w: np.average(x, axis=-1, weights=w, keepdims=True), real(2, 3), positive(3)),
        ("only weights", lambda w: np.average(np.arange(3.0), weights=w), positive(3)),
        ("returned average", lambda x, w: np.average(x, axis=0, weights=w, returned=True)[0], real(2, 3), positive(2)),
        ("returned sum", lambda w: np.average(np.ones((2, 3)), axis=0, weights=w, returned=True)[1], positive(2)),
    ],
    "trapezoid": [
        ("complex", lambda y, x: np.trapezoid(y, x), complexes(4), shifted(4)),
        ("dx", partial(np.trapezoid, dx=0.5), real(2, 4)),
        ("dx a node", lambda y, d: np.trapezoid(y, dx=d), real(2, 4), positive()),
        ("x", lambda y: np.trapezoid(y, np.array([0.0, 0.5, 2.0])), real(3)),
        ("x a node, axis", lambda y, x: np.trapezoid(y, x=x, axis=0), real(3, 2), shifted(3)),
        ("x of full shape", lambda y, x: np.trapezoid(y, x, axis=1), real(2, 3), shifted(2, 3)),
        ("only x", lambda x: np.trapezoid(np.arange(3.0), x), real(3)),
        ("one point", np.trapezoid, real(1)),
        ("zero size", partial(np.trapezoid, axis=1), real(0, 3)),
    ],
    "gradient": [
        ("complex", partial(np.gradient, edge_order=2), complexes(4)),
        ("complex, coordinates a node", lambda x, s: np.gradient(x, s), complexes(4), shifted(4)),
        ("two points", np.gradient, real(2)),
        ("axis -1", partial(np.gradient, axis=-1, edge_order=2), real(2, 4)),
        ("axes", lambda x: np.stack([*np.gradient(x, axis=(2, 0))]), real(2, 3, 2)),
        ("edge_order", partial(np.gradient, edge_order=2), real(5)),
        ("spacing", lambda x: np.gradient(x, 0.3, edge_order=2), real(4)),
        ("spacing a node", lambda x, d: np.gradient(x, d), real(4), positive()),
        ("spacings", lambda x, d: np.stack([*np.gradient(x, d, 0.7)]), real(2, 3), positive()),
        ("coordinates", lambda x: np.gradient(x, np.array([0.0, 0.5, 2.0, 2.3])), real(4)),
        ("coordinates of equal distance", lambda x: np.gradient(x, np.arange(4)), real(4)),
        ("coordinates a node", lambda x, s: np.gradient(x, 5 * np.arange(5) + s), real(5), shifted(5)),
        ("coordinates a node, edge_order", lambda x, s: np.gradient(x, s, edge_order=2), real(5), shifted(5)),
        ("coordinates a node, two points", lambda x, s: np.gradient(x, s), real(2), shifted(2)),
        (
            "coordinates of each axis",
            lambda x, s, t: np.concatenate([np.ravel(x) for x in np.gradient(x, s, t, edge_order=2)]),
            real(3, 4), shifted(3), shifted(4),
        ),
        ("coordinates and spacing", lambda x, s: np.gradient(x, s, 0.5)[0], real(3, 2, 1)[..., 0], shifted(3)),
        ("coordinates, one axis", lambda x, s: np.gradient(x, s, axis=1), real(2, 3, 2), shifted(3)),
        ("only coordinates", lambda s: np.gradient(np.arange(4) ** 2, s), shifted(4)),
        ("zero size beside", partial(np.gradient, axis=1), real(0, 3)),
    ],
    "cov": [
        ("complex", np.cov, complexes(2, 3)),
        ("complex with aweights", lambda x, w: np.cov(x, aweights=w), complexes(2, 4), positive(4)),
        ("complex and real", lambda x, y: np.cov(x, y), complexes(4), real(2, 4)),
        *optional(
            np.cov,
            real,
            {
                "rows": ((3, 4), {}),
                "columns": ((4, 3), {"rowvar": False}),
                "a row": ((4,), {}),
                "a row, rowvar=False": ((4,), {"rowvar": False}),
                "bias": ((2, 4), {"bias": True}),
                "ddof": ((2, 4), {"ddof": 2}),
                "aweights, bias": ((2, 3), {"aweights": np.array([0.5, 3.0, 2.0]), "bias": True}),
                "both weights": ((2, 3), {"aweights": np.array([0.5, 3.0, 2.0]), "fweights": [1, 3, 2], "ddof": 1}),
                "no variables": ((0, 3), {}),
            },
        ),
        ("y", lambda x, y: np.cov(x, y), real(4), shifted(4)),
        ("y of several, columns", lambda x, y: np.cov(x, y, False), real(4, 2), shifted(4, 3)),
        ("aweights a node", lambda x, w: np.cov(x, aweights=w, fweights=[1, 2, 1]), real(2, 3), positive(3)),
        ("only y", lambda y: np.cov(np.arange(4.0), y), shifted(4)),
    ],
    "corrcoef": [
        ("complex", np.corrcoef, complexes(2, 4)),
        ("rows", np.corrcoef, real(3, 5)),
        ("columns", partial(np.corrcoef, rowvar=False), real(5, 2)),
        ("y", lambda x, y: np.corrcoef(x, y), real(4), shifted(4)),
        ("a row", np.corrcoef, real(4)),
        ("dtype", partial(np.corrcoef, dtype=float), real(3, 4)),
    ],
    "histogram2d": [
        ("weights", lambda w: np.histogram2d(PLACED, PLACED[::-1] ** 2, (2, 3), weights=w)[0], real(6)),
        ("weights, density", lambda w: np.histogram2d(PLACED, PLACED[::-1], 2, None, True, w)[0], positive(6)),
        ("density, bins", lambda x, y: np.histogram2d(x, y, [2, np.array([-1, 0, 2])], density=True)[0], real(6), shifted(6)),
        ("one range", lambda x, y: np.histogram2d(x, y, 2, SPARSE)[1], real(6), shifted(6)),
        (
            "all",
            lambda x, y, w: np.concatenate([np.ravel(part) for part in np.histogram2d(x, y, (3, 2), None, True, weights=w)]),
            real(6), shifted(6), positive(6),
        ),
        ("range, all", lambda x, y, w: np.histogram2d(x, y, 2, [[-1, 1], [0, 2]], True, w)[0], real(6), shifted(6), positive(6)),
        ("given bins", lambda x, w: np.histogram2d(x, PLACED, [-1, 0, 1, 3], weights=w)[0], real(6), positive(6)),
        ("zero size", lambda w: np.histogram2d(np.zeros(0), np.zeros(0), 2, weights=w)[0], real(0)),
    ],
}  # fmt: skip

# ---------------------------------------------------------------------------------- what numbers spread

SOME_REDUCED = {label: REDUCED[label] for label in ("axes -1, 0, keepdims", "all", "number")}
WHERE = {"where, axis, keepdims": MASKED["where, axis, keepdims"]}
NANS: dict[str, list[Sketch]] = {
    name: [
        *optional(function, real, SOME_REDUCED),
        *optional(function, real, WHERE if initial is None else {}),
        *optional(partial(function, initial=initial or 0.0), real, {} if initial is None else WHERE),
        ("holes", with_holes(function), real(2, 3)),
        ("holes, axes, keepdims", with_holes(function, axis=(-1, 0), keepdims=True), real(2, 3)),
        ("zero size kept", partial(function, axis=1), real(0, 3)),
    ]
    for name, function, initial in (
        ("nansum", np.nansum, None),
        ("nanprod", np.nanprod, None),
        ("nanmean", np.nanmean, None),
        ("nanvar", np.nanvar, None),
        ("nanstd", np.nanstd, None),
        ("nanmax", np.nanmax, -5.0),
        ("nanmin", np.nanmin, 5.0),
    )
}
NANS["nansum"] += [("initial", partial(np.nansum, initial=2.0, axis=0), real(2, 3)), ("zero size", np.nansum, real(0, 2))]
NANS["nanprod"] += [
    ("initial", with_holes(np.nanprod, initial=2.0, axis=0), real(2, 3)),
    ("zero size", np.nanprod, real(0, 2)),
    ("zeros", zeroed(np.nanprod), real(5)),
]
NANS["nanmax"] += [("initial", with_holes(np.nanmax, initial=0.1, axis=0), real(2, 3))]
NANS["nanmin"] += [("initial", with_holes(np.nanmin, initial=0.1, axis=0), real(2, 3))]
for name in ("nansum", "nanprod", "nanmax", "nanmin"):
    begun = holes_and(getattr(cg, name), "initial", axis=1)
    NANS[name] += [("initial a node", begun, real(2, 3), shifted())]
for name in ("nanvar", "nanstd"):
    NANS[name] += [("mean a node", holes_and(getattr(cg, name), "mean", axis=1), real(2, 3), shifted(2, 1))]
for name, function in (("nanvar", np.nanvar), ("nanstd", np.nanstd)):
    NANS[name] += [
        ("ddof", partial(function, ddof=1), real(2, 3)),
        ("correction, holes", with_holes(function, correction=1, axis=1), real(2, 3)),
        ("mean", partial(function, mean=np.array([[0.5], [1.0]]), axis=1), real(2, 3)),
        ("mean, holes, keepdims", with_holes(function, mean=np.array([[0.5]]), keepdims=True), real(2, 3)),
        ("where, ddof", partial(function, where=ROW_MASK, ddof=1, axis=1), real(2, 3)),
    ]
for name in ("nansum", "nanprod", "nanmean", "nanvar"):
    function = getattr(np, name)
    NANS[name] += [("dtype", partial(function, dtype=float, axis=0), real(2, 3))]

SPREADS: dict[str, list[Sketch]] = {
    "ptp": [*optional(np.ptp, real, SOME_REDUCED), ("zero size kept", partial(np.ptp, axis=1), real(0, 3))],
}

# ------------------------------------------------------------------------------------- order statistics

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
DISTANCES = [(method, (0.05, 0.47, 0.96)[i % 3]) for i, method in enumerate(METHODS)]
WEIGHTS = np.array([[1.0, 2.0, 1.0], [3.0, 0.5, 2.0]])
MEDIANS: dict[str, list[Sketch]] = {
    name: [
        *optional(function, real, SOME_REDUCED),
        ("zero size kept", partial(function, axis=1), real(0, 3)),
        ("an even number", function, real(4)),
        ("an odd number", function, real(5)),
        ("keepdims positional", lambda x, f=function: f(x, 1, None, False, True), real(2, 3)),
    ]
    for name, function in (("median", np.median), ("nanmedian", np.nanmedian))
}
QUANTILES: dict[str, list[Sketch]] = {
    name: [
        *optional(partial(function, q=0.3 * scale), real, SOME_REDUCED),
        ("zero size kept", partial(function, q=0.3 * scale, axis=1), real(0, 3)),
        ("several", partial(function, q=np.array([0.0, 0.3, 0.5, 1.0]) * scale), real(2, 3)),
        ("several, axis", lambda x, f=function, s=scale: f(x, [0.2 * s, 0.7 * s], axis=0), real(4, 2)),
        ("several, axes, keepdims", partial(function, q=np.array([0.9, 0.3]) * scale, axis=(0, 2), keepdims=True), real(2, 3, 2)),
        ("whole place", partial(function, q=0.25 * scale), real(5)),
        ("an integer", partial(function, q=1), real(5)),
        *[
            (f"{method}, {q}", partial(function, q=q * scale, method=method, axis=-1), real(2, 5))
            for method, q in (DISTANCES if name == "quantile" else DISTANCES[::4])  # the others compute by it
        ],
        *[
            (label, partial(function, q=q, method="inverted_cdf", **options), real(2, 3))
            for label, q, options in (
                ("weights", 0.6 * scale, {"weights": WEIGHTS}),
                ("weights, several", np.array([0.3, 0.8]) * scale, {"weights": WEIGHTS, "axis": 0, "keepdims": True}),
            )
        ],
    ]
    for name, function, scale in (
        ("quantile", np.quantile, 1),
        ("percentile", np.percentile, 100),
        ("nanquantile", np.nanquantile, 1),
        ("nanpercentile", np.nanpercentile, 100),
    )
}
for name, scale in (("quantile", 1), ("percentile", 100)):  # NumPy itself fails at these for nanquantile
    function = partial(getattr(np, name), q=0.3 * scale, method="inverted_cdf")
    QUANTILES[name] += [("weights of an axis", partial(function, axis=1, weights=np.array([1.0, 2.0, 1.0])), real(2, 3))]
for name, options in (("nanmedian", {}), ("nanquantile", {"q": [0.3, 0.8]}), ("nanpercentile", {"q": [30.0, 80.0]})):
    function = getattr(np, name)
    (QUANTILES if options else MEDIANS)[name] += [
        ("holes", with_holes(function, **options), real(2, 3)),
        ("holes, axes, keepdims", with_holes(function, axis=(-1, 0), keepdims=True, **options), real(2, 3)),
    ]

# ------------------------------------------------------------------------------------------- lines

SIZES = ((4, 2), (2, 5))
MODES = ("full", "same", "valid")
KNOTS = np.array([-2.1, -0.7, 0.3, 1.1])
RISING = np.arange(4.0)
LINE: dict[str, list[Sketch]] = {
    "ediff1d": [
        ("vector", np.ediff1d, real(4)),
        ("number", np.ediff1d, real()),
        ("zero size", np.ediff1d, real(0, 2)),
        ("zero size with an end", lambda x, y: np.ediff1d(x, y), real(0), shifted(2)),
        ("both ends", lambda x, y, z: np.ediff1d(x, y, z), real(2, 3), shifted(2, 2), shifted()),
        ("plain ends", partial(np.ediff1d, to_end=[1.0, 2.0], to_begin=3.0), real(4)),
        ("ends by keyword", lambda x, y, z: np.ediff1d(x, to_begin=z, to_end=y), real(3), shifted(2), shifted()),
        ("a beginning by keyword", lambda x, y: np.ediff1d(x, to_begin=y), real(3), shifted(2)),
        ("only a beginning", lambda y: np.ediff1d(np.arange(3.0), to_begin=y), shifted(2)),
    ],
    "unwrap": [
        ("vector", lambda x: np.unwrap(5 * x), real(6)),
        ("axis", lambda x: np.unwrap(5 * x, axis=0), real(4, 2)),
        ("discont", lambda x: np.unwrap(5 * x, 4.0), real(2, 4)),
        ("period", partial(np.unwrap, period=1.5), real(5)),
        ("zero size", partial(np.unwrap, axis=0), real(2, 0)),
    ],
    "convolve": [
        *[
            (f"{a} with {v}, {mode}", partial(np.convolve, mode=mode), real(a), shifted(v))
            for a, v in SIZES
            for mode in MODES
        ],
        ("mode not given", np.convolve, real(3), shifted(2)),
        ("a number", np.convolve, real(), shifted(3)),
        ("two numbers", np.convolve, real(), shifted()),
        ("a list", lambda x: np.convolve(x, [1.0, 2.0], "same"), real(3)),
        ("with itself", lambda x: np.convolve(x, x), real(3)),
        ("zero size", lambda x: np.convolve(np.concatenate([x, np.ones(2)]), [1.0, 2.0]), real(0)),
    ],
    "correlate": [
        *[
            (f"{a} with {v}, {mode}", partial(np.correlate, mode=mode), real(a), shifted(v))
            for a, v in SIZES
            for mode in MODES
        ],
        ("mode not given", np.correlate, real(3), shifted(2)),
        ("mode positional", lambda x, y: np.correlate(x, y, "full"), real(3), shifted(2)),
        ("a list", lambda x: np.correlate([1.0, 2.0], x), real(3)),
        ("zero size", lambda x: np.correlate(np.concatenate([x, np.ones(2)]), [1.0, 2.0]), real(0)),
    ],
    # No weights at all are counted as integers.
    "bincount": [
        ("weights", lambda w: np.bincount([0, 3, 1, 0], w), real(4)),
        ("weights by keyword", lambda w: np.bincount(np.array([0, 3, 1, 0]), weights=w, minlength=6), real(4)),
        ("zero size", lambda w: np.bincount([0, 1], np.concatenate([w, np.ones(2)]) * 2), real(0)),
    ],
    "histogram": [
        ("weights", lambda w: np.histogram(PLACED, 3, weights=w)[0], real(6)),
        ("weights, density", lambda w: np.histogram(PLACED, 3, density=True, weights=w)[0], positive(6)),
        ("weights, density, range", lambda w: np.histogram(PLACED, 3, (0.5, 2.0), True, w)[0], positive(6)),
        ("weights of a table", lambda w: np.histogram(PLACED.reshape(2, 3), 3, weights=w)[0], real(2, 3)),
        ("density", lambda x: np.histogram(x, 3, density=True)[0], real(6)),
        ("edges", lambda x: np.histogram(x, 3)[1], real(6)),
        ("both outputs", lambda x: np.concatenate(np.histogram(x, "sqrt", density=True)), real(2, 3)),
        ("both outputs, weights", lambda x, w: np.concatenate(np.histogram(x, 2, density=True, weights=w)), real(5), positive(5)),
        ("weights beside a node", lambda x, w: np.histogram(x, [-2, 0, 2], weights=w)[0], real(5), positive(5)),
        ("zero size", lambda w: np.histogram(np.zeros(0), 2, weights=w)[0], real(0)),
    ],
    "histogramdd": [
        ("weights", lambda w: np.histogramdd(TABLE, (2, 3, 1), weights=w)[0], real(6)),
        ("weights, density", lambda w: np.histogramdd(TABLE, 2, None, True, w)[0], positive(6)),
        ("density", lambda x: np.histogramdd(x, 2, density=True)[0], real(6, 3)),
        ("density, bins", lambda x: np.histogramdd(x, [2, np.array([-1, 0, 2])], density=True)[0], real(6, 2)),
        ("lists of edges", lambda x, w: np.histogramdd(x, [[-2, 0, 2], [-1, 1, 3.0]], None, True, w)[0], real(6, 2), positive(6)),
        ("edges", lambda x: np.concatenate(np.histogramdd(x, (2, 3))[1]), real(6, 2)),
        ("all", lambda x, w: joined(*np.histogramdd(x, (3, 2), None, True, weights=w)), real(6, 2), positive(6)),
        ("bins not given", lambda x: joined(*np.histogramdd(x, density=True)), real(6, 1)),
        ("a vector", lambda x, w: joined(*np.histogramdd(x, 3, density=True, weights=w)), real(6), positive(6)),
        ("columns", lambda x, y, w: joined(*np.histogramdd([x, y], 2, None, True, w)), real(6), shifted(6), positive(6)),
        ("a column beside plain ones", lambda x, w: joined(*np.histogramdd((x, PLACED), 2, None, True, w)), real(6), positive(6)),
        ("zero size", lambda w: np.histogramdd(np.zeros((0, 2)), 2, weights=w)[0], real(0)),
    ],
    "histogram_bin_edges": [
        ("number of bins", lambda x: np.histogram_bin_edges(x, 4), real(6)),
        ("bins not given", np.histogram_bin_edges, real(2, 3)),
        ("bins found", partial(np.histogram_bin_edges, bins="sturges"), real(7)),
        ("range", partial(np.histogram_bin_edges, range=(0.0, 1.0)), real(3)),
        ("zero size", partial(np.histogram_bin_edges, bins=2), real(0)),
    ],
    "interp": [
        ("numbers", lambda x, f: np.interp(x, KNOTS, f), real(), shifted(4)),
        ("x", lambda x: np.interp(x, KNOTS, RISING**2), real(7)),
        ("all", lambda x, s, f: np.interp(x, KNOTS + 0.1 * s, f), real(2, 3), shifted(4), shifted(4, seed=3)),
        ("a Python number", lambda s, f: np.interp(0.1, KNOTS + 0.1 * s, f), shifted(4), shifted(4, seed=3)),
        # NumPy does not hear of a node that is left or right unless x, xp or fp is one too.
        ("left, right", lambda x, s: np.interp(2 * x, KNOTS + 0.1 * s, RISING, x[0] * x[1], x[2]), real(7), shifted(4)),
        ("right by keyword", lambda x: np.interp(2 * x, KNOTS, RISING, right=x[3]), real(7)),
        ("left by keyword", lambda x, f: np.interp(2 * x, KNOTS, f, left=f[2], period=None), real(7), shifted(4)),
        ("plain left", lambda x, f: np.interp(2 * x, KNOTS, f, left=3.0), real(7), shifted(4)),
        (
            "period",
            lambda x, s, f: np.interp(3 * x, KNOTS[[2, 0, 3, 1]] + 0.1 * s, f, period=4.2),
            real(2, 4), shifted(4), shifted(4, seed=3),
        ),
        ("negative period", lambda x, f: np.interp(3 * x, KNOTS, f, period=-4.2, left=1.0), real(8), shifted(4)),
        ("one knot", lambda x, f: np.interp(x, np.array([0.1]), f), real(4), shifted(1)),
        ("lists", lambda x: np.interp(x, [-1.0, 1.0], [2.0, 5.0]), real(4)),
        ("zero size", lambda x, f: np.interp(x, KNOTS, f), real(0, 2), shifted(4)),
    ],
}  # fmt: skip

SKETCHES: dict[str, list[Sketch]] = {**ACCUMULATING, **NANS, **SPREADS, **MEDIANS, **QUANTILES, **LINE}
COMPLEX_SKETCHES: dict[str, list[Sketch]] = {
    "cumsum": [("row", np.cumsum, complexes(2, 2)), ("axis", partial(np.cumsum, axis=0), complexes(3, 2))],
    "cumprod": [("row", np.cumprod, complexes(2, 2)), ("axis", partial(np.cumprod, axis=0), complexes(3, 2))],
    "cumulative_sum": [("initial", partial(np.cumulative_sum, include_initial=True), complexes(3))],
    "cumulative_prod": [("initial", partial(np.cumulative_prod, include_initial=True), complexes(3))],
    "nancumsum": [("row", np.nancumsum, complexes(2, 2))],
    "nancumprod": [("row", np.nancumprod, complexes(2, 2))],
    **{
        name: [("all", function, complexes(2, 2)), ("holes", with_holes(function, axis=1), complexes(2, 3))]
        for name, function in (("nansum", np.nansum), ("nanprod", np.nanprod), ("nanmean", np.nanmean))
    },
    "ediff1d": [("ends", lambda x, y: np.ediff1d(x, y), complexes(3), complexes(2, seed=1))],
    "convolve": [
        (f"{a} with {v}, {mode}", partial(np.convolve, mode=mode), complexes(a), complexes(v, seed=1))
        for a, v in ((2, 5),)
        for mode in MODES
    ],
    "correlate": [
        (f"{a} with {v}, {mode}", partial(np.correlate, mode=mode), complexes(a), complexes(v, seed=1))
        for a, v in ((2, 5),)
        for mode in MODES
    ]
    + [("real with complex", partial(np.correlate, mode="full"), real(3), complexes(2))],
    "interp": [
        ("values", lambda f: np.interp(RISING / 2 - 0.8, KNOTS, f), complexes(4)),
        ("all", lambda x, s, f: np.interp(2 * x, KNOTS + 0.1 * s, f), real(7), shifted(4), complexes(4)),
        ("left", lambda x, f: np.interp(2 * x, KNOTS, f, 1 + 2j), real(7), complexes(4)),
        ("period", lambda x, f: np.interp(3 * x, KNOTS, f, period=4.2), real(7), complexes(4)),
    ],
    "median": [("all", np.median, complexes(2, 2)), ("axis", partial(np.median, axis=1), complexes(2, 3))],
    **{
        name: [("all", function, complexes(2, 2)), ("axis, ddof", partial(function, axis=1, ddof=1), complexes(2, 3))]
        for name, function in (("nanvar", np.nanvar), ("nanstd", np.nanstd))
    },
}
