"""What a compiled function is called with: which leaves are values of the program, which are part of its key.

Arrays, and NumPy's floating and complex scalars, are *dynamic*: the program holds for all their values. All else is *static*: it
is part of the key, and another value is another program. Python's numbers are static, since NumPy promotes them by another rule
than arrays.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..frames import is_heap_type
from ..storage import root_of
from ..trees import flatten, unflatten
from ..values import TRACEABLE, Value
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
        return [leaf.value if type(leaf) is Static else leaf for leaf in self.leaves if not _is_dynamic(leaf)]

    def with_values(self, values: Any) -> Call:
        """The same call with other values."""
        leaves = list(self.leaves)
        for position, value in zip(self.dynamic, values, strict=True):
            leaves[position] = value
        return self._replace(leaves=leaves)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments again."""
        return unflatten(self.structure, [leaf.value if type(leaf) is Static else leaf for leaf in self.leaves])  # type: ignore[no-any-return]


class Given(NamedTuple):
    """The state of the arguments of a call, plain or nodes, at one moment.

    Attributes
    ----------
    leaves : list
        Their leaves.
    structure : PyTreeSpec
        How they nest.
    orders : list
        The keys of dictionaries, in order.
    writes : list of int
        For each leaf, how many stores into it are in the log of its graph; 0 of a plain array, which has none.
    """

    leaves: list[Any]
    structure: Any
    orders: list[Any]
    writes: list[int]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticNames | None) -> Given:
        """The arguments of a call."""
        leaves, structure = parts_of(args, kwargs, statics)
        memories = [root_of(leaf).memory if isinstance(leaf, Value) else None for leaf in leaves]
        return cls(leaves, structure, orders_of((args, kwargs)), [len(memory.log) if memory else 0 for memory in memories])


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
    """A node, or an array of a traced function, is among the arguments: the function itself is to be called."""


def called_with(args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticNames | None = None) -> Call:
    """What stands in a call; an OutsideError for nodes, a RefusedError for what is not compiled."""
    leaves, structure = parts_of(args, kwargs, statics)
    return call_of(leaves, structure, key_of(leaves, structure, (args, kwargs)))


def parts_of(args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticNames | None) -> tuple[list[Any], Any]:
    """The leaves of a call, and how they nest."""
    if statics is not None:
        args, kwargs = statics.marked(args, kwargs)
    return flatten((args, kwargs))


def key_of(leaves: list[Any], structure: Any, arguments: Any) -> tuple[Any, ...]:
    """The key of a program. Tree structures compare equal if only the order of dictionaries differs, so the orders are added."""
    key = [structure, *orders_of(arguments)]
    for leaf in leaves:
        kind = type(leaf)
        if kind is ndarray:
            key += (leaf.dtype, leaf.shape, leaf.strides)
        elif kind in DYNAMIC_SCALARS:
            key.append(kind)
        elif kind in _BY_IDENTITY:
            key.append((kind, id(leaf)))
        else:
            key.append(static_key(leaf))
    return tuple(key)


_SINGLE = frozenset({ndarray, np.float64, np.float32, np.int64, np.bool_, float, int, complex, bool, str, bytes, type(None)})


def orders_of(tree: Any) -> list[Any]:
    """The keys of all dictionaries in a tree, in their order, with their classes."""
    orders: list[Any] = []
    queue = [tree]
    while queue:
        part = queue.pop()
        kind = type(part)
        if kind in _SINGLE:
            continue
        if kind in _MAPPINGS:
            orders.append((kind, *map(static_key, part)))
            queue += part.values()
        elif issubclass(kind, (list, tuple, collections.deque)):
            if not _SINGLE.issuperset(map(type, part)):
                queue += part
        elif dataclasses.is_dataclass(kind):
            queue += [getattr(part, field.name, None) for field in dataclasses.fields(kind)]
    return orders


def call_of(leaves: list[Any], structure: Any, key: Any) -> Call:
    """A call, all told."""
    dynamic = tuple([place for place, leaf in enumerate(leaves) if _is_dynamic(leaf)])
    shapes = [(leaf.dtype, leaf.shape, leaf.strides) if type(leaf) is ndarray else type(leaf) for leaf in leaves]
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
        found = [leaf for leaf in flatten(value)[0] if type(leaf) is Mark]
        names.update({leaf.place: name if leaf is value else f"{name} {number}" for number, leaf in enumerate(found, 1)})
    return [names[place] for place in range(len(call.dynamic))]


def quick_key(parts: Iterable[Any], key: list[Any], values: list[Any]) -> bool:
    """Enter arguments of the commonest kinds into a key, and the arrays among them into values; False if there are others.

    It takes a third of the time that `key_of` does. The values come in the order in which dictionaries are iterated.
    """
    for part in parts:
        kind = type(part)
        if kind is ndarray:
            key += (part.dtype, part.shape, part.strides)
            values.append(part)
        elif kind is dict:
            if part and set(map(type, part)) != _NAMES:
                return False
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
_MAPPINGS = frozenset({dict, collections.OrderedDict, collections.defaultdict})
_NAMES = {str}
# Classes whose equal objects also have equal text. Only naive times, because equal times of two zones differ.
_BY_TEXT = frozenset(
    {
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
        *(("datetime", name) for name in ("date", "datetime", "time", "timedelta")),
    }
)
_BY_OWNER = frozenset({types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType})


def _is_dynamic(leaf: Any) -> bool:
    return type(leaf) is ndarray or type(leaf) in DYNAMIC_SCALARS


def static_key(leaf: Any) -> Any:
    """A key that static leaves share only if no function can tell them apart: ``==`` takes 0.0 for -0.0, and 1 for True."""
    kind = type(leaf)
    if kind is Static:
        return _declared(leaf.value)
    if issubclass(kind, Value) or kind in TRACEABLE:
        raise OutsideError
    known = _key_of_value(leaf)
    if known is not None:
        return known
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__"):
        raise _refused_number(leaf, kind)
    if kind.__hash__ is None:
        raise RefusedError(f"an argument is a {kind.__name__}, which is not an array and cannot be hashed")
    if len(_BY_IDENTITY) < 4096:
        _BY_IDENTITY.add(kind)
    return kind, id(leaf)


def _declared(value: Any) -> Any:
    """The key of an argument that was declared to be static."""
    try:
        hash(value)
    except TypeError:
        if type(value) is not slice:
            raise RefusedError(f"a static argument is a {type(value).__name__}, which cannot be hashed") from None
    return Static, _key_of_part(value)


def _key_of_part(value: Any) -> Any:
    """The key of a static value or of a part of one; objects of unknown classes are keyed by identity."""
    kind = type(value)
    known = _key_of_value(value)
    if known is not None:
        return known
    if isinstance(value, np.generic) and kind.__module__ == "numpy":
        return kind, value.dtype, repr(value)
    if kind is tuple or (isinstance(value, tuple) and hasattr(kind, "_fields") and not hasattr(value, "__dict__")):
        return kind, *map(_key_of_part, value)
    hashes: Any = kind.__hash__
    if hashes is object.__hash__ or not all(map(_has_no_state, kind.__mro__)):
        return kind, id(value)
    held = object.__getattribute__(value, "__dict__")  # for objects compared by value, such as frozen dataclasses
    return kind, *((name, _key_of_part(part)) for name, part in held.items())


def _has_no_state(base: type) -> bool:
    """Whether instances of a class keep all their state in ``__dict__``."""
    return base is object or (is_heap_type(base) and not vars(base).get("__slots__"))


def _key_of_value(value: Any) -> Any:
    """The key of a value of a known immutable class, or None."""
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind is float:
        return kind, value.hex()  # differs for -0.0 and 0.0, and is equal for nan
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if kind in _INTEGERS:
        return kind, value.item()
    if kind is frozenset:
        return kind, *map(_key_of_part, value)  # in iteration order
    if kind is range or kind is slice:
        return kind, *map(_key_of_part, (value.start, value.stop, value.step))
    if (kind.__module__, kind.__name__) in _BY_TEXT and getattr(value, "tzinfo", None) is None:
        return kind, repr(value), getattr(value, "fold", 0)
    if kind in _BY_OWNER:
        return kind, hash(value), value
    if isinstance(value, np.dtype):
        return kind, value.char, value.str, repr(value)
    return None


def _refused_number(leaf: Any, kind: type) -> RefusedError:
    return RefusedError(
        f"an argument is a {kind.__module__}.{kind.__name__}, not an array or a number; give np.asarray of it"
        if not isinstance(leaf, np.generic)
        else f"an argument is a NumPy scalar of dtype {leaf.dtype}"
    )


_INTEGERS = frozenset({np.bool_, *(np.dtype(code).type for code in np.typecodes["AllInteger"])})
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
    if type(value) is not ndarray:
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
