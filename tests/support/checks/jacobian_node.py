"""Jacobians of variables in forward and reverse mode, against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autodiff import forward, numeric, reverse
from tests.support.arguments import Case

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def differences(f: Function, args: tuple[Any, ...]) -> list[Array]:
    """Jacobians of a plain function by central differences of one element at a time."""
    points = [numeric.plain(a) for a in args]
    out = np.asarray(f(*[p.copy() for p in points]))
    jacobians = []
    for k, point in enumerate(points):
        columns = np.zeros((point.size, *out.shape), out.dtype)
        for i in range(point.size):
            unit = np.zeros(point.size)
            unit[i] = 1
            along = [unit.reshape(point.shape) if j == k else None for j in range(len(points))]
            columns[i] = numeric.directional(f, points, along)
        jacobians.append(np.moveaxis(columns, 0, -1).reshape(out.shape + point.shape))
    return jacobians


def as_list(jacobians: Any) -> list[Any]:
    return jacobians if isinstance(jacobians, list) else [jacobians]


def carried(f: Function, args: tuple[Any, ...]) -> list[Any]:
    inputs = forward.variables(*args)
    return as_list(forward.jacobian(f(*(inputs if isinstance(inputs, tuple) else (inputs,)))))


def pulled(f: Function, args: tuple[Any, ...]) -> list[Any]:
    inputs = reverse.variables(*args)
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return reverse.jacobian(f(*inputs), inputs)  # type: ignore[no-any-return]


def close(actual: Any, expected: Any, rtol: float) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    size = 1 + np.max(np.abs(expected), initial=0)
    assert np.max(np.abs(actual - expected), initial=0) <= rtol * size


def check(f: Function, *args: Any, rtol: float = 1e-6) -> list[Any]:
    """Both modes against central differences, and against each other more closely; return the Jacobians."""
    along, back, expected = carried(f, args), pulled(f, args), differences(f, args)
    assert len(along) == len(back) == len(expected)
    for a, b, e in zip(along, back, expected, strict=True):
        close(a, e, rtol)
        close(a, b, rtol * 1e-5)
    return along


def in_real_parts(case: Case) -> tuple[Function, list[Any]]:
    """The function of a case and its arguments, with real and imaginary parts of complex ones as two."""
    kinds = [x.dtype.kind == "c" for x in case.args]

    def f(*parts: Any) -> Any:
        values = iter(parts)
        return case.function(*[next(values) + 1j * next(values) if is_complex else next(values) for is_complex in kinds])

    return f, [part for x, c in zip(case.args, kinds, strict=True) for part in ((x.real, x.imag) if c else (x,))]


def check_jacobian_node(case: Case) -> None:
    """Both modes against central differences, with the real and imaginary parts of complex arguments as two."""
    f, args = in_real_parts(case)
    check(f, *args)
