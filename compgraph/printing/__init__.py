"""Graphs as text: `program` writes one as lines of Python, `latex` as mathematics.

=============  ==================================================================================================
`steps`        what was done, in order, to compute some nodes
`names`        names for them that Python takes; values as Python writes them
`calls`        a single step as Python writes it
`folding`      steps that repeat
`listing`      what users call: `program`, and the `Listing` that it returns
`expressions`  formulas as data, and the algebra by which they are made shorter
`elementwise`  the formulas of operations element by element
`selections`   the formulas of what elements and parts of arrays pass back
`reading`      how a graph becomes formulas
`symbols`      names, numbers and indices in LaTeX
`notation`     a formula in LaTeX
`formula`      what users call: `latex`, and the `Formula` that it returns
=============  ==================================================================================================
"""

from .formula import Equation, Formula, formula_of, latex
from .listing import Listing, program
from .reading import Reader
from .symbols import name

__all__ = ["Equation", "Formula", "Listing", "Reader", "formula_of", "latex", "name", "program"]
