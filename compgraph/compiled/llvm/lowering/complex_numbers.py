"""Lowering of complex numbers: each operation as steps on real and imaginary parts.

The steps of an expansion (see `complex_expansions`) are recorded, and lowered in turn. NumPy's fused multiplications round
differently, so ``exact=True`` calls NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops
from ....array_types import Array
from ....bind import bind
from ....context import rerecording
from ....executor import collect_dependencies
from ....storage import window
from ....values import Value, copy_location
from ..buffer_ir import BufferView, dense_view, element_dtype
from .complex_expansions import LIMITS, Parts, expansion_of, with_dtype
from .lowering_state import EXACT_BITS, VIEWS, LoweringState, view_of

# --------------------------------------------------------------------------------------------- views of parts


def is_complex(value: object) -> bool:
    """Return whether a node, array or number is complex, of a precision that is compiled."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind == "c" and element_dtype(value.dtype)[1] == 2
    return isinstance(value, complex)


def part_views(state: LoweringState, node: Any) -> tuple[BufferView, BufferView] | None:
    """Return the views of the real and the imaginary part of a complex node; None if it has no buffer."""
    if node in state.complex_parts:
        return state.complex_parts[node]
    view = state.views.get(node)
    return None if view is None else (view, imaginary_view(view))


def imaginary_view(view: BufferView) -> BufferView:
    """Return the view of the imaginary part of an array of complex numbers."""
    return view._replace(offset=view.offset + 1)


def with_part_axis(view: BufferView, dtype: np.dtype[Any]) -> BufferView:
    """Return the view of an array of a dtype; if that is complex, with both parts along a last axis."""
    return view._replace(shape=(*view.shape, 2), strides=(*view.strides, 1)) if element_dtype(dtype)[1] == 2 else view


def store_parts(state: LoweringState, parts: tuple[Any, Any], out: BufferView) -> None:
    """Append a copy of parts into an array of complex numbers."""
    for part, part_of_out in zip(parts, (out, imaginary_view(out)), strict=True):
        state.append_map("copy", (part,), part_of_out, is_write=True)


def stored_view(state: LoweringState, node: Any) -> BufferView | None:
    """Return the view of a node, whose parts are first stored as complex numbers."""
    if node not in state.views and node in state.complex_parts:
        out = state.views[node] = dense_view(node.raw_value.dtype, np.shape(node.raw_value), node)
        store_parts(state, state.complex_parts[node], out)
    return state.views.get(node)


def operand_parts(state: LoweringState, operand: Any) -> tuple[Any, Any] | None:
    """Return the parts of an operand as views or numbers; None if it has no buffer."""
    if isinstance(operand, Value) and is_complex(operand):
        return part_views(state, operand)
    parts = (state.operand(np.asarray(operand.real)), state.operand(np.asarray(operand.imag))) if is_complex(operand) else None
    if parts is None:
        parts = state.operand(operand), 0.0
    return None if parts[0] is None or parts[1] is None else parts


# --------------------------------------------------------------------------------------------- one item


def lower_complex(state: LoweringState, item: Any, lower_item: Callable[[Any], None]) -> str:
    """Append the steps of an item with complex values; return the reason if it is not supported."""
    if state.is_exact:
        return EXACT_BITS
    if _lower_view(state, item):
        return ""
    expand = expansion_of(item.function)
    if expand is None:
        return "it is not compiled for complex numbers"
    with rerecording(), np.errstate(all="ignore"):
        args = [_parts_of_operand(state, a) for a in item.args]
        out = None if any(a is None for a in args) else expand(*args, **item.options)
        if isinstance(out, Parts) != is_complex(item) or out is None:
            return "an operand or an option is not supported for complex numbers"
        dtype, _ = element_dtype(item.raw_value.dtype)
        parts = [with_dtype(part, dtype) for part in (out if isinstance(out, Parts) else (out,))]
    operands = {node for a in args for node in (a if isinstance(a, Parts) else (a,)) if isinstance(node, Value)}
    for a in args if item.function in LIMITS else ():
        _require_limits(state, a if isinstance(a, Parts) else Parts(a, 0.0), LIMITS[item.function])
    for step in collect_dependencies([part for part in parts if isinstance(part, Value)], stop=frozenset(operands)):
        if step not in operands:
            lower_item(copy_location(item, step))
    _register(state, item, [_view_of_part(state, part, dtype, operands) for part in parts])
    return ""


def _require_limits(state: LoweringState, z: Parts, limits: tuple[float | None, float | None]) -> None:
    """Append checks of the sizes of parts; nan fails them. NumPy computes the program if one fails."""
    for part, limit in zip(z, limits, strict=True):
        view = state.view(part)
        if view is None or view.buffer.dtype.kind != "f":
            continue
        largest = float(np.finfo(view.buffer.dtype).max)
        size = state.map_like("absolute", view, like=view)
        bound = 1e-2 * math.sqrt(largest) if limit is None else limit * math.log(largest)
        is_within = state.map_like("less_equal", size, bound, like=view, dtype=np.dtype(bool))
        state.append_map("require", (is_within,), dense_view(bool, view.shape))


def _parts_of_operand(state: LoweringState, operand: Any) -> Any:
    """Return nodes of the parts of a complex operand, with their views; a real operand unchanged; None without a view."""
    if not is_complex(operand):
        return None if isinstance(operand, Value) and state.view(operand) is None else operand
    if not isinstance(operand, Value):
        return Parts(operand.real, operand.imag)
    views = part_views(state, operand)
    if views is None:
        return None
    nodes = Parts(bind(np.real, (operand,)), bind(np.imag, (operand,)))
    state.views.update(zip(nodes, views, strict=True))
    return nodes


def _view_of_part(state: LoweringState, part: Array, dtype: np.dtype[Any], operands: set[Any]) -> BufferView:
    """Return the view of a computed part; copied if it is the view of an operand with writes."""
    view = state.views[part] if isinstance(part, Value) else state.view(np.asarray(part))
    assert view is not None
    return state.copy_of(view, dtype) if part in operands and state.is_mutable(view) else view


def _register(state: LoweringState, item: Any, views: list[BufferView]) -> None:
    """Make one view, or the views of two parts, the value of an item."""
    shape = np.shape(item.raw_value)
    views = [view.broadcast(shape) for view in views]
    if item.memory and len(views) == 2:
        store_parts(state, (views[0], views[1]), state.allocate_result(item))
    elif item.memory:
        state.append_map("copy", (views[0],), state.allocate_result(item), is_write=True)
    elif len(views) == 2:
        state.complex_parts[item] = views[0], views[1]
    else:
        state.views[item] = views[0]


def _lower_view(state: LoweringState, item: Any) -> bool:
    """Make a view of a complex array the value of an item; return False if it is not a view of one."""
    source = item.args[0]
    parts = part_views(state, source) if isinstance(source, Value) and is_complex(source) else None
    if parts is None:
        return False
    if item.function in (np.real, np.imag):
        view = parts[item.function is np.imag]
        state.assign_view(item, view, view)
        return True
    if item.function is not ops.getitem and item.function not in VIEWS:
        return False
    if item.function is window:
        window_view = None if source in state.complex_parts else view_of(item, parts[0])
        if window_view is not None:
            state.views[item] = window_view
        return window_view is not None
    if source in state.complex_parts:
        views = [view_of(item, part) for part in parts]
    else:  # strides in complex numbers
        whole = parts[0]._replace(offset=0, strides=tuple(s // 2 for s in parts[0].strides))
        whole_view = view_of(item, whole)
        views = [None if whole_view is None else _in_elements(whole_view, part.offset) for part in parts]
    if any(view is None or view.shape != np.shape(item.raw_value) for view in views):
        return False
    real_view, imag_view = views
    assert real_view is not None
    assert imag_view is not None
    if source in state.complex_parts:
        state.complex_parts[item] = real_view, imag_view
    elif state.is_shared(item) or not state.is_mutable(real_view):
        state.views[item] = real_view
    else:
        state.complex_parts[item] = (
            state.copy_of(real_view, real_view.buffer.dtype),
            state.copy_of(imag_view, imag_view.buffer.dtype),
        )
    return True


def _in_elements(view: BufferView, start: int) -> BufferView:
    """Convert a view whose offset and strides count complex numbers to a view that counts real elements."""
    return view._replace(offset=start + 2 * view.offset, strides=tuple(2 * s for s in view.strides))
