"""The families of SciPy's functions, each entered once its module was imported."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..graph.context import renewed
from .entering import enter
from .policy import Policy

# Each module of SciPy's, and where its policy stands.
FAMILIES = {
    "scipy.linalg": "linalg",
    "scipy.optimize": "optimize",
}
# What other packages answer for, by module and name: where the function stands that runs instead, and whether it is asked in
# any case.
_answers: dict[str, dict[str, tuple[str, bool]]] = {}

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
    """The policy of a family, with what others answer for."""
    policy: Policy = importlib.import_module(f"{__package__}.{family}").POLICY
    answers = _answers.get(policy.module)
    if not answers:
        return policy
    return replace(
        policy,
        instead={**policy.instead, **{name: _standing(where) for name, (where, _) in answers.items()}},
        refused={name: advice for name, advice in policy.refused.items() if name not in answers},
        calling=policy.calling | {name for name, (_, calling) in answers.items() if calling},
    )


def answer_by(module: str, name: str, where: str, calling: bool = True) -> None:
    """Let a function of another package run instead of one of SciPy's: of a name that the policy refuses.

    Parameters
    ----------
    module, name : str
        The module of SciPy's, and the name as a policy has it.
    where : str
        Where the function stands, ``"package.module:function"``; it is imported once the family is entered.
    calling : bool
        Whether it is asked in any case, since functions that it is given may bring nodes.
    """
    _answers.setdefault(module, {})[name] = where, calling


def _standing(where: str) -> Callable[..., Any]:
    """What stands at a place, ``"package.module:function"``."""
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
