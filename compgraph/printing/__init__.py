"""Graphs as text: `program` writes Python, `latex` writes mathematics, and `to_sympy` converts to SymPy expressions.

====================  ============================================================================================
`names`               valid Python names for nodes; values as Python literals
`calls`               the executor's code generator, in the style of user code
`listing`             the operations and writes behind some nodes, in order; the public function `program`, and the `Listing`
                      that it returns, with repeated steps folded
`symbolic_arrays`     arrays in SymPy; the SymPy functions of elementwise operations
`conversion`          graphs to SymPy
`notation`            SymPy expressions in LaTeX
`formula`             the public functions `to_sympy` and `latex`, and the class `Formula`
====================  ============================================================================================

SymPy is imported by the first formula.
"""

from .formula import Equation, Formula, converter_for, formula_of, latex, to_sympy
from .listing import Listing, program
from .names import latex_name

__all__ = ["Equation", "Formula", "Listing", "converter_for", "formula_of", "latex", "latex_name", "program", "to_sympy"]
