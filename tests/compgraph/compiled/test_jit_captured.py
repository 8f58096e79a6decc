"""Captured state of compiled functions: a change is detected, and another program is compiled."""

from __future__ import annotations

import array
import collections
import contextlib
import dataclasses
import decimal
import enum
import functools
import math
import sys
import time
import types
import weakref
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.failures import Failures
from tests.support.for_each import for_each
from tests.support.jitting import assert_not_compiled, compiled, is_compiled, same

pytest.importorskip("llvmlite", reason="without a compiler these functions run as NumPy")

pytestmark = pytest.mark.portable

X = np.linspace(-1.0, 2.0, 5)
FACTOR = 2.0
TABLE = np.arange(5.0)
SETTINGS = {"rate": 0.5, "steps": [1.0, 2.0]}


def helper(x: Any) -> Any:
    return x * FACTOR


def uses_helper(x: Any) -> Any:
    return helper(x) + 1


def check_after_changes(jitted: Any, *changes: Any) -> None:
    """After each change the compiled function returns the function's result."""
    assert is_compiled(jitted), jitted.report()
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            assert same(jitted(X), jitted.__wrapped__(X)), jitted.report()
    assert is_compiled(jitted), jitted.report()


def test_captured_globals_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = compiled(lambda x: x * FACTOR, X)
    check_after_changes(
        jitted, lambda: monkeypatch.setitem(globals(), "FACTOR", 3.0), lambda: monkeypatch.setitem(globals(), "FACTOR", 2.0)
    )
    assert "program 2" in jitted.report()
    assert "program 3" not in jitted.report()


def test_captured_globals_of_called_functions_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    check_after_changes(
        compiled(uses_helper, X),
        lambda: monkeypatch.setitem(globals(), "FACTOR", 5.0),
        lambda: monkeypatch.setitem(globals(), "helper", lambda x: x - 1),
    )


def test_captured_equal_numbers_share_program(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = compiled(uses_helper, X)
    check_after_changes(jitted, lambda: monkeypatch.setitem(globals(), "FACTOR", float("2.0")))
    assert "program 2" not in jitted.report()


def test_captured_closure_variables_are_compared() -> None:
    scale, bias = 2.0, np.ones(5)

    def f(x: Any) -> Any:
        return x * scale + bias

    jitted = compiled(f, X)
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    check_after_changes(
        jitted,
        lambda: setattr(cells["scale"], "cell_contents", -1.0),
        lambda: setattr(cells["bias"], "cell_contents", np.zeros(5)),
        lambda: setattr(cells["scale"], "cell_contents", np.float32(3)),
    )


@pytest.mark.parametrize("size", [5, 20_000, 500_000])
def test_captured_arrays_are_compared_after_writes(size: int) -> None:
    table = np.arange(float(size))
    jitted = compiled(lambda x: x * table.sum() + table[:5] + table[-1], X)

    def write(place: int, value: float) -> None:
        table[place] = value

    check_after_changes(jitted, lambda: write(0, 7.0), lambda: write(size // 2, -7.0), lambda: write(-1, np.nan))


def test_captured_signed_zeros_are_compared() -> None:
    table = np.zeros(5)
    jitted = compiled(lambda x: np.copysign(x, table), X)
    check_after_changes(jitted, lambda: table.fill(-0.0))


def test_captured_lists_and_dictionaries_are_compared() -> None:
    layers = [np.ones(5), np.ones(5) * 2]
    settings: dict[str, Any] = {"rate": 0.5, "more": {"offset": 1.0}}

    def f(x: Any) -> Any:
        for layer in layers:
            x = x * layer
        return x * settings["rate"] + settings["more"]["offset"]

    check_after_changes(
        compiled(f, X),
        lambda: layers.append(np.ones(5) * 3),
        lambda: settings.update(rate=2.0),
        lambda: settings["more"].update(offset=-1.0),
        lambda: layers[0].fill(9.0),
        lambda: layers.pop(),
    )


def test_captured_default_values_are_compared() -> None:
    ones = np.ones(5)

    def f(x: Any, scale: Any = 2.0, *, table: Any = ones) -> Any:
        return x * scale + table

    def change() -> None:
        f.__defaults__ = (4.0,)

    check_after_changes(compiled(f, X), change, lambda: f.__kwdefaults__["table"].fill(3.0))


class Net:
    rate = 0.1

    def __init__(self) -> None:
        self.w, self.layers, self.unused = np.ones(5), [np.ones(5)], 0

    def loss(self, x: Any) -> Any:
        return self.inner(x) * self.rate + self.layers[0]

    def inner(self, x: Any) -> Any:
        return self.w * x

    @property
    def doubled(self) -> Any:
        return self.w * 2


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w: Any) -> None:
        self.w = w


def test_captured_attributes_of_self_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    jitted = compiled(net.loss, X)
    check_after_changes(
        jitted,
        lambda: setattr(net, "w", np.ones(5) * 2),
        lambda: net.w.fill(5.0),
        lambda: setattr(net, "rate", 0.7),
        lambda: net.layers.insert(0, np.zeros(5)),
        lambda: monkeypatch.setattr(Net, "inner", lambda self, x: x),
    )
    before = jitted.report().count("program")
    net.unused = 1
    jitted(X)
    assert jitted.report().count("program") == before


def test_captured_objects_are_compared() -> None:
    net, slotted, space = Net(), Slotted(np.ones(5)), types.SimpleNamespace(a=2.0)
    jitted = compiled(lambda x: net.doubled * x + slotted.w * space.a, X)
    check_after_changes(
        jitted,
        lambda: setattr(net, "w", np.ones(5) * 2),
        lambda: setattr(slotted, "w", np.zeros(5)),
        lambda: setattr(space, "a", 3.0),
    )


def test_object_arguments_are_compared() -> None:
    def f(net: Any, x: Any) -> Any:
        return net.inner(x)

    one, two = Net(), Net()
    two.w = two.w * 3
    jitted = compiled(f, one, X)
    for net in (one, two, one):
        assert same(jitted(net, X), f(net, X))
    one.w = np.zeros(5)
    two.w[0] = 17.0
    for net in (one, two):
        assert same(jitted(net, X), f(net, X))


def test_captured_attributes_of_computed_names_are_compared() -> None:
    net = Net()
    jitted = compiled(lambda x: getattr(net, "w") * x, X)  # noqa: B009
    check_after_changes(jitted, lambda: setattr(net, "w", np.zeros(5)))


def test_captured_arguments_of_partials_are_compared() -> None:
    table = np.ones(5)
    jitted = compiled(functools.partial(lambda t, x: t * x, table), X)
    check_after_changes(jitted, lambda: table.fill(3.0))


def test_captured_module_constants_are_compared() -> None:
    config = types.ModuleType("config_of_a_user")
    config.__file__ = "/somewhere/config_of_a_user.py"
    config.rate = 2.0  # type: ignore[attr-defined]
    import sys

    sys.modules["config_of_a_user"] = config
    try:
        jitted = compiled(lambda x: x * config.rate, X)  # type: ignore[attr-defined]
        check_after_changes(jitted, lambda: setattr(config, "rate", 3.0))
    finally:
        del sys.modules["config_of_a_user"]


def test_captured_state_that_changes_too_often_runs_as_numpy() -> None:
    state = {"step": 0}
    jitted = compiled(lambda x: x * state["step"], X)
    for step in range(30):
        state["step"] = step
        assert same(jitted(X), X * step)
    assert "state" in jitted.report()
    assert "make it an argument" in jitted.report()


@pytest.mark.parametrize(("module", "name"), [(np, "sin"), (np, "pi"), (math, "pi"), (math, "sqrt")])
def test_captured_library_name_patch_is_detected(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = compiled(lambda x: np.sin(x) * np.pi + math.pi * math.sqrt(2.0), X)
    check_after_changes(jitted, lambda: monkeypatch.setattr(module, name, 2.0 if name == "pi" else abs))


def test_captured_state_of_too_many_values_runs_as_numpy() -> None:
    many = list(range(5000))
    assert_not_compiled(lambda x: x * many[3], X, words="5000 values")


def test_captured_nodes_run_as_numpy() -> None:
    w = cg.variable(2.0)
    jitted = assert_not_compiled(lambda x: x * w, X, words="a node of a graph")
    assert isinstance(jitted(X), cg.Node)
    c = cg.constant(2.0)
    assert_not_compiled(lambda x: x * c, X, words="a node of a graph")


def test_captured_change_during_background_compilation() -> None:
    scale = {"a": 1.0}
    jitted = cg.jit(lambda x: x * scale["a"])
    for a in (1.0, 2.0):
        scale["a"] = a
        for _ in range(4):
            assert same(jitted(X), X * a)
        assert jitted.wait(30)
        assert same(jitted(X), X * a)
    assert "program 2" in jitted.report()


class Container(dict):  # type: ignore[type-arg]
    """A model of objects of many classes with one number, `k`."""


class Row(list):  # type: ignore[type-arg]
    pass


class Pair(collections.namedtuple("Pair", "a")):
    pass


class Array(np.ndarray):
    pass


class Number(float):
    pass


class Level(enum.Enum):
    LOW = 1.0


class Singleton:
    instance: Any = None
    k = 1.0

    def __new__(cls) -> Any:
        cls.instance = cls.instance or object.__new__(cls)
        return cls.instance


class Described:
    def __init__(self) -> None:
        self.k = 1.0

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.k


class Owner:
    field = Described()

    def __getattr__(self, name: str) -> Any:
        return 1.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: float = 1.0


def _set(owner: Any, name: str = "k") -> Any:
    return lambda value: object.__setattr__(owner, name, value)


def _item(owner: Any, key: Any) -> Any:
    return lambda value: owner.__setitem__(key, value)


def attribute_of_a_function() -> Any:
    def f(x: Any) -> Any:
        return x * f.k  # type: ignore[attr-defined]

    f.k = 1.0  # type: ignore[attr-defined]
    return f, _set(f)


def attribute_that_may_be_missing() -> Any:
    space = types.SimpleNamespace()
    return lambda x: x * getattr(space, "k", 1.0), _set(space)


def attribute_that_is_missing_at_first() -> Any:
    space = types.SimpleNamespace()

    def f(x: Any) -> Any:
        try:
            return x * space.k
        except AttributeError:
            return x

    return f, _set(space)


def attributes_of_classes_that_are_derived(instance: Any) -> Any:
    instance.k = 1.0
    return lambda x: x * instance.k + np.size(instance), lambda value: setattr(instance, "k", value)


def replace_code() -> Any:
    f = lambda x: x * 1.0  # noqa: E731
    codes = [(lambda x: x * 2.0).__code__, (lambda x: x - 5.0).__code__]
    return f, lambda value: setattr(f, "__code__", codes[int(value) % 2])


def import_inside() -> Any:
    config = types.ModuleType("config_within")
    config.k = 1.0  # type: ignore[attr-defined]
    sys.modules["config_within"] = config

    def f(x: Any) -> Any:
        import config_within  # type: ignore[import-not-found]

        return x * config_within.k

    return f, _set(config)


def function_in_a_vectorize() -> Any:
    table = [1.0]
    vectorized = np.vectorize(lambda v: v * table[0])
    return lambda x: vectorized(x), _item(table, 0)


def class_of_an_object() -> Any:
    one = type("One", (), {"k": 1.0})
    classes = [type("Two", (), {"k": 2.0}), type("Three", (), {"k": 3.0})]
    instance = one()
    return lambda x: x * instance.k, lambda value: setattr(instance, "__class__", classes[int(value) % 2])


def attribute_dictionary() -> Any:
    net = Net()
    return lambda x: x * net.rate, lambda value: setattr(net, "__dict__", {"rate": value})


def keywords_of_a_partial() -> Any:
    f = functools.partial(lambda x, k=0.0: x * k, k=1.0)
    return f, _item(f.keywords, "k")


def decimal_precision() -> Any:
    return lambda x: x * float(decimal.Decimal(1) / 3), lambda value: setattr(decimal.getcontext(), "prec", int(value) + 2)


def decimal_precision_alone() -> Any:
    """No other library function is called, whose settings would be compared too."""
    third = decimal.Decimal("0.333333")
    return lambda x: 2 * x if decimal.Decimal(1) / 3 < third else x, lambda value: setattr(
        decimal.getcontext(), "prec", 2 + 20 * (value == 3.0)
    )


def print_options() -> Any:
    table = np.array([1 / 3])
    return lambda x: x * len(str(table)), lambda value: np.set_printoptions(precision=int(value) + 2)


def method_that_hides_another() -> Any:
    parent = type("Parent", (), {"k": 1.0})
    child = type("Child", (parent,), {})
    instance = child()
    return lambda x: x * instance.k, lambda value: setattr(child, "k", value)


def class_attribute_in_the_place_of_another() -> Any:
    parent = type("Parent", (), {"k": 1.0})
    child = type("Child", (parent,), {"other": 0.0})
    instance = child()

    def change(value: float) -> None:
        if "other" in vars(child):
            del child.other
        child.k = value

    return lambda x: x * instance.k, change


def arguments_of_an_exception() -> Any:
    error = type("Error", (Exception,), {})(1.0)
    return lambda x: x * error.args[0], lambda value: setattr(error, "args", (value,))


def base_of_a_view() -> Any:
    table = np.ones(4)
    views = [table[:2]]
    return lambda x: x * views[0].base.sum(), _item(table, 3)


def item(owner: Any, key: Any = 0) -> Any:
    return lambda: (lambda x: x * owner[key], _item(owner, key))


_MAPPING = {"k": 1.0}
_POLYNOMIAL, _POLY1D = np.polynomial.Polynomial([1.0, 2.0]), np.poly1d([1.0, 2.0])
_RECORDS = np.ones(2, [("v", float)])
_OWNER = Owner()
_DEFAULTS: Any = collections.defaultdict(float)
STATES = {
    "attribute of a function": attribute_of_a_function,
    "attribute with a default": attribute_that_may_be_missing,
    "attribute that is missing at first": attribute_that_is_missing_at_first,
    "attribute of a dict": lambda: attributes_of_classes_that_are_derived(Container(a=1.0)),
    "attribute of a list": lambda: attributes_of_classes_that_are_derived(Row([1.0])),
    "attribute of a tuple": lambda: attributes_of_classes_that_are_derived(Pair(1.0)),
    "attribute of an array": lambda: attributes_of_classes_that_are_derived(np.ones(5).view(Array)),
    "attribute of a float": lambda: attributes_of_classes_that_are_derived(Number(1.0)),
    "singleton": lambda: (lambda x: x * Singleton().k, _set(Singleton())),
    "UserDict": item(collections.UserDict(k=1.0), "k"),
    "UserList": item(collections.UserList([1.0])),
    "ChainMap": item(collections.ChainMap({}, {"k": 1.0}), "k"),
    "mapping proxy": lambda: (lambda x, view=types.MappingProxyType(_MAPPING): x * view["k"], _item(_MAPPING, "k")),
    "array.array": item(array.array("d", [1.0])),
    "Polynomial": lambda: (lambda x: _POLYNOMIAL(x), _item(_POLYNOMIAL.coef, 0)),
    "poly1d": lambda: (lambda x: _POLY1D(x), lambda value: _item(_POLY1D, 0)(value)),
    "vectorize": function_in_a_vectorize,
    "replaced code": replace_code,
    "module imported within": import_inside,
    "enum": lambda: (lambda x: x * Level.LOW.value, lambda value: setattr(Level.LOW, "_value_", value)),
    "descriptor": lambda: (lambda x, owner=_OWNER: x * owner.field, _set(vars(Owner)["field"])),
    "attribute that hides __getattr__": lambda: (lambda x, owner=_OWNER: x * owner.k, lambda value: setattr(_OWNER, "k", value)),
    "frozen dataclass": lambda: (lambda instance: (lambda x: x * instance.k, _set(instance)))(Frozen()),
    "class": class_of_an_object,
    "attribute dictionary": attribute_dictionary,
    "class attribute that hides another": method_that_hides_another,
    "class attribute in the place of another": class_attribute_in_the_place_of_another,
    "arguments of an exception": arguments_of_an_exception,
    "keywords of a partial": keywords_of_a_partial,
    "context of decimal": decimal_precision,
    "context of decimal alone": decimal_precision_alone,
    "print options": print_options,
    "base of a view": base_of_a_view,
    "records": lambda: (lambda x: x * _RECORDS["v"][0], lambda value: _RECORDS.__setitem__(0, (value,))),
    "factory of a defaultdict": lambda: (
        lambda x: x * _DEFAULTS.default_factory(),
        lambda value: setattr(_DEFAULTS, "default_factory", functools.partial(float, value)),
    ),
    "method of a list": lambda: (lambda row: (lambda x, get=row.__getitem__: x * get(0), _item(row, 0)))([1.0]),
}


@for_each("name", STATES)
def test_captured_state_change_is_detected(name: str) -> None:
    f, change = STATES[name]()
    with np.printoptions(), decimal.localcontext():
        jitted = compiled(f, X)
        for value in (1.0, 3.0, 3.0, 4.0):
            change(value)
            assert same(jitted(X), f(X)), jitted.report()
        assert "program 2" in jitted.report(), jitted.report()


class Held0:
    k = 1.0


@functools.lru_cache
def cache_lookup() -> Any:
    return np.ones(5)


class FakedTuple(tuple):
    """Names a module that does not have it, so that its methods are unknown."""

    __module__ = "numpy"

    def __getitem__(self, index: Any) -> Any:
        return len(FAKED)


FAKED: list[float] = []
UNKNOWN = {
    "generator": (k for k in range(9)),
    "iterator": iter([1.0] * 9),
    "weak reference": weakref.ref(Held0),
    "cache": cache_lookup,
    "masked array": np.ma.masked_array([1.0], [False]),
    "structured scalar": np.ones(1, [("v", float)])[0],
    "context": contextlib.nullcontext(),
}


@for_each("name", UNKNOWN)
def test_captured_incomparable_state_is_not_compiled(name: str) -> None:
    value = UNKNOWN[name]
    assert_not_compiled(lambda x: x * (value is not None), X, words="variable 'value'")


def test_captured_method_of_tuple_of_faked_module_is_compared() -> None:
    value = FakedTuple([1.0])
    jitted = compiled(lambda x: x * value[0], X)
    for count in (1, 2):
        FAKED.append(0.0)
        assert same(jitted(X), X * count), jitted.report()


class ProbeRecorder:
    read_names: list[str]

    def __init__(self) -> None:
        self.read_names = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):
            raise AttributeError(name)
        self.read_names.append(name)
        return 2.0


def test_captured_user_objects_are_not_probed() -> None:
    probed = ProbeRecorder()

    def f(x: Any) -> Any:
        return x * probed.k

    jitted = compiled(f, X)
    assert same(jitted(X), X * 2.0)
    assert same(ad.grad(lambda x: np.sum(f(x)))(X), np.full(5, 2.0))
    function = cg.jit(lambda x, instance: x * instance.k).compile(X, probed)
    assert same(function(X, probed), X * 2.0)
    assert set(probed.read_names) == {"k"}


def test_captured_dictionary_order_is_compared() -> None:
    weights: Any = {"a": 0.5, "b": 3.0}

    def f(x: Any) -> Any:
        for w in weights.values():
            x = np.tanh(x * w + 1)
        return x

    jitted = compiled(f, np.ones(2))
    for other in ({"b": 3.0, "a": 0.5}, {"a": 0.5, "b": 3.0}, {"b": 3.0, "a": 0.5}):
        weights = other
        assert same(jitted(np.ones(2)), f(np.ones(2)))


class Settings(dict):  # type: ignore[type-arg]
    """Raises a KeyError for an attribute that is probed."""

    __getattr__ = dict.__getitem__


def test_captured_dict_items_are_compared() -> None:
    settings = Settings(k=1.0)

    def f(x: Any) -> Any:
        return x * (settings.k if isinstance(settings, dict) else 0.0)

    check_after_changes(compiled(f, X), lambda: settings.update(k=3.0))
    assert same(ad.grad(lambda x: np.sum(f(x)))(X), np.full(5, 3.0))


@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_captured_arrays_of_wide_dtypes_are_compared(dtype: Any) -> None:
    table = np.arange(3.0).astype(dtype)
    jitted = cg.jit(lambda x: x * float(np.real(table[1]))).compile(np.ones(2))
    for value in (1.0, 5.0):
        table[1] = value
        np.testing.assert_array_equal(jitted(np.ones(2)), [value] * 2)


def test_captured_lazy_module_name_is_compared() -> None:
    module: Any = types.ModuleType("made_on_demand")
    module.__getattr__ = lambda name: 2.0 if name == "factor" else None
    jitted = cg.jit(lambda x: x * module.factor).compile(np.ones(2))
    np.testing.assert_array_equal(jitted(np.ones(2)), [2.0] * 2)
    module.factor = 3.0
    np.testing.assert_array_equal(jitted(np.ones(2)), [3.0] * 2)


_Pair = collections.namedtuple("_Pair", "a b")


def test_named_tuple_static_argument_is_compared_by_fields() -> None:
    jitted = cg.jit(lambda x, pair: np.copysign(x, pair.a), static_argnames="pair")
    for value in (0.0, -0.0):
        result = jitted.compile(np.ones(2), _Pair(value, 1))(np.ones(2), _Pair(value, 1))
        np.testing.assert_array_equal(result, np.copysign(np.ones(2), value))


class _Labeled(_Pair):
    """A named tuple whose instances have further attributes."""


class _Slotted:
    """Names its fields as a named tuple does, and is none."""

    __slots__ = ("a",)
    _fields = ("a",)

    def __init__(self, a: float) -> None:
        self.a = a


def labeled(scale: float) -> _Labeled:
    pair = _Labeled(1.0, 2.0)
    pair.scale = scale  # type: ignore[attr-defined]
    return pair


def test_static_arguments_are_distinguished() -> None:
    cases: dict[str, tuple[Any, list[Any]]] = {
        "attributes of a named tuple": (lambda x, config: x * config.scale, [labeled(2.0), labeled(3.0)]),
        "fields without a tuple": (lambda x, config: x * config.a, [_Slotted(2.0), _Slotted(3.0)]),
        "signs of zeros": (lambda x, config: np.copysign(x, config[0]), [(0.0, 1), (-0.0, 1)]),
    }
    with Failures("static arguments") as failures:
        for name, (f, values) in cases.items():
            with failures.case(name):
                jitted = cg.jit(f, static_argnames="config")
                for value in values:
                    np.testing.assert_array_equal(jitted.compile(X, value)(X, value), f(X, value))


@pytest.mark.parametrize("make", [lambda: (float("2"), int("1000")), lambda: _Pair(float("2"), int("1000"))])
def test_equal_static_tuples_share_program(make: Any) -> None:
    jitted = cg.jit(lambda x, held: x * held[0], static_argnames="held")
    for value in (make(), make()):
        np.testing.assert_array_equal(jitted.compile(X, value)(X, value), 2.0 * X)
    assert jitted.report().count("program ") == 1, jitted.report()


LARGE = {
    "wide": np.ones(5000, np.longdouble),
    "complex, every other": np.ones(10000, complex)[::2],
    "Fortran order": np.ones((100, 100), order="F"),
    "complex, Fortran order": np.ones((100, 100), complex, order="F"),
    "every other": np.ones(10000)[::2],
    "C order": np.ones((100, 100)),
}


@for_each("name", LARGE)
def test_captured_large_arrays_are_compared(name: str) -> None:
    table = LARGE[name]
    jitted = cg.jit(lambda x: x * float(np.real(table.ravel()[1]))).compile(X)
    at = (0,) * (table.ndim - 1) + (1,)
    for value in (1.0, 5.0, 5.0):
        table[at] = value
        np.testing.assert_array_equal(jitted(X), X * value)
    assert "program 2" in jitted.report()
    assert name == "wide" or "program 3" not in jitted.report()  # of wide numbers, bytes without a meaning may differ


def test_captured_named_tuple_of_a_library_is_compiled() -> None:
    decomposition = np.linalg.svd(np.diag([3.0, 2.0]))
    jitted = compiled(lambda x: x * decomposition.S[0], X)
    assert is_compiled(jitted), jitted.report()
    assert same(jitted(X), 3.0 * X)
    decomposition.S[0] = 4.0
    assert same(jitted(X), 4.0 * X)


class _Weights(list):  # type: ignore[type-arg]
    scale = 1.0


def test_captured_list_class_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = _Weights([2.0])
    jitted = compiled(lambda x: x * weights[0] * weights.scale, X)
    assert is_compiled(jitted), jitted.report()
    assert same(jitted(X), 2.0 * X)
    monkeypatch.setattr(_Weights, "scale", 3.0)
    assert same(jitted(X), 6.0 * X)


def test_captured_modules_as_values_are_compared() -> None:
    pure, seeded, clock = (math,), (np.random,), (time,)

    def drawn(x: Any) -> Any:
        return x * seeded[0].default_rng(0).normal(size=5)

    for f in (lambda x: x * pure[0].pi, drawn):
        jitted = compiled(f, X)
        assert is_compiled(jitted), jitted.report()
        assert same(jitted(X), f(X))
    assert_not_compiled(lambda x: x * (clock[0] is not None), X, words="clock")


def attributed(x: Any) -> Any:
    return x * 2.0


def test_captured_attribute_set_later_is_detected() -> None:
    def probing(x: Any) -> Any:
        return attributed(x) * (3.0 if hasattr(attributed, "scale") else 1.0)

    def reading(x: Any) -> Any:
        return attributed(x) * getattr(attributed, "scale", 1.0)

    for f in (probing, reading):
        jitted = compiled(f, X)
        assert is_compiled(jitted), jitted.report()
        assert same(jitted(X), f(X))
        attributed.scale = 3.0  # type: ignore[attr-defined]
        try:
            assert same(jitted(X), 6.0 * X), jitted.report()
        finally:
            del attributed.scale  # type: ignore[attr-defined]
        assert same(jitted(X), 2.0 * X), jitted.report()


def test_captured_variable_bound_later_is_detected() -> None:
    def make() -> Any:
        def f(x: Any) -> Any:
            try:
                return x * factor
            except NameError:
                return x

        def bind(value: float) -> None:
            nonlocal factor
            factor = value

        if f is None:
            factor = 1.0
        return f, bind

    f, bind = make()
    jitted = compiled(f, X)
    assert same(jitted(X), X), jitted.report()
    bind(3.0)
    assert same(jitted(X), 3.0 * X), jitted.report()


def test_captured_missing_global_is_compared() -> None:
    def f(x: Any) -> Any:
        try:
            return x * MISSING_FACTOR  # type: ignore[name-defined]
        except NameError:
            return x

    jitted = compiled(f, X)
    assert is_compiled(jitted), jitted.report()
    assert same(jitted(X), X)
    globals()["MISSING_FACTOR"] = 3.0
    try:
        assert same(jitted(X), 3.0 * X), jitted.report()
    finally:
        del globals()["MISSING_FACTOR"]
    assert same(jitted(X), X)
    assert "program 3" not in jitted.report(), jitted.report()
