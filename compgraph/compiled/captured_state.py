"""Captured state: the values that a function reads besides its arguments, as of its trace.

A program is valid for the traced values of globals, closures, default values and attributes. Before each run these are
compared: named values by identity, arrays and containers by their contents. Only pure callables (`pure_functions`), objects of
users' classes, and containers can be compared; a function that reads anything else is not compiled.
"""

from __future__ import annotations

import abc
import array
import builtins
import collections
import datetime
import decimal
import enum
import functools
import importlib
import importlib.util
import operator
import random
import sys
from collections.abc import Callable, Iterable
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ..array_types import Array
from ..context import default_float
from ..frames import is_heap_type
from ..interception import generator_state
from ..values import TRACEABLE, Value
from .bytecode_analysis import AttributeChain, CodeSummary, analyze_code, impurity_of, is_library
from .compile_errors import NotCompilableError
from .pure_functions import BASES, CONSTANTS, METACLASSES, READS_BY_NAME, is_pure_function, known_functions
from .snapshots import (
    MISSING,
    VALUES,
    ContentSnapshot,
    KeySnapshot,
    SettingSnapshot,
    container_base,
    decimal_context,
    is_unchanged,
    original,
)

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
_ARRAYS = frozenset({np.ndarray, np.memmap, np.matrix, np.recarray, *TRACEABLE})
_BUFFERS = frozenset({array.array, bytearray, memoryview})
_DATES = frozenset({datetime.date, datetime.datetime, datetime.time, datetime.timedelta})
# Library classes whose objects keep all their state in attributes.
_ATTRIBUTE_CLASSES = frozenset(
    {np.poly1d, np.vectorize, SimpleNamespace, collections.UserDict, collections.UserList, collections.ChainMap}
)
_CONSTRUCTION_METHODS = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__set_name__"})
_TEXT_METHODS = frozenset({"__repr__", "__str__", "__format__"})
_COPY_METHODS = frozenset(
    {"__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__sizeof__", "__copy__", "__deepcopy__"}
)
# Names that Python itself adds to the body of a class.
_IMPLICIT_MEMBERS = frozenset(
    {
        *("__module__", "__dict__", "__weakref__", "__doc__", "__slots__", "__qualname__", "__firstlineno__", "__dir__"),
        *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__"),
        *("__abstractmethods__", "__orig_bases__", "__parameters__", "__dataclass_fields__", "__dataclass_params__"),
        *("__protocol_attrs__", "__non_callable_proto_members__", "__classdictcell__", "__classcell__", "__type_params__"),
        *("__getnewargs_ex__", "__replace__", "__subclasshook__", "__required_keys__", "__optional_keys__", "__total__"),
    }
)
_DESCRIPTORS = frozenset({MemberDescriptorType, GetSetDescriptorType, type(vars(collections.namedtuple("Pair", "a b"))["a"])})
# Attributes that return the state of a generator without a draw.
_STATE_ATTRIBUTES = frozenset({"bit_generator", "get_state", "getstate", "spawn", "seed_seq", "set_state", "setstate", "seed"})
MAX_COMPARED = 2000  # values compared before each run


class CapturedState:
    """The state that some functions, and the values they are passed, can read, at one moment.

    Parameters
    ----------
    roots : iterable
        The functions and static arguments, each with its name in messages.

    Attributes
    ----------
    rejection : str or None
        Why a function that reads this state is not compiled.
    derives : bool
        Whether it includes functions of `autodiff`.
    default_dtype : dtype or None
        The dtype of Python's numbers (`cg.default_dtype`), if it includes functions of the two packages.
    """

    def __init__(self, roots: Iterable[tuple[Any, str]]) -> None:
        self.attributes, self.stored = frozenset[str](), frozenset[str]()
        self.reads_by_name = self.detects_missing = self.instantiates = self.formats_text = False
        roots = list(roots)
        before: Any = None
        while before != (before := self._reading()):  # until no function adds attributes that may be read
            self.rejection: str | None = None
            self.derives, self.default_dtype = False, None  # type: bool, Any
            self._locations: dict[Any, _Location] = {}
            self._contents: list[ContentSnapshot] = []
            self._generator_states: list[tuple[Any, Any, str]] = []
            self._seen, self._kinds = set[int](), set[tuple[type, bool]]()
            self._queue = list(roots)
            for value, label in self._queue:  # the list grows, and keeps objects alive whose ids are used
                if id(value) not in self._seen:
                    self._seen.add(id(value))
                    self._visit(value, label)
                if self.rejection is not None:
                    break
            if self.rejection is not None:
                break
        if self.rejection is None and len(self._locations) + len(self._contents) > MAX_COMPARED:
            self.rejection = f"it reads more than {MAX_COMPARED} named values, too many to compare before each run"
        self._queue.clear()
        self._are_same = _compile_comparison([place for place in self._locations.values() if self.rejection is None])

    def _reading(self) -> Any:
        return self.attributes, self.stored, self.reads_by_name, self.detects_missing, self.instantiates, self.formats_text

    # ------------------------------------------------------------------------------------------ comparison

    def __bool__(self) -> bool:
        return bool(self._locations or self._contents or self.default_dtype is not None)

    def is_current(self) -> bool:
        """Return whether all captured state is unchanged."""
        try:
            is_same = self._are_same()
        except (KeyError, AttributeError, ValueError):  # a name was deleted
            is_same = False
        if not is_same and not all(place.is_unchanged() for place in self._locations.values()):
            return False
        for contents in self._contents:
            if not contents.is_same():
                return False
        return self.default_dtype is None or self.default_dtype == default_float()

    def first_change(self, strictly: bool = False) -> str | None:
        """Return the label of the first changed value, or None. If `strictly`, another object of equal value is a change."""
        for place in self._locations.values():
            current_value = place.read()
            if current_value is not place.value and (
                not is_unchanged(current_value, place.value) or (strictly and type(current_value) in VALUES)
            ):
                return place.label
        if self.default_dtype is not None and self.default_dtype != default_float():
            return "cg.default_dtype"
        return next((contents.label for contents in self._contents if not contents.is_same()), None)

    def drawn_generator(self) -> str | None:
        """Return the label of a random generator that was drawn from, or None."""
        return next((label for generator, state, label in self._generator_states if generator_state(generator) != state), None)

    # ------------------------------------------------------------------------------------------ search

    def _reject(self, why: str) -> None:
        if self.rejection is None:
            self.rejection = why

    def _reject_unknown(self, value: Any, label: str) -> None:
        """Reject a value that is not known to be constant and free of effects."""
        if (why := impurity_of(value)) is not None:
            self._reject(f"{label}: it {why}")
        elif callable(value):
            is_named = issubclass(type(value), (type, FunctionType, BuiltinFunctionType))
            name = value.__qualname__ if is_named else None
            what = name or f"object of class {type(value).__qualname__}"
            self._reject(f"{label} ({what}) is not known to be pure")
        else:
            self._reject(f"{label} is a {type(value).__qualname__}, which may change; pass it as an argument")

    def _add_location(self, place: _Location) -> bool:
        """Compare the value of a location before each run; return whether the location is new."""
        if place.key in self._locations:
            return False
        self._locations[place.key] = place
        return True

    def _visit_name(self, space: Any, name: Any, label: str) -> Any:
        """Compare the value of a name in a mapping, and visit it."""
        value = self._compare_name(space, name, label)
        if value is not MISSING and not issubclass(type(value), ModuleType):
            self._queue.append((value, label))
        return value

    def _compare_name(self, space: Any, name: Any, label: str) -> Any:
        place = _Location.under(space, name, label)
        self._add_location(place)
        return place.value

    def _compare_attribute(self, owner: Callable[..., Any], name: str, label: str) -> None:
        """Compare an attribute of a function, a cell or another Python object."""
        self._add_location(_Location.attribute(owner, name, label))

    def _visit(self, value: Any, label: str) -> None:
        value = original(value)
        kind = type(value)
        if kind in CONSTANTS or issubclass(kind, np.dtype):
            if kind is str and "%" in value:  # it may be a format string
                self.formats_text = True
            return
        name = known_functions.name_of(value)
        if name is not None:
            self._visit_known(name, label)
        elif kind is FunctionType:
            self._visit_function(value, label)
        elif issubclass(kind, Value):
            self._reject(f"{label} is a node of a graph")
        elif issubclass(kind, ModuleType):
            self._visit_module(value, label)
        elif issubclass(kind, type):
            if issubclass(value, BaseException) and _is_library_class(value):
                return
            if vars(value).get("_is_runtime_protocol"):  # isinstance() of a protocol reads attributes of the object
                self._reject_unknown(value, label)
            if kind is abc.ABCMeta:
                self._contents.append(SettingSnapshot(abc.get_cache_token, "the classes registered with abstract ones"))
            self._visit_class(value, True, label)
        elif issubclass(kind, np.generic):
            if issubclass(kind, np.void) or kind.__module__ != "numpy":
                self._reject_unknown(value, label)
        elif kind is CellType:
            self._visit_cell(value, label)
        else:
            self._visit_object(value, kind, label)

    def _visit_known(self, name: str, label: str) -> None:
        """Compare the settings that a pure library function reads."""
        if name in READS_BY_NAME:
            self.reads_by_name = self.detects_missing = self.instantiates = True
        elif name.endswith(".as_strided"):
            self.attributes |= {"as_strided"}
        elif name == "decimal.Decimal":
            self._contents.append(SettingSnapshot(decimal_context, "the context of decimal"))

    def _visit_cell(self, cell: CellType, label: str) -> Any:
        place = _Location.attribute(cell, "cell_contents", label)
        if self._add_location(place) and place.value is not MISSING:
            self._queue.append((place.value, label))
        return place.value

    def _visit_container(self, value: Any, base: Any, label: str) -> None:
        contents = ContentSnapshot(value, label)
        if len(contents.parts) > MAX_COMPARED:
            self._reject(f"{label} has {base.__len__(value)} values, too many to compare before each run")
            return
        if base is not tuple and base is not frozenset:
            self._contents.append(contents)
        if base in (list, tuple):
            self._queue += [(part, f"{label}[{place}]") for place, part in enumerate(contents.parts)]
        elif len(contents.parts) and base in (list, tuple, set, frozenset, collections.deque):
            self._queue += [(part, f"an element of {label}") for part in contents.parts]
        else:
            half = len(contents.parts) // 2
            keys = contents.parts[:half]
            self._queue += [(part, f"{label}[{key!r}]" if type(key) in VALUES else label)
                            for key, part in zip(keys, contents.parts[half:], strict=True)]  # fmt: skip
            self._queue += [(key, f"a key of {label}") for key in keys if type(key) not in VALUES]
        if issubclass(type(value), collections.defaultdict):
            self._compare_attribute(value, "default_factory", label)
            self._queue.append((value.default_factory, f"{label}.default_factory"))

    def _visit_object(self, value: Any, kind: Any, label: str) -> None:
        if kind is functools.partial:
            self._contents.append(ContentSnapshot(value.keywords, label))
            self._queue += [(part, label) for part in (value.func, *value.args, *value.keywords.values())]
            self._visit_members(vars(value), label, False)
        elif kind is MethodType:
            if issubclass(type(value.__self__), _GENERATORS):  # a draw changes its state
                if value.__name__ in _STATE_ATTRIBUTES:
                    self._reject(f"{label} reads or sets the state of a random generator")
                self._queue.append((value.__self__, f"{label}.__self__"))
            elif known_functions.is_pure_method(value.__self__, value.__name__):
                self._compare_attribute(value, "__func__", label)
            else:
                self._queue += [(value.__func__, label), (value.__self__, f"{label}.__self__")]
        elif kind is BuiltinFunctionType or kind is MethodWrapperType:
            owner = value.__self__
            if owner is None or issubclass(type(owner), ModuleType):
                self._reject_unknown(value, label)
            else:
                if issubclass(type(owner), _GENERATORS) and value.__name__ in _STATE_ATTRIBUTES:
                    self._reject(f"{label} reads or sets the state of a random generator")
                self._queue.append((owner, f"{label}.__self__"))
        elif kind in (staticmethod, classmethod, functools.cached_property, functools.partialmethod):
            self._queue.append((value.__func__ if kind in (staticmethod, classmethod) else value.func, label))
            if kind is functools.partialmethod:
                self._queue += [(part, label) for part in (*value.args, *value.keywords.values())]
        elif kind is property:
            self._queue += [(part, label) for part in (value.fget, value.fset, value.fdel) if part is not None]
        elif kind is decimal.Decimal:
            self._visit_known("decimal.Decimal", label)
        elif kind in _DATES:
            if self.attributes & {"now", "today", "utcnow"}:
                self._reject(f"{label}: it reads the clock")
        elif kind is operator.attrgetter:
            self.attributes |= {name for text in value.__reduce__()[1] for name in text.split(".")}
        elif issubclass(kind, _GENERATORS):
            if self.attributes & _STATE_ATTRIBUTES:
                self._reject(f"{label} is a random generator, whose state it may read")
            self._generator_states.append((value, generator_state(value), label))
        elif issubclass(kind, np.ndarray) and (kind in _ARRAYS or _is_user_object(kind)):
            self._visit_array(value, kind, label)
        elif kind in _BUFFERS:
            self._contents.append(ContentSnapshot(value, label))
        elif (top := str(kind.__module__).partition(".")[0]) in ("compgraph", "autodiff") and is_own_class(kind):
            self._visit_own_object(value, kind, label)
        elif (top == "numpy" and kind.__module__.startswith("numpy.polynomial.")) or kind in _ATTRIBUTE_CLASSES:
            self._attribute_dict(value, label)
            held = vars(value)
            self._contents.append(ContentSnapshot(held, label))
            self._queue += [(part, f"{label}.{name}") for name, part in list(held.items())]
        elif (base := container_base(value)) is not None and (
            kind is base or kind in BASES or _is_user_object(kind) or (base is tuple and _is_library_class(kind))
        ):
            self._visit_container(value, base, label)
            if _is_user_object(kind):
                self._visit_user_object(value, kind, label)
        elif _is_user_object(kind):
            if issubclass(kind, BaseException):
                self._compare_attribute(value, "args", f"{label}.args")
                self._queue.append((value.args, f"{label}.args"))
            self._visit_user_object(value, kind, label)
        else:
            self._reject_unknown(value, label)

    def _visit_array(self, value: Array, kind: type, label: str) -> None:
        if value.dtype.hasobject:
            self._reject(f"{label} is an array of objects")
            return
        self._contents.append(ContentSnapshot(value, label))
        if self.formats_text and not any(contents.value is np.get_printoptions for contents in self._contents):
            self._contents.append(SettingSnapshot(np.get_printoptions, "np.set_printoptions"))
        if value.base is not None and self.attributes & {"base", "as_strided"}:
            self._queue.append((value.base, f"{label}.base"))
        if kind not in _ARRAYS:
            self._visit_user_object(value, kind, label)

    def _visit_own_object(self, value: Any, kind: type, label: str) -> None:
        """Visit the contents of an object of the two packages."""
        self._note_own_module(kind.__module__)
        if kind.__name__ == "Jitted":
            self._visit_name(vars(value), "__wrapped__", label)
            self._visit_members(vars(value), label, False)
        elif kind.__name__ == "Bound":
            self._queue += [(value.__func__, label), (value.__self__, f"{label}.__self__")]
        elif kind.__name__ in ("Executor", "Profile"):
            self._reject_unknown(value, label)
        else:
            held = getattr(value, "__dict__", {})
            for name in list(held):
                if not name.startswith("__"):
                    self._visit_name(held, name, f"{label}.{name}")

    def _visit_user_object(self, value: object, kind: type, label: str) -> None:
        """Visit an object of a user's class: the attributes that the functions may read."""
        self._add_location(
            _Location(("class", id(value)), functools.partial(type, value), "type({0})", value, f"the class of {label}")
        )
        self._visit_class(kind, self.instantiates, label)
        try:
            held = object.__getattribute__(value, "__dict__")
        except AttributeError:
            held = None
        users = [base for base in kind.__mro__ if _is_user_class(base)]
        if type(held) is dict:
            self._attribute_dict(value, label)
            self._visit_members(held, label, True)
            for name in sorted(self.attributes.difference(held)):  # a later attribute would hide these
                if any(name in vars(base) for base in users):
                    self._visit_name(held, name, f"{label}.{name}")
            if self.detects_missing or any("__getattr__" in vars(base) for base in users):
                self._contents.append(KeySnapshot(held, f"the attributes of {label}"))
        elif held is not None:
            self._reject_unknown(value, label)
        for base in users:
            for name, member in list(vars(base).items()):
                if type(member) is MemberDescriptorType and (self.reads_by_name or name in self.attributes):
                    place = _Location.slot(value, member, f"{label}.{name}")
                    if self._add_location(place) and place.value is not MISSING:
                        self._queue.append((place.value, f"{label}.{name}"))
        if issubclass(kind, enum.Enum):
            self._visit_name(held, "_value_", f"{label}.value")

    def _attribute_dict(self, value: object, label: str) -> None:
        read = functools.partial(object.__getattribute__, value, "__dict__")
        self._add_location(
            _Location(("dict", id(value)), read, "attribute({0}, '__dict__')", value, f"the attributes of {label}")
        )

    def _visit_members(self, space: dict[str, Any], label: str, is_object: bool) -> None:
        """Visit the attributes of an object, a module or a function that the functions may read."""
        names = set(space) if self.reads_by_name and is_object else self.attributes.intersection(space)
        names |= self.stored  # assigned attributes may not exist yet
        for name in sorted(map(str, names)):
            value = self._visit_name(space, name, f"{label}.{name}")
            if issubclass(type(value), ModuleType):
                self._queue.append((value, f"{label}.{name}"))

    def _visit_module(self, module: ModuleType, label: str) -> None:
        """Visit a module that is used as a value: all its names that the functions may read."""
        if (why := impurity_of(module)) is not None and module.__name__ != "numpy.random":
            self._reject(f"{label}: it {why}")
        self._note_own_module(module.__name__)
        self._visit_members(vars(module), label, False)
        if not is_library(vars(module).get("__file__") or "") and "__getattr__" in vars(module):
            self._visit_name(vars(module), "__getattr__", f"{label}.__getattr__")

    def _visit_class(self, value: type, is_called: bool, label: str) -> None:
        """Visit the bodies of a user's class and its bases, which instances share; instances may be created if it `is_called`."""
        if (value, is_called) in self._kinds:
            return
        self._kinds.add((value, is_called))
        if type(value) not in METACLASSES:
            self._reject_unknown(value, label)
            return
        self._compare_attribute(value, "__mro__", f"the bases of {value.__name__}")
        hidden = self._ignored_methods(is_called)
        for base in value.__mro__:
            if not _is_user_class(base):
                if known_functions.name_of(base) is None and base not in BASES:
                    self._reject_unknown(base, label)
                continue
            space: MappingProxyType[str, Any] = vars(base)
            size = functools.partial(len, space)  # an added name may hide another
            self._add_location(_Location((base, "size"), size, "len({0})", space, f"the attributes of {base.__name__}"))
            for name, part in list(space.items()):
                if name.startswith("__") and name.endswith("__"):
                    is_read = name not in hidden
                else:
                    is_read = self.reads_by_name or name in self.attributes
                if is_read and type(part) not in _DESCRIPTORS:
                    self._visit_name(space, name, f"{base.__name__}.{name}")
        for name in sorted(self.attributes):  # a name added to a class would hide that of its base
            mro_position = next((place for place, base in enumerate(value.__mro__) if name in vars(base)), 0)
            for base in filter(_is_user_class, value.__mro__[:mro_position]):
                self._compare_name(vars(base), name, f"{base.__name__}.{name}")
        if issubclass(value, enum.Enum):
            self._queue += [(member, f"{value.__name__}.{name}") for name, member in value._member_map_.items()]
        if {"__name__", "__qualname__"} & self.attributes:
            self._compare_attribute(value, "__name__", f"the name of {value.__name__}")

    def _ignored_methods(self, is_called: bool) -> frozenset[str]:
        """Return the special methods of a class that are never called."""
        hidden = _IMPLICIT_MEMBERS if self.reads_by_name else _IMPLICIT_MEMBERS | _COPY_METHODS
        hidden = hidden if self.formats_text else hidden | _TEXT_METHODS
        return hidden if is_called else hidden | _CONSTRUCTION_METHODS

    def _visit_function(self, function: FunctionType, label: str) -> None:
        """Visit the state of a function and, for a user's function, the names that its code reads."""
        code, name = function.__code__, function.__name__
        if function.__defaults__ or function.__kwdefaults__ or not is_library(code.co_filename):
            for part in ("__defaults__", "__kwdefaults__"):
                self._compare_attribute(function, part, f"the default values of {name}")
            self._queue += [(part, f"a default value of {name}") for part in function.__defaults__ or ()]
            if function.__kwdefaults__ is not None:
                self._contents.append(ContentSnapshot(function.__kwdefaults__, f"the default values of {name}"))
                self._queue += [(part, f"the default value {key!r} of {name}") for key, part in function.__kwdefaults__.items()]
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if is_library(code.co_filename):
            if not is_pure_function(function):
                self._reject_unknown(function, label)
                return
            for name, cell in cells.items():
                self._queue.append((cell, f"the variable {name!r} of an enclosing function"))
            self._note_own_module(str(function.__globals__.get("__name__")))  # not `__module__`, which `functools.wraps` copies
            return
        self._compare_attribute(function, "__code__", f"the code of {name}")
        self._visit_members(function.__dict__, f"the function {name}", False)
        for attribute in self.attributes.difference(function.__dict__) - _FUNCTION_ATTRIBUTES if self.detects_missing else ():
            self._compare_name(function.__dict__, attribute, f"the function {name}.{attribute}")
        if {"__name__", "__qualname__"} & self.attributes:
            self._compare_attribute(function, "__name__", f"the name of {name}")
        self._visit_code(analyze_code(code), function, cells)

    def _note_own_module(self, module: str) -> None:
        """Note that something of a module is read."""
        top = module.partition(".")[0]
        self.derives = self.derives or top == "autodiff"
        if top in ("autodiff", "compgraph"):
            self.default_dtype = default_float()

    def _visit_code(self, code: CodeSummary, function: FunctionType, cells: dict[str, CellType]) -> None:
        for effect in code.effects:
            self._reject(effect)
        self.attributes |= code.attributes | code.texts
        self.stored |= code.stored
        self.reads_by_name, self.detects_missing = (
            self.reads_by_name or code.reads_by_name,
            self.detects_missing or code.detects_missing,
        )
        self.instantiates, self.formats_text = self.instantiates or code.instantiates, self.formats_text or code.formats_text
        for chain in sorted(code.chains):
            self._resolve_chain(chain, function, cells)
        named = {chain.name for chain in code.chains if chain.kind == "free"}
        for name, cell in cells.items():
            if name not in named:
                self._queue.append((cell, f"the variable {name!r} of an enclosing function"))

    def _resolve_chain(self, chain: AttributeChain, function: FunctionType, cells: dict[str, CellType]) -> None:
        """Resolve a name in the code of a function, and its attributes as long as the values are modules."""
        if chain.kind == "free":
            label = f"the variable {chain.name!r} of an enclosing function"
            place = _Location.attribute(cells[chain.name], "cell_contents", label)
            self._add_location(place)
            value = place.value
        elif chain.kind == "import":
            label = f"the module {chain.name!r}"
            value = self._resolve_import(chain, function)
        else:
            label = f"the global {chain.name!r}"
            value = self._compare_name(function.__globals__, chain.name, label)
            if value is MISSING:
                value = self._compare_name(vars(builtins), chain.name, label)
        attributes = list(chain.attributes)
        while attributes and issubclass(type(value), ModuleType):
            name = attributes.pop(0)
            self._note_own_module(value.__name__)
            value, label = self._resolve_member(value, name, label), f"{label}.{name}"
        self.attributes = self.attributes.union(attributes)
        if attributes and known_functions.is_pure_method(value, attributes[0]):
            self._compare_attribute(type(value), attributes[0], f"{label}.{attributes[0]}")
            self._compare_name(vars(value), attributes[0], f"{label}.{attributes[0]}")  # it would hide that of the class
        elif value is not MISSING:
            self._queue.append((value, label))

    def _resolve_member(self, module: ModuleType, name: str, label: str) -> Any:
        """Return the value of a name in a module, whose `__getattr__` may import it first."""
        space = vars(module)
        if name not in space and "__getattr__" in space:
            if is_library(space.get("__file__") or ""):
                getattr(module, name, None)
            else:
                self._visit_name(space, "__getattr__", f"{label}.__getattr__")
        return self._compare_name(space, name, f"{label}.{name}")

    def _resolve_import(self, chain: AttributeChain, function: FunctionType) -> Any:
        """Return a module that is imported within a function."""
        name = chain.name
        if chain.level:
            name = importlib.util.resolve_name("." * chain.level + name, str(function.__globals__.get("__package__")))
        if name not in sys.modules and known_functions.has_module(name):
            importlib.import_module(name)
        value = self._compare_name(sys.modules, name, f"the module {name!r}")
        if value is MISSING:
            self._reject(f"it imports {name!r}, which was not imported before")
        for part in chain.attributes[:1]:  # from a import b, where b is a module
            if issubclass(type(value), ModuleType) and part not in vars(value) and known_functions.has_module(f"{name}.{part}"):
                importlib.import_module(f"{name}.{part}")
        return value


_FUNCTION_ATTRIBUTES = frozenset(dir(FunctionType))


class _Location:
    """A location whose value is compared: a name in a mapping, a cell, or an attribute.

    Parameters
    ----------
    key : tuple
        The identity of the location.
    read : callable
        Returns the present value, or `MISSING`.
    expression : str
        Python source that reads it; ``{0}`` is the owner.
    owner : object
        The mapping or object with the location.
    label : str
        Its name in messages.
    """

    __slots__ = ("expression", "key", "label", "owner", "read", "value")

    def __init__(self, key: tuple[Any, ...], read: Callable[[], Any], expression: str, owner: object, label: str) -> None:
        self.key, self.read, self.expression, self.owner, self.label = key, read, expression, owner, label
        self.value = original(read())

    @classmethod
    def under(cls, space: dict[str, Any], name: str, label: str) -> _Location:
        """Return the location of a name in a mapping."""
        return cls((id(space), name), functools.partial(space.get, name, MISSING), f"{{0}}[{name!r}]", space, label)

    @classmethod
    def attribute(cls, owner: object, name: str, label: str) -> _Location:
        """Return the location of an attribute that is read without running user code."""
        return cls((id(owner), name, "attribute"), functools.partial(_attribute_of, owner, name), f"{{0}}.{name}", owner, label)

    @classmethod
    def slot(cls, owner: Any, member: Any, label: str) -> _Location:
        """Return the location of a slot of an object."""
        read = functools.partial(_slot_of, member, owner)
        return cls((id(owner), id(member), "slot"), read, "{0}()", functools.partial(member.__get__, owner), label)

    def is_unchanged(self) -> bool:
        """Return whether the value is the recorded one, or an equal number."""
        return is_unchanged(self.read(), self.value)


def _attribute_of(owner: object, name: str) -> Any:
    try:
        return getattr(owner, name)
    except (AttributeError, ValueError):  # of an empty cell
        return MISSING


def _slot_of(member: Any, owner: Any) -> Any:
    try:
        return member.__get__(owner)
    except AttributeError:
        return MISSING


def _compile_comparison(places: list[_Location]) -> Callable[[], bool]:
    """Return a function that compares the values of locations by identity in one expression, three times as fast as a loop."""
    space: dict[str, Any] = {"attribute": object.__getattribute__}
    owners: dict[int, str] = {}
    terms = []
    for number, place in enumerate(places):
        owner = owners.setdefault(id(place.owner), f"o{number}")
        space[owner] = place.owner
        if place.value is MISSING:
            terms.append(f"{place.key[1]!r} not in {owner}" if len(place.key) == 2 else "False")
        else:
            space[f"v{number}"] = place.value
            terms.append(f"{place.expression.replace('{0}', owner)} is v{number}")
    return eval(f"lambda: {' and '.join(terms) or 'True'}", space)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=4096)
def _is_user_object(kind: type) -> bool:
    """Return whether a class is a user's and the state of all its bases is known."""
    return _is_user_class(kind) and all(_is_user_class(base) or base in BASES or base is np.ndarray for base in kind.__mro__)


@functools.lru_cache(maxsize=4096)
def _is_user_class(kind: type) -> bool:
    """Return whether a class was defined in Python, by a user or a third-party package."""
    is_of_python = is_heap_type(kind) and not any(_is_c_member(part, kind) for part in vars(kind).values())
    return is_of_python and not is_own_class(kind) and not _is_library_class(kind)


def _is_c_member(part: Any, kind: type) -> bool:
    """Return whether a member of a class was defined in C."""
    if type(part) is BuiltinFunctionType:
        return part.__self__ is kind
    is_of_kind = type(part) in _C_DESCRIPTORS and part.__objclass__ is kind
    return is_of_kind and part.__name__ not in ("__dict__", "__weakref__")


def is_own_class(kind: type) -> bool:
    """Return whether a class belongs to the two packages."""
    module = str(kind.__module__)
    return module.partition(".")[0] in ("compgraph", "autodiff") and _is_defined_in(module, kind)


def _is_library_class(kind: type) -> bool:
    module = str(kind.__module__)
    top = module.partition(".")[0]
    is_known = top in ("numpy", "scipy", "builtins") or (top in sys.stdlib_module_names and top != "__main__")
    return is_known and _is_defined_in(module, kind)


def _is_defined_in(module: str, kind: type) -> bool:
    """Return whether a class is found in the module that it names, because ``__module__`` can be set freely."""
    value: Any = sys.modules.get(module)
    for name in kind.__qualname__.split("."):
        value = getattr(value, "__dict__", {}).get(name)
    return value is kind


_C_DESCRIPTORS = frozenset({GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType})


def require_unchanged(captured: CapturedState, when: str) -> None:
    """Raise a NotCompilableError if a function has changed its captured state."""
    label = captured.first_change(strictly=True)
    if label is not None:
        raise NotCompilableError(f"{label} was changed {when}; side effects are not compiled")
    label = captured.drawn_generator()
    if label is not None:  # perhaps by another thread, so another attempt may succeed
        raise NotCompilableError(f"it draws random numbers (from {label}); draw outside, and pass the numbers", is_lasting=False)
