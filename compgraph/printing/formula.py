"""`to_sympy` and `latex`: a graph as mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .listing import results_of
from .names import is_automatic, latex_name

if TYPE_CHECKING:
    from .conversion import Converter


@dataclass(frozen=True)
class Equation:
    """An equation for one value: its name in LaTeX, and a SymPy expression."""

    left: str
    right: Any

    def __str__(self) -> str:
        from .notation import to_latex

        right = to_latex(self.right)
        return f"{self.left} = {right}" if self.left else right


class Formula:
    r"""Equations in LaTeX; ``str`` returns the text, and a notebook displays them.

    Attributes
    ----------
    equations : list of str
        The LaTeX of each result.
    where : list of str
        Equations for named and abbreviated intermediate values, in the order of computation.
    shapes : list of str
        The sets that arrays belong to: ``X \in \mathbb{R}^{32 \times 64}``.
    """

    __slots__ = ("equations", "parts", "shapes", "where")

    def __init__(self, results: list[Equation], definitions: list[Equation], shapes: list[str]) -> None:
        self.parts = results, definitions
        self.equations = list(map(str, results))
        self.where = list(map(str, definitions))
        self.shapes = shapes

    def __str__(self) -> str:
        results, definitions = self.parts
        where = ["\\text{where} \\quad ", *[""] * (len(definitions) - 1)] if definitions else []
        lefts = [""] * len(results) + where
        texts = [*self.equations, *self.where]
        lines = [
            first + (text.replace(f"{each.left} = ", f"{each.left} &= ", 1) if each.left else f"& {text}")
            for first, text, each in zip(lefts, texts, [*results, *definitions], strict=True)
        ]
        lines += ["& " + r", \quad ".join(self.shapes)] if self.shapes else []
        if len(lines) == 1:
            return self.equations[0]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str:
        return f"$$\n{self}\n$$"


def latex(results: ArrayLike, *, names: Mapping[str, Any] | None = None) -> Formula:
    r"""Write the graph of some nodes as mathematics, in LaTeX.

    Names are those of the nodes: ``W_1`` has a subscript, ``alpha`` is a Greek letter. An intermediate value with a
    user-chosen name has a separate equation. Long intermediate values too are separate, as z_1, z_2 ... Plain arrays are c_1
    (vectors) and C_1 (others), unless `names` has them. Indices count from 0, as in NumPy. SymPy simplifies and prints the
    expressions; see `to_sympy`.

    Parameters
    ----------
    results : Node, or nested lists, tuples and dictionaries of nodes
        The nodes to write.
    names : mapping from str to array, optional
        Names of plain arrays in the graph: ``{"X": X}``. Arrays are matched by value.

    Returns
    -------
    Formula
        A notebook displays it; ``str`` returns the LaTeX.

    Raises
    ------
    TypeError
        If an object is not a node.
    ValueError
        If an array was written in place: `program` writes the steps of such graphs.
    ImportError
        If SymPy is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> x = cg.variable([1.0, 2.0], "x")
    >>> W = cg.variable([[1.0, 0.0], [0.5, 2.0]], "W_1")
    >>> print(cg.latex(cg.sum(np.tanh(W @ x), name="L")))
    \begin{aligned}
    L &= \sum_{i=0}^{1} \tanh{\left(\left(W_{1} x\right)_{i} \right)} \\
    & x \in \mathbb{R}^{2}, \quad W_{1} \in \mathbb{R}^{2 \times 2}
    \end{aligned}
    """
    nodes = results_of("latex", results)
    if not nodes:
        raise TypeError("latex takes at least one node")
    converter = converter_for("latex", names)
    expressions = converter.convert(nodes, "latex")
    lefts = ["" if is_automatic(node) or not node.args else latex_name(node.name) for node in nodes]
    return formula_of([Equation(left, right) for left, right in zip(lefts, expressions, strict=True)], converter)


def to_sympy(node: ArrayLike | dict[str, Any], *, names: Mapping[str, Any] | None = None) -> Any:
    """Convert the graph of a node to a SymPy expression of its leaves.

    Scalars become symbols, which are real if the dtype is real. Matrices become matrix symbols, vectors become matrix symbols
    with one column, and arrays of three or more axes become array symbols. Operations without a counterpart in SymPy become
    functions with the name of the operation. The expression holds where both sides are defined. It does not model rounding or
    integer overflow.

    Parameters
    ----------
    node : Node
        The result.
    names : mapping from str to array, optional
        Names of plain arrays in the graph, as in `latex`.

    Returns
    -------
    sympy.Expr or sympy.MatrixExpr
        A scalar or matrix expression. ``sympy.lambdify`` converts it to a function of NumPy arrays. The arrays are
        two-dimensional, like the symbols.

    Raises
    ------
    TypeError
        If `node` is not a node.
    ValueError
        If an array was written in place, or the expression would be too long for SymPy.
    ImportError
        If SymPy is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> x, y = cg.variable(0.5, "x"), cg.variable(2.0, "y")
    >>> cg.to_sympy(np.exp(x) * np.sqrt(x**2) + y * 2 + y)
    3*y + exp(x)*Abs(x)
    """
    nodes = results_of("to_sympy", [node])
    if len(nodes) != 1 or nodes[0] is not node:
        raise TypeError("to_sympy takes one node")
    return converter_for("to_sympy", names, abbreviates=False).convert(nodes, "to_sympy")[0]


def converter_for(caller: str, names: Mapping[str, Any] | None, abbreviates: bool = True) -> Converter:
    """Return a converter; raise an ImportError with the command to install SymPy if it is missing."""
    try:
        from .conversion import Converter
    except ModuleNotFoundError as error:
        if error.name != "sympy":
            raise
        raise ModuleNotFoundError(
            f'{caller} needs SymPy, which is not installed; run pip install "compgraph[formulas]"', name="sympy"
        ) from None
    return Converter(names or {}, abbreviates)


def formula_of(results: list[Equation], converter: Converter) -> Formula:
    """Return the formula of some equations, with equations for the intermediate values in them."""
    required = {str(each) for equation in results for each in equation.right.free_symbols}
    for abbreviation, right in reversed(converter.abbreviations.items()):
        if abbreviation in required:
            required |= {str(each) for each in right.free_symbols}
    definitions = [Equation(latex_name(each), right) for each, right in converter.abbreviations.items() if each in required]
    shapes = [
        _membership(latex_name(each), shape, dtype)
        for each, (shape, dtype) in converter.symbols.items()
        if each in required and shape and each not in converter.abbreviations
    ]
    return Formula(results, definitions, shapes)


def _membership(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    field = {"c": r"\mathbb{C}", "f": r"\mathbb{R}", "b": r"\{0, 1\}"}.get(dtype.kind, r"\mathbb{Z}")
    lengths = r" \times ".join(map(str, shape))
    return f"{name} \\in {field}^{{{lengths}}}"
