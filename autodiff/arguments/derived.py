"""Functions made by operators, pickled as the operator call that made them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from compgraph.serialization import PICKLED_WHOLE


class Derived:
    """A function made by an operator. It calls the function it holds, also as a method, and is pickled as the operator call.

    Parameters
    ----------
    function : callable
        What the operator returned.
    operator : callable
        The public operator.
    args, kwargs : tuple, dict
        Its arguments.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.__func__, self._making = function, (operator, args, kwargs)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.__func__(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        operator, args, _ = self._making
        return f"<{operator.__name__} of {getattr(args[0], '__name__', args[0]) if args else self.__name__}>"

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self else (_made, self._making)  # by its name, if it was made by a decorator


PICKLED_WHOLE.add(Derived)


def _made(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Repeat an operator call when unpickling."""
    return operator(*args, **kwargs)


def pickle_as_call(operator: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an operator as a `Derived`, if it is a function."""
    return Derived(function, operator, args, kwargs) if callable(function) else function
