"""The class `Policy`: the treatment of each function of a SciPy module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Policy:
    """The treatment of each public name of a SciPy module for nodes among the arguments.

    Names are as in the module: that of a class, ``"CubicSpline"``, means making an instance, ``"CubicSpline.__call__"``
    for a method. A name in no attribute raises.

    Attributes
    ----------
    module : str
        The module, ``"scipy.linalg"``.
    smooth : mapping
        Functions with a rule, and the names of the parameters that may be nodes, separated by spaces.
    piecewise : mapping
        As `smooth`, for functions that are piecewise constant; they need no rule.
    smooth_ufuncs, piecewise_ufuncs : frozenset of str
        Ufuncs with a rule, and piecewise constant ones. They dispatch to nodes by NumPy's protocol.
    replacements : mapping
        Functions, and for each an equivalent function of this package in recorded steps.
    own_code : frozenset of str
        Functions and methods whose own Python code runs on tracers; see the module of this name.
    fixed_options : mapping
        For functions of `own_code`, parameters that must keep their default in calls with nodes, each with the alternative.
    always : frozenset of str
        Of `own_code` and `replacements`, those that take a user's functions or objects. These may use nodes, so handlers run for
        calls without nodes too.
    plain : frozenset of str
        Unchanged names, which never receive nodes (errors, modules, functions of names and counts).
    lowered : mapping
        The ufuncs with a lowering to machine code, and its name.
    formulas : mapping
        The ufuncs that SymPy has, and their formulas; see `ops.OpSpec`.
    refused : mapping
        Names that raise a TypeError, each with the alternative.
    """

    module: str
    smooth: Mapping[str, str] = field(default_factory=dict)
    piecewise: Mapping[str, str] = field(default_factory=dict)
    smooth_ufuncs: frozenset[str] = frozenset()
    piecewise_ufuncs: frozenset[str] = frozenset()
    replacements: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    own_code: frozenset[str] = frozenset()
    fixed_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    lowered: Mapping[str, str] = field(default_factory=dict)
    formulas: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Each name and its kind, the name of the attribute that contains it."""
        for kind in ("smooth", "piecewise", "smooth_ufuncs", "piecewise_ufuncs", "own_code", "replacements", "plain", "refused"):
            for name in getattr(self, kind):
                yield name, kind
