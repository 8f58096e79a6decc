"""Families of SciPy's functions. The policy of a family is registered whenever its module of SciPy is imported."""

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
from ..values import variable_hooks
from .policy import Policy, register_policy

# By module of SciPy, the module here with its policy.
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

_registered: set[str] = set()
_replacements: dict[str, dict[str, tuple[str, bool]]] = {}  # by module and name: `target` and `always` of `register_replacement`
_callbacks: list[Callable[[str], None]] = []
_lock = reset_after_fork(threading.RLock())
_pending: list[str] = []
_is_registering = False
_module_count = 0


def register_imported() -> None:
    """Register the families whose SciPy modules were imported since the last call; others are registered on import.

    Other libraries that are adapted to nodes are treated likewise; see `interception.import_hooks`.
    """
    global _module_count
    if len(sys.modules) == _module_count:
        return
    adapt_imported()
    with _lock:
        if not _module_count:
            # If a policy is imported first, it imports SciPy's module, which is registered when the policy is complete.
            policies = {f"{__package__}.{family}" for family in FAMILIES.values()}
            sys.meta_path.insert(0, ImportHook({*FAMILIES, *policies}, _on_import))
        _module_count = len(sys.modules)
        _pending.extend([module for module in FAMILIES if module in sys.modules and not is_loading(sys.modules[module])])
        _register_pending()


def _on_import(modules: list[str]) -> None:
    """Register the families of modules that have just been loaded, for example while a function is traced.

    The importing thread holds the import lock of a module, for which a thread that registers families may wait. To avoid a
    deadlock, this does not wait for that thread, which processes the queue.
    """
    _pending.extend([module for module in modules if module in FAMILIES])
    if _lock.acquire(blocking=False):
        try:
            _register_pending()
        finally:
            _lock.release()


def _register_pending() -> None:
    """Register the queued families; importing a policy may queue further ones."""
    global _is_registering
    if _is_registering:
        return
    _is_registering = True
    try:
        while _pending:
            module = _pending.pop(0)
            if module not in _registered:
                _registered.add(module)
                register_policy(policy_of(FAMILIES[module]))
                for callback in _callbacks:
                    callback(module)
    finally:
        _is_registering = False


def on_registration(callback: Callable[[str], None]) -> None:
    """Call `callback` with the name of SciPy's module of each registered family, at once and whenever one is registered."""
    with _lock:
        _callbacks.append(callback)
        for module in _registered:
            callback(module)


variable_hooks.append(register_imported)


def register_replacement(module: str, name: str, target: str, always: bool = True) -> None:
    """Register a function of another package, such as a differentiable solver, as the replacement of a SciPy function.

    Parameters
    ----------
    module, name : str
        The module of SciPy, and the function, named as in its policy.
    target : str
        The replacement, ``"package.module:function"``; imported when it is first called.
    always : bool
        Whether it runs for calls without nodes as well, because a user's function among the arguments may use nodes.
    """
    with _lock:
        _replacements.setdefault(module, {})[name] = target, always
        if module in _registered:
            register_policy(policy_of(FAMILIES[module]), only=name)


def policy_of(family: str) -> Policy:
    """The policy of a family, including the replacements by `register_replacement`."""
    policy: Policy = importlib.import_module(f"{__package__}.{family}").POLICY
    replacements = _replacements.get(policy.module)
    if not replacements:
        return policy
    return dataclasses.replace(
        policy,
        unsupported={name: advice for name, advice in policy.unsupported.items() if name not in replacements},
        replacements={**policy.replacements, **{name: _lazy_function(target) for name, (target, _) in replacements.items()}},
        always=policy.always | {name for name, (_, always) in replacements.items() if always},
    )


def _lazy_function(target: str) -> Any:
    """Return a function that imports ``"package.module:function"`` at its first call, and calls it."""
    module, _, name = target.partition(":")

    @functools.cache
    def resolve() -> Any:
        return getattr(importlib.import_module(module), name)

    return lambda *args, **kwargs: resolve()(*args, **kwargs)
