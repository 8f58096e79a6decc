"""Lowering of schedules: each graph item becomes steps, a view of a buffer, or a NumPy call."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .... import ops
from ....array_types import Array
from ....context import rerecording
from ....executor import Schedule, collect_dependencies, require_shape
from ....guards import Guard, is_shape_guard
from ....storage import Write, layout_in, value_at
from ....values import MultiOutput, Value, VariableNode, copy_location
from .. import elementwise_ops
from ..buffer_ir import Buffer, BufferView, NumPyCall, c_strides, dense_view, element_dtype
from . import (
    array_assembly,
    complex_numbers,
    gather_scatter,
    linear_algebra,
    masked_ops,
    reductions,
    sliding_windows,
    special_functions,
)
from .expansions import INEXACT_EXPANSIONS, INEXACT_OUTPUT_EXPANSIONS, expansion_of
from .linear_algebra import append_matmul
from .lowering_state import (
    EXACT_BITS,
    UNSUPPORTED,
    VIEWS,
    LoweringState,
    basic_index_view,
    casts_like_numpy,
    operands_and_options,
    view_of,
)

LowerItem = Callable[[LoweringState, Any], str]
_CONVOLUTIONS = {
    "cross_correlate": sliding_windows.lower_cross_correlate,
    "conv": sliding_windows.lower_conv,
    "cross_correlate_back": sliding_windows.lower_input_gradient,
    "cross_correlate_kernel": sliding_windows.lower_kernel_gradient,
}
_POOLING = {
    "max_pool": sliding_windows.lower_max_pool,
    "max_pool_back": sliding_windows.lower_max_pool_gradient,
    "max_pool_along": sliding_windows.lower_max_pool_tangent,
    "mean_pool": sliding_windows.lower_mean_pool,
    "mean_pool_back": sliding_windows.lower_mean_pool_gradient,
}

LOWERINGS: dict[Any, LowerItem] = {
    **gather_scatter.LOWERINGS,
    **array_assembly.LOWERINGS,
    **reductions.LOWERINGS,
    **masked_ops.LOWERINGS,
    **special_functions.LOWERINGS,
    **linear_algebra.LOWERINGS,
    **{ops.function_by_opname(name): lower for name, lower in {**_CONVOLUTIONS, **_POOLING}.items()},
}
_NODE_KEYWORDS = masked_ops.NODE_KEYWORDS | special_functions.NODE_KEYWORDS
_KEYWORD_LOWERINGS: dict[Any, LowerItem] = {**masked_ops.KEYWORD_LOWERINGS, **special_functions.KEYWORD_LOWERINGS}
# Functions of derivatives, by their recorded names.
NAMED_LOWERINGS: dict[str, LowerItem] = {**gather_scatter.NAMED_LOWERINGS, **array_assembly.NAMED_LOWERINGS}


def lowering_of(function: object) -> LowerItem | None:
    """Return the function that appends the steps of items of a function, or None."""
    if isinstance(function, ops.Keyworded):
        is_supported = _NODE_KEYWORDS.issuperset(function.names)  # an axis that is a node may differ between runs
        return _KEYWORD_LOWERINGS.get(function.function) if is_supported else None
    if isinstance(function, ops.Packed):
        return array_assembly.PACKED_LOWERINGS.get(function.function)
    lowering = LOWERINGS.get(function)
    name = getattr(function, "__name__", "")
    if lowering is None and name in NAMED_LOWERINGS and ops.function_by_opname(name) is function:
        return NAMED_LOWERINGS[name]
    return lowering


NOT_COMPILED = "it is not compiled; use elementwise operations, reductions and products, or call it outside of loops"
_ALIASES = {"conjugate": "copy", "fabs": "absolute", "float_power": "power"}  # on real numbers
_OUTPUT_NAMES = {np.divmod: ("floor_divide", "remainder")}  # the elementwise operation of each output
_CHUNK = 2**13  # elements compared at once
_CONSTANT_POWERS = {2.0: "square", 1.0: "copy", -1.0: "reciprocal"}  # exponents


def _with_layout_of(dtype: np.dtype[Any], array: Array) -> BufferView:
    """Return a new array with the axis order in memory of another one (NumPy's order "K")."""
    view = dense_view(dtype, np.shape(array))
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return view
    strides = np.empty_like(array, dtype, subok=False).strides
    return BufferView(view.buffer, 0, view.shape, tuple(s // view.buffer.dtype.itemsize for s in strides))


def _uniform_value(array: NDArray[Any], view: BufferView) -> Any:
    """Return the number that all elements of an array equal, otherwise its view."""
    numbers = np.asarray(array).ravel("K")
    if not numbers.size:
        return view
    first = numbers[0].tobytes()
    for start in (0, *range(1, numbers.size, _CHUNK)):  # the first two separately, because most arrays differ there
        part = numbers[start : start + (_CHUNK if start else 2)]
        if part.tobytes() != part.size * first:
            return view
    return numbers[0]


def _elementwise_name(function: Callable[..., Any]) -> str:
    """Return the name under which an elementwise function is compiled; empty if it is not."""
    spec = ops.spec_of(function)
    return "" if spec is None or function is not spec.function else _ALIASES.get(spec.lowering, spec.lowering)


def _opname_of(item: Any) -> str:
    return str(getattr(item, "opname", "") or getattr(item.function, "__name__", "a function"))


class GraphLowering(LoweringState):
    """Lowers a schedule.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    is_exact : bool
        Whether only operations with NumPy's bits are compiled.
    """

    def __init__(self, schedule: Schedule, is_exact: bool = False) -> None:
        super().__init__(schedule.inputs, is_exact)
        self._schedule = schedule
        self._roots = {id(item.memory): item for item in schedule.items if isinstance(item, Value) and item.memory}
        self._readers: defaultdict[MultiOutput, list[Any]] = defaultdict(list)
        for item in schedule.items:
            for operand in item.args:
                if type(operand) is MultiOutput:
                    self._readers[operand].append(item)
        for item in schedule.items:
            self._lower_item(item)

    def lower_results(self) -> list[tuple[BufferView | None, Any]]:
        """Return for each output its view, or None if NumPy computes it, and its node; append the copies that results need."""
        results: list[tuple[BufferView | None, Any]] = []
        result_buffers: set[Buffer] = set()
        for node in self._schedule.outputs:
            view = complex_numbers.stored_view(self, node)
            if view is not None and not elementwise_ops.is_compilable(view.buffer.dtype):
                raise NotImplementedError(f"a result has the unsupported dtype {view.buffer.dtype}")
            if view is not None:
                copy = _with_layout_of(np.asarray(node.raw_value).dtype, node.raw_value)
                has_layout = view.strides == copy.strides and view.buffer.size == copy.buffer.size and not view.offset
                is_shared = view.buffer.is_external or view.buffer.is_numpy_result or view.buffer in result_buffers
                if not has_layout or is_shared or self.is_mutable(view):
                    if complex_numbers.is_complex(node):
                        complex_numbers.store_parts(self, (view, complex_numbers.imaginary_view(view)), copy)
                    else:
                        self.append_map("copy", (view,), copy)
                    view = copy
                result_buffers.add(view.buffer)
            results.append((view, node))
        return results

    # ------------------------------------------------------------------------------------------ one item

    def _lower_item(self, item: Any) -> None:
        cls = type(item)
        if cls is Write:
            self._lower_write(item)
        elif issubclass(cls, Guard):
            if not self._holds_always(item) and not self._lower_guard(item):
                self._append_numpy_call(item, "")
        elif cls is MultiOutput:
            if not self._lower_outputs(item):
                self._append_numpy_call(item, "it has several outputs")
        elif item in self._inputs:
            self._lower_leaf(item, item.raw_value)
        elif not item.args:
            self._lower_leaf(item, value_at(item, item.sequence_number) if item.memory else item.raw_value)
        else:
            reason = self._lower_operation(item)
            if reason:
                self._append_numpy_call(item, reason)
            self._append_checks(item)

    def _holds_always(self, guard: Guard) -> bool:
        """Return whether a guard depends only on shapes that are fixed or checked, and holds."""
        if guard.function is None or not is_shape_guard(guard) or not all(map(self._has_known_shape, guard.args)):
            return False
        return bool(guard.function(*[np.broadcast_to(False, np.shape(a.raw_value)) for a in guard.args]) == guard.recorded)

    def _lower_guard(self, guard: Guard) -> bool:
        """Append the check of a guard on one number; return False if Python must check it. NumPy decides after a failed check."""
        if type(guard) is not Guard or guard.function not in (bool, int, operator.index) or len(guard.args) != 1:
            return False
        view = self.view(guard.args[0])
        if view is None or prod(view.shape) != 1 or not -(2**53) < guard.recorded < 2**53:
            return False
        number, dtype = BufferView(view.buffer, view.offset, (), ()), view.buffer.dtype
        if guard.function is int and dtype.kind == "f":
            truncated = dense_view(dtype, ())
            self.append_map("trunc", (number,), truncated)
            number = truncated
        holds = dense_view(bool, ())
        if guard.function is bool and dtype.kind == "b" and guard.recorded:
            holds = number
        elif guard.function is bool and dtype.kind == "b":
            self.append_map("logical_not", (number,), holds)
        elif guard.function is bool:
            self.append_map("not_equal" if guard.recorded else "equal", (number, 0), holds, dtype)
        elif dtype.kind == "f" or casts_like_numpy(guard.recorded, dtype):
            self.append_map("equal", (number, guard.recorded), holds, dtype)
        else:
            return False
        self.append_map("require", (holds,), dense_view(bool, ()))
        return True

    def _has_known_shape(self, item: object) -> bool:
        """Return whether an item has the shape of its view in every run."""
        view = self.views.get(item) or next(iter(self.complex_parts.get(item, ())), None)
        if view is None or not view.buffer.is_numpy_result:
            return view is not None
        return any(require is require_shape for require, _ in self._schedule.checks.get(item, ()))

    def _lower_leaf(self, item: Any, value: Any) -> None:
        dtype = np.asarray(value).dtype
        if item.memory and not elementwise_ops.is_compilable(element_dtype(dtype)[0]):
            raise NotImplementedError(f"writes into an array of {dtype} are not compiled")
        view = self.external(np.asarray(item.raw_value if item in self._inputs else value), item)
        if item in self._inputs:
            self.inputs[item] = view
        if item.memory:  # it will be written into
            out = self.views[item] = dense_view(dtype, view.shape, item)
            contents: Any = _uniform_value(value, view) if self._has_constant_contents(item) else view
            if dtype.kind == "c":
                parts = (contents, complex_numbers.imaginary_view(view)) if contents is view else (contents.real, contents.imag)
                complex_numbers.store_parts(self, parts, out)
            else:
                self.append_map("copy", (contents,), out)
        else:
            self.views[item] = view

    def _has_constant_contents(self, item: object) -> bool:
        """Return whether an array has the same contents before each run; variables may be set in between."""
        return not isinstance(item, VariableNode) and item not in self._inputs

    def _lower_operation(self, item: Any) -> str:
        """Append the steps of an item; return the reason if it is not supported."""
        value, function = item.raw_value, item.function
        if isinstance(function, ops.Output):
            if item in self.views:
                return ""
            return "it is one of several outputs"
        if any(map(complex_numbers.is_complex, (item, *item.args))):
            return complex_numbers.lower_complex(self, item, self._lower_item)
        if not elementwise_ops.is_compilable(np.asarray(value).dtype):
            return f"the dtype {value.dtype} is not supported"
        if function in VIEWS or function is ops.getitem:
            return self._lower_view(item)
        if function in (np.matmul, ops.stacked_matmul) or (function is ops.NUMPY.dot and max(map(np.ndim, item.args)) < 3):
            return self._lower_product(item, [self.view(a) for a in item.args])
        if type(function) is ops.Configured and function.options.keys() == {"dtype"} and value.dtype.kind == "f":
            function = function.function
        if function is ops.astype or (name := _elementwise_name(function)):
            name = "copy" if function is ops.astype else name
            return self._lower_elementwise(item, function, name, [self.operand(a) for a in item.args])
        if function in (ops.copy, np.copy, ops.input_of, ops.copy_with_layout, ops.flatten):
            return self._lower_copy(item, self.view(item.args[0]))
        if function in ops.FILL_VALUES or function in ops.BLANK_FUNCTIONS:
            self.views[item] = view = dense_view(value.dtype, value.shape, item)
            self.append_map("copy", (bool(ops.FILL_VALUES.get(function)),), view)
            return ""
        lowering = lowering_of(function)
        if lowering is not None:
            return lowering(self, item)
        expand = expansion_of(function, self.is_exact)
        if expand is None and function in INEXACT_EXPANSIONS:
            return EXACT_BITS
        return NOT_COMPILED if expand is None else self._lower_expansion(item, expand)

    # ------------------------------------------------------------------------------------------ kinds of items

    def _lower_outputs(self, item: MultiOutput) -> bool:
        """Lower the outputs of an elementwise function, or of `slogdet`; return False if that is unsupported."""
        names, readers = _OUTPUT_NAMES.get(item.function), self._readers[item]
        if not all(isinstance(reader.function, ops.Output) for reader in readers):
            return False
        if item.function is np.linalg.slogdet:
            return linear_algebra.lower_slogdet(self, item, readers)
        if names is None:
            return self._lower_expanded_outputs(item, readers)
        operands = [self.operand(a) for a in item.args]
        for reader in readers:
            if self._lower_elementwise(reader, item.function, names[reader.function.index], operands):
                return False
        return True

    def _lower_expansion(self, item: Any, expand: Callable[..., Any]) -> str:
        """Lower an item by equivalent steps, which are recorded from its arguments."""
        if not all(self.view(a) is not None for a in item.args if isinstance(a, Value)):
            return UNSUPPORTED
        with rerecording(), np.errstate(all="ignore"):
            out = expand(*item.args, **item.options)
        if not isinstance(out, Value) or out.raw_value.dtype != item.raw_value.dtype:
            return NOT_COMPILED
        self._lower_steps(item, [out])
        self._assign(item, out)
        return ""

    def _lower_expanded_outputs(self, item: MultiOutput, readers: Sequence[Any]) -> bool:
        """Lower the outputs of a function as equivalent steps; return False if that is unsupported."""
        args, options = operands_and_options(item)
        function = item.function.function if isinstance(item.function, ops.Keyworded) else item.function
        expand = None if self.is_exact else INEXACT_OUTPUT_EXPANSIONS.get(function)
        if expand is None or not all(self.view(a) is not None for a in item.args if isinstance(a, Value)):
            return False
        with rerecording(), np.errstate(all="ignore"):
            outputs = expand(item.raw_value, *args, **options)
        if outputs is None or any(out.dtype != each.dtype for out, each in zip(outputs, item.raw_value, strict=True)):
            return False
        outputs = [outputs[reader.function.index] for reader in readers]
        self._lower_steps(item, [out for out in outputs if isinstance(out, Value)])
        for reader, out in zip(readers, outputs, strict=True):
            self._assign(reader, out)
        return True

    def _lower_steps(self, item: Any, results: Sequence[Any]) -> None:
        """Lower the steps that compute nodes from the operands of an item."""
        operands = frozenset(a for a in item.args if isinstance(a, Value))
        for step in collect_dependencies(results, stop=operands):
            if step not in operands:
                self._lower_item(copy_location(item, step))

    def _assign(self, item: Any, out: Any) -> None:
        """Make a node whose steps were lowered, or an array, the value of an item."""
        view = self.view(out)
        assert view is not None
        if item.memory:
            self.append_map("copy", (view,), self.allocate_result(item), is_write=True)
        else:
            self.views[item] = view

    def _lower_view(self, item: Any) -> str:
        if isinstance(item.args[0], Value) and (source := self.views.get(item.args[0])) is not None:
            view = view_of(item, source)
            is_supported = elementwise_ops.is_compilable(source.buffer.dtype)
            if view is not None and is_supported and view.shape == np.shape(item.raw_value):
                self.assign_view(item, source, view)
                return ""
        return (
            gather_scatter.lower_getitem(self, item)
            if item.function is ops.getitem
            else array_assembly.lower_reshape_copy(self, item)
        )

    def _lower_copy(self, item: Any, source: object) -> str:
        if not isinstance(source, BufferView):
            return UNSUPPORTED
        out = dense_view(source.buffer.dtype, np.shape(item.raw_value), item)
        if source.shape != out.shape:  # flatten
            if not source.is_dense or item.options.get("order", "C") != "C":
                return NOT_COMPILED
            source = BufferView(source.buffer, source.offset, out.shape, out.strides)
        if not item.memory and not self.is_mutable(source):  # without writes, the copy can share the buffer
            self.views[item] = source
            return ""
        self.views[item] = out
        self.append_map("copy", (source,), out)
        return ""

    def _lower_elementwise(self, item: Any, function: object, name: str, operands: list[Any]) -> str:
        dtype = np.asarray(item.raw_value).dtype
        operands = operands[:1] if function is ops.astype else operands
        if any(o is None for o in operands) or (item.options and function is not ops.astype):
            return UNSUPPORTED
        if function is ops.astype and not set(item.options) <= {"dtype", "order", "casting", "copy"}:
            return UNSUPPORTED
        if name == "relu":
            name, operands = "maximum", [*operands, 0]
        compute_dtype = self._compute_dtype(name, operands, dtype)
        if (
            name == "power"
            and not isinstance(operands[1], BufferView)
            and float(operands[1]) in _CONSTANT_POWERS
            and (compute_dtype.kind == "f" or (compute_dtype.kind in "iu" and operands[1] > 0))
        ):
            name, operands = _CONSTANT_POWERS[float(operands[1])], operands[:1]
        elif name == "power" and not isinstance(operands[1], BufferView) and compute_dtype.kind == "f" and operands[1] == 0:
            name, operands = "copy", [1.0]  # also for nan
        if any(type(o) is int and not casts_like_numpy(o, compute_dtype) for o in operands):
            return f"a number is out of the range of {compute_dtype}"
        if not elementwise_ops.is_compilable(compute_dtype) or not elementwise_ops.can_compute(name, compute_dtype):
            return f"{name} of {compute_dtype} is not compiled"
        if self.is_exact and name not in elementwise_ops.EXACT:
            return EXACT_BITS
        self.views[item] = out = dense_view(dtype, np.shape(item.raw_value), item)
        self.append_map(name, operands, out, compute_dtype)
        return ""

    @staticmethod
    def _compute_dtype(name: str, operands: Sequence[Any], dtype: np.dtype[Any]) -> Any:
        """Return the dtype to which NumPy converts the operands of an operation."""
        types = [o.buffer.dtype if isinstance(o, BufferView) else o for o in operands]
        types = [k.dtype if isinstance(k, np.generic) else k for k in types]
        if name == "copy":
            return types[0] if isinstance(types[0], np.dtype) else np.result_type(types[0])
        if name == "where":
            return dtype
        if dtype.kind == "b":
            common_dtype = np.result_type(*types)
            if common_dtype.kind == "f" and all(isinstance(k, np.dtype) and k.kind in "iu" for k in types):
                return np.dtype(object)  # int64 with uint64, which NumPy compares exactly, is not compiled
            return np.dtype(bool) if name.startswith("logical_") else common_dtype
        return dtype

    def _lower_product(self, item: Any, operands: list[Any]) -> str:
        """Lower a product of matrices or stacks of matrices."""
        dtype, shape = np.asarray(item.raw_value).dtype, np.shape(item.raw_value)
        if not all(isinstance(o, BufferView) and o.shape for o in operands) or item.options:
            return UNSUPPORTED
        if dtype.kind != "f" or self.is_exact:
            return f"{item.opname} of {dtype} is not compiled"
        if item.function is ops.NUMPY.dot and any(prod(o.shape) == 1 for o in operands):
            return linear_algebra.append_scaling(self, item, operands)
        a, b = (o if o.buffer.dtype == dtype else self.copy_of(o, dtype) for o in operands)
        a = a if len(a.shape) > 1 else BufferView(a.buffer, a.offset, (1, *a.shape), (0, *a.strides))
        b = b if len(b.shape) > 1 else BufferView(b.buffer, b.offset, (*b.shape, 1), (*b.strides, 0))
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        self.views[item] = view = dense_view(dtype, shape, item)
        full_shape = (*stack, a.shape[-2], b.shape[-1])
        out = BufferView(view.buffer, 0, full_shape, c_strides(full_shape))
        if 0 in (*full_shape, a.shape[-1]):
            self.append_map("copy", (0.0,), view)
            return ""
        append_matmul(self, a, b, out)
        return ""

    def _lower_write(self, item: Write) -> None:
        written_view = self._written_view(item, self._roots[id(item.memory)])
        pairs = [(self.operand(item.args[0]), written_view)]
        if complex_numbers.is_complex(item.window):
            parts = complex_numbers.operand_parts(self, item.args[0]) or (None, None)
            pairs = list(zip(parts, (written_view, complex_numbers.imaginary_view(written_view)), strict=True))
        if not all(self._append_write(value, view, item.index) for value, view in pairs):
            self._append_call(item, item.args, "it writes with array indices", written_view, item.window.dtype)

    def _append_write(self, value: Any, written_view: BufferView, index: Any) -> bool:
        """Append ``written_view[index] = value``; return False if NumPy must do it."""
        target = basic_index_view(written_view, index if isinstance(index, tuple) else (index,))
        if target is None:
            return gather_scatter.lower_fancy_write(self, written_view, index, value)
        if value is None or not casts_like_numpy(value, written_view.buffer.dtype):
            return False
        value_dtype = value.buffer.dtype if isinstance(value, BufferView) else written_view.buffer.dtype
        if 0 in target.shape:
            return True
        if isinstance(value, BufferView):
            extra = len(value.shape) - len(target.shape)
            value = BufferView(value.buffer, value.offset, value.shape[max(extra, 0) :], value.strides[max(extra, 0) :])
            if value.buffer is target.buffer and value.broadcast(target.shape) != target:  # they may overlap
                value = self.copy_of(value, value_dtype)
        self.append_map("copy", (value,), target, value_dtype, is_write=True)
        return True

    def _written_view(self, item: Write, root: Any) -> BufferView:
        """Return the part of an array that a write is relative to."""
        root_view = self.views[root]
        if item.window is root.raw_value:
            return root_view
        view, size = layout_in(root.raw_value, item.window), root_view.buffer.dtype.itemsize
        has_dtype = element_dtype(view["dtype"])[0] == root_view.buffer.dtype
        if not root.raw_value.flags.c_contiguous or not has_dtype or view["offset"] % size:
            raise NotImplementedError("an array that is not in C order is written into; write into np.ascontiguousarray of it")
        strides = tuple(s // size for s in view["strides"])
        return BufferView(root_view.buffer, root_view.offset + view["offset"] // size, view["shape"], strides)

    # ------------------------------------------------------------------------------------------ steps

    def _append_numpy_call(self, item: Any, reason: str) -> None:
        """Append a NumPy call for an item."""
        out, dtype = None, None
        operands = [a for a in item.args if isinstance(a, Value)]
        may_share = isinstance(item, MultiOutput) or (isinstance(item, Value) and self.is_shared(item))
        if may_share and any(a in self.views and self.is_mutable(self.views[a]) for a in operands):
            raise NotImplementedError(f"{_opname_of(item)} may return a view of an array with writes")
        if isinstance(item, Value):
            if item.memory:
                raise NotImplementedError(f"{item.opname} is not compiled, and its result is written into")
            dtype = np.asarray(item.raw_value).dtype
            if elementwise_ops.is_compilable(element_dtype(dtype)[0]):
                out = self.views[item] = dense_view(dtype, np.shape(item.raw_value), item)
                out.buffer.is_numpy_result = True
        self._append_call(item, operands, reason, out, dtype)

    def _append_call(
        self,
        item: Any,
        operands: Sequence[Any],
        reason: str,
        out: BufferView | None = None,
        dtype: np.dtype[Any] | None = None,
        checks: Sequence[Any] = (),
    ) -> None:
        """Append a NumPy call with the views of its operands, and of an array of a dtype that it writes into."""
        views = {a: view for a in operands if isinstance(a, Value) and (view := complex_numbers.stored_view(self, a)) is not None}
        dtypes = {a: np.asarray(a.raw_value).dtype for a in views}
        call_views = {a: complex_numbers.with_part_axis(view, dtypes[a]) for a, view in views.items()}
        if out is not None and dtype is not None:
            out, dtypes[item] = complex_numbers.with_part_axis(out, dtype), dtype
        self.steps.append(NumPyCall(item, call_views, out, reason, list(checks), dtypes))

    def _append_checks(self, item: object) -> None:
        """Add the runtime checks of a result; fixed shapes need none."""
        checks = self._schedule.checks.get(item, ())
        last = self.steps[-1] if self.steps else None
        if not checks:
            return
        if isinstance(last, NumPyCall) and last.item is item:
            last.checks += checks
            return
        value_checks = [check for check in checks if check[0] is not require_shape]  # shapes of compiled results are fixed
        if value_checks:
            self._append_call(item, [item], "", checks=value_checks)
