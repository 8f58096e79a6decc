"""Functions for nodes that require a memory layout (``require``, ``ascontiguousarray`` ...), and ``like=`` of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import ops
from ..bind import bind
from ..graph import stack_nested
from ..guards import note_layout
from ..values import Value, require_history
from .creation import array, as_fillable, asarray, full


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
    flags = {_FLAGS.get(name.upper(), name.upper()) for name in requirements or ()}
    if "E" in flags:
        raise TypeError("require: 'E' requires a plain array, which has no graph; leave it out, or give node.value")
    order = "F" if "F" in flags else "C" if "C" in flags else "A"
    node = array(node, dtype, copy=None, order=order)
    note_layout(node, "the memory layout, which determines whether a copy is made,")
    is_satisfied = all(node.value.flags[name] for name in flags)
    return node if is_satisfied else bind(ops.copy, (node,), {"order": order})


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
        If a node is not C-contiguous, a step is not a multiple of its item size, or the steps lead beyond its elements.

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
