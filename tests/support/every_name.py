"""Data for `test_every_name`: every public name of NumPy with a useful derivative, called as a user of NumPy calls it.

A name has one or more examples ``(label, function, *arguments)``, as in `cases`: functions of float arrays in plain
NumPy, which may return lists and tuples of arrays. Functions that do not dispatch in NumPy exist
under the same name in compgraph: `either` calls compgraph's for nodes, and NumPy's for plain arrays.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import compgraph as cg
from tests.support.arguments import MASK, Case, Function, Sketch, above, inside, off_zero, positive, real, shifted

Examples = dict[str, list[Sketch]]
Make = Callable[..., Any]

PLAIN = np.array([[0.4, -1.1, 2.3], [-0.2, 1.7, 0.9]])
WEIGHTS = np.array([0.7, 1.9, 0.4, 1.2])


def of(*sketches: Any) -> list[Sketch]:
    """Examples from ``function, argument, argument ...``, numbered."""
    return [(str(i), *sketch) for i, sketch in enumerate(sketches)]


def either(ours: Function, plain: Function) -> Function:
    """A function of compgraph for nodes, of NumPy for plain arrays."""

    def call(*args: Any) -> Any:
        return (ours if any(isinstance(a, cg.Node) for a in args) else plain)(*args)

    return call


def under(call: Callable[..., Any]) -> Function:
    """``call(module, *arguments)`` with `compgraph` for nodes, `numpy` for plain arrays."""
    return either(partial(call, cg), partial(call, np))


def into(write: Callable[..., Any]) -> Function:
    """A fresh array, computed from the first argument, after a write into it."""

    def call(x: Any, *others: Any) -> Any:
        y = x * 1.0
        write(y, *others)
        return y

    return call


def items(index: Any, value: Any) -> Callable[[Any], None]:
    """``y[index] = value``."""
    return lambda y: y.__setitem__(index, value)


# ---------------------------------------------------------------------------------------------- ufuncs

ANY: list[Make] = [real]
DOMAINS: dict[str, Make] = {
    **dict.fromkeys(["arccos", "acos", "arcsin", "asin", "arctanh", "atanh", "log1p", "tan"], inside),
    **dict.fromkeys(["arccosh", "acosh"], above),
    **dict.fromkeys(["log", "log2", "log10", "sqrt", "reciprocal"], positive),
}
UNARY = [
    "abs", "absolute", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan",
    "atanh", "cbrt", "conj", "conjugate", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "log", "log10",
    "log1p", "log2", "negative", "positive", "rad2deg", "radians", "reciprocal", "sin", "sinh", "sqrt", "square", "tan", "tanh",
]  # fmt: skip
# Those that cannot be applied twice to a number of their domain.
ONCE = {"acosh", "arccosh", "log", "log2", "log10", "log1p", "arctanh", "atanh", "arcsin", "asin", "arccos", "acos"}
BINARY = [
    "add", "arctan2", "atan2", "copysign", "divide", "float_power", "fmax", "fmin", "fmod", "hypot", "logaddexp", "logaddexp2",
    "maximum", "minimum", "mod", "multiply", "pow", "power", "remainder", "subtract", "true_divide",
]  # fmt: skip


def unary_ufunc(name: str) -> Examples:
    """A ufunc of one argument and its ``at``."""
    ufunc, make = getattr(np, name), DOMAINS.get(name, off_zero)
    index = [0, 2] if name in ONCE else [0, 2, 0]
    return {
        f"np.{name}": of((ufunc, make(2, 3)), (partial(ufunc, dtype=float), make(3)), (ufunc, make())),
        f"np.{name}.at": of((into(lambda y: ufunc.at(y, index)), make(4)), (into(lambda y: ufunc.at(y, (1, index))), make(2, 3))),
    }


def binary_ufunc(name: str) -> Examples:
    """A ufunc of two arguments and its methods."""
    ufunc: Any = getattr(np, name)
    x, y = positive(3, 4), above(4, seed=1)
    return {
        f"np.{name}": of(
            (ufunc, x, y),
            (lambda x: ufunc(x, 1.7), x),
            (lambda y: ufunc(x, y), y),
            (lambda x: ufunc(x, x[::-1]), positive(4)),
        ),
        f"np.{name}.reduce": of(
            (ufunc.reduce, x),
            (lambda x: ufunc.reduce(x, axis=1, keepdims=True), x),
            (lambda x: ufunc.reduce(x, axis=-1, initial=1.5), x),
        ),
        f"np.{name}.accumulate": of((ufunc.accumulate, x), (lambda x: ufunc.accumulate(x, axis=1), x)),
        f"np.{name}.reduceat": of(
            (lambda x: ufunc.reduceat(x, [0, 2, 1], axis=1), x),
            (lambda x: ufunc.reduceat(x, [0, 1]), x),
        ),
        f"np.{name}.outer": of(
            (ufunc.outer, positive(2), y), (lambda x: ufunc.outer(x, WEIGHTS), x), (lambda x: ufunc.outer(WEIGHTS, x), x)
        ),
        f"np.{name}.at": of(
            (into(lambda y, x: ufunc.at(y, [0, 2, 0], x)), y, positive(3)),
            (into(lambda y: ufunc.at(y, [1, 1], 1.4)), y),
            (into(lambda z, y: ufunc.at(z, (slice(None), 1), y)), x, positive(3)),
        ),
    }


UFUNCS: Examples = {
    **{k: v for name in UNARY for k, v in unary_ufunc(name).items()},
    **{k: v for name in BINARY for k, v in binary_ufunc(name).items()},
    "np.divmod": of((np.divmod, real(2, 3, low=-4, high=4), positive(3)), (lambda x: np.divmod(x, 0.7), real(3))),
    "np.divmod.outer": of((np.divmod.outer, real(2, low=-4, high=4), positive(3))),
    "np.frexp": of((np.frexp, off_zero(2, 3))),
    "np.modf": of((np.modf, real(2, 3, low=-4, high=4))),
    "np.ldexp": of((lambda x: np.ldexp(x, [1, -2, 3]), real(2, 3)), (lambda x: np.ldexp(x, np.argmax(x)), real(3))),
    "np.ldexp.outer": of((lambda x: np.ldexp.outer(x, [1, -2]), real(3))),
    "np.ldexp.at": of((into(lambda y: np.ldexp.at(y, [0, 2, 0], [1, 2, -3])), real(3))),
    "np.matmul": of((np.matmul, real(2, 3), real(3, 2)), (np.matmul, real(3), real(2, 3, 2)), (lambda x: PLAIN @ x, real(3))),
    "np.matvec": of((np.matvec, real(2, 2, 3), real(3)), (lambda x: np.matvec(PLAIN, x), real(3))),
    "np.vecmat": of((np.vecmat, real(2), real(2, 3))),
    "np.vecdot": of((np.vecdot, real(2, 3), shifted(3))),
}

# ------------------------------------------------------------------------------------------- reductions


def reductions(*names: str) -> Examples:
    """Functions that reduce all elements, an axis, or several, and the methods of the same names."""
    examples: Examples = {}
    for name in names:
        function = getattr(np, name)
        examples[f"np.{name}"] = of(
            (function, real(2, 3)),
            (partial(function, axis=-1), real(2, 3)),
            (lambda x, f=function: f(x, axis=(0, 2), keepdims=True), real(2, 3, 2)),
        )
        if hasattr(np.ndarray, name):
            examples[f"np.ndarray.{name}"] = of(
                (lambda x, n=name: getattr(x, n)(), real(2, 3)),
                (lambda x, n=name: getattr(x, n)(0, keepdims=True), real(2, 3)),
                (lambda x, n=name: getattr(x, n)(axis=(0, -1)), real(2, 3, 2)),
            )
    return examples


HOLED = np.array([[0.4, np.nan, 2.3], [-0.2, 1.7, 0.9]])


def with_hole(function: Function) -> Function:
    """The function of an array with one NaN in it."""
    return lambda x: function(np.where(np.isnan(HOLED), np.nan, x))


REDUCTIONS: Examples = {
    **reductions("sum", "mean", "prod", "max", "min", "amax", "amin", "std", "var", "median", "ptp", "average"),
    **{
        f"np.nan{name}": of(
            (with_hole(getattr(np, f"nan{name}")), real(2, 3)),
            (with_hole(partial(getattr(np, f"nan{name}"), axis=1)), real(2, 3)),
        )
        for name in ("max", "min", "mean", "median", "prod", "std", "sum", "var", "cumsum", "cumprod")
    },
    **{
        f"np.{name}": of(
            (lambda x, n=name, s=scale: getattr(np, n)(x, 0.3 * s), real(2, 3)),
            (lambda x, n=name, s=scale: getattr(np, n)(x, [0.2 * s, 0.7 * s], axis=1, method="hazen"), real(2, 5)),
        )
        for name, scale in {"quantile": 1, "nanquantile": 1, "percentile": 100, "nanpercentile": 100}.items()
    },
    "np.average": of(
        (np.average, real(2, 3)), (lambda x, w: np.average(x, axis=1, weights=w, returned=True), real(2, 3), positive(3))
    ),
    "np.trace": of((np.trace, real(2, 3)), (partial(np.trace, offset=1, axis1=2, axis2=0), real(2, 3, 2))),
    "np.trapezoid": of((np.trapezoid, real(2, 4)), (np.trapezoid, real(4), above(4)), (partial(np.trapezoid, dx=0.3), real(4))),
    "np.corrcoef": of((np.corrcoef, real(3, 4)), (np.corrcoef, real(4), shifted(4))),
    "np.cov": of(
        (np.cov, real(3, 4)), (lambda x: np.cov(x, ddof=0, aweights=WEIGHTS), real(2, 4)), (np.cov, real(4), shifted(4))
    ),
    **{
        f"np.{name}": of((getattr(np, name), real(2, 3)), (partial(getattr(np, name), axis=-1), real(2, 3)))
        for name in ("cumsum", "cumprod")
    },
    "np.cumulative_sum": of((np.cumulative_sum, real(3)), (partial(np.cumulative_sum, axis=0, include_initial=True), real(2, 3))),
    "np.cumulative_prod": of((np.cumulative_prod, real(3)), (partial(np.cumulative_prod, axis=1), real(2, 3))),
    "np.ndarray.cumsum": of((lambda x: x.cumsum(), real(2, 3)), (lambda x: x.cumsum(axis=0), real(2, 3))),
    "np.ndarray.cumprod": of((lambda x: x.cumprod(), real(2, 3)), (lambda x: x.cumprod(1), real(2, 3))),
    "np.ndarray.trace": of((lambda x: x.trace(), real(2, 3)), (lambda x: x.trace(1), real(2, 3))),
    "np.bincount": of((lambda w: np.bincount([0, 2, 2, 1], w, minlength=5), real(4))),
    "np.histogram": of((lambda w: np.histogram(WEIGHTS, 3, weights=w), real(4)), (partial(np.histogram, bins=3), real(5))),
    "np.histogram2d": of((lambda w: np.histogram2d(WEIGHTS, WEIGHTS**2, 2, weights=w)[0], real(4))),
    "np.histogramdd": of((lambda w: np.histogramdd((WEIGHTS, WEIGHTS**2), 2, weights=w)[0], real(4))),
    "np.histogram_bin_edges": of((partial(np.histogram_bin_edges, bins=4), real(5))),
}

# ---------------------------------------------------------------------------------------------- shaping


def joined(name: str, *shape: int) -> Examples:
    """A function of a sequence of arrays."""
    function = getattr(np, name)
    return {
        f"np.{name}": of(
            (lambda x, y: function([x, y]), real(*shape), shifted(*shape)),
            (lambda x: function((x, np.ones(shape), x)), real(*shape)),
        )
    }


def split(name: str, *shape: int) -> Examples:
    """A function that cuts an array in pieces."""
    function = getattr(np, name)
    return {f"np.{name}": of((lambda x: function(x, 2), real(*shape)), (lambda x: function(x, [1, 3]), real(*shape)))}


def same(*names: str, shape: tuple[int, ...] = (2, 3), **options: Any) -> Examples:
    """Functions of one array, with the same options."""
    return {f"np.{name}": of((partial(getattr(np, name), **options), real(*shape))) for name in names}


SHAPING: Examples = {
    **{k: v for name in ("concat", "concatenate", "stack", "dstack", "hstack", "vstack") for k, v in joined(name, 2, 3).items()},
    **({"np.row_stack": of((lambda x, y: np.row_stack([x, y]), real(3), shifted(2, 3)))} if hasattr(np, "row_stack") else {}),  # noqa: NPY201
    **joined("column_stack", 3),
    "np.block": of(
        (lambda x, y: np.block([[x, y], [y, x]]), real(2, 3), shifted(2, 3)), (lambda x: np.block([PLAIN, x]), real(2, 3))
    ),
    **split("array_split", 5),
    "np.split": of((lambda x: np.split(x, 2), real(4, 2)), (lambda x: np.split(x, [1, 2], axis=1), real(2, 3))),
    **split("hsplit", 2, 4),
    **split("vsplit", 4, 2),
    **split("dsplit", 2, 1, 4),
    "np.unstack": of((np.unstack, real(2, 3)), (partial(np.unstack, axis=-1), real(2, 3))),
    "np.append": of((np.append, real(2, 3), real(2)), (lambda x: np.append(PLAIN, x, axis=0), real(1, 3))),
    "np.atleast_1d": of((np.atleast_1d, real()), (np.atleast_1d, real(), real(3))),
    "np.atleast_2d": of((np.atleast_2d, real(3))),
    "np.atleast_3d": of((np.atleast_3d, real(2, 3))),
    "np.broadcast_arrays": of((np.broadcast_arrays, real(3), real(2, 1))),
    "np.broadcast_to": of((lambda x: np.broadcast_to(x, (2, 3)), real(3))),
    **same("copy", "flip", "fliplr", "flipud", "ravel", "rot90", "transpose", "matrix_transpose", "permute_dims", "tril", "triu"),
    **same("diag", "diagflat", "diagonal", "real", "imag", "real_if_close", "angle", "squeeze"),
    "np.astype": of((lambda x: np.astype(x, np.float64), real(3)), (lambda x: np.astype(x, complex), real(3))),
    "np.expand_dims": of((lambda x: np.expand_dims(x, (0, 2)), real(3))),
    "np.moveaxis": of((lambda x: np.moveaxis(x, 0, -1), real(2, 3, 2))),
    "np.rollaxis": of((lambda x: np.rollaxis(x, 2), real(2, 3, 2))),
    "np.swapaxes": of((lambda x: np.swapaxes(x, 0, 2), real(2, 3, 4))),
    "np.squeeze": of((np.squeeze, real(1, 3, 1)), (partial(np.squeeze, axis=0), real(1, 3, 1))),
    "np.reshape": of((lambda x: np.reshape(x, (3, -1)), real(2, 3)), (partial(np.reshape, shape=6, order="F"), real(2, 3))),
    "np.resize": of((lambda x: np.resize(x, (2, 4)), real(3)), (lambda x: np.resize(x, 2), real(3))),
    "np.roll": of((partial(np.roll, shift=1), real(2, 3)), (lambda x: np.roll(x, (1, -1), (0, 1)), real(2, 3))),
    "np.repeat": of((lambda x: np.repeat(x, 2), real(2, 3)), (lambda x: np.repeat(x, [1, 0, 2], axis=1), real(2, 3))),
    "np.tile": of((lambda x: np.tile(x, (2, 2)), real(2, 3))),
    "np.meshgrid": of(
        (np.meshgrid, real(2), shifted(3)), (partial(np.meshgrid, indexing="ij", sparse=True), real(2), shifted(3))
    ),
    "np.pad": of(
        (lambda x: np.pad(x, 1), real(2, 3)),
        (partial(np.pad, pad_width=((1, 0), (2, 1)), mode="reflect"), real(3, 3)),
        (partial(np.pad, pad_width=2, mode="linear_ramp"), real(3)),
    ),
    "np.vander": of((np.vander, real(3)), (partial(np.vander, N=2, increasing=True), real(3))),
    "np.trim_zeros": of((lambda x: np.trim_zeros(np.concatenate([[0, 0], x, [0]])), real(3)), (partial(np.trim_zeros), real(3))),
    "np.apply_along_axis": of((lambda x: np.apply_along_axis(np.cumsum, 1, x), real(2, 3))),
    "np.apply_over_axes": of((lambda x: np.apply_over_axes(np.sum, x, [0, 2]), real(2, 3, 2))),
    "np.full_like": of((np.full_like, real(2, 3), real(3)), (lambda x: np.full_like(x, 2.0) * x, real(3))),
    "np.lib.stride_tricks.sliding_window_view": of((lambda x: np.lib.stride_tricks.sliding_window_view(x, 2), real(5))),
    "np.c_": of((lambda x, y: np.c_[x, y], real(3), shifted(3)), (lambda x: np.c_[np.ones(3), x], real(3))),
    "np.r_": of((lambda x, y: np.r_[x, y], real(3), shifted(2)), (lambda x: np.r_[x[0], 1.0, x], real(3))),
    "np.asanyarray": of((lambda x: np.asanyarray(x), real(3)), (lambda x: np.asanyarray(x, float) * x, real(3))),
    "np.require": of((lambda x: np.require(x), real(3)), (lambda x: np.require(x, float, "C") * x, real(2, 3))),
}

# ---------------------------------------------------------------------------- choosing, sorting, sets

CHOICE = np.array([[0, 1, 1], [1, 0, 1]])
REPEATED = np.array([2, 0, 1, 0])

SELECTION: Examples = {
    "np.choose": of(
        (lambda x, y: np.choose(CHOICE, [x, y]), real(2, 3), shifted(3)),
        (lambda x: np.choose((x > 0).astype(int), [x, x * x]), real(3)),
    ),
    "np.compress": of((lambda x: np.compress([True, False, True], x, axis=1), real(2, 3))),
    "np.extract": of((lambda x: np.extract(MASK, x), real(2, 3))),
    "np.select": of((lambda x, y: np.select([MASK, ~MASK], [x, y], 0.5), real(2, 3), shifted(3))),
    "np.piecewise": of((lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda t: t * t, np.sin]), real(5))),
    "np.where": of((lambda x, y: np.where(MASK, x, y), real(2, 3), shifted(3)), (lambda x: np.where(x > 0, x, 0.1 * x), real(3))),
    "np.take": of((lambda x: np.take(x, [2, 0, 2]), real(2, 3)), (lambda x: np.take(x, [0, 4], axis=1, mode="wrap"), real(2, 3))),
    "np.take_along_axis": of((lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), real(2, 3))),
    "np.insert": of(
        (lambda x, y: np.insert(x, [1, 2], y), real(3), shifted(2)), (lambda x: np.insert(PLAIN, 1, x, axis=1), real(2))
    ),
    "np.delete": of((lambda x: np.delete(x, [0, 2]), real(4)), (lambda x: np.delete(x, 1, axis=1), real(2, 3))),
    "np.sort": of((np.sort, real(2, 3)), (partial(np.sort, axis=0), real(3, 2)), (partial(np.sort, axis=None), real(2, 3))),
    "np.sort_complex": of((np.sort_complex, real(4))),
    "np.partition": of((lambda x: np.partition(x, 1), real(2, 4)), (partial(np.partition, kth=(0, 2), axis=0), real(3, 2))),
    "np.unique": of((np.unique, real(4)), (lambda x: np.unique(x[REPEATED], return_index=True, return_inverse=True), real(3))),
    **{
        f"np.{name}": of((getattr(np, name), real(4)), (lambda x, n=name: getattr(np, n)(x[REPEATED]), real(3)))
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")
    },
    "np.union1d": of((np.union1d, real(3), shifted(3)), (lambda x: np.union1d(x, x), real(3))),
    "np.setdiff1d": of((np.setdiff1d, real(3), shifted(3)), (lambda x: np.setdiff1d(x, x[:1]), real(3))),
    "np.setxor1d": of((np.setxor1d, real(3), shifted(3)), (lambda x: np.setxor1d(x, x[:1]), real(3))),
    "np.clip": of((lambda x: np.clip(x, -0.5, 1), real(2, 3)), (np.clip, real(5, low=-3, high=3), real(5) - 4, positive(5))),
    "np.nan_to_num": of((np.nan_to_num, real(3)), (with_hole(partial(np.nan_to_num, nan=0.3)), real(2, 3))),
}

# ------------------------------------------------------------------- calculus, products and polynomials

CALCULUS: Examples = {
    "np.diff": of(
        (np.diff, real(4)), (partial(np.diff, n=2, axis=0), real(4, 2)), (lambda x: np.diff(x, prepend=x[:1]), real(3))
    ),
    "np.ediff1d": of((np.ediff1d, real(4)), (lambda x, y: np.ediff1d(x, to_end=y), real(4), real(2))),
    "np.gradient": of((np.gradient, real(4)), (partial(np.gradient, edge_order=2), real(3, 4)), (np.gradient, real(4), above(4))),
    "np.convolve": of((np.convolve, real(4), real(3)), (partial(np.convolve, mode="same"), real(2), real(4))),
    "np.correlate": of((np.correlate, real(4), real(3)), (partial(np.correlate, mode="full"), real(4), real(3))),
    "np.interp": of((lambda x, y: np.interp(x, [-2.5, 0.1, 2.5], y), real(4), real(3))),
    "np.unwrap": of((np.unwrap, real(4, low=-9, high=9))),
    "np.sinc": of((np.sinc, real(2, 3))),
    "np.i0": of((np.i0, real(2, 3))),
    "np.linspace": of((lambda x, y: np.linspace(x, y, 4), real(2), shifted(2)), (lambda x: np.linspace(0, x, 3), real())),
    "np.logspace": of((lambda x, y: np.logspace(x, y, 3), inside(2), inside(2))),
    "np.geomspace": of((lambda x, y: np.geomspace(x, y, 4), positive(2), above(2))),
    "np.dot": of((np.dot, real(2, 3), real(3)), (lambda x: np.dot(PLAIN, x), real(3))),
    "np.inner": of((np.inner, real(2, 3), shifted(3))),
    "np.outer": of((np.outer, real(2), shifted(3))),
    "np.vdot": of((np.vdot, real(2, 3), shifted(2, 3))),
    "np.tensordot": of((np.tensordot, real(2, 2, 2), real(2, 2)), (partial(np.tensordot, axes=(0, 1)), real(2, 3), real(3, 2))),
    "np.einsum": of((partial(np.einsum, "ij,j->i"), real(2, 3), real(3)), (lambda x: np.einsum(x, [0, 0], [0]), real(3, 3))),
    "np.cross": of((np.cross, real(2, 3), shifted(3))),
    "np.kron": of((np.kron, real(2, 2), real(1, 3))),
    "np.poly": of((np.poly, real(3))),
    "np.polyadd": of((np.polyadd, real(3), real(2))),
    "np.polysub": of((np.polysub, real(3), real(4))),
    "np.polymul": of((np.polymul, real(3), real(2))),
    "np.polydiv": of((np.polydiv, positive(4), positive(2))),
    "np.polyder": of((np.polyder, real(4)), (partial(np.polyder, m=2), real(4))),
    "np.polyint": of((np.polyint, real(3)), (partial(np.polyint, m=2, k=[1, 2]), real(3))),
    "np.polyval": of((np.polyval, real(3), real(4)), (lambda x: np.polyval([1.0, -2.0, 0.5], x), real(2, 2))),
    "np.polyfit": of((lambda x, y: np.polyfit(x, y, 2), real(5), shifted(5))),
    "np.roots": of((lambda x: np.roots(x), np.array([1.0, -3.2, 1.4]))),
}

# ------------------------------------------------------------------------------------------- submodules


def definite(x: Any) -> Any:
    """A positive definite matrix that depends on each element of a square one."""
    return np.matmul(x, np.matrix_transpose(x)) + 2.0 * np.eye(x.shape[-1])


MATRIX = np.array([[2.0, 0.3, -0.4], [0.1, 1.4, 0.6], [-0.7, 0.2, 3.1]])
BATCH = np.stack([MATRIX, MATRIX.T + 0.2])
la = np.linalg
LINALG: Examples = {
    **{
        f"np.linalg.{f.__name__}": of((f, MATRIX), (f, BATCH)) for f in (la.inv, la.det, la.slogdet, la.pinv, la.svdvals, la.cond)
    },
    **{f"np.linalg.{f.__name__}": of((f, MATRIX), (f, BATCH)) for f in (la.trace, la.diagonal, la.matrix_transpose)},
    "np.linalg.cholesky": of((lambda x: la.cholesky(definite(x)), MATRIX), (lambda x: la.cholesky(definite(x)), BATCH)),
    "np.linalg.eigh": of((lambda x: la.eigh(definite(x)), MATRIX)),
    "np.linalg.eigvalsh": of((lambda x: la.eigvalsh(definite(x)), MATRIX), (partial(la.eigvalsh, UPLO="U"), MATRIX + MATRIX.T)),
    "np.linalg.eig": of((lambda x: la.eig(x), np.array([[1.0, 0.4], [0.3, 2.5]]))),
    "np.linalg.eigvals": of((la.eigvals, np.array([[1.0, 0.4], [0.3, 2.5]]))),
    "np.linalg.svd": of((partial(la.svd, full_matrices=False), real(3, 2)), (partial(la.svd, compute_uv=False), real(2, 3))),
    "np.linalg.qr": of((la.qr, MATRIX), (partial(la.qr, mode="r"), real(3, 2))),
    "np.linalg.lstsq": of((partial(la.lstsq, rcond=None), real(4, 2), real(4))),
    "np.linalg.solve": of((la.solve, MATRIX, real(3)), (lambda x: la.solve(MATRIX, x), real(3, 2))),
    "np.linalg.norm": of(
        (la.norm, real(2, 3)),
        (partial(la.norm, axis=1), real(2, 3)),
        (partial(la.norm, ord="nuc"), real(2, 3)),
        (partial(la.norm, ord=3), real(4)),
        (partial(la.norm, ord=2), real(2, 3)),
    ),
    "np.linalg.matrix_norm": of((la.matrix_norm, real(2, 3)), (partial(la.matrix_norm, ord=1), real(2, 3))),
    "np.linalg.vector_norm": of((la.vector_norm, real(2, 3)), (partial(la.vector_norm, axis=0, ord=3), real(2, 3))),
    "np.linalg.matrix_power": of((lambda x: la.matrix_power(x, 3), MATRIX), (lambda x: la.matrix_power(x, -2), MATRIX)),
    "np.linalg.multi_dot": of((lambda x, y: la.multi_dot([x, y, PLAIN.T]), real(2, 3), real(3, 3))),
    "np.linalg.cross": of((la.cross, real(2, 3), shifted(2, 3))),
    "np.linalg.matmul": of((la.matmul, real(2, 3), real(3, 2))),
    "np.linalg.outer": of((la.outer, real(2), real(3))),
    "np.linalg.tensordot": of((la.tensordot, real(2, 2, 2), real(2, 2))),
    "np.linalg.vecdot": of((la.vecdot, real(2, 3), shifted(3))),
    "np.linalg.tensorinv": of((partial(la.tensorinv, ind=1), real(4, 2, 2) + 2 * np.eye(4).reshape(4, 2, 2))),
    "np.linalg.tensorsolve": of((la.tensorsolve, real(4, 2, 2) + 2 * np.eye(4).reshape(4, 2, 2), real(4))),
}

FFT: Examples = {
    **{
        f"np.fft.{name}": of((getattr(np.fft, name), real(6)), (partial(getattr(np.fft, name), n=4, norm="ortho"), real(2, 6)))
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"np.fft.{name}": of(
            (getattr(np.fft, name), real(3, 4)), (partial(getattr(np.fft, name), s=(2, 4), axes=(0, 1)), real(3, 4))
        )
        for name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn")
    },
    "np.fft.fftshift": of((np.fft.fftshift, real(2, 3))),
    "np.fft.ifftshift": of((partial(np.fft.ifftshift, axes=1), real(2, 3))),
    "np.fft.fftfreq": of((lambda d: np.fft.fftfreq(5, d), positive())),
    "np.fft.rfftfreq": of((lambda d: np.fft.rfftfreq(5, d=d), positive())),
    **{
        f"np.emath.{name}": of((getattr(np.emath, name), off_zero(4)), (getattr(np.emath, name), positive(2, 3)))
        for name in ("sqrt", "log", "log2", "log10")
    },
    **{
        f"np.emath.{name}": of((getattr(np.emath, name), inside(3)), (getattr(np.emath, name), above(3)))
        for name in ("arccos", "arcsin", "arctanh")
    },
    "np.emath.logn": of((lambda x: np.emath.logn(3, x), off_zero(4)), (np.emath.logn, above(3), positive(3))),
    "np.emath.power": of((lambda x: np.emath.power(x, 1.5), off_zero(4)), (np.emath.power, positive(3), real(3))),
}

# -------------------------------------------------------------------------- operators, methods, attributes

OPERATORS: dict[str, tuple[Function, Make, Make]] = {
    "add": (operator.add, real, shifted),
    "sub": (operator.sub, real, shifted),
    "mul": (operator.mul, real, shifted),
    "truediv": (operator.truediv, real, positive),
    "pow": (operator.pow, positive, positive),
    "mod": (operator.mod, partial(positive, seed=3), above),
    "divmod": (divmod, partial(positive, seed=3), above),
    "matmul": (operator.matmul, real, shifted),
}


def binary_operator(name: str) -> Examples:
    """An operator, between nodes and beside plain arrays and numbers, on both sides, and in place."""
    function, left, right = OPERATORS[name]
    x, y = left(3, 3), right(3, 3)
    forward, reflected, in_place = f"__{name}__", f"__r{name}__", f"__i{name}__"
    operate = None if name == "divmod" else getattr(operator, f"i{name}")
    return {
        f"np.ndarray.{forward}": of(
            (function, x, y), (lambda x: function(x, y), x), (lambda x, y: getattr(x, forward)(y), x, y),
            *([] if name == "matmul" else [(lambda x: function(x, 1.3), x)]),
        ),
        f"np.ndarray.{reflected}": of(
            (lambda y: function(x, y), y), (lambda x, y: getattr(y, reflected)(x), x, y),
            *([] if name == "matmul" else [(lambda y: function(1.3, y), y)]),
        ),
        **({} if operate is None else {
            f"np.ndarray.{in_place}": of(
                (into(operate), x, y), (into(lambda z: operate(z, y)), x), (into(lambda z, y: getattr(z, in_place)(y)), x, y)
            )
        }),
    }  # fmt: skip


METHODS: Examples = {
    **{k: v for name in OPERATORS for k, v in binary_operator(name).items()},
    "np.ndarray.__abs__": of((abs, real(2, 3)), (lambda x: x.__abs__(), real(3))),
    "np.ndarray.__neg__": of((operator.neg, real(2, 3))),
    "np.ndarray.__pos__": of((operator.pos, real(2, 3))),
    "np.ndarray.__getitem__": of(
        (lambda x: x[1], real(2, 3)),
        (lambda x: x[..., ::-2], real(2, 3)),
        (lambda x: x[[0, 0, 1]], real(3)),
        (lambda x: x[MASK], real(2, 3)),
    ),
    "np.ndarray.__setitem__": of(
        (into(lambda z, y: z.__setitem__(1, y)), real(2, 3), shifted(3)),
        (into(items(MASK, 0.5)), real(2, 3)),
        (into(lambda z, y: z.__setitem__(([0, 0], [1, 1]), y)), real(2, 3), shifted(2)),
    ),
    "np.ndarray.__iter__": of(
        (lambda x: list(x), real(2, 3)), (lambda x: [a * b for a, b in zip(x, x[::-1], strict=True)], real(3))
    ),
    "np.ndarray.__copy__": of((copy.copy, real(2, 3))),
    "np.ndarray.__deepcopy__": of((copy.deepcopy, real(2, 3))),
    "np.ndarray.T": of((lambda x: x.T, real(2, 3)), (lambda x, y: x.T @ y, real(2, 3), real(2))),
    "np.ndarray.mT": of((lambda x: x.mT, real(2, 3, 2))),
    "np.ndarray.real": of((lambda x: x.real, real(3)), (lambda x: (x * (1 + 2j)).real, real(3))),
    "np.ndarray.imag": of((lambda x: x.imag, real(3)), (lambda x: (x * (1 + 2j)).imag, real(3))),
    "np.ndarray.flat": of(
        (lambda x: x.flat[1::2], real(2, 3)),
        (lambda x: list(x.flat), real(2, 2)),
        (into(lambda z, y: z.flat.__setitem__([0, 3], y)), real(2, 3), shifted(2)),
    ),
    "np.ndarray.astype": of((lambda x: x.astype(float), real(3)), (lambda x: x.astype(complex), real(3))),
    "np.ndarray.clip": of((lambda x: x.clip(-0.5, 1.0), real(2, 3)), (lambda x: x.clip(min=0.2), real(3))),
    "np.ndarray.compress": of(
        (lambda x: x.compress([True, False, True], axis=1), real(2, 3)), (lambda x: x.compress([1, 0, 1]), real(4))
    ),
    "np.ndarray.conj": of((lambda x: x.conj(), real(3)), (lambda x: (x * 1j).conj(), real(3))),
    "np.ndarray.conjugate": of((lambda x: x.conjugate(), real(3))),
    "np.ndarray.copy": of((lambda x: x.copy(), real(2, 3)), (lambda x: x.copy("F"), real(2, 3))),
    "np.ndarray.diagonal": of((lambda x: x.diagonal(), real(2, 3)), (lambda x: x.diagonal(1, 0, 2), real(2, 3, 3))),
    "np.ndarray.dot": of((lambda x, y: x.dot(y), real(2, 3), real(3))),
    "np.ndarray.fill": of((into(lambda z, y: z[1].fill(y)), real(2, 3), real()), (into(lambda z: z.fill(2.0)), real(3))),
    "np.ndarray.flatten": of((lambda x: x.flatten(), real(2, 3)), (lambda x: x.flatten("F"), real(2, 3))),
    "np.ndarray.partition": of((into(lambda z: z.partition(1)), real(2, 4))),
    "np.ndarray.put": of((into(lambda z, y: z.put([0, 4], y)), real(2, 3), shifted(2))),
    "np.ndarray.ravel": of((lambda x: x.ravel(), real(2, 3)), (lambda x: x.ravel("F"), real(2, 3))),
    "np.ndarray.repeat": of((lambda x: x.repeat(2), real(3)), (lambda x: x.repeat([1, 2], axis=0), real(2, 3))),
    "np.ndarray.reshape": of((lambda x: x.reshape(3, -1), real(2, 3)), (lambda x: x.reshape((6,), order="F"), real(2, 3))),
    "np.ndarray.resize": of(
        (into(lambda z: z.resize((2, 4), refcheck=False)), real(3)), (into(lambda z: z.resize(2, refcheck=False)), real(3))
    ),
    "np.ndarray.sort": of((into(lambda z: z.sort()), real(2, 3)), (into(lambda z: z.sort(axis=0)), real(3, 2))),
    "np.ndarray.squeeze": of((lambda x: x.squeeze(), real(1, 3))),
    "np.ndarray.swapaxes": of((lambda x: x.swapaxes(0, 1), real(2, 3))),
    "np.ndarray.take": of((lambda x: x.take([2, 0, 2]), real(2, 3)), (lambda x: x.take([0, 4], axis=1, mode="clip"), real(2, 3))),
    "np.ndarray.transpose": of((lambda x: x.transpose(), real(2, 3)), (lambda x: x.transpose(2, 0, 1), real(2, 3, 4))),
    "np.ndarray.view": of((lambda x: x.view() * x, real(3)), (lambda x: x.view(complex), real(2, 4))),
}

WRITERS: Examples = {
    "np.copyto": of(
        (into(np.copyto), real(2, 3), shifted(3)), (into(lambda z, y: np.copyto(z, y, where=MASK)), real(2, 3), shifted(3))
    ),
    "np.put": of(
        (into(lambda z, y: np.put(z, [0, 4], y)), real(2, 3), shifted(2)), (into(lambda z: np.put(z, [1], 2.0)), real(3))
    ),
    "np.put_along_axis": of(
        (into(lambda z, y: np.put_along_axis(z, np.array([[1], [0]]), y, axis=1)), real(2, 3), shifted(2, 1))
    ),
    "np.putmask": of((into(lambda z, y: np.putmask(z, MASK, y)), real(2, 3), shifted(4))),
    "np.place": of((into(lambda z, y: np.place(z, MASK, y)), real(2, 3), shifted(2))),
    "np.fill_diagonal": of(
        (into(np.fill_diagonal), real(3, 3), shifted(3)), (into(lambda z: np.fill_diagonal(z, 0.5)), real(3, 3))
    ),
}

# ------------------------------------------------------------------------------------- under compgraph

# NumPy asks a node nothing about these: compgraph has them under the same name.
OURS: Examples = {
    "np.array": of(
        (under(lambda m, x, y: m.array([x[0], y, 2.0])), real(2), real()), (under(lambda m, x: m.array(x, ndmin=3)), real(3))
    ),
    "np.asarray": of((under(lambda m, x: m.asarray(x)), real(3)), (under(lambda m, x: m.asarray([x, x])), real(3))),
    "np.ascontiguousarray": of((under(lambda m, x: m.ascontiguousarray(x.T)), real(2, 3))),
    "np.asfortranarray": of((under(lambda m, x: m.asfortranarray(x)), real(2, 3))),
    "np.asarray_chkfinite": of((under(lambda m, x: m.asarray_chkfinite([x, x])), real(3))),
    "np.asmatrix": of(
        (under(lambda m, x: m.asmatrix(x)), real(2, 3)), (under(lambda m, x: m.asmatrix(x) @ m.asmatrix(x).T), real(2, 3))
    ),
    "np.bmat": of((under(lambda m, x, y: m.bmat([[x, y], [y, x]])), real(2, 3), shifted(2, 3))),
    "np.full": of((under(lambda m, x: m.full((2, 3), x)), real(3)), (under(lambda m, x: m.full(4, x)), real())),
    "np.kaiser": of((under(lambda m, x: m.kaiser(5, x)), positive())),
    "np.lib.stride_tricks.as_strided": of(
        (
            either(lambda x: cg.as_strided(x, (3, 2), (8, 16)), lambda x: np.lib.stride_tricks.as_strided(x, (3, 2), (8, 16))),
            real(6),
        )
    ),
    "np.ndarray.choose": of(
        (either(lambda x, y: cg.choose(CHOICE, [x, y]), lambda x, y: CHOICE.choose([x, y])), real(2, 3), shifted(3)),
        (lambda x: (x > 0).astype(int).choose([x, x * x]), real(3)),
    ),
}

TABLES: dict[str, Examples] = {
    "ufuncs": UFUNCS, "reductions": REDUCTIONS, "shaping": SHAPING, "selection": SELECTION, "calculus": CALCULUS,
    "linear algebra": LINALG, "Fourier transforms": FFT, "methods": METHODS, "writers": WRITERS, "our own names": OURS,
}  # fmt: skip
EXAMPLES: Examples = {name: some for examples in TABLES.values() for name, some in examples.items()}

# Names that raise all the same, and their messages.
UNSUPPORTED: dict[str, str] = {
    "np.ndarray.resize": "np.resize makes a new node",  # NumPy itself resizes no array that shares its memory, as a node does
}
# NumPy's vectorized loops give wrong values here on some machines, where the derivative raises; see `folding`.
MISCOUNTED = {f"np.{name}.{method}" for name in ("arctan2", "atan2", "pow", "power") for method in ("reduce", "reduceat")}

# ------------------------------------------------------------------------------------------- comparing


def parts(result: Any) -> list[Any]:
    """The arrays in a result, in order."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in parts(part)]
    return [result]


def numbers(case: Case) -> Case:
    """The case with all floats that its function returns in one row."""

    def call(*args: Any) -> Any:
        arrays = [np.ravel(p) for p in parts(case.function(*args)) if np.result_type(p).kind in "fc"]
        return np.concatenate(arrays) if arrays else np.zeros(0)

    return Case(case.opname, case.label, call, case.args)


def agree(actual: Any, expected: Any) -> None:
    """Fail unless two results have the same bits, and parts, shapes and dtypes."""
    actual, expected = parts(actual), parts(expected)
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        plain, reference = np.asarray(one), np.asarray(other)
        assert (plain.shape, plain.dtype) == (reference.shape, reference.dtype)
        assert np.array_equal(plain, reference, equal_nan=plain.dtype.kind in "fc"), f"{plain} instead of {reference}"
