"""Conversion of graphs to SymPy: one expression per result, and one per named or large intermediate value.

The *body* of a value is its expression with an `Entry` for each array; `symbolic_arrays` defines it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from .. import ops
from ..array_types import Operand
from ..graph import walk
from ..ops import Configured, Keyworded, Output
from ..storage import Write
from ..values import ConstantNode, MultiOutput, Value, freeze_operand
from . import symbolic_arrays as arrays
from .names import is_automatic, is_number
from .symbolic_arrays import Entry, Operation, Shape, function_of, is_applicable, trunc, truth

# Sizes count the parts of an expression.
MAX_SIZE = 40  # a larger expression is abbreviated by a symbol
MAX_SHARED_SIZE = 20  # the same for an expression with several uses
MAX_OPERATIONS = 10_000  # of a graph
MAX_UNABBREVIATED_SIZE = 1000  # SymPy recurses into expressions, and copies shared ones
MAX_UNABBREVIATED_DEPTH = 60  # nested operations
MAX_SIMPLIFIED_SIZE = 40  # SymPy simplifies these in milliseconds
TRIGONOMETRIC = sp.sin, sp.cos, sp.tan, sp.sinh, sp.cosh, sp.tanh
MODULES = re.compile(r"^(special|linalg|fft|ndimage|signal|stats)_(?=.)")


class Converter:
    """Converts graphs to SymPy.

    Parameters
    ----------
    named_arrays : mapping from str to array
        Names of plain arrays.
    abbreviates : bool
        Whether intermediate values that the user named, and large ones, get symbols, and equations in `abbreviations`.

    Attributes
    ----------
    abbreviations : dict
        The expressions of abbreviated values, by the names of their symbols.
    symbols : dict
        The shape and dtype of each array, by its name.
    constants : dict
        The plain arrays, by their names.
    """

    def __init__(self, named_arrays: Mapping[str, Any], abbreviates: bool = True) -> None:
        self.abbreviations: dict[str, Any] = {}
        self.symbols: dict[str, tuple[Shape, Any]] = {}
        self.constants: dict[str, Any] = {}
        self._abbreviates = abbreviates
        self._bodies: dict[Any, sp.Expr] = {}
        self._depths: dict[Any, int] = {}
        self._names: dict[Any, str] = {}
        self._arrays_by_value: dict[Any, sp.Expr] = {}
        self._used_names: set[str] = set(named_arrays)
        self._counts = {"c": 0, "C": 0, "z": 0}
        for name, array in named_arrays.items():
            self._add_array(name, np.asarray(array))

    def convert(self, nodes: list[Any], caller: str) -> list[Any]:
        """Return the expressions of some nodes, which are not abbreviated themselves."""
        items = sorted(walk(nodes, _operands), key=lambda item: (bool(item.args), item.sequence_number))
        if len(items) > MAX_OPERATIONS:
            raise ValueError(
                f"{caller}: the graph has {len(items)} operations and leaves, more than the limit of {MAX_OPERATIONS} for "
                "formulas; compgraph.program(node) writes the last steps, and repeated ones once"
            )
        results, uses = frozenset(nodes), dict[Any, int]()
        for item in items:
            if isinstance(item, Write) or (isinstance(item, Value) and item.memory):
                raise ValueError(
                    f"{caller}: an array was written in place ({item.line or 'its line was not recorded'}), and a formula has no "
                    "order of steps; compgraph.program(node) writes the steps, in order"
                )
            for operand in _operands(item):
                uses[operand] = uses.get(operand, 0) + 1
        for item in items:
            if isinstance(item, Value) and not is_automatic(item):
                self.symbols.setdefault(item.name, (item.shape, item.dtype))
        for item in items:
            if isinstance(item, MultiOutput):
                self._depths[item] = 1 + max([self._depths[each] for each in _operands(item)], default=0)
            elif item not in self._bodies:
                body = self._operation(item) if item.args else self._leaf(item)
                self._bodies[item] = self._abbreviate(item, body, uses.get(item, 0), item in results, caller)
        return [arrays.matrix(simplify(self._bodies[node]), node.shape) for node in nodes]

    def name_of(self, node: Value) -> str:
        """Return the name of a converted leaf in expressions."""
        return str(self._names.get(node, node.name))

    def _abbreviate(self, item: Value, body: sp.Expr, uses: int, is_result: bool, caller: str) -> sp.Expr:
        """Return a body, or a symbol that abbreviates it; raise a ValueError if it is too long without abbreviations."""
        self._depths[item] = 1 + max([self._depths[operand] for operand in _operands(item)], default=0)
        if not item.args or (body.array.is_symbol if isinstance(body, Entry) else body.is_Atom):
            return body
        has_user_name = not is_automatic(item)
        max_size = (MAX_SIZE if uses < 2 else MAX_SHARED_SIZE) if self._abbreviates else MAX_UNABBREVIATED_SIZE
        is_large = arrays.is_larger(body, max_size)
        if not self._abbreviates:
            if is_large or self._depths[item] > MAX_UNABBREVIATED_DEPTH:
                raise ValueError(
                    f"{caller}: the expression is too long (limits: {MAX_UNABBREVIATED_SIZE} parts, {MAX_UNABBREVIATED_DEPTH} "
                    "nested operations); convert a part of the graph, or use compgraph.latex(node), which abbreviates, or "
                    "compgraph.program"
                )
            return body
        if is_result or not (has_user_name or is_large):
            return body
        self._depths[item] = 1
        name = self._unused_name(item.name) if has_user_name else self._numbered_name("z")
        self.abbreviations[name] = arrays.matrix(simplify(body), item.shape)
        return arrays.symbol(name, item.shape, item.dtype.kind)

    # ---------------------------------------------------------------------------------------------- leaves

    def _numbered_name(self, letter: str) -> str:
        while True:
            self._counts[letter] += 1
            name = f"{letter}_{self._counts[letter]}"
            if name not in self.symbols:
                return name

    def _unused_name(self, name: str) -> str:
        """Return a name, with primes added until it is unused."""
        while name in self._used_names:
            name += "'"
        self._used_names.add(name)
        return name

    def _leaf(self, node: Value) -> sp.Expr:
        if isinstance(node, ConstantNode) and is_automatic(node):
            return self._constant(node.raw_value)
        name = self._names[node] = self._unused_name(node.name)
        self.symbols[name] = node.shape, node.dtype
        return arrays.symbol(name, node.shape, node.dtype.kind)

    def _add_array(self, name: str, array: NDArray[Any]) -> sp.Expr:
        """Return the symbol of a plain array; register it also for the negative and the transpose, which derivatives use."""
        body = arrays.symbol(name, array.shape, array.dtype.kind)
        self.symbols[name], self.constants[name] = (array.shape, array.dtype), array
        self._arrays_by_value.setdefault(_array_key(array), body)
        if array.dtype.kind in "fc":
            self._arrays_by_value.setdefault(_array_key(-array), -body)
        if array.ndim == 2:
            self._arrays_by_value.setdefault(_array_key(array.T), arrays.transposed_body(body))
        return body

    def _constant(self, value: Operand) -> sp.Expr:
        array = np.asarray(value)
        array_body = self._arrays_by_value.get(_array_key(array)) if array.ndim else None
        if array_body is not None:
            return array_body
        if not array.size:
            return sp.S.Zero
        if is_identity(array):
            return number(array[0, 0]) * Entry(sp.Identity(len(array)), True)
        if array.ndim == 0 or (array.ravel()[:1] == array).all():
            return number(array.ravel()[0])
        return self._add_array(self._numbered_name("C" if array.ndim > 1 else "c"), array)

    # ------------------------------------------------------------------------------------------ operations

    def _body(self, value: Any) -> Any:
        """Return the body of an operand, or the text of an option."""
        if isinstance(value, Value):
            return self._constant(value.raw_value) if is_number(value) else self._bodies[value]
        value = freeze_operand(value)
        if isinstance(value, (tuple, list, slice, str, dict)) or value is None or value is Ellipsis:
            return sp.core.symbol.Str(_option_text(value))
        return self._constant(value)

    def _matrix(self, value: NDArray[Any]) -> Any:
        body = self._body(value)
        return body if isinstance(body, sp.core.symbol.Str) else arrays.matrix(body, np.shape(_plain(value)))

    def _operation(self, item: Value) -> sp.Expr:
        opname = item.opname
        if item.function in ops.FILL_VALUES or 0 in item.shape:
            return sp.Integer(ops.FILL_VALUES.get(item.function, 0))
        body = self._elementwise(item)
        convert = getattr(self, f"_convert_{opname}", None) if not isinstance(item.function, (Configured, Keyworded)) else None
        if body is None and convert is not None:
            body = convert(item)
        return self._result(item) if body is None else body

    def _elementwise(self, item: Any) -> sp.Expr | None:
        """Convert an elementwise operation; return None for others."""
        producer = item.args[0] if isinstance(item.function, Output) else item
        spec = ops.SPECS.get(producer.function)
        has_formula = spec is not None and (spec.formula or spec.real_formula)
        if not (has_formula or ops.is_elementwise(producer.function)) or producer.options.keys() - {"of"}:
            return None  # `of` names the operation that a rule's function serves; values do not depend on it
        if spec is not None and len(producer.args) < len(spec.operands.split()):
            return None
        kinds = {_kind(a) for a in producer.args if a is not None}
        formula = "" if spec is None else spec.real_formula if spec.real_formula and "c" not in kinds else spec.formula
        bodies = [None if a is None else self._body(a) for a in producer.args]
        bodies = [
            arrays.transposed_body(body) if body is not None and np.ndim(_plain(a)) == 1 < item.ndim else body
            for a, body in zip(producer.args, bodies, strict=True)
        ]
        index = item.function.index if producer is not item else 0
        if is_applicable(formula, kinds):
            return sp.sympify(function_of(formula, index)(*bodies))
        name = producer.opname if producer is item else f"{producer.opname}_{index}"
        if any(isinstance(body, sp.core.symbol.Str) or body is None for body in bodies):
            return None
        assumptions = {} if item.dtype.kind == "c" else {"real": True}
        function: Callable[..., sp.Expr] = sp.Function(MODULES.sub("", name), **assumptions)
        return function(*bodies)

    def _result(self, item: Any) -> sp.Expr:
        """Convert an operation without a counterpart."""
        producer = item.args[0] if isinstance(item.function, Output) else item
        operands, options = producer.args, _nondefault(producer.options)
        compute = producer.function
        if producer.function is ops.getitem:
            parts = producer.args[1] if len(producer.args) == 2 and isinstance(producer.args[1], tuple) else producer.args[1:]
            operands = producer.args[:1] + tuple(part for part in parts if isinstance(part, Value))
            options = {"index": tuple(part for part in parts if not isinstance(part, Value))}
        texts = tuple(("" if name == "index" else f"{name}=") + _option_text(value) for name, value in options.items())
        if producer is not item:
            texts = (f"#{item.function.index}", *texts)
        key = 0 if all(map(_is_simple, options.values())) else id(producer)
        name = MODULES.sub("", producer.opname)
        operation = Operation(
            name, (*texts, str(key)) if key else texts, (compute, producer, getattr(item.function, "index", None))
        )
        operand_matrices = [self._matrix(operand) for operand in operands]
        return arrays.result(operation, operand_matrices, item.shape, item.dtype.kind != "c")

    # ``_convert_<opname>`` returns the body of an operation, or None without a counterpart in SymPy.

    def _convert_broadcast_to(self, item: Value) -> sp.Expr:
        x, source = self._body(item.args[0]), np.shape(_plain(item.args[0]))
        return arrays.transposed_body(x) if len(source) == 1 and item.ndim > 1 else x

    _convert_copy = _convert_input = _convert_stop_gradient = _convert_broadcast_to

    def _convert_astype(self, item: Value) -> sp.Expr:
        x, before, after = self._body(item.args[0]), _kind(item.args[0]), item.dtype.kind
        if before == "c" and after != "c":
            x = sp.re(x)
        if after == "b" != before:
            return truth(sp.Ne(x, 0))
        return trunc(x) if after in "iu" and before in "fc" else x

    def _convert_getitem(self, item: Value) -> sp.Expr | None:
        index = item.args[1] if len(item.args) == 2 else tuple(item.args[1:])
        x, shape = self._body(item.args[0]), item.args[0].shape
        parts = index if isinstance(index, tuple) else (index,)
        parts = tuple([freeze_operand(part) for part in parts])
        if len(parts) == 1 and isinstance(parts[0], np.ndarray) and parts[0].dtype == bool and parts[0].all():
            return x if item.shape == shape else None
        if not all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts):
            return None
        if any(isinstance(part, (bool, np.bool)) for part in parts):
            return None
        if not x.has(Entry):
            return x
        parts = _complete_index(parts, len(shape))
        if None in parts:
            is_whole = all(part is None or part == slice(None) for part in parts)
            return self._reshaped(x, shape, item.shape) if is_whole else None
        if all(isinstance(part, (int, np.integer)) for part in parts):
            return arrays.element(x, [int(part) % n for part, n in zip(parts, shape, strict=True)], shape)
        return arrays.selection(x, parts, shape)

    def _reshaped(self, x: sp.Expr, old: Shape, new: Shape) -> sp.Expr | None:
        """Convert a change of shape that keeps the order of axes, among vectors, columns and rows."""
        if old == new or not x.has(Entry):
            return x
        if math.prod(old) == 1 and not new:
            return arrays.element(x, [0] * len(old), old)
        if len(old) > 2 or len(new) > 2 or [n for n in old if n != 1] != [n for n in new if n != 1]:
            return None
        is_row = [len(shape) == 2 and shape[0] == 1 and shape[1] != 1 for shape in (old, new)]
        return x if is_row[0] == is_row[1] else arrays.transposed_body(x)

    def _convert_reshape(self, item: Value) -> sp.Expr | None:
        source = item.args[0]
        if getattr(source, "opname", None) == "scatter" and len(source.args) == 3 and source.ndim == 1:
            index, piece = freeze_operand(source.args[2]), self._body(source.args[1])
            if isinstance(index, np.ndarray) and is_diagonal(index, item.shape) and not piece.has(Entry):
                return piece * Entry(sp.Identity(item.shape[0]), True)
        return self._reshaped(self._body(source), source.shape, item.shape)

    _convert_ravel = _convert_flatten = _convert_expand_dims = _convert_squeeze = _convert_reshape

    def _convert_sum(self, item: Value) -> sp.Expr | None:
        if not set(_nondefault(item.options)) <= {"axis", "keepdims"} or len(item.args) != 1:
            return None
        x, shape, axes = self._body(item.args[0]), np.shape(_plain(item.args[0])), _axes(item)
        if not x.has(Entry):
            return x * math.prod(shape[axis] for axis in axes)
        if len(axes) == len(shape):
            return arrays.total(x, shape)
        if len(shape) != 2 or len(axes) != 1:
            return None if axes else x
        x = arrays.transposed_body(x) if axes == (0,) else x
        rows, columns = shape[::-1] if axes == (0,) else shape
        sums = arrays.body_of(arrays.product(arrays.matrix(x, (rows, columns)), sp.OneMatrix(columns, 1)), item.dtype.kind != "c")
        return arrays.transposed_body(sums) if axes == (0,) and item.ndim == 2 else sums

    def _convert_mean(self, item: Value) -> sp.Expr | None:
        total = self._convert_sum(item)
        return None if total is None else total / math.prod(np.shape(_plain(item.args[0]))[axis] for axis in _axes(item))

    def _convert_matmul(self, item: Value) -> sp.Expr | None:
        a, b = item.args
        dims = np.ndim(_plain(a)), np.ndim(_plain(b))
        if not all(0 < each < 3 for each in dims) or item.options:
            return None
        x, y, is_real = self._matrix(a), self._matrix(b), item.dtype.kind != "c"
        if 0 in np.shape(_plain(a)):
            return sp.S.Zero
        if dims == (1, 1):
            return arrays.inner(x, y)
        return arrays.body_of(arrays.product(arrays.transpose(y), x) if dims == (1, 2) else arrays.product(x, y), is_real)

    def _convert_dot(self, item: Value) -> sp.Expr | None:
        if not all(np.ndim(_plain(a)) for a in item.args):
            return sp.Mul(*[self._body(a) for a in item.args])
        return self._convert_matmul(item)

    def _convert_inner(self, item: Value) -> sp.Expr | None:
        return self._convert_dot(item) if max(np.ndim(_plain(a)) for a in item.args) <= 1 else None

    def _convert_vdot(self, item: Value) -> sp.Expr | None:
        return self._convert_inner(item) if all(_kind(a) != "c" for a in item.args) else None

    _convert_vecdot = _convert_vdot

    def _convert_outer(self, item: Value) -> sp.Expr | None:
        a, b = item.args
        if np.ndim(_plain(a)) != 1 or np.ndim(_plain(b)) != 1:
            return None
        return arrays.body_of(arrays.product(self._matrix(a), arrays.transpose(self._matrix(b))), item.dtype.kind != "c")

    def _convert_transpose(self, item: Value) -> sp.Expr | None:
        axes = item.options.get("axes")
        if item.ndim < 2:
            return self._body(item.args[0])
        is_transpose = item.ndim == 2 and (axes is None or tuple(int(axis) % 2 for axis in axes) == (1, 0))
        return arrays.transposed_body(self._body(item.args[0])) if is_transpose else None

    def _convert_swapaxes(self, item: Value) -> sp.Expr | None:
        axes = {int(item.options.get(name, 0)) % 2 for name in ("axis1", "axis2")}
        return arrays.transposed_body(self._body(item.args[0])) if item.ndim == 2 and len(axes) == 2 else None

    def _convert_moveaxis(self, item: Value) -> sp.Expr | None:
        source, destination = [np.atleast_1d(item.options[name]) % item.ndim for name in ("source", "destination")]
        x = self._body(item.args[0])
        if np.array_equal(source, destination):
            return x
        return arrays.transposed_body(x) if item.ndim == 2 and source.size == 1 else None

    def _convert_trace(self, item: Value) -> sp.Expr | None:
        is_square = len(set(item.args[0].shape)) == 1 and item.args[0].ndim == 2
        return arrays.Trace(self._matrix(item.args[0])) if is_square and not _nondefault(item.options) else None

    def _convert_linalg_det(self, item: Value) -> sp.Expr | None:
        return arrays.Determinant(self._matrix(item.args[0])) if item.ndim == 0 else None

    def _convert_linalg_norm(self, item: Value) -> sp.Expr | None:
        is_euclidean = (
            item.ndim == 0 and item.args[0].ndim < 3 and not any(v is not None and v is not False for v in item.options.values())
        )
        return arrays.Norm(self._matrix(item.args[0])) if is_euclidean else None

    def _convert_linalg_inv(self, item: Value) -> sp.Expr | None:
        return self._solution(item, item.args[0]) if item.ndim == 2 else None

    def _convert_linalg_solve(self, item: Value) -> sp.Expr | None:
        a, b = item.args
        return self._solution(item, a, self._matrix(b)) if np.ndim(_plain(a)) == 2 and item.ndim < 3 else None

    def _solution(self, item: NDArray[Any], a: NDArray[Any], *right: object) -> sp.Expr | None:
        a = self._matrix(a)
        if isinstance(a, (sp.OneMatrix, sp.ZeroMatrix)) or (
            isinstance(a, sp.MatMul) and not a.as_coeff_matrices()[1][0].is_square
        ):
            return None
        return arrays.body_of(arrays.product(sp.Inverse(a), *right), item.dtype.kind != "c")

    def _convert_scatter(self, item: Value) -> sp.Expr | None:
        """Convert the derivative of indexing: a sum of pieces, each at its position."""
        pieces: list[sp.Expr] = []
        start = 1
        for count in item.options["index_counts"]:
            index = tuple([freeze_operand(part) for part in item.args[start + 1 : start + 1 + count]])
            index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
            piece, piece_shape = self._body(item.args[start]), np.shape(_plain(item.args[start]))
            if (
                item.ndim == 1 and len(piece_shape) == len(index) == 2 and any(part is None for part in index)
            ):  # a column, or a row
                piece, piece_shape = piece if index[1] is None else arrays.transposed_body(piece), (max(piece_shape),)
                index = tuple(part for part in index if part is not None)
            term = arrays.scatter(piece, piece_shape, index, item.shape)
            if term is None:
                return None
            pieces.append(term)
            start += 1 + count
        return sp.Add(*pieces)

    def _convert_einsum(self, item: Value) -> sp.Expr | None:
        inputs, arrow, output = item.options["subscripts"].replace(" ", "").partition("->")
        if "." in inputs or item.ndim > 2 or len(item.options) > 1 or len(set(output)) < len(output):
            return None
        output = output if arrow else "".join(sorted(c for c in inputs if c != "," and inputs.count(c) == 1))
        bodies = [self._body(a) for a in item.args]
        free = arrays.unused_names(arrays.letters(*bodies), *map(sp.Symbol, set(inputs) - {","}))
        free_letters = set(arrays.unused_names(inputs, *bodies))
        letters = {
            c: sp.Symbol(c if c in free_letters else next(free), integer=True)
            for c in [*output, *sorted(set(inputs) - {*output, ","})]
        }
        lengths: dict[str, int] = {}
        factors = []
        for operand, body, subscripts in zip(item.args, bodies, inputs.split(","), strict=True):
            shape = np.shape(_plain(operand))
            for c, n in zip(subscripts, shape, strict=True):
                lengths[c] = max(n, lengths.get(c, 1))
            factors.append(arrays.element(body, [letters[c] for c in subscripts], shape) if shape else body)
        limits = [(letter, 0, lengths[c] - 1) for c, letter in letters.items() if c not in output]
        value = sp.Sum(arrays.protect(sp.Mul(*factors)), *limits) if limits else sp.Mul(*factors)
        if not output:
            return value
        indices = [letters[c] for c in output] + [sp.Symbol(next(free), integer=True)] * (len(output) == 1)
        entries = arrays.Entries(*arrays.as_matrix_shape(item.shape), sp.Lambda(tuple(indices), arrays.protect(value)))
        return Entry(entries, item.dtype.kind != "c")


def simplify(body: sp.Expr) -> sp.Expr:
    """Return the shortest form of a body that SymPy finds; return a long body unchanged."""
    if body.is_Atom or arrays.is_larger(body, MAX_SIMPLIFIED_SIZE) or body.has(sp.Float, sp.MatrixExpr, sp.Sum, arrays.Result):
        return body
    forms = [body, sp.factor_terms(body)]
    if body.has(sp.Piecewise):
        forms.append(sp.piecewise_fold(body))
    elif body.has(*TRIGONOMETRIC):
        forms.append(sp.trigsimp(body))
    return min(forms, key=lambda form: sp.count_ops(form) + 2 * form.count(sp.Piecewise))


def number(value: Any) -> sp.Expr:
    """Convert a number. Floats that round an integer, a short fraction or a short multiple of pi become exact."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex):
        return number(value.real) + sp.I * number(value.imag)
    if isinstance(value, (bool, int)):
        return sp.Integer(int(value))
    if not math.isfinite(value):
        return sp.Symbol("NaN") if value != value else sp.oo if value > 0 else -sp.oo
    for unit, max_denominator in ((1.0, 1000), (math.pi, 12)):
        fraction = Fraction(value / unit).limit_denominator(max_denominator)
        numerator, denominator = fraction.numerator, fraction.denominator
        if abs(numerator) < 10**15 and value in (numerator * unit / denominator, numerator / denominator * unit):
            return sp.Rational(numerator, denominator) * (sp.pi if unit > 1 else 1)
    return sp.Float(value)


def is_diagonal(index: NDArray[Any], shape: Shape) -> bool:
    """Whether flat indices of a matrix are those of its diagonal."""
    return len(shape) == 2 and shape[0] == shape[1] and np.array_equal(index, np.arange(0, shape[0] ** 2, shape[0] + 1))


def is_identity(array: NDArray[Any]) -> bool:
    """Whether an array of real numbers is a nonzero multiple of the identity matrix."""
    if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) < 2 or array.dtype.kind not in "iuf":
        return False
    return bool(array[0, 0] != 0 and np.array_equal(array, array[0, 0] * np.eye(len(array))))


def _complete_index(parts: tuple[Any, ...], num_axes: int) -> tuple[Any, ...]:
    """Return an index with slices for the axes that it omits, at its end or where it has an Ellipsis."""
    omitted = num_axes - sum(part is not None and part is not Ellipsis for part in parts)
    end = next((position for position, part in enumerate(parts) if part is Ellipsis), len(parts))
    return (*parts[:end], *[slice(None)] * omitted, *parts[end + 1 :])


def _operands(item: Value | MultiOutput | Write) -> tuple[Any, ...]:
    """Return the operands of an item's expression; an array filled with a number has none."""
    if isinstance(item, Write):
        return ()
    writes = item.memory.log if isinstance(item, Value) and item.memory else ()
    return (*writes, *[item.args[p] for p in item.parent_argnums]) if item.function not in ops.FILL_VALUES else ()


def _plain(value: Operand) -> Any:
    return value.raw_value if isinstance(value, Value) else freeze_operand(value)


def _kind(value: Operand) -> str:
    return value.dtype.kind if isinstance(value, Value) else np.asarray(freeze_operand(value)).dtype.kind


def _axes(item: Value) -> tuple[int, ...]:
    axis, ndim = item.options.get("axis"), np.ndim(_plain(item.args[0]))
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(int(each) % ndim for each in (axis if isinstance(axis, tuple) else (axis,)))) if ndim else ()


def _nondefault(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the defaults."""
    defaults = {"where": True, "keepdims": False, "offset": 0, "axis1": 0, "axis2": 1}
    return {name: value for name, value in options.items() if value is not None and value is not defaults.get(name, options)}


def _option_text(value: Any) -> str:
    """Return an option as text."""
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_option_text, value))
    if isinstance(value, slice):
        return ":".join("" if end is None else str(end) for end in (value.start, value.stop, value.step)).removesuffix(":")
    if isinstance(value, (Value, np.ndarray)) and np.ndim(value):
        return "index"
    return "..." if value is Ellipsis else str(_plain(value))


def _is_simple(value: object) -> bool:
    """Whether the text of an option determines its value."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_simple, value))
    return value is None or value is Ellipsis or isinstance(value, (int, float, str, np.integer, slice))


def _array_key(array: NDArray[Any]) -> Any:
    return array.shape, array.tobytes(), array.dtype
