"""Functions of ``math``, ``cmath`` and ``statistics`` for nodes, which replace Python's while a function is differentiated."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..graph import stack_nested
from ..guards import guarded_errors, loses_derivative
from ..inplace import contains_node
from ..values import Value
from .code_patches import patch_code, unpatched

Function = Callable[..., Any]


def _special_function(name: str) -> Function:
    import scipy.special

    function: Function = getattr(scipy.special, name)
    return function


def _remainder(x: Any, y: Any) -> Any:
    """``math.remainder``: the difference between x and the nearest multiple of y; ties are resolved to the even multiple."""
    remainder, size = np.fmod(x, y), np.abs(y)  # rounded towards zero
    twice = 2 * np.abs(remainder)
    is_nearer_to_next = (twice > size) | ((twice == size) & (np.fmod(np.abs(x), 2 * size) >= size))
    return np.where(is_nearer_to_next, remainder - np.copysign(size, remainder), remainder)[()]


MATH_FUNCTIONS: dict[str, Function] = {
    **{
        name: getattr(np, name)
        for name in (
            "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "exp2", "log2", "log10", "log1p", "sqrt", "cbrt", "fabs",
            "degrees", "radians", "copysign", "fmod", "pow",
        )
    },
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    **{name: lambda x, f=f: int(f(x)) for name, f in {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.items()},
    **{name: lambda x, f=f: bool(f(x)) for name, f in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items()},
    "isclose": lambda a, b, *, rel_tol=1e-9, abs_tol=0.0: bool(
        (a == b) | (np.abs(a - b) <= np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol))
    ),
    "hypot": lambda *xs: functools.reduce(np.hypot, xs) if len(xs) > 1 else np.abs(*xs),
    "remainder": _remainder,
    "modf": np.modf,
    "frexp": lambda x: (np.ldexp(x, -(exponent := int(np.frexp(x)[1]))), exponent),
    "ldexp": lambda x, i: x * 2.0**i,
    "log": lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base),
    "fsum": lambda xs: np.sum(stack_nested(list(xs))),
    "sumprod": lambda p, q: np.sum(np.multiply(stack_nested(list(p)), stack_nested(list(q)))),
    "prod": lambda xs, *, start=1: functools.reduce(operator.mul, xs, start),
    "dist": lambda p, q: np.sqrt(np.sum(np.square(np.subtract(stack_nested(list(p)), stack_nested(list(q)))))),
    **{name: lambda x, special=special: _special_function(special)(x) for name, special in (
        ("erf", "erf"), ("erfc", "erfc"), ("gamma", "gamma"), ("lgamma", "gammaln"))},
}  # fmt: skip


# The functions of `cmath`, which convert real numbers to complex ones.
COMPLEX_FUNCTIONS: dict[str, Function] = {
    **{
        name: lambda z, f=f: f(z + 0j)
        for name, f in {
            **{name: getattr(np, name) for name in ("exp", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
            **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
        }.items()
    },
    "log": lambda z, base=None: np.log(z + 0j) if base is None else np.log(z + 0j) / np.log(base + 0j),
    "phase": np.angle,
    "polar": lambda z: (np.abs(z), np.angle(z)),
    "rect": lambda r, phi: r * np.exp(1j * phi),
}  # fmt: skip


def _dispersion(ddof: int, is_root: bool = False) -> Function:
    """A variance or standard deviation of `statistics`; the mean is an optional argument, `mu` or `xbar`."""

    def dispersion(data: Any, mu: object = None, xbar: object = None) -> Any:
        center = mu if xbar is None else xbar
        if center is None:
            return np.std(data, ddof=ddof) if is_root else np.var(data, ddof=ddof)
        variance = np.sum(np.square(data - center)) / (len(data) - ddof)
        return np.sqrt(variance) if is_root else variance

    return dispersion


def _covariance(x: Any, y: Any) -> Any:
    return np.sum((x - np.mean(x)) * (y - np.mean(y))) / (len(x) - 1)


def _correlation(x: Any, y: Any, *, method: str = "linear") -> Any:
    if method != "linear":
        raise TypeError("statistics.correlation: ranks have no derivative. Use method='linear', or the values of the nodes")
    return _covariance(x, y) / np.sqrt(_covariance(x, x) * _covariance(y, y))


def _linear_regression(x: Any, y: Any, *, proportional: bool = False) -> Any:
    from statistics import LinearRegression

    x_mean, y_mean = (0.0, 0.0) if proportional else (np.mean(x), np.mean(y))
    slope = np.sum((x - x_mean) * (y - y_mean)) / np.sum(np.square(x - x_mean))
    return LinearRegression(slope=slope, intercept=0.0 if proportional else y_mean - slope * x_mean)


# The functions of `statistics`, applied to one array or node per sequence.
STATISTICS: dict[str, Function] = {
    "mean": lambda data: np.mean(data),
    "fmean": lambda data, weights=None: np.average(data, weights=weights),
    "geometric_mean": lambda data: np.exp(np.mean(np.log(data))),
    "median": lambda data: np.median(data),
    "median_low": lambda data: np.sort(data)[(len(data) - 1) // 2],
    "median_high": lambda data: np.sort(data)[len(data) // 2],
    "pvariance": _dispersion(0),
    "variance": _dispersion(1),
    "pstdev": _dispersion(0, is_root=True),
    "stdev": _dispersion(1, is_root=True),
    "covariance": _covariance,
    "correlation": _correlation,
    "linear_regression": _linear_regression,
}


def wrap_statistic(original: Function, node_function: Function) -> Function:
    """Wrap a function of `statistics`, so that `node_function` runs for sequences or means with nodes."""

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> Any:
        values = [_as_sequence(value) for value in args]
        named_values = {name: _as_sequence(value) for name, value in kwargs.items()}
        if not contains_node([*values, *named_values.values()]):
            return original(*values, **named_values)
        # Called for the errors that Python raises for wrong lengths and arguments.
        original(*map(_sample_values, values), **{name: _sample_values(value) for name, value in named_values.items()})
        return node_function(*map(_as_array, values), **{name: _as_array(value) for name, value in named_values.items()})

    return call


def _as_sequence(value: object) -> object:
    """Convert an iterable to a list; nodes, strings and scalars are returned unchanged."""
    is_scalar = isinstance(value, (Value, str)) or getattr(value, "shape", None) == ()
    return list(value) if isinstance(value, Iterable) and not is_scalar else value


def _as_array(value: object) -> Any:
    """Convert a list to a node, or to an array if it contains none."""
    return stack_nested(value) if contains_node(value) else np.asarray(value) if isinstance(value, list) else value


def _sample_values(value: object) -> object:
    """Return distinct positive numbers in place of a sequence or node."""
    if isinstance(value, list) or (isinstance(value, Value) and value.ndim):
        return [float(k) for k in range(1, len(value) + 1)]
    return 1.0 if isinstance(value, Value) else value


def adapt_statistics() -> None:
    """Let normal distributions of `statistics` keep parameters that are nodes; Python's methods compute with them."""
    from statistics import NormalDist

    def init(self: Any, mu: Any = 0.0, sigma: Any = 1.0) -> None:
        if sigma < 0.0:
            raise_error(self, 0.0, -1.0)
        self._mu, self._sigma = map(_as_parameter, (mu, sigma))

    def quantile(self: Any, p: Any) -> Any:
        if not any(isinstance(value, Value) for value in (p, self._mu, self._sigma)):
            return plain_quantile(self, p)
        if p <= 0.0 or p >= 1.0 or self._sigma <= 0.0:
            plain_quantile(NormalDist(0.0, 0.0), 2.0)  # raises
        return self._mu + self._sigma * _special_function("ndtri")(p)

    def from_samples(cls: Any, data: Any) -> Any:
        data = _as_sequence(data)
        if not contains_node(data):
            return plain_from_samples(cls, data)
        plain_from_samples(cls, _sample_values(data))  # for the errors of wrong lengths
        return cls(np.mean(sample := _as_array(data)), np.std(sample, ddof=1))

    constructor: Any = NormalDist.from_samples
    functions: tuple[Any, ...] = (NormalDist.__init__, NormalDist.inv_cdf, constructor.__func__)
    replacements: tuple[Any, ...] = (init, quantile, from_samples)
    for function, replacement in zip(functions, replacements, strict=True):
        patch_code(function, functools.partial(_call_replacement, replacement), always=replacement is not init)
    raise_error, plain_quantile, plain_from_samples = map(unpatched, functions)


def _call_replacement(replacement: Function, function: object, original: object, args: Any, kwargs: Any) -> Any:
    return replacement(*args, **kwargs)


def _as_parameter(value: Any) -> Any:
    """Convert a number to a float; a scalar node with a derivative is returned unchanged."""
    return value if isinstance(value, Value) and not value.ndim and loses_derivative(value) else float(value)


def wrap_math_function(original: Function, node_function: Function) -> Function:
    """Wrap a function of `math` or `cmath`, so that `node_function` runs for nodes."""

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> Any:
        if any(map(contains_node, args)):  # also in a thread that the differentiated function has started
            guarded_errors.check_domain(original, args)
            return node_function(*args, **kwargs)
        return original(*args, **kwargs)

    return call
