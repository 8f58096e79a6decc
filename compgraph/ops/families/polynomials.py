"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

import numpy as np

from ..compositions.polynomials import polyfit
from ..spec import OpSpec, composed, rule, steps

OPERATIONS: tuple[OpSpec, ...] = (
    rule(np.polyval, "p x"),
    composed(np.polyadd),
    composed(np.polysub),
    rule(np.polymul, "a1 a2", kind="sequential", length="values"),
    rule(np.polydiv, "u v", kind="sequential", length="values"),
    rule(np.polyder, "p", kind="sequential"),
    rule(np.polyint, "p k", kind="sequential"),
    steps(np.polyfit, polyfit),
    rule(np.poly, "seq_of_zeros", kind="sequential"),
    rule(np.roots, "p", kind="sequential", length="values"),
)
