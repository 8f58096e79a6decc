"""What is read off the interpreter's instructions: the same on every Python, specialised, traced, monitored or not."""

from __future__ import annotations

import array
import cmath
import ctypes
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

import compgraph as cg
from compgraph.frames import (
    assigns,
    callee,
    callees,
    delegates,
    frame_up,
    is_raised_by,
    method_called,
    operates,
    outwards,
    positions,
    unknown,
)
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

asked: list[Any] = []  # what the frames that converted a `Number` were doing


class Number:
    """A number that looks at who converts it."""

    def __float__(self) -> float:
        asked.append(callee(sys._getframe(1)))
        return 0.5

    def __complex__(self) -> complex:
        asked.append(callee(sys._getframe(1)))
        return 0.5j

    def __index__(self) -> int:
        asked.append(callee(sys._getframe(1)))
        return 1

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __bool__(self) -> bool:
        asked.append(callee(sys._getframe(1)))
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


class Making:
    """Attributes that are found by code."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)


class Asking(Holder):
    def __getattribute__(self, name: str) -> Any:
        return math


class Real(float):
    """A class whose instances are made by `float`."""

    def __new__(cls, value: Any, local: Any = None) -> Any:
        return super().__new__(cls, value)


class Plain(float):
    pass


x: Any = Number()
o = Holder()
slots, making, asking = Slots(), Making(), Asking()
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
    class Body:
        y = math.sin(x)

    return Body


def name_of_class_body() -> Any:
    class Body:
        float = math.sin
        y = float(x)

    return Body


def comprehension_in_class_body() -> Any:
    class Body:
        y = [math.exp(v) for v in (x, x)]  # noqa: RUF012

    return Body


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
    "spaces": (eval("lambda: o . m . sin (x)"), math.sin),
    "conditional argument": (conditional_argument, math.sin),
    "star": (lambda: math.hypot(*[x, x]), math.hypot),
    "keywords": (lambda: math.isclose(x, 1.0, rel_tol=1e-3), math.isclose),
    "star and keywords": (lambda: math.isclose(*[x, 1.0], **options), math.isclose),
    "keywords of a method": (lambda: o.m.isclose(x, 1.0, rel_tol=1e-3), math.isclose),
    "keywords of a module that the file does not import": (
        eval(compile("lambda: sub.isclose(x, 1.0, rel_tol=1e-3)", "cell", "eval"), {"sub": math, "x": x}),
        math.isclose,
    ),
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
    "exec": (lambda: exec("math.sin(x)", {"math": math, "x": x}), math.sin),
    "exec with locals": (lambda: exec("f(x)", {"x": x, "f": float}, {"f": math.sin}), math.sin),
    "eval": (lambda: eval("math.sin(x)"), math.sin),
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
    "loop over map": (lambda: [v for v in map(float, [x])], None),  # noqa: C416
    "element": (lambda: table["sin"](x), unknown),
    "called result": (lambda: (lambda: math.sin)()(x), unknown),
    "parentheses": (eval("lambda: (math.sin)(x)"), unknown),
    "choice": (lambda: (math.sin if x is None else float)(x), unknown),
    "property": (lambda: o.counted.sin(x), unknown),
    "found by code": (lambda: making.sin(x), unknown),
    "asked by code": (lambda: asking.m.sin(x), unknown),
    "method of a text": (lambda: "numbers".count("s", x), unknown),
    "super": (lambda: Real(x), unknown),
}


STATES = ["once", "specialised", "settrace", "setprofile", *(["monitored"] if hasattr(sys, "monitoring") else [])]


@pytest.fixture(params=STATES)
def run(request: Any) -> Callable[[Callable[[], Any]], Any]:
    """Calls a function while the interpreter is in some state."""
    state = {"settrace": tracing, "setprofile": profiling, "monitored": monitoring}.get(request.param, SimpleNamespace)

    def repeated(f: Callable[[], Any]) -> None:
        if state is SimpleNamespace:
            for _ in range(1 if request.param == "once" else 200):
                f()
            return
        with state():
            f()
            f()

    return repeated


@contextmanager
def tracing() -> Iterator[None]:
    """As a debugger or coverage tool looks on, at every line and instruction."""
    before = sys.gettrace()

    def trace(frame: Any, event: str, arg: Any) -> Any:
        frame.f_trace_opcodes = True
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def profiling() -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: None)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def monitoring() -> Iterator[None]:
    """Every event that can be monitored, which rewrites the instructions."""
    monitor: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = 4
    monitor.use_tool_id(tool, "test")
    events = [monitor.events.CALL, monitor.events.LINE, monitor.events.INSTRUCTION, monitor.events.PY_START, monitor.events.JUMP]
    for event in events:
        monitor.register_callback(tool, event, lambda *given: None)
    monitor.set_events(tool, sum(events))
    try:
        yield
    finally:
        monitor.set_events(tool, 0)
        monitor.free_tool_id(tool)


def answers(run: Any, form: Callable[[], Any]) -> list[Any]:
    """What was found while a form ran; errors of the number's type do not matter."""
    asked.clear()

    def quietly() -> None:
        try:
            form()
        except TypeError:
            asked[:] = asked or ["TypeError"]

    run(quietly)
    return list(asked)


def test_the_callable_is_found(run: Any) -> None:
    with Failures("calls") as failures:
        for name, (form, expected) in FORMS.items():
            with failures.case(name):
                found = answers(run, form)
                assert found
                if isinstance(expected, str):
                    assert {f.__name__ for f in found} == {expected}
                else:
                    assert all(f is expected for f in found if f is not bool), found[:2]


def test_properties_are_not_read_again() -> None:
    Holder.called = 0
    o.counted.sin(x)
    assert Holder.called == 1


# ------------------------------------------------------------------------------------- where it must not be wrong


def assigned_on_the_way() -> Any:
    f = float
    return f((f := math.sin) and x)


def assigned_in_a_cell() -> Any:
    f = float
    found = f((f := math.sin) and x)
    return found, lambda: f


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
    found: dict[str, Any] = {"f": float, "math": math, "x": x}
    exec("y = [f(x) for f in (math.sin, math.cos)]", found)


def iteration_variable_of_a_class() -> Any:
    class Body:
        f = float
        y = [f(x) for f in (math.sin, math.sin)]  # noqa: RUF012

    return Body


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


def test_it_is_unknown_rather_than_wrong(run: Any) -> None:
    with Failures("calls") as failures:
        for name, (form, right) in UNSURE.items():
            with failures.case(name):
                found = answers(run, form)
                assert found
                assert all(f is unknown or any(f is r for r in right) for f in found), found[:2]


def test_a_name_that_was_bound_to_python_code_meanwhile_is_unknown() -> None:
    around: dict[str, Any] = {"x": x, "f": math.sin}
    around["rebind"] = lambda: around.update(f=lambda value: value)
    asked.clear()
    exec("f(rebind() or x)", around)
    assert asked == [unknown]


def test_asserts_that_were_rewritten_are_unknown_rather_than_wrong() -> None:
    asked.clear()
    assert math.sin(x) > 0
    assert float(x) == 0.5
    assert [a in (unknown, expected) for a, expected in zip(asked, (math.sin, float), strict=True)] == [True, True]


def test_long_functions_whose_instructions_have_prefixes() -> None:
    many = "\n".join(f"    v{k} = m.a{k}" for k in range(300))
    text = f"def f(m, x):\n{many}\n    w = m.sin(x)\n    return m.hypot({', '.join(['x'] * 300)}), w"
    around: dict[str, Any] = {}
    exec(text, around)
    asked.clear()
    around["f"](SimpleNamespace(**{f"a{k}": k for k in range(300)}, sin=math.sin, hypot=math.hypot), x)
    assert asked == [math.sin] + [math.hypot] * 300


def test_an_answer_is_remembered_and_the_memory_is_bounded() -> None:
    codes = [compile(f"float(x) or {k}", "made", "eval") for k in range(20)]
    before = dict(callees._callees)
    for code in codes:
        eval(code)
        eval(code)
    assert sum(entry[0] in codes for entry in callees._callees.values()) == 20
    for k in range(positions.KEPT):
        callees._callees.put(codes[0], -k, None)
    assert len(callees._callees) <= positions.KEPT
    callees._callees.clear()
    callees._callees.update(before)


SCRIPT = """
import math, sys
from compgraph.frames import assigns, callee, unknown

found = []

class Number:
    def __float__(self):
        frame = sys._getframe(1)
        found.append((callee(frame), assigns(frame)))
        return 0.5

class Told:
    def __setitem__(self, index, value):
        found.append(assigns(sys._getframe(1)))

x, told = Number(), Told()
def f():
    float(x), math.sin(x), "%f" % x
    told[0] = told[:2] = told.a = 1
f()
print(found)
"""


@pytest.mark.parametrize("flags", [[], ["-O"], ["-OO"], ["-X", "no_debug_ranges"], ["-X", "dev"]])
def test_however_python_was_started(flags: list[str]) -> None:
    here = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, *flags, "-c", SCRIPT], capture_output=True, text=True, cwd=here, check=True)
    sure = ["<class 'float'>", "<built-in function sin>"] if "no_debug_ranges" not in flags else ["unknown", "unknown"]
    assert done.stdout.strip() == f"[({sure[0]}, False), ({sure[1]}, False), (None, False), True, True]"


# ----------------------------------------------------------------------------------------------------- assignments


class Told:
    """A container and an object that look at who writes into them."""

    seen: list[bool] = []  # noqa: RUF012  (shared on purpose)

    def __setitem__(self, index: Any, value: Any) -> None:
        Told.seen.append(assigns(sys._getframe(1)))

    def __getitem__(self, index: Any) -> Any:
        Told.seen.append(not assigns(sys._getframe(1)))
        return 1.0

    def __setattr__(self, name: str, value: Any) -> None:
        Told.seen.append(assigns(sys._getframe(1)))


def looped(told: Any) -> None:
    for told[0] in (1, 2):
        pass


def augmented(told: Any) -> None:
    told[0] += 1
    told[:1] += 1


def unpacked(told: Any) -> None:
    told[0], told[1:2], *told[2:] = 1, 2, 3


def sliced(told: Any, k: int = 2) -> None:
    told[:2] = 1
    told[k:] = 1
    told[:k:1] = 1
    told[..., :k] = 1


def named(told: Any) -> None:
    told.a = told.b = 1


def managed(told: Any) -> None:
    with contextmanager(lambda: iter([1]))() as told[0]:
        pass


def in_comprehension(told: Any) -> None:
    [0 for told[0] in (1, 2)]


def test_assignments_are_told(run: Any) -> None:
    with Failures("assignments") as failures:
        for write in (looped, augmented, unpacked, sliced, named, managed, in_comprehension):
            with failures.case(write.__name__):
                Told.seen.clear()
                run(lambda write=write: write(Told()))
                assert Told.seen
                assert all(Told.seen)


def called(told: Any) -> None:
    told.__setitem__(0, 1)
    operator.setitem(told, 0, 1)
    setattr(told, "a", 1)  # noqa: B010


def test_calls_are_no_assignments(run: Any) -> None:
    Told.seen.clear()
    run(lambda: called(Told()))
    assert Told.seen
    assert not any(Told.seen)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double),)


@pytest.mark.parametrize("write", ["plain[0] = v[0]", "plain[:2] = [v[0], v[1]]", "plain[k:] = [v[0], v[1]]", "pair.a = v[0]",
    "plain[:1], plain[1:2] = [v[0]], [v[1]]", "plain[:2, None] = [[v[0]], [v[1]]]",
    "pair.a += v[0]", "numbers[0] = v[0]", "pairs[0] = v[0]", "pairs[:1] = [v[0]]", "square[0, :2] = v[0], 1.0"])  # fmt: skip
def test_no_node_is_assigned_into_what_keeps_its_number(write: str) -> None:
    plain, pair, pairs = np.zeros(3), Pair(0.0), (ctypes.c_double * 1)()
    around = {"v": cg.variable([1.5, 2.5]) * 1, "k": 1, "square": np.zeros((2, 2)), "numbers": array.array("d", [0.0])}
    around |= {"plain": plain, "pair": pair, "pairs": pairs}
    with pytest.raises(TypeError, match=r"(getitem|add) .*plain array"):
        exec(write, around)
    assert not plain.any()
    assert not around["square"].any()
    assert (pair.a, pairs[0]) == (0.0, 0.0)


def innermost(error: BaseException) -> Any:
    """The last part of the trace of an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def raising() -> None:
    raise ValueError("mine")


def raising_again() -> None:
    try:
        float("no number")
    except ValueError as error:
        raise ValueError("mine") from error


@pytest.mark.parametrize(("function", "is_own"), [(raising, True), (raising_again, True), (lambda: float("no number"), False)])
def test_an_error_of_ones_own_is_told_from_one_of_what_was_called(function: Callable[[], object], is_own: bool) -> None:
    with pytest.raises(ValueError, match=r"mine|no number") as caught:
        function()
    trace = innermost(caught.value)
    assert is_raised_by(trace.tb_frame.f_code, trace.tb_lasti) is is_own


class Seen:
    """A number and a context whose frame is asked when it is taken, or entered."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self.ask, self.answers = ask, list[Any]()

    def __float__(self) -> float:
        self.answers.append(self.ask(sys._getframe(1)))
        return 1.0

    def __enter__(self) -> None:
        self.answers.append(self.ask(sys._getframe(1)))

    def __exit__(self, *exception: object) -> None:
        pass


OPERATES: dict[str, tuple[Callable[[Seen], Any], bool]] = {
    "a text": (lambda seen, text="%.1f": text % seen, True),
    "a call": (lambda seen: float(seen), False),
    "a loop": (lambda seen: [number for number in map(float, [seen])], False),  # noqa: C416
}


def test_operators_are_told(run: Any) -> None:
    with Failures("operators") as failures:
        for name, (form, expected) in OPERATES.items():
            with failures.case(name):
                seen = Seen(operates)
                run(lambda form=form, seen=seen: form(seen))
                assert set(seen.answers) == {expected}


def test_the_method_that_is_called(run: Any) -> None:
    seen = Seen(method_called)
    run(lambda: math.sin(seen))
    run(lambda: array.array("d").append(seen))
    assert set(seen.answers) == {"sin", "append"}
    seen.answers.clear()
    run(lambda: float(seen))
    assert set(seen.answers) == {None}


def test_delegates_is_true_at_yield_from_only(run: Any) -> None:
    answers: list[bool] = []

    def ask() -> Any:
        answers.append(delegates(sys._getframe(1)))
        yield

    def outer() -> Any:
        yield from ask()

    def looping() -> Any:
        for value in ask():  # noqa: UP028
            yield value

    run(lambda: list(outer()))
    assert set(answers) == {True}
    answers.clear()
    run(lambda: list(looping()))
    assert set(answers) == {False}


def test_frames_outwards() -> None:
    here = frame_up(0)
    assert here.f_code.co_name == "test_frames_outwards"
    assert list(outwards(here))[:2] == [here, frame_up(1)]
