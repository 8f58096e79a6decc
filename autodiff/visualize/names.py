"""Short texts for nodes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compgraph.values import ConstantNode, MultiOutput
from compgraph.view import as_mathematics, chosen_name, name_of, showable

LONGEST = 24


def named(nodes: Sequence[Any]) -> dict[Any, str]:
    """A name for each node, all different. A scalar constant without a name is called by its number, which may occur twice."""
    names: dict[Any, str] = {}
    taken: set[str] = set()
    # Automatic names get their numbers when they are first asked for: the oldest first, so that they follow the computation.
    for node in sorted(nodes, key=lambda node: node.sequence_number):
        if isinstance(node, ConstantNode) and chosen_name(node) is None and node.ndim == 0:
            names[node] = number(node.raw_value)
            continue
        name = node.opname if isinstance(node, MultiOutput) else name_of(node) or node.name
        name = short(as_mathematics(showable(name).replace("\n", " ")) or "“”")
        count = 1
        while name + "′" * (count - 1) in taken:
            count += 1
        names[node] = name + "′" * (count - 1)
        taken.add(names[node])
    return names


def chosen(node: Any) -> bool:
    """Whether the user gave an operation its name (``y``); automatic ones are its opname and a number (``mul_0``)."""
    return bool(node.opname) and not isinstance(node, MultiOutput) and chosen_name(node) is not None


def letter(preferred: str, names: dict[Any, str]) -> str:
    """A letter that is not the name of a node: `preferred` if it is free."""
    return next(x for x in (preferred, "F", "φ", "τ", *(f"{preferred}{k}" for k in range(len(names)))) if x not in names.values())


def short(text: str, longest: int = LONGEST) -> str:
    """A text, cut to a length, with ``…`` at the end if something was cut off."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def number(value: Any, digits: int = 5) -> str:
    """A number as text, with so many significant digits."""
    value = np.asarray(value)[()]
    if isinstance(value, np.complexfloating):
        return f"{number(value.real, digits)}{'' if np.signbit(value.imag) else '+'}{number(value.imag, digits)}i"
    text = f"{float(value):.{digits}g}" if value.dtype.kind == "f" else str(value)
    return text.replace("-", "−")


def inner(value: Any) -> str:
    """A value within an equation: a number, in parentheses if it has a sign; an array, abbreviated; of several outputs, each."""
    if isinstance(value, tuple):
        return "(" + ", ".join("–" if v is None else inner(v) for v in value) + ")"
    value = np.asarray(value)
    if value.ndim == 0:
        text = number(value)
        return f"({text})" if text.startswith("−") or text.endswith("i") else text
    return rows(value, 3, 4)


def outer(value: Any) -> str:
    """A value at the end of an equation: as `inner`, but a number without parentheses."""
    return number(value) if not isinstance(value, tuple) and np.ndim(value) == 0 else inner(value)


def rows(value: Any, most: int, digits: int) -> str:
    """An array as text, of which the middle is left out if an axis is longer than ``most + 1``."""
    if value.ndim == 0:
        return number(value, digits)
    length = len(value)
    there = range(length) if length <= most + 1 else [*range(most - 1), -1]
    words = [rows(value[k], most, digits) for k in there]
    if len(words) < length:
        words.insert(-1, "…")
    return "[" + " ".join(words) + "]"


def shape(value: Any) -> str:
    """The shape of an array as text, ``2×3``; of several outputs, each."""
    if isinstance(value, tuple):
        return ", ".join(map(shape, (v for v in value if v is not None)))
    return "×".join(map(str, np.shape(value))) or "1"


def on_node(value: Any) -> str:
    """A value as it stands in a node: a number, a short array, or its shape."""
    if isinstance(value, tuple):
        return short(f"{len(value)} results")
    text = number(value) if np.ndim(value) == 0 else rows(np.asarray(value), 3, 3)
    return text if len(text) <= 20 else f"array {shape(value)}"
