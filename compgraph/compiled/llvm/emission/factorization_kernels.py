"""Kernels of small square matrices: Gaussian elimination with partial pivoting, and Cholesky factorization.

The program falls back to NumPy for a matrix for which NumPy raises ``LinAlgError``: one with a zero pivot, or that is not
positive definite. Sources: Golub and Van Loan, Matrix Computations (4th edition), algorithms 3.4.1 and 4.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from .. import elementwise_ops
from ..buffer_ir import BufferView, Factorization
from ..ir_builder import BIT, INT, LONG, POINTER, IRBuilder, Module, Type, Value
from ..mathematics import emit as emit_function
from .memory_access import MemoryAccess, index_loops

Index = Value | int


def emit_factorization(memory: MemoryAccess, step: Factorization) -> None:
    """Emit loops over the stack, with one call of a kernel per matrix."""
    ir = memory.ir
    kernel = _KERNELS[step.operation](ir.module, step)
    with index_loops(ir, step.out.shape[:-2]) as indices:
        addresses = [memory.address(view, indices) for view in (step.out, *step.operands)]
        has_failed = ir.call(kernel, INT, *addresses)
        if step.operation != "slogdet":
            ir.bail_out_if(ir.compare("ne", has_failed, ir.number(0, INT)))


class _Matrix(NamedTuple):
    """A matrix in memory within a kernel."""

    ir: IRBuilder
    base: Value
    type: Type
    strides: tuple[int, int]

    def _address(self, row: Index, column: Index) -> Value:
        address, ir = self.base, self.ir
        for index, stride in zip((row, column), self.strides, strict=True):
            offset = index * stride if isinstance(index, int) else ir.binary("mul", index, ir.number(stride, LONG))
            address = ir.element_address(address, offset, self.type)
        return address

    def load(self, row: Index, column: Index) -> Value:
        """Load an element."""
        return self.ir.load(self._address(row, column), self.type, self.type.itemsize)

    def store(self, value: Value, row: Index, column: Index) -> None:
        """Store an element."""
        self.ir.store(value, self._address(row, column), self.type.itemsize)

    def subtract_product(self, row: Index, column: Index, a: Value, b: Value) -> None:
        """Subtract ``a * b`` from an element."""
        self.store(self.ir.fma(self.ir.neg(a), b, self.load(row, column)), row, column)


EmitKernel = Callable[[IRBuilder, Type, int, int, list[_Matrix]], Value]  # emit(ir, type, rows, columns, [result, *operands])


def _kernel(name: str, emit: EmitKernel) -> Callable[[Module, Factorization], str]:
    """Return a function that defines the kernel of a step and returns its name. The kernel returns 1 if it failed."""

    def define(module: Module, step: Factorization) -> str:
        views: list[BufferView] = [step.out, *step.operands]
        type, n = elementwise_ops.type_of(step.out.buffer.dtype), step.operands[0].shape[-1]
        layout = [n, step.out.shape[-1], *(stride for view in views for stride in view.strides[-2:])]
        full_name = f".{name}_{type.mangled}_{'_'.join(str(number).replace('-', 'm') for number in layout)}"

        def emit_body() -> None:
            ir = module.function(full_name, INT, [POINTER] * len(views), "noinline")
            matrices = [
                _Matrix(ir, base, type, (view.strides[-2], view.strides[-1]))
                for base, view in zip(ir.operands, views, strict=True)
            ]
            ir.ret(ir.cast("zext", emit(ir, type, n, step.out.shape[-1], matrices), INT))

        return module.define_once(full_name, emit_body)

    return define


@contextmanager
def _loops(ir: IRBuilder, *stops: int) -> Iterator[list[Value]]:
    """Build nested loops from 0."""
    with ExitStack() as stack:
        yield [stack.enter_context(ir.loop(0, stop)).index for stop in stops]


def _copy(ir: IRBuilder, source: _Matrix, target: _Matrix, rows: int, columns: int) -> None:
    with _loops(ir, rows, columns) as (row, column):
        target.store(source.load(row, column), row, column)


def _swap_rows(ir: IRBuilder, matrix: _Matrix, first: Value, second: Value, columns: int) -> None:
    with _loops(ir, columns) as (column,):
        a, b = matrix.load(first, column), matrix.load(second, column)
        matrix.store(b, first, column)
        matrix.store(a, second, column)


def _eliminate(ir: IRBuilder, n: int, lu: _Matrix, right: _Matrix | None, columns: int) -> Value:
    """Emit Gaussian elimination of `lu` and of the right-hand side; return whether the number of row swaps is odd."""
    is_odd = ir.number(0, BIT)
    if n == 1:
        return is_odd
    with ir.loop(0, n - 1, 1, [is_odd]) as step:
        k = step.index
        following = ir.binary("add", k, ir.number(1, LONG))
        with ir.loop(following, n, 1, [ir.intrinsic("fabs", lu.load(k, k)), k]) as search:
            largest, pivot_row = search.current
            magnitude = ir.intrinsic("fabs", lu.load(search.index, k))
            is_larger = ir.compare("ogt", magnitude, largest)
            search.next = [ir.select(is_larger, magnitude, largest), ir.select(is_larger, search.index, pivot_row)]
        pivot_row = search.next[1]
        is_swap = ir.compare("ne", pivot_row, k)
        with ir.branch_if(is_swap, []):
            _swap_rows(ir, lu, k, pivot_row, n)
            if right is not None:
                _swap_rows(ir, right, k, pivot_row, columns)
        pivot = lu.load(k, k)
        is_zero = ir.compare("oeq", pivot, ir.number(0, pivot.type))
        divisor = ir.select(is_zero, ir.number(1, pivot.type), pivot)  # raises no exception
        with ir.loop(following, n) as rows:
            factor = ir.binary("fdiv", lu.load(rows.index, k), divisor)
            with ir.loop(following, n) as rest:
                lu.subtract_product(rows.index, rest.index, factor, lu.load(k, rest.index))
            if right is not None:
                with _loops(ir, columns) as (column,):
                    right.subtract_product(rows.index, column, factor, right.load(k, column))
        step.next = [ir.binary("xor", step.current[0], is_swap)]
    return step.next[0]


def _local_matrix(ir: IRBuilder, type: Type, n: int) -> _Matrix:
    return _Matrix(ir, ir.array_variable(type, n * n), type, (n, 1))


def _emit_solve(ir: IRBuilder, type: Type, n: int, columns: int, matrices: list[_Matrix]) -> Value:
    """Emit ``out = inv(a) @ b``; return whether a pivot is 0."""
    out, a, b = matrices
    lu, zero = _local_matrix(ir, type, n), ir.number(0, type)
    _copy(ir, a, lu, n, n)
    _copy(ir, b, out, n, columns)
    _eliminate(ir, n, lu, out, columns)
    last = lu.load(n - 1, n - 1)
    is_singular = ir.compare("oeq", last, zero)
    with _loops(ir, columns) as (column,):
        out.store(ir.binary("fdiv", out.load(n - 1, column), last), n - 1, column)
    if n == 1:
        return is_singular
    with ir.loop(1, n, 1, [is_singular]) as step:
        row = ir.binary("sub", ir.number(n - 1, LONG), step.index)
        following, pivot = ir.binary("add", row, ir.number(1, LONG)), lu.load(row, row)
        step.next = [ir.binary("or", step.current[0], ir.compare("oeq", pivot, zero))]
        with _loops(ir, columns) as (column,):
            with ir.loop(following, n, 1, [out.load(row, column)]) as terms:
                factor = ir.neg(lu.load(row, terms.index))
                terms.next = [ir.fma(factor, out.load(terms.index, column), terms.current[0])]
            out.store(ir.binary("fdiv", terms.next[0], pivot), row, column)
    return step.next[0]


def _emit_slogdet(ir: IRBuilder, type: Type, n: int, columns: int, matrices: list[_Matrix]) -> Value:
    """Emit the sign of the determinant, and the logarithm of its absolute value."""
    out, a = matrices
    lu, (zero, one) = _local_matrix(ir, type, n), (ir.number(x, type) for x in (0, 1))
    _copy(ir, a, lu, n, n)
    is_odd = _eliminate(ir, n, lu, None, 0)
    sign = ir.select(is_odd, ir.number(-1, type), one)
    with ir.loop(0, n, 1, [sign, zero]) as step:
        pivot = lu.load(step.index, step.index)
        is_zero = ir.compare("oeq", pivot, zero)
        factor = ir.select(is_zero, zero, ir.select(ir.compare("olt", pivot, zero), ir.number(-1, type), one))
        logarithm = emit_function(ir, "log", ir.select(is_zero, one, ir.intrinsic("fabs", pivot)))
        step.next = [ir.binary("fmul", step.current[0], factor), ir.binary("fadd", step.current[1], logarithm)]
    sign, logarithm = step.next
    out.store(sign, 0, 0)
    is_singular = ir.compare("oeq", sign, zero)
    out.store(ir.select(is_singular, ir.number(float("-inf"), type), logarithm), 0, 1)
    return is_singular


def _emit_cholesky(ir: IRBuilder, type: Type, n: int, columns: int, matrices: list[_Matrix]) -> Value:
    """Emit the lower factor of the matrix in the lower triangle of `a`; return whether it is not positive definite."""
    out, a = matrices
    zero = ir.number(0, type)
    with _loops(ir, n, n) as (row, column):
        is_above = ir.compare("slt", row, column)
        out.store(ir.select(is_above, zero, a.load(row, column)), row, column)

    def emit_root(k: Index, has_failed: Value) -> tuple[Value, Value]:
        square = out.load(k, k)
        root = ir.intrinsic("sqrt", square)
        out.store(root, k, k)
        is_positive = ir.compare("ogt", square, zero)
        return root, ir.binary("or", has_failed, ir.binary("xor", is_positive, ir.number(1, BIT)))

    has_failed = ir.number(0, BIT)
    if n > 1:
        with ir.loop(0, n - 1, 1, [has_failed]) as step:
            k, following = step.index, ir.binary("add", step.index, ir.number(1, LONG))
            root, has_failed = emit_root(k, step.current[0])
            with ir.loop(following, n) as rows:
                out.store(ir.binary("fdiv", out.load(rows.index, k), root), rows.index, k)
            with ir.loop(following, n) as rows:
                end, factor = ir.binary("add", rows.index, ir.number(1, LONG)), out.load(rows.index, k)
                with ir.loop(following, end) as rest:
                    out.subtract_product(rows.index, rest.index, factor, out.load(rest.index, k))
            step.next = [has_failed]
        has_failed = step.next[0]
    return emit_root(n - 1, has_failed)[1]


_KERNELS = {
    "solve": _kernel("solve", _emit_solve),
    "slogdet": _kernel("slogdet", _emit_slogdet),
    "cholesky": _kernel("cholesky", _emit_cholesky),
}
