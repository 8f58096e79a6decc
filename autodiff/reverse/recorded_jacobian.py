"""Jacobians of recorded values with respect to several variables, by one sweep with a batch of cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph.values import Value, VariableNode, describe, require_history

from ..forward import as_real_inputs
from ..numeric import require_differentiable
from .leak_warnings import warn_of_leaks
from .linearization import Linearization
from .sweep import collect


def variables(*values: object, names: Sequence[str] | None = None) -> Any:
    """Make several variables at once, the counterpart of `autodiff.forward.variables`.

    Parameters
    ----------
    *values : array_like
        One or more inputs: numbers, vectors, arrays of any shape. Python numbers become floats. Integer arrays, complex
        numbers and nodes raise.
    names : sequence of str, optional
        The names, in order.

    Returns
    -------
    VariableNode or tuple of VariableNode
        A variable for one value, a tuple for several; each holds a copy of its value.

    Raises
    ------
    TypeError
        If a value has no derivatives, is complex, or is a node.
    ValueError
        If the numbers of names and values differ.

    Examples
    --------
    >>> a, v = variables(3.0, [1.0, 2.0], names=["a", "v"])
    >>> jacobian(a * v, (a, v))
    [array([1., 2.]), array([[3., 0.],
           [0., 3.]])]
    """
    for value in values:
        if isinstance(value, Value):
            require_history(value)
            raise TypeError(
                f"variables: the {describe(value)} is part of a graph, and a variable made from it would not be; use "
                "autodiff.jacrev for a derivative within a derivative, or pass its numbers (node.value)"
            )
    arrays = as_real_inputs(values, names)
    nodes = [VariableNode.create_using(a, name) for a, name in zip(arrays, names or (None,) * len(arrays), strict=True)]
    return nodes[0] if len(nodes) == 1 else tuple(nodes)


def jacobian(node: Any, wrt: Any, create_graph: bool = False) -> Any:
    """Compute the Jacobian of a node with respect to variables, by one sweep with a batch of cotangents.

    Parameters
    ----------
    node : Node
        The node to differentiate, of any shape.
    wrt : VariableNode or sequence of VariableNode
        The variables. The Jacobian with respect to a variable that `node` does not depend on is zero.
    create_graph : bool
        Whether the Jacobians are nodes that can be differentiated again.

    Returns
    -------
    array or list of array
        For each variable an array of shape ``node.shape + variable.shape`` in the precision of `node`; a list in order if
        `wrt` is a sequence. They equal those of `autodiff.forward.variables`.

    Raises
    ------
    TypeError
        If `node` is not a node or has no derivatives, or `wrt` has an entry that is not a variable.
    ValueError
        If a variable was updated in place after its use.

    See Also
    --------
    gradient : of the sum of the elements.
    autodiff.jacrev : the Jacobian of a function, as a function.

    Examples
    --------
    >>> x = variables([1.0, 2.0, 3.0])
    >>> jacobian(x[:2] * x[1:], x)
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    require_differentiable("jacobian", node)
    is_single = isinstance(wrt, np.ndarray)
    inputs = [wrt] if is_single else list(wrt)
    for x in inputs:
        if not isinstance(x, VariableNode):
            kind = f"the {describe(x)}" if isinstance(x, Value) else f"a {type(x).__name__}"
            raise TypeError(f"jacobian: wrt takes variables (cg.variable, autodiff.reverse.variables), not {kind}")
    warn_of_leaks("jacobian", collect(node), inputs)
    linearization = Linearization("jacobian", list(dict.fromkeys(inputs)), node, create_graph)
    jacobians = dict(zip(linearization.inputs, linearization.rows(), strict=True))
    with linearization.recording():
        results = [jacobians[x] if x.dtype.kind == "c" else jacobians[x].astype(node.dtype, copy=False) for x in inputs]
    return results[0] if is_single else results
