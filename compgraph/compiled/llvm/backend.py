"""`LLVMBackend`: compiles schedules to machine code, with NumPy calls for operations that are not lowered."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import ops
from ...executor import NumPyBackend, Schedule, ScheduleInterpreter, TripCountFamily
from ...guards import EvaluationGuard, Guard, GuardError, OtherProgramError
from ...storage import Write, window
from ...values import MultiOutput, Node
from . import thread_pool
from .buffer_ir import Buffer, BufferView, NumPyCall
from .elementwise_ops import memory_type
from .emission import emit_units
from .ir_builder import BAILOUT, DOUBLE, INT, LONG, POINTER, Module, Value
from .llvm_compiler import LoadedCode, NoCompilerError, compile_module, processor
from .lowering import GraphLowering
from .planning import (
    CACHE_LINE,
    FusedLoop,
    LoopNest,
    MemoryPlan,
    StepProgram,
    Unit,
    buffers_used,
    describe_item,
    describe_unit,
    extrapolate,
    fuse_steps,
    rematerialize,
    reroll_loops,
    tile_nests,
)

DATA_OFFSET = 16  # bytes from an array object to its data pointer (`PyArrayObject_fields` of NumPy's C API)
# Processor flags: invalid, division by zero and overflow together, and underflow (FE_INVALID ... of C's fenv.h).
FLAGS, UNDERFLOW = (7, 8) if platform.machine().lower() in ("aarch64", "arm64") else (13, 16)
MAX_ARGUMENTS = 500  # of one function: ctypes supports at most 1024
MAX_FUNCTION_STEPS = 3000  # steps of one function


class LLVMBackend:
    """Compiles schedules to machine code; a `Backend` of the executor. It reads the options of `compgraph.jit`."""

    left_out = frozenset({"fuse", "allocate"})  # `planning` has its own passes for these

    @staticmethod
    def works() -> bool:
        """Return whether a compiler for this machine is available; otherwise warn once with the reason."""
        try:
            processor()
            _require_array_layout()
        except NoCompilerError as error:
            warnings.warn(f"compgraph.jit runs functions as NumPy: {error}", RuntimeWarning, stacklevel=2)
            return False
        return True

    def compile(self, schedule: Schedule) -> Any:
        """Compile a program for values of the shapes, dtypes and layouts of the inputs.

        Raises
        ------
        NoCompilerError
            If this machine has no compiler.
        """
        processor()
        try:
            return MachineProgram(schedule)
        except NotImplementedError as error:
            program = NumPyBackend().compile(schedule)
            program.numpy_reason = str(error)
            return program

    def compile_family(self, family: TripCountFamily) -> Any:
        """Compile a program with the target trip counts, extrapolated from fewer; raise a NotImplementedError if that fails."""
        processor()
        return TableProgram(MachineProgram(family.schedules[0], extrapolate_program(family), family.plain), family)


class MachineProgram:
    """Machine code, with NumPy calls between its functions; a `Program` of the executor.

    Attributes
    ----------
    source : str
        The steps as readable text.
    llvm : str
        The LLVM IR.
    numpy_calls : int
        The number of NumPy calls in each run.
    report : list of str
        The operations that call NumPy, with the reasons.
    """

    def __init__(self, schedule: Schedule, reroll_loops: LoweredProgram | None = None, plain: Any = None) -> None:
        self._schedule, self._plain = schedule, plain
        (steps, self._inputs, outputs), self._results = reroll_loops or LoweredProgram.of(schedule)
        units = fuse_steps(steps)
        rematerialize(units, outputs)
        units = tile_nests(units, outputs, processor()[2])
        self._plan = MemoryPlan(units, outputs)
        self._threads = schedule.options.get("threads")
        calls = Counter(f"{describe_item(u.item)} calls NumPy: {u.why}" for u in units if isinstance(u, NumPyCall) and u.why)
        self.numpy_calls = calls.total()
        self.report = sorted(f"{line} ({count} times in each run)" if count > 1 else line for line, count in calls.items())
        self.source = "\n".join(line for unit in units for line in describe_unit(unit))
        self._units = units
        self._steps = self._cut(units)
        self._works: list[tuple[Any, int]] = []
        self._quick = None if len(outputs) < len(self._results) else self._without_calls()
        self._makers = [_allocator(place) for place in outputs]

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """Return the drawing of `visualize_at` (see `program_drawing`), with names for the inputs."""
        from .program_drawing import draw_program  # imported on first use

        told = [*names, *(f"input {number}" for number in range(1 + len(names), 1 + len(self._inputs)))]
        called = {buffer: name for buffer, name in zip(self._inputs, told, strict=True) if buffer is not None}
        return draw_program(self._units, self._results, called, options)

    # ------------------------------------------------------------------------------------------ compilation

    def _cut(self, units: list[Unit]) -> list[Any]:
        """Split the units into machine-code functions of several nests, and NumPy calls, in order."""
        parts: list[Any] = []
        size, given = 0, set[Buffer]()
        for unit in units:
            if isinstance(unit, NumPyCall):
                parts.append(unit)
                continue
            needed = given.union(self._outside([unit]))
            is_full = size > MAX_FUNCTION_STEPS or len(needed) > MAX_ARGUMENTS
            if not parts or isinstance(parts[-1], NumPyCall) or is_full or _is_tiled(unit) or _is_tiled(parts[-1][-1]):
                parts.append([])
                size, needed = 0, set(self._outside([unit]))
            parts[-1].append(unit)
            size, given = size + _step_count(unit), needed
        readers = Counter(b for part in parts for b in {b for unit in _units(part) for b in buffers_used(unit)})
        self._shared = {b for b, many in readers.items() if many > 1}
        module, made = Module(), []
        for number, part in enumerate(parts):
            made.append(part if isinstance(part, NumPyCall) else self._emitted(module, f"part{number}", part))
        self.llvm = module.text
        if any(not isinstance(part, NumPyCall) for part in parts):
            self._loaded = LoadedCode(compile_module(self.llvm, is_kept=bool(self._schedule.options.get("cache", False))))
        return [
            part if isinstance(part, NumPyCall) else self._callable(f"part{n}", part, parts[n][-1])
            for n, part in enumerate(made)
            if not (isinstance(part, NumPyCall) and isinstance(part.item, EvaluationGuard))
        ]

    def _outside(self, units: Sequence[Unit]) -> list[Buffer]:
        """Return the arrays outside of the workspace that units access, or whose memory hosts accessed buffers."""
        plan = self._plan
        hosts = (plan.hosts.get(b, b) for unit in units for b in buffers_used(unit) if b in plan.materialized)
        return [b for b in dict.fromkeys(hosts) if b not in plan.offsets]

    def _emitted(self, module: Module, name: str, units: list[Unit]) -> list[Any]:
        """Emit a function; return its array arguments: constant arrays and buffers."""
        plan, outside = self._plan, self._outside(units)
        buffers = dict.fromkeys(b for unit in units for b in buffers_used(unit) if b in plan.materialized)
        if len(outside) > MAX_ARGUMENTS:
            raise NotImplementedError(f"it has {len(outside)} external arrays")
        pieces = [LONG] if _is_tiled(units[-1]) else []  # the index of the tile
        code = module.function(name, INT, [POINTER] * (1 + len(outside)) + pieces)
        bases: dict[Buffer, Value] = {}
        for buffer, given in zip(outside, code.operands[1 : 1 + len(outside)], strict=True):
            bases[buffer] = code.load(code.element_address(given, DATA_OFFSET // 8, DOUBLE), POINTER, 8)
        for buffer in buffers:
            if buffer in plan.offsets and buffer.size == 1 and buffer not in self._shared:
                bases[buffer] = code.variable(memory_type(buffer.dtype))
            elif buffer in plan.offsets:
                space = bases[plan.hosts[buffer]] if buffer in plan.hosts else code.operands[0]
                bases[buffer] = code.element_address(space, plan.offsets[buffer] // 8, DOUBLE)
        mask = code.number(FLAGS | UNDERFLOW, INT)
        for function in ("feclearexcept", "fetestexcept"):
            module.declare(function, INT, [INT])
        code.call("feclearexcept", INT, mask)
        tile = code.operands[-1] if pieces else None
        emit_units(code, units, bases.__getitem__, plan.materialized, processor()[2], tile=tile)
        code.ret(code.status(code.call("fetestexcept", INT, mask)))
        return outside

    def _callable(self, name: str, outside: list[Buffer], last: Unit) -> tuple[Any, list[Any], int]:
        """Return a function, its array arguments, and its number of tiles (0 if its unit is not tiled)."""
        pieces = last.tiling.count if isinstance(last, LoopNest) and last.tiling is not None else 0
        types = [ctypes.c_void_p] * (1 + len(outside)) + [ctypes.c_int64] * (pieces > 0)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *types)
        constants = [b.node if isinstance(b.node, np.ndarray) and not isinstance(b.node, Node) else b for b in outside]
        return prototype(self._loaded.address(name)), constants, pieces

    def _without_calls(self) -> list[tuple[Any, list[int], int]] | None:
        """Return each function with the positions of its arguments among all arrays; None if NumPy is called."""
        if any(isinstance(step, NumPyCall) for step in self._steps):
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

    # ------------------------------------------------------------------------------------------ execution

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the inputs."""
        try:
            found, raised = self._run(values) if self._quick is None else self._run_quickly(values)
        except (GuardError, OtherProgramError):  # perhaps because of a rounding error; NumPy decides
            return self._as_numpy(values)
        if raised and _is_reported_by_numpy(raised):
            return self._as_numpy(values)  # to get its warnings
        return found

    def _work(self) -> tuple[Any, int]:
        """Return a workspace that no other run uses, and its address."""
        try:
            return self._works.pop()
        except IndexError:
            work = np.empty(self._plan.size + CACHE_LINE, np.uint8)
            work = work[-work.ctypes.data % CACHE_LINE :][: self._plan.size]
            return work, work.ctypes.data

    def _run_quickly(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Run a program without NumPy calls."""
        assert self._quick is not None
        values = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
        work, start = self._work()
        made = [make() for make in self._makers]
        arrays = (*values, *made, *self._constants)
        raised = 0
        for function, views, pieces in self._quick:
            raised |= self._done(function, [start, *[id(arrays[k]) for k in views]], pieces, (work, arrays))
        self._works.append((work, start))
        return tuple([array if array.shape else array[()] for array in made]), raised

    def _done(self, function: Any, given: list[int], pieces: int, held: Any) -> int:
        """Run a function; return its floating-point exceptions."""
        if pieces:
            raised = thread_pool.run_tiles(
                function, given, pieces, self._threads or thread_pool.processors(), (self._loaded, held)
            )
        else:
            raised = function(*given)
        if raised & BAILOUT:
            raise OtherProgramError("an index is out of range, or a number does not fit")
        return int(raised)

    def _run(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Run the program; return the outputs and the floating-point exceptions."""
        work, start = self._work()
        values = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
        arrays: dict[Any, Any] = dict(zip(self._inputs, values, strict=True))
        inputs = zip(self._schedule.inputs, values, strict=True)
        called = {node: value for node, value in inputs if not node.memory}  # inputs with writes are copied first
        written = [place.buffer for place, _ in self._results if place is not None]
        arrays.update(zip(written, [make() for make in self._makers], strict=True))
        raised = 0
        for step in self._steps:
            if isinstance(step, NumPyCall):
                self._call(step, arrays, called, work)
            else:
                function, outside, pieces = step
                given = [start, *[id(arrays[b] if type(b) is Buffer else b) for b in outside]]
                raised |= self._done(function, given, pieces, (work, arrays))
        self._works.append((work, start))
        found = [np.array(called[item]) if place is None else arrays[place.buffer] for place, item in self._results]
        return tuple([array if array.shape else array[()] for array in found]), raised

    def give_up_values(self) -> None:
        """Release the recorded values of the nodes; for graphs without other owners."""
        self._plain = ScheduleInterpreter(self._schedule)
        self._plain.give_up_values()

    def _as_numpy(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the results by NumPy."""
        if self._plain is None:
            self._plain = NumPyBackend().compile(self._schedule)
        found: tuple[Any, ...] = self._plain(values)
        return found

    def _call(self, step: NumPyCall, arrays: dict[Any, Any], called: dict[Any, Any], work: Any) -> None:
        item = step.item

        def value(operand: Any) -> Any:
            if not isinstance(operand, (Node, MultiOutput)):
                return operand
            if operand in called:
                return called[operand]
            found = self._array(step.views[operand], arrays, work)
            return found if isinstance(operand.raw_value, np.ndarray) else found[()]

        if isinstance(item, Write):
            assert step.out is not None
            self._array(step.out, arrays, work)[item.index] = value(item.args[0])
            return
        if not step.why and not isinstance(item, Guard):  # checks of compiled results
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
        read = {hosts[place.buffer] for place in step.views.values() if place.buffer in hosts}
        called[item] = result = _copy_if_shared(result, [work, *map(arrays.__getitem__, read)])
        if step.out is not None:
            if np.shape(result) != step.out.shape or np.asarray(result).dtype != step.out.buffer.dtype:
                raise OtherProgramError(f"{item.opname} returned an array of shape {np.shape(result)}")
            arrays[step.out.buffer] = np.asarray(result, order="C")

    def _array(self, place: BufferView, arrays: dict[Any, Any], work: Any) -> Any:
        """Return a view as a NumPy array."""
        buffer = place.buffer
        strides = tuple(s * buffer.dtype.itemsize for s in place.strides)
        start = self._plan.offsets.get(buffer, 0) + place.offset * buffer.dtype.itemsize
        host = self._plan.hosts.get(buffer, buffer)
        whole = work if host in self._plan.offsets else arrays.get(host, buffer.node)
        return window(whole, place.shape, buffer.dtype, start, strides)


def _require_array_layout() -> None:
    """Raise unless array objects have the memory layout of CPython and NumPy's C API."""
    array = np.ones(3)
    is_known = sys.implementation.name == "cpython"
    if not is_known or ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value != array.ctypes.data:
        raise NoCompilerError("array objects have another memory layout than in CPython")


def _allocator(place: BufferView) -> Callable[[], Any]:
    """Return a function that allocates a result with the axis order of a view in memory."""
    dtype = place.buffer.dtype
    if place.is_dense:
        return functools.partial(np.empty, place.shape, dtype)
    strides = tuple(s * dtype.itemsize for s in place.strides)
    return functools.partial(np.empty_like, as_strided(np.empty(1, dtype), place.shape, strides))


def _is_reported_by_numpy(raised: int) -> bool:
    """Return whether NumPy's present settings warn or raise for some processor flags."""
    seen = {kind: raised & (UNDERFLOW if kind == "under" else FLAGS) for kind, how in np.geterr().items() if how != "ignore"}
    return any(seen.values())


def _is_tiled(unit: Unit) -> bool:
    return isinstance(unit, LoopNest) and unit.tiling is not None


def _copy_if_shared(result: Any, spaces: Sequence[Any]) -> Any:
    """Return a result of NumPy, copied if it shares memory with memory that will be reused."""
    if isinstance(result, np.ndarray):
        return result.copy() if any(np.may_share_memory(result, space) for space in spaces) else result
    if isinstance(result, (tuple, list)):
        return [_copy_if_shared(part, spaces) for part in result]
    return result


def _units(part: Any) -> Sequence[Unit]:
    return [part] if isinstance(part, NumPyCall) else part


def _step_count(unit: Unit) -> int:
    """Return the number of steps compiled for a unit."""
    if isinstance(unit, FusedLoop):
        return sum(map(_step_count, unit.units))
    return len(unit.steps) if isinstance(unit, LoopNest) else 1


class LoweredProgram(NamedTuple):
    """A lowered schedule with rerolled loops.

    Attributes
    ----------
    steps : StepProgram
        The steps, the buffers of inputs, and the views of the computed results.
    results : list of (BufferView or None, Node)
        See `GraphLowering.results`.
    """

    steps: StepProgram
    results: list[tuple[Any, Any]]

    @classmethod
    def of(cls, schedule: Schedule, longest: int = 0) -> LoweredProgram:
        """Lower a schedule; its loops may represent loops of `longest` iterations."""
        lowered = GraphLowering(schedule, is_exact=bool(schedule.options.get("exact", False)))
        results = lowered.results()
        outputs = [place for place, _ in results if place is not None]
        inputs = [lowered.inputs[node].buffer if node in lowered.inputs else None for node in schedule.inputs]
        return cls(StepProgram(reroll_loops(lowered.steps, outputs, longest), inputs, outputs), results)


def extrapolate_program(family: TripCountFamily) -> LoweredProgram:
    """Return the steps with the target trip counts; raise a NotImplementedError if they cannot be extrapolated."""
    found = [LoweredProgram.of(schedule, max(family.target)) for schedule in family.schedules]
    steps = extrapolate([each.steps for each in found], family.trip_counts, family.target)
    views = iter(steps.outputs)
    return LoweredProgram(steps, [(None if place is None else next(views), node) for place, node in found[0].results])


class TableProgram:
    """A program with tables of constants as additional inputs.

    Parameters
    ----------
    program : object
        The program.
    family : TripCountFamily
        The family it was compiled from.
    """

    def __init__(self, program: Any, family: TripCountFamily) -> None:
        self._program, self._given = program, family.tables
        self.source, self.llvm = program.source, program.llvm
        self.report, self.numpy_calls = program.report, program.numpy_calls

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the values of a call."""
        found: tuple[Any, ...] = self._program([*values, *self._given])
        return found

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """Return the drawing of `visualize_at`."""
        tables = [f"table {number}" for number in range(1, 1 + len(self._given))]
        return self._program.drawing(options, [*names, *tables])
