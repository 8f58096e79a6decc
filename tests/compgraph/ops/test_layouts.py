"""Any shape, axes, dtype and order in memory: values are NumPy's bit for bit, and both modes agree on the derivative."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices, mutually_broadcastable_shapes, valid_tuple_axes

import compgraph as cg
from autodiff import numeric
from autodiff.forward import jvp
from autodiff.grads import array_manipulation
from autodiff.operators.grad import vjp
from autodiff.rules import Rule
from compgraph import ops
from tests.support.arguments import Array, Case, complexes, inside, off_zero, positive, small_complexes
from tests.support.checks.rules import close, product, random_like
from tests.support.every_name import DOMAINS, agree, numbers, parts
from tests.support.failures import Failures
from tests.support.package_rules import RULES

pytestmark = pytest.mark.portable

Function = Callable[..., Any]
Draw = Callable[..., Any]

FEW = settings(max_examples=10, deadline=None, derandomize=True, database=None)
SOME = settings(max_examples=16, deadline=None, derandomize=True, database=None)

# ------------------------------------------------------------------------------------------ any arrays

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": np.copy,
    "Fortran": lambda x: np.array(x, order="F"),
    "axes permuted": lambda x: np.moveaxis(np.copy(np.moveaxis(x, 0, -1)), -1, 0) if x.ndim else x.copy(),
    "every second": lambda x: _as_window(x, 2),
    "backwards": lambda x: _as_window(x, -1),
    "every third backwards": lambda x: _as_window(x, -3),
}


def _as_window(x: Array, step: int) -> Array:
    """The same numbers as a view of a larger array whose other elements are nan."""
    larger = np.full([n * abs(step) for n in x.shape], np.nan, x.dtype)
    window = larger[(..., *(slice(None, None, step) for _ in x.shape))]
    window[...] = x
    return window


dtypes = st.sampled_from([np.float64, np.float32, np.complex128, np.complex64])
layouts = st.sampled_from([*LAYOUTS.values()])
shapes = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)


@st.composite
def arrays(draw: Draw, shape: Any = shapes, make: Any = off_zero, plane: Any = complexes) -> Array:
    """Numbers of any dtype, far from one another, in any memory layout."""
    sizes = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    dtype = draw(dtypes)
    maker = plane if np.dtype(dtype).kind == "c" else make
    result: Array = draw(layouts)(maker(*sizes, seed=draw(st.integers(0, 5))).astype(dtype))
    return result


# ---------------------------------------------------------------------------------------------- checks


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore NumPy's warnings of empty means, casts and infinities."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@quiet()
def check(function: Function, *args: Array) -> None:
    """Compare the value or error with NumPy's, and cotangents with tangents; in double precision with central differences too."""
    try:
        expected = function(*args)
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        with pytest.raises(type(error)):
            function(*[cg.variable(x, copy=False) for x in args])
        return
    agree(function(*[cg.variable(x, copy=False) for x in args]), expected)
    if not any(np.asarray(part).dtype.kind in "fc" for part in parts(expected)):
        return
    case = numbers(Case("any", "", function, args))
    rng = np.random.default_rng(0)
    value = case.function(*args)
    if not np.all(np.isfinite(value)):
        return
    u, v = random_like(value, rng), [random_like(x, rng) for x in args]
    pulled, tangent = vjp(case.function, *args)[1](u), jvp(case.function, args, v)[1]
    for cotangent, x in zip(pulled, args, strict=True):
        assert (cotangent.shape, cotangent.dtype) == (x.shape, x.dtype)
    assert (np.shape(tangent), tangent.dtype) == (value.shape, value.dtype)
    single = any(a.dtype in (np.float32, np.complex64) for a in (*args, value))
    forward, reverse = product([u], [tangent]), product(pulled, v)
    size = 1 + sum(float(np.sum(np.abs(a * t))) for a, t in zip(pulled, v, strict=True)) + float(np.sum(np.abs(u * tangent)))
    assert abs(forward - reverse) <= (2e-4 if single else 1e-10) * size, f"<u, Jv> = {forward}, <J^T u, v> = {reverse}"
    if not single:
        close(tangent, numeric.directional(case.function, args, v), 1e-6, "tangent")


# ----------------------------------------------------------------------------------------- elementwise

UFUNCS = sorted((f for f in ops.SMOOTH_UFUNCS if f.signature is None), key=lambda f: f.__name__)
SMALL = {"tan", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"}  # complex numbers in the unit square


def _makers(ufunc: np.ufunc) -> dict[str, Any]:
    name = ufunc.__name__
    return {
        "make": DOMAINS.get(name, positive if ufunc.nin > 1 else off_zero),
        "plane": small_complexes if name in SMALL else complexes,
    }


def _others(*shape: int, seed: int = 0) -> Array:
    """Positive numbers that divide none of `positive`."""
    return 1.07 * positive(*shape, seed=seed + 17)


@pytest.mark.parametrize("ufunc", [f for f in UFUNCS if f.nin == 1], ids=lambda f: f.__name__)
@FEW
@given(st.data())
def test_layouts_of_unary_ufuncs(ufunc: np.ufunc, data: st.DataObject) -> None:
    check(ufunc, data.draw(arrays(**_makers(ufunc))))


@pytest.mark.parametrize("ufunc", [f for f in UFUNCS if f.nin == 2], ids=lambda f: f.__name__)
@FEW
@given(st.data(), mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=3, max_side=3))
def test_layouts_of_binary_ufuncs(ufunc: np.ufunc, data: st.DataObject, shapes: Any) -> None:
    x = data.draw(arrays(shapes.input_shapes[0], **_makers(ufunc)))
    if ufunc is np.ldexp:
        check(lambda x: np.ldexp(x, np.arange(np.prod(shapes.input_shapes[1])).reshape(shapes.input_shapes[1]).astype(int)), x)
        return
    check(ufunc, x, data.draw(arrays(shapes.input_shapes[1], make=_others)))


# ------------------------------------------------------------------------------------------ reductions

REDUCTIONS: dict[str, Function] = {
    f.__name__: f
    for f in (
        np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.ptp, np.nansum, np.nanmean, np.nanprod, np.nanmax, np.nanmin,
        np.nanvar, np.nanstd, np.median, np.nanmedian, np.average, cg.logsumexp,
    )
}  # fmt: skip
ONE_AXIS: dict[str, Function] = {
    "percentile": partial(np.percentile, q=[20, 70]),
    "quantile": partial(np.quantile, q=0.3, method="hazen"),
    "nanquantile": partial(np.nanquantile, q=0.3),
    "nanpercentile": partial(np.nanpercentile, q=60),
    **{
        f.__name__: f
        for f in (
            np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.hypot.reduce, np.subtract.accumulate, np.sort, np.diff,
            np.gradient, np.trapezoid, np.flip, cg.softmax, cg.log_softmax, np.logaddexp.reduce, np.linalg.vector_norm,
        )
    },
    "cumulative_sum": partial(np.cumulative_sum, include_initial=True),
    "cumulative_prod": np.cumulative_prod,
    "norm": partial(np.linalg.norm, ord=3),
}  # fmt: skip


@pytest.mark.parametrize("function", REDUCTIONS.values(), ids=REDUCTIONS)
@SOME
@given(st.data(), shapes, st.booleans())
def test_layouts_of_reductions_over_any_axes(
    function: Function, data: st.DataObject, shape: tuple[int, ...], keepdims: bool
) -> None:
    axes = data.draw(st.none() | valid_tuple_axes(len(shape)) | _axis(len(shape)))
    check(partial(function, axis=axes, keepdims=keepdims), data.draw(arrays(shape)))


@pytest.mark.parametrize("function", ONE_AXIS.values(), ids=ONE_AXIS)
@SOME
@given(st.data(), array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
def test_layouts_of_functions_along_any_axis(function: Function, data: st.DataObject, shape: tuple[int, ...]) -> None:
    check(partial(function, axis=data.draw(_axis(len(shape)))), data.draw(arrays(shape)))


def _axis(ndim: int) -> Any:
    """One axis, counted from either end."""
    return st.integers(-ndim, ndim - 1) if ndim else st.none()


# --------------------------------------------------------------------------------------------- shaping


def _order(draw: Draw, shape: tuple[int, ...]) -> Any:
    """An order of the axes."""
    return draw(st.permutations(range(len(shape))))


def _number_elements(draw: Draw, shape: tuple[int, ...]) -> Any:
    return draw(_axis(len(shape)))


def _reshape(draw: Draw, shape: tuple[int, ...]) -> Function:
    order, count = draw(st.sampled_from("CFA")), int(np.prod(shape))
    sizes = [(-1,), (count,), (1, count), (count, 1, 1), shape[::-1], (1, *shape)]
    chosen = draw(st.sampled_from(sizes))
    return lambda x: np.reshape(x, chosen, order=order)


def _repeat(draw: Draw, shape: tuple[int, ...]) -> Function:
    axis = draw(st.none() | _axis(len(shape)))
    count = int(np.prod(shape)) if axis is None else shape[axis]
    repeats = draw(st.integers(0, 2) | st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return lambda x: np.repeat(x, np.array(repeats, int), axis)


def _take(draw: Draw, shape: tuple[int, ...]) -> Function:
    axis = draw(st.none() | _axis(len(shape)))
    count = math.prod(shape) if axis is None else shape[axis]
    indices = draw(st.lists(st.integers(-4, 6), max_size=4 if count else 0))  # to wrap into nothing takes NumPy 2.4 for ever
    return lambda x: np.take(x, np.array(indices, int), axis, mode="wrap")


def _join(function: Function) -> Callable[[Draw, tuple[int, ...]], Function]:
    def draw_function(draw: Draw, shape: tuple[int, ...]) -> Function:
        axis = draw(_axis(len(shape)))
        return lambda x: function([x, np.ones(shape, np.float32), -x], axis=axis)

    return draw_function


def _spread(draw: Draw, shape: tuple[int, ...]) -> Function:
    sizes = (*draw(st.lists(st.integers(0, 2), max_size=2)), *[draw(st.integers(0, 3)) if n == 1 else n for n in shape])
    return lambda x: np.broadcast_to(x, sizes)


def _pad(draw: Draw, shape: tuple[int, ...]) -> Function:
    widths = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape]
    mode = draw(st.sampled_from(["constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "mean", "maximum"]))
    return lambda x: np.pad(x, widths, mode=mode)


def _along(function: Callable[..., Any]) -> Callable[[Draw, tuple[int, ...]], Function]:
    """A function with a whole number and an axis."""

    def draw_function(draw: Draw, shape: tuple[int, ...]) -> Function:
        number, axis = draw(st.integers(-3, 3)), draw(_axis(len(shape)))
        return lambda x: function(x, number, axis)

    return draw_function


def _as_it_is(function: Function) -> Callable[[Draw, tuple[int, ...]], Function]:
    return lambda draw, shape: function


def _index(draw: Draw, shape: tuple[int, ...]) -> Function:
    index = draw(basic_indices(shape, max_dims=5, allow_newaxis=True))
    return lambda x: x[index]


def _mask(draw: Draw, shape: tuple[int, ...]) -> Function:
    mask = np.resize(draw(st.lists(st.booleans(), min_size=1, max_size=9)), shape)
    return lambda x: x[mask]


def _write(draw: Draw, shape: tuple[int, ...]) -> Function:
    index = draw(basic_indices(shape))

    def write(x: Any) -> Any:
        y = x * 1.0
        y[index] = np.multiply(y[index] * 2.0, x[index])  # the operator of complex scalars rounds otherwise, in NumPy
        return y

    return write


PARTS: dict[Any, Any] = {
    np.dtype(a): b
    for a, b in {
        np.float64: np.complex128, np.float32: np.complex64, np.complex128: np.float64, np.complex64: np.float32,
    }.items()
}  # fmt: skip
SHAPING: dict[str, Callable[[Draw, tuple[int, ...]], Function]] = {
    "reshape": _reshape,
    "ravel": lambda draw, shape: partial(np.ravel, order=draw(st.sampled_from("CFAK"))),
    "flatten": lambda draw, shape: (lambda order: lambda x: x.flatten(order))(draw(st.sampled_from("CFAK"))),
    "copy": lambda draw, shape: partial(np.copy, order=draw(st.sampled_from("CFAK"))),
    "astype": lambda draw, shape: (lambda dtype: lambda x: x.astype(dtype))(draw(st.sampled_from([np.float32, complex, float]))),
    "view": _as_it_is(lambda x: x.view(PARTS[x.dtype])),
    "transpose": lambda draw, shape: partial(np.transpose, axes=_order(draw, shape)),
    "swapaxes": lambda draw, shape: (lambda a, b: lambda x: np.swapaxes(x, a, b))(
        _number_elements(draw, shape), _number_elements(draw, shape)
    ),
    "moveaxis": lambda draw, shape: (lambda a, b: lambda x: np.moveaxis(x, a, b))(range(len(shape)), _order(draw, shape)),
    "squeeze": lambda draw, shape: partial(np.squeeze, axis=draw(st.none() | valid_tuple_axes(len(shape)))),
    "expand_dims": lambda draw, shape: partial(np.expand_dims, axis=draw(_axis(len(shape) + 1))),
    "broadcast_to": _spread,
    "concatenate": _join(np.concatenate),
    "stack": _join(np.stack),
    "getitem": _index,
    "getitem, mask": _mask,
    "setitem": _write,
    "roll": _along(np.roll),
    "repeat": _repeat,
    "tile": lambda draw, shape: partial(np.tile, reps=draw(st.lists(st.integers(0, 2), max_size=4))),
    "take": _take,
    "delete": _along(np.delete),
    "insert": _along(lambda x, number, axis: np.insert(x, number, 1.5, axis)),
    "partition": _along(np.partition),
    "take_along_axis": _along(lambda x, number, axis: np.take_along_axis(x, np.argsort(x, axis), axis)),
    "sort": _along(lambda x, number, axis: np.sort(x, axis=axis)),
    "diagonal": _along(lambda x, number, axis: np.diagonal(x, number, axis, 0)),
    "trace": _along(lambda x, number, axis: np.trace(x, number, 0, axis)),
    "diag": _along(lambda x, number, axis: np.diag(x, number)),
    "diagflat": _along(lambda x, number, axis: np.diagflat(x, number)),
    "tril": _along(lambda x, number, axis: np.tril(x, number)),
    "triu": _along(lambda x, number, axis: np.triu(x, number)),
    "flip": _along(lambda x, number, axis: np.flip(x, axis)),
    "rot90": _along(lambda x, number, axis: np.rot90(x, number, (axis, 0))),
    "split": _along(lambda x, number, axis: np.array_split(x, abs(number) + 1, axis)),
    "sliding_window_view": _along(lambda x, number, axis: np.lib.stride_tricks.sliding_window_view(x, abs(number), axis)),
    "resize": _along(lambda x, number, axis: np.resize(x, (abs(number), 2))),
    "pad": _pad,
    "fft_fft": _along(lambda x, number, axis: np.fft.fft(x, abs(number) or None, axis)),
    "fft_ifft": _along(lambda x, number, axis: np.fft.ifft(x, abs(number) or None, axis, "ortho")),
    "fft_fftshift": _along(lambda x, number, axis: np.fft.fftshift(x, axis)),
}


@pytest.mark.parametrize("draw_function", SHAPING.values(), ids=SHAPING)
@SOME
@given(st.data(), shapes)
def test_layouts_of_shape_functions(
    draw_function: Callable[[Draw, tuple[int, ...]], Function], data: st.DataObject, shape: tuple[int, ...]
) -> None:
    check(draw_function(data.draw, shape), data.draw(arrays(shape)))


# ---------------------------------------------------------------------------------------- completeness


def test_layouts_cover_every_reduction_and_shape_rule() -> None:
    reductions = {opname for opname, rule in RULES.items() if rule.kind == "reduction"} - {"sigmoid_cross_entropy"}
    assert reductions <= {*REDUCTIONS, *[f"linalg_{name}" for name in ONE_AXIS]}
    moved = {rule.opname for rule in vars(array_manipulation).values() if isinstance(rule, Rule)} - {
        "input",
        "scatter",
        "scatter_add",
        "window",
        "scatter_to_buffer",
    }
    gathers = {opname for opname, rule in RULES.items() if rule.kind == "gather"}
    assert moved | gathers <= {*SHAPING}


def test_layouts_check_detects_wrong_derivative() -> None:
    """The checks themselves: a value, a cotangent and a tangent that are off."""
    x = inside(2, 3)
    with pytest.raises(AssertionError):
        check(lambda x: np.sin(x) * (1 + 1e-15 * isinstance(x, cg.Node)), x)
    with pytest.raises(AssertionError):
        check(lambda x: x * cg.stop_gradient(x) if isinstance(x, cg.Node) else x * x, x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.var, np.nanvar], ids=lambda f: f.__name__)
@pytest.mark.parametrize("ddof", [2, 3, 2.5])
def test_var_without_degrees_of_freedom(function: Function, ddof: float) -> None:
    """NumPy divides by zero, however many are missing; the derivative is not finite either."""
    x = np.array([1.0, 2.0])
    (pulled,) = vjp(partial(function, ddof=ddof), x)[1](1.0)
    pushed = [jvp(partial(function, ddof=ddof), [x], [unit])[1] for unit in np.eye(2)]
    assert np.array_equal(pulled, [-np.inf, np.inf]) or function is np.nanvar
    assert not np.any(np.isfinite([pulled, pushed]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_statistics_of_empty_arrays() -> None:
    with Failures("statistics") as failures:
        functions = (np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd)
        choices: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": 1}, {"keepdims": True}]
        for function, options in itertools.product(functions, choices):
            with failures.case(f"{function.__name__}, {options}"):
                x = np.zeros((0, 0))
                expected = function(x, **options)
                agree(function(cg.variable(x), **options), expected)
                assert vjp(partial(function, **options), x)[1](expected)[0].shape == x.shape
                assert np.shape(jvp(partial(function, **options), [x], [x])[1]) == np.shape(expected)
