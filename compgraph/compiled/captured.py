"""What a function reaches besides its arguments, as it was when the function was traced.

A program holds for the values of globals, closures, default values and attributes that its trace saw. Before each run these
are compared: who stands under each name by identity, and of arrays and containers what they hold. What stands still (functions
and classes of libraries, modules) is not looked at.
"""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Iterable
from types import CellType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..graph import Node
from ..graph.context import default_float
from .reached import Code, code_of, impure, is_library, is_users
from .refusals import RefusedError
from .snapshots import MISSING, VALUES, Contents, is_still

_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, slice, np.ufunc, type(len)})
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__set_name__", "__repr__"})
MOST = 2000  # values that are compared before each run


class Captured:
    """What some functions, and values that they are given, reach, as it is now.

    Parameters
    ----------
    roots : iterable
        The functions, and static arguments, each with what to call it in messages.

    Attributes
    ----------
    refusal : str or None
        Why a function that reaches this is not compiled.
    derives : bool
        Whether functions of `autodiff` are among it.
    number : dtype or None
        What Python's numbers became when it was looked at (`default_dtype`), if functions of ours are among it.
    """

    def __init__(self, roots: Iterable[tuple[Any, str]]) -> None:
        self.attributes, self.is_by_name = frozenset[str](), False
        roots = list(roots)
        before = None
        while before != (self.attributes, self.is_by_name):  # until no function is found that may read further attributes
            before = self.attributes, self.is_by_name
            self.refusal: str | None = None
            self.derives, self.number = False, None  # type: bool, Any
            self._names: list[tuple[Any, Any, Any, str]] = []  # a mapping, a name in it, its value, and in words
            self._contents: list[Contents] = []
            self._seen, self._kinds = set[int](), set[type]()
            self._queue = list(roots)
            for value, label in self._queue:  # the list grows meanwhile, and keeps alive what ids are of
                if id(value) not in self._seen:
                    self._seen.add(id(value))
                    self._open(value, label)
        if self.refusal is None and len(self._names) + len(self._contents) > MOST:
            self.refusal = f"it reaches more than {MOST} values by name, which would have to be compared before each run"
        self._queue.clear()

    # ------------------------------------------------------------------------------------------ asked again

    def __bool__(self) -> bool:
        return bool(self._names or self._contents or self.number is not None)

    def is_current(self) -> bool:
        """Whether all is as it was, so far as a program hangs on it."""
        for space, name, value, _ in self._names:
            found = space.get(name, MISSING)
            if found is not value and not is_still(found, value):
                return False
        for contents in self._contents:
            if not contents.is_same():
                return False
        return self.number is None or self.number == default_float()

    def changed(self, strictly: bool = False) -> str | None:
        """What is not as it was, in words; None if all is. If `strictly`, another object of equal value counts as well."""
        for space, name, value, label in self._names:
            found = space.get(name, MISSING)
            if found is not value and (not is_still(found, value) or (strictly and found.__class__ in VALUES)):
                return label
        if self.number is not None and self.number != default_float():
            return "cg.default_dtype"
        return next((contents.label for contents in self._contents if not contents.is_same()), None)

    # ------------------------------------------------------------------------------------------ found

    def _refuse(self, why: str) -> None:
        if self.refusal is None:
            self.refusal = why

    def _name(self, space: Any, name: Any, label: str) -> None:
        """Have what stands under a name compared, and look into it."""
        value = space.get(name, MISSING)
        if isinstance(value, ModuleType) and not is_users(value.__name__):
            found = [value, *[vars(value).get(part) for part in self.attributes]] if value.__name__ == "scipy" else [value]
            for module in found:
                if isinstance(module, ModuleType) and (why := impure(module)) is not None:
                    self._refuse(f"{label}: it {why}")
            self._ours(value.__name__)
            return
        self._names.append((space, name, value, label))
        if value is not MISSING:
            self._queue.append((value, label))

    def _open(self, value: Any, label: str) -> None:
        kind = value.__class__
        if (why := impure(value)) is not None:
            self._refuse(f"{label}: it {why}")
        if kind in _PLAIN or isinstance(value, (np.generic, np.dtype)):
            return
        if kind is FunctionType:
            self._function(value, label)
        elif isinstance(value, Node):
            self._refuse(f"{label} is a node of a graph")
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                self._refuse(f"{label} is an array of objects")
            self._contents.append(Contents(value, label))
        elif isinstance(value, ModuleType):
            if is_users(value.__name__):
                self._members(vars(value), label, False)
        elif isinstance(value, type):
            self._class(value, True)
        elif isinstance(value, _CONTAINERS):
            self._container(value, label)
        elif kind is CellType:
            self._name(_Cell(value), None, label)
        else:
            self._object(value, kind, label)

    def _container(self, value: Any, label: str) -> None:
        if len(value) > MOST:
            self._refuse(f"{label} holds {len(value)} values, which would have to be compared before each run")
            return
        if not isinstance(value, (tuple, frozenset)):
            self._contents.append(Contents(value, label))
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        self._queue += [(part, f"{label}[{key!r}]") for key, part in list(parts)]

    def _object(self, value: Any, kind: Any, label: str) -> None:
        if kind is functools.partial:
            self._queue += [(part, label) for part in (value.func, *value.args, *value.keywords.values())]
        elif kind is MethodType:
            self._queue += [(value.__func__, label), (value.__self__, f"{label}.__self__")]
        elif kind is staticmethod or kind is classmethod or kind is property:
            parts = (value.fget, value.fset) if kind is property else (value.__func__,)
            self._queue += [(part, label) for part in parts if part is not None]
        elif kind.__name__ == "Jitted" and hasattr(value, "__wrapped__"):
            self._queue.append((value.__wrapped__, label))
        else:
            held = getattr(value, "__dict__", None)
            if held.__class__ is dict:
                self._members(held, label, True)
                for name in sorted(self.attributes.difference(held)):  # that an attribute may come to hide
                    if any(name in vars(base) for base in kind.__mro__ if is_users(base.__module__)):
                        self._name(held, name, f"{label}.{name}")
            if kind.__module__ != "builtins":
                if kind not in self._kinds:
                    self._kinds.add(kind)
                    self._class(kind, False)
                self._slots(value, kind, label)
            if hasattr(value, "__wrapped__"):  # as of functools.lru_cache
                self._queue.append((value.__wrapped__, label))

    def _members(self, space: dict[str, Any], label: str, is_object: bool) -> None:
        """The attributes of an object, a module or a class that the functions may read."""
        names = list(space) if self.is_by_name and is_object else self.attributes.intersection(space)
        for name in sorted(map(str, names)):
            self._name(space, name, f"{label}.{name}")

    def _slots(self, value: Any, kind: Any, label: str) -> None:
        for base in kind.__mro__:
            for name, member in vars(base).items() if is_users(base.__module__) else ():
                if member.__class__ is MemberDescriptorType and (self.is_by_name or name in self.attributes):
                    self._name(_Slot(value, member), None, f"{label}.{name}")

    def _class(self, value: type, is_called: bool) -> None:
        """What the bodies of the user's classes hold, which their instances share; instances may be made if it `is_called`."""
        for base in value.__mro__:
            if not is_users(base.__module__):
                continue
            space: MappingProxyType[str, Any] = vars(base)
            for name, part in list(space.items()):
                if part.__class__ is MemberDescriptorType:
                    continue
                is_function = isinstance(part, (FunctionType, staticmethod, classmethod, property))
                is_special = name.startswith("__") and name.endswith("__")
                is_asked = part.__class__ is FunctionType and (is_called or name not in _MAKING)
                if (is_special and is_asked) or (name in self.attributes and not is_special):
                    if is_function or part.__class__ not in _PLAIN:
                        self._queue.append((part, f"{base.__name__}.{name}"))
                    self._names.append((space, name, part, f"{base.__name__}.{name}"))

    def _function(self, function: FunctionType, label: str) -> None:
        """What a function holds, and what one of the user's reaches by name."""
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._queue.append((cell, f"the variable {name!r} of an enclosing function"))
        defaults = _Defaults(function)
        if function.__defaults__ or function.__kwdefaults__:
            self._name(defaults, "__defaults__", f"the default values of {function.__name__}")
            self._name(defaults, "__kwdefaults__", f"the default values of {function.__name__}")
        if is_library(code.co_filename):
            self._ours(str(function.__globals__.get("__name__")))  # `functools.wraps` gives it the module of another
            return
        self._code(code_of(code), function)

    def _ours(self, module: str) -> None:
        """Note that something of a module is reached."""
        top = module.partition(".")[0]
        self.derives = self.derives or top == "autodiff"
        if top in ("autodiff", "compgraph"):
            self.number = default_float()

    def _code(self, code: Code, function: FunctionType) -> None:
        for effect in code.effects:
            self._refuse(effect)
        self.attributes |= code.attributes
        self.is_by_name = self.is_by_name or code.is_by_name
        space = function.__globals__
        for name in sorted(code.named):
            self._name(space, name, f"the global {name!r}")


class _Cell:
    """A closure cell, read as a mapping is."""

    __slots__ = ("cell",)

    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    def get(self, _: Any, default: Any) -> Any:
        """What it holds."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return default


class _Slot:
    """A slot of an object, read as a mapping is."""

    __slots__ = ("member", "owner")

    def __init__(self, owner: Any, member: Any) -> None:
        self.owner, self.member = owner, member

    def get(self, _: Any, default: Any) -> Any:
        """What it holds."""
        try:
            return self.member.__get__(self.owner)
        except AttributeError:
            return default


class _Defaults:
    """The default values of a function, read as a mapping is."""

    __slots__ = ("function",)

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    def get(self, name: str, _: Any) -> Any:
        """Those of positional, or of keyword parameters."""
        return operator.attrgetter(name)(self.function)


def require_unchanged(captured: Captured, when: str) -> None:
    """Raise a RefusedError if a function has changed what it reaches."""
    label = captured.changed(strictly=True)
    if label is not None:
        raise RefusedError(f"{label} was changed {when}; what a function changes besides its results is not compiled")
