"""Former names: `rate` for `learning_rate` in arguments, attributes and saved states; attributes in pickles."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)

# Former names of attributes in pickles of optimizers.
_ATTRIBUTES = {"_kept": "_slot_arrays"}


def accepts_rate(cls: Class) -> Class:
    """Decorate a class: accept the argument ``rate=`` and the attribute `rate`, with a DeprecationWarning."""
    target: Any = cls
    init = target.__init__

    @functools.wraps(init)
    def constructor(self: Any, *args: object, **options: object) -> None:
        if "rate" in options:
            if "learning_rate" in options:
                raise TypeError(f"{cls.__name__}: rate= is the former name of learning_rate=; give learning_rate= alone")
            _warn(f"{cls.__name__}: the argument rate= is now learning_rate=")
            options["learning_rate"] = options.pop("rate")
        init(self, *args, **options)

    target.__init__ = constructor
    target.rate = former_rate
    return cls


def rename_rate(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved state with the present name of the learning rate."""
    return {"learning_rate" if name == "rate" else name: state[name] for name in state}


def rename_attributes(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a pickled optimizer with their present names."""
    return {_ATTRIBUTES.get(name, name): value for name, value in state.items()}


def _read(self: Any) -> Any:
    _warn(f"{type(self).__name__}: the attribute rate is now learning_rate")
    return self.learning_rate


def _write(self: Any, value: float) -> None:
    _warn(f"{type(self).__name__}: the attribute rate is now learning_rate")
    self.learning_rate = value


former_rate = property(_read, _write, doc="The former name of `learning_rate`.")


def _warn(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=3)
