"""Pictures of graphs. A graph becomes a `Drawing` (plain data), which is written as DOT or as HTML; Graphviz renders DOT.

==============  ===============================================================================================
`visualize`     what users call: `visualize_at`, and the `GraphPicture` that it returns
`words`         names as mathematics, values in short
`writes`        the steps behind a result, in their order, where arrays were written into
`labels`        the texts of a step: its sign or name, its index, its formula
`folding`       the parts of a graph that repeat
`programs`      what is asked of a compiled program that is drawn
`data`          what is drawn: entries, arrows and boxes, as plain data without nodes
`entries`       a step -> an entry
`drawing`       a graph -> a drawing
`colors`        the two themes
`dot`           a drawing -> DOT, Graphviz's language
`rendering`     DOT -> SVG, PNG, PDF
`page`          a drawing -> one HTML file, laid out in the browser by ``layout.js``
==============  ===============================================================================================
"""

from .dot import render, showable
from .drawing import FOLDED_FROM, Arrow, Box, Drawing, Entry
from .labels import INFIX, SIGNS
from .page import as_script, theme_colors
from .short_texts import GREEK, as_mathematics, chosen_name, name_of, place_of
from .visualize import GraphPicture, ProgramOptions, visualize_at

__all__ = [
    "FOLDED_FROM", "GREEK", "INFIX", "SIGNS", "Arrow", "Box", "Drawing", "Entry", "GraphPicture", "ProgramOptions",
    "as_mathematics", "as_script", "chosen_name", "name_of", "place_of", "render", "showable", "theme_colors", "visualize_at",
]  # fmt: skip
