"""What a compiled function is called with: which leaves are values of the program, which are part of its key.

Arrays, and NumPy's floating and complex scalars, are *dynamic*: the program holds for all their values. All else is *static*: it
is part of the key, and another value is another program. Python's numbers are static, since NumPy promotes them by another rule
than arrays.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..graph import Node
from ..trees import flatten, unflatten
from .refusals import RefusedError

ndarray = np.ndarray
NUMBERS = "biufc"  # the kinds of arrays that a graph knows


class Call(NamedTuple):
    """What a function is called with.

    Attributes
    ----------
    leaves : list
        All leaves of the arguments.
    structure : PyTreeSpec
        How they nest.
    dynamic : tuple of int
        The positions of those that are values of a program.
    key : tuple
        What two calls of one program share.
    shapes : tuple
        The part of the key that is not of static values.
    """

    leaves: list[Any]
    structure: Any
    dynamic: tuple[int, ...]
    key: Any
    shapes: Any

    def values(self) -> list[Any]:
        """The values of the program."""
        return [self.leaves[position] for position in self.dynamic]

    def statics(self) -> list[Any]:
        """The leaves that are none."""
        return [leaf.value if leaf.__class__ is Static else leaf for leaf in self.leaves if not _is_dynamic(leaf)]

    def with_values(self, values: Any) -> Call:
        """The same call with other values."""
        leaves = list(self.leaves)
        for position, value in zip(self.dynamic, values, strict=True):
            leaves[position] = value
        return self._replace(leaves=leaves)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments again."""
        return unflatten(self.structure, [leaf.value if leaf.__class__ is Static else leaf for leaf in self.leaves])  # type: ignore[no-any-return]


class Static:
    """An argument that was declared to be static: a leaf, whatever it is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Mark:
    """Stands for a value of a call where its name is looked for."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


class OutsideError(Exception):
    """A node, or an array of a function that is differentiated, is among the arguments: the function itself is to be called."""


def called_with(args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticNames | None = None) -> Call:
    """What stands in a call; an OutsideError for nodes, a RefusedError for what is not compiled."""
    leaves, structure = parts_of(args, kwargs, statics)
    return call_of(leaves, structure, key_of(leaves, structure))


def parts_of(args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticNames | None) -> tuple[list[Any], Any]:
    """The leaves of a call, and how they nest."""
    if statics is not None:
        args, kwargs = statics.marked(args, kwargs)
    return flatten((args, kwargs))


def key_of(leaves: list[Any], structure: Any) -> tuple[Any, ...]:
    """What two calls of one program share."""
    key = [structure]
    for leaf in leaves:
        kind = leaf.__class__
        if kind is ndarray:
            key += (leaf.dtype, leaf.shape, leaf.strides)
        elif kind in DYNAMIC_SCALARS:
            key.append(kind)
        elif kind in _BY_IDENTITY:
            key.append((kind, id(leaf)))
        else:
            key.append(static_key(leaf))
    return tuple(key)


def call_of(leaves: list[Any], structure: Any, key: Any) -> Call:
    """A call, all told."""
    dynamic = tuple([place for place, leaf in enumerate(leaves) if _is_dynamic(leaf)])
    shapes = [(leaf.dtype, leaf.shape, leaf.strides) if leaf.__class__ is ndarray else leaf.__class__ for leaf in leaves]
    return Call(leaves, structure, dynamic, key, (structure, *shapes))


def names_of(call: Call, f: Callable[..., Any]) -> list[str]:
    """What the values of a call are called: by the parameters of the function, with a number where one holds several."""
    args, kwargs = call.with_values([Mark(place) for place in range(len(call.dynamic))]).arguments()
    try:
        given: dict[str, Any] = dict(inspect.signature(f).bind(*args, **kwargs).arguments)
    except (ValueError, TypeError):
        given = {**{f"argument {place}": value for place, value in enumerate(args, 1)}, **kwargs}
    names = {}
    for name, value in given.items():
        found = [leaf for leaf in flatten(value)[0] if leaf.__class__ is Mark]
        names.update({leaf.place: name if leaf is value else f"{name} {number}" for number, leaf in enumerate(found, 1)})
    return [names[place] for place in range(len(call.dynamic))]


def quick_key(parts: Iterable[Any], key: list[Any], values: list[Any]) -> bool:
    """Enter arguments of the commonest kinds into a key, and the arrays among them into values; False if there are others.

    It takes a third of the time that `key_of` does. The values come in the order in which dictionaries are iterated.
    """
    for part in parts:
        kind = part.__class__
        if kind is ndarray:
            key += (part.dtype, part.shape, part.strides)
            values.append(part)
        elif kind is dict:
            key.append((kind, *part))
            if not quick_key(part.values(), key, values):
                return False
        elif kind is tuple or kind is list:
            key.append((kind, len(part)))
            if not quick_key(part, key, values):
                return False
        elif kind in DYNAMIC_SCALARS:
            key.append(kind)
            values.append(np.asarray(part))
        elif kind in _BY_VALUE:
            key.append((kind, part))
        elif kind is float:
            key.append((kind, part.hex()))
        elif kind in _BY_IDENTITY:
            key.append((kind, id(part)))
        else:
            return False
    return True


def order_of(call: Call) -> list[int] | None:
    """Where each value of the program stands among those of `quick_key`; None if they come in the same order."""
    met: list[int] = []
    args, kwargs = call.structure.unflatten(range(len(call.leaves)))
    _meet((*args, *kwargs.values()), met)
    places = [place for place in met if place in call.dynamic]
    return None if places == list(call.dynamic) else [places.index(place) for place in call.dynamic]


def _meet(parts: Iterable[Any], met: list[int]) -> None:
    for part in parts:
        if isinstance(part, (dict, tuple, list)):
            _meet(part.values() if isinstance(part, dict) else part, met)
        elif part is not None:
            met.append(part)


DYNAMIC_SCALARS = frozenset({np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64, np.clongdouble})
_BY_VALUE = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})  # equal ones cannot be told apart
BY_NAME = frozenset({type, type(len), np.ufunc})  # those that are what they are
STDLIB = frozenset(sys.stdlib_module_names)


def _is_dynamic(leaf: Any) -> bool:
    return leaf.__class__ is ndarray or leaf.__class__ in DYNAMIC_SCALARS


def static_key(leaf: Any) -> Any:
    """What tells a static leaf from another."""
    kind = leaf.__class__
    if kind in _BY_VALUE:
        return kind, leaf
    if kind is float:
        return kind, leaf.hex()  # which tells -0.0 from 0.0, and knows nan again
    if kind is complex:
        return kind, leaf.real.hex(), leaf.imag.hex()
    if kind is Static:
        return _declared(leaf.value)
    if isinstance(leaf, Node) or (isinstance(leaf, ndarray) and hasattr(leaf, "is_given")):
        raise OutsideError
    if isinstance(leaf, (ndarray, np.generic)) or hasattr(leaf, "__array__") or hasattr(leaf, "__array_interface__"):
        return _of_numpy(leaf, kind)
    return _of_object(leaf, kind)


def _declared(value: Any) -> Any:
    try:
        return value.__class__, hash(value), value
    except TypeError:
        raise RefusedError(f"a static argument is a {type(value).__name__}, which cannot be hashed") from None


def _of_numpy(leaf: Any, kind: type) -> Any:
    if isinstance(leaf, np.generic) and leaf.dtype.kind in "biu":
        return kind, leaf.item()
    raise RefusedError(
        f"an argument is a {kind.__module__}.{kind.__name__}, not an array or a number; give np.asarray of it"
        if not isinstance(leaf, np.generic)
        else f"an argument is a NumPy scalar of dtype {leaf.dtype}"
    )


def _of_object(leaf: Any, kind: type) -> Any:
    if kind.__hash__ is None:
        raise RefusedError(f"an argument is a {kind.__name__}, which is no array and cannot be hashed")
    is_equal = isinstance(leaf, (enum.Enum, frozenset, np.dtype)) or (
        kind.__module__ in STDLIB and kind.__module__ != "__main__" and vars(object)["__hash__"] is not kind.__hash__
    )
    if is_equal:
        try:
            return kind, hash(leaf), leaf
        except TypeError:
            raise RefusedError(f"an argument is a {kind.__name__} that cannot be hashed") from None
    if len(_BY_IDENTITY) < 4096:
        _BY_IDENTITY.add(kind)
    return kind, id(leaf)


_BY_IDENTITY: set[type] = set()  # classes whose objects are told apart by identity; what they hold is compared by `Captured`


class StaticNames:
    """Parameters that are declared to be static.

    Parameters
    ----------
    f : callable
        The function.
    names : tuple of str
        Names of its parameters.
    """

    def __init__(self, f: Callable[..., Any], names: tuple[str, ...]) -> None:
        try:
            parameters = inspect.signature(f).parameters
        except (ValueError, TypeError):
            parameters = {}  # type: ignore[assignment]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for name in names:
            if parameters and name not in parameters and not takes_any:
                raise ValueError(f"jit: static_argnames names {name!r}, but the parameters are {', '.join(parameters)}")
        positional = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._names = frozenset(names)
        self._places = frozenset(place for place, name in enumerate(positional) if name in self._names)

    def marked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with the static ones as leaves of their own."""
        return (
            tuple([Static(a) if place in self._places else a for place, a in enumerate(args)]),
            {name: Static(a) if name in self._names else a for name, a in kwargs.items()},
        )


def copied(value: Any) -> Any:
    """A copy of a dynamic leaf, with the same strides."""
    if value.__class__ is not ndarray:
        return value
    copy = np.array(value, order="K", subok=False)
    if copy.strides == value.strides or not value.size:
        return copy
    low, high = np.lib.array_utils.byte_bounds(value)
    first = value.__array_interface__["data"][0] - low
    made: Any = np.ndarray(value.shape, value.dtype, np.empty(high - low, np.uint8), first, value.strides)
    made[...] = value
    return made


def require_numbers(call: Call) -> None:
    """Raise a RefusedError for arrays of anything but numbers."""
    for value in call.values():
        if value.dtype.kind not in NUMBERS:
            raise RefusedError(f"an argument is an array of dtype {value.dtype}, which holds no numbers")
        if not value.dtype.isnative:
            raise RefusedError(f"an argument is an array of dtype {value.dtype}, in another byte order than the machine's")
