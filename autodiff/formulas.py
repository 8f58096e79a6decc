"""`latex`: a result and its derivatives as mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compgraph.graph import operands_of, walk
from compgraph.printing import Equation, Formula, converter_for, formula_of, latex_name
from compgraph.values import PlaceholderNode, VariableNode

from .numeric import require_differentiable
from .reverse import gradient

UNNAMED = "f", "F", "L", "g", "f_0"  # what a result without a name is called: the first that no variable is


def latex(result: Any, wrt: Any = None, *, names: Mapping[str, Any] | None = None) -> Formula:
    r"""Write a scalar and its derivatives as mathematics, in LaTeX.

    The derivative is the one that reverse mode computes, recorded as a graph. SymPy simplifies it by algebra that holds wherever
    both sides are defined; see `compgraph.latex`. Derivatives of functions of several variables are partial ones, also if `wrt`
    is one of them.

    Parameters
    ----------
    result : Node
        The scalar to differentiate.
    wrt : Node, str, or sequence of them, optional
        With respect to what, as in `autodiff.reverse.gradient`; by default all variables.
    names : mapping from str to array, optional
        Names of plain arrays that the graph was computed with, as in `compgraph.latex`.

    Returns
    -------
    Formula
        A notebook shows it; ``str`` gives the LaTeX.

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
        raise ValueError(f"latex: a derivative is written of a scalar, not of shape {result.shape}; take its sum, np.sum(y)")
    gradients = gradient(result, wrt, create_graph=True)
    variables = list(gradients._cotangents)
    derivatives = [gradients[variable] for variable in variables]
    values = converter.convert([result, *derivatives], "latex")
    free = next(letter for letter in UNNAMED if letter not in converter.symbols)
    called = latex_name(result.name if _is_named(result) else free)
    names_of = [latex_name(converter.name_of(variable)) for variable in variables]
    is_partial = _argument_count(result, variables) > 1
    lefts = [_derivative(called, by, variable.ndim, is_partial) for by, variable in zip(names_of, variables, strict=True)]
    equations = [Equation(left, right) for left, right in zip([called, *lefts], values, strict=True)]
    return formula_of(equations, converter)


def _is_named(node: Any) -> bool:
    """Whether the user gave a node its name."""
    return node._name is not None and not node._name.startswith(f"{node.opname}_")


def _argument_count(result: Any, variables: list[Any]) -> int:
    """Count the variables of a function: `variables`, and the leaves that `result` depends on by other ways."""
    known = set(map(id, variables))
    behind = walk([result], lambda node: () if id(node) in known else operands_of(node))
    return len({*variables, *(node for node in behind if isinstance(node, (VariableNode, PlaceholderNode)))})


def _derivative(called: str, by: str, ndim: int, is_partial: bool) -> str:
    """The sign for a derivative: of a scalar by a scalar a quotient, by an array a gradient."""
    if ndim:
        return f"\\nabla_{{{by}}} {called}"
    d = r"\partial" if is_partial else "d"
    return f"\\frac{{{d} {called}}}{{{d} {by}}}"
