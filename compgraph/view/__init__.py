"""Pictures of graphs, animations and profiles. HTML pages share one template; other formats are drawn by Graphviz.

A graph becomes a `Drawing`, plain data. Two engines lay it out, because neither can replace the other: Graphviz for files (SVG,
PNG, PDF, GIF) and for notebooks, and ``layout.js`` in the browser, where boxes open and close and no Graphviz is needed.

===============  ==============================================================================================
`visualize`      `visualize_at` and the `GraphPicture` that it returns; the protocol of compiled programs
`drawing`        a graph as a `Drawing`: entries, arrows and boxes; equal consecutive parts, which are drawn once
`write_history`  the steps behind a result, with each write in place as a step
`labels`         the label, title, index and formula of a step; names as mathematics, abbreviated values
`colors`         the light and the dark theme
`dot`            a drawing in DOT, Graphviz's language, and its rendering
`page`           HTML pages: ``page.html``, ``page.css`` and ``page.js``, with ``graph.js``, ``animation.js``,
                 ``flame.js`` or ``memory.js``
===============  ==============================================================================================
"""

from .colors import LIGHT, hex_of
from .dot import can_render, dot_of, escape_unprintable, render
from .drawing import FOLDED_FROM, Arrow, Box, Drawing, Entry, GraphDrawing, draw_graph
from .labels import GREEK, INFIX, SYMBOLS, chosen_name, name_of, short_location, source_text, typeset_name
from .page import notebook_frame, page_of, require_folder, require_resolution
from .visualize import DIRECTIONS, GraphPicture, ProgramOptions, visualize_at

__all__ = [
    "DIRECTIONS", "FOLDED_FROM", "GREEK", "INFIX", "LIGHT", "SYMBOLS", "Arrow", "Box", "Drawing", "Entry", "GraphDrawing",
    "GraphPicture", "ProgramOptions", "can_render", "chosen_name", "dot_of", "draw_graph", "escape_unprintable", "hex_of",
    "name_of", "notebook_frame", "page_of", "render", "require_folder", "require_resolution", "short_location", "source_text",
    "typeset_name", "visualize_at",
]  # fmt: skip
