"""The callable that a frame is calling, read from the source."""

from __future__ import annotations

import array
import cmath
import linecache
import math
import operator
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compgraph.frames import callee, expressions, has_source, method_called, unknown
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

callees: list[Any] = []  # what the frames that converted a `Number` were doing


class Number:
    """A number that records the callable that converts it."""

    def __float__(self) -> float:
        callees.append(callee(sys._getframe(1)))
        return 0.5

    def __complex__(self) -> complex:
        callees.append(callee(sys._getframe(1)))
        return 0.5j

    def __index__(self) -> int:
        callees.append(callee(sys._getframe(1)))
        return 1

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __bool__(self) -> bool:
        callees.append(callee(sys._getframe(1)))
        return True


class Holder:
    """Attributes of all kinds."""

    from_class = math.sin
    called = 0

    def __init__(self) -> None:
        self.m = math
        self.f = float

    @property
    def counted(self) -> Any:
        Holder.called += 1
        return math


class Slots:
    __slots__ = ("f",)

    def __init__(self) -> None:
        self.f = float


class ComputedAttributes:
    """Attributes that are found by code."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)


class ConversionProbe(Holder):
    def __getattribute__(self, name: str) -> Any:
        return math


class Real(float):
    """A class whose constructor calls `float`."""

    def __new__(cls, value: Any, local: Any = None) -> Any:
        return super().__new__(cls, value)


class Plain(float):
    pass


x: Any = Number()
o = Holder()
slots, making, asking = Slots(), ComputedAttributes(), ConversionProbe()
s = math.sin
table: dict[str, Any] = {"sin": math.sin}
numbers: Any = array.array("d", [0.0])
options: dict[str, Any] = {"rel_tol": 1e-3}


def local() -> Any:
    sin = math.sin
    return sin(x)


def closure() -> Any:
    c = math.cos
    return (lambda: c(x))()


def conditional_argument(a: int = 1) -> Any:
    return math.sin(x if a else 1.0)


def in_finally() -> Any:
    try:
        return math.sin(1.0)
    finally:
        math.cos(x)


def before_finally() -> Any:
    try:
        return math.sin(x)
    finally:
        math.cos(1.0)


def in_except() -> Any:
    try:
        raise ValueError
    except ValueError:
        return math.tan(x)


def over_lines() -> Any:
    return math.atan2(
        x,
        1.0,
    )


def local_in_comprehension() -> Any:
    sin = math.sin
    return [sin(v) for v in (x, x)]


def after_another_local() -> Any:
    sin, y = math.sin, 1.0
    return y + sin(x)


def in_class_body() -> Any:
    class Class:
        y = math.sin(x)

    return Class


def name_of_class_body() -> Any:
    class Class:
        float = math.sin
        y = float(x)

    return Class


def comprehension_in_class_body() -> Any:
    class Class:
        y = [math.exp(v) for v in (x, x)]  # noqa: RUF012

    return Class


def nested() -> Any:
    def inner() -> Any:
        return math.exp(x)

    return inner()


def generator() -> Any:
    def each() -> Iterator[float]:
        yield math.sin(x)
        yield math.sin(x)

    return list(each())


def coroutine() -> Any:
    async def each() -> float:
        return math.sin(x)

    with pytest.raises(StopIteration):
        each().send(None)


def with_block() -> Any:
    with contextmanager(lambda: iter([None]))():
        return math.sin(x)


def shadowed() -> Any:
    float = math.sin
    return float(x)


def method_of_local() -> Any:
    target = array.array("d", [0.0])
    return target.append(x)


def compile_with_source(text: str) -> Any:
    """Code whose source can be read, as that of a cell of a notebook."""
    name = f"written_{len(linecache.cache)}"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec" if "\n" in text else "eval")


FORMS: dict[str, tuple[Callable[[], Any], Any]] = {
    "module": (lambda: math.sin(x), math.sin),
    "builtin": (lambda: float(x), float),
    "nested": (lambda: 1 + math.sin(float(1) * 1 and x), math.sin),
    "inner of two": (lambda: math.sin(float(x)), float),
    "outer of two": (lambda: math.hypot(float(1), x), math.hypot),
    "local": (local, math.sin),
    "closure": (closure, math.cos),
    "attribute": (lambda: o.m.sin(x), math.sin),
    "attribute that is a type": (lambda: o.f(x), float),
    "attribute of a class": (lambda: Holder.from_class(x), math.sin),
    "attribute of an instance's class": (lambda: o.from_class(x), math.sin),
    "slot": (lambda: slots.f(x), float),
    "conditional argument": (conditional_argument, math.sin),
    "star": (lambda: math.hypot(*[x, x]), math.hypot),
    "keywords": (lambda: math.isclose(x, 1.0, rel_tol=1e-3), math.isclose),
    "star and keywords": (lambda: math.isclose(*[x, 1.0], **options), math.isclose),
    "keywords of a method": (lambda: o.m.isclose(x, 1.0, rel_tol=1e-3), math.isclose),
    "over lines": (over_lines, math.atan2),
    "before finally": (before_finally, math.sin),
    "in finally": (in_finally, math.cos),
    "in except": (in_except, math.tan),
    "with block": (with_block, math.sin),
    "map": (lambda: list(map(float, [x])), list),
    "complex": (lambda: complex(x), complex),
    "cmath": (lambda: cmath.exp(x), cmath.exp),
    "index": (lambda: operator.index(x), operator.index),
    "int": (lambda: int(x), int),
    "bool": (lambda: bool(x), bool),
    "range": (lambda: range(x), range),
    "struct": (lambda: struct.pack("d", x), struct.pack),
    "array": (lambda: array.array("d", [x]), array.array),
    "format called": (lambda: format(1.0, ".1f") + "%.1f".__mod__(x), unknown),
    "comprehension": (lambda: [float(v) for v in (x, x)], float),
    "comprehension and module": (lambda: [math.exp(v) for v in (x, x)], math.exp),
    "comprehension and local": (local_in_comprehension, math.sin),
    "set and dict": (lambda: ({math.sin(v) for v in (x,)}, {v: math.sin(v) for v in (x,)}), math.sin),
    "generator expression": (lambda: sum(math.sin(v) for v in (x, x)), math.sin),
    "generator": (generator, math.sin),
    "coroutine": (coroutine, math.sin),
    "after another local": (after_another_local, math.sin),
    "two": (lambda: math.sin(x) + math.cos(1.0), math.sin),
    "second of two": (lambda: math.sin(1.0) + math.cos(x), math.cos),
    "global": (lambda: s(x), math.sin),
    "argument of a method": (lambda: [1.0].copy().append(float(x)), float),
    "method of a global": (lambda: numbers.append(x), "append"),
    "method of a local": (method_of_local, "append"),
    "class method": (lambda: float.__new__(float, x), float.__new__),
    "exec": (lambda: exec("math.sin(x)", {"math": math, "x": x}), unknown),
    "eval": (lambda: eval("math.sin(x)"), unknown),
    "written code": (lambda: exec(compile_with_source("math.sin(x)"), {"math": math, "x": x}), math.sin),
    "written code with locals": (lambda: exec(compile_with_source("f(x)"), {"x": x, "f": float}, {"f": math.sin}), math.sin),
    "spaces": (lambda: eval(compile_with_source("o . m . sin (x)")), math.sin),
    "parentheses": (lambda: eval(compile_with_source("(math.sin)(x)")), math.sin),
    "walrus around": (lambda: (y := math.sin(x)) + y, math.sin),
    "class body": (in_class_body, math.sin),
    "name of a class body": (name_of_class_body, math.sin),
    "comprehension in a class body": (comprehension_in_class_body, math.exp),
    "nested function": (nested, math.exp),
    "shadowed builtin": (shadowed, math.sin),
    "subclass": (lambda: Plain(x), Plain),
    "f-string": (lambda: f"{math.sin(x):.2f} {1}", math.sin),
    "operator": (lambda: operator.truediv(math.sin(x), 1), math.sin),
    "NumPy": (lambda: np.float64(x), np.float64),
    "getitem of a result": (lambda: [math.sin(x)][0], math.sin),
    "fills": (lambda: np.zeros(2).fill(x), unknown),
    "%": (lambda: "%f" % x, None),  # noqa: UP031
    "subscript": (lambda: [1, 2][x], None),
    "condition": (lambda: 1 if x else 2, None),
    "not": (lambda: not x, None),
    "while": (lambda: next(k for k in (1, 2) if x), None),
    "loop over map": (lambda: [v for v in map(float, [x])], map if sys.version_info >= (3, 13) else None),  # noqa: C416
    "element": (lambda: table["sin"](x), unknown),
    "called result": (lambda: (lambda: math.sin)()(x), unknown),
    "choice": (lambda: (math.sin if x is None else float)(x), unknown),
    "property": (lambda: o.counted.sin(x), unknown),
    "found by code": (lambda: making.sin(x), unknown),
    "asked by code": (lambda: asking.m.sin(x), unknown),
    "method of a text": (lambda: "numbers".count("s", x), unknown),
    "super": (lambda: Real(x), unknown),
}


def recorded_callees(form: Callable[[], Any]) -> list[Any]:
    """Results recorded while a form ran twice; errors of the number's type do not matter."""
    callees.clear()
    for _ in range(2):
        try:
            form()
        except TypeError:
            callees[:] = callees or ["TypeError"]
    return list(callees)


def test_callee_is_identified() -> None:
    with Failures("calls") as failures:
        for name, (form, expected) in FORMS.items():
            with failures.case(name):
                callees = recorded_callees(form)
                assert callees
                if isinstance(expected, str):
                    assert {f.__name__ for f in callees} == {expected}
                else:
                    assert all(f is expected for f in callees if f is not bool), callees[:2]


def test_callee_lookup_does_not_call_properties() -> None:
    Holder.called = 0
    o.counted.sin(x)
    assert Holder.called == 1


# ------------------------------------------------------------------------------------- where it must not be wrong


def assigned_on_the_way() -> Any:
    f = float
    return f((f := math.sin) and x)


def assigned_in_a_cell() -> Any:
    f = float
    result = f((f := math.sin) and x)
    return result, lambda: f


def assigned_by_a_comprehension() -> Any:
    f = math.sin
    return f([f := float, x][1])  # type: ignore[assignment]


def global_assigned() -> Any:
    global s
    try:
        return s((s := float) and x)  # type: ignore[assignment,misc]
    finally:
        s = math.sin


def owner_assigned() -> Any:
    m: Any = math
    return m.sin((m := cmath) and x)


def attribute_on_its_own_line() -> Any:
    return (o
            .m
            .sin(x))  # fmt: skip


def star_after_a_line() -> Any:
    return (float
            .__new__(*[float, x]))  # fmt: skip


def element_on_its_own_line() -> Any:
    return ([o][0]
            .f(x))  # fmt: skip


def iteration_variable_of_a_module() -> Any:
    namespace: dict[str, Any] = {"f": float, "math": math, "x": x}
    exec(compile_with_source("y = [f(x) for f in (math.sin, math.cos)]\n"), namespace)


def iteration_variable_of_a_class() -> Any:
    class Class:
        f = float
        y = [f(x) for f in (math.sin, math.sin)]  # noqa: RUF012

    return Class


UNSURE: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "local": (assigned_on_the_way, ()),
    "cell": (assigned_in_a_cell, ()),
    "after": (assigned_by_a_comprehension, ()),
    "global": (global_assigned, ()),
    "owner": (owner_assigned, ()),
    "lines": (attribute_on_its_own_line, (math.sin,)),
    "star": (star_after_a_line, (float.__new__,)),
    "element": (element_on_its_own_line, (float,)),
    "choice of an owner": (lambda: (math if o else cmath).sin(x), (math.sin,)),
    "other owner": (lambda: (o.missing if not o else math).sin(x), (math.sin,)),
    "module": (iteration_variable_of_a_module, (math.sin, math.cos)),
    "class": (iteration_variable_of_a_class, (math.sin,)),
}


def test_callee_is_unknown_if_ambiguous() -> None:
    with Failures("calls") as failures:
        for name, (form, right) in UNSURE.items():
            with failures.case(name):
                callees = recorded_callees(form)
                assert callees
                assert all(f is unknown or any(f is r for r in right) for f in callees), callees[:2]


def test_callee_is_unknown_if_name_was_rebound() -> None:
    around: dict[str, Any] = {"x": x, "f": math.sin}
    around["rebind"] = lambda: around.update(f=lambda value: value)
    callees.clear()
    exec(compile_with_source("f(rebind() or x)"), around)
    assert callees == [unknown]


def test_callee_is_unknown_in_rewritten_asserts() -> None:
    callees.clear()
    assert math.sin(x) > 0
    assert float(x) == 0.5
    assert [a in (unknown, expected) for a, expected in zip(callees, (math.sin, float), strict=True)] == [True, True]


def test_callee_in_long_functions_with_extended_args() -> None:
    many = "\n".join(f"    v{k} = m.a{k}" for k in range(300))
    text = f"def f(m, x):\n{many}\n    w = m.sin(x)\n    return m.hypot({', '.join(['x'] * 300)}), w"
    around: dict[str, Any] = {}
    exec(compile_with_source(text), around)
    callees.clear()
    around["f"](SimpleNamespace(**{f"a{k}": k for k in range(300)}, sin=math.sin, hypot=math.hypot), x)
    assert callees == [math.sin] + [math.hypot] * 300


def test_callee_cache_is_bounded() -> None:
    codes = [compile(f"float(x) or {k}", "made", "eval") for k in range(20)]
    for code in codes:
        eval(code)
        eval(code)
    assert sum(entry[0] in codes for entry in expressions._expressions.values()) == 20
    for k in range(expressions._MAX_INSTRUCTIONS):
        expressions.expression(codes[0], 2 * k)
    assert len(expressions._expressions) <= expressions._MAX_INSTRUCTIONS


def test_callee_of_decorator() -> None:
    callees.clear()

    @(lambda function: (math.sin(x), function)[1])
    def decorated() -> None: ...

    assert callees == [math.sin]


SCRIPT = """
import math, sys
from compgraph.frames import is_assigning, callee, has_source, unknown

results = []

class Number:
    def __float__(self):
        frame = sys._getframe(1)
        results.append((callee(frame), is_assigning(frame), has_source(frame.f_code, frame.f_lasti)))
        return 0.5

class Target:
    def __setitem__(self, index, value):
        results.append(is_assigning(sys._getframe(1)))

x, target = Number(), Target()
def f():
    float(x), math.sin(x)
    target[0] = target[:2] = target.a = 1
f()
print(results)
"""


@pytest.mark.parametrize("flags", [[], ["-O"], ["-OO"], ["-X", "no_debug_ranges"], ["-X", "dev"]])
def test_callee_with_any_python_options(flags: list[str], tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    run = f"import runpy; runpy.run_path({str(path)!r})"
    process = subprocess.run([sys.executable, *flags, "-c", run], capture_output=True, text=True, check=True)
    is_sure = "no_debug_ranges" not in flags
    sure = ["<class 'float'>", "<built-in function sin>"] if is_sure else ["unknown", "unknown"]
    assert process.stdout.strip() == f"[({sure[0]}, False, {is_sure}), ({sure[1]}, False, {is_sure}), True, True]"


def test_callee_of_method_is_an_attribute() -> None:
    names: list[Any] = []

    class Probe:
        def __float__(self) -> float:
            names.append(method_called(sys._getframe(1)))
            return 1.0

    math.sin(Probe())
    array.array("d").append(Probe())  # type: ignore[arg-type]
    float(Probe())
    exec("math.sin(seen)", {"math": math, "seen": Probe()})
    assert list(dict.fromkeys(names)) == ["sin", "append", None]
    assert names[-2:] == [None, None]


def is_shown(frame: Any) -> bool:
    return has_source(frame.f_code, frame.f_lasti)


def test_callee_without_source_is_unknown() -> None:
    flags: list[Any] = []
    around = {"ask": lambda: flags.append(is_shown(sys._getframe(1)))}
    exec("ask()", around)
    exec(compile_with_source("ask()"), around)
    assert flags == [False, True]
