"""Arrays to be filled: nodes without operands, into which other nodes can be written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..context import default_float, is_recording, wrappers
from ..interpreters import inert_leaf
from ..values import Value, new_fillable_leaf


def fillable(array: Any, name: str | None = None, is_blank: bool = False) -> Any:
    """A fresh plain array as a node without operands, into which nodes can be written; `is_blank` if it holds zeros.

    Integers, booleans and the like become an inert node. Under `no_graph` the array stays plain, unless a derivative in
    forward mode is being computed.
    """
    if array.dtype.kind not in "fc":
        return inert_leaf(array) if is_recording() else array
    made = array
    for wrap in wrappers.get():
        made = wrap(made)
    return made if isinstance(made, Value) or not is_recording() else new_fillable_leaf(array, name, is_blank)


def zeros(shape: Any, dtype: DTypeLike | None = None, order: Any = "C", *, name: str | None = None) -> Any:
    """``numpy.zeros`` as a node, to be written into.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype, optional
        The dtype, by default that of `default_dtype`, float64; derivatives pass through floating and complex ones.
    order : {"C", "F"}
        How the array lies in memory.
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
    return fillable(np.zeros(shape, default_float() if dtype is None else dtype, order), name, is_blank=True)


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
    return fillable(np.ones(shape, default_float() if dtype is None else dtype, order), name)


def empty(shape: Any, dtype: DTypeLike | None = None, order: Any = "C", *, name: str | None = None) -> Any:
    """``numpy.empty`` as a node, to be written into.

    Parameters
    ----------
    shape, dtype, order, name
        As for `zeros`.

    Returns
    -------
    OperationalNode
        Without operands. Do not rely on its values before they are written; they are zeros, by which the graph notices code
        that wrote into the memory without telling it. Under `no_graph` a plain array.

    Examples
    --------
    >>> import compgraph as cg
    >>> b = cg.empty(2)
    >>> b[:] = cg.variable([1.0, 2.0])
    >>> print(b)
    [1. 2.]
    """
    return zeros(shape, dtype, order, name=name)
