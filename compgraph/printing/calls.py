"""Python code for single steps of a graph: operations, writes into arrays, and allocations of buffers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import ops
from ..executor import CodeWriter
from ..graph import GraphNode
from ..ops import INFIX, PIECEWISE, PREFIX, Configured, Keyworded, OnAxes, Packed
from ..storage import Write, layout_in, owner_of, value_at
from ..values import MultiOutput, Value, freeze_operand
from .names import Names, is_number

# Array methods, with the default values of their options.
METHODS: dict[Any, tuple[str, dict[str, Any]]] = {
    ops.astype: ("astype", {"order": "K", "casting": "unsafe", "copy": True, "subok": True}),
    ops.view: ("view", {}),
    ops.copy: ("copy", {"order": "C"}),
    ops.flatten: ("flatten", {"order": "C"}),
}


class ListingWriter(CodeWriter):
    """The executor's code generator in the style of user code: operators, methods, keywords, and the user's names.

    Parameters
    ----------
    names : Names
        The names of the nodes.
    items : list of Node, MultiOutput and Write
        The steps.
    """

    names: Names

    def __init__(self, names: Names, items: list[Any]) -> None:
        super().__init__(names, items)
        self._views = {id(item.raw_value): item for item in items if isinstance(item, Value)}

    # ------------------------------------------------------------------------------------- operations

    def call(self, item: Any) -> str:
        """Return the code of an operation: ``np.tanh(v2)``."""
        function, options = item.function, dict(item.options)
        if function is ops.getitem:
            first, *index = [item.args[0], *map(freeze_operand, item.args[1:])]
            return f"{self.operand(first, item)}[{self.names.index(index[0] if len(index) == 1 else tuple(index))}]"
        if function is ops.einsum:
            subscripts = self.names.literal(options.pop("subscripts"))
            return self._format_call("np.einsum", [subscripts, *self._operands(item)], options)
        if isinstance(function, Packed):
            operands = "[" + ", ".join(self._operands(item)) + "]"
            return self._format_call(self.names.function(function.function), [operands], options)
        if isinstance(function, Keyworded):
            return self._format_keyword_call(item, function, options)
        if isinstance(function, OnAxes) and "axes" in function.options:
            options |= function.options | {"axes": list(function.options["axes"])}
            return self._format_call(self.names.function(function.function), self._operands(item), options)
        if isinstance(function, Configured):
            return self._format_call(self.names.function(function.function), self._operands(item), options | function.options)
        return self._format_positional_call(item, function, options)

    def _format_positional_call(self, item: object, function: Callable[..., Any], options: dict[str, Any]) -> str:
        """Return the code of an operator, a method, or a function with leading operands."""
        operands = self._operands(item)
        if function in INFIX and len(operands) == 2 and not options:
            first, second = operands
            return f"{f'({first})' if first[0] == '-' else first} {INFIX[function]} {second}"
        if function in PREFIX and len(operands) == 1 and not options:
            return PREFIX[function] + operands[0]
        if function in METHODS:
            (first, *rest), (name, defaults) = operands, METHODS[function]
            rest += [self.names.literal(options.pop("dtype"))] if "dtype" in options else []
            nondefault = {key: value for key, value in options.items() if key not in defaults or value != defaults[key]}
            return self._format_call(f"{first}.{name}", rest, nondefault)
        if function is ops.input_of or function is ops.stop_gradient:
            return self._format_call("np.copy", operands, {})
        if isinstance(function, ops.UfuncMethod):
            return self._format_call(f"{self.names.function(function.ufunc)}.{function.method}", operands, options)
        return self._format_call(self.names.function(function), operands, options)

    def _format_keyword_call(self, item: GraphNode, function: Keyworded, options: dict[str, Any]) -> str:
        """Return the code of a call whose last operands are passed as keywords."""
        num_positional = len(item.args) - len(function.names)
        keyword_values = function.keyword_values(tuple(map(freeze_operand, item.args[num_positional:])))
        positional = [self.operand(value, item) for value in item.args[:num_positional]]
        keywords = [f"{name}={self.operand(value, item)}" for name, value in keyword_values.items()]
        return self._format_call(self.names.function(function.function), [*positional, *keywords], options)

    def _format_call(self, function: str, operands: list[str], options: dict[str, Any]) -> str:
        """Return the code of a call; options with their default value are omitted."""
        if function.startswith("np."):
            self.names.bind_module("np")
        nondefault = _nondefault_options(function, options, self.names)
        keywords = [f"{name}={self.names.literal(value)}" for name, value in nondefault.items()]
        return f"{function}({', '.join([*operands, *keywords])})"

    def _operands(self, item: Any) -> list[str]:
        return [self.operand(operand, item) for operand in item.args]

    def operand(self, operand: object, item: object) -> str:
        """Return the code of an operand: its name, or a Python literal."""
        if isinstance(operand, (Value, MultiOutput)) and operand in self.names:
            return self.names[operand]
        value = operand.raw_value if isinstance(operand, Value) else freeze_operand(operand)
        if isinstance(operand, Value) and is_number(operand):
            value = np.asarray(value)[()]
        return self.names.literal(value, self._accepts_python_numbers(item))

    def _accepts_python_numbers(self, item: Any) -> bool:
        """Whether a Python number as operand gives the same result as a NumPy number of double precision."""
        if isinstance(item, Write):
            return False
        is_ufunc = isinstance(item.function, np.ufunc) or item.function is ops.power
        dtypes = {getattr(item, "dtype", None), *[a.dtype for a in item.args if isinstance(a, Value) and not is_number(a)]}
        return bool(is_ufunc and item.function not in PIECEWISE and dtypes <= {np.dtype(float), np.dtype(complex)})

    # ------------------------------------------------------------------------------------------ buffers

    def leaf(self, item: Any) -> str:
        """Return the name of a leaf, or the statement that allocates a buffer: ``v = np.zeros(3)``."""
        if item.kind != "buffer" and not item.memory:
            self.names.bindings[self.names[item]] = item.raw_value
            return self.names[item]
        return f"{self.names[item]} = {self._format_allocation(item)}"

    def _format_allocation(self, item: Any) -> str:
        initial_value = value_at(item, item.sequence_number) if item.memory else item.raw_value
        dtype = "" if item.dtype == np.float64 else f", {self.names.literal(item.dtype)}"
        shape = repr(item.shape[0] if item.ndim == 1 else item.shape)
        for name, number in (("zeros", 0), ("ones", 1)):
            if item.dtype.kind in "biufc" and np.array_equal(initial_value, np.full(item.shape, number, item.dtype)):
                self.names.bind_module("np")
                return f"np.{name}({shape}{dtype})"
        return f"{self.names.bind_array(np.array(initial_value))}.copy()"

    def target(self, write: Write) -> str:
        """Return the code of the written array: a node, or a part of the root."""
        root = self.roots[id(write.memory)]
        written_view = self._views.get(id(write.window))
        if written_view is not None and written_view.sequence_number <= write.sequence_number:
            return self.names[written_view]
        view_layout = layout_in(root.raw_value, write.window)
        index = as_slices(root.raw_value, view_layout) if owner_of(write.window) is owner_of(root.raw_value) else None
        if index is not None:
            return f"{self.names[root]}[{self.names.index(index)}]"
        return super().target(write)


def _nondefault_options(path: str, options: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return the options of a call that differ from the defaults."""
    if not options:
        return options
    try:
        function = names.object_at(path)
        parameters = inspect.signature(function).parameters if callable(function) else {}
    except ValueError:
        parameters = {}
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    return {
        name: value
        for name, value in options.items()
        if value is not ops.NO_VALUE and not (name in defaults and (value is defaults[name] or _is_equal(value, defaults[name])))
    }


def _is_equal(one: ArrayLike | DTypeLike | None, other: object) -> bool:
    return type(one) is type(other) and type(one) in (int, float, str, bool, tuple) and bool(one == other)


def as_slices(array: NDArray[Any], view_layout: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the slices and integers that select a window from an array, or None. `view_layout` is that of `layout_in`."""
    offset, byte_strides, lengths = view_layout["offset"], list(view_layout["strides"]), list(view_layout["shape"])
    if view_layout["dtype"] != array.dtype or 0 in lengths or any(stride <= 0 for stride in array.strides):
        return None
    if sorted(array.strides, reverse=True) != list(array.strides):
        return None
    index: list[Any] = []
    for length, stride in zip(array.shape, array.strides, strict=True):
        start, offset = divmod(offset, stride)
        is_sliced = bool(byte_strides) and byte_strides[0] > 0 and not byte_strides[0] % stride
        if is_sliced and start + (lengths[0] - 1) * (byte_strides[0] // stride) < length:
            step = byte_strides.pop(0) // stride
            stop = start + (lengths.pop(0) - 1) * step + 1
            index.append(slice(start or None, None if stop + step > length else stop, None if step == 1 else step))
        else:
            index.append(start)
    if offset or byte_strides or not all(type(i) is slice or i < n for i, n in zip(index, array.shape, strict=True)):
        return None
    return tuple(index) if layout_in(array, array[tuple(index)]) == view_layout else None
