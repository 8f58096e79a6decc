"""What users of other packages write, and what is written here instead: errors that say it.

What is a mere name (`argnum=` for `argnums=`) is understood, by who knows what it means; here is what would be an error in any
case, and silent nowhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Missing:
    """An attribute that other packages' objects have, and ours do not: reading and setting it raises and says what to do.

    Parameters
    ----------
    advice : str
        What is written instead.
    """

    def __init__(self, advice: str) -> None:
        self.advice = advice

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> NoReturn:
        holder = type(instance).__name__ if instance is not None else getattr(owner, "__name__", "it")
        raise AttributeError(f"{holder!r} has no attribute {self.name!r}: {self.advice}", name=self.name, obj=instance)

    def __set__(self, instance: Any, value: Any) -> None:
        self.__get__(instance)


def without_missing(names: Iterable[str], owner: type) -> list[str]:
    """Names for ``dir``, without those that only say what to do."""
    return [name for name in names if not any(isinstance(vars(c).get(name), Missing) for c in owner.__mro__)]


def refuse_options(name: str, given: Iterable[str], advice: Mapping[str, str]) -> None:
    """Raise a TypeError where a keyword argument is one of another package, and say what to do instead."""
    for option in given:
        if option in advice:
            raise TypeError(f"{name} takes no {option}=: {advice[option]}")


def saying(advice: Mapping[str, str]) -> Callable[[F], F]:
    """A decorator of functions: keyword arguments that other packages have raise, and say what to do instead."""

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                refuse_options(function.__name__, kwargs, advice)
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    return decorated


def missing(module: str, name: str, advice: Mapping[str, str]) -> AttributeError:
    """The error for a name that a module does not have."""
    told = f": {advice[name]}" if name in advice else ""
    return AttributeError(f"{module} has no {name!r}{told}", name=name)
