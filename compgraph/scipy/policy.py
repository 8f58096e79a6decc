"""The form in which a family of SciPy's functions says what is done with each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Policy:
    """What is done with each public name of a module of SciPy's when a node is among the arguments.

    Names are as in the module; ``"CubicSpline"`` means the making of one, ``"CubicSpline.__call__"`` a method. What stands
    nowhere is refused.

    Attributes
    ----------
    module : str
        The module, ``"scipy.linalg"``.
    smooth : mapping
        Functions with a rule, and the names of the parameters that may be nodes, separated by spaces.
    piecewise : mapping
        Functions that are recorded and have no derivative but zero; as `smooth`.
    instead : mapping
        Functions of which one of the same meaning, in recorded steps, runs instead.
    composed : frozenset of str
        Functions whose own code in Python, run on nodes, is exact; each is tested to be.
    calling : frozenset of str
        Of `instead`, those that are given functions of the user, which may bring nodes: they are asked in any case.
    plain : frozenset of str
        What never has to do with nodes: errors, modules, functions of names and counts.
    refused : mapping
        What raises a TypeError, and what to use instead.
    """

    module: str
    smooth: Mapping[str, str] = field(default_factory=dict)
    piecewise: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    composed: frozenset[str] = frozenset()
    calling: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Each name, and its kind: the name of the attribute where it stands."""
        for kind in ("smooth", "piecewise", "instead", "composed", "plain", "refused"):
            for name in getattr(self, kind):
                yield name, kind
