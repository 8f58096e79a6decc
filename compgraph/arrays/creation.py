"""Functions for nodes that create arrays or require a memory layout; NumPy's own would convert nodes and lose the graph.

Without a node among their arguments `array` and `full` return a writable node, as `zeros` does; the others return NumPy's result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import ops
from ..bind import bind
from ..context import default_float, is_recording, with_default_dtype, wrappers
from ..graph import stack_nested
from ..guards import note_layout
from ..interpreters import inert_leaf
from ..values import Value, new_fillable_leaf, require_computed, require_history


def array(object: Any, dtype: DTypeLike | None = None, *, copy: bool | None = True, order: str = "K", ndmin: int = 0) -> Any:
    """``numpy.array`` of nodes, or of nested sequences with nodes in them.

    Parameters
    ----------
    object : array_like
        A node, an array, or nested lists and tuples of numbers and nodes of equal shapes.
    dtype : dtype, optional
        The dtype of the result; that of the elements by default.
    copy : bool, None or np._CopyMode
        As in NumPy: True copies, None copies if needed, False raises where a copy is needed. A copy of a node is another node.
    order : {"K", "A", "C", "F"}
        The memory layout of the result.
    ndmin : int
        The least number of dimensions; axes are added in front.

    Returns
    -------
    Node
        If no node is among the elements: a node without operands, to be written into; under `no_graph` a plain array.

    Raises
    ------
    ValueError
        If a copy is needed and not allowed.

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable([1.0, 2.0], "x")
    >>> y = cg.array([x[0] * x[1], 5.0])
    >>> print(y, gradient(y)["x"])
    [2. 5.] [2. 1.]
    """
    node = stack_nested(object)
    if not isinstance(node, Value):
        require_computed(object, "the argument of array")
        numpy_array = np.array(object, dtype=dtype, copy=copy, order=order, ndmin=ndmin)  # type: ignore[call-overload]
        return as_fillable(numpy_array if dtype is not None else with_default_dtype(numpy_array, object))
    node = _convert_node(node, object, dtype, copy, order)
    return node[(None,) * (ndmin - node.ndim)] if ndmin > node.ndim else node


def _convert_node(node: Any, source: object, dtype: DTypeLike | None, copy: Any, order: str) -> Any:
    """Convert a node, which was stacked from `source`, to the requested dtype and memory layout, and copy it as requested."""
    copy_option = ops.resolve_copy_option(copy)
    require_history(node)
    if node.is_scalar:  # NumPy returns a 0-d array for a number, which can be written into
        node = np.copy(node)
    elif copy_option and node is source:
        node = bind(ops.copy, (node,), {"order": order})
    result = _with_order(_cast(node, dtype), order)
    if copy_option is False and result is not source:
        raise ValueError("Unable to avoid copy while creating an array as requested: pass copy=None to copy only if needed")
    return result


def asarray(a: Any, dtype: DTypeLike | None = None, order: Any = None, *, copy: Any = None) -> Any:
    """``numpy.asarray`` that keeps nodes, also within lists; a node of the right dtype is returned as it is.

    Parameters
    ----------
    a : array_like
        A node, an array, or nested sequences of numbers and nodes.
    dtype : dtype, optional
        The dtype of the result.
    order : {"K", "A", "C", "F"}, optional
        The memory layout of the result.
    copy : bool, None or np._CopyMode, optional
        As for `array`; by default only if needed.

    Returns
    -------
    array or Node

    Raises
    ------
    ValueError
        If a copy is needed and not allowed.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(2.0)
    >>> cg.asarray(x) is x
    True
    """
    node = stack_nested(a)
    if not isinstance(node, Value):
        numpy_asarray: Any = np.asarray
        return numpy_asarray(a, dtype=dtype, order=order, copy=copy)
    return _convert_node(node, a, dtype, copy, order or "K")


def asanyarray(a: Any, dtype: DTypeLike | None = None, order: Any = None, *, copy: Any = None) -> Any:
    """`asarray`; without a node, ``numpy.asanyarray``, which returns subclasses of arrays unchanged.

    Parameters
    ----------
    a, dtype, order, copy
        As for `asarray`.

    Returns
    -------
    array or Node

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.asanyarray([cg.variable(2.0), 1.0]).opname
    'stack'
    """
    node = stack_nested(a)
    if isinstance(node, Value):
        return _convert_node(node, a, dtype, copy, order or "K")
    numpy_asanyarray: Any = np.asanyarray
    return numpy_asanyarray(a, dtype=dtype, order=order, copy=copy)


def asarray_chkfinite(a: object, dtype: DTypeLike | None = None, order: str | None = None) -> Any:
    """`asarray`, but values that are not finite raise a ValueError.

    Parameters
    ----------
    a, dtype, order
        As for `asarray`.

    Returns
    -------
    array or Node

    Raises
    ------
    ValueError
        If an element is infinite or nan.

    Examples
    --------
    >>> import compgraph as cg
    >>> print(cg.asarray_chkfinite([cg.variable(2.0), 1.0]))
    [2. 1.]
    """
    result = asarray(a, dtype, order)
    np.asarray_chkfinite(result.raw_value if isinstance(result, Value) else result)
    return result


def full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None, order: str = "C") -> Any:
    """``numpy.full``, whose value may be a node.

    Parameters
    ----------
    shape : int or tuple of int
        The shape of the result.
    fill_value : array_like or Node
        The value of the elements; it broadcasts to `shape`.
    dtype : dtype, optional
        The dtype of the result; that of the value by default.
    order : {"C", "F"}
        The memory layout of the result.

    Returns
    -------
    array or Node

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable(2.0, "x")
    >>> float(gradient(cg.full((2, 3), x))["x"])
    6.0
    """
    node = stack_nested(fill_value)
    if not isinstance(node, Value):
        numpy_array = np.full(shape, fill_value, dtype, order)  # type: ignore[call-overload]
        return as_fillable(numpy_array if dtype is not None else with_default_dtype(numpy_array, fill_value))
    return bind(ops.copy, (np.broadcast_to(_cast(node, dtype), shape),), {"order": order})


def _cast(node: Value, dtype: DTypeLike | None) -> Any:
    return node if dtype is None or np.dtype(dtype) == node.dtype else node.astype(dtype)


def _with_order(node: Value, order: str) -> Any:
    """Return a node in a memory order: the node itself if it has the order, else a copy."""
    flags = node.flags
    if order in ("C", "F"):
        note_layout(node, "the memory layout, which determines whether a copy is made,")
    if (order == "C" and not flags.c_contiguous) or (order == "F" and not flags.f_contiguous):
        return bind(ops.copy, (node,), {"order": order})
    return node


def as_fillable(array: Any, name: str | None = None, is_blank: bool = False) -> Any:
    """Return a new plain array as a node without operands, into which nodes can be written; `is_blank` if it contains zeros.

    An array of integers or booleans becomes an inert node. Under `no_graph` the array stays plain, unless a derivative
    in forward mode is being computed.
    """
    if array.dtype.kind not in "fc":
        return inert_leaf(array) if is_recording() else array
    result = array
    for wrap in wrappers.get():
        result = wrap(result)
    return result if isinstance(result, Value) or not is_recording() else new_fillable_leaf(array, name, is_blank)


def zeros(shape: Any, dtype: DTypeLike | None = None, order: Any = "C", *, name: str | None = None) -> Any:
    """``numpy.zeros`` as a node, to be written into.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype, optional
        The dtype, by default that of `default_dtype`, float64; derivatives pass through floating and complex ones.
    order : {"C", "F"}
        The memory layout of the array.
    name : str, optional
        A name for the node.

    Returns
    -------
    OperationalNode
        Without operands. Under `no_graph` a plain array.

    Examples
    --------
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable([1.0, 2.0, 3.0], "x")
    >>> b = cg.zeros(3)
    >>> for i in range(3):
    ...     b[i] = x[i] * x[i - 1]
    >>> print(b, gradient(b)["x"])
    [3. 2. 6.] [5. 4. 3.]
    """
    return as_fillable(np.zeros(shape, default_float() if dtype is None else dtype, order), name, is_blank=True)


def ones(shape: Any, dtype: DTypeLike | None = None, order: Any = "C", *, name: str | None = None) -> Any:
    """``numpy.ones`` as a node, to be written into.

    Parameters
    ----------
    shape, dtype, order, name
        As for `zeros`.

    Returns
    -------
    OperationalNode
        Without operands. Under `no_graph` a plain array.

    Examples
    --------
    >>> import compgraph as cg
    >>> b = cg.ones(3)
    >>> b[1] = cg.variable(5.0)
    >>> print(b)
    [1. 5. 1.]
    """
    return as_fillable(np.ones(shape, default_float() if dtype is None else dtype, order), name)


def empty(shape: Any, dtype: DTypeLike | None = None, order: object = "C", *, name: str | None = None) -> Any:
    """``numpy.empty`` as a node, to be written into.

    Parameters
    ----------
    shape, dtype, order, name
        As for `zeros`.

    Returns
    -------
    OperationalNode
        Without operands. Do not rely on its values before they are written. They are zeros, so that writes that bypass the graph
        are detected. Under `no_graph` a plain array.

    Examples
    --------
    >>> import compgraph as cg
    >>> b = cg.empty(2)
    >>> b[:] = cg.variable([1.0, 2.0])
    >>> print(b)
    [1. 2.]
    """
    return zeros(shape, dtype, order, name=name)


def kaiser(M: Any, beta: Any) -> Any:  # noqa: N803
    """``numpy.kaiser``, whose `beta` may be a node.

    Parameters
    ----------
    M : int
        The number of points.
    beta : float or Node
        The shape of the window; a single number.

    Returns
    -------
    array or Node

    Examples
    --------
    >>> import compgraph as cg
    >>> beta = cg.variable(2.0, "beta")
    >>> print(cg.kaiser(3, beta).opname, cg.kaiser(3, beta).value.round(6))
    div [0.438676 1.       0.438676]
    """
    if isinstance(M, Value):
        raise TypeError("kaiser: the number of points M cannot be a node; pass node.value")
    if not isinstance(beta, Value):
        return np.kaiser(M, beta)
    if beta.ndim:
        raise ValueError(f"kaiser: beta must be a single number, not an array of shape {beta.shape}")
    dtype = np.result_type(beta.dtype, np.float64)
    beta, count = beta.astype(dtype), dtype.type(M)
    if count == 1:
        return np.ones_like(np.reshape(beta, 1))
    half = (count - 1) / 2.0
    distance = (np.arange(0, count) - half) / half
    return np.i0(beta * np.sqrt(1 - distance**2.0)) / np.i0(beta)


def require(a: Any, dtype: DTypeLike | None = None, requirements: Any = None) -> Any:
    """``numpy.require``: an array that satisfies requirements on its memory.

    Parameters
    ----------
    a : array_like
        A node, an array, or nested sequences of numbers and nodes.
    dtype : dtype, optional
        The dtype of the result.
    requirements : str or sequence of str, optional
        ``"C"`` or ``"F"`` for the memory order, ``"A"`` aligned, ``"W"`` writeable, ``"O"`` with memory of its own. An array
        that does not satisfy them is copied.

    Returns
    -------
    array or Node

    Raises
    ------
    TypeError
        If ``"E"`` requires a plain array of a node.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.require(cg.variable([[1.0, 2.0]]).T, requirements="C").flags.c_contiguous
    True
    """
    node = stack_nested(a)
    if not isinstance(node, Value):
        return np.require(a, dtype, requirements)
    np.require(np.zeros(0), None, requirements)  # raises for invalid requirements
    flags = {name[0].upper() for name in requirements or ()}  # the first letters of NumPy's names
    if "E" in flags:
        raise TypeError("require: 'E' requires a plain array, which has no graph; leave it out, or pass node.value")
    order = "F" if "F" in flags else "C" if "C" in flags else "A"
    node = array(node, dtype, copy=None, order=order)
    note_layout(node, "the memory layout, which determines whether a copy is made,")
    is_satisfied = all(node.value.flags[name] for name in flags)
    return node if is_satisfied else bind(ops.copy, (node,), {"order": order})


def ascontiguousarray(a: object, dtype: DTypeLike | None = None) -> Any:
    """`asarray` of at least one dimension, in C order.

    Parameters
    ----------
    a, dtype
        As for `asarray`.

    Returns
    -------
    array or Node

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.ascontiguousarray(cg.variable([[1.0, 2.0]]).T).flags.c_contiguous
    True
    """
    node = stack_nested(a)
    return array(node, dtype, copy=None, order="C", ndmin=1) if isinstance(node, Value) else np.ascontiguousarray(a, dtype)


def asfortranarray(a: object, dtype: DTypeLike | None = None) -> Any:
    """`asarray` of at least one dimension, in Fortran order.

    Parameters
    ----------
    a, dtype
        As for `asarray`.

    Returns
    -------
    array or Node

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> cg.asfortranarray(cg.variable(np.ones((2, 3)))).flags.f_contiguous
    True
    """
    node = stack_nested(a)
    return array(node, dtype, copy=None, order="F", ndmin=1) if isinstance(node, Value) else np.asfortranarray(a, dtype)


def as_strided(x: Any, shape: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Any:
    """``numpy.lib.stride_tricks.as_strided`` of a node: a copy, not a view, of elements of the node.

    Parameters
    ----------
    x : array_like or Node
        A C-contiguous node. For anything else NumPy's function is called.
    shape : tuple of int, optional
        The shape of the result; by default that of `x`.
    strides : tuple of int, optional
        The step in bytes along each axis; by default those of `x`.

    Returns
    -------
    array or Node

    Raises
    ------
    ValueError
        If a node is not C-contiguous, a stride is not a multiple of its item size, or an element is out of bounds.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> print(cg.as_strided(cg.variable(np.arange(4.0)), (3, 2), (8, 8)))
    [[0. 1.]
     [1. 2.]
     [2. 3.]]
    """
    if not isinstance(x, Value):
        return np.lib.stride_tricks.as_strided(x, shape, strides)
    require_history(x)
    note_layout(x, "the memory layout, on which as_strided depends,")
    shape, strides = x.shape if shape is None else shape, x.strides if strides is None else strides
    if not x.flags.c_contiguous or any(step % x.itemsize for step in strides):
        raise ValueError("as_strided needs a C-contiguous node, and strides of whole elements; use cg.ascontiguousarray")
    positions = np.zeros(shape, int)
    for axis, (length, step) in enumerate(zip(shape, strides, strict=True)):
        positions += (np.arange(length) * (step // x.itemsize)).reshape(-1, *[1] * (len(shape) - axis - 1))
    if positions.size and not (positions.min() >= 0 and positions.max() < x.size):
        raise ValueError(f"as_strided: the strides lead beyond the {x.size} elements of the node")
    return np.ravel(x)[positions]


def _buffer_constructor(function: Callable[..., Any], is_blank: bool = False) -> Any:
    return lambda *args, **kwargs: as_fillable(function(*args, **kwargs), is_blank=is_blank)


# The functions that run for an array "like" a node: ``np.zeros(3, like=x)``.
LIKE_CONSTRUCTORS: dict[Any, Any] = {
    np.array: array,
    np.asarray: asarray,
    np.ascontiguousarray: ascontiguousarray,
    np.asfortranarray: asfortranarray,
    np.full: full,
    np.zeros: _buffer_constructor(np.zeros, is_blank=True),
    **{f: _buffer_constructor(f) for f in (np.ones, np.empty, np.eye, np.identity, np.tri, np.arange)},
}
