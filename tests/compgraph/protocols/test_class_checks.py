"""Functions that check the class of a value: a node has the class of the value it represents, or the check raises."""

from __future__ import annotations

import functools
import itertools
import numbers
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures


def squared(x: Any) -> Any:
    return x**2 if isinstance(x, (float, int)) else x * 0.0


class Model:
    """An object with several kinds of callables."""

    def __call__(self, x: Any) -> Any:
        return squared(x)

    def method(self, x: Any) -> Any:
        return squared(x)


@functools.wraps(squared)
def wrapped(*args: Any) -> Any:
    return squared(*args)


class Case(NamedTuple):
    """A function as a field, called by a method that another calls."""

    function: Callable[..., Any]

    def value(self, x: Any) -> Any:
        return self.function(x)

    def beside(self, x: Any) -> Any:
        return self.value(x) + x


def enclosing() -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return x**2 if np.isscalar(x) else x * 0.0

    return lambda x: inner(x)


ASKING: dict[str, Callable[..., Any]] = {
    "isscalar": lambda x: x**2 if np.isscalar(x) else x * 0.0,
    "isinstance": squared,
    "Number": lambda x: x**2 if isinstance(x, numbers.Number) else x,
    "called": lambda x: squared(x) + x,
    "enclosed": enclosing(),
    "object": Model(),
    "method": Model().method,
    "field": Case(squared).value,
    "field, of a method's method": Case(squared).beside,
    "field of a captured object": (lambda case: lambda x: case.function(x))(Case(squared)),
    "partial": functools.partial(lambda n, x: squared(x) * n, 2),
    "wrapped": wrapped,
}
OPERATORS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "value_and_grad": lambda f, x: ad.value_and_grad(f)(x)[1],
    "jvp": lambda f, x: ad.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f, x: ad.vjp(f, x)[1](1.0)[0],
    "jacobian": lambda f, x: ad.jacobian(f)(x),
    "hessian": lambda f, x: ad.hessian(f)(x),
}


def test_number_argument_is_a_number() -> None:
    with Failures("number arguments") as failures:
        for (name, f), operator, number in itertools.product(ASKING.items(), OPERATORS, (3.0, np.float64(3.0))):
            with failures.case(f"{name}, {operator}, {type(number).__name__}"):
                offset = {"called": 1.0, "field, of a method's method": 1.0}.get(name, 0.0)
                factor = 2.0 if name == "partial" else 1.0
                expected = 2.0 * factor if operator == "hessian" else 6.0 * factor + offset
                assert OPERATORS[operator](f, number) == expected


def test_number_argument_within_other_operators_and_trees() -> None:
    assert ad.grad(ad.grad(lambda x: x**3 if np.isscalar(x) else x))(3.0) == 18.0
    assert ad.grad(lambda p: squared(p["a"]) + np.sum(p["b"]))({"a": 3.0, "b": np.ones(2)})["a"] == 6.0
    assert ad.grad(lambda x: (squared(x), "aux"), has_aux=True)(3.0) == (6.0, "aux")


def match_float(v: Any) -> Any:
    match v:
        case float():
            return v**2
    return v


@functools.singledispatch
def dispatched(v: Any) -> Any:
    return 3 * v


@dispatched.register
def _(v: float) -> Any:
    return v**2


class Flattened:
    """A method that reads the class of its argument."""

    def parts(self, tree: Any) -> list[Any]:
        if isinstance(tree, (list, tuple)):
            return [part for branch in tree for part in self.parts(branch)]
        return [tree**2] if type(tree) is np.float64 else [tree]


def caught(v: Any) -> Any:
    try:
        return v.value * 0.0
    except AttributeError:
        return v**2


ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "isinstance float": lambda v: v**2 if isinstance(v, float) else v,
    "isinstance union": lambda v: v**2 if isinstance(v, int | float) else v,
    "isinstance np.floating": lambda v: v**2 if isinstance(v, np.floating) else v,
    "isinstance np.ndarray": lambda v: v if isinstance(v, np.ndarray) else v**2,
    "isinstance Iterable": lambda v: v if isinstance(v, Iterable) else v**2,
    "isinstance Real": lambda v: v**2 if isinstance(v, numbers.Real) else v,
    "isscalar": lambda v: v**2 if np.isscalar(v) else v,
    "type is": lambda v: v**2 if type(v) is np.float64 else v,
    "type is float": lambda v: v if type(v) is float else v**2,
    "type by name": lambda v: v**2 if type(v).__name__ == "float64" else v,
    "type in a dictionary": lambda v: {np.float64: lambda u: u**2}.get(type(v), lambda u: u)(v),
    "__class__": lambda v: v**2 if v.__class__ is np.float64 else v,
    "hasattr __len__": lambda v: v if hasattr(v, "__len__") else v**2,
    "hasattr __iter__": lambda v: v if hasattr(v, "__iter__") else v**2,
    "hasattr value": lambda v: (v.value if hasattr(v, "value") else v) ** 2,
    "getattr value": lambda v: getattr(v, "value", v) ** 2,
    "try value": caught,
    "match": match_float,
    "singledispatch": dispatched,
    "is_integer": lambda v: v if v.is_integer() else v**2,
    "method": lambda v: sum(Flattened().parts([v])),
}
BATCHED = {"is_integer", "try value"}  # raise within vmap


def test_element_of_an_array_is_a_numpy_number() -> None:
    with Failures("elements") as failures:
        for name in ELEMENTS:
            with failures.case(name):
                check_element(name)


def check_element(name: str) -> None:
    """Check a function that reads the class of its argument, for elements and sums of an array, in all modes."""
    question, x = ELEMENTS[name], np.array([0.5, 1.5, 2.5])

    def f(p: Any) -> Any:
        return sum([question(v) for v in p]) + question(np.sum(p))

    value, gradient = ad.value_and_grad(f)(x)
    expected = np.sum(x**2) + np.sum(x) ** 2
    assert (value, gradient.tolist()) == (expected, (2 * x + 9).tolist())
    assert ad.jvp(f, (x,), (np.ones(3),)) == (expected, np.sum(2 * x + 9))
    assert ad.hessian(f)(x).tolist() == (2 * np.eye(3) + 2).tolist()
    compiled = cg.jit(f)
    assert {float(compiled(x)) for _ in range(3)} == {expected}
    if name not in BATCHED:
        assert ad.vmap(f)(np.stack([x, x])).tolist() == [expected, expected]


def test_module_names_are_restored() -> None:
    assert ad.grad(lambda x: x**2 if isinstance(x, float) and type(x) is float and hasattr(x, "hex") else x)(3.0) == 6.0
    stop = time.monotonic() + 10  # a thread of jit may still trace a function of this module
    while {"isinstance", "type", "hasattr"} & globals().keys() and time.monotonic() < stop:
        time.sleep(0.01)
    assert not {"isinstance", "type", "hasattr"} & globals().keys()


def test_python_number_is_a_float() -> None:
    assert ad.grad(lambda x: x**2 if type(x) is float else x)(3.0) == 6.0
    assert ad.grad(lambda x: x if hasattr(x, "shape") else x**2)(3.0) == 6.0
    assert ad.grad(lambda x: x if isinstance(x, np.generic) else x**2)(3.0) == 6.0
    assert ad.jvp(lambda x: x if isinstance(x, np.generic) else x**2, (3.0,), (1.0,)) == (9.0, 6.0)
    assert ad.grad(lambda x: x**2 if isinstance(x, np.generic) else x)(np.float64(3.0)) == 6.0


def test_vectorize_and_item_give_python_numbers() -> None:
    x = np.array([0.5, 1.5])
    assert ad.grad(lambda p: np.sum(np.vectorize(lambda v: v**2 if type(v) is float else v)(p)))(x).tolist() == [1.0, 3.0]
    assert ad.grad(lambda p: p[0].item() ** 2 if type(p[0].item()) is float else p[1])(x).tolist() == [1.0, 0.0]


def test_metaclass_defined_within_operator_is_called() -> None:
    def f(x: Any) -> Any:
        classes = []

        class Registering(type):
            def __new__(mcs, name: str, bases: Any, content: Any) -> Any:
                classes.append(super().__new__(mcs, name, bases, content))
                return classes[-1]

        class Square(metaclass=Registering):
            def __call__(self, v: Any) -> Any:
                return v**2

        assert isinstance(Square, Registering)
        assert not isinstance(int, Registering)
        assert type(Square) is Registering
        return sum(kind()(x) for kind in classes)

    assert ad.grad(f)(3.0) == 6.0


ALIAS = isinstance


def test_class_check_of_element_is_that_of_a_number() -> None:
    def matched(v: Any) -> Any:
        match v:
            case np.ndarray():
                return v
        return v**2

    x = np.array([0.5, 1.5])
    for f, slopes in (
        (lambda p: matched(p[0]) + p[1], [1.0, 1.0]),
        (lambda p: p[0] if ALIAS(p[0], np.ndarray) else p[0] ** 2, [1.0, 0.0]),
    ):
        assert ad.grad(f)(x).tolist() == slopes


def test_class_check_of_node_itself_raises() -> None:
    def f(p: Any) -> Any:
        return np.sum(p**2) if p.__class__ is np.ndarray else np.sum(p)

    x = np.array([0.5, 1.5])
    for _ in range(2):
        with pytest.raises(ad.DetachedGradientError, match=r"for numbers, but .* for nodes\. It uses x\.__class__"):
            ad.grad(f)(x)
        with pytest.raises(ad.DetachedGradientError):
            ad.vmap(f)(np.stack([x, x]))


def test_missing_attribute_check_raises() -> None:
    def f(x: Any) -> Any:
        try:
            return x * x.size
        except AttributeError:
            return x**2

    assert ad.grad(f)(np.float64(3.0)) == 1.0
    with pytest.raises(ad.DetachedGradientError, match="It uses except AttributeError"):
        ad.grad(f)(3.0)


def test_top_level_element_reports_a_numpy_number() -> None:
    x = cg.variable([0.5, 1.5])
    y = sum([v**2 for v in x if isinstance(v, float)]) + match_float(x[0]) + dispatched(np.sum(x))
    assert ad.gradient(y)[x].tolist() == [2.0 + 4.0, 3.0 + 4.0]
