"""Conversion and validation of arguments, directions and results of operators, and errors for a lost graph."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compgraph.bind import stack_object_array
from compgraph.context import default_float, with_default_dtype
from compgraph.frames import warn_user
from compgraph.guards import format_leaks
from compgraph.interception import as_python_function
from compgraph.tracing import LeakWarning
from compgraph.values import ConstantNode, Value, describe, require_computed, require_history, unwrap_buffer

from .class_checks import unwrap_function


class LostGraphError(TypeError):
    """A differentiated function returned plain numbers after values had left the graph, so its derivative is unknown."""

    __module__ = "autodiff"  # the public name, in tracebacks


def as_argument(value: Any, name: str = "an argument", advice: str = "exclude it from argnums") -> Any:
    """Convert an argument of a differentiated function to a floating or complex array or node.

    Parameters
    ----------
    value : array_like or Node
        The argument. Python numbers become NumPy scalars; integers among them are converted to floats.
    name : str
        Its name, for messages.
    advice : str
        Advice for an array of integers.

    Raises
    ------
    TypeError
        For an array whose dtype is neither floating nor complex, a masked array or a matrix.
    """
    require_history(value)
    require_computed(value, name)
    require_array(value, name)
    array = value if isinstance(value, Value) else with_default_dtype(np.asarray(value), value)
    if array.dtype.kind in "fc":
        return array if isinstance(value, np.ndarray) or array.ndim else array[()]
    if array.dtype.kind in "biu" and isinstance(value, (bool, int, float)):
        return array.astype(default_float())[()]
    raise TypeError(f"{name} has dtype {array.dtype}, which is not differentiable. Convert it (x.astype(float)), or {advice}")


def require_function(operator: str, f: Any) -> Any:
    """Return the function to trace for the first argument of an operator; raise a TypeError if that is not a function."""
    if isinstance(f, Value):
        raise TypeError(
            f"{operator} takes a function, not the {describe(f)}. Use autodiff.gradient(node, wrt) for the derivatives of a node"
        )
    if not callable(f):
        raise TypeError(
            f"{operator} takes a function, not {reprlib.repr(f)} (a {type(f).__name__}). Pass the function without calling it"
        )
    return as_python_function(f)


def require_primals(operator: str, f: object, primals: Sequence[Any]) -> Any:
    """Return the function to trace; raise a TypeError unless an operator has a function and its arguments."""
    f = require_function(operator, f)
    if not primals:
        raise TypeError(f"{operator} takes the arguments of the function too. Write {operator}(f, x)")
    return f


def as_direction(value: ArrayLike, like: NDArray[Any], name: str, like_name: str) -> Any:
    """Convert a tangent or cotangent of `like` to an array or node; raise unless it has its shape, and is real if `like` is.

    `name` and `like_name` are the names of both, for messages.
    """
    direction = as_argument(value, name, "write its numbers as floats")
    if direction.shape != like.shape:
        raise ValueError(
            f"{name} has shape {direction.shape}, but {like_name} has shape {like.shape}. Pass an array of that shape"
        )
    if direction.dtype.kind == "c" and like.dtype.kind != "c":
        raise TypeError(
            f"{name} is complex, but {like_name} is real. Derivatives are linear: pass its real and imaginary parts separately"
        )
    return direction


def require_array(value: object, name: str) -> None:
    """Raise a TypeError for a masked array or a matrix, whose mask or operators would be lost."""
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        kind, is_masked = type(value).__name__, isinstance(value, np.ma.MaskedArray)
        advice = "value.filled(number), and the mask as another argument" if is_masked else "np.asarray(value)"
        raise TypeError(f"{name} is a {kind}, whose operators differ from those of an array. Pass {advice}")


def as_result(value: object) -> Any:
    """Return a leaf of a result; the node behind it, if it is a traced buffer or a labeled array of nodes."""
    data = None if isinstance(value, np.ndarray) else getattr(value, "data", None)
    return data if isinstance(data, Value) else unwrap_buffer(stack_object_array(value))


def as_constant(value: object, leaks: Sequence[object]) -> Any:
    """Convert a plain number or array to a constant node, whose derivative is zero.

    If values have left the graph, the result is unchanged, because its derivative may be lost.
    """
    if leaks or isinstance(value, Value) or not isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        return value
    array = with_default_dtype(np.asarray(value), value)
    if array.dtype.kind not in "biufc":
        return value
    array = array.astype(default_float() if array.dtype.kind in "biu" else array.dtype)
    node: Any = ConstantNode.wrap(array)
    node.raw_value = array if isinstance(value, np.ndarray) else array[()]
    return node


def split_aux(operator: str, result: object) -> tuple[Any, Any]:
    """Split the result of a function with ``has_aux=True`` into value and auxiliary data."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"{operator}: has_aux=True, but the function returned a {type(result).__name__}, not a pair (value, aux)")
    return result[0], result[1]


def warn_zero_derivative(operator: str, arguments: str, leaks: list[Any]) -> None:
    """Warn that a derivative is zero, probably because values left the graph."""
    warn_user(
        f"{operator}: the result does not depend on {arguments} by its graph, so the derivative is zero.{format_leaks(leaks)}",
        LeakWarning,
    )


def lost_graph_error(
    operator: str, out: object, leaks: Sequence[Any] = (), f: Callable[..., Any] | None = None, advice: str = ""
) -> TypeError:
    """Return the error for a function whose result is not a node: a `LostGraphError` if it is numeric.

    `advice` is a further sentence of the message.
    """
    advice = advice and f". {advice}"
    code = getattr(unwrap_function(f), "__code__", None)
    line = "" if code is None else f' (File "{code.co_filename}", line {code.co_firstlineno}, in {code.co_name})'
    if out is None:
        return TypeError(f"{operator}: the function returned None{line}{advice}. Does it lack a return statement?")
    kind = LostGraphError if isinstance(out, (np.ndarray, np.generic, bool, int, float, complex)) else TypeError
    return kind(
        f"{operator}: the function returned a plain {type(out).__name__}, whose dependence on the arguments was not "
        f"recorded{line}. Common causes, with replacements: plain[1:-1] = node (make the array by cg.zeros or "
        "np.zeros_like(node)), np.asarray(x) and np.array([x[0], ...]) (cg.asarray, cg.array), float(x), math.sin(x), and a "
        "function of SciPy without a derivative. Return cg.constant(value) if the result is a constant"
        f"{format_leaks(leaks, '. ')}{advice}"
    )
