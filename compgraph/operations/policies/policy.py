"""The class `Policy`: what is done with each function of a family of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Policy:
    """What is done with each function of a family.

    Attributes
    ----------
    smooth_ufuncs, piecewise_ufuncs : frozenset of ufunc
        Ufuncs with a rule, and those that are piecewise constant.
    smooth : mapping
        Functions with a rule, and the names of the parameters that may be nodes, separated by spaces.
    packed : tuple
        Functions with a rule that take their operands as one sequence, which comes first.
    piecewise : mapping
        As `smooth`, for functions that are piecewise constant; they need no rule.
    composed : frozenset
        Functions whose NumPy implementation, run on nodes, is exact.
    instead : mapping
        Functions whose NumPy implementation fills buffers or takes its arguments apart, and for each the function of the
        same meaning, in recorded steps, that runs instead.
    plain : frozenset
        Functions that ask about an array; their answer is no part of the graph.
    refused : mapping
        Functions that raise a TypeError, and for each the text that says what to use instead.
    aliases : mapping
        Other names of a function.
    methods : mapping
        Names of array methods, and for each the function that it calls with the array as first argument.
    """

    smooth_ufuncs: frozenset[np.ufunc] = frozenset()
    piecewise_ufuncs: frozenset[np.ufunc] = frozenset()
    smooth: Mapping[Function, str] = field(default_factory=dict)
    packed: tuple[Function, ...] = ()
    piecewise: Mapping[Function, str] = field(default_factory=dict)
    composed: frozenset[Function] = frozenset()
    instead: Mapping[Function, Function] = field(default_factory=dict)
    plain: frozenset[Function] = frozenset()
    refused: Mapping[Function, str] = field(default_factory=dict)
    aliases: Mapping[Function, Function] = field(default_factory=dict)
    methods: Mapping[str, Function] = field(default_factory=dict)
