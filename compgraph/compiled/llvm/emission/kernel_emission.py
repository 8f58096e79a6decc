"""Emission of kernels, of the function that runs the records of a program, and of tiled nests.

A record is the address of its kernel, followed by the words of its parameters. A kernel is called with the address of these words
and with a table of addresses; it returns the address of the next record. The table has a word for the bit `BAILOUT`, then the
address of the workspace, then the addresses of the arrays that a sequence of records accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from .. import elementwise_ops
from ..buffer_ir import (
    Buffer,
    BufferView,
    Convolution,
    Factorization,
    Gather,
    LoopIndex,
    Map,
    MatMul,
    Scan,
    Scatter,
    Search,
    Sort,
)
from ..ir_builder import DOUBLE, INT, LONG, POINTER, IRBuilder, Module, Value
from ..llvm_compiler import processor
from ..planning import FusedLoop, Kernel, LoopNest, MemoryPlan, ParameterSource, Unit
from .convolution_kernels import convolution_kernel
from .factorization_kernels import emit_factorization
from .indexing_emission import emit_constant_indexed, emit_indexed, emit_search, emit_sort
from .matmul_emission import emit_matmul
from .memory_access import MemoryAccess, index_loops, store
from .nest_emission import emit_nest, emit_parametric_nest


def emit_convolution(memory: MemoryAccess, step: Convolution) -> None:
    """Emit a convolution; a gradient that is not finite makes the program fall back to NumPy."""
    ir = memory.ir
    addresses = [memory.address(view) for view in (step.out, *step.operands)]
    is_non_finite = ir.call(convolution_kernel(ir.module, step, processor().vector_bytes), INT, *addresses)
    if step.kind != "forward":
        ir.bail_out_if(ir.compare("ne", is_non_finite, ir.number(0, INT)))


def emit_scan(memory: MemoryAccess, step: Scan) -> None:
    """Emit a scan; the first element is the operand's, as in NumPy."""
    ir, operand, dtype, shape = memory.ir, step.operands[0], step.out.buffer.dtype, step.out.shape
    before, length, after = shape[: step.axis], shape[step.axis], shape[step.axis + 1 :]
    with index_loops(ir, (*before, 1, *after)) as first:
        value = memory.read(operand, first, dtype)
        store(ir, value, memory.address(step.out, first), dtype)
        if length == 1:
            return
        with ir.loop(1, length, 1, [value]) as loop:
            indices = [*first[: step.axis], loop.index, *first[step.axis + 1 :]]
            value = elementwise_ops.emit(ir, step.operation, [loop.current[0], memory.read(operand, indices, dtype)], dtype)
            store(ir, value, memory.address(step.out, indices), dtype)
            loop.next = [value]


_EMITTERS: dict[type, Callable[..., None]] = {  # of steps outside of nests
    MatMul: emit_matmul,
    Factorization: emit_factorization,
    Convolution: emit_convolution,
    Gather: emit_constant_indexed,
    Scatter: emit_constant_indexed,
    Scan: emit_scan,
    Sort: emit_sort,
    Search: emit_search,
}


def emit_units(
    memory: MemoryAccess,
    units: Iterable[Unit],
    trip_count: Callable[[LoopIndex], int | Value],
    materialized: Collection[Buffer],
    width: int,
) -> None:
    """Emit units without NumPy calls.

    Parameters
    ----------
    memory : MemoryAccess
        The access to the views of the units.
    units : iterable of Unit
        The units.
    trip_count : callable
        Returns the trip count of a loop.
    materialized : collection of Buffer
        Buffers whose values are stored in memory.
    width : int
        The bytes of a vector.
    """
    for unit in units:
        if isinstance(unit, FusedLoop):
            index = unit.loop.loop_index
            with memory.ir.loop(0, trip_count(index)) as loop:
                body_memory = memory._replace(loop_indices={**memory.loop_indices, index: loop.index})
                emit_units(body_memory, unit.units, trip_count, materialized, width)
        elif isinstance(unit, LoopNest):
            emit_nest(memory, unit, materialized, width)
        else:
            _EMITTERS[type(unit)](memory, unit)


FIRST_ADDRESS = 1  # words of a table before the addresses
DATA_OFFSET = 16  # bytes from an array object to its data pointer (`PyArrayObject_fields` of NumPy's C API)


class KernelParameters:
    """The parameters of a kernel: constants, or values that are loaded from the record at the start of the function.

    Parameters
    ----------
    ir : IRBuilder
        The function.
    kernel : Kernel
        The kernel.
    """

    def __init__(self, ir: IRBuilder, kernel: Kernel) -> None:
        self._ir, self._record = ir, kernel.example
        record, self._table = ir.operands
        words = [ir.load(ir.element_address(record, word, LONG), LONG, 8) for word in range(kernel.words.shape[1])]
        self._values = {key: self._value(source, words) for key, source in kernel.sources.items()}
        addresses: dict[int | str, Value] = {}
        self._starts = {view: self._address(number, addresses) for view, number in self._record.views.items()}
        self._registers = {buffer: ir.variable(elementwise_ops.memory_type(buffer.dtype)) for buffer in self._record.registers}
        self._literals: dict[tuple[int, int], Value] = {}
        for key, value in self._values.items():
            match key:
                case ("literal", int(step_index), int(argnum)) if isinstance(value, Value):
                    self._literals[step_index, argnum] = self._literal(step_index, argnum, value)

    def _value(self, source: ParameterSource, words: list[Value]) -> int | Value:
        if source.word is None:
            return source.constant
        word = words[source.word]
        return self._ir.binary("add", word, self._ir.number(source.constant, LONG)) if source.constant else word

    def _address(self, number: int, addresses: dict[int | str, Value]) -> Value:
        """Return the address of a view: the address of its array plus a byte offset."""
        ir, array = self._ir, self._values["array", number]
        key = array if isinstance(array, int) else array.text
        if key not in addresses:
            slot = array + FIRST_ADDRESS if isinstance(array, int) else ir.binary("add", array, ir.number(FIRST_ADDRESS, LONG))
            addresses[key] = ir.load(ir.element_address(self._table, slot, LONG), POINTER, 8)
        return ir.byte_address(addresses[key], self._values["offset", number])

    def _literal(self, step_index: int, argnum: int, word: Value) -> Value:
        """Return a literal that varies between records as a value of its dtype."""
        nest = self._record.unit
        assert isinstance(nest, LoopNest)
        step = nest.steps[step_index]
        assert isinstance(step, Map)
        return self._ir.cast("bitcast", word, DOUBLE) if step.operand_dtype(argnum).kind == "f" else word

    def length(self, depth: int) -> int | Value:
        """Return the trip count of a loop of the nest, by its depth."""
        return self._values["length", depth]

    def stride(self, depth: int, view: BufferView) -> int | Value:
        """Return the stride of a view along a loop, in elements."""
        stride = self._values.get(("stride", self._record.views[view], depth))
        if stride is not None:
            return stride
        loops = self._record.loop_order
        return view.strides[depth] if loops is None else loops.axes[depth].stride(view)

    def index_bound(self, k: int) -> int | Value:
        """Return the length of the axis that an index selects from; 0 if the index needs no check."""
        return self._values["index bound", k]

    def index_stride(self, k: int) -> int | Value:
        """Return the stride of the axis that an index selects from."""
        return self._values["index stride", k]

    def base_address(self, view: BufferView) -> Value:
        """Return the address of the first element of a view, in the first iteration of all loops."""
        register = self._registers.get(view.buffer)
        return self._starts[view] if register is None else register

    def trip_count(self, index: LoopIndex) -> int | Value:
        """Return the trip count of a loop that contains nests."""
        return self._values["trip count", self._record.loops[index]]

    def literal(self, step_index: int, argnum: int) -> Value | None:
        """Return a literal as a value at run time; None if the literal of the nest is used."""
        return self._literals.get((step_index, argnum))

    def term_count(self, step_index: int) -> int | Value:
        """Return the number of terms of each result of a reduction."""
        return self._values["term count", step_index]


_END_OF_RECORDS = Value("inttoptr (i64 -1 to ptr)", POINTER)  # the next record after a bailout: it ends the loop over records


def emit_kernel(module: Module, kernel: Kernel, materialized: Collection[Buffer], width: int) -> None:
    """Emit the function of a kernel, after `Kernel.compress`."""
    ir = module.function(kernel.name, POINTER, [POINTER, POINTER])
    record, parameters = kernel.example, KernelParameters(ir, kernel)
    if record.loop_order is not None:
        assert isinstance(record.unit, LoopNest)
        emit_parametric_nest(ir, record.unit, record.loop_order, parameters, materialized)
    elif isinstance(record.unit, (Gather, Scatter)):
        emit_indexed(MemoryAccess(ir, parameters.base_address, stride=parameters.stride), record.unit, parameters)
    else:
        emit_units(MemoryAccess(ir, parameters.base_address), [record.unit], parameters.trip_count, materialized, width)
    next_record = ir.element_address(ir.operands[0], kernel.words.shape[1], LONG)
    if ir.bailout is not None:
        table, flag = ir.operands[1], ir.load(ir.bailout, INT, 4)
        ir.store(ir.binary("or", ir.load(table, INT, 8), flag), table, 8)
        next_record = ir.select(ir.compare("ne", flag, ir.number(0, INT)), _END_OF_RECORDS, next_record)
    ir.ret(next_record)


def emit_record_loop(module: Module, array_count: int) -> str:
    """Return the name of the function that runs consecutive records; it is emitted on first use.

    Its arguments are the workspace, `array_count` array objects, and the addresses where the records begin and end. It returns
    the floating-point exceptions and the bit `BAILOUT`.
    """
    name = f"run{array_count}"

    def emit_body() -> None:
        ir = module.function(name, INT, [POINTER] * (array_count + 3))
        workspace, *objects, first, end = ir.operands
        table = ir.array_variable(LONG, FIRST_ADDRESS + 1 + array_count)
        ir.store(ir.number(0, LONG), table, 8)
        for number, address in enumerate([workspace, *(_data_address(ir, array) for array in objects)]):
            ir.store(address, ir.element_address(table, FIRST_ADDRESS + number, LONG), 8)

        def run(record: Value) -> Value:
            return ir.call_pointer(ir.load(record, POINTER, 8), POINTER, ir.element_address(record, 1, LONG), table)

        ir.clear_exceptions()
        ir.address_loop(first, end, run)
        ir.ret(ir.binary("or", ir.exceptions(), ir.load(table, INT, 8)))

    return module.define_once(name, emit_body)


def emit_tiled_nest(module: Module, name: str, nest: LoopNest, arrays: Sequence[Buffer], plan: MemoryPlan, width: int) -> None:
    """Emit a function for the tiles of a nest.

    Its arguments are the workspace, the array objects of `arrays`, and the number of the tile. It returns the same status as the
    function of `emit_record_loop`.
    """
    ir = module.function(name, INT, [*[POINTER] * (1 + len(arrays)), LONG])
    workspace, *objects, tile = ir.operands
    addresses = {buffer: _data_address(ir, array) for buffer, array in zip(arrays, objects, strict=True)}

    def base_address(view: BufferView) -> Value:
        buffer = view.buffer
        base = addresses.get(plan.hosts.get(buffer, buffer), workspace)
        return ir.byte_address(base, plan.offsets.get(buffer, 0) + view.offset * buffer.dtype.itemsize)

    ir.clear_exceptions()
    emit_nest(MemoryAccess(ir, base_address), nest, plan.materialized, width, tile)
    ir.ret(ir.status(ir.exceptions()))


def _data_address(ir: IRBuilder, array: Value) -> Value:
    """Return the data pointer of an array object."""
    return ir.load(ir.byte_address(array, DATA_OFFSET), POINTER, 8)
