"""Translation of a schedule into steps over a library's namespace.

Arrays of these libraries are treated as immutable. A write creates a new array, which becomes the value of the written node. A
view of a written array is recomputed where it is read after the write. Shapes and dtypes are those of the trace, and the steps
make NumPy's dtype conversions explicit.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...array_types import Operand
from ...executor import Schedule
from ...guards import EvaluationGuard, Guard, is_shape_guard
from ...storage import Write, layout_in, root_of, value_at, viewed_operand, window
from ...values import MultiOutput, Value
from ..loop_periodicity import MIN_TRIP_COUNT, constant_key
from . import array_api
from .array_api import UnsupportedError
from .engine_steps import Call, Expression, StaticIndex, Step, Variable
from .libraries import Library, counterpart, operation_key
from .operand_dtypes import folded_ufunc, operand_dtypes

_MAX_INLINE_SIZE = 16  # elements of the largest constant that is a global of the program instead of an argument

# Whether the operand at a position may be a NumPy index or integer; for `scatter` this follows from `index_counts`.
_UNCONVERTED_OPERANDS: dict[str, Callable[[int], bool]] = {
    "bincount": lambda k: k == 0,
    **dict.fromkeys(("delete", "insert", "repeat", "roll", "tile"), lambda k: k == 1),
    **dict.fromkeys(("quantile", "percentile", "nanquantile", "nanpercentile"), lambda k: k == 1),
    **dict.fromkeys(("searchsorted", "digitize", "isin", "isclose"), lambda k: k > 1),
}
_IGNORED_OPTIONS = frozenset({"subok", "casting", "order", "kind", "copy", "optimize", "overwrite_input"})
_ORDER_MATTERS = frozenset({"reshape", "ravel", "flatten", "unravel_index"})
_ARRAY_OPTIONS = frozenset({"mean", "where", "initial"})  # options that are arrays
_INDEXING = frozenset({"getitem", "take", "take_along_axis"})
_MASK_ERROR = "the length of x[mask] depends on values; use np.where(mask, x, 0)"


class Translation:
    """A schedule as steps.

    Attributes
    ----------
    steps : list of Step
        The steps.
    inputs, outputs, constants, inline_constants : list of Variable
        The variables of the inputs and outputs; constants passed after the inputs, and global constants.
    guards : list of Guard
        The guards of the program.
    guard_operands : list of Variable
        The operands of guards that are nodes, as of the recorded decision.
    condition : Variable or None
        Whether all conditions of a run hold.
    """

    def __init__(self, schedule: Schedule, library: Library) -> None:
        self.library, self._xp = library, library.namespace
        self.steps: list[Step] = []
        self.constants: list[Variable] = []
        self.inline_constants: list[Variable] = []
        self.guards: list[Guard] = []
        self.guard_operands: list[Variable] = []
        self.condition: Variable | None = None
        self._count = 0  # of variables
        self._roots = {id(item.memory): item for item in schedule.items if isinstance(item, Value) and item.memory}
        self._variables: dict[Any, Variable] = {}  # by item, its value so far
        self._writes: dict[Any, int] = {}  # by root, the number of writes so far
        self._writes_before: dict[Any, int] = {}  # by view, the number of writes before its last computation
        self._by_key: dict[Any, Any] = {}  # constants and indices
        self.inputs = [self._define(node, self.new_variable(node.dtype, node.shape)) for node in schedule.inputs]
        self._inputs = frozenset(schedule.inputs)
        for item in schedule.items:
            if item not in self._inputs:
                try:
                    self._translate(item)
                except UnsupportedError as error:
                    location = f" ({item.line})" if getattr(item, "line", None) else ""
                    raise NotImplementedError(f"{error}{location}") from error
        self.outputs = [self._operand(node) for node in schedule.outputs]

    def new_variable(self, dtype: np.dtype[Any] | None, shape: tuple[int, ...], array: Any = None, prefix: str = "v") -> Variable:
        """Return a new variable."""
        self._count += 1
        return Variable(f"{prefix}{self._count - 1}", dtype, shape, array)

    def add_constant(self, array: Any) -> Variable:
        """Return the variable of an array that is an argument of the program."""
        self.constants.append(self.new_variable(array.dtype, array.shape, array, "c"))
        return self.constants[-1]

    def _define(self, item: Any, variable: Variable) -> Variable:
        self._variables[item] = variable
        return variable

    def _assign(self, expression: Expression, dtype: np.dtype[Any] | None, shape: tuple[int, ...]) -> Variable:
        """Return the variable of an expression."""
        if isinstance(expression, Variable):
            return expression
        self.steps.append(Step(self.new_variable(dtype, shape), expression))
        return self.steps[-1].variable

    def _intern(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the unique object of a key, made on first use, because loops compare constants and indices by identity."""
        if key not in self._by_key:
            self._by_key[key] = make()
        return self._by_key[key]

    def _call(self, function: Callable[..., Any], *args: Expression) -> Call:
        """Return the call of a function of `array_api`."""
        return Call(self._intern(function, lambda: functools.partial(function, self._xp)), args)

    def _translate(self, item: Any) -> None:
        """Add the steps of an item."""
        if isinstance(item, Guard):
            if not isinstance(item, EvaluationGuard) and not is_shape_guard(item):
                self.guards.append(item)
                self.guard_operands += [self._operand(operand) for operand in item.args if isinstance(operand, Value)]
        elif isinstance(item, Write):
            root = self._roots[id(item.memory)]
            value = self._write_call(item, root, self._variables[root], self._cast_operand(item.args[0], root.dtype))
            self._define(root, self._assign(value, root.dtype, root.shape))
            self._writes[root] = self._writes.get(root, 0) + 1
        elif item.args:
            self._writes_before[item] = self._writes.get(root_of(item), 0) if isinstance(item, Value) else 0
            self._compute(item)
        else:
            constant = self.constant(value_at(item, item.sequence_number) if item.memory else item.raw_value)
            self._define(item, self._assign(constant, item.dtype, item.shape))

    def _compute(self, item: Any) -> None:
        """Add the step of an operation."""
        dtype, shape = (None, ()) if isinstance(item, MultiOutput) else (item.dtype, item.shape)
        self._define(item, self._assign(self._operation(item), dtype, shape))

    def _add_condition(self, condition: Expression) -> None:
        """Add a condition that each run checks."""
        if self.condition is not None:
            condition = Call(operator.and_, (self.condition, condition))
        self.condition = self._assign(condition, np.dtype(bool), ())

    # ---------------------------------------------------------------------------------------------- operands

    def _operand(self, operand: object) -> Expression:
        """Return an operand; an outdated view of a written array is recomputed first."""
        if isinstance(operand, Value):
            root = root_of(operand)
            is_view = root is not operand and root.memory and operand not in self._inputs and viewed_operand(operand) is not None
            if is_view and self._writes_before.get(operand, 0) < self._writes.get(root, 0):
                self._compute(operand)
                self._writes_before[operand] = self._writes[root]
        if isinstance(operand, (Value, MultiOutput)):
            return self._variables[operand]
        return self.constant(np.asarray(operand))

    def constant(self, value: Operand, dtype: np.dtype[Any] | None = None) -> Expression:
        """Return a plain array or number as an array of the library."""
        array = np.asarray(value, dtype)
        if array.dtype.kind not in "biufc":
            raise UnsupportedError(f"an operand of dtype {array.dtype} is not supported")
        self.library.dtype(array.dtype)
        if array.size > 1 and array.tobytes() == array.size * array.ravel()[:1].tobytes():
            return Call(self._xp.broadcast_to, (self.constant(array.ravel()[0]), array.shape))
        if array.size > _MAX_INLINE_SIZE:
            return self.add_constant(array)

        def inline() -> Variable:
            self.inline_constants.append(self.new_variable(array.dtype, array.shape, array, "k"))
            return self.inline_constants[-1]

        return self._intern(("constant", array.dtype, array.shape, array.tobytes()), inline)

    def _cast_operand(self, operand: Any, dtype: Any) -> Expression:
        """Return an operand, converted to a dtype."""
        if not isinstance(operand, Value):
            with np.errstate(all="ignore"):
                return self.constant(operand, dtype)
        variable = self._operand(operand)
        return variable if operand.dtype == dtype else self._cast(variable, dtype)

    def _cast(self, expression: Expression, dtype: Any) -> Call:
        self.library.dtype(dtype)
        return Call(self.library.cast, (expression, np.dtype(dtype)))

    def _unconverted_operand(self, operand: object) -> Expression:
        """Return an operand that may be a NumPy index or integer, which is not converted."""
        if isinstance(operand, Value):
            return self._operand(operand)
        if isinstance(operand, (np.integer, np.bool_)):
            return operand.item()
        return np.asarray(operand) if isinstance(operand, list) else operand

    # ---------------------------------------------------------------------------------------------- indices

    def _static_index(self, shape: tuple[int, ...], index: Sequence[Any]) -> StaticIndex:
        """Return a plain index of an array of some shape."""
        index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
        parts = tuple([np.asarray(part) if isinstance(part, list) else part for part in index])
        selected = np.broadcast_to(False, shape)[parts].shape
        return self._intern(  # type: ignore[no-any-return]
            ("index", shape, constant_key(parts)), lambda: StaticIndex(parts, selected, lambda: _element_numbers(shape)[parts])
        )

    def _static_window(self, size: int, layout: dict[str, Any]) -> StaticIndex:
        """Return a strided window of an array of some size, whose layout is in bytes."""
        itemsize = layout["dtype"].itemsize
        parts = layout["shape"], tuple(s // itemsize for s in layout["strides"]), layout["offset"] // itemsize
        make = lambda: StaticIndex(parts, parts[0], lambda: array_api.window_positions(size, *parts))  # noqa: E731
        return self._intern(("window", size, *parts), make)  # type: ignore[no-any-return]

    def _index_parts(self, shape: tuple[int, ...], index: Sequence[Any]) -> list[Expression]:
        """Return the parts of an index; computed ones are checked and clipped to the range."""
        if not any(isinstance(part, Value) for part in index):
            return [self._static_index(shape, index)]
        parts: list[Any] = []
        for part in index:
            if part is None or part is Ellipsis or isinstance(part, slice) or np.asarray(_value_of(part)).dtype.kind != "b":
                parts.append(part)
            elif isinstance(part, Value) or not np.ndim(part):
                raise UnsupportedError(_MASK_ERROR)
            else:
                parts += np.nonzero(part)
        parts, lengths = array_api.expand_index(parts, len(shape)), iter(shape)
        return [self._unconverted_operand(part) if part is None else self._checked_index(part, next(lengths)) for part in parts]

    def _checked_index(self, index: Any, length: int) -> Expression:
        """Return the indices along an axis; computed ones are checked and clipped to the range."""
        if not isinstance(index, Value):
            return self._unconverted_operand(index)
        if index.dtype.kind == "b":
            raise UnsupportedError(_MASK_ERROR)
        indices = self._cast_operand(index, np.int64)
        self._add_condition(self._call(array_api.are_in_range, indices, length))
        return Call(self._xp.clip, (indices, -length, length - 1)) if length else indices

    def _indexing_operands(self, key: str, operands: Sequence[Any], options: dict[str, Any]) -> list[Expression]:
        """Return the operands of an indexing operation."""
        array, shape = self._operand(operands[0]), np.shape(_value_of(operands[0]))
        if key == "getitem":
            return [array, *self._index_parts(shape, operands[1:])]
        if options.get("mode", "raise") != "raise":
            return [array, self._unconverted_operand(operands[1])]
        axis = options.get("axis", None if key == "take" else -1)
        return [array, self._checked_index(operands[1], int(np.prod(shape)) if axis is None else shape[axis])]

    def _write_call(self, write: Write, root: Any, array: Expression, value: Expression) -> Call:
        """Return the contents of an array after a write."""
        parts = write.index if isinstance(write.index, tuple) else (write.index,)
        buffer, library = root.raw_value, self.library
        if not array_api.is_basic(parts) or not buffer.flags.c_contiguous:
            positions = _written_positions(write, root)
            index = self._intern(
                ("positions", constant_key(positions)), lambda: StaticIndex(positions, positions.shape, lambda: positions)
            )
            return Call(library.set_at_positions, (array, index, value))
        if write.window is buffer and all(not isinstance(part, slice) or (part.step or 1) > 0 for part in parts):
            return Call(library.set_item, (array, self._static_index(root.shape, parts), value))
        layout = layout_in(buffer, write.window[parts if Ellipsis in parts else (*parts, ...)])
        if layout["dtype"].itemsize != buffer.itemsize:
            raise UnsupportedError("a write into the real or imaginary part of an array is not supported; write complex numbers")
        return Call(library.set_window, (array, self._static_window(buffer.size, layout), value))

    # --------------------------------------------------------------------------------------------- operations

    def _operation(self, item: Any) -> Expression:
        """Return the expression of an operation; an output of a multi-output operation is converted to its dtype."""
        if not isinstance(item.function, ops.Output):
            return self._function_call(item)
        (outputs,) = item.args
        result = self._cast(Call(operator.getitem, (self._variables[outputs], item.function.index)), item.dtype)
        if operation_key(outputs.function) == "linalg_lstsq" and item.function.index == 2:
            self._add_condition(Call(operator.eq, (result, int(item.raw_value))))
        return result

    def _function_call(self, item: Any) -> Expression:
        """Return the call of the library's counterpart, with converted operands."""
        function, operands, options = item.function, list(item.args), dict(item.options)
        keyword_operands: dict[str, Any] = {}
        if isinstance(function, ops.Keyworded):
            count = len(operands) - len(function.names)
            keyword_operands, operands = function.keyword_values(tuple(operands[count:])), operands[:count]
            function = function.function
        is_packed = isinstance(function, ops.Packed)
        axes, dtype = None, options.get("dtype")
        if isinstance(function, ops.OnAxes):
            axes, dtype, function = function.operand_axes(len(operands)), _dtype_option(function), function.function
        while isinstance(function, (ops.Packed, ops.Configured)):
            if isinstance(function, ops.Configured):
                dtype = _dtype_option(function)
            function = function.function
        if isinstance(function, ops.UfuncMethod):
            function, keyword_operands = folded_ufunc(function), {"axis": 0} | keyword_operands
        key = operation_key(function)
        if key == "astype":
            return self._cast(self._operand(operands[0]), item.dtype)
        if function is window:
            return self._window(item, operands[0], options)
        if is_converted := function in ops.VALUE_DEPENDENT_DTYPES:
            function = self._real_or_complex_function(item, function, operands)
        if key == "scatter":
            arguments, options["index_counts"] = self._scatter_operands(operands, options["index_counts"], item.dtype)
            if self.library.scan and len(arguments) > 2 * MIN_TRIP_COUNT and {*options["index_counts"]} == {1}:
                return self._add_updates(item, arguments)
            arguments = [a.value if isinstance(a, StaticIndex) else a for a in arguments]
        elif is_converted and not isinstance(item, MultiOutput):
            arguments = [self._cast_operand(a, item.dtype) for a in operands]
        elif key in _INDEXING:
            return Call(
                counterpart(self.library, function),
                tuple(self._indexing_operands(key, operands, options)),
                self._options(item, key, keyword_operands, options),
            )
        else:
            dtypes = operand_dtypes(item, function, key, operands, dtype)
            is_unconverted: Callable[[int], bool] = _UNCONVERTED_OPERANDS.get(key, lambda k: False)
            arguments = [
                self._unconverted_operand(a) if is_unconverted(k) else None if a is None else self._cast_operand(a, dtypes[k])
                for k, a in enumerate(operands)
            ]
        arguments = [arguments] if is_packed else arguments
        call = Call(counterpart(self.library, function), tuple(arguments), self._options(item, key, keyword_operands, options))
        if axes is not None:
            call = self._call(array_api.call_on_axes, call.function, axes, function is np.vecdot, *call.args)._replace(
                options=call.options
            )
        if isinstance(item, MultiOutput) or isinstance(function, np.ufunc):
            return call
        return self._cast(call, item.dtype)

    def _options(self, item: Any, key: str, keyword_operands: dict[str, Any], options: dict[str, Any]) -> dict[str, Expression]:
        """Return the keyword arguments of a call: operands passed by keyword, and options with an effect."""
        if isinstance(keyword_operands.get("axis"), Value):
            raise UnsupportedError(f"{key}: an axis that is computed is not supported; pass an integer")
        counts = getattr(item.function, "counts", ())
        arguments = {
            name: self._unconverted_operand(value) if name in counts else self._keyword_operand(name, value, item)
            for name, value in keyword_operands.items()
        }
        ignored = _IGNORED_OPTIONS - {"order"} if key in _ORDER_MATTERS else _IGNORED_OPTIONS
        for name, value in options.items():
            if value is np._NoValue or name in ignored or (name in ("out", *_ARRAY_OPTIONS) and value is None):
                continue
            if name == "out":
                raise UnsupportedError(f"{key}: the option out is not supported")
            arguments[name] = self._keyword_operand(name, value, item) if name in _ARRAY_OPTIONS else value
        if key == "linalg_lstsq":
            arguments["rank"] = int(item.raw_value[2])
        return arguments

    def _keyword_operand(self, name: str, value: Any, item: Any) -> Expression:
        """Return an operand passed by keyword, such as a mask or the initial value of a sum."""
        if value is None or value is True:
            return value
        if name == "mean":
            return self._cast_operand(value, np.result_type(item.dtype, np.asarray(_value_of(value))))
        return self._cast_operand(value, bool if name == "where" else item.dtype)

    def _window(self, item: Any, array: Any, layout: dict[str, Any]) -> Call:
        """Return the elements of a strided window of an array."""
        buffer = np.asarray(_value_of(array))
        if (buffer.dtype.kind == "c") != (layout["dtype"].kind == "c"):
            raise UnsupportedError("a view of the real or imaginary parts of complex numbers is not supported")
        return Call(self.library.read_window, (self._operand(array), self._static_window(buffer.size, layout)))

    def _real_or_complex_function(self, item: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Return the function to call for one whose result is real or complex, depending on values; add a condition on these."""
        name, spec = function.__name__, ops.SPECS[function]
        names = spec.operands.split()
        operand = operands[names.index("x") if "x" in names else -1]
        if np.asarray(_value_of(operand)).dtype.kind == "c":
            return getattr(np, name, function)
        if spec.real_on == "unknown":
            raise UnsupportedError(f"{name}: whether the result is complex depends on values; convert the operand to complex")
        is_real = Call(_condition(self._xp, spec.real_on), (self._operand(operand),))
        self._add_condition(is_real if item.dtype.kind != "c" else Call(operator.invert, (is_real,)))
        return getattr(np, name)

    def _scatter_operands(
        self, operands: Sequence[Any], index_counts: Sequence[int], dtype: np.dtype[Any]
    ) -> tuple[list[Expression], tuple[int, ...]]:
        """Return the operands of `scatter`, and the number of parts of each complete index."""
        arguments, start = [self._operand(operands[0])], 1
        counts = []
        for count in index_counts:
            arguments.append(self._cast_operand(operands[start], dtype))
            parts = self._index_parts(np.shape(_value_of(operands[0])), operands[start + 1 : start + 1 + count])
            arguments += parts
            counts.append(len(parts))
            start += 1 + count
        return arguments, tuple(counts)

    def _add_updates(self, item: Any, arguments: Sequence[Expression]) -> Expression:
        """Return a sum of many updates of zeros: a step for each, which can become a loop."""
        total: Expression = Call(self._xp.zeros, (item.shape,), {"dtype": self.library.dtype(item.dtype)})
        for value, index in zip(arguments[1::2], arguments[2::2], strict=True):
            total = Call(self.library.add_item, (self._assign(total, item.dtype, item.shape), index, value))
        return total


@functools.cache
def _condition(xp: Any, condition: str) -> Callable[..., Any]:
    """Return the function of an array x: whether a condition, such as ``x >= 0``, holds for all elements."""
    return eval(f"lambda x: xp.all({condition})", {"xp": xp, "abs": xp.abs})  # type: ignore[no-any-return]


@functools.lru_cache(4)
def _element_numbers(shape: tuple[int, ...]) -> Any:
    """Return the positions of an array's elements in the flattened array."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def _dtype_option(ufunc: ops.Configured) -> Any:
    """Return the option ``dtype`` of a ufunc; raise an `UnsupportedError` for other options with an effect."""
    others = ufunc.options.keys() - {"dtype", "casting", "order", "subok", "axes", "axis", "keepdims"}
    if others:
        raise UnsupportedError(f"{ufunc.function.__name__}: the option {min(others)} is not supported")
    return ufunc.options.get("dtype")


def _value_of(operand: object) -> Any:
    return operand.raw_value if isinstance(operand, Value) else operand


def _written_positions(write: Write, root: Any) -> Any:
    """Return the positions of the written elements in the flattened root."""
    buffer = root.raw_value
    positions = np.empty_like(buffer, np.int64, subok=False)
    if positions.strides != tuple(s * 8 // buffer.itemsize for s in buffer.strides):
        raise UnsupportedError("a write into a view with gaps is not supported; copy it first: np.copy(a)")
    positions[...] = np.arange(buffer.size).reshape(buffer.shape)
    if write.window is not buffer:
        layout = layout_in(buffer, write.window)
        if layout["dtype"].itemsize != buffer.itemsize:
            raise UnsupportedError("a write into the real or imaginary part of an array is not supported; write complex numbers")
        strides = tuple(s * 8 // buffer.itemsize for s in layout["strides"])
        positions = window(positions, layout["shape"], positions.dtype, layout["offset"] * 8 // buffer.itemsize, strides)
    return np.array(positions[write.index])
