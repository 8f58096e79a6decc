"""Conversions to numbers in the code of installed packages, which keep the derivative."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.interception import conversion_calls
from tests.support.garbage import freeze_existing_objects

PACKAGE = """
import functools
import numpy as np
CALLS = []
MATRIX = np.arange(9.0).reshape(3, 3)

def discount(rate, years):
    CALLS.append(rate)
    return 1 / (1 + float(rate)) ** years

def as_float(a, dtype=None):
    dtype = np.float64 if dtype is None else dtype
    return dtype(a)

def is_float(x):
    return isinstance(x, float) and isinstance(float("1.5"), float)

class Model:
    rate = 0.5

    def __init__(self, rate):
        self.rate = np.float64(rate)
        self.matrix = MATRIX * 1.0

    def value(self, x):
        return sum(self._squares(x))

    def _squares(self, x):
        convert = lambda v: float(v) ** 2
        return [convert(v) * self.rate for v in x]

    def product(self, x):
        return self.matrix.dot(x)

def to_array(values):
    return values.__array__()

def checking(function):
    @functools.wraps(function)
    def check(x):
        return function(x)
    return check

@checking
def half(x):
    return float(x) / 2

class Scale:
    @staticmethod
    def double(x):
        return float(x) * 2

def swallowed(x):
    try:
        return np.sum(np.sin(float(x)))
    except Exception:
        return 0.0

def checked(x):
    if type(x) in (float, np.float64):
        return np.sin(x)
    if type(x) not in (list, np.ndarray):
        raise ValueError("x must be a number, list or array")
    return np.sum(x * type(x)([2]).sum()) if type(x) is list else np.sum(x * 2.0)

def text(x):
    return len("%.3f" % float(x)) * x
"""
X = np.array([0.7, 1.3, 2.1])
_numbers = itertools.count()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module whose file counts as that of an installed package."""
    path = tmp_path / f"installed_{next(_numbers)}.py"
    path.write_text(PACKAGE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(conversion_calls, "is_replaceable", lambda filename: filename == str(path))
    return module


PROGRAMS: dict[str, Callable[[ModuleType], Callable[[Any], Any]]] = {
    "float": lambda package: lambda x: np.sum(package.discount(x[0] * 0.1, 3.0) * x),
    "dtype of an array": lambda package: lambda x: np.sum(package.as_float(x * 2.0) ** 2),
    "dtype of a number": lambda package: lambda x: package.as_float(x[1] * 2.0) ** 2,
    "class and nested function": lambda package: lambda x: package.Model(x[0]).value(x),
    "plain.dot": lambda package: lambda x: np.sum(package.Model(2.0).product(x) ** 2),
    "__array__": lambda package: lambda x: np.sum(package.to_array(x) ** 2),
    "caught": lambda package: lambda x: package.swallowed(x[0]),
    "type of an array": lambda package: lambda x: package.checked(x) ** 2,
    "type of a number": lambda package: lambda x: package.checked(x[0]) ** 2,
    "text": lambda package: lambda x: package.text(x[0]),
    "decorated": lambda package: lambda x: package.half(x[0]) * x[1],
    "static method": lambda package: lambda x: package.Scale.double(x[0]) * x[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_conversion_in_package_keeps_derivative(name: str, package: ModuleType) -> None:
    program = PROGRAMS[name](package)
    expected = program(X)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = ad.value_and_grad(program)(X)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, ad.numeric.gradient(program, [X])[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(program(X), expected, rtol=0)


@pytest.mark.parametrize("name", ["float", "class and nested function", "decorated", "static method"])
def test_conversion_in_frozen_package_keeps_derivative(name: str, package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector does not list the functions of the package."""
    monkeypatch.setitem(sys.modules, package.__name__, package)
    freeze_existing_objects()
    program = PROGRAMS[name](package)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = ad.grad(program)(X)
    np.testing.assert_allclose(gradient, ad.numeric.gradient(program, [X])[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("operator", [ad.jvp, ad.vmap])
def test_conversion_in_package_works_in_other_operators(operator: Any, package: ModuleType) -> None:
    program = lambda x: package.discount(x * 0.1, 3.0)  # noqa: E731
    if operator is ad.jvp:
        _, slope = ad.jvp(program, (0.7,), (1.0,))
        np.testing.assert_allclose(slope, -0.3 / 1.07**4)
    else:
        np.testing.assert_allclose(ad.vmap(program)(X), [program(x) for x in X])


def test_conversion_in_user_code_warns_and_is_plain() -> None:
    with pytest.warns(cg.errors.LeakWarning, match=r"float\(\)"):
        gradient = ad.grad(lambda x: x[0] * float(x[1]))(X)
    np.testing.assert_allclose(gradient, [1.3, 0.0, 0.0])


def test_plain_calls_of_replaced_functions_are_unchanged(package: ModuleType) -> None:
    ad.grad(lambda x: package.discount(x[0], 2.0))(X)
    assert type(package.discount(0.5, 2)) is float
    assert type(package.as_float(np.ones(3))) is np.ndarray
    assert package.is_float(1.5)
    with pytest.raises(TypeError, match="float"):
        package.discount([1.0], 2)


def test_function_is_traced_again_once(package: ModuleType) -> None:
    gradient = ad.grad(lambda x: package.discount(x, 2.0))
    gradient(0.7)
    assert len(package.CALLS) == 2
    gradient(0.7)
    assert len(package.CALLS) == 3


def test_interception_off_restores_package_code(package: ModuleType) -> None:
    code = package.discount.__code__
    ad.grad(lambda x: package.discount(x, 2.0))(0.7)
    assert package.discount.__code__ is not code
    cg.interception(False)
    try:
        assert package.discount.__code__ == code
    finally:
        cg.interception(True)


def test_changed_source_is_not_replaced(package: ModuleType) -> None:
    path = Path(package.discount.__code__.co_filename)
    path.write_text(PACKAGE.replace("** years", "** (2 * years)"))
    with pytest.warns(cg.errors.LeakWarning, match=r"float\(\)"), pytest.raises(ad.LostGraphError):
        ad.grad(lambda x: package.discount(x, 2.0))(0.7)
