"""Reading the current instruction: equal results on every Python, with specialized, traced or monitored code."""

from __future__ import annotations

import array
import ctypes
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from compgraph.frames import frame_up, is_assigning, is_at_operator, is_delegating, is_raised_by, walk_frames
from tests.support.failures import Failures

pytestmark = pytest.mark.portable


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
        monitor.register_callback(tool, event, lambda *arguments: None)
    monitor.set_events(tool, sum(events))
    try:
        yield
    finally:
        monitor.set_events(tool, 0)
        monitor.free_tool_id(tool)


# ----------------------------------------------------------------------------------------------------- assignments


class AssignmentProbe:
    """A container and an object that check `is_assigning` in each access."""

    checks: list[bool] = []  # noqa: RUF012  (shared on purpose)

    def __setitem__(self, index: Any, value: Any) -> None:
        AssignmentProbe.checks.append(is_assigning(sys._getframe(1)))

    def __getitem__(self, index: Any) -> Any:
        AssignmentProbe.checks.append(not is_assigning(sys._getframe(1)))
        return 1.0

    def __setattr__(self, name: str, value: Any) -> None:
        AssignmentProbe.checks.append(is_assigning(sys._getframe(1)))


def assign_in_loop(target: Any) -> None:
    for target[0] in (1, 2):
        pass


def assign_augmented(target: Any) -> None:
    target[0] += 1
    target[:1] += 1


def assign_by_unpacking(target: Any) -> None:
    target[0], target[1:2], *target[2:] = 1, 2, 3


def assign_slices(target: Any, k: int = 2) -> None:
    target[:2] = 1
    target[k:] = 1
    target[:k:1] = 1
    target[..., :k] = 1


def assign_attributes(target: Any) -> None:
    target.a = target.b = 1


def assign_by_with(target: Any) -> None:
    with contextmanager(lambda: iter([1]))() as target[0]:
        pass


def assign_in_comprehension(target: Any) -> None:
    [0 for target[0] in (1, 2)]


def test_instruction_assignments_are_recognized(run: Any) -> None:
    with Failures("assignments") as failures:
        for write in (
            assign_in_loop,
            assign_augmented,
            assign_by_unpacking,
            assign_slices,
            assign_attributes,
            assign_by_with,
            assign_in_comprehension,
        ):
            with failures.case(write.__name__):
                AssignmentProbe.checks.clear()
                run(lambda write=write: write(AssignmentProbe()))
                assert AssignmentProbe.checks
                assert all(AssignmentProbe.checks)


def call_setters(target: Any) -> None:
    target.__setitem__(0, 1)
    operator.setitem(target, 0, 1)
    setattr(target, "a", 1)  # noqa: B010


def test_instruction_calls_are_not_assignments(run: Any) -> None:
    AssignmentProbe.checks.clear()
    run(lambda: call_setters(AssignmentProbe()))
    assert AssignmentProbe.checks
    assert not any(AssignmentProbe.checks)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double),)


@pytest.mark.parametrize("write", ["plain[0] = v[0]", "plain[:2] = [v[0], v[1]]", "plain[k:] = [v[0], v[1]]", "pair.a = v[0]",
    "plain[:1], plain[1:2] = [v[0]], [v[1]]", "plain[:2, None] = [[v[0]], [v[1]]]",
    "pair.a += v[0]", "numbers[0] = v[0]", "pairs[0] = v[0]", "pairs[:1] = [v[0]]", "square[0, :2] = v[0], 1.0"])  # fmt: skip
def test_instruction_node_assigned_into_plain_buffer_raises(write: str) -> None:
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


def raising_from() -> None:
    try:
        float("no number")
    except ValueError as error:
        raise ValueError("mine") from error


@pytest.mark.parametrize(("function", "is_own"), [(raising, True), (raising_from, True), (lambda: float("no number"), False)])
def test_instruction_error_origin_is_recognized(function: Callable[[], object], is_own: bool) -> None:
    with pytest.raises(ValueError, match=r"mine|no number") as caught:
        function()
    trace = innermost(caught.value)
    assert is_raised_by(trace.tb_frame.f_code, trace.tb_lasti) is is_own


class OperatorProbe:
    """A number and a context manager that inspect the frame that converts or enters them."""

    def __init__(self, inspect: Callable[[Any], Any]) -> None:
        self.inspect, self.results = inspect, list[Any]()

    def __float__(self) -> float:
        self.results.append(self.inspect(sys._getframe(1)))
        return 1.0

    def __enter__(self) -> None:
        self.results.append(self.inspect(sys._getframe(1)))

    def __exit__(self, *exception: object) -> None:
        pass


OPERATES: dict[str, tuple[Callable[[OperatorProbe], Any], bool]] = {
    "a text": (lambda probe, text="%.1f": text % probe, True),
    "a call": (lambda probe: float(probe), False),
    "a loop": (lambda probe: [number for number in map(float, [probe])], False),  # noqa: C416
}


def test_instruction_operators_are_recognized(run: Any) -> None:
    with Failures("operators") as failures:
        for name, (form, expected) in OPERATES.items():
            with failures.case(name):
                probe = OperatorProbe(is_at_operator)
                run(lambda form=form, probe=probe: form(probe))
                assert set(probe.results) == {expected}


def test_delegates_is_true_at_yield_from_only(run: Any) -> None:
    results: list[bool] = []

    def inspect() -> Any:
        results.append(is_delegating(sys._getframe(1)))
        yield

    def outer() -> Any:
        yield from inspect()

    def looping() -> Any:
        for value in inspect():  # noqa: UP028
            yield value

    run(lambda: list(outer()))
    assert set(results) == {True}
    results.clear()
    run(lambda: list(looping()))
    assert set(results) == {False}


def test_walk_frames_goes_outward() -> None:
    here = frame_up(0)
    assert here.f_code.co_name == "test_walk_frames_goes_outward"
    assert list(walk_frames(here))[:2] == [here, frame_up(1)]
