"""The class `Policy`: how calls of a SciPy module's functions with nodes are handled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ops import Kind


@dataclass(frozen=True)
class Policy:
    """How each public function of a SciPy module handles nodes among the arguments.

    Names are relative to the module: a class, ``"CubicSpline"``, for the creation of instances, or a method,
    ``"CubicSpline.__call__"``. Functions in no attribute raise for nodes.

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
        Functions, each with an equivalent function of recorded steps.
    own_code : frozenset of str
        Functions and methods whose own Python code runs on tracers; see the module of this name.
    fixed_options : mapping
        For functions of `own_code`, parameters that must keep their default in calls with nodes, each with advice.
    always : frozenset of str
        Names in `own_code` and `replacements` whose arguments are user functions or objects. These may contain nodes, so the
        handler also runs for calls without nodes.
    plain : frozenset of str
        Names that are not patched, because they never receive nodes (errors, modules, functions of names and counts).
    lowered : mapping
        Ufuncs with a lowering to machine code, and its name.
    formulas : mapping
        Ufuncs that SymPy has, and their formulas; see `ops.OpSpec`.
    operation_kinds : mapping
        Functions with a rule of another `ops.OpSpec.kind` than "own", and their kind.
    unsupported : mapping
        Names that raise a TypeError, each with an alternative that completes "use ...".
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
    operation_kinds: Mapping[str, Kind] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Pairs of each name and its kind, which is the name of the attribute that contains it."""
        for kind in _KINDS:
            for name in getattr(self, kind):
                yield name, kind


_KINDS = ("smooth", "piecewise", "smooth_ufuncs", "piecewise_ufuncs", "own_code", "replacements", "plain", "unsupported")
