"""`rate`, the former name of `learning_rate`, in arguments, attributes and saved states."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def accepts_rate(cls: Class) -> Class:
    """Let the constructor of a class accept ``rate=``, and its instances have the attribute `rate`, with a DeprecationWarning."""
    changed: Any = cls
    init = changed.__init__

    @functools.wraps(init)
    def constructor(self: Any, *args: Any, **options: Any) -> None:
        if "rate" in options:
            if "learning_rate" in options:
                raise TypeError(f"{cls.__name__}: rate= is the former name of learning_rate=; give learning_rate= alone")
            _warn(f"{cls.__name__}: the argument rate= is now learning_rate=")
            options["learning_rate"] = options.pop("rate")
        init(self, *args, **options)

    changed.__init__ = constructor
    changed.rate = former_rate
    return cls


def renamed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved state with the present name of the learning rate."""
    return {"learning_rate" if name == "rate" else name: state[name] for name in state}


def _read(self: Any) -> Any:
    _warn(f"{type(self).__name__}: the attribute rate is now learning_rate")
    return self.learning_rate


def _write(self: Any, value: Any) -> None:
    _warn(f"{type(self).__name__}: the attribute rate is now learning_rate")
    self.learning_rate = value


former_rate = property(_read, _write, doc="The former name of `learning_rate`.")


def _warn(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=3)
