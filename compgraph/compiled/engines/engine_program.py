"""Programs of other libraries: a schedule as one Python function over a library's namespace.

Arrays of these libraries are treated as immutable. A write creates a new array and rebinds the name of the old one. A view of a
written array is recomputed where it is read after the write. Shapes and dtypes are those of the trace, and the program makes
NumPy's dtype conversions explicit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...array_types import Operand
from ...executor import CodeWriter, GlobalNames, Schedule
from ...guards import EvaluationGuard, Guard, is_shape_guard
from ...storage import Write, layout_in, root_of, value_at, viewed_operand, window
from ...tracing import without_tracing
from ...values import MultiOutput, Value
from ..loops import MIN_TRIP_COUNT, constant_key
from . import array_api
from .array_api import UnsupportedError
from .engine_loops import LoopWriter, ValueType
from .libraries import Library, counterpart, operation_key

MAX_STATEMENTS = 20_000  # of one program, without repeated iterations of loops
_MAX_INLINE_SIZE = 16  # elements of the largest constant that is a global of the program instead of an argument

# Whether the operand at a position may be a NumPy index or integer; for `scatter` this follows from `index_counts`.
_PLAIN_OPERANDS: dict[str, Callable[[int], bool]] = {
    "bincount": lambda k: k == 0,
    **dict.fromkeys(("delete", "insert", "repeat", "roll", "tile"), lambda k: k == 1),
    **dict.fromkeys(("quantile", "percentile", "nanquantile", "nanpercentile"), lambda k: k == 1),
}
# Functions whose operands are not converted.
_UNCONVERTED = frozenset({"where", "argmax", "argmin", "count_nonzero", "astype", "real", "imag", "angle", "full_like"})
_IGNORED_OPTIONS = frozenset({"subok", "casting", "order", "kind", "copy", "optimize", "overwrite_input"})
# Operands that stay integers.
_CLASS_LABELS = frozenset({("softmax_cross_entropy", 1), ("_select_class", 1)})
_LAST_AXES = (-1, -2)
_ORDER_MATTERS = frozenset({"reshape", "ravel", "flatten", "unravel_index"})
_ARRAY_OPTIONS = frozenset({"mean", "where", "initial"})  # options that are arrays
_INDEXING = frozenset({"getitem", "take", "take_along_axis"})
_CONVERTS_TO_COMMON_DTYPE = frozenset({"searchsorted", "digitize", "isin", "isclose"})


def _folds(function: Callable[..., Any]) -> bool:
    """Return whether a function folds the elements of its operand, converted to the option `dtype`."""
    spec = ops.SPECS.get(function)
    return (spec is not None and spec.kind in ("reduction", "cumulative")) or function is np.trace


class EngineBackend:
    """Compiles schedules for a library; a `Backend` of the executor."""

    skipped_passes = frozenset({"fuse", "allocate"})

    def __init__(self, library: Library) -> None:
        self.library = library

    def __str__(self) -> str:
        return self.library.name

    def compile(self, schedule: Schedule) -> EngineProgram:
        """Return a program; raise a NotImplementedError that names the operation and the line if one has no counterpart."""
        return EngineProgram(schedule, self.library)


class Results(tuple[Any, ...]):
    """The outputs of a program, with a flag on the device: whether one of them contains nan."""

    has_nan: Any

    def __new__(cls, outputs: Iterable[Any], has_nan: object) -> Results:
        """Return the outputs with the flag."""
        instance = super().__new__(cls, outputs)
        instance.has_nan = has_nan
        return instance


class EngineProgram:
    """A function of a library's arrays; a `Program`.

    Attributes
    ----------
    source : str
        The Python source.
    run : callable
        ``run(*arrays)`` takes a library's arrays. It returns a tuple of the outputs, a tuple of the operands of guards, whether
        all conditions hold (None without conditions), and whether an output contains nan.
    guards : list of Guard
        The guards that each run checks.
    has_double_precision : bool
        Whether 64-bit floating-point numbers occur.
    has_conditions : bool
        Whether each run checks that computed indices are in range, or another condition on values.
    """

    numpy_calls = 0

    def __init__(self, schedule: Schedule, library: Library) -> None:
        dtypes = {np.asarray(item.raw_value).dtype.char for item in schedule.items if isinstance(item, Value)}
        self.has_double_precision = not dtypes.isdisjoint("dD")
        writer = _EngineWriter(schedule, library)
        self.source = writer.generate()
        self.guards, self.has_conditions, self._library = writer.guards, bool(writer.conditions), library
        objects = writer.names.objects
        exec(compile(self.source, f"<{library.name} program>", "exec"), objects)
        with library.context(), without_tracing():
            self._constants = [library.from_numpy(array) for array in writer.constants]
        run: Callable[..., Any] = objects["run"]
        self.run: Callable[..., Any] = lambda *arrays: run(*arrays, *self._constants)
        self._compiled = library.compile(run)

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the outputs: arrays of the library if an input is one, else NumPy arrays."""
        library = self._library
        with library.context(), without_tracing():  # otherwise NumPy's names in the library's code are patched within operators
            is_library_array = [library.is_array(value) for value in values]
            convert = library.from_numpy if any(is_library_array) else library.borrow  # results in NumPy's memory are awaited
            inputs = [v if is_array else convert(np.asarray(v)) for v, is_array in zip(values, is_library_array, strict=True)]
            outputs, guard_values, conditions_hold, has_nan = self._compiled(*inputs, *self._constants)
            if conditions_hold is not None and not bool(conditions_hold):
                raise IndexError("a computed index is out of range. Call the function without cg.jit, which names the line")
            if self.guards:
                self._check(guard_values)
            return Results(map(library.copy_result if any(is_library_array) else library.to_numpy, outputs), has_nan)

    def _check(self, guard_values: Sequence[Any]) -> None:
        remaining_values = iter(guard_values)
        for guard in self.guards:
            guard.check(*[self._library.to_numpy(next(remaining_values)) if isinstance(a, Value) else a for a in guard.args])


class _EngineWriter(CodeWriter):
    """Generates the source of a program.

    Attributes
    ----------
    constants : list of ndarray
        Arrays that are passed after the inputs.
    guards : list of Guard
        The guards of the program.
    conditions : list of str
        Names of the conditions of a run, each combined with the earlier ones.
    """

    names: GlobalNames

    def __init__(self, schedule: Schedule, library: Library) -> None:
        super().__init__(GlobalNames(), schedule.items)
        self._schedule, self._library, self._inputs = schedule, library, frozenset(schedule.inputs)
        self.constants: list[Any] = []
        self.guards: list[Guard] = []
        self.conditions: list[str] = []
        self._lines: list[str] = []
        self._guard_operands: list[str] = []  # operands of guards, as of the recorded decision
        self._writes: dict[Any, int] = {}  # by root, the number of writes so far
        self._writes_before: dict[Any, int] = {}  # by view, the number of writes before its last computation
        self._global_names: dict[Any, str] = {}  # by function, dtype or key of a constant
        self._types: dict[str, ValueType] = {}  # by name of a value
        self._arrays: dict[str, Any] = {}  # by name of a constant
        self._positions: dict[str, Callable[[], Any]] = {}  # by name of an index, its positions in the flattened array
        self.names.objects |= {"cast": library.cast, "xp": library.namespace, **library.loop_functions()}

    def generate(self) -> str:
        """Generate the source."""
        parameters = [self._define_input(node) for node in self._schedule.inputs]
        for item in self._schedule.items:
            if isinstance(item, Guard):
                if not isinstance(item, EvaluationGuard) and not is_shape_guard(item):
                    self._emit_guard_operands(item)
            elif item not in self._inputs:
                try:
                    line = self.statement(item)
                except UnsupportedError as error:
                    where = f" ({item.line})" if getattr(item, "line", None) else ""
                    raise NotImplementedError(f"{error}{where}") from error
                self._lines += [line] if line else []
        outputs = [self.operand(node, None) for node in self._schedule.outputs]
        results, lines = [*outputs, *self._guard_operands, *self.conditions[-1:]], self._lines
        if self._library.has_loops:
            loops = LoopWriter(self._types, self._arrays, self._positions, self._add_constant, self.names.bind)
            lines, results = loops.write(parameters, lines, results)
        if len(lines) > MAX_STATEMENTS:
            raise NotImplementedError(
                f"the program has {len(lines)} operations (at most {MAX_STATEMENTS}), because {self._library.name} repeats no "
                "iterations of such loops; make the loop shorter, or vectorize it"
            )
        outputs, guard_operands = results[: len(outputs)], results[len(outputs) : len(outputs) + len(self._guard_operands)]
        floats = [o for o, node in zip(outputs, self._schedule.outputs, strict=True) if node.dtype.kind in "fc"]
        has_nan = " | ".join(f"xp.any(xp.isnan({o}))" for o in floats) or "False"
        tuples = (f"({''.join(f'{name}, ' for name in names)})" for names in (outputs, guard_operands))
        last = f"return {', '.join(tuples)}, {results[-1] if self.conditions else None}, {has_nan}"
        parameters += [f"c{k}" for k in range(len(self.constants))]
        return "\n    ".join([f"def run({', '.join(parameters)}):", *lines, last]) + "\n"

    def _define_input(self, node: Any) -> str:
        name = self.names.define(node)
        self._types[name] = _type_of(node)
        return name

    def _emit_guard_operands(self, guard: Guard) -> None:
        """Return the operands of a guard from the program, with their values before later writes."""
        self.guards.append(guard)
        for operand in guard.args:
            if isinstance(operand, Value):
                self._guard_operands.append(f"g{len(self._guard_operands)}")
                self._types[self._guard_operands[-1]] = _type_of(operand)
                self._lines.append(f"{self._guard_operands[-1]} = {self.operand(operand, None)}")

    def _add_condition(self, condition: str) -> None:
        """Add a condition that each run checks."""
        name = f"r{len(self.conditions)}"
        self._types[name] = ValueType("bool", ())
        self._lines.append(f"{name} = {' & '.join([*self.conditions[-1:], f'({condition})'])}")
        self.conditions.append(name)

    # ---------------------------------------------------------------------------------------------- operands

    def operand(self, operand: object, item: object) -> str:
        """Return the source of an operand; an outdated view of a written array is recomputed first."""
        if isinstance(operand, Value):
            self._refresh_view(operand)
        if isinstance(operand, (Value, MultiOutput)):
            return self.names[operand]
        return self._constant(np.asarray(operand))

    def _refresh_view(self, node: object) -> None:
        root = root_of(node)
        if root is node or not root.memory or node in self._inputs or viewed_operand(node) is None:
            return
        if self._writes_before.get(node, 0) < self._writes.get(root, 0):
            self._lines.append(f"{self.names[node]} = {self.operation(node)}")
            self._writes_before[node] = self._writes[root]

    def _constant(self, value: Operand, dtype: np.dtype[Any] | None = None) -> str:
        """Return the source of a plain array or number as an array of the library."""
        array = np.asarray(value, dtype)
        if array.dtype.kind not in "biufc":
            raise UnsupportedError(f"an operand of dtype {array.dtype}")
        if array.size > 1 and array.tobytes() == array.size * array.ravel()[:1].tobytes():
            number = self._constant(array.ravel()[0])
            return f"xp.broadcast_to({number}, {array.shape})"
        if array.size <= _MAX_INLINE_SIZE:
            key = "constant", array.dtype, array.shape, array.tobytes()
            if key not in self._global_names:
                with self._library.context(), without_tracing():
                    self._global_names[key] = name = self.names.bind(self._library.from_numpy(array), "k")
                self._arrays[name] = array
            return self._global_names[key]
        return self._add_constant(array)

    def _add_constant(self, array: Any) -> str:
        """Return the source of an array that is an argument of the program."""
        self.constants.append(array)
        name = f"c{len(self.constants) - 1}"
        self._arrays[name] = array
        return name

    def _cast_operand(self, operand: Any, dtype: Any) -> str:
        """Return the source of an operand, converted to a dtype."""
        if not isinstance(operand, Value):
            with np.errstate(all="ignore"):
                return self._constant(operand, dtype)
        name = self.operand(operand, None)
        return name if operand.dtype == dtype else f"cast({name}, {self._dtype(dtype)})"

    def _dtype(self, dtype: np.dtype[Any]) -> str:
        self._library.dtype(dtype)
        return self._bind_once(np.dtype(dtype), np.dtype(dtype).name)

    def _bind_once(self, value: np.dtype[Any] | Callable[..., Any], preferred: str) -> str:
        """Bind a function or a dtype to one global name, and return the name."""
        if value not in self._global_names:
            number = f"_{len(self._global_names)}" if preferred in self.names.objects else ""
            self._global_names[value] = name = f"{preferred.strip('_')}{number}"
            self.names.objects[name] = value
        return self._global_names[value]

    def _bind_plain(self, operand: object) -> str:
        """Return the source of an operand that may be a NumPy index or integer, which is not converted."""
        if isinstance(operand, Value):
            return self.operand(operand, None)
        if isinstance(operand, (np.integer, np.bool_)):
            operand = operand.item()
        return self._bind_object(np.asarray(operand) if isinstance(operand, list) else operand, "o")

    def _bind_object(self, value: object, prefix: str, *key: object) -> str:
        """Bind an object to one global name, and return the name."""
        key = (prefix, *key, constant_key(value))
        if key not in self._global_names:
            self._global_names[key] = self.names.bind(value, prefix)
        return self._global_names[key]

    def _bind_index(self, shape: tuple[int, ...], index: Sequence[Any]) -> str:
        """Return the source of a plain index of an array, as one tuple."""
        index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
        parts = tuple([np.asarray(part) if isinstance(part, list) else part for part in index])
        name = self._bind_object(parts, "i", shape)
        self._positions[name] = lambda: _element_numbers(shape)[parts]
        return name

    def _bind_window(self, value: object, size: int, lengths: Any, strides: Any, offset: int) -> str:
        """Return the source of the description of a strided window, in elements of an array of some size."""
        key = "window", size, repr(value)  # equal windows have one name, by which loops recognize them
        if key not in self._global_names:
            self._global_names[key] = self.names.bind(value, "i")
        name = self._global_names[key]
        self._positions[name] = lambda: array_api.window_positions(size, lengths, strides, offset)
        return name

    def _indices(self, shape: tuple[int, ...], index: Sequence[Any]) -> list[str]:
        """Return the sources of the parts of an index; computed ones are checked and clipped to the range."""
        if not any(isinstance(part, Value) for part in index):
            return [self._bind_index(shape, index)]
        parts: list[Any] = []
        for part in index:
            if part is None or part is Ellipsis or isinstance(part, slice) or np.asarray(_value_of(part)).dtype.kind != "b":
                parts.append(part)
            elif isinstance(part, Value) or not np.ndim(part):
                raise UnsupportedError("the length of x[mask] depends on values; use np.where(mask, x, 0)")
            else:
                parts += np.nonzero(part)
        parts, lengths = array_api.expand_index(parts, len(shape)), iter(shape)
        return [self._bind_plain(part) if part is None else self._checked_index(part, next(lengths)) for part in parts]

    def _index_sources(self, key: str, operands: Sequence[Any], options: dict[str, Any]) -> list[str]:
        """Return the sources of the indices of an indexing operation."""
        shape = np.shape(_value_of(operands[0]))
        if key == "getitem":
            return self._indices(shape, operands[1:])
        if options.get("mode", "raise") != "raise":
            return [self._bind_plain(operands[1])]
        axis = options.get("axis", None if key == "take" else -1)
        return [self._checked_index(operands[1], int(np.prod(shape)) if axis is None else shape[axis])]

    def _checked_index(self, index: Any, length: int) -> str:
        """Return the source of the indices along an axis; computed ones are checked and clipped to the range."""
        if not isinstance(index, Value):
            return self._bind_plain(index)
        if index.dtype.kind == "b":
            raise UnsupportedError("the length of x[mask] depends on values; use np.where(mask, x, 0)")
        name = self._cast_operand(index, np.int64)
        self._add_condition(f"xp.all(({name} >= {-length}) & ({name} < {length}))")
        return f"xp.clip({name}, {-length}, {length - 1})" if length else name

    # --------------------------------------------------------------------------------------------- statements

    def leaf(self, item: Any) -> str:
        """Return the definition of a constant."""
        constant = self._constant(value_at(item, item.sequence_number) if item.memory else item.raw_value)
        return f"{self.names.define(item)} = {constant}"

    def statement(self, item: object) -> str:
        """Return the statement of an item; for a write, the rebinding of the array's name."""
        if not isinstance(item, Write):
            self._writes_before[item] = self._writes.get(root_of(item), 0) if isinstance(item, Value) and item.args else 0
            statement = super().statement(item)
            self._types[self.names[item]] = _type_of(item)
            return statement
        root = self.roots[id(item.memory)]
        name, value = self.names[root], self._cast_operand(item.args[0], root.dtype)
        self._writes[root] = self._writes.get(root, 0) + 1
        parts = item.index if isinstance(item.index, tuple) else (item.index,)
        if not array_api.is_basic(parts) or not root.raw_value.flags.c_contiguous:
            set_at_positions = self._bind_once(self._library.set_at_positions, "set_at_positions")
            positions = _written_positions(item, root)
            index = self._bind_object(positions, "i")
            self._positions[index] = lambda: positions
            return f"{name} = {set_at_positions}({name}, {index}, {value})"
        if item.window is root.raw_value and all(not isinstance(part, slice) or (part.step or 1) > 0 for part in parts):
            set_item = self._bind_once(self._library.set_item, "set_item")
            return f"{name} = {set_item}({name}, {self._bind_index(root.shape, parts)}, {value})"
        set_window = self._bind_once(self._library.set_window, "set_window")
        written = _written_window(item, root)
        return f"{name} = {set_window}({name}, *{self._bind_window(written, root.raw_value.size, *written)}, {value})"

    def operation(self, item: Any) -> str:
        """Return the expression of an operation; of one output of several, converted to its dtype."""
        if isinstance(item.function, ops.Output):
            expression = f"cast({super().operation(item)}, {self._dtype(item.dtype)})"
            if operation_key(item.args[0].function) == "linalg_lstsq" and item.function.index == 2:
                self._add_condition(f"{expression} == {int(item.raw_value)}")
            return expression
        return self.call(item)

    def call(self, item: Any) -> str:
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
            function, keyword_operands = _reduction_of(function), {"axis": 0} | keyword_operands
        key = operation_key(function)
        if is_converted := function in ops.VALUE_DEPENDENT_DTYPES:
            function = self._real_or_complex_function(item, function, operands)
        if key == "astype":
            return f"cast({self.operand(operands[0], item)}, {self._dtype(item.dtype)})"
        if key == "scatter":
            sources, options["index_counts"] = self._scatter_operands(operands, options["index_counts"], item.dtype)
            if self._library.has_loops and len(sources) > 2 * MIN_TRIP_COUNT and {*options["index_counts"]} == {1}:
                return self._add_updates(item, sources)
        elif function is window:
            sources, shape, itemsize = (
                [self.operand(operands[0], item)],
                np.shape(_value_of(operands[0])),
                options["dtype"].itemsize,
            )
            strides, offset = tuple(s // itemsize for s in options["strides"]), options["offset"] // itemsize
            sources.append(f"**{self._bind_window(options, int(np.prod(shape)), options['shape'], strides, offset)}")
            options = {}
        elif is_converted and not isinstance(item, MultiOutput):
            sources = [self._cast_operand(a, item.dtype) for a in operands]
        else:
            sources = self._operands(item, function, key, operands, dtype, options | keyword_operands)
        if axes is not None:
            sources = [
                self._move_axes(source, axes_of_operand, _LAST_AXES[: len(axes_of_operand)][::-1])
                for source, axes_of_operand in zip(sources, axes, strict=False)
            ]
        arguments = [f"[{', '.join(sources)}]"] if is_packed else sources
        library_function = counterpart(self._library, function)
        arguments += self._option_arguments(item, key, keyword_operands, options)
        name = self._bind_once(library_function, f"np_{key}")
        expression = f"{name}({', '.join(arguments)})"
        if axes is not None and (inner := axes[len(operands)]):
            if function is np.vecdot:  # NumPy keeps the axis
                expression = f"{expression}[..., None]"
            return self._move_axes(expression, _LAST_AXES[: len(inner)][::-1], inner)
        if isinstance(item, MultiOutput) or isinstance(function, np.ufunc):
            return expression
        return f"cast({expression}, {self._dtype(item.dtype)})"

    def _option_arguments(self, item: Any, key: str, keyword_operands: dict[str, Any], options: dict[str, Any]) -> list[str]:
        """Return the sources of the keyword arguments of a call: operands passed by keyword, and options with an effect."""
        if isinstance(keyword_operands.get("axis"), Value):
            raise UnsupportedError(f"{key}: an axis that is computed")
        counts = getattr(item.function, "counts", ())
        arguments = [
            f"{name}={self._bind_plain(value) if name in counts else self._keyword_operand(name, value, item)}"
            for name, value in keyword_operands.items()
        ]
        dropped = _IGNORED_OPTIONS - {"order"} if key in _ORDER_MATTERS else _IGNORED_OPTIONS
        for name, value in options.items():
            if value is np._NoValue or name in dropped or (name in ("out", *_ARRAY_OPTIONS) and value is None):
                continue
            if name == "out":
                raise UnsupportedError(f"{key}: the option out")
            source = self._keyword_operand(name, value, item) if name in _ARRAY_OPTIONS else self._bind_object(value, "o")
            arguments.append(f"{name}={source}")
        if key == "linalg_lstsq":
            arguments.append(f"rank={int(item.raw_value[2])}")
        return arguments

    def _operands(
        self,
        item: Any,
        function: Callable[..., Any],
        key: str,
        operands: Sequence[Any],
        dtype: np.dtype[Any] | None,
        options: dict[str, Any],
    ) -> list[str]:
        """Return the sources of the operands, in the dtypes that NumPy converts them to."""
        if isinstance(function, np.ufunc) and function.signature is None:
            types = [_promotion_type(a) for a in operands]
            dtype_options: dict[str, Any] = {}
            if dtype is not None:
                dtype_options = {"signature": (None,) * function.nin + (np.dtype(dtype),) * function.nout, "casting": "unsafe"}
            loop = function.resolve_dtypes((*types, *(None,) * function.nout), **dtype_options)
            return [self._cast_operand(a, dtype) for a, dtype in zip(operands, loop[: function.nin], strict=True)]
        if key in _INDEXING:
            return [self.operand(operands[0], item), *self._index_sources(key, operands, options)]
        is_plain: Callable[[int], bool] = _PLAIN_OPERANDS.get(key, lambda k: False)
        if key in _CONVERTS_TO_COMMON_DTYPE:
            common = np.result_type(*[a if isinstance(a, (int, float)) else np.asarray(_value_of(a)).dtype for a in operands[:2]])
            return [self._cast_operand(a, common) for a in operands[:2]] + [self._bind_plain(a) for a in operands[2:]]
        sources = []
        for k, operand in enumerate(operands):
            if is_plain(k):
                sources.append(self._bind_plain(operand))
            elif operand is None:
                sources.append("None")
            elif not k and dtype is not None and _folds(function):  # NumPy converts, then folds
                sources.append(self._cast_operand(operand, dtype))
            else:
                sources.append(self._cast_operand(operand, self._dtype_of(item, key, k, operand)))
        return sources

    @staticmethod
    def _dtype_of(item: Any, key: str, position: int, operand: object) -> Any:
        """Return the dtype to which NumPy converts an operand of a function that is not a ufunc."""
        operand_dtype = np.asarray(_value_of(operand)).dtype
        if isinstance(item, MultiOutput):
            result_dtype = np.result_type(*item.raw_value)
            are_floats = key.startswith("linalg") or all(np.asarray(x).dtype.kind in "fc" for x in item.raw_value)
            return np.result_type(operand_dtype, result_dtype) if are_floats and operand_dtype.kind in "biu" else operand_dtype
        result_dtype = item.dtype
        if result_dtype.kind == "b":
            return operand_dtype
        if (key, position) in _CLASS_LABELS and operand_dtype.kind in "iu":
            return operand_dtype
        if key == "where":
            return np.dtype(bool) if position == 0 else result_dtype
        if key in _UNCONVERTED or (result_dtype.kind in "biu" and operand_dtype.kind not in "biu"):
            return operand_dtype
        if result_dtype.kind == "c" and operand_dtype.kind != "c":
            return np.dtype(f"f{result_dtype.itemsize // 2}") if key.startswith("fft") else result_dtype
        return operand_dtype if operand_dtype.kind == "c" and result_dtype.kind != "c" else result_dtype

    def _move_axes(self, source: str, axes: tuple[int, ...], to: tuple[int, ...]) -> str:
        """Return the source of an array with some axes moved."""
        if tuple(axes) == tuple(to):
            return source
        move = self._bind_once(array_api.moveaxis, "moveaxis")
        return f"{move}(xp, {source}, {tuple(axes)}, {tuple(to)})"

    def _real_or_complex_function(self, item: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Return the function to call for one whose result is real or complex, depending on values; add a condition on these."""
        name, spec = function.__name__, ops.SPECS[function]
        names = spec.operands.split()
        operand = operands[names.index("x") if "x" in names else -1]
        if np.asarray(_value_of(operand)).dtype.kind == "c":
            return getattr(np, name, function)
        if spec.real_on == "unknown":
            raise UnsupportedError(f"{name}: whether the result is complex depends on values; convert the operand to complex")
        condition = spec.real_on.replace("x", "{}").replace("abs", "xp.abs").format(self.operand(operand, None))
        is_real = item.dtype.kind != "c"
        self._add_condition(f"{'' if is_real else '~'}xp.all({condition})")
        return getattr(np, name)

    def _keyword_operand(self, name: str, value: object, item: Any) -> str:
        """Return the source of an operand passed by keyword, such as a mask or the initial value of a sum."""
        if value is None or value is True:
            return repr(value)
        if name == "mean":
            return self._cast_operand(value, np.result_type(item.dtype, np.asarray(_value_of(value))))
        return self._cast_operand(value, bool if name == "where" else item.dtype)

    def _scatter_operands(
        self, operands: Sequence[Any], index_counts: Sequence[int], dtype: np.dtype[Any]
    ) -> tuple[list[str], tuple[int, ...]]:
        """Return the sources of the operands of `scatter`, and the number of parts of each complete index."""
        sources, start = [self.operand(operands[0], None)], 1
        counts = []
        for count in index_counts:
            sources.append(self._cast_operand(operands[start], dtype))
            parts = self._indices(np.shape(_value_of(operands[0])), operands[start + 1 : start + 1 + count])
            sources += parts
            counts.append(len(parts))
            start += 1 + count
        return sources, tuple(counts)

    def _add_updates(self, item: Any, sources: Sequence[str]) -> str:
        """Return the source of a sum of many updates of zeros: a statement for each, which can become a loop."""
        name, add_item = self.names[item], self._bind_once(self._library.add_item, "add_item")
        self._lines.append(f"{name} = xp.zeros({item.shape}, {self._dtype(item.dtype)})")
        updates = [f"{add_item}({name}, {index}, {value})" for value, index in zip(sources[1::2], sources[2::2], strict=True)]
        self._lines += [f"{name} = {update}" for update in updates[:-1]]
        return updates[-1]


def _type_of(item: Any) -> ValueType:
    """Return the type of an item's variable."""
    return ValueType("tuple", ()) if isinstance(item, MultiOutput) else ValueType(item.dtype.name, item.shape)


@functools.lru_cache(4)
def _element_numbers(shape: tuple[int, ...]) -> Any:
    """Return the positions of an array's elements in the flattened array."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def _promotion_type(operand: object) -> Any:
    """Return the dtype of an operand; for a Python number its class, because NumPy promotes it weakly."""
    if hasattr(operand, "dtype"):
        return operand.dtype
    return type(operand) if type(operand) in (int, float, complex) else np.asarray(operand).dtype


def _dtype_option(ufunc: ops.Configured) -> Any:
    """Return the option ``dtype`` of a ufunc; raise an `UnsupportedError` for other options with an effect."""
    others = ufunc.options.keys() - {"dtype", "casting", "order", "subok", "axes", "axis", "keepdims"}
    if others:
        raise UnsupportedError(f"{ufunc.function.__name__}: the option {min(others)}")
    return ufunc.options.get("dtype")


def _value_of(operand: object) -> Any:
    return operand.raw_value if isinstance(operand, Value) else operand


def _reduction_of(function: Any) -> Any:
    """Return the reduction that a method of a ufunc computes: ``np.sum`` for ``np.add.reduce``."""
    fold = ops.FOLDS.get((function.ufunc, function.method))
    if fold is None:
        raise UnsupportedError(f"{function.__name__}")
    return fold


def _written_window(write: Write, root: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the lengths, strides and offset of the written elements in the root, in elements."""
    parts = write.index if isinstance(write.index, tuple) else (write.index,)
    written = write.window[parts if Ellipsis in parts else (*parts, ...)]
    size, layout = root.raw_value.itemsize, layout_in(root.raw_value, written)
    if written.itemsize != size:
        raise UnsupportedError("a write into the real or imaginary part of an array; write complex numbers")
    return layout["shape"], tuple(s // size for s in layout["strides"]), layout["offset"] // size


def _written_positions(write: Write, root: Any) -> Any:
    """Return the positions of the written elements in the flattened root."""
    whole = root.raw_value
    positions = np.empty_like(whole, np.int64, subok=False)
    if positions.strides != tuple(s * 8 // whole.itemsize for s in whole.strides):
        raise UnsupportedError("a write into a view with gaps; copy it first: np.copy(a)")
    positions[...] = np.arange(whole.size).reshape(whole.shape)
    if write.window is not whole:
        layout = layout_in(whole, write.window)
        if layout["dtype"].itemsize != whole.itemsize:
            raise UnsupportedError("a write into the real or imaginary part of an array; write complex numbers")
        strides = tuple(s * 8 // whole.itemsize for s in layout["strides"])
        positions = window(positions, layout["shape"], positions.dtype, layout["offset"] * 8 // whole.itemsize, strides)
    return np.array(positions[write.index])


@functools.cache
def backend_of(library: Library) -> EngineBackend:
    """Return the backend of a library."""
    return EngineBackend(library)
