"""Variables, constants and placeholders: the leaves of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import ops
from ..context import automatic_name
from ..guards import watch_shapes
from ..values import (
    ConstantNode,
    InertPlaceholderNode,
    PlaceholderNode,
    Value,
    VariableNode,
    new_leaf,
    require_computed,
    variable_hooks,
)


@ops.reject_foreign_options(
    {
        "requires_grad": "a cg.variable has derivatives, a cg.constant has none",
        "constant": "a cg.variable has derivatives, a cg.constant has none",
        "device": "arrays are in main memory",
        "trainable": "an optimizer updates the variables that it is given",
    }
)
def variable(value: ArrayLike, name: str | None = None, *, dtype: DTypeLike | None = None, copy: bool = True) -> VariableNode:
    """Make a variable: a leaf of the graph to differentiate with respect to.

    Parameters
    ----------
    value : array_like
        Its value, of any shape. Integers and booleans become float64, or the dtype of `default_dtype`, because only
        real and complex numbers have derivatives; float16, float32, longdouble and complex are kept.
    name : str, optional
        Its name; ``var_0``, ``var_1`` ... if not given.
    dtype : dtype, optional
        A floating or complex dtype to convert to.
    copy : bool
        Whether to copy `value` (the default). With ``copy=False`` the variable shares the array's memory, and an update in
        place changes both.

    Returns
    -------
    VariableNode

    Raises
    ------
    TypeError
        If the value has no derivative (strings, objects, dates), or is a masked array or a matrix.
    ValueError
        If ``copy=False`` but an array would have to be converted.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable([1, 2, 3], "x")
    >>> x.dtype, x.name
    (dtype('float64'), 'x')
    >>> x -= 0.5
    >>> print(x)
    [0.5 1.5 2.5]
    """
    return VariableNode.create_using(value, name, dtype=dtype, copy=copy)


def constant(value: ArrayLike, name: str | None = None) -> ConstantNode:
    """Make a constant: a leaf that never changes and has no derivative.

    Parameters
    ----------
    value : array_like
        Its value, of any shape and dtype; it is copied, and the copy cannot be written to.
    name : str, optional
        Its name; ``const_0``, ``const_1`` ... if not given.

    Returns
    -------
    ConstantNode

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.reset()
    >>> cg.constant(2, "two") * cg.variable(4.0)
    ScalarNode(8., name='mul_0', dtype=float64)
    """
    return ConstantNode.create_using(value, name)


def placeholder(
    shape: int | tuple[int | None, ...] | None = (),
    dtype: DTypeLike = float,
    name: str | None = None,
    *,
    example: ArrayLike | None = None,
) -> PlaceholderNode:
    """Make a placeholder: a leaf whose value is passed to each run of an `Executor`.

    Parameters
    ----------
    shape : int or tuple of int or None
        The shape of the fed arrays. An axis of length None is recorded with length 2. An array with the same number of axes and
        other lengths may be fed if the graph can be computed with it.
    dtype : dtype
        The dtype of the fed arrays: floating, complex, integer or boolean.
    name : str, optional
        Its name; ``placeholder_0``, ``placeholder_1`` ... if not given.
    example : array_like, optional
        Values of that shape, with which the graph is recorded. By default distinct numbers between 0.5 and 1.5; zeros for
        integers, False for booleans. Pass an example if a function is not defined at these values.

    Returns
    -------
    PlaceholderNode
        A leaf; derivatives with respect to it exist unless its dtype is integer or boolean.

    Raises
    ------
    TypeError
        If the dtype is not numeric.
    ValueError
        If the example does not have the shape.

    Notes
    -----
    A placeholder of integers or booleans, and integers and booleans computed from it, are tracers, like values within operators:
    they expose no memory to C code. Indexing a plain array with one (``K[p]``) records a guard, and a run with other indices
    raises a `GuardError`. To index in each run, index a node: ``cg.constant(K)[p]``.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.placeholder((None, 3), name="x")
    >>> total = cg.sum(x * 2, axis=1)
    >>> cg.Executor(total).run({"x": [[1.0, 2.0, 3.0]]})
    array([12.])
    """
    for hook in variable_hooks:
        hook()
    declared_shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape or ())
    numpy_dtype = np.dtype(dtype)
    if numpy_dtype.kind not in "biufc":
        raise TypeError(f"placeholder: dtype {numpy_dtype} is not numeric. Pass a floating, complex, integer or boolean dtype")
    recorded_shape = tuple([2 if n is None else int(n) for n in declared_shape])
    if example is None:
        value = _generic_values(recorded_shape, numpy_dtype)
    else:
        require_computed(example, "the example of a placeholder")
        value = np.array(example.raw_value if isinstance(example, Value) else example, numpy_dtype)
        is_valid = len(value.shape) == len(declared_shape) and all(
            n in (None, m) for n, m in zip(declared_shape, value.shape, strict=True)
        )
        if not is_valid:
            raise ValueError(
                f"placeholder: the example has shape {value.shape}, but the placeholder {declared_shape}. Pass one of that shape"
            )
    value.flags.writeable = False
    cls = PlaceholderNode if numpy_dtype.kind in "fc" else InertPlaceholderNode
    node: PlaceholderNode = new_leaf(value, cls, automatic_name(cls.kind) if name is None else name)
    node.declared_shape = declared_shape
    watch_shapes(node)
    return node


def _generic_values(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Values without special cases: between 0.5 and 1.5, all distinct (no zeros, ones or ties); zeros for other dtypes."""
    if dtype.kind not in "fc":
        return np.zeros(shape, dtype)
    count = int(np.prod(shape))
    golden_ratio = (np.sqrt(5) - 1) / 2
    return np.asarray(0.5 + np.arange(count) * golden_ratio % 1, dtype).reshape(shape)
