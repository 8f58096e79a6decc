"""`latex`: a graph as mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .expressions import Expression, Shape
from .names import is_automatic
from .notation import written
from .reading import Reader
from .steps import results_of
from .symbols import name as name_of


@dataclass(frozen=True)
class Equation:
    """What a formula says of one value: its name in LaTeX, and the expression."""

    left: str
    right: Expression

    def __str__(self) -> str:
        right = written(self.right)
        return f"{self.left} = {right}" if self.left else right


class Formula:
    r"""Equations in LaTeX; ``str`` gives the text, and a notebook shows them.

    Attributes
    ----------
    equations : list of str
        One for each result; each is LaTeX.
    where : list of str
        Equations for the values in between that have names, in the order in which they are computed.
    shapes : list of str
        The sets that arrays belong to: ``X \in \mathbb{R}^{32 \times 64}``.
    """

    __slots__ = ("equations", "parts", "shapes", "where")

    def __init__(self, results: list[Equation], between: list[Equation], symbols: Mapping[str, tuple[Shape, Any]]) -> None:
        self.parts = results, between
        self.equations = list(map(str, results))
        self.where = list(map(str, between))
        used = _symbols([equation.right for equation in (*results, *between)])
        self.shapes = [_membership(name, *symbols[name]) for name in symbols if name in used and symbols[name][0]]

    def __str__(self) -> str:
        results, between = self.parts
        where = ["\\text{where} \\quad ", *[""] * (len(between) - 1)] if between else []
        rows = [("", equation) for equation in results] + list(zip(where, between, strict=True))
        lines = [first + (f"{each.left} &= {written(each.right)}" if each.left else f"& {each}") for first, each in rows]
        lines += ["& " + r", \quad ".join(self.shapes)] if self.shapes else []
        if len(lines) == 1:
            return str(results[0])
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str:
        return f"$$\n{self}\n$$"


def latex(results: Any, *, names: Mapping[str, Any] | None = None) -> Formula:
    r"""Write the graph of some nodes as mathematics, in LaTeX.

    Names are those given to nodes: ``W_1`` has a subscript, ``alpha`` is a Greek letter. A value in between that has a name of
    the user's gets an equation of its own, and so do long ones, and those used more than once, under the names z_1, z_2 ... Plain
    arrays are called c_1 (vectors) and C_1 (others), unless `names` has them. Elements are numbered from 0, as in NumPy.

    Parameters
    ----------
    results : Node, or lists, tuples and dictionaries of them
        What the formulas are of.
    names : mapping from str to array, optional
        Names of plain arrays that the graph was computed with: ``{"X": X}``. They are found by their values.

    Returns
    -------
    Formula
        A notebook shows it; ``str`` gives the LaTeX.

    Raises
    ------
    TypeError
        If something else than nodes is given.
    ValueError
        If an array was written in place: `program` writes the steps of such graphs.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> x = cg.variable([1.0, 2.0], "x")
    >>> W = cg.variable([[1.0, 0.0], [0.5, 2.0]], "W_1")
    >>> print(cg.latex(cg.sum(np.tanh(W @ x), name="L")))
    \begin{aligned}
    L &= \sum_{i} \tanh\left((W_{1} \, x)_{i}\right) \\
    & x \in \mathbb{R}^{2}, \quad W_{1} \in \mathbb{R}^{2 \times 2}
    \end{aligned}
    """
    nodes = results_of("latex", results)
    if not nodes:
        raise TypeError("latex takes at least one node")
    reader = Reader(names or {})
    found = reader.read(nodes, frozenset(nodes))
    lefts = ["" if is_automatic(node) or not node.args else name_of(node.name) for node in nodes]
    return formula_of([Equation(left, right) for left, right in zip(lefts, found, strict=True)], reader)


def formula_of(results: list[Equation], reader: Reader) -> Formula:
    """The formula of some equations, with those of the values in between that they need."""
    wanted = _symbols([equation.right for equation in results])
    for name, right in reversed(reader.lines.items()):
        if name in wanted:
            wanted |= _symbols([right])
    between = [Equation(name_of(name), right) for name, right in reader.lines.items() if name in wanted]
    return Formula(results, between, {name: entry for name, entry in reader.symbols.items() if name not in reader.lines})


def _symbols(expressions: list[Expression]) -> set[str]:
    """The names in some expressions."""
    found: set[str] = set()
    queue = list(expressions)
    while queue:
        each = queue.pop()
        if each.head == "symbol":
            found.add(each.data)
        queue.extend(each.args)
    return found


def _membership(name: str, shape: Shape, dtype: Any) -> str:
    field = {"c": r"\mathbb{C}", "f": r"\mathbb{R}", "b": r"\{0, 1\}"}.get(dtype.kind, r"\mathbb{Z}")
    lengths = r" \times ".join(map(str, shape))
    return f"{name_of(name)} \\in {field}^{{{lengths}}}"
