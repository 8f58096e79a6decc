"""Search for captured state: everything that a function and the functions it calls can read, besides its arguments.

The search starts at the function and follows the names in its bytecode, and the attributes of values that the code may read.
Only pure callables (`pure_functions`), objects of users' classes, and containers can be compared; a function that reads anything
else is rejected.
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
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from ..context import default_float
from ..interception import generator_state
from ..values import TRACEABLE, Value
from .bytecode_analysis import AttributeChain, CodeSummary, analyze_code, impurity_of, is_library_file
from .pure_functions import (
    BASES,
    IMMUTABLE_CLASSES,
    METACLASSES,
    READS_BY_NAME,
    is_library_class,
    is_own_class,
    is_pure_function,
    is_user_class,
    is_user_object,
    pure_callables,
)
from .snapshots import (
    MISSING,
    VALUES,
    ContentSnapshot,
    KeySnapshot,
    Location,
    SettingSnapshot,
    container_base,
    decimal_context,
    unwrap_patch,
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
_FUNCTION_ATTRIBUTES = frozenset(dir(FunctionType))


class StateSearch:
    """Search for the state that some functions, and the values passed to them, can read.

    Parameters
    ----------
    roots : iterable
        The functions and static arguments, each with its name in messages.

    Attributes
    ----------
    rejection : str or None
        Why a function that reads this state is not compiled.
    uses_autodiff : bool
        Whether functions of `autodiff` are among the values.
    default_dtype : dtype or None
        The dtype of Python's numbers (`cg.default_dtype`), if functions of the two packages are among the values.
    locations : dict of Location
        The names, cells and attributes to compare.
    contents : list of ContentSnapshot
        The arrays, containers and settings to compare.
    generator_states : list of tuple
        Random generators with their states and names in messages.
    """

    def __init__(self, roots: Iterable[tuple[Any, str]]) -> None:
        self.attributes, self.stored_attributes = frozenset[str](), frozenset[str]()
        self.reads_by_name = self.detects_missing = self.instantiates = self.formats_text = False
        roots = list(roots)
        is_complete = False
        while not is_complete:  # until no function adds attributes that may be read
            scope = self._scope()
            self.rejection: str | None = None
            self.uses_autodiff, self.default_dtype = False, None  # type: bool, Any
            self.locations: dict[Any, Location] = {}
            self.contents: list[ContentSnapshot] = []
            self.generator_states: list[tuple[Any, Any, str]] = []
            self._visited_ids, self._visited_classes = set[int](), set[tuple[type, bool]]()
            self._queue = list(roots)
            for value, label in self._queue:  # the list grows, and keeps visited objects alive, so their ids stay unique
                if id(value) not in self._visited_ids:
                    self._visited_ids.add(id(value))
                    self._visit(value, label)
                if self.rejection is not None:
                    break
            is_complete = self.rejection is not None or scope == self._scope()
        if self.rejection is None and len(self.locations) + len(self.contents) > MAX_COMPARED:
            self.rejection = f"it reads more than {MAX_COMPARED} named values, too many to compare before each run"
        self._queue.clear()

    def _scope(self) -> Any:
        """Return which attributes of a value the functions may read, and what else they may do with it."""
        return (
            self.attributes,
            self.stored_attributes,
            self.reads_by_name,
            self.detects_missing,
            self.instantiates,
            self.formats_text,
        )

    def _reject(self, reason: str) -> None:
        if self.rejection is None:
            self.rejection = reason

    def _reject_unknown(self, value: Any, label: str) -> None:
        """Reject a value that is not known to be constant and free of effects."""
        if (reason := impurity_of(value)) is not None:
            self._reject(f"{label}: it {reason}")
        elif callable(value):
            is_named = issubclass(type(value), (type, FunctionType, BuiltinFunctionType))
            name = value.__qualname__ if is_named else f"object of class {type(value).__qualname__}"
            self._reject(f"{label} ({name}) is not known to be pure")
        else:
            self._reject(f"{label} is a {type(value).__qualname__}, which may change; pass it as an argument")

    def _add_location(self, location: Location) -> bool:
        """Compare the value of a location before each run; return whether the location is new."""
        if location.key in self.locations:
            return False
        self.locations[location.key] = location
        return True

    def _visit_name(self, namespace: Any, name: Any, label: str) -> Any:
        """Compare the value of a name in a mapping, and visit it."""
        value = self._compare_name(namespace, name, label)
        if value is not MISSING and not issubclass(type(value), ModuleType):
            self._queue.append((value, label))
        return value

    def _compare_name(self, namespace: Any, name: Any, label: str) -> Any:
        location = Location.in_mapping(namespace, name, label)
        self._add_location(location)
        return location.value

    def _compare_attribute(self, owner: Any, name: str, label: str) -> None:
        """Compare an attribute of a function, a cell or another Python object."""
        self._add_location(Location.attribute(owner, name, label))

    def _visit(self, value: Any, label: str) -> None:
        value = unwrap_patch(value)
        cls = type(value)
        if cls in IMMUTABLE_CLASSES or issubclass(cls, np.dtype):
            if cls is str and "%" in value:  # it may be a format string
                self.formats_text = True
            return
        name = pure_callables.name_of(value)
        if name is not None:
            self._visit_known(name, label)
        elif cls is FunctionType:
            self._visit_function(value, label)
        elif issubclass(cls, Value):
            self._reject(f"{label} is a node of a graph")
        elif issubclass(cls, ModuleType):
            self._visit_module(value, label)
        elif issubclass(cls, type):
            if issubclass(value, BaseException) and is_library_class(value):
                return
            if vars(value).get("_is_runtime_protocol"):  # isinstance() of a protocol reads attributes of the object
                self._reject_unknown(value, label)
            if cls is abc.ABCMeta:
                self.contents.append(SettingSnapshot(abc.get_cache_token, "the classes registered with abstract ones"))
            self._visit_class(value, True, label)
        elif issubclass(cls, np.generic):
            if issubclass(cls, np.void) or cls.__module__ != "numpy":
                self._reject_unknown(value, label)
        elif cls is CellType:
            self._visit_cell(value, label)
        else:
            self._visit_object(value, cls, label)

    def _visit_known(self, name: str, label: str) -> None:
        """Compare the settings that a pure library function reads."""
        if name in READS_BY_NAME:
            self.reads_by_name = self.detects_missing = self.instantiates = True
        elif name.endswith(".as_strided"):
            self.attributes |= {"as_strided"}
        elif name == "decimal.Decimal":
            self.contents.append(SettingSnapshot(decimal_context, "the context of decimal"))

    def _visit_cell(self, cell: CellType, label: str) -> Any:
        location = Location.attribute(cell, "cell_contents", label)
        if self._add_location(location) and location.value is not MISSING:
            self._queue.append((location.value, label))
        return location.value

    def _visit_container(self, value: Any, base: Any, label: str) -> None:
        contents = ContentSnapshot(value, label)
        if len(contents.parts) > MAX_COMPARED:
            self._reject(f"{label} has {base.__len__(value)} values, too many to compare before each run")
            return
        if base is not tuple and base is not frozenset:
            self.contents.append(contents)
        if base in (list, tuple):
            self._queue += [(part, f"{label}[{position}]") for position, part in enumerate(contents.parts)]
        elif base in (set, frozenset, collections.deque):
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

    def _visit_object(self, value: Any, cls: Any, label: str) -> None:
        if cls is functools.partial:
            self.contents.append(ContentSnapshot(value.keywords, label))
            self._queue += [(part, label) for part in (value.func, *value.args, *value.keywords.values())]
            self._visit_members(vars(value), label, False)
        elif cls in (MethodType, BuiltinFunctionType, MethodWrapperType):
            self._visit_method(value, cls, label)
        elif cls in (staticmethod, classmethod, functools.cached_property, functools.partialmethod):
            self._queue.append((value.__func__ if cls in (staticmethod, classmethod) else value.func, label))
            if cls is functools.partialmethod:
                self._queue += [(part, label) for part in (*value.args, *value.keywords.values())]
        elif cls is property:
            self._queue += [(part, label) for part in (value.fget, value.fset, value.fdel) if part is not None]
        elif cls is decimal.Decimal:
            self._visit_known("decimal.Decimal", label)
        elif cls in _DATES:
            if self.attributes & {"now", "today", "utcnow"}:
                self._reject(f"{label}: it reads the clock")
        elif cls is operator.attrgetter:
            self.attributes |= {name for text in value.__reduce__()[1] for name in text.split(".")}
        elif issubclass(cls, _GENERATORS):
            if self.attributes & _STATE_ATTRIBUTES:
                self._reject(f"{label} is a random generator, whose state it may read")
            self.generator_states.append((value, generator_state(value), label))
        elif issubclass(cls, np.ndarray) and (cls in _ARRAYS or is_user_object(cls)):
            self._visit_array(value, cls, label)
        elif cls in _BUFFERS:
            self.contents.append(ContentSnapshot(value, label))
        elif (top := str(cls.__module__).partition(".")[0]) in ("compgraph", "autodiff") and is_own_class(cls):
            self._visit_own_object(value, cls, label)
        elif (top == "numpy" and cls.__module__.startswith("numpy.polynomial.")) or cls in _ATTRIBUTE_CLASSES:
            self._compare_attribute_dict(value, label)
            namespace = vars(value)
            self.contents.append(ContentSnapshot(namespace, label))
            self._queue += [(part, f"{label}.{name}") for name, part in list(namespace.items())]
        elif (base := container_base(value)) is not None and (
            cls is base or cls in BASES or is_user_object(cls) or (base is tuple and is_library_class(cls))
        ):
            self._visit_container(value, base, label)
            if is_user_object(cls):
                self._visit_user_object(value, cls, label)
        elif is_user_object(cls):
            if issubclass(cls, BaseException):
                self._compare_attribute(value, "args", f"{label}.args")
                self._queue.append((value.args, f"{label}.args"))
            self._visit_user_object(value, cls, label)
        else:
            self._reject_unknown(value, label)

    def _visit_method(self, value: Any, cls: Any, label: str) -> None:
        """Visit a bound method or a builtin function."""
        owner = value.__self__
        is_of_generator = issubclass(type(owner), _GENERATORS)
        if is_of_generator and value.__name__ in _STATE_ATTRIBUTES:
            self._reject(f"{label} reads or sets the state of a random generator")
        if is_of_generator or (cls is not MethodType and owner is not None and not issubclass(type(owner), ModuleType)):
            self._queue.append((owner, f"{label}.__self__"))
        elif cls is not MethodType:
            self._reject_unknown(value, label)
        elif pure_callables.is_pure_method(owner, value.__name__):
            self._compare_attribute(value, "__func__", label)
        else:
            self._queue += [(value.__func__, label), (owner, f"{label}.__self__")]

    def _visit_array(self, value: Any, cls: Any, label: str) -> None:
        if value.dtype.hasobject:
            self._reject(f"{label} is an array of objects")
            return
        self.contents.append(ContentSnapshot(value, label))
        if self.formats_text and not any(contents.value is np.get_printoptions for contents in self.contents):
            self.contents.append(SettingSnapshot(np.get_printoptions, "np.set_printoptions"))
        if value.base is not None and self.attributes & {"base", "as_strided"}:
            self._queue.append((value.base, f"{label}.base"))
        if cls not in _ARRAYS:
            self._visit_user_object(value, cls, label)

    def _visit_own_object(self, value: Any, cls: type, label: str) -> None:
        """Visit the contents of an object of the two packages."""
        self._record_module(cls.__module__)
        if cls.__name__ == "Jitted":
            self._visit_name(vars(value), "__wrapped__", label)
            self._visit_members(vars(value), label, False)
        elif cls.__name__ == "Bound":
            self._queue += [(value.__func__, label), (value.__self__, f"{label}.__self__")]
        elif cls.__name__ in ("Executor", "Profile"):
            self._reject_unknown(value, label)
        else:
            namespace = getattr(value, "__dict__", {})
            for name in list(namespace):
                if not name.startswith("__"):
                    self._visit_name(namespace, name, f"{label}.{name}")

    def _visit_user_object(self, value: Any, cls: type, label: str) -> None:
        """Visit an object of a user's class: the attributes that the functions may read."""
        self._add_location(
            Location(("class", id(value)), functools.partial(type, value), "type({0})", value, f"the class of {label}")
        )
        self._visit_class(cls, self.instantiates, label)
        try:
            namespace = object.__getattribute__(value, "__dict__")
        except AttributeError:
            namespace = None
        user_classes = [base for base in cls.__mro__ if is_user_class(base)]
        if type(namespace) is dict:
            self._compare_attribute_dict(value, label)
            self._visit_members(namespace, label, True)
            for name in sorted(self.attributes.difference(namespace)):  # an attribute added later would shadow these
                if any(name in vars(base) for base in user_classes):
                    self._visit_name(namespace, name, f"{label}.{name}")
            if self.detects_missing or any("__getattr__" in vars(base) for base in user_classes):
                self.contents.append(KeySnapshot(namespace, f"the attributes of {label}"))
        elif namespace is not None:
            self._reject_unknown(value, label)
        for base in user_classes:
            for name, member in list(vars(base).items()):
                if type(member) is MemberDescriptorType and (self.reads_by_name or name in self.attributes):
                    location = Location.slot(value, member, f"{label}.{name}")
                    if self._add_location(location) and location.value is not MISSING:
                        self._queue.append((location.value, f"{label}.{name}"))
        if issubclass(cls, enum.Enum):
            self._visit_name(namespace, "_value_", f"{label}.value")

    def _compare_attribute_dict(self, value: Any, label: str) -> None:
        read = functools.partial(object.__getattribute__, value, "__dict__")
        self._add_location(Location(("dict", id(value)), read, "attribute({0}, '__dict__')", value, f"the attributes of {label}"))

    def _visit_members(self, namespace: dict[str, Any], label: str, is_object: bool) -> None:
        """Visit the attributes of an object, a module or a function that the functions may read."""
        names = set(namespace) if self.reads_by_name and is_object else self.attributes.intersection(namespace)
        names |= self.stored_attributes  # assigned attributes may not exist yet
        for name in sorted(map(str, names)):
            value = self._visit_name(namespace, name, f"{label}.{name}")
            if issubclass(type(value), ModuleType):
                self._queue.append((value, f"{label}.{name}"))

    def _visit_module(self, module: ModuleType, label: str) -> None:
        """Visit a module that is used as a value: all its names that the functions may read."""
        if (reason := impurity_of(module)) is not None and module.__name__ != "numpy.random":
            self._reject(f"{label}: it {reason}")
        self._record_module(module.__name__)
        self._visit_members(vars(module), label, False)
        if not is_library_file(vars(module).get("__file__") or "") and "__getattr__" in vars(module):
            self._visit_name(vars(module), "__getattr__", f"{label}.__getattr__")

    def _visit_class(self, value: type, is_called: bool, label: str) -> None:
        """Visit the bodies of a user's class and its bases; if it `is_called`, also the methods that create instances."""
        if (value, is_called) in self._visited_classes:
            return
        self._visited_classes.add((value, is_called))
        if type(value) not in METACLASSES:
            self._reject_unknown(value, label)
            return
        self._compare_attribute(value, "__mro__", f"the bases of {value.__name__}")
        ignored = self._ignored_methods(is_called)
        for base in value.__mro__:
            if not is_user_class(base):
                if pure_callables.name_of(base) is None and base not in BASES:
                    self._reject_unknown(base, label)
                continue
            namespace: MappingProxyType[str, Any] = vars(base)
            size = functools.partial(len, namespace)  # an added name may shadow another
            self._add_location(Location((base, "size"), size, "len({0})", namespace, f"the attributes of {base.__name__}"))
            for name, part in list(namespace.items()):
                if name.startswith("__") and name.endswith("__"):
                    is_read = name not in ignored
                else:
                    is_read = self.reads_by_name or name in self.attributes
                if is_read and type(part) not in _DESCRIPTORS:
                    self._visit_name(namespace, name, f"{base.__name__}.{name}")
        for name in sorted(self.attributes):  # a name added to a class would shadow the name in its base
            mro_position = next((position for position, base in enumerate(value.__mro__) if name in vars(base)), 0)
            for base in filter(is_user_class, value.__mro__[:mro_position]):
                self._compare_name(vars(base), name, f"{base.__name__}.{name}")
        if issubclass(value, enum.Enum):
            self._queue += [(member, f"{value.__name__}.{name}") for name, member in value._member_map_.items()]
        if {"__name__", "__qualname__"} & self.attributes:
            self._compare_attribute(value, "__name__", f"the name of {value.__name__}")

    def _ignored_methods(self, is_called: bool) -> frozenset[str]:
        """Return the special methods of a class that the functions cannot call."""
        ignored = _IMPLICIT_MEMBERS if self.reads_by_name else _IMPLICIT_MEMBERS | _COPY_METHODS
        ignored = ignored if self.formats_text else ignored | _TEXT_METHODS
        return ignored if is_called else ignored | _CONSTRUCTION_METHODS

    def _visit_function(self, function: FunctionType, label: str) -> None:
        """Visit the state of a function and, for a user's function, the names that its code reads."""
        code, name = function.__code__, function.__name__
        if function.__defaults__ or function.__kwdefaults__ or not is_library_file(code.co_filename):
            for part in ("__defaults__", "__kwdefaults__"):
                self._compare_attribute(function, part, f"the default values of {name}")
            self._queue += [(part, f"a default value of {name}") for part in function.__defaults__ or ()]
            if function.__kwdefaults__ is not None:
                self.contents.append(ContentSnapshot(function.__kwdefaults__, f"the default values of {name}"))
                self._queue += [(part, f"the default value {key!r} of {name}") for key, part in function.__kwdefaults__.items()]
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if is_library_file(code.co_filename):
            if not is_pure_function(function):
                self._reject_unknown(function, label)
                return
            for name, cell in cells.items():
                self._queue.append((cell, f"the variable {name!r} of an enclosing function"))
            self._record_module(str(function.__globals__.get("__name__")))  # not `__module__`, which `functools.wraps` copies
            return
        self._compare_attribute(function, "__code__", f"the code of {name}")
        self._visit_members(function.__dict__, f"the function {name}", False)
        for attribute in self.attributes.difference(function.__dict__) - _FUNCTION_ATTRIBUTES if self.detects_missing else ():
            self._compare_name(function.__dict__, attribute, f"the function {name}.{attribute}")
        if {"__name__", "__qualname__"} & self.attributes:
            self._compare_attribute(function, "__name__", f"the name of {name}")
        self._visit_code(analyze_code(code), function, cells)

    def _record_module(self, module: str) -> None:
        """Record whether a module belongs to the two packages, whose functions read their own settings."""
        top = module.partition(".")[0]
        self.uses_autodiff = self.uses_autodiff or top == "autodiff"
        if top in ("autodiff", "compgraph"):
            self.default_dtype = default_float()

    def _visit_code(self, code: CodeSummary, function: FunctionType, cells: dict[str, CellType]) -> None:
        for effect in code.effects:
            self._reject(effect)
        self.attributes |= code.attributes | code.texts
        self.stored_attributes |= code.stored_attributes
        self.reads_by_name |= code.reads_by_name
        self.detects_missing |= code.detects_missing
        self.instantiates |= code.instantiates
        self.formats_text |= code.formats_text
        for chain in sorted(code.chains):
            self._resolve_chain(chain, function, cells)
        chained_names = {chain.name for chain in code.chains if chain.kind == "free"}
        for name, cell in cells.items():
            if name not in chained_names:
                self._queue.append((cell, f"the variable {name!r} of an enclosing function"))

    def _resolve_chain(self, chain: AttributeChain, function: FunctionType, cells: dict[str, CellType]) -> None:
        """Resolve a name in the code of a function, and its attributes as long as the values are modules."""
        if chain.kind == "free":
            label = f"the variable {chain.name!r} of an enclosing function"
            location = Location.attribute(cells[chain.name], "cell_contents", label)
            self._add_location(location)
            value = location.value
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
            self._record_module(value.__name__)
            value, label = self._resolve_member(value, name, label), f"{label}.{name}"
        self.attributes = self.attributes.union(attributes)
        if attributes and pure_callables.is_pure_method(value, attributes[0]):
            self._compare_attribute(type(value), attributes[0], f"{label}.{attributes[0]}")
            self._compare_name(vars(value), attributes[0], f"{label}.{attributes[0]}")  # it would shadow the method of the class
        elif value is not MISSING:
            self._queue.append((value, label))

    def _resolve_member(self, module: ModuleType, name: str, label: str) -> Any:
        """Return the value of a name in a module, whose `__getattr__` may import it first."""
        namespace = vars(module)
        if name not in namespace and "__getattr__" in namespace:
            if is_library_file(namespace.get("__file__") or ""):
                getattr(module, name, None)
            else:
                self._visit_name(namespace, "__getattr__", f"{label}.__getattr__")
        return self._compare_name(namespace, name, f"{label}.{name}")

    def _resolve_import(self, chain: AttributeChain, function: FunctionType) -> Any:
        """Return a module that is imported within a function."""
        name = chain.name
        if chain.level:
            name = importlib.util.resolve_name("." * chain.level + name, str(function.__globals__.get("__package__")))
        if name not in sys.modules and pure_callables.has_module(name):
            importlib.import_module(name)
        value = self._compare_name(sys.modules, name, f"the module {name!r}")
        if value is MISSING:
            self._reject(f"it imports {name!r}, which was not imported before")
        for part in chain.attributes[:1]:  # from a import b, where b is a module
            if issubclass(type(value), ModuleType) and part not in vars(value) and pure_callables.has_module(f"{name}.{part}"):
                importlib.import_module(f"{name}.{part}")
        return value
