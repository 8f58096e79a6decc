"""The families of SciPy's functions, each entered once its module was imported."""

from __future__ import annotations

import importlib
import sys
import threading

from ..graph.context import renewed
from .entering import enter
from .policy import Policy

# Each module of SciPy's, and where its policy stands.
FAMILIES = {
    "scipy.linalg": "linalg",
    "scipy.special": "special",
    "scipy.stats": "stats",
}

_entered: set[str] = set()
_lock = renewed(threading.RLock())
_seen = 0


def enter_imported() -> None:
    """Enter the families of the modules of SciPy's that have been imported since it was last asked."""
    global _seen
    if len(sys.modules) == _seen:
        return
    with _lock:
        _seen = len(sys.modules)
        for module, family in FAMILIES.items():
            if module in sys.modules and module not in _entered:
                _entered.add(module)
                enter(policy_of(family))


def policy_of(family: str) -> Policy:
    """The policy of a family."""
    policy: Policy = importlib.import_module(f"{__package__}.{family}").POLICY
    return policy
