"""All ufuncs of ``scipy.special`` are recorded. The derivative by each argument is right, or an error names the argument."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff
import compgraph as cg
from autodiff.reverse import gradient
from tests.support.for_each import for_each
from tests.support.special_points import POINTS

special: Any = importlib.import_module("scipy.special")
SLOPES = [(name, position) for name, point in POINTS.items() for position, key in enumerate(point) if key[-1] not in "?!"]
UNSUPPORTED = [(name, position) for name, point in POINTS.items() for position, key in enumerate(point) if key[-1] == "?"]
WHOLE = [(name, position) for name, point in POINTS.items() for position, key in enumerate(point) if key[-1] == "!"]


def along(name: str, position: int) -> tuple[Callable[[Any], Any], Any]:
    """A ufunc as a function of one of its arguments, and the argument."""
    values = list(POINTS[name].values())
    function = getattr(special, name)
    return lambda x: function(*values[:position], x, *values[position + 1 :]), values[position]


def results(out: Any) -> tuple[Any, ...]:
    """The results of a ufunc as a tuple, even a single one."""
    return out if isinstance(out, tuple) else (out,)


def slope_of(function: Callable[[Any], Any], x: Any) -> Any:
    """Central difference of sixth order with a large step, because some functions are accurate to ten digits only."""
    step = 4e-3 * max(1.0, abs(x))
    weights = {1: 45, 2: -9, 3: 1}
    parts = [w * (np.array(function(x + k * step)) - np.array(function(x - k * step))) for k, w in weights.items()]
    return sum(parts) / (60 * step)


def test_special_ufuncs_all_have_a_point() -> None:
    exported = {name: function for name in dir(special) if isinstance(function := getattr(special, name), np.ufunc)}
    assert set(POINTS) == set(exported)
    assert {name: len(point) for name, point in POINTS.items()} == {name: function.nin for name, function in exported.items()}


@for_each("name", POINTS)
def test_special_ufunc_value_is_bit_identical(name: str) -> None:
    values = [np.array([x, x]) for x in POINTS[name].values()]
    expected = results(getattr(special, name)(*values))
    nodes = [cg.variable(x) if x.dtype.kind in "fc" else x for x in values]
    if not any(isinstance(x, cg.Node) for x in nodes):
        nodes[0] = cg.variable(values[0].astype(float))
    result = results(getattr(special, name)(*nodes))
    assert len(result) == len(expected)
    for node, value in zip(result, expected, strict=True):
        assert isinstance(node, cg.OperationalNode)
        assert (node.dtype, node.shape) == (value.dtype, value.shape)
        assert node.value.tobytes() == value.tobytes()


@for_each(("name", "position"), SLOPES)
def test_special_ufunc_slope(name: str, position: int) -> None:
    function, x = along(name, position)
    variable = cg.variable(x)
    parts = results(function(variable))
    expected = np.atleast_1d(slope_of(function, x))
    tangents = results(autodiff.jvp(lambda t: np.stack([p + 0 * t for p in results(function(t))]), (x,), (1.0,))[1])[0]
    for k, part in enumerate(parts):
        close = {"rel": 1e-6, "abs": 1e-7}
        assert complex(tangents[k]) == pytest.approx(complex(expected[k]), **close), f"the tangent of result {k}"
        if isinstance(x, float) and part.dtype.kind == "c":
            result = complex(gradient(np.real(part), variable)[variable], gradient(np.imag(part), variable)[variable])
        else:
            result = complex(gradient(part, variable, adjoint=np.ones((), part.dtype))[variable])
        assert result == pytest.approx(complex(expected[k]), **close), f"the cotangent from result {k}"


@pytest.mark.filterwarnings("ignore:non-integer arg n is deprecated")  # SciPy, of any n that is not of an integer dtype
@for_each(("name", "position"), UNSUPPORTED)
def test_special_ufunc_unknown_derivative_raises(name: str, position: int) -> None:
    function, x = along(name, position)
    variable = cg.variable(float(x))
    argument = [*POINTS[name]][position].strip("?")
    opname = {"jn": "jv"}.get(name, name)
    message = re.escape(f"scipy.special.{opname}: no derivative with respect to its argument {argument} is known")
    for part in results(function(variable)):
        with pytest.raises(TypeError, match=message):
            gradient(part, variable, adjoint=np.ones((), part.dtype))
    with pytest.raises(TypeError, match=message):
        autodiff.jvp(lambda t: results(function(t))[0], (float(x),), (1.0,))


@for_each(("name", "position"), WHOLE)
def test_special_ufunc_integer_argument_as_variable_raises(name: str, position: int) -> None:
    function, x = along(name, position)
    with pytest.raises(TypeError):
        function(cg.variable(float(x)))
