"""The back end of the executor that makes machine code: a program of nests, and of calls of NumPy's where it must be."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import ops
from ...executor import Family, Interpreted, NumPyBackend, Schedule
from ...guards import EvaluationGuard, Guard, GuardError, OtherProgramError
from ...storage import Write, window
from ...values import MultiOutput, Node
from . import threads
from .code import DOUBLE, INT, LONG, POINTER, Module, Value
from .elementwise import in_memory
from .emission import emit_units
from .families import LongProgram, Rolled, foretold
from .machine import Loaded, NoCompilerError, object_code, processor
from .planning import LINE, LoopUnit, Nest, Plan, Unit, computed_again, described, grouped, named, split, used
from .refusal import REFUSED, told
from .steps import Buffer, Call, Place

DATA = 16  # bytes from the beginning of an array's object to the address of its numbers (`PyArrayObject_fields` of NumPy's C API)
# Flags of the processor: invalid, division by zero and overflow together, and underflow (FE_INVALID ... of C's fenv.h).
FLAGS, UNDERFLOW = (7, 8) if platform.machine().lower() in ("aarch64", "arm64") else (13, 16)
ARGUMENTS = 500  # of one function: ctypes hands over 1024 at most
PART = 3000  # steps of one function


class LLVMBackend:
    """Makes machine code; a `Backend` of the executor's. Of the options it knows those of `compgraph.jit`."""

    left_out = frozenset({"fuse", "allocate"})  # nests are fused, and their buffers planned, otherwise

    @staticmethod
    def works() -> bool:
        """Whether there is a compiler for this machine; if not, a warning says why, once."""
        try:
            processor()
            _require_layout()
        except NoCompilerError as error:
            warnings.warn(f"compgraph.jit runs functions as NumPy: {error}", RuntimeWarning, stacklevel=2)
            return False
        return True

    def compile(self, schedule: Schedule) -> Any:
        """A program for values of the shapes, dtypes and layouts that the inputs have.

        Raises
        ------
        NoCompilerError
            If there is no compiler for this machine.
        """
        processor()
        try:
            return Program(schedule)
        except NotImplementedError as error:
            program = NumPyBackend().compile(schedule)
            program.report = [f"all of it is made of calls: {error}"]  # type: ignore[attr-defined]
            return program

    def compile_family(self, family: Family) -> Any:
        """A program with the turns that are wanted, foretold by some with few; if it is not, a NotImplementedError is raised."""
        processor()
        return LongProgram(Program(family.schedules[0], foretold(family), family.plain), family)


class Program:
    """Machine code, and calls of NumPy's between its parts; a `Program` of the executor's.

    Attributes
    ----------
    source : str
        The steps, for people to read.
    llvm : str
        What is compiled.
    report : list of str
        What is left to NumPy, and why.
    """

    def __init__(self, schedule: Schedule, rolled: Rolled | None = None, plain: Any = None) -> None:
        self._schedule, self._plain = schedule, plain
        (steps, self._inputs, outputs), self._results = rolled or Rolled.of(schedule)
        units = grouped(steps)
        computed_again(units, outputs)
        units = split(units, outputs, processor()[2])
        self._plan = Plan(units, outputs)
        self._threads = schedule.options.get("threads")
        self.report = sorted({f"{named(u.item)} is called: {u.why}" for u in units if isinstance(u, Call) and u.why})
        self.source = "\n".join(line for unit in units for line in described(unit))
        self._units = units
        self._steps = self._cut(units)
        self._works: list[tuple[Any, int]] = []
        self._quick = None if len(outputs) < len(self._results) else self._without_calls()
        self._makers = [_maker(place) for place in outputs]

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """What `visualize_at` draws of it (see `picture`); inputs are called by their names."""
        from .picture import drawing_of  # and not before somebody draws

        told = [*names, *(f"input {number}" for number in range(1 + len(names), 1 + len(self._inputs)))]
        called = {buffer: name for buffer, name in zip(self._inputs, told, strict=True) if buffer is not None}
        return drawing_of(self._units, self._results, called, options)

    # ------------------------------------------------------------------------------------------ made

    def _cut(self, units: list[Unit]) -> list[Any]:
        """Functions of machine code, each of several nests, and calls, in order."""
        parts: list[Any] = []
        size, given = 0, set[Buffer]()
        for unit in units:
            if isinstance(unit, Call):
                parts.append(unit)
                continue
            needed = given.union(self._outside([unit]))
            is_full = size > PART or len(needed) > ARGUMENTS
            if not parts or isinstance(parts[-1], Call) or is_full or _is_cut(unit) or _is_cut(parts[-1][-1]):
                parts.append([])
                size, needed = 0, set(self._outside([unit]))
            parts[-1].append(unit)
            size, given = size + _size(unit), needed
        readers = Counter(b for part in parts for b in {b for unit in _units(part) for b in used(unit)})
        self._shared = {b for b, many in readers.items() if many > 1}
        module, made = Module(), []
        for number, part in enumerate(parts):
            made.append(part if isinstance(part, Call) else self._emitted(module, f"part{number}", part))
        self.llvm = module.text
        if any(not isinstance(part, Call) for part in parts):
            self._loaded = Loaded(object_code(self.llvm, is_kept=bool(self._schedule.options.get("cache", False))))
        return [
            part if isinstance(part, Call) else self._callable(f"part{n}", part, parts[n][-1])
            for n, part in enumerate(made)
            if not (isinstance(part, Call) and isinstance(part.item, EvaluationGuard))
        ]

    def _outside(self, units: Sequence[Unit]) -> list[Buffer]:
        """The arrays outside of the work space that units read or write, or that what they read or write lies in."""
        plan = self._plan
        hosts = (plan.hosts.get(b, b) for unit in units for b in used(unit) if b in plan.kept)
        return [b for b in dict.fromkeys(hosts) if b not in plan.offsets]

    def _emitted(self, module: Module, name: str, units: list[Unit]) -> list[Any]:
        """Write a function; returns what it is given: constant arrays, buffers of objects."""
        plan, outside = self._plan, self._outside(units)
        buffers = dict.fromkeys(b for unit in units for b in used(unit) if b in plan.kept)
        if len(outside) > ARGUMENTS:
            raise NotImplementedError(f"it has {len(outside)} arrays outside")
        pieces = [LONG] if _is_cut(units[-1]) else []  # which one is to be done
        code = module.function(name, INT, [POINTER] * (1 + len(outside)) + pieces)
        bases: dict[Buffer, Value] = {}
        for buffer, given in zip(outside, code.operands[1 : 1 + len(outside)], strict=True):
            bases[buffer] = code.load(code.at(given, DATA // 8, DOUBLE), POINTER, 8)
        for buffer in buffers:
            if buffer in plan.offsets and buffer.size == 1 and buffer not in self._shared:
                bases[buffer] = code.variable(in_memory(buffer.dtype))
            elif buffer in plan.offsets:
                space = bases[plan.hosts[buffer]] if buffer in plan.hosts else code.operands[0]
                bases[buffer] = code.at(space, plan.offsets[buffer] // 8, DOUBLE)
        mask = code.number(FLAGS | UNDERFLOW, INT)
        for function in ("feclearexcept", "fetestexcept"):
            module.declare(function, INT, [INT])
        code.call("feclearexcept", INT, mask)
        piece = code.operands[-1] if pieces else None
        emit_units(code, units, bases.__getitem__, plan.kept, processor()[2], piece=piece)
        code.give(told(code, code.call("fetestexcept", INT, mask)))
        return outside

    def _callable(self, name: str, outside: list[Buffer], last: Unit) -> tuple[Any, list[Any], int]:
        """A function, what it is given, and how many pieces it has; 0 where its last unit, then its only one, is not cut."""
        pieces = last.pieces.count if isinstance(last, Nest) and last.pieces is not None else 0
        types = [ctypes.c_void_p] * (1 + len(outside)) + [ctypes.c_int64] * (pieces > 0)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
        constants = [b.node if isinstance(b.node, np.ndarray) and not isinstance(b.node, Node) else b for b in outside]
        return prototype(self._loaded.address(name)), constants, pieces

    def _without_calls(self) -> list[tuple[Any, list[int], int]] | None:
        """For each function where among inputs, results and constants what it is given stands; None if NumPy is called too."""
        if any(isinstance(step, Call) for step in self._steps):
            return None
        buffers = [*self._inputs, *[place.buffer for place, _ in self._results if place is not None]]
        known: dict[Any, int] = {id(buffer): k for k, buffer in enumerate(buffers) if buffer is not None}
        self._constants: list[Any] = []
        found = []
        for function, outside, pieces in self._steps:
            for constant in outside:
                if id(constant) not in known:
                    known[id(constant)] = len(buffers) + len(self._constants)
                    self._constants.append(constant)
            found.append((function, [known[id(given)] for given in outside], pieces))
        return found

    # ------------------------------------------------------------------------------------------ run

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of the outputs, from those of the inputs."""
        try:
            found, raised = self._run(values) if self._quick is None else self._run_quickly(values)
        except (GuardError, OtherProgramError):  # perhaps for a last bit; NumPy has the last word
            return self._as_numpy(values)
        if raised and _is_reported(raised):
            return self._as_numpy(values)  # with its warnings
        return found

    def _work(self) -> tuple[Any, int]:
        """A work space that no other run uses, and its address."""
        try:
            return self._works.pop()
        except IndexError:
            work = np.empty(self._plan.size + LINE, np.uint8)
            work = work[-work.ctypes.data % LINE :][: self._plan.size]
            return work, work.ctypes.data

    def _run_quickly(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """As `_run`, where nothing is called."""
        assert self._quick is not None
        values = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
        work, start = self._work()
        made = [make() for make in self._makers]
        arrays = (*values, *made, *self._constants)
        raised = 0
        for function, places, pieces in self._quick:
            raised |= self._done(function, [start, *[id(arrays[k]) for k in places]], pieces, (work, arrays))
        self._works.append((work, start))
        return tuple([array if array.shape else array[()] for array in made]), raised

    def _done(self, function: Any, given: list[int], pieces: int, held: Any) -> int:
        """Run a function; returns which exceptions were seen."""
        if pieces:
            raised = threads.run(function, given, pieces, self._threads or threads.processors(), (self._loaded, held))
        else:
            raised = function(*given)
        if raised & REFUSED:
            raise OtherProgramError("an index is out of range, or a number does not fit")
        return int(raised)

    def _run(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """The values of the outputs, and which exceptions of floating-point arithmetic were seen."""
        work, start = self._work()
        values = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
        arrays: dict[Any, Any] = dict(zip(self._inputs, values, strict=True))
        inputs = zip(self._schedule.inputs, values, strict=True)
        called = {node: value for node, value in inputs if not node.memory}  # others are copied first
        written = [place.buffer for place, _ in self._results if place is not None]
        arrays.update(zip(written, [make() for make in self._makers], strict=True))
        raised = 0
        for step in self._steps:
            if isinstance(step, Call):
                self._call(step, arrays, called, work)
            else:
                function, outside, pieces = step
                given = [start, *[id(arrays[b] if type(b) is Buffer else b) for b in outside]]
                raised |= self._done(function, given, pieces, (work, arrays))
        self._works.append((work, start))
        found = [np.array(called[item]) if place is None else arrays[place.buffer] for place, item in self._results]
        return tuple([array if array.shape else array[()] for array in found]), raised

    def give_up_values(self) -> None:
        """Forget what the nodes were recorded with: for graphs that nobody else has."""
        self._plain = Interpreted(self._schedule)
        self._plain.give_up_values()

    def _as_numpy(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The results as NumPy computes them."""
        if self._plain is None:
            self._plain = NumPyBackend().compile(self._schedule)
        found: tuple[Any, ...] = self._plain(values)
        return found

    def _call(self, step: Call, arrays: dict[Any, Any], called: dict[Any, Any], work: Any) -> None:
        item = step.item

        def value(operand: Any) -> Any:
            if not isinstance(operand, (Node, MultiOutput)):
                return operand
            if operand in called:
                return called[operand]
            found = self._array(step.places[operand], arrays, work)
            return found if isinstance(operand.raw_value, np.ndarray) else found[()]

        if isinstance(item, Write):
            assert step.out is not None
            self._array(step.out, arrays, work)[item.index] = value(item.args[0])
            return
        if not step.why and not isinstance(item, Guard):  # checks of what was compiled
            result = value(item)
        elif isinstance(item, Guard):
            item.check(*map(value, item.args))
            return
        elif isinstance(item.function, ops.Output):
            result = called[item.args[0]][item.function.index]
        else:
            result = item.function(*map(value, item.args), **item.options)
        for require, expected in step.checks:
            require(result, expected)
        if not step.why:
            return
        hosts = self._plan.hosts
        read = {hosts[place.buffer] for place in step.places.values() if place.buffer in hosts}
        called[item] = result = _apart(result, [work, *map(arrays.__getitem__, read)])
        if step.out is not None:
            if np.shape(result) != step.out.shape or np.asarray(result).dtype != step.out.buffer.dtype:
                raise OtherProgramError(f"{item.opname} gave {np.shape(result)}")
            arrays[step.out.buffer] = np.asarray(result, order="C")

    def _array(self, place: Place, arrays: dict[Any, Any], work: Any) -> Any:
        """A place as an array of NumPy's."""
        buffer = place.buffer
        strides = tuple(s * buffer.dtype.itemsize for s in place.strides)
        start = self._plan.offsets.get(buffer, 0) + place.offset * buffer.dtype.itemsize
        host = self._plan.hosts.get(buffer, buffer)
        whole = work if host in self._plan.offsets else arrays.get(host, buffer.node)
        return window(whole, place.shape, buffer.dtype, start, strides)


def _require_layout() -> None:
    """Raise unless an array's object lies where `id` says, and holds the address of its numbers where NumPy's C API has it."""
    array = np.ones(3)
    is_known = sys.implementation.name == "cpython"
    if not is_known or ctypes.c_void_p.from_address(id(array) + DATA).value != array.ctypes.data:
        raise NoCompilerError("this Python's arrays lie otherwise in memory than those of CPython")


def _maker(place: Place) -> Callable[[], Any]:
    """A function that allocates the array of a result, with the axis order in memory of a place."""
    dtype = place.buffer.dtype
    if place.is_dense:
        return functools.partial(np.empty, place.shape, dtype)
    strides = tuple(s * dtype.itemsize for s in place.strides)
    return functools.partial(np.empty_like, as_strided(np.empty(1, dtype), place.shape, strides))


def _is_reported(raised: int) -> bool:
    """Whether NumPy's present settings warn or raise for some flags of the processor."""
    seen = {kind: raised & (UNDERFLOW if kind == "under" else FLAGS) for kind, how in np.geterr().items() if how != "ignore"}
    return any(seen.values())


def _is_cut(unit: Unit) -> bool:
    return isinstance(unit, Nest) and unit.pieces is not None


def _apart(result: Any, spaces: Sequence[Any]) -> Any:
    """A result of NumPy's that lies nowhere in memory where something else will soon be."""
    if isinstance(result, np.ndarray):
        return result.copy() if any(np.may_share_memory(result, space) for space in spaces) else result
    if isinstance(result, (tuple, list)):
        return [_apart(part, spaces) for part in result]
    return result


def _units(part: Any) -> Sequence[Unit]:
    return [part] if isinstance(part, Call) else part


def _size(unit: Unit) -> int:
    """How many steps are compiled for a unit."""
    if isinstance(unit, LoopUnit):
        return sum(map(_size, unit.units))
    return len(unit.steps) if isinstance(unit, Nest) else 1
