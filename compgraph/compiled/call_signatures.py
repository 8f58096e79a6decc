"""Call signatures: which argument leaves are inputs of a program, and which are part of its key.

Arrays, and NumPy's floating and complex scalars, are *dynamic*: a program accepts all their values. Everything else is
*static*: it is part of the key, so each value has its own program. Python's numbers are static because NumPy promotes
them by other rules than arrays.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Array
from ..frames import is_heap_type
from ..storage import root_of
from ..trees import flatten, unflatten
from ..values import TRACEABLE, Value
from .compile_errors import NotCompilableError

ndarray = np.ndarray
NUMBERS = "biufc"  # dtype kinds that graphs support


class Call(NamedTuple):
    """The arguments of one call.

    Attributes
    ----------
    leaves : list
        The leaves of the arguments.
    structure : PyTreeSpec
        Their nesting.
    dynamic : tuple of int
        The positions of the dynamic leaves, which are inputs of a program.
    key : tuple
        The signature, shared by all calls that can use the same program.
    shapes : tuple
        The part of the key without static values.
    """

    leaves: list[Any]
    structure: Any
    dynamic: tuple[int, ...]
    key: Any
    shapes: Any

    def values(self) -> list[Any]:
        """Return the dynamic leaves."""
        return [self.leaves[position] for position in self.dynamic]

    def statics(self) -> list[Any]:
        """Return the static leaves."""
        return [leaf.value if type(leaf) is StaticArgument else leaf for leaf in self.leaves if not _is_dynamic(leaf)]

    def with_values(self, values: Any) -> Call:
        """Return the call with other dynamic values."""
        leaves = list(self.leaves)
        for position, value in zip(self.dynamic, values, strict=True):
            leaves[position] = value
        return self._replace(leaves=leaves)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments."""
        return unflatten(self.structure, [leaf.value if type(leaf) is StaticArgument else leaf for leaf in self.leaves])  # type: ignore[no-any-return]


class ArgumentState(NamedTuple):
    """Snapshot of the arguments of a call, arrays or nodes.

    Attributes
    ----------
    leaves : list
        Their leaves.
    structure : PyTreeSpec
        Their nesting.
    orders : list
        The keys of dictionaries, in order.
    writes : list of int
        By leaf, the length of its log of writes; 0 for a plain array, which has no log.
    """

    leaves: list[Any]
    structure: Any
    orders: list[Any]
    writes: list[int]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticParameters | None) -> ArgumentState:
        """Return the state of the arguments of a call."""
        leaves, structure = flatten_arguments(args, kwargs, statics)
        memories = [root_of(leaf).memory if isinstance(leaf, Value) else None for leaf in leaves]
        return cls(leaves, structure, dict_orders((args, kwargs)), [len(memory.log) if memory else 0 for memory in memories])


class StaticArgument:
    """An argument declared static: a leaf of any type."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class ValueMarker:
    """Placeholder for a dynamic value, which identifies the parameter that holds the value."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class NodeArgumentError(Exception):
    """An argument is a node or tracer, so the function itself must be called."""


def signature_of(args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticParameters | None = None) -> Call:
    """Return a call; raise a NodeArgumentError for nodes, a NotCompilableError for unsupported arguments."""
    leaves, structure = flatten_arguments(args, kwargs, statics)
    return make_call(leaves, structure, key_of(leaves, structure, (args, kwargs)))


def flatten_arguments(args: tuple[Any, ...], kwargs: dict[str, Any], statics: StaticParameters | None) -> tuple[list[Any], Any]:
    """Return the leaves of a call and their nesting."""
    if statics is not None:
        args, kwargs = statics.wrap_static(args, kwargs)
    return flatten((args, kwargs))


def key_of(leaves: list[Any], structure: object, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the key of a call. It includes the order of dictionaries, which tree structures ignore in comparisons."""
    key = [structure, *dict_orders(arguments)]
    for leaf in leaves:
        cls = type(leaf)
        if cls is ndarray:
            key += (leaf.dtype, leaf.shape, leaf.strides)
        elif cls in DYNAMIC_SCALARS:
            key.append(cls)
        elif cls in _COMPARED_BY_IDENTITY:
            key.append((cls, id(leaf)))
        else:
            key.append(static_key(leaf))
    return tuple(key)


_LEAF_TYPES = frozenset({ndarray, np.float64, np.float32, np.int64, np.bool_, float, int, complex, bool, str, bytes, type(None)})


def dict_orders(tree: Any) -> list[Any]:
    """Return the keys of all dictionaries in a tree, in order, with their classes."""
    orders: list[Any] = []
    queue = [tree]
    while queue:
        part = queue.pop()
        cls = type(part)
        if cls in _LEAF_TYPES:
            continue
        if cls in _MAPPINGS:
            orders.append((cls, *map(static_key, part)))
            queue += part.values()
        elif issubclass(cls, (list, tuple, collections.deque)):
            if not _LEAF_TYPES.issuperset(map(type, part)):
                queue += part
        elif dataclasses.is_dataclass(cls):
            queue += [getattr(part, field.name, None) for field in dataclasses.fields(cls)]
    return orders


def make_call(leaves: list[Any], structure: object, key: tuple[Any, ...]) -> Call:
    """Return the `Call` of leaves with a key."""
    dynamic = tuple([position for position, leaf in enumerate(leaves) if _is_dynamic(leaf)])
    shapes = [(leaf.dtype, leaf.shape, leaf.strides) if type(leaf) is ndarray else type(leaf) for leaf in leaves]
    return Call(leaves, structure, dynamic, key, (structure, *shapes))


def value_names(call: Call, f: Callable[..., Any]) -> list[str]:
    """Return the names of a call's dynamic values: parameter names, numbered if a parameter holds several."""
    args, kwargs = call.with_values([ValueMarker(position) for position in range(len(call.dynamic))]).arguments()
    try:
        bound_arguments: dict[str, Any] = dict(inspect.signature(f).bind(*args, **kwargs).arguments)
    except (ValueError, TypeError):
        bound_arguments = {**{f"argument {position}": value for position, value in enumerate(args, 1)}, **kwargs}
    names = {}
    for name, value in bound_arguments.items():
        markers = [leaf for leaf in flatten(value)[0] if type(leaf) is ValueMarker]
        names.update({leaf.position: name if leaf is value else f"{name} {number}" for number, leaf in enumerate(markers, 1)})
    return [names[position] for position in range(len(call.dynamic))]


def extend_quick_key(parts: Iterable[Any], key: list[Any], values: list[Any]) -> bool:
    """Extend a key by the most common arguments, and `values` by the arrays among them; return False for other arguments.

    It takes a third of the time of `key_of`. Values of dictionaries are in iteration order.
    """
    for part in parts:
        cls = type(part)
        if cls is ndarray:
            key += (part.dtype, part.shape, part.strides)
            values.append(part)
        elif cls is dict:
            if part and set(map(type, part)) != _STRING_KEYS:
                return False
            key.append((cls, *part))
            if not extend_quick_key(part.values(), key, values):
                return False
        elif cls is tuple or cls is list:
            key.append((cls, len(part)))
            if not extend_quick_key(part, key, values):
                return False
        elif cls in DYNAMIC_SCALARS:
            key.append(cls)
            values.append(np.asarray(part))
        elif cls in _COMPARED_BY_VALUE:
            key.append((cls, part))
        elif cls is float:
            key.append((cls, part.hex()))
        elif cls in _COMPARED_BY_IDENTITY:
            key.append((cls, id(part)))
        else:
            return False
    return True


def value_order(call: Call) -> list[int] | None:
    """Return the position of each program input among the values of `extend_quick_key`; None if the orders agree."""
    leaf_positions: list[int] = []
    args, kwargs = call.structure.unflatten(range(len(call.leaves)))
    _collect_positions((*args, *kwargs.values()), leaf_positions)
    positions = [position for position in leaf_positions if position in call.dynamic]
    return None if positions == list(call.dynamic) else [positions.index(position) for position in call.dynamic]


def _collect_positions(parts: Iterable[Any], leaf_positions: list[int]) -> None:
    for part in parts:
        if isinstance(part, (dict, tuple, list)):
            _collect_positions(part.values() if isinstance(part, dict) else part, leaf_positions)
        elif part is not None:
            leaf_positions.append(part)


DYNAMIC_SCALARS = frozenset({np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64, np.clongdouble})
_COMPARED_BY_VALUE = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})  # equal values are indistinguishable
_MAPPINGS = frozenset({dict, collections.OrderedDict, collections.defaultdict})
_STRING_KEYS = {str}
# Classes whose equal objects have equal repr. Only naive times, because equal times of two zones differ.
_COMPARED_BY_TEXT = frozenset(
    {
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
        *(("datetime", name) for name in ("date", "datetime", "time", "timedelta")),
    }
)
# Methods are equal if their objects are identical and their functions equal.
_COMPARED_BY_OWNER = frozenset({types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType})


def _is_dynamic(leaf: Array) -> bool:
    return type(leaf) is ndarray or type(leaf) in DYNAMIC_SCALARS


def static_key(leaf: Any) -> Any:
    """Return the key of a static leaf, equal only for indistinguishable values; ``==`` would equate 0.0 with -0.0."""
    cls = type(leaf)
    if cls is StaticArgument:
        return _static_argument_key(leaf.value)
    if issubclass(cls, Value) or cls in TRACEABLE:
        raise NodeArgumentError
    immutable_key = _immutable_key(leaf)
    if immutable_key is not None:
        return immutable_key
    if hasattr(cls, "__array__") or hasattr(cls, "__array_interface__"):
        if isinstance(leaf, np.generic):
            raise NotCompilableError(f"an argument is a NumPy scalar of dtype {leaf.dtype}; pass a Python object, x.item()")
        name = f"{cls.__module__}.{cls.__name__}"
        raise NotCompilableError(f"an argument is a {name}, not an array or a number; pass np.asarray of it")
    if cls.__hash__ is None:
        raise NotCompilableError(f"an argument is a {cls.__name__}, which is neither an array nor hashable; pass its arrays")
    if len(_COMPARED_BY_IDENTITY) < 4096:
        _COMPARED_BY_IDENTITY.add(cls)
    return cls, id(leaf)


def _static_argument_key(value: object) -> Any:
    """Return the key of an argument that was declared static."""
    try:
        hash(value)
    except TypeError:
        if type(value) is not slice:
            raise NotCompilableError(
                f"a static argument is a {type(value).__name__}, which is not hashable; pass a tuple or a frozen dataclass"
            ) from None
    return StaticArgument, _nested_key(value)


def _nested_key(value: Any) -> Any:
    """Return the key of a static value or a part of one; objects of unknown classes are keyed by identity."""
    cls = type(value)
    immutable_key = _immutable_key(value)
    if immutable_key is not None:
        return immutable_key
    if isinstance(value, np.generic) and cls.__module__ == "numpy":
        return cls, value.dtype, repr(value)
    if cls is tuple or (isinstance(value, tuple) and hasattr(cls, "_fields") and not hasattr(value, "__dict__")):
        return cls, *map(_nested_key, value)
    hash_method: Any = cls.__hash__
    if hash_method is object.__hash__ or not all(map(_keeps_state_in_dict, cls.__mro__)):
        return cls, id(value)
    namespace = object.__getattribute__(value, "__dict__")  # the class compares by value, as frozen dataclasses do
    return cls, *((name, _nested_key(part)) for name, part in namespace.items())


def _keeps_state_in_dict(base: type) -> bool:
    """Return whether a class adds no state to its instances outside of ``__dict__``."""
    return base is object or (is_heap_type(base) and not vars(base).get("__slots__"))


def _immutable_key(value: Any) -> Any:
    """Return the key of a value of a known immutable class, or None."""
    cls = type(value)
    if cls in _COMPARED_BY_VALUE:
        return cls, value
    if cls is float:
        return cls, value.hex()  # differs for -0.0 and 0.0, and is equal for nan
    if cls is complex:
        return cls, value.real.hex(), value.imag.hex()
    if cls in _INTEGERS:
        return cls, value.item()
    if cls is frozenset:
        return cls, *map(_nested_key, value)  # in iteration order
    if cls is range or cls is slice:
        return cls, *map(_nested_key, (value.start, value.stop, value.step))
    if (cls.__module__, cls.__name__) in _COMPARED_BY_TEXT and getattr(value, "tzinfo", None) is None:
        return cls, repr(value), getattr(value, "fold", 0)
    if cls in _COMPARED_BY_OWNER:
        return cls, hash(value), value
    if isinstance(value, np.dtype):
        return cls, value.char, value.str, repr(value)
    return None


_INTEGERS = frozenset({np.bool_, *(np.dtype(code).type for code in np.typecodes["AllInteger"])})
_COMPARED_BY_IDENTITY: set[type] = set()  # classes compared by identity; their contents are compared by `CapturedState`


class StaticParameters:
    """Parameters declared static.

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
                raise ValueError(f"jit: static_argnames has {name!r}, but the parameters are {', '.join(parameters)}")
        positional = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._names = frozenset(names)
        self._static_positions = frozenset(position for position, name in enumerate(positional) if name in self._names)

    def wrap_static(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with the static ones wrapped as leaves."""
        return (
            tuple([StaticArgument(a) if position in self._static_positions else a for position, a in enumerate(args)]),
            {name: StaticArgument(a) if name in self._names else a for name, a in kwargs.items()},
        )


def copy_with_strides(value: Array) -> Any:
    """Copy a dynamic leaf with the same strides."""
    if type(value) is not ndarray:
        return value
    copy = np.array(value, order="K", subok=False)
    if copy.strides == value.strides or not value.size:
        return copy
    low, high = np.lib.array_utils.byte_bounds(value)
    offset = value.__array_interface__["data"][0] - low
    strided_copy: Any = np.ndarray(value.shape, value.dtype, np.empty(high - low, np.uint8), offset, value.strides)
    strided_copy[...] = value
    return strided_copy


def require_numbers(call: Call) -> None:
    """Raise a NotCompilableError for arrays that do not hold native numbers."""
    for value in call.values():
        if value.dtype.kind not in NUMBERS:
            raise NotCompilableError(
                f"an argument is an array of dtype {value.dtype}, which is not numeric; convert it, as by .astype(float)"
            )
        if not value.dtype.isnative:
            raise NotCompilableError(
                f"an argument is an array of dtype {value.dtype}, which is not in native byte order; convert it by .astype(float)"
            )


# ------------------------------------------------------------------------------------------ calls on nodes

# `autodiff` sets a function that records each call as a single operation.
_recorder: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None


def set_call_recorder(recorder: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Set the function ``recorder(jitted, args, kwargs)`` that records calls on nodes."""
    global _recorder
    _recorder = recorder


def record_call(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function on nodes: through the recorder if one is set, else as NumPy."""
    return jitted.__wrapped__(*args, **kwargs) if _recorder is None else _recorder(jitted, args, kwargs)
