"""How a user's primitive is pickled: by its name if other programs can import it, else with its function."""

from __future__ import annotations

from typing import Any

from ..protocols import Primitive
from .carried import import_object, is_shared, place_of
from .functions import function_called, name_of

_OF_FUNCTION = ("function", "__wrapped__", "_signature")


def _reduced(primitive: Primitive) -> Any:
    module, path = place_of(primitive)
    if is_shared(module) and import_object(module, path) is primitive:
        return path
    others = {name: value for name, value in vars(primitive).items() if name not in _OF_FUNCTION}
    return object.__new__, (Primitive,), (name_of(primitive.function), others)


def _set_state(primitive: Primitive, state: Any) -> None:
    name, others = state
    function = function_called(name)
    vars(primitive).update(others, function=function, __wrapped__=function)


for _name, _method in (("__reduce__", _reduced), ("__setstate__", _set_state)):
    setattr(Primitive, _name, _method)
