"""`LLVMBackend`: compiles schedules to machine code, with NumPy calls for operations that are not lowered."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ... import ops
from ...array_types import Array
from ...executor import NumPyBackend, Schedule, ScheduleInterpreter, TripCountFamily
from ...guards import EvaluationGuard, Guard, GuardError, ProgramMismatchError
from ...storage import Write, window
from ...values import MultiOutput, Node
from ..compile_errors import warn_compile
from . import thread_pool
from .buffer_ir import Buffer, BufferView, NumPyCall, element_dtype
from .emission import DATA_OFFSET, emit_kernel, emit_record_loop, emit_tiled_nest
from .ir_builder import BAILOUT, FLAGS, UNDERFLOW, Module
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
    accumulate_early,
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

MAX_ARGUMENTS = 500  # arguments of one function: ctypes supports at most 1024


class LLVMBackend:
    """Compiles schedules to machine code; a `Backend` of the executor. It reads the options of `compgraph.jit`."""

    skipped_passes = frozenset({"fuse", "allocate"})  # `planning` has its own passes for these

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
        return TableProgram(MachineProgram(family.schedules[0], extrapolate_program(family), family.numpy_fallback), family)


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

    def __init__(
        self, schedule: Schedule, lowered: LoweredProgram | None = None, numpy_program: Callable[..., Any] | None = None
    ) -> None:
        self._schedule, self._numpy_program = schedule, numpy_program
        self._has_special_ufuncs = any(str(getattr(item, "opname", "")).startswith("special_") for item in schedule.items)
        (steps, self._inputs, outputs), self._results = lowered or LoweredProgram.from_schedule(schedule)
        units = products_as_nests(fuse_steps(steps))
        rematerialize(units, outputs)
        units = tile_nests(units, outputs, processor().vector_bytes)
        self._plan = MemoryPlan(units, outputs)
        self._threads = schedule.options.get("threads")
        numpy_steps = [unit for unit in units if isinstance(unit, NumPyCall) and unit.reason]
        calls = Counter(f"{describe_item(step.item)} calls NumPy: {step.reason}" for step in numpy_steps)
        self.numpy_calls = calls.total()
        self.report = sorted(f"{line} ({count} times in each run)" if count > 1 else line for line, count in calls.items())
        self.source = "\n".join(line for unit in units for line in describe_unit(unit))
        self._units = units
        self._steps = self._emit(units)
        self._free_workspaces: list[tuple[Any, int]] = []
        self._direct_calls = None if len(outputs) < len(self._results) else self._resolve_arguments()
        self._allocators = [_allocator(view, node.raw_value.dtype) for view, node in self._results if view is not None]

    def drawing(self, options: Any, names: Sequence[str] = ()) -> Any:
        """Return the drawing of `visualize_at` (see `program_drawing`), with names for the inputs."""
        from .program_drawing import draw_program  # imported on first use

        input_names = [*names, *(f"input {number}" for number in range(1 + len(names), 1 + len(self._inputs)))]
        buffer_names = {buffer: name for buffer, name in zip(self._inputs, input_names, strict=True) if buffer is not None}
        return draw_program(self._units, self._results, buffer_names, options)

    # ------------------------------------------------------------------------------------------ compilation

    def _emit(self, units: list[Unit]) -> list[_Step]:
        """Compile the units; return the steps of a run: sequences of records, tiled nests, and NumPy calls."""
        plan, width, module = self._plan, processor().vector_bytes, Module()
        readers = Counter(buffer for unit in units for buffer in set(buffers_used(unit)))
        registers = {b for b, count in readers.items() if count == 1 and b.size == 1 and b in plan.offsets}
        table = KernelTable(plan.materialized, registers, width)
        segments = [_Segment(group, self._external_arrays(group)) for group in self._split_units(units)]
        records = [[] if segment.is_separate else self._add_records(segment, table) for segment in segments]
        for kernel in table.kernels.values():
            kernel.compress()
            emit_kernel(module, kernel, plan.materialized, width)
        names = [self._emit_segment(module, f"tiled{number}", segment) for number, segment in enumerate(segments)]
        self.llvm = module.text
        if any(names):
            self._loaded = LoadedCode(compile_module(self.llvm, use_cache=bool(self._schedule.options.get("cache", False))))
        addresses = {kernel: self._loaded.address(kernel.name) for kernel in table.kernels.values()}
        self._record_arrays = [_record_array(segment_records, addresses) for segment_records in records]
        return [
            self._make_step(segment, name, record_array)
            for segment, name, record_array in zip(segments, names, self._record_arrays, strict=True)
            if not (isinstance(segment.first, NumPyCall) and isinstance(segment.first.item, EvaluationGuard))
        ]

    def _split_units(self, units: list[Unit]) -> list[list[Unit]]:
        """Split the units into sequences that one function runs; a NumPy call or a tiled nest is a sequence of its own."""
        groups: list[list[Unit]] = []
        arrays = set[Buffer]()
        for unit in units:
            group_arrays = arrays.union(self._external_arrays([unit]))
            is_full = len(group_arrays) > MAX_ARGUMENTS
            if not groups or _is_separate(unit) or _is_separate(groups[-1][-1]) or is_full:
                groups.append([])
                group_arrays = set(self._external_arrays([unit]))
            groups[-1].append(unit)
            arrays = group_arrays
        return groups

    def _external_arrays(self, units: Sequence[Unit]) -> list[Buffer]:
        """Return the arrays outside of the workspace that units access, or whose memory hosts accessed buffers."""
        plan = self._plan
        hosts = (plan.hosts.get(b, b) for unit in units for b in buffers_used(unit) if b in plan.materialized)
        return [b for b in dict.fromkeys(hosts) if b not in plan.offsets]

    def _add_records(self, segment: _Segment, table: KernelTable) -> list[tuple[Kernel, int]]:
        """Add the record of each unit to a table; return its kernel and number."""
        plan, numbers = self._plan, {buffer: number for number, buffer in enumerate(segment.arrays, 1)}

        def locate(view: BufferView) -> tuple[int, int]:
            buffer = view.buffer
            offset = plan.offsets.get(buffer, 0) + view.offset * buffer.dtype.itemsize
            return numbers.get(plan.hosts.get(buffer, buffer), 0), offset

        return [table.add(unit, locate) for unit in segment.units]

    def _emit_segment(self, module: Module, name: str, segment: _Segment) -> str:
        """Return the name of the function that runs a segment; empty for NumPy calls."""
        if isinstance(segment.first, NumPyCall):
            return ""
        if len(segment.arrays) > MAX_ARGUMENTS:
            raise NotImplementedError(f"one step accesses {len(segment.arrays)} arrays; at most {MAX_ARGUMENTS} are supported")
        if not segment.is_separate:
            return emit_record_loop(module, len(segment.arrays))
        assert isinstance(segment.first, LoopNest)
        emit_tiled_nest(module, name, segment.first, segment.arrays, self._plan, processor().vector_bytes)
        return name

    def _make_step(self, segment: _Segment, name: str, record_array: NDArray[np.int64]) -> _Step:
        """Return the step of a run that calls the function of a segment."""
        first, arrays = segment.first, segment.arrays
        if isinstance(first, NumPyCall):
            return first
        arguments = [b.node if isinstance(b.node, np.ndarray) and not isinstance(b.node, Node) else b for b in arrays]
        tiles = first.tiling.count if isinstance(first, LoopNest) and first.tiling is not None else 0
        start = record_array.ctypes.data
        records = [] if tiles else [start, start + record_array.nbytes]
        types = [ctypes.c_void_p] * (1 + len(arrays)) + ([ctypes.c_int64] if tiles else [ctypes.c_void_p] * 2)
        return _MachineCall(ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._loaded.address(name)), arguments, records, tiles)

    def _resolve_arguments(self) -> list[tuple[Any, list[int], list[int], int]] | None:
        """Return each function with the positions of its arguments among all arrays; None if NumPy is called."""
        if any(isinstance(step, NumPyCall) for step in self._steps):
            return None
        buffers = [*self._inputs, *[view.buffer for view, _ in self._results if view is not None]]
        positions: dict[Any, int] = {id(buffer): k for k, buffer in enumerate(buffers) if buffer is not None}
        self._constants: list[Any] = []
        functions = []
        for function, arrays, records, tiles in (step for step in self._steps if isinstance(step, _MachineCall)):
            for constant in arrays:
                if id(constant) not in positions:
                    positions[id(constant)] = len(buffers) + len(self._constants)
                    self._constants.append(constant)
            functions.append((function, [positions[id(array)] for array in arrays], records, tiles))
        return functions

    # ------------------------------------------------------------------------------------------ execution

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the inputs."""
        if self._has_special_ufuncs and _are_special_errors_reported():
            return self._run_with_numpy(values)  # machine code does not report SciPy's errors
        try:
            outputs, flags = self._run(values) if self._direct_calls is None else self._run_direct_calls(values)
        except (GuardError, ProgramMismatchError):  # perhaps because of a rounding error; NumPy decides
            return self._run_with_numpy(values)
        if flags and _is_reported_by_numpy(flags):
            return self._run_with_numpy(values)  # to get its warnings
        return outputs

    def _acquire_workspace(self) -> tuple[Any, int]:
        """Return a workspace that no other run uses, and its address."""
        try:
            return self._free_workspaces.pop()
        except IndexError:
            workspace = np.empty(self._plan.size + CACHE_LINE, np.uint8)
            workspace = workspace[-workspace.ctypes.data % CACHE_LINE :][: self._plan.size]
            return workspace, workspace.ctypes.data

    def _run_direct_calls(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Run a program without NumPy calls."""
        assert self._direct_calls is not None
        values = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
        workspace, start = self._acquire_workspace()
        outputs = [allocate() for allocate in self._allocators]
        arrays = (*values, *outputs, *self._constants)
        flags = 0
        for function, positions, records, tiles in self._direct_calls:
            arguments = [start, *[id(arrays[k]) for k in positions], *records]
            flags |= self._run_machine_code(function, arguments, tiles, (workspace, arrays))
        self._free_workspaces.append((workspace, start))
        return tuple([array if array.shape else array[()] for array in outputs]), flags

    def _run_machine_code(self, function: Any, arguments: list[int], tiles: int, keepalive: object) -> int:
        """Run a function; return its floating-point exceptions."""
        if tiles:
            threads = self._threads or thread_pool.processors()
            flags = thread_pool.run_tiles(function, arguments, tiles, threads, (self._loaded, keepalive))
        else:
            flags = function(*arguments)
        if flags & BAILOUT:
            raise ProgramMismatchError("an index is out of range, or a number does not fit")
        return int(flags)

    def _run(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """Run the program; return the outputs and the floating-point exceptions."""
        workspace, start = self._acquire_workspace()
        values = [value if type(value) is np.ndarray else np.asarray(value) for value in values]
        arrays: dict[Any, Any] = dict(zip(self._inputs, values, strict=True))
        inputs = zip(self._schedule.inputs, values, strict=True)
        numpy_values = {node: value for node, value in inputs if not node.memory}  # inputs with writes are copied first
        result_buffers = [view.buffer for view, _ in self._results if view is not None]
        arrays.update(zip(result_buffers, [allocate() for allocate in self._allocators], strict=True))
        flags = 0
        for step in self._steps:
            if isinstance(step, NumPyCall):
                self._call_numpy(step, arrays, numpy_values, workspace)
            else:
                arguments = [start, *[id(arrays[b] if type(b) is Buffer else b) for b in step.arrays], *step.records]
                flags |= self._run_machine_code(step.function, arguments, step.tiles, (workspace, arrays))
        self._free_workspaces.append((workspace, start))
        outputs = [np.array(numpy_values[item]) if view is None else arrays[view.buffer] for view, item in self._results]
        return tuple([array if array.shape else array[()] for array in outputs]), flags

    def release_values(self) -> None:
        """Release the recorded values of the nodes; for graphs without other owners."""
        self._numpy_program = ScheduleInterpreter(self._schedule)
        self._numpy_program.release_values()

    def _run_with_numpy(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the results by NumPy."""
        if self._numpy_program is None:
            self._numpy_program = NumPyBackend().compile(self._schedule)
        outputs: tuple[Any, ...] = self._numpy_program(values)
        return outputs

    def _call_numpy(self, step: NumPyCall, arrays: dict[Any, Any], numpy_values: dict[Any, Any], workspace: NDArray[Any]) -> None:
        """Run a NumPy call; store its result in `numpy_values`, and in `arrays` if it has a buffer."""
        item = step.item

        def value(operand: object) -> Any:
            if not isinstance(operand, (Node, MultiOutput)):
                return operand
            if operand in numpy_values:
                return numpy_values[operand]
            operand_array = self._array(step.views[operand], arrays, workspace, step.dtypes[operand])
            return operand_array if isinstance(operand.raw_value, np.ndarray) else operand_array[()]

        if isinstance(item, Write):
            assert step.out is not None
            self._array(step.out, arrays, workspace, step.dtypes[item])[item.index] = value(item.args[0])
            return
        if not step.reason and not isinstance(item, Guard):  # checks of compiled results
            result = value(item)
        elif isinstance(item, Guard):
            item.check(*map(value, item.args))
            return
        elif isinstance(item.function, ops.Output):
            result = numpy_values[item.args[0]][item.function.index]
        else:
            result = item.function(*map(value, item.args), **item.options)
        for require, expected in step.checks:
            require(result, expected)
        if not step.reason:
            return
        hosts = self._plan.hosts
        operand_hosts = {hosts[view.buffer] for view in step.views.values() if view.buffer in hosts}
        numpy_values[item] = result = _copy_if_shared(result, [workspace, *map(arrays.__getitem__, operand_hosts)])
        if step.out is not None:
            dtype = step.dtypes[item]
            if np.shape(result) != _shape_of(step.out, dtype) or np.asarray(result).dtype != dtype:
                raise ProgramMismatchError(f"{item.opname} returned an array of shape {np.shape(result)}")
            arrays[step.out.buffer] = np.asarray(result, order="C")

    def _array(self, view: BufferView, arrays: dict[Any, Any], workspace: NDArray[Any], dtype: np.dtype[Any]) -> Any:
        """Return the view of a NumPy call as an array: of the dtype of its buffer, or of complex numbers."""
        buffer, shape = view.buffer, _shape_of(view, dtype)
        strides = tuple(s * buffer.dtype.itemsize for s in view.strides[: len(shape)])
        start = self._plan.offsets.get(buffer, 0) + view.offset * buffer.dtype.itemsize
        host = self._plan.hosts.get(buffer, buffer)
        memory = workspace if host in self._plan.offsets else arrays.get(host, buffer.node)
        return window(memory, shape, dtype, start, strides)


def _require_array_layout() -> None:
    """Raise unless array objects have the memory layout of CPython and NumPy's C API."""
    array = np.ones(3)
    is_cpython = sys.implementation.name == "cpython"
    if not is_cpython or ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value != array.ctypes.data:
        raise NoCompilerError("array objects do not have the memory layout of CPython")


def _shape_of(view: BufferView, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the shape of the array of a dtype at the view of a NumPy call."""
    return view.shape[:-1] if element_dtype(dtype)[1] == 2 else view.shape


def _allocator(view: BufferView, dtype: np.dtype[Any]) -> Callable[[], Any]:
    """Return a function that allocates a result of a dtype with the axis order of a view in memory."""
    if view.is_dense:
        return functools.partial(np.empty, view.shape, dtype)
    strides = tuple(s * view.buffer.dtype.itemsize for s in view.strides)
    return functools.partial(np.empty_like, as_strided(np.empty(1, dtype), view.shape, strides))


def _are_special_errors_reported() -> bool:
    """Return whether `scipy.special.errstate` is set to warn or raise for errors besides memory errors."""
    return any(action != "ignore" for kind, action in scipy.special.geterr().items() if kind != "memory")


def _is_reported_by_numpy(flags: int) -> bool:
    """Return whether `np.errstate` is set to warn or raise for some of the processor's flags."""
    masks = [UNDERFLOW if kind == "under" else FLAGS for kind, action in np.geterr().items() if action != "ignore"]
    return any(flags & mask for mask in masks)


def _is_separate(unit: Unit) -> bool:
    """Return whether a unit is a segment of its own: a NumPy call or a tiled nest."""
    return isinstance(unit, NumPyCall) or (isinstance(unit, LoopNest) and unit.tiling is not None)


class _Segment(NamedTuple):
    """Consecutive units that one function runs, and the arrays that it accesses."""

    units: list[Unit]
    arrays: list[Buffer]

    @property
    def first(self) -> Unit:
        return self.units[0]

    @property
    def is_separate(self) -> bool:
        return _is_separate(self.first)


class _MachineCall(NamedTuple):
    """A call of machine code.

    Attributes
    ----------
    function : callable
        The function.
    arrays : list of Buffer or ndarray
        Its array arguments; constants are arrays.
    records : list of int
        The addresses where its records begin and end; empty for a tiled nest.
    tiles : int
        The number of tiles; 0 if the unit is not tiled.
    """

    function: Any
    arrays: list[Any]
    records: list[int]
    tiles: int


_Step = _MachineCall | NumPyCall


def _record_array(records: Sequence[tuple[Kernel, int]], addresses: Mapping[Kernel, int]) -> NDArray[np.int64]:
    """Return the words of records in memory: for each record the address of its kernel, then its parameters."""
    words: list[int] = []
    for kernel, number in records:
        words.append(addresses[kernel])
        words += kernel.words[number].tolist()
    return np.array(words, np.int64)


def _copy_if_shared(result: Array, reused: Sequence[Any]) -> Any:
    """Return a result of NumPy, copied if it shares memory with an array whose memory is reused."""
    if isinstance(result, np.ndarray):
        return result.copy() if any(np.may_share_memory(result, array) for array in reused) else result
    if isinstance(result, (tuple, list)):
        return [_copy_if_shared(part, reused) for part in result]
    return result


class LoweredProgram(NamedTuple):
    """A lowered schedule with rerolled loops.

    Attributes
    ----------
    program : StepProgram
        The steps, the buffers of inputs, and the views of the computed results.
    results : list of (BufferView or None, Node)
        See `GraphLowering.lower_results`.
    """

    program: StepProgram
    results: list[tuple[Any, Any]]

    @classmethod
    def from_schedule(cls, schedule: Schedule, max_trip_count: int = 0) -> LoweredProgram:
        """Lower a schedule whose loops may be extrapolated to `max_trip_count` iterations."""
        lowered = GraphLowering(schedule, is_exact=bool(schedule.options.get("exact", False)))
        results = lowered.lower_results()
        outputs = [view for view, _ in results if view is not None]
        inputs = [lowered.inputs[node].buffer if node in lowered.inputs else None for node in schedule.inputs]
        return cls(StepProgram(reroll_loops(accumulate_early(lowered.steps), outputs, max_trip_count), inputs, outputs), results)


def extrapolate_program(family: TripCountFamily) -> LoweredProgram:
    """Return the steps with the target trip counts; raise a NotImplementedError if they cannot be extrapolated."""
    samples = [LoweredProgram.from_schedule(schedule, max(family.target)) for schedule in family.schedules]
    program = extrapolate([sample.program for sample in samples], family.trip_counts, family.target)
    views = iter(program.outputs)
    return LoweredProgram(program, [(None if view is None else next(views), node) for view, node in samples[0].results])


class TableProgram:
    """A program with tables of constants as additional inputs.

    Parameters
    ----------
    program : object
        The program.
    family : TripCountFamily
        The family that it was compiled from.
    """

    def __init__(self, program: MachineProgram, family: TripCountFamily) -> None:
        self._program, self._tables = program, family.tables
        self.source, self.llvm = program.source, program.llvm
        self.report, self.numpy_calls = program.report, program.numpy_calls

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs from the values of a call."""
        outputs: tuple[Any, ...] = self._program([*values, *self._tables])
        return outputs

    def drawing(self, options: object, names: Sequence[str] = ()) -> Any:
        """Return the drawing of `visualize_at`."""
        tables = [f"table {number}" for number in range(1, 1 + len(self._tables))]
        return self._program.drawing(options, [*names, *tables])
