"""Adaptive quadrature: SciPy's value; derivatives are integrals of the derivative, by the same method."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.polynomial.legendre import leggauss

from compgraph.graph import to_values
from compgraph.interception import unpatched
from compgraph.scipy import limit_order
from compgraph.values import INERT, Value

from ..linear_functionals import NodeRecorder, functional

Function = Callable[..., Any]
_QUAD_VEC_PARAMETERS = ("epsabs", "epsrel", "norm", "cache_size", "limit", "workers", "points", "quadrature", "full_output")
NOISE_FACTOR = 50.0  # the tolerance of an integral as a multiple of the noise of its function
MIN_TOLERANCE = 1e-13  # the least tolerance of derivatives
RULE_POINTS = 6  # Gauss points at a limit: derivatives with respect to a limit are exact to order 12

_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__  # the base class of ctypes functions, which never return nodes


def quad(
    func: object,
    a: Any,
    b: Any,
    args: tuple[Any, ...] = (),
    full_output: object = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> Any:
    """``scipy.integrate.quad``."""
    args = args if isinstance(args, tuple) else (args,)
    if isinstance(func, _C_FUNCTION):
        return unpatched(scipy.integrate.quad)(
            func, a, b, args, full_output, epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst, complex_func
        )
    if complex_func:
        return _integrate_complex(
            func, a, b, args, full_output, epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst
        )
    scipy_function = unpatched(scipy.integrate.quad)
    options = {
        "epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": to_values(points), "weight": weight, "wvar": wvar,
        "wopts": wopts, "maxp1": maxp1, "limlst": limlst,
    }  # fmt: skip
    if not callable(func):  # a LowLevelCallable
        return scipy_function(func, a, b, args, full_output, **options)
    if any(isinstance(v, Value) for v in (wvar, *(wvar if isinstance(wvar, tuple) else ()))):
        raise TypeError("scipy.integrate.quad: wvar= cannot be a node. Write the weight into the function")
    f = (lambda x: func(x, *args)) if args else func
    recorder, start, end = NodeRecorder(f), to_values(a), to_values(b)
    scipy_result = scipy_function(recorder, start, end, (), full_output, **options)

    def apply(g: Function, noise: float) -> Any:
        relaxed_options = {**options, "epsabs": max(epsabs, NOISE_FACTOR * noise), "epsrel": max(epsrel, NOISE_FACTOR * noise)}
        return _by_components(lambda h: scipy_function(h, start, end, **relaxed_options)[0], g)

    value = functional(apply, f, (recorder, scipy_result[0]))
    value = _add_limit_derivatives("quad", value, f, a, b, weight, wvar)
    return (value, *scipy_result[1:])


def quad_vec(
    f: Callable[..., Any], a: Any, b: Any, *positional_arguments: object, args: tuple[Any, ...] = (), **options: Any
) -> Any:
    """``scipy.integrate.quad_vec``."""
    scipy_function = unpatched(scipy.integrate.quad_vec)
    args = args if isinstance(args, tuple) else (args,)
    g = (lambda x: f(x, *args)) if args else f
    start, end = float(to_values(a)), float(to_values(b))
    workers = options.get("workers", positional_arguments[5] if len(positional_arguments) > 5 else 1)
    if workers != 1:
        if any(isinstance(v, Value) for v in (a, b, *args)):
            raise TypeError(
                "scipy.integrate.quad_vec: workers= sends the function to other processes, where nodes are not available. Omit it"
            )
        return scipy_function(f, a, b, *positional_arguments, **({"args": args} if args else {}), **options)
    recorder = NodeRecorder(g)
    scipy_result = scipy_function(recorder, start, end, *positional_arguments, **options)
    options = {**dict(zip(_QUAD_VEC_PARAMETERS, positional_arguments, strict=False)), **options}

    def apply(h: Function, noise: float) -> Any:
        tolerance = max(MIN_TOLERANCE, NOISE_FACTOR * noise)  # a relative one is unattainable where derivatives cancel to zero
        relaxed_options = {**options, "epsabs": max(options.get("epsabs", 0.0), tolerance)}
        relaxed_options["epsrel"] = max(options.get("epsrel", 1e-8), NOISE_FACTOR * noise)
        return scipy_function(h, start, end, **relaxed_options)[0]

    value = functional(apply, g, (recorder, scipy_result[0]))
    return (_add_limit_derivatives("quad_vec", value, g, a, b), *scipy_result[1:])


def _integrate_complex(func: Any, a: Any, b: Any, args: Any, full_output: Any, *options: Any) -> Any:
    """Integrate the real and the imaginary part of a complex function."""
    recorder = NodeRecorder(lambda x: func(x, *args))
    scipy_result = unpatched(scipy.integrate.quad)(
        recorder, to_values(a), to_values(b), (), full_output, *to_values(options), True
    )
    if not recorder.returned_node and not isinstance(a, Value) and not isinstance(b, Value):
        return scipy_result
    re = quad(lambda x: np.real(func(x, *args)), a, b, (), full_output, *options)
    im = quad(lambda x: np.imag(func(x, *args)), a, b, (), full_output, *options)
    integral_and_error = re[0] + 1j * im[0], re[1] + 1j * im[1]
    return (*integral_and_error, {"real": re[2:], "imag": im[2:]}) if full_output else integral_and_error


def _by_components(integrate: Function, g: Function) -> Any:
    """Integrate an array element by element; each point is evaluated once."""
    values_by_point: dict[float, Any] = {}

    def evaluate(x: float) -> Any:
        if x not in values_by_point:
            values_by_point[x] = np.asarray(g(x))
        return values_by_point[x]

    def integrate_element(k: int) -> Any:
        return integrate(lambda x: float(evaluate(x).ravel()[k]))

    first = integrate_element(0)
    shape = next(iter(values_by_point.values())).shape
    integrals = [first, *[integrate_element(k) for k in range(1, int(np.prod(shape)))]]
    return np.reshape(integrals, shape)[()]


def _scipy_code(name: str) -> Function:
    """Return SciPy's own function, which calls `quad` for each variable."""
    return lambda *args, **kwargs: unpatched(getattr(scipy.integrate, name))(*args, **kwargs)


nquad, dblquad, tplquad = map(_scipy_code, ("nquad", "dblquad", "tplquad"))


# ------------------------------------------------------------------------------------------ the limits


def _add_limit_derivatives(
    name: str, value: object, f: Function, a: float, b: object, weight: Any = None, wvar: object = None
) -> Any:
    """Add to an integral its dependence on the limits that are nodes."""
    for limit, sign in ((a, -1), (b, 1)):
        if isinstance(limit, Value) and type(limit) not in INERT and limit.dtype.kind == "f" and np.isfinite(limit.raw_value):
            if weight not in (None, "sin", "cos"):
                raise TypeError(
                    f"scipy.integrate.{name}: with weight={weight!r} a limit cannot be a node, because the weight depends on it. "
                    "Substitute the variable so that the limits are constant"
                )
            weight_function = {"sin": np.sin, "cos": np.cos}.get(weight)
            integrand = (
                f if weight_function is None else (lambda x, weight_function=weight_function: f(x) * weight_function(wvar * x))
            )
            value = value + sign * _integral_to_limit(name, integrand, limit)
    return value


@functools.cache
def _gauss_rule() -> list[tuple[float, float]]:
    """Return the nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = leggauss(RULE_POINTS)
    return [((1 + p) / 2, w / 2) for p, w in zip(nodes, weights, strict=True)]


def _integral_to_limit(name: str, f: Function, limit: Any) -> Any:
    """Integrate from the value of a limit to the limit itself: 0, with the derivative f.

    Gauss-Legendre quadrature with n nodes is exact to order 2n in the length of the interval, so all derivatives to that order
    are those of the integral.
    """
    limit = np.reshape(limit, ())
    number = limit.raw_value
    length = limit - number
    total = sum(w * f(number + p * length) for p, w in _gauss_rule())
    if not np.all(np.isfinite(np.asarray(to_values(total)))):
        raise ValueError(
            f"scipy.integrate.{name}: the function is not finite at the limit {number}, so the integral has no derivative there"
        )
    return limit_order(length * total, 2 * RULE_POINTS, f"a limit of scipy.integrate.{name}")
