"""Pictures of graphs. A graph becomes a `Drawing` (plain data), which is written as DOT or as HTML; Graphviz renders DOT.

==============  ===============================================================================================
`visualize`     what users call: `visualize_at`, and the `GraphPicture` that it returns
`words`         a node's texts: its name as mathematics, its formula, its value in short
`folding`       the parts of a graph that repeat
`programs`      what is asked of a compiled program that is drawn
`drawing`       what is drawn: entries, arrows and boxes, as plain data without nodes
`colors`        the two themes
`dot`           a drawing -> DOT, Graphviz's language
`rendering`     DOT -> SVG, PNG, PDF
`page`          a drawing -> one HTML file, laid out in the browser by ``layout.js``
==============  ===============================================================================================
"""

from .dot import showable
from .drawing import FOLDED_FROM, Arrow, Box, Drawing, Entry
from .programs import ProgramOptions
from .rendering import render
from .visualize import GraphPicture, visualize_at
from .words import as_mathematics

__all__ = [
    "FOLDED_FROM",
    "Arrow",
    "Box",
    "Drawing",
    "Entry",
    "GraphPicture",
    "ProgramOptions",
    "as_mathematics",
    "render",
    "showable",
    "visualize_at",
]
