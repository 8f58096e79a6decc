"""The opname of a callable, the callable of an opname, and which of its arguments are operands."""

from __future__ import annotations

import functools
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .attached import keep, kept
from .callables import Configured, Keyworded, Output, Packed, UfuncMethod
from .spec import OpSpec, Policy, is_elementwise
from .tables import (
    ALIASES,
    COMPOSED_FUNCTIONS,
    INDEXED,
    INSTEAD_FUNCTIONS,
    OPNAMES,
    PACKED_FUNCTIONS,
    PIECEWISE,
    PIECEWISE_FUNCTIONS,
    PIECEWISE_UFUNCS,
    SMOOTH_FUNCTIONS,
    SMOOTH_UFUNCS,
    SPECS,
)


def opname_of(function: Any) -> str:
    """The opname under which a function is recorded."""
    opname = OPNAMES.get(function) or kept(function, "opname")
    if opname is not None:
        return opname
    if isinstance(function, (Keyworded, Configured)):
        return opname_of(function.function)
    if isinstance(function, UfuncMethod):
        return f"{opname_of(function.ufunc)}_{function.method}"
    return "output" if isinstance(function, Output) else getattr(function, "__name__", str(function))


_by_opname: dict[str, Any] = {opname: function for function, opname in reversed(OPNAMES.items())}
_users: WeakValueDictionary[str, Any] = WeakValueDictionary()  # functions of users, whose opnames are attached to them


PUBLIC_NAMES: dict[Any, str] = {}  # for messages: the name by which users call a function that is defined in a private module


def function_named(opname: str) -> Any:
    """The recorded function of an opname, or None."""
    function = _by_opname.get(opname)
    return _users.get(opname) if function is None else function


def enter(function: Any, opname: str, policy: Policy = "rule", **data: Any) -> None:
    """Let a function be recorded under an opname, for good; `data` is what else its `OpSpec` says."""
    if is_elementwise(function):
        data.setdefault("kind", "elementwise")
    SPECS[function] = OpSpec(function, policy, opname=opname, **data)
    OPNAMES[function] = opname
    _by_opname[opname] = function


def enter_users(function: Any, opname: str) -> None:
    """Let a user's function be recorded under an opname, which is free again when the function is garbage-collected."""
    if keep(function, "opname", opname):
        _users[opname] = function
    else:
        enter(function, opname)


def enter_piecewise(function: Any, opname: str, **data: Any) -> None:
    """Let a piecewise constant function be recorded; it needs no rule. `data` is what else its `OpSpec` says."""
    enter(function, opname, "piecewise", **data)
    PIECEWISE.add(function)


def spec_of(function: Any) -> OpSpec | None:
    """The `OpSpec` of a recorded function, without its settings; None for one of a user."""
    while isinstance(function, (Configured, Keyworded, Packed)):
        function = function.function
    return SPECS.get(function)


def operand_names(function: Any) -> tuple[str, ...]:
    """The names of the parameters of a function that may be nodes, in order."""
    if isinstance(function, UfuncMethod):
        return ("array", "initial", "where") if function.method == "reduce" else ("array",)
    return tuple(SMOOTH_FUNCTIONS.get(function, PIECEWISE_FUNCTIONS.get(function, "")).split())


@functools.cache
def keyworded(function: Any, names: tuple[str, ...]) -> Keyworded:
    """Return `function` as a `Keyworded` with these names; a name that is not an operand of the function is a count."""
    known = operand_names(function)
    return Keyworded(function, names, tuple(name for name in names if name not in known))


def operand_count(function: Any, argument_count: int) -> int:
    """How many of the arguments passed to a recorded function are operands; indices are not."""
    return 1 if function in INDEXED else argument_count


@functools.cache
def public_functions(module: Any = np) -> dict[str, Any]:
    """The functions of NumPy, or of a part of it, that can be recorded, under the names NumPy gives them."""
    recorded = {
        *SMOOTH_UFUNCS,
        *PIECEWISE_UFUNCS,
        *SMOOTH_FUNCTIONS,
        *PACKED_FUNCTIONS,
        *PIECEWISE_FUNCTIONS,
        *COMPOSED_FUNCTIONS,
        *INSTEAD_FUNCTIONS,
    }
    recorded |= {*ALIASES, np.einsum}
    return {name: f for name in module.__all__ if callable(f := getattr(module, name)) and _hashable(f) and f in recorded}


def _hashable(f: Any) -> bool:
    return f.__hash__ is not None
