"""What an argument and a direction must be, and what is said where the graph was lost between arguments and result."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.bind import stack_object_array
from compgraph.context import default_float, with_default_dtype
from compgraph.frames import source_lines
from compgraph.guards import format_leaks
from compgraph.values import ConstantNode, Value, require_computed, require_history, unwrap_buffer

from .asked import function_of

_asarray = np.asarray  # NumPy's own function: the name is exchanged later, see `compgraph.interception`


class LostGraphError(TypeError):
    """A differentiated function returned plain numbers after values had left the graph, so its derivative is unknown."""

    __module__ = "autodiff"  # as users know it, in a traceback


def as_direction(value: Any, like: Any, name: str, of: str) -> Any:
    """A tangent or an adjoint of a value: an array or node of its shape, and real if that is."""
    found = as_argument(value, name, "write its numbers as floats")
    if found.shape != like.shape:
        raise ValueError(f"{name} has shape {found.shape}, {of} {like.shape}")
    if found.dtype.kind == "c" and like.dtype.kind != "c":
        raise TypeError(f"{name} is complex, {of} real; derivatives are linear: give its real and imaginary parts one by one")
    return found


def as_argument(value: Any, name: str = "an argument", instead: str = "leave it out of argnums") -> Any:
    """An argument of a differentiated function: a floating or complex array or node; of a number, NumPy's scalar."""
    require_history(value)
    require_computed(value, name)
    require_array(value, name)
    array = value if isinstance(value, Value) else with_default_dtype(_asarray(value), value)
    if array.dtype.kind in "fc":
        return array if isinstance(value, np.ndarray) or array.ndim else array[()]
    if array.dtype.kind in "biu" and isinstance(value, (bool, int, float)):
        return array.astype(default_float())[()]
    raise TypeError(f"{name} of dtype {array.dtype} has no derivatives; convert it (x.astype(float)), or {instead}")


def require_array(value: Any, name: str) -> None:
    """Raise a TypeError for a masked array or a matrix, whose mask or operators would be lost."""
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        kind, is_masked = type(value).__name__, isinstance(value, np.ma.MaskedArray)
        instead = "value.filled(number), and the mask beside it" if is_masked else "np.asarray(value)"
        raise TypeError(f"{name} is a {kind}, whose operators differ from those of an array; pass {instead}")


def as_result(value: Any) -> Any:
    """What a function returned: of arrays that nodes were written into, and of labelled ones (xarray's), the node."""
    data = None if isinstance(value, np.ndarray) else getattr(value, "data", None)
    return data if isinstance(data, Value) else unwrap_buffer(stack_object_array(value))


def as_constant(value: Any, escapes: Any) -> Any:
    """A plain result as a constant node with zero derivative; unchanged if values left the graph, or if it is not a number."""
    if escapes or isinstance(value, Value) or not isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        return value
    array = with_default_dtype(np.asarray(value), value)
    if array.dtype.kind not in "biufc":
        return value
    array = array.astype(default_float() if array.dtype.kind in "biu" else array.dtype)
    node: Any = ConstantNode.hold(array)
    node.raw_value = array if isinstance(value, np.ndarray) else array[()]
    return node


def warn_of_zeros(operator: str, arguments: str, escapes: Any) -> None:
    """Say that a derivative is zero because values left the graph, as it seems."""
    source_lines.warn_at(
        source_lines.user_frame(2),
        f"{operator}: the result does not depend on {arguments} by its graph, so the derivative is zero.{format_leaks(escapes)}",
    )


def lost_graph(operator: str, out: Any, escapes: Any = (), f: Any = None, advice: str = "") -> TypeError:
    """The error to raise for a function whose result is no node: a `LostGraphError` if it holds numbers."""
    code = getattr(function_of(f), "__code__", None)
    place = "" if code is None else f' (File "{code.co_filename}", line {code.co_firstlineno}, in {code.co_name})'
    if out is None:
        return TypeError(f"{operator}: the function returned None; it lacks a return statement{place}{advice}")
    kind = LostGraphError if isinstance(out, (np.ndarray, np.generic, bool, int, float, complex)) else TypeError
    return kind(
        f"{operator}: the function returned a plain {type(out).__name__}, which does not remember how it depends on the "
        f"arguments{place}: the graph was lost on the way. Usual causes are plain[1:-1] = node (make the array by cg.zeros or "
        "np.zeros_like(node)), a function of SciPy other than its special ufuncs, np.asarray(x), np.array([x[0], ...]) (use "
        "cg.asarray, cg.array), float(x) and math.sin(x). "
        f"A constant result after such a conversion is returned as cg.constant(value){format_leaks(escapes, '. ')}{advice}"
    )
