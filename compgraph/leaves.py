"""Variables and constants: the leaves of a graph."""

from __future__ import annotations

from numpy.typing import ArrayLike, DTypeLike

from .nodes import ConstantNode, VariableNode


def variable(value: ArrayLike, name: str | None = None, *, dtype: DTypeLike | None = None, copy: bool = True) -> VariableNode:
    """Make a variable: a leaf of the graph to differentiate with respect to.

    Parameters
    ----------
    value : array_like
        Its value, of any shape. Integers and booleans become float64, or what `default_dtype` says, since only
        real and complex numbers have derivatives; float16, float32, longdouble and complex stay what they are.
    name : str, optional
        Its name; ``var_0``, ``var_1`` ... if not given.
    dtype : dtype, optional
        A floating or complex dtype to convert to.
    copy : bool
        Whether to copy `value` (the default). With ``copy=False`` the variable shares the memory of the array it
        is given, and an update in place is seen in both.

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
    """Make a constant: a leaf that never changes and that no derivative is computed for.

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
