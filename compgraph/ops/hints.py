"""Error messages for names of other packages (PyTorch, JAX ...). Each states the equivalent in this package.

Synonyms (`argnum=` for `argnums=`) are accepted by the functions themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from .tables import public_functions

F = TypeVar("F", bound=Callable[..., Any])


class MissingAttribute:
    """An attribute that objects of other packages have; reading or setting it raises an AttributeError with advice.

    Parameters
    ----------
    advice : str
        The equivalent in this package.
    """

    def __init__(self, advice: str) -> None:
        self.advice = advice

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        holder = type(instance).__name__ if instance is not None else getattr(owner, "__name__", "")
        raise AttributeError(f"{holder!r} has no attribute {self.name!r}: {self.advice}", name=self.name, obj=instance)

    def __set__(self, instance: object, value: object) -> None:
        self.__get__(instance)


def remove_missing_attributes(names: Iterable[str], owner: type) -> list[str]:
    """Return the names for ``dir`` without each `MissingAttribute`."""
    return [name for name in names if not any(isinstance(vars(c).get(name), MissingAttribute) for c in owner.__mro__)]


def raise_for_foreign_options(name: str, options: Iterable[str], advice: Mapping[str, str]) -> None:
    """Raise a TypeError for a keyword argument of another package; the message states the equivalent in this package."""
    for option in options:
        if option in advice:
            raise TypeError(f"{name} takes no {option}=: {advice[option]}")


def reject_foreign_options(advice: Mapping[str, str]) -> Callable[[F], F]:
    """Return a decorator. The function raises a TypeError for foreign keyword arguments, and states the equivalent."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Any:
            if kwargs:
                raise_for_foreign_options(function.__name__, kwargs, advice)
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def make_missing_name_error(module: str, name: str, advice: Mapping[str, str]) -> AttributeError:
    """Return the AttributeError for a name that is not in a module; it states the equivalent in this package."""
    alternative = f"np.{name} is recorded" if name in public_functions() else advice.get(name)
    return AttributeError(f"{module} has no {name!r}" + (f": {alternative}" if alternative else ""), name=name)


class AdviceFinder:
    """An import hook at the end of ``sys.meta_path``. It raises an error with advice for modules of other packages.

    Parameters
    ----------
    package : str
        The package without these modules.
    advice : mapping
        The equivalents, by the names of the modules.
    """

    def __init__(self, package: str, advice: Mapping[str, str]) -> None:
        self._package, self._advice = package, advice

    def find_spec(self, name: str, path: Any = None, target: object = None) -> None:
        """Raise for ``import package.name`` and ``from package import name``; return None for other modules."""
        package, _, module = name.rpartition(".")
        if package == self._package and module in self._advice:
            # `name=` is not passed: ``from package import module`` would replace an error with a name by one without advice.
            raise ModuleNotFoundError(f"cannot import {module!r} from {package!r}: {self._advice[module]}")
