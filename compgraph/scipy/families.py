"""The families of SciPy's functions. The policy of each is entered once its module was imported, even if that is much later."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from ..context import reset_after_fork
from ..interception import ImportHook, adapt_imported, is_loading
from ..values import before_variables
from .entering import enter
from .policy import Policy

# For each module of SciPy, the module here that has its policy.
FAMILIES = {
    "scipy.fft": "fft",
    "scipy.integrate": "integrate",
    "scipy.interpolate": "interpolate",
    "scipy.linalg": "linalg",
    "scipy.ndimage": "ndimage",
    "scipy.optimize": "optimize",
    "scipy.signal": "signal",
    "scipy.signal.windows": "signal.windows",
    "scipy.sparse": "sparse",
    "scipy.sparse.linalg": "sparse.linalg",
    "scipy.spatial": "spatial",
    "scipy.spatial.distance": "spatial.distance",
    "scipy.spatial.transform": "spatial.transform",
    "scipy.special": "special",
    "scipy.stats": "stats",
}

_entered: set[str] = set()
_replacements: dict[str, dict[str, tuple[str, bool]]] = {}  # by module and name: `where` and `calling` of `answer_by`
_callbacks: list[Callable[[str], None]] = []
_lock = reset_after_fork(threading.RLock())
_waiting: list[str] = []
_is_entering = False
_seen = 0


def enter_imported() -> None:
    """Enter the families whose SciPy modules have been imported since the last call; others are entered on import.

    The same holds for other libraries that are adapted to nodes; see `interception.import_hooks`.
    """
    global _seen
    if len(sys.modules) == _seen:
        return
    adapt_imported()
    with _lock:
        if not _seen:
            # A policy that is imported first imports SciPy's module, which is entered when the policy is complete.
            policies = {f"{__package__}.{family}" for family in FAMILIES.values()}
            sys.meta_path.insert(0, ImportHook({*FAMILIES, *policies}, _arrived))
        _seen = len(sys.modules)
        _waiting.extend([module for module in FAMILIES if module in sys.modules and not is_loading(sys.modules[module])])
        _enter_waiting()


def _arrived(modules: list[str]) -> None:
    """Enter the families of modules that were loaded just now: while a function is traced, say.

    A thread that loads a module holds the lock of that import, for which one that enters families may wait. So this does not
    wait for the latter; it finds what has arrived.
    """
    _waiting.extend([module for module in modules if module in FAMILIES])
    if _lock.acquire(blocking=False):
        try:
            _enter_waiting()
        finally:
            _lock.release()


def _enter_waiting() -> None:
    """Enter one after the other; what arrives meanwhile, since a policy imports it, comes after."""
    global _is_entering
    if _is_entering:
        return
    _is_entering = True
    try:
        while _waiting:
            module = _waiting.pop(0)
            if module not in _entered:
                _entered.add(module)
                enter(policy_of(FAMILIES[module]))
                for callback in _callbacks:
                    callback(module)
    finally:
        _is_entering = False


def when_entered(callback: Callable[[str], None]) -> None:
    """Call `callback` with the name of SciPy's module for each family: at once where it is entered, otherwise on entering."""
    with _lock:
        _callbacks.append(callback)
        for module in _entered:
            callback(module)


before_variables.append(enter_imported)


def answer_by(module: str, name: str, where: str, calling: bool = True) -> None:
    """Let a function of another package run instead of one of SciPy's: a solver, say.

    Parameters
    ----------
    module, name : str
        The module of SciPy, and the function, as its policy names it.
    where : str
        The function that runs instead, ``"package.module:function"``; imported when it is first called.
    calling : bool
        Whether it runs for calls without nodes as well, since a user's function among the arguments may bring nodes.
    """
    with _lock:
        _replacements.setdefault(module, {})[name] = where, calling
        if module in _entered:
            enter(policy_of(FAMILIES[module]), only=name)


def policy_of(family: str) -> Policy:
    """The policy of a family, with the functions that were given by `answer_by`."""
    policy: Policy = importlib.import_module(f"{__package__}.{family}").POLICY
    replacements = _replacements.get(policy.module)
    if not replacements:
        return policy
    return dataclasses.replace(
        policy,
        refused={name: advice for name, advice in policy.refused.items() if name not in replacements},
        instead={**policy.instead, **{name: _standing(where) for name, (where, _) in replacements.items()}},
        calling=policy.calling | {name for name, (_, calling) in replacements.items() if calling},
    )


def _standing(where: str) -> Any:
    """A function that calls the one at ``"package.module:function"``, which is imported at the first call."""
    module, _, name = where.partition(":")

    @functools.cache
    def resolve() -> Any:
        return getattr(importlib.import_module(module), name)

    return lambda *args, **kwargs: resolve()(*args, **kwargs)
