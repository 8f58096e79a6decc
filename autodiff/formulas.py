"""`latex`: a result and its derivatives as mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from compgraph.graph import operands_of, walk
from compgraph.printing import Equation, Formula, converter_for, formula_of, latex_name
from compgraph.values import PlaceholderNode, VariableNode

from .numeric import require_differentiable
from .reverse import gradient

DEFAULT_NAMES = "f", "F", "L", "g", "f_0"  # of a result without a name: the first that is not the name of a variable


def latex(result: Any, wrt: object = None, *, names: Mapping[str, Any] | None = None) -> Formula:
    r"""Write a scalar and its derivatives as mathematics, in LaTeX.

    The derivative is that of reverse mode, recorded as a graph. SymPy simplifies it by algebra that holds where both sides are
    defined; see `compgraph.latex`. Derivatives of functions of several variables are written as partial derivatives, also if
    `wrt` is one of the variables.

    Parameters
    ----------
    result : Node
        The scalar to differentiate.
    wrt : Node, str, or sequence of them, optional
        The variables to differentiate with respect to, as in `autodiff.reverse.gradient`; by default all.
    names : mapping from str to array, optional
        Names of plain arrays in the graph, as in `compgraph.latex`.

    Returns
    -------
    Formula
        A notebook displays it; ``str`` returns the LaTeX.

    Raises
    ------
    TypeError
        If `result` is not a node, or cannot be differentiated.
    ValueError
        If it is not a scalar, does not depend on `wrt`, or an array was written in place.
    ImportError
        If SymPy is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import autodiff as ad
    >>> import compgraph as cg
    >>> x = cg.variable(0.5, "x")
    >>> print(ad.latex(np.sin(x) * x, wrt=x))
    \begin{aligned}
    f &= x \sin{\left(x \right)} \\
    \frac{d f}{d x} &= x \cos{\left(x \right)} + \sin{\left(x \right)}
    \end{aligned}
    """
    converter = converter_for("latex", names)
    require_differentiable("latex", result)
    if result.shape != ():
        raise ValueError(f"latex: the result must be a scalar, but has shape {result.shape}; write its sum, np.sum(y)")
    gradients = gradient(result, wrt, create_graph=True)
    variables = list(gradients._cotangents)
    derivatives = [gradients[variable] for variable in variables]
    values = converter.convert([result, *derivatives], "latex")
    unused_name = next(symbol for symbol in DEFAULT_NAMES if symbol not in converter.symbols)
    name = latex_name(result.name if _is_named(result) else unused_name)
    variable_names = [latex_name(converter.name_of(variable)) for variable in variables]
    is_partial = _argument_count(result, variables) > 1
    left_sides = [
        _derivative_symbol(name, variable_name, variable.ndim, is_partial)
        for variable_name, variable in zip(variable_names, variables, strict=True)
    ]
    equations = [Equation(left, right) for left, right in zip([name, *left_sides], values, strict=True)]
    return formula_of(equations, converter)


def _is_named(node: Any) -> bool:
    """Whether the user gave a node its name."""
    return node._name is not None and not node._name.startswith(f"{node.opname}_")


def _argument_count(result: NDArray[Any], variables: list[Any]) -> int:
    """Count the variables of a function: `variables`, and the leaves that `result` depends on by other paths."""
    variable_ids = set(map(id, variables))
    ancestors = walk([result], lambda node: () if id(node) in variable_ids else operands_of(node))
    return len({*variables, *(node for node in ancestors if isinstance(node, (VariableNode, PlaceholderNode)))})


def _derivative_symbol(name: str, variable_name: str, ndim: int, is_partial: bool) -> str:
    """Return the symbol of a derivative: a quotient for a scalar variable, a gradient for an array."""
    if ndim:
        return f"\\nabla_{{{variable_name}}} {name}"
    d = r"\partial" if is_partial else "d"
    return f"\\frac{{{d} {name}}}{{{d} {variable_name}}}"
