"""The package's own rules, without those that test modules declare."""

from __future__ import annotations

import scipy.special  # noqa: F401  (before its rules, which are incomplete if they import it while a graph exists)

from autodiff import grads
from autodiff.grads.scipy.special.ufunc_rules import UNKNOWN
from autodiff.rules import rules
from compgraph.scipy import register_imported

register_imported()  # the functions of the rules, which are otherwise registered with the first variable
grads._load_family("scipy.special")
RULES = {
    opname: rule
    for opname, rule in rules.items()
    if opname not in UNKNOWN and not opname.startswith(("scipy_", "ndimage_"))  # independent of the loaded SciPy modules
}
