"""`LLVMBackend`: compiles schedules to machine code, with NumPy calls for operations that are not lowered."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ... import ops
from ...executor import NumPyBackend, Schedule, ScheduleInterpreter, TripCountFamily
from ...guards import EvaluationGuard, Guard, GuardError, OtherProgramError
from ...storage import Write, window
from ...values import MultiOutput, Node
from ..compile_errors import warn_compile
from . import thread_pool
from .buffer_ir import Buffer, BufferView, NumPyCall
from .emission import DATA_OFFSET, FLAGS, UNDERFLOW, emit_kernel, emit_record_loop, emit_tiled_nest
from .ir_builder import BAILOUT, Module
from .llvm_compiler import LoadedCode, NoCompilerError, compile_module, processor
from .lowering import GraphLowering
from .planning import (
    CACHE_LINE,
    Kernel,
    KernelTable,
    LoopNest,
    MemoryPlan,
    StepProgram,
    Unit,
    buffers_used,
    describe_item,
    describe_unit,
    extrapolate,
    fuse_steps,
    products_as_nests,
    rematerialize,
    reroll_loops,
    tile_nests,
)

MAX_ARGUMENTS = 500  # of one function: ctypes supports at most 1024


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
            warn_compile(f"compgraph.jit runs functions as NumPy: {error}")
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
        units = products_as_nests(fuse_steps(steps))
        rematerialize(units, outputs)
        units = tile_nests(units, outputs, processor()[2])
        self._plan = MemoryPlan(units, outputs)
        self._threads = schedule.options.get("threads")
        calls = Counter(f"{describe_item(u.item)} calls NumPy: {u.why}" for u in units if isinstance(u, NumPyCall) and u.why)
        self.numpy_calls = calls.total()
        self.report = sorted(f"{line} ({count} times in each run)" if count > 1 else line for line, count in calls.items())
        self.source = "\n".join(line for unit in units for line in describe_unit(unit))
        self._units = units
        self._steps = self._emit(units)
        self._works: list[tuple[Any, int]] = []
        self._quick = None if len(outputs) < len(self._results) else self._without_calls()
        self._makers = [_allocator(place) for place in outputs]

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """Return the drawing of `visualize_at` (see `program_drawing`), with names for the inputs."""
        from .program_drawing import draw_program  # imported on first use

        input_names = [*names, *(f"input {number}" for number in range(1 + len(names), 1 + len(self._inputs)))]
        called = {buffer: name for buffer, name in zip(self._inputs, input_names, strict=True) if buffer is not None}
        return draw_program(self._units, self._results, called, options)

    # ------------------------------------------------------------------------------------------ compilation

    def _emit(self, units: list[Unit]) -> list[_Step]:
        """Compile the units; return the steps of a run: sequences of records, tiled nests, and NumPy calls."""
        plan, width, module = self._plan, processor()[2], Module()
        readers = Counter(buffer for unit in units for buffer in set(buffers_used(unit)))
        registers = {b for b, count in readers.items() if count == 1 and b.size == 1 and b in plan.offsets}
        table = KernelTable(plan.materialized, registers, width)
        parts = [_Part(units_of, self._outside(units_of)) for units_of in self._parts(units)]
        records = [[] if part.is_alone else self._records(part, table) for part in parts]
        for kernel in table.kernels.values():
            kernel.compress()
            emit_kernel(module, kernel, plan.materialized, width)
        names = [self._emit_part(module, f"tiled{number}", part) for number, part in enumerate(parts)]
        self.llvm = module.text
        if any(names):
            self._loaded = LoadedCode(compile_module(self.llvm, is_kept=bool(self._schedule.options.get("cache", False))))
        addresses = {kernel: self._loaded.address(kernel.name) for kernel in table.kernels.values()}
        self._memory = [_record_array(each, addresses) for each in records]
        return [
            self._step(part, name, memory)
            for part, name, memory in zip(parts, names, self._memory, strict=True)
            if not (isinstance(part.first, NumPyCall) and isinstance(part.first.item, EvaluationGuard))
        ]

    def _parts(self, units: list[Unit]) -> list[list[Unit]]:
        """Split the units into sequences that one function runs; a NumPy call or a tiled nest is alone."""
        parts: list[list[Unit]] = []
        arrays = set[Buffer]()
        for unit in units:
            needed = arrays.union(self._outside([unit]))
            if not parts or _is_alone(unit) or _is_alone(parts[-1][-1]) or len(needed) > MAX_ARGUMENTS:
                parts.append([])
                needed = set(self._outside([unit]))
            parts[-1].append(unit)
            arrays = needed
        return parts

    def _outside(self, units: Sequence[Unit]) -> list[Buffer]:
        """Return the arrays outside of the workspace that units access, or whose memory hosts accessed buffers."""
        plan = self._plan
        hosts = (plan.hosts.get(b, b) for unit in units for b in buffers_used(unit) if b in plan.materialized)
        return [b for b in dict.fromkeys(hosts) if b not in plan.offsets]

    def _records(self, part: _Part, table: KernelTable) -> list[tuple[Kernel, int]]:
        """Return the kernel and the number of the record of each unit."""
        plan, numbers = self._plan, {buffer: number for number, buffer in enumerate(part.arrays, 1)}

        def place(view: BufferView) -> tuple[int, int]:
            buffer = view.buffer
            offset = plan.offsets.get(buffer, 0) + view.offset * buffer.dtype.itemsize
            return numbers.get(plan.hosts.get(buffer, buffer), 0), offset

        return [table.add(unit, place) for unit in part.units]

    def _emit_part(self, module: Module, name: str, part: _Part) -> str:
        """Return the name of the function that runs a part; empty for NumPy calls."""
        if isinstance(part.first, NumPyCall):
            return ""
        if len(part.arrays) > MAX_ARGUMENTS:
            raise NotImplementedError(f"it has {len(part.arrays)} external arrays")
        if not part.is_alone:
            return emit_record_loop(module, len(part.arrays))
        assert isinstance(part.first, LoopNest)
        emit_tiled_nest(module, name, part.first, part.arrays, self._plan, processor()[2])
        return name

    def _step(self, part: _Part, name: str, records: NDArray[np.int64]) -> _Step:
        if isinstance(part.first, NumPyCall):
            return part.first
        constants = [b.node if isinstance(b.node, np.ndarray) and not isinstance(b.node, Node) else b for b in part.arrays]
        tiles = part.first.tiling.count if isinstance(part.first, LoopNest) and part.first.tiling is not None else 0
        last = [] if tiles else [records.ctypes.data, records.ctypes.data + records.nbytes]
        types = [ctypes.c_void_p] * (1 + len(part.arrays)) + ([ctypes.c_int64] if tiles else [ctypes.c_void_p] * 2)
        return _MachineCode(ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._loaded.address(name)), constants, last, tiles)

    def _without_calls(self) -> list[tuple[Any, list[int], list[int], int]] | None:
        """Return each function with the positions of its arguments among all arrays; None if NumPy is called."""
        if any(isinstance(step, NumPyCall) for step in self._steps):
            return None
        buffers = [*self._inputs, *[place.buffer for place, _ in self._results if place is not None]]
        known: dict[Any, int] = {id(buffer): k for k, buffer in enumerate(buffers) if buffer is not None}
        self._constants: list[Any] = []
        functions = []
        for function, arrays, records, tiles in (step for step in self._steps if isinstance(step, _MachineCode)):
            for constant in arrays:
                if id(constant) not in known:
                    known[id(constant)] = len(buffers) + len(self._constants)
                    self._constants.append(constant)
            functions.append((function, [known[id(array)] for array in arrays], records, tiles))
        return functions

    # ------------------------------------------------------------------------------------------ execution

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the inputs."""
        try:
            outputs, raised = self._run(values) if self._quick is None else self._run_quickly(values)
        except (GuardError, OtherProgramError):  # perhaps because of a rounding error; NumPy decides
            return self._as_numpy(values)
        if raised and _is_reported_by_numpy(raised):
            return self._as_numpy(values)  # to get its warnings
        return outputs

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
        outputs = [make() for make in self._makers]
        arrays = (*values, *outputs, *self._constants)
        raised = 0
        for function, views, records, tiles in self._quick:
            raised |= self._run_machine_code(function, [start, *[id(arrays[k]) for k in views], *records], tiles, (work, arrays))
        self._works.append((work, start))
        return tuple([array if array.shape else array[()] for array in outputs]), raised

    def _run_machine_code(self, function: Any, arguments: list[int], tiles: int, held: Any) -> int:
        """Run a function; return its floating-point exceptions."""
        if tiles:
            raised = thread_pool.run_tiles(
                function, arguments, tiles, self._threads or thread_pool.processors(), (self._loaded, held)
            )
        else:
            raised = function(*arguments)
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
                arguments = [start, *[id(arrays[b] if type(b) is Buffer else b) for b in step.arrays], *step.records]
                raised |= self._run_machine_code(step.function, arguments, step.tiles, (work, arrays))
        self._works.append((work, start))
        outputs = [np.array(called[item]) if place is None else arrays[place.buffer] for place, item in self._results]
        return tuple([array if array.shape else array[()] for array in outputs]), raised

    def give_up_values(self) -> None:
        """Release the recorded values of the nodes; for graphs without other owners."""
        self._plain = ScheduleInterpreter(self._schedule)
        self._plain.give_up_values()

    def _as_numpy(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the results by NumPy."""
        if self._plain is None:
            self._plain = NumPyBackend().compile(self._schedule)
        outputs: tuple[Any, ...] = self._plain(values)
        return outputs

    def _call(self, step: NumPyCall, arrays: dict[Any, Any], called: dict[Any, Any], work: Any) -> None:
        item = step.item

        def value(operand: Any) -> Any:
            if not isinstance(operand, (Node, MultiOutput)):
                return operand
            if operand in called:
                return called[operand]
            operand_array = self._array(step.views[operand], arrays, work)
            return operand_array if isinstance(operand.raw_value, np.ndarray) else operand_array[()]

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


def _is_alone(unit: Unit) -> bool:
    """Return whether a unit is a NumPy call or a tiled nest."""
    return isinstance(unit, NumPyCall) or (isinstance(unit, LoopNest) and unit.tiling is not None)


class _Part(NamedTuple):
    """Consecutive units that one function runs, and the arrays that it accesses."""

    units: list[Unit]
    arrays: list[Buffer]

    @property
    def first(self) -> Unit:
        return self.units[0]

    @property
    def is_alone(self) -> bool:
        return _is_alone(self.first)


class _MachineCode(NamedTuple):
    """A call of machine code: its array arguments, the addresses of its first record and after the last, and its tiles."""

    function: Any
    arrays: list[Any]
    records: list[int]
    tiles: int


_Step = _MachineCode | NumPyCall


def _record_array(records: Sequence[tuple[Kernel, int]], addresses: Mapping[Kernel, int]) -> NDArray[np.int64]:
    """Return records in memory: for each the address of its kernel, and its words."""
    words: list[int] = []
    for kernel, number in records:
        words.append(addresses[kernel])
        words += kernel.words[number].tolist()
    return np.array(words, np.int64)


def _copy_if_shared(result: Any, spaces: Sequence[Any]) -> Any:
    """Return a result of NumPy, copied if it shares memory with memory that will be reused."""
    if isinstance(result, np.ndarray):
        return result.copy() if any(np.may_share_memory(result, space) for space in spaces) else result
    if isinstance(result, (tuple, list)):
        return [_copy_if_shared(part, spaces) for part in result]
    return result


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
    programs = [LoweredProgram.of(schedule, max(family.target)) for schedule in family.schedules]
    steps = extrapolate([each.steps for each in programs], family.trip_counts, family.target)
    views = iter(steps.outputs)
    return LoweredProgram(steps, [(None if place is None else next(views), node) for place, node in programs[0].results])


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
        self._program, self._tables = program, family.tables
        self.source, self.llvm = program.source, program.llvm
        self.report, self.numpy_calls = program.report, program.numpy_calls

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the values of a call."""
        outputs: tuple[Any, ...] = self._program([*values, *self._tables])
        return outputs

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """Return the drawing of `visualize_at`."""
        tables = [f"table {number}" for number in range(1, 1 + len(self._tables))]
        return self._program.drawing(options, [*names, *tables])
