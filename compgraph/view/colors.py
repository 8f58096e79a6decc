"""The colors of all pictures, in a light and a dark theme.

Variables are light blue, constants orange, operations purple: the colors of the tutorial that the documentation follows. In
the dark theme the purple is lighter, for contrast. A test computes the contrast ratios.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """Colors by use: fills of nodes, each with the color of the text on it, and colors of lines and text on the background.

    Boxes are filled by their depth, with `box` (even) or `inner_box` (odd).
    """

    background: str
    text: str
    variable: str
    variable_text: str
    constant: str
    constant_text: str
    operation: str
    operation_text: str
    active: str
    active_text: str
    arrow: str
    cotangent: str
    mark: str
    box: str
    inner_box: str
    box_line: str
    muted: str


# Graphviz's names of colors, which DOT takes.
LIGHT = Theme(
    background="white", text="black",
    variable="lightblue", variable_text="black",
    constant="orange", constant_text="black",
    operation="purple3", operation_text="white",
    active="#1a7f37", active_text="white",
    arrow="gray40", cotangent="#006400", mark="red",
    box="#f4f1fa", inner_box="#e9e3f5", box_line="#7a6a99", muted="#595959",
)  # fmt: skip
DARK = Theme(
    background="#16181d", text="#eceaf2",
    variable="lightblue", variable_text="black",
    constant="orange", constant_text="black",
    operation="#bb95f7", operation_text="black",
    active="#3fb868", active_text="black",
    arrow="#a3a3ad", cotangent="#7ee08a", mark="#ff6b6b",
    box="#21232c", inner_box="#2c2f3b", box_line="#8f86ab", muted="#b4b2bf",
)  # fmt: skip
THEMES = {"light": LIGHT, "dark": DARK}

# Graphviz's names as #rrggbb, for browsers.
HEX = {
    "white": "#ffffff", "black": "#000000", "lightblue": "#add8e6", "orange": "#ffa500", "purple3": "#7d26cd",
    "gray40": "#666666", "red": "#ff0000",
}  # fmt: skip


def hex_of(color: str) -> str:
    """Return a color as ``#rrggbb``."""
    return HEX.get(color, color)
