"""Arrays in SymPy: entries, elementwise functions of matrices, operations without a counterpart; formulas of operations.

A value of any shape is one scalar expression, its *body*. An `Entry` in it represents the entry of an array at the position of
the result, so that elementwise operations, sums and products of arrays are simplified as those of numbers. Vectors are matrices
of one column. In a vector's body all entries are columns; in others a matrix takes the last two axes; axes of length 1 broadcast.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import sympy as sp
from sympy.functions.special.tensor_functions import KroneckerDelta
from sympy.matrices.expressions.matexpr import MatrixElement, MatrixExpr
from sympy.matrices.expressions.slice import MatrixSlice
from sympy.printing.precedence import precedence
from sympy.tensor.array.expressions import ArrayElement, ArraySymbol
from sympy.tensor.array.expressions.array_expressions import _ArrayExpr

Shape = tuple[int, ...]


class Entry(sp.Symbol):
    """The entry of an array at the position of the result: for SymPy a symbol."""

    array: Any

    def __new__(cls, array: Any, is_real: bool) -> Entry:
        """Make a symbol named after the parts of the array, which determine the order of factors."""
        name = " ".join(str(part) if part.is_Atom else part.func.__name__ for part in sp.preorder_traversal(array))
        entry: Entry = sp.Symbol.__xnew__(cls, array.name if array.is_symbol else name, **({"real": True} if is_real else {}))
        entry.array = array
        return entry

    def _hashable_content(self) -> tuple[Any, ...]:
        return self.array, self.is_real

    def _numpycode(self, printer: Any) -> str:
        return f"({printer._print(self.array)})"


class ProtectedPiecewise(sp.Expr):
    """A `sympy.Piecewise` within a sum, a function of entries or a condition. SymPy would move a plain one out, wrongly.

    ``args`` are its pairs of expression and condition.
    """

    def doit(self, **hints: object) -> sp.Expr:
        """Return the `sympy.Piecewise`."""
        return sp.Piecewise(*[pair.doit(**hints) for pair in self.args])

    is_commutative = True

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(pair.expr.is_extended_real for pair in self.args) else None

    def _numpycode(self, printer: Any) -> str:
        *pairs, last = self.args
        code: str = printer._print(last.expr)
        for pair in reversed(pairs):
            code = (
                f"{printer._module_format('numpy.where')}({_condition(pair.cond, printer)}, {printer._print(pair.expr)}, {code})"
            )
        return code


def _condition(condition: Any, printer: Any) -> str:
    """Return the code of a condition on arrays that broadcast."""
    sign = {sp.And: " & ", sp.Or: " | ", sp.Xor: " ^ "}.get(condition.func)
    if sign is not None:
        return sign.join(f"({_condition(part, printer)})" for part in condition.args)
    return str(printer._print(condition))


def protect(expression: Any) -> Any:
    """Protect an expression for use within a sum, a function of entries or a condition."""
    return expression.replace(sp.Piecewise, ProtectedPiecewise)


class _FunctionOfEntries:
    """Base of functions of the entries of arrays; ``args`` are a lambda, the shape, and the arrays."""

    args: Any

    @property
    def shape(self) -> Any:
        """The lengths of the axes."""
        return tuple(self.args[1])

    @property
    def body(self) -> sp.Expr:
        """The function, of entries."""
        variables = self.args[0].variables
        entries = [Entry(array, bool(a.is_real)) for a, array in zip(variables, self.args[2:], strict=True)]
        return self.args[0].expr.xreplace(dict(zip(variables, entries, strict=True)))

    def _numpycode(self, printer: Any) -> str:
        body = self.body
        for extremum in (sp.Max, sp.Min):  # the NumPy code that SymPy prints for Max and Min does not broadcast
            body = body.replace(extremum, lambda *args, extremum=extremum: extremum(*args).rewrite(sp.Piecewise))
        body = protect(body)
        return f"{printer._module_format('numpy.broadcast_to')}({printer._print(body)}, {tuple(map(int, self.shape))})"


class Elementwise(_FunctionOfEntries, MatrixExpr):
    """A function of the entries of matrices that broadcast to a shape."""

    @property
    def precedence(self) -> int:
        """The precedence for printers."""
        return int(precedence(self.args[0].expr))

    def _entry(self, i: object, j: object, **kwargs: object) -> sp.Expr:
        return element(self.body, (i, j), self.shape)


class ArrayElementwise(_FunctionOfEntries, _ArrayExpr):
    """A function of the entries of arrays that broadcast to a shape of three or more axes."""


class Entries(sp.FunctionMatrix):
    """A matrix given by a function of row and column."""

    def _numpycode(self, printer: Any) -> str:
        (i, j), (rows, columns) = map(printer._print, self.args[2].variables), self.shape
        rows_text = f"[{printer._print(self.args[2].expr)} for {j} in range({columns})]"
        return f"{printer._module_format('numpy.array')}([{rows_text} for {i} in range({rows})])"


class Unit(MatrixExpr):
    """A column that is 1 at one row, and 0 elsewhere: ``Unit(rows, row)``."""

    @property
    def shape(self) -> Any:
        """The lengths of the axes."""
        return self.args[0], sp.S.One

    def _entry(self, i: object, j: object, **kwargs: object) -> sp.Expr:
        return KroneckerDelta(i, self.args[1])

    def _numpycode(self, printer: Any) -> str:
        rows, row = self.args
        return f"{printer._module_format('numpy.eye')}({rows})[:, {row}:{row + 1}]"


class Norm(sp.Expr):
    """The square root of the sum of all squared entries of a matrix."""

    is_commutative = is_extended_real = is_nonnegative = True

    def doit(self, **hints: object) -> sp.Expr:
        """The square root."""
        matrix = self.args[0].doit(**hints)
        return sp.sqrt(total(sp.Abs(Entry(matrix, False)) ** 2, tuple(map(int, matrix.shape))).doit())

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('numpy.linalg.norm')}({printer._print(self.args[0])})"


class Trace(sp.Trace):
    """The trace of a matrix, which can be printed as NumPy code."""

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('numpy.trace')}({printer._print(self.args[0])})"


class Determinant(sp.Determinant):
    """The determinant of a matrix, which can be printed as NumPy code."""

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('numpy.linalg.det')}({printer._print(self.args[0])})"


class Operation(sp.Atom):
    """An operation without a counterpart in SymPy: its name, its options as text, and the recorded operation."""

    def __new__(cls, name: str, options: tuple[str, ...] = (), compute: tuple[Any, ...] | None = None) -> Operation:
        """Make an operation; those of equal names and options are equal."""
        operation: Operation = super().__new__(cls)
        operation.name, operation.options, operation.compute = name, options, compute
        return operation

    def _hashable_content(self) -> tuple[Any, ...]:
        return self.name, self.options

    def _sympystr(self, printer: object) -> str:
        return str(self.name)


class Result(sp.Expr):
    """A number computed by an `Operation`: ``Result(operation, shape, *operands)``."""

    is_commutative = True


class MatrixResult(MatrixExpr):
    """A matrix computed by an `Operation`: ``MatrixResult(operation, shape, *operands)``."""

    @property
    def shape(self) -> Any:
        """The lengths of the axes."""
        return tuple(self.args[1])

    def _entry(self, i: object, j: object, **kwargs: object) -> sp.Expr:
        return MatrixElement(self, i, j)


class ArrayResult(_ArrayExpr):
    """An array of three or more axes, computed by an `Operation`: ``ArrayResult(operation, shape, *operands)``."""

    @property
    def shape(self) -> Any:
        """The lengths of the axes."""
        return tuple(self.args[1])


def is_larger(expression: Any, max_size: int) -> bool:
    """Whether an expression has more than `max_size` parts, including those of arrays."""
    queue = [expression]
    for _ in range(max_size):
        if not queue:
            return False
        part = queue.pop()
        queue += (part.array,) if isinstance(part, Entry) else () if part.is_symbol else part.args
    return bool(queue)


def symbol(name: str, shape: Shape, kind: str) -> sp.Expr:
    """Return the body of a named array; `kind` is its dtype kind."""
    if not shape:
        return sp.Symbol(name, **({"complex": True} if kind == "c" else {"real": True} if kind == "f" else {"integer": True}))
    is_real = kind != "c"
    if len(shape) > 2:
        return Entry(ArraySymbol(sp.Symbol(name), shape), is_real)
    return Entry(sp.MatrixSymbol(name, *as_matrix_shape(shape)), is_real)


def as_matrix_shape(shape: Shape) -> tuple[int, int]:
    """Return the numbers of rows and columns; a vector has one column."""
    return (*shape, 1)[:2]  # type: ignore[return-value]


def result(operation: Operation, operands: Sequence[Any], shape: Shape, is_real: bool) -> sp.Expr:
    """Return the body of the result of an operation without a counterpart."""
    arguments = [sp.Tuple(*(as_matrix_shape(shape) if len(shape) in (1, 2) else shape)), *operands]
    if not shape:
        return Result(operation, *arguments)
    return Entry((MatrixResult if len(shape) < 3 else ArrayResult)(operation, *arguments), is_real)


def matrix(body: sp.Expr, shape: Shape) -> Any:
    """Convert a body to a matrix, or to an array for three or more axes; return the body of a scalar.

    Sums and multiples become sums and multiples of matrices.
    """
    if not shape:
        return body
    if len(shape) > 2:
        if isinstance(body, Entry) and tuple(body.array.shape) == shape:
            return body.array
        return _elementwise_array(ArrayElementwise, body, shape)
    full = as_matrix_shape(shape)
    content, primitive = body.primitive()
    terms = [_linear(term, full) for term in sp.Add.make_args(primitive)]
    if all(term is not None for term in terms):
        return _times(content, terms[0] if len(terms) == 1 else sp.MatAdd(*terms))
    return _elementwise_array(Elementwise, body, full)


def _elementwise_array(cls: type, body: sp.Expr, shape: Shape) -> Any:
    entries = sorted(body.atoms(Entry), key=sp.default_sort_key)
    free = unused_names((f"a_{k}" for k in itertools.count()), body)
    variables = [sp.Symbol(name, real=each.is_real) for name, each in zip(free, entries, strict=False)]
    function = sp.Lambda(tuple(variables), protect(body).xreplace(dict(zip(entries, variables, strict=True))))
    return cls(function, sp.Tuple(*shape), *[each.array for each in entries])


def _linear(term: sp.Expr, full: tuple[int, int]) -> Any:
    """Return a term as a number times a matrix, or None."""
    factors = sp.Mul.make_args(term)
    arrays = [factor for factor in factors if factor.has(Entry)]
    scalar = sp.Mul(*[factor for factor in factors if not factor.has(Entry)])
    if not arrays:
        return sp.ZeroMatrix(*full) if scalar == 0 else _times(scalar, sp.OneMatrix(*full))
    array = broadcast(arrays[0].array, full) if len(arrays) == 1 and isinstance(arrays[0], Entry) else None
    return None if array is None else _times(scalar, array)


def broadcast(array: Any, full: Shape) -> Any:
    """Broadcast a matrix to a shape: a row, a column or an element is repeated by a product with ones."""
    rows, columns = array.shape
    if (rows, columns) != full and columns == full[1]:
        return sp.MatMul(sp.OneMatrix(full[0], 1), array)
    if (rows, columns) != full and rows == full[0]:
        return sp.MatMul(array, sp.OneMatrix(1, full[1]))
    return array if (rows, columns) == full else sp.MatMul(MatrixElement(array, 0, 0), sp.OneMatrix(*full))


def _times(scalar: sp.Expr, matrix: object) -> Any:
    if scalar == 1 or isinstance(matrix, sp.ZeroMatrix):
        return matrix
    coefficient, factors = matrix.as_coeff_matrices() if isinstance(matrix, sp.MatMul) else (sp.S.One, (matrix,))
    return sp.MatMul(scalar * coefficient, *factors)


def body_of(matrix: object, is_real: bool = True) -> sp.Expr:
    """Return the body of a matrix: sums become sums of bodies, and scalar factors multiply entries."""
    if isinstance(matrix, sp.MatAdd):
        return sp.Add(*[body_of(term, is_real) for term in matrix.args])
    if isinstance(matrix, sp.MatMul):
        scalar, factors = matrix.as_coeff_matrices()
        if scalar != 1:
            rest = factors[0] if len(factors) == 1 else sp.MatMul(*factors)
            return scalar * body_of(rest, is_real)
        if isinstance(factors[0], sp.OneMatrix) and len(factors) == 2 and factors[1].shape[0] == 1:  # a row, repeated
            return body_of(factors[1], is_real)
    if isinstance(matrix, Elementwise):
        return matrix.body
    if isinstance(matrix, (sp.OneMatrix, sp.ZeroMatrix)):
        return sp.Integer(isinstance(matrix, sp.OneMatrix))
    return Entry(matrix, is_real)


def element(body: sp.Expr, index: Sequence[Any], shape: Shape) -> sp.Expr:
    """Index a body with one index per axis; a vector may have one index instead of two."""
    replacements = {}
    for entry in body.atoms(Entry):
        array = entry.array
        lengths = tuple(array.shape)
        indices = [*index, 0] if len(index) == 1 and len(lengths) == 2 else list(index)[-len(lengths) :]
        indices = [sp.S.Zero if length == 1 else i for i, length in zip(indices, lengths, strict=True)]
        if isinstance(array, sp.Transpose):
            array, indices = array.arg, indices[::-1]
        replacements[entry] = (
            MatrixElement(array, *indices) if isinstance(array, MatrixExpr) else ArrayElement(array, tuple(indices))
        )
    return body.xreplace(replacements)


def transpose(matrix: object) -> Any:
    """Return the transpose, expanded for sums and products."""
    return sp.Transpose(matrix).doit(deep=False)


def total(body: sp.Expr, shape: Shape) -> sp.Expr:
    """Return the sum of all elements, with common factors in front; a sum of squares becomes a squared norm."""
    factors = sp.Mul.make_args(body)
    scalar = sp.Mul(*[factor for factor in factors if not factor.has(Entry)])
    rest = sp.Mul(*[factor for factor in factors if factor.has(Entry)])
    if rest == 1 or 0 in shape:
        return scalar * math.prod(shape)
    if isinstance(rest, sp.Pow) and rest.exp == 2 and rest.base.is_real and len(shape) < 3:
        inside = matrix(rest.base, shape)
        return scalar * Norm(inside.arg if isinstance(inside, sp.Transpose) else inside) ** 2
    indices = [sp.Symbol(letter, integer=True) for letter, _ in zip(letters(rest), shape, strict=False)]
    limits = [(index, 0, length - 1) for index, length in zip(indices, shape, strict=True) if length > 1]
    index = [symbol if length > 1 else 0 for symbol, length in zip(indices, shape, strict=True)]
    inner = element(rest, index, shape)
    return scalar * (sp.Sum(protect(inner), *limits) if limits else inner)


def unused_names(names: Iterable[str], *bodies: sp.Expr) -> Iterator[str]:
    """Return the names that are unused in some bodies."""
    symbols = {each for body in bodies for each in body.atoms(sp.Symbol, sp.MatrixSymbol)}
    inside = {each for entry in symbols if isinstance(entry, Entry) for each in entry.array.atoms(sp.Symbol, sp.MatrixSymbol)}
    used = set(map(str, symbols | inside))
    return (name for name in names if name not in used)


def letters(*bodies: sp.Expr) -> Iterator[str]:
    """Return letters for indices that are unused in some bodies."""
    return unused_names(itertools.chain("ijklmnpqrst", (f"i_{k}" for k in itertools.count())), *bodies)


def transposed_body(body: sp.Expr) -> sp.Expr:
    """Return the body of the transpose of a matrix, or of a vector as a row."""
    return body.xreplace({entry: Entry(transpose(entry.array), bool(entry.is_real)) for entry in body.atoms(Entry)})


def product(*factors: object) -> Any:
    """Return a product of matrices, with numbers in front, and without identity matrices."""
    return sp.MatMul(*factors).doit(deep=False) if len(factors) > 1 else factors[0]


def inner(x: object, y: object) -> sp.Expr:
    """Return the inner product of two columns."""
    scalar, factors = product(transpose(x), y).as_coeff_mmul()
    return scalar * MatrixElement(factors, 0, 0)


def selection(body: sp.Expr, index: Sequence[Any], shape: Shape) -> sp.Expr | None:
    """Return a vector or matrix at an index of integers and slices; None if SymPy cannot express it."""
    if len(shape) > 2:
        return None
    slices = [slice(i % n, i % n + 1) if not isinstance(i, slice) else i for i, n in zip(index, shape, strict=True)]
    bounds = [each.indices(n) for each, n in zip(slices, shape, strict=True)]
    if any(step < 0 or start >= stop for start, stop, step in bounds):
        return None
    if all(bound == (0, n, 1) for bound, n in zip(bounds, shape, strict=True)):
        return transposed_body(body) if len(shape) == 2 and not isinstance(index[0], slice) else body
    bounds = [*bounds, (0, 1, 1)][:2]
    part = MatrixSlice(matrix(body, shape), *bounds)
    is_row = len(shape) == 2 and not isinstance(index[0], slice)
    return Entry(transpose(part) if is_row else part, bool(body.is_real))


def scatter(piece: sp.Expr, piece_shape: Shape, index: Sequence[Any], shape: Shape) -> sp.Expr | None:
    """Return zeros of the shape of a vector or a matrix, with a piece at an index; None if that is not a product."""
    if len(shape) not in (1, 2) or len(index) > len(shape) or not all(isinstance(i, (int, np.integer, slice)) for i in index):
        return None
    index = [*index, *[slice(None)] * (len(shape) - len(index))]
    ranges = [
        range(*i.indices(n)) if isinstance(i, slice) else range(i % n, i % n + 1) for i, n in zip(index, shape, strict=True)
    ]
    lengths = tuple([len(r) for i, r in zip(index, ranges, strict=True) if isinstance(i, slice)])
    if piece_shape != lengths or 0 in lengths or any(r.step < 0 for r in ranges):
        return None
    sides = [_columns(i, r, n) for i, r, n in zip(index, ranges, shape, strict=True)]
    scalar, middle = (piece, []) if not piece_shape else (sp.S.One, [matrix(piece, piece_shape)])
    if len(shape) == 2 and piece_shape and not isinstance(index[0], slice):
        middle = [transpose(middle[0])]
    right = [transpose(side) for side in sides[1:] if side is not None]
    factors = [*[side for side in sides[:1] if side is not None], *middle, *right]
    return scalar * body_of(product(*factors), not piece_shape or bool(piece.is_real))


def _columns(index: int | slice, positions: range, length: int) -> Any:
    """Return the columns of the identity matrix at an index; None for all columns."""
    if not isinstance(index, slice):
        return Unit(sp.Integer(length), sp.Integer(positions[0]))
    if positions == range(length):
        return None
    return MatrixSlice(sp.Identity(length), (0, length, 1), (positions.start, positions.stop, positions.step))


# ------------------------------------------------------------------------------------------ formulas of operations
# The formulas of `ops.OpSpec` as functions of SymPy expressions. Booleans are the numbers 0 and 1:
# ``Piecewise((1, x > 0), (0, True))``.

E = Any  # an expression of SymPy's, which has no types


def condition(x: E) -> Any:
    """Convert a number to a condition."""
    if isinstance(x, (sp.Piecewise, ProtectedPiecewise)) and len(x.args) == 2 and (x.args[0].expr, x.args[1].expr) == (1, 0):
        return x.args[0].cond
    return sp.Ne(protect(x), 0)


def truth(condition: object) -> E:
    """Convert a condition to a number."""
    return sp.Piecewise((1, protect(sp.sympify(condition))), (0, True))


def where(holds: E, x: E, y: E) -> E:
    """Select one of two values, as `np.where`."""
    return sp.Piecewise((x, protect(condition(holds))), (y, True))


def _comparison(relation: type) -> Callable[[E, E], E]:
    return lambda x, y: truth(relation(protect(sp.sympify(x)), protect(sp.sympify(y))))


def _connective(connective: Any) -> Callable[..., E]:
    return lambda *args: truth(connective(*map(condition, args)))


def _unguard(x: E, zero: E | None = None) -> E:
    """Return the operand of a logarithm or power without its guard.

    Rules replace the operand by 1 where `zero`, or the operand itself, is 0, because the function is undefined there.
    """
    if not isinstance(x, (sp.Piecewise, ProtectedPiecewise)) or len(x.args) != 2 or x.args[0].expr != 1:
        return x
    other, condition = x.args[1].expr, x.args[0].cond
    zero = other if zero is None else zero
    return other if sp.Eq(zero, 0) in (condition, *(condition.args if isinstance(condition, sp.And) else ())) else x


def trunc(x: E) -> E:
    """Return the integer part."""
    return sp.sign(x) * sp.floor(sp.Abs(x))


def _clip(x: E, low: E | None = None, high: E | None = None) -> E:
    x = x if low is None else sp.Max(x, low)
    return x if high is None else sp.Min(x, high)


# The names that formulas use: SymPy's, except for functions with conditions or guards.
_NAMES: dict[str, Any] = {
    **{name: _comparison(getattr(sp, name)) for name in ("Lt", "Le", "Gt", "Ge", "Eq", "Ne")},
    **{name: _connective(getattr(sp, name)) for name in ("And", "Or", "Xor", "Not")},
    "where": where,
    "clip": _clip,
    "trunc": trunc,
    "log": lambda x: sp.log(_unguard(x)),
    "power": lambda x, y: sp.sympify(x) ** _unguard(y, x),
}


def is_applicable(formula: str, kinds: set[str]) -> bool:
    """Whether a formula holds for operands with the given dtype kinds."""
    if formula.startswith("bool: "):
        return kinds == {"b"}
    return bool(formula)


@functools.cache
def function_of(formula: str, output: int = 0) -> Callable[..., Any]:
    """Compile a formula to a function of SymPy expressions."""
    text = formula.rpartition(": ")[2].split("; ")[output]
    names = {name: _NAMES.get(name) or getattr(sp, name) for name in set(re.findall(r"[A-Za-z_]\w*", text)) - {*"xyz"}}
    function: Callable[..., Any] = eval(f"lambda x=None, y=None, z=None: {text}", names)
    return function
