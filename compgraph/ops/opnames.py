"""Lookup of the opname of a callable, of the callable of an opname, and of the parameters that are operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .callables import Configured, Keyworded, Output, Packed, UfuncMethod, get_attached, set_attached
from .spec import OpSpec, Policy, is_elementwise
from .tables import (
    ALIASES,
    COMPOSED_FUNCTIONS,
    INDEXING_FUNCTIONS,
    OPNAMES,
    PACKED_FUNCTIONS,
    PIECEWISE,
    PIECEWISE_FUNCTIONS,
    PIECEWISE_UFUNCS,
    REPLACED_FUNCTIONS,
    SMOOTH_FUNCTIONS,
    SMOOTH_UFUNCS,
    SPECS,
)


def opname_of(function: Any) -> str:
    """The opname under which a function is recorded."""
    opname = OPNAMES.get(function) or get_attached(function, "opname")
    if opname is not None:
        return opname
    if isinstance(function, (Keyworded, Configured)):
        return opname_of(function.function)
    if isinstance(function, UfuncMethod):
        return f"{opname_of(function.ufunc)}_{function.method}"
    return "output" if isinstance(function, Output) else getattr(function, "__name__", str(function))


FUNCTIONS_BY_OPNAME: dict[str, Any] = {opname: function for function, opname in reversed(OPNAMES.items())}
_user_functions: WeakValueDictionary[str, Any] = WeakValueDictionary()  # functions of users, whose opnames are attached to them


PUBLIC_NAMES: dict[Any, str] = {}  # for messages: the name by which users call a function that is defined in a private module


def function_by_opname(opname: str) -> Any:
    """The recorded function of an opname, or None."""
    function = FUNCTIONS_BY_OPNAME.get(opname)
    return _user_functions.get(opname) if function is None else function


def register_operation(function: Any, opname: str, policy: Policy = "rule", **data: Any) -> None:
    """Register a function as an operation with an opname, permanently; `data` are further fields of its `OpSpec`."""
    if is_elementwise(function):
        data.setdefault("kind", "elementwise")
    SPECS[function] = OpSpec(function, policy, opname=opname, **data)
    OPNAMES[function] = opname
    FUNCTIONS_BY_OPNAME[opname] = function


def register_user_function(function: Callable[..., Any], opname: str) -> None:
    """Register a user's function as an operation; its opname is free again when the function is garbage-collected."""
    if set_attached(function, "opname", opname):
        _user_functions[opname] = function
    else:
        register_operation(function, opname)


def register_piecewise(function: Callable[..., Any], opname: str, **data: Any) -> None:
    """Register a piecewise constant operation, which needs no rule; `data` are further fields of its `OpSpec`."""
    register_operation(function, opname, "piecewise", **data)
    PIECEWISE.add(function)


def spec_of(function: Callable[..., Any] | Packed) -> OpSpec | None:
    """The `OpSpec` of the function within adapters; None for a user's function."""
    while isinstance(function, (Configured, Keyworded, Packed)):
        function = function.function
    return SPECS.get(function)


def operand_names(function: Callable[..., Any] | Packed | UfuncMethod) -> tuple[str, ...]:
    """The names of the parameters of a function that may be nodes, in order."""
    if isinstance(function, UfuncMethod):
        return ("array", "initial", "where") if function.method == "reduce" else ("array",)
    return tuple(SMOOTH_FUNCTIONS.get(function, PIECEWISE_FUNCTIONS.get(function, "")).split())


@functools.cache
def keyworded(function: Callable[..., Any] | Packed | UfuncMethod, names: tuple[str, ...]) -> Keyworded:
    """Return `function` as a `Keyworded` with these names; a name that is not an operand of the function is a count."""
    operands = operand_names(function)
    return Keyworded(function, names, tuple(name for name in names if name not in operands))


def operand_count(function: Callable[..., Any] | Packed | None, argument_count: int) -> int:
    """The number of operands among the arguments of a recorded function; indices are not operands."""
    return 1 if function in INDEXING_FUNCTIONS else argument_count


@functools.cache
def public_functions(module: Any = np) -> dict[str, Any]:
    """The public functions of NumPy, or of one of its modules, that are recorded, by name."""
    recorded = {
        *SMOOTH_UFUNCS,
        *PIECEWISE_UFUNCS,
        *SMOOTH_FUNCTIONS,
        *PACKED_FUNCTIONS,
        *PIECEWISE_FUNCTIONS,
        *COMPOSED_FUNCTIONS,
        *REPLACED_FUNCTIONS,
    }
    recorded |= {*ALIASES, np.einsum}
    functions = {name: getattr(module, name) for name in module.__all__}
    return {name: f for name, f in functions.items() if callable(f) and f.__hash__ is not None and f in recorded}
