"""The colors of pictures, light and dark; a test computes their contrasts.

Variables are light blue, constants orange, operations purple: the colors of the tutorial that the documentation follows. In
the dark theme the purple is lighter, since dark purple on black could hardly be seen.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """Colors by their use: fills of nodes, each with the color of the text on it, and colors seen on the background."""

    background: str
    text: str
    variable: str
    variable_text: str
    constant: str
    constant_text: str
    operation: str
    operation_text: str
    arrow: str
    adjoint: str
    mark: str
    box: str  # the fill of boxes at even depth, `inner_box` of those at odd depth, so that the nesting is seen
    inner_box: str
    box_line: str
    muted: str


# Names are those that Graphviz knows; they are written into DOT as they are.
LIGHT = Theme(
    background="white", text="black",
    variable="lightblue", variable_text="black",
    constant="orange", constant_text="black",
    operation="purple3", operation_text="white",
    arrow="gray40", adjoint="#006400", mark="red",
    box="#f4f1fa", inner_box="#e9e3f5", box_line="#7a6a99", muted="#595959",
)  # fmt: skip
DARK = Theme(
    background="#16181d", text="#eceaf2",
    variable="lightblue", variable_text="black",
    constant="orange", constant_text="black",
    operation="#bb95f7", operation_text="black",
    arrow="#a3a3ad", adjoint="#7ee08a", mark="#ff6b6b",
    box="#21232c", inner_box="#2c2f3b", box_line="#8f86ab", muted="#b4b2bf",
)  # fmt: skip
THEMES = {"light": LIGHT, "dark": DARK}

# Graphviz's names as #rrggbb, for browsers and for contrasts.
HEX = {
    "white": "#ffffff", "black": "#000000", "lightblue": "#add8e6", "orange": "#ffa500", "purple3": "#7d26cd",
    "gray40": "#666666", "red": "#ff0000",
}  # fmt: skip


def hex_of(color: str) -> str:
    """A color as ``#rrggbb``."""
    return HEX.get(color, color)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colors, from 1 to 21.

    Source: Web Content Accessibility Guidelines 2.2, "relative luminance" and "contrast ratio". Level AA requires 4.5 for
    text, and 3 for shapes that must be seen.

    Examples
    --------
    >>> round(contrast("white", "black")), round(contrast("white", "purple3"), 1)
    (21, 6.9)
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    text = hex_of(color)
    parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
