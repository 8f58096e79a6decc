"""Functions that make arrays, for nodes: NumPy's own would take the numbers and leave the graph.

Without a node among their arguments `array` and `full` make an array to be written into, as `buffers.zeros` does; the
others give NumPy's own result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import operations
from ..graph import Node, gathered, record, require_computed, require_history
from ..graph.context import of_numbers
from ..guards import note_layout
from .allocation import buffer


def array(object: Any, dtype: DTypeLike | None = None, *, copy: Any = True, order: str = "K", ndmin: int = 0) -> Any:
    """``numpy.array`` of nodes, or of nested sequences with nodes in them.

    Parameters
    ----------
    object : array_like
        A node, an array, or nested lists and tuples of numbers and nodes of equal shapes.
    dtype : dtype, optional
        The dtype of the result; that of the elements by default.
    copy : bool, None or np._CopyMode
        As in NumPy: always, if needed (None), or never, which raises if it is; a copy of a node is a node of its own.
    order : {"K", "A", "C", "F"}
        How the result lies in memory.
    ndmin : int
        The least number of dimensions; axes are added in front.

    Returns
    -------
    Node
        Without operands if no node is among the elements: an array to be written into; under `no_graph` a plain one.

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
    node = gathered(object)
    if not isinstance(node, Node):
        require_computed(object, "what an array is made of")
        found = np.array(object, dtype=dtype, copy=copy, order=order, ndmin=ndmin)  # type: ignore[call-overload]
        return buffer(found if dtype is not None else of_numbers(found, object))
    node = _arranged(node, object, dtype, copy, order)
    return node[(None,) * (ndmin - node.ndim)] if ndmin > node.ndim else node


def _arranged(node: Any, given: Any, dtype: DTypeLike | None, copy: Any, order: str) -> Any:
    """A node, made of what was given, of a dtype and in an order of memory."""
    copied = operations.copies(copy)
    if copied and node is given:
        node = record(operations.copy, (node,), {"order": order})
    found = _laid_out(_of_dtype(node, dtype), order)
    if copied is False and found is not given:
        raise ValueError("Unable to avoid copy while creating an array as requested: give copy=None to copy only if needed")
    return found


def asarray(a: Any, dtype: DTypeLike | None = None, order: Any = None, *, copy: Any = None) -> Any:
    """``numpy.asarray`` that keeps nodes, also within lists; a node of the right dtype is returned as it is.

    Parameters
    ----------
    a : array_like
        A node, an array, or nested sequences of numbers and nodes.
    dtype : dtype, optional
        The dtype of the result.
    order : {"K", "A", "C", "F"}, optional
        How the result lies in memory.
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
    node = gathered(a)
    if not isinstance(node, Node):
        plain: Any = np.asarray
        return plain(a, dtype=dtype, order=order, copy=copy)
    return _arranged(node, a, dtype, copy, order or "K")


def asanyarray(a: Any, dtype: DTypeLike | None = None, order: Any = None, *, copy: Any = None) -> Any:
    """`asarray`; without a node, ``numpy.asanyarray``, which lets subclasses of arrays pass.

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
    node = gathered(a)
    if isinstance(node, Node):
        return _arranged(node, a, dtype, copy, order or "K")
    plain: Any = np.asanyarray
    return plain(a, dtype=dtype, order=order, copy=copy)


def require(a: Any, dtype: DTypeLike | None = None, requirements: Any = None) -> Any:
    """``numpy.require``: an array with properties of its memory.

    Parameters
    ----------
    a : array_like
        A node, an array, or nested sequences of numbers and nodes.
    dtype : dtype, optional
        The dtype of the result.
    requirements : str or sequence of str, optional
        ``"C"`` or ``"F"`` for the order in memory, ``"A"`` aligned, ``"W"`` writeable, ``"O"`` with memory of its own;
        what does not have them is copied.

    Returns
    -------
    array or Node

    Raises
    ------
    TypeError
        If a plain array is required of a node, by ``"E"``.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.require(cg.variable([[1.0, 2.0]]).T, requirements="C").flags.c_contiguous
    True
    """
    node = gathered(a)
    if not isinstance(node, Node):
        return np.require(a, dtype, requirements)
    np.require(np.zeros(0), None, requirements)  # NumPy knows what may be asked for
    wanted = {_FLAGS.get(name.upper(), name.upper()) for name in requirements or ()}
    if "E" in wanted:
        raise TypeError("require: a plain array, as 'E' asks for, has no graph; leave it out, or give node.value")
    order = "F" if "F" in wanted else "C" if "C" in wanted else "A"
    node = array(node, dtype, copy=None, order=order)
    note_layout(node, "the order in memory, on which hangs whether there is a copy,")
    kept = all(node.value.flags[name] for name in wanted)
    return node if kept else record(operations.copy, (node,), {"order": order})


_FLAGS = {
    "C_CONTIGUOUS": "C",
    "CONTIGUOUS": "C",
    "F_CONTIGUOUS": "F",
    "FORTRAN": "F",
    "ALIGNED": "A",
    "WRITEABLE": "W",
    "OWNDATA": "O",
    "ENSUREARRAY": "E",
}


def asarray_chkfinite(a: Any, dtype: DTypeLike | None = None, order: str | None = None) -> Any:
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
    np.asarray_chkfinite(result)
    return result


def ascontiguousarray(a: Any, dtype: DTypeLike | None = None) -> Any:
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
    node = gathered(a)
    return array(node, dtype, copy=None, order="C", ndmin=1) if isinstance(node, Node) else np.ascontiguousarray(a, dtype)


def asfortranarray(a: Any, dtype: DTypeLike | None = None) -> Any:
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
    node = gathered(a)
    return array(node, dtype, copy=None, order="F", ndmin=1) if isinstance(node, Node) else np.asfortranarray(a, dtype)


def full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None, order: str = "C") -> Any:
    """``numpy.full``, whose value may be a node.

    Parameters
    ----------
    shape : int or tuple of int
        The shape of the result.
    fill_value : array_like or Node
        What each element is; it broadcasts to `shape`.
    dtype : dtype, optional
        The dtype of the result; that of the value by default.
    order : {"C", "F"}
        How the result lies in memory.

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
    node = gathered(fill_value)
    if not isinstance(node, Node):
        found = np.full(shape, fill_value, dtype, order)  # type: ignore[call-overload]
        return buffer(found if dtype is not None else of_numbers(found, fill_value))
    return record(operations.copy, (np.broadcast_to(_of_dtype(node, dtype), shape),), {"order": order})


def as_strided(x: Any, shape: tuple[int, ...] | None = None, strides: tuple[int, ...] | None = None) -> Any:
    """``numpy.lib.stride_tricks.as_strided`` of a node, as a copy that stays within its elements.

    Parameters
    ----------
    x : array_like or Node
        A C-contiguous node.
    shape : tuple of int, optional
        The shape of the result.
    strides : tuple of int, optional
        The steps in bytes along each axis.

    Returns
    -------
    array or Node

    Raises
    ------
    ValueError
        If `x` is not C-contiguous, or the steps lead beyond its elements.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> print(cg.as_strided(cg.variable(np.arange(4.0)), (3, 2), (8, 8)))
    [[0. 1.]
     [1. 2.]
     [2. 3.]]
    """
    if not isinstance(x, Node):
        return np.lib.stride_tricks.as_strided(x, shape, strides)
    require_history(x)
    note_layout(x, "the order in memory, in which as_strided takes steps,")
    shape, strides = x.shape if shape is None else shape, x.strides if strides is None else strides
    if not x.flags.c_contiguous or any(step % x.itemsize for step in strides):
        raise ValueError("as_strided of a node needs a C-contiguous one, and steps of whole elements; use cg.ascontiguousarray")
    places = np.zeros(shape, int)
    for axis, (length, step) in enumerate(zip(shape, strides, strict=True)):
        places += (np.arange(length) * (step // x.itemsize)).reshape(-1, *[1] * (len(shape) - axis - 1))
    if places.size and not (places.min() >= 0 and places.max() < x.size):
        raise ValueError(f"as_strided: the steps lead beyond the {x.size} elements of the node")
    return np.ravel(x)[places]


def _of_dtype(node: Any, dtype: DTypeLike | None) -> Any:
    return node if dtype is None or np.dtype(dtype) == node.dtype else node.astype(dtype)


def _laid_out(node: Any, order: str) -> Any:
    """The node in an order of memory, copied if it lies otherwise."""
    flags = node.flags
    if order in ("C", "F"):
        note_layout(node, "the order in memory, on which hangs whether there is a copy,")
    if (order == "C" and not flags.c_contiguous) or (order == "F" and not flags.f_contiguous):
        return record(operations.copy, (node,), {"order": order})
    return node


def _buffer_of(function: Any) -> Any:
    is_blank = function is np.zeros
    return lambda *args, **kwargs: buffer(function(*args, **kwargs), is_blank=is_blank)


# What is made when NumPy is asked for an array "like" a node: ``np.zeros(3, like=x)``.
MADE_LIKE: dict[Any, Any] = {
    np.array: array,
    np.asarray: asarray,
    np.ascontiguousarray: ascontiguousarray,
    np.asfortranarray: asfortranarray,
    np.full: full,
    **{f: _buffer_of(f) for f in (np.zeros, np.ones, np.empty, np.eye, np.identity, np.tri, np.arange)},
}
