"""Users' functions that no other program can import, such as those of a notebook: they are pickled with the graph.

Pickle writes functions by name. cloudpickle writes those of ``__main__``, and functions within functions, by their code, and
with them their attributes: opname and rule. Where such a function is loaded, it is entered under its opname; if a different
function has that opname there, loading raises a ValueError.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from types import FunctionType
from typing import Any

from .. import ops
from ..frames import frame_up

_others: dict[str, Any] = {}  # by opname: callables that came with a pickle, and that `ops.keep_original` cannot mark as such


class Carried:
    """A function in a pickle: cloudpickle writes its code, others its module and name, or raise if it is not found there."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        place, opname = place_of(self.function), ops.opname_of(self.function)
        if "cloudpickle" in str(frame_up(1).f_globals.get("__name__")).split("."):  # joblib has a copy of cloudpickle
            return _arrived, (self.function, opname, place, ops.known_elsewhere(self.function))
        if import_function(*place) is not self.function:
            raise TypeError(
                f"{opname} cannot be pickled: its function is not found as {place[1]!r} in the "
                f"module {place[0]!r}. Define the function (cg.primitive) at the top level of a module, under its own name, or "
                "pickle with cloudpickle, which takes functions as they are"
            )
        return _there, (*place, opname)


def place_of(function: Any) -> tuple[str, str]:
    """The module of a function, and its name there."""
    path = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    return str(getattr(function, "__module__", None) or ""), str(path)


def is_shared(module: str) -> bool:
    """Whether other programs can import a module of that name: not ``__main__``, nor one registered to be pickled by value."""
    cloudpickle = sys.modules.get("cloudpickle")
    return module != "__main__" and (cloudpickle is None or module not in cloudpickle.list_registry_pickle_by_value())


def import_object(module: str, path: str) -> Any:
    """What a module has under a dotted name, or None."""
    try:
        found: Any = importlib.import_module(module)
    except (ImportError, ValueError):
        return None
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def import_function(module: str, path: str) -> Any:
    """The function that a module has under a dotted name, or None; for a primitive, the function it was made from."""
    found = import_object(module, path)
    return getattr(found, "function", found)  # a primitive stands for its function


def _there(module: str, path: str, opname: str) -> Any:
    found = import_function(module, path)
    if found is None:
        raise TypeError(
            f"the pickled graph uses the operation {opname!r}, whose function {path!r} is not found in {module!r} here; define "
            "it first, or pickle with cloudpickle, which takes functions as they are"
        )
    return found


def _arrived(function: Any, opname: str, place: tuple[str, str], known: dict[str, Any]) -> Any:
    """Load a function that came with a pickle: enter it here, or return the same function if it is here already.

    The function may not be complete yet, since what it refers to may refer back to it: only its code is sure to be there.
    """
    here = ops.function_named(opname)
    if here is None or (_has_arrived(here, opname) and place_of(here)[0] == place[0]):
        _enter(function, opname, known)
        return function
    if here is function or _is_same(here, function, place):
        return here
    if _has_code_of(here, function, place):  # closure and defaults may differ, so each node keeps its own function
        return function
    raise ValueError(
        f"a pickle brings the operation {opname!r} of {place[0]}, and another of that name is defined here, in "
        f"{place_of(here)[0]}; give one of them another name (cg.primitive(opname=...))"
    )


def _enter(function: Any, opname: str, known: dict[str, Any]) -> None:
    ops.enter_users(function, opname)
    if not ops.keep(function, "arrived", True):
        _others[opname] = function
    for what, value in known.items():
        ops.KNOWN_ELSEWHERE[what][1](function, value)


def _has_arrived(here: Any, opname: str) -> bool:
    """Whether a function came with an earlier pickle, and was not defined here: a newer one of its opname may replace it."""
    return ops.kept(here, "arrived") is not None or _others.get(opname) is here


def _is_same(here: Any, function: Any, place: tuple[str, str]) -> bool:
    """Whether a function defined here is what it was in the program that pickled it."""
    if type(here) is FunctionType:
        return _has_code_of(here, function, place) and not (here.__closure__ or here.__defaults__ or here.__kwdefaults__)
    try:
        return pickle.dumps(here) == pickle.dumps(function)
    except Exception:  # what cannot be pickled cannot be compared
        return False


def _has_code_of(here: Any, function: Any, place: tuple[str, str]) -> bool:
    both = type(here) is FunctionType and type(function) is FunctionType
    return both and place_of(here) == place and here.__code__ == function.__code__
