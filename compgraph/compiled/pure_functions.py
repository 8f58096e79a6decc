"""Pure functions: an allowlist of callables and classes of Python, NumPy and SciPy without state and side effects.

A function that calls a library function, or reads an object of a library class, that is not listed is not compiled. The origin of
a class (users, libraries, the two packages) determines how its objects are compared.
"""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import enum
import fractions
import functools
import inspect
import operator
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..frames import is_heap_type
from ..trees import flatten

_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex delattr dict divmod enumerate filter float format
    frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min next object oct ord pow property
    range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip __build_class__
"""
# NumPy names that are in no table of `ops`: classes, dtypes, and objects that are indexed.
_NUMPY = """
    bool bool_ broadcast byte cdouble character clongdouble complex128 complex256 complex64 complexfloating csingle double
    dtype einsum errstate finfo flexible float128 float16 float32 float64 floating generic half iinfo in1d inexact int16 int32
    int64 int8 int_ intc integer intp long longdouble longlong ndarray ndenumerate ndindex nditer number poly1d row_stack
    short signedinteger single trapz ubyte ufunc uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger
    ushort vectorize c_ r_ s_ index_exp mgrid ogrid
"""
# The pure names of each module; None means all public names.
_PURE: dict[str, str | None] = {
    "builtins": _BUILTINS,
    **dict.fromkeys(("math", "cmath", "operator", "_operator", "itertools", "numbers", "typing", "collections.abc", "bisect")),
    "heapq": None, "abc": None, "enum": None, "fractions": "Fraction", "decimal": "Decimal", "copy": "copy deepcopy",
    "collections": "deque namedtuple OrderedDict defaultdict Counter ChainMap UserDict UserList",
    "functools": "partial partialmethod reduce wraps cmp_to_key total_ordering cached_property",
    "dataclasses": "dataclass field fields replace asdict astuple is_dataclass",
    "types": "SimpleNamespace MappingProxyType NoneType MethodType",
    "contextlib": "contextmanager nullcontext",
    "warnings": "catch_warnings simplefilter filterwarnings",
    "numpy": _NUMPY,
    **{f"numpy.{name}": None for name in ("linalg", "fft", "exceptions", "lib.scimath", "polynomial.polyutils")},
    **{
        f"numpy.polynomial.{name}": None
        for name in ("polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre")
    },
    "numpy.lib.stride_tricks": "sliding_window_view as_strided",
    "numpy.random": "default_rng Generator RandomState SeedSequence PCG64 PCG64DXSM MT19937 Philox SFC64",
    **{f"scipy.{name}": None for name in ("special", "linalg", "fft", "signal", "constants")},
}  # fmt: skip
# Distributions whose methods below are formulas of SciPy's: their branches on values are recorded as guards.
_DISTRIBUTIONS = """
    bernoulli beta binom cauchy chi2 expon f gamma geom gumbel_l gumbel_r halfcauchy halfnorm invgamma laplace logistic lognorm
    nbinom norm pareto poisson rayleigh t uniform weibull_min
"""
_DISTRIBUTION_METHODS = frozenset({"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"})
# Names excluded from modules that are listed as a whole.
_EXCLUDED_NAMES = frozenset({"set_backend", "set_global_backend", "skip_backend", "register_backend", "set_workers", "seterr"})
# Functions that read or set attributes of their arguments whose names do not occur in the caller's code.
READS_BY_NAME = frozenset(
    {"copy.copy", "copy.deepcopy", *(f"dataclasses.{n}" for n in ("replace", "asdict", "astuple", "fields"))}
)
# Classes of immutable objects.
IMMUTABLE_CLASSES = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, slice),
        *(np.finfo, np.iinfo, types.GenericAlias, types.UnionType, operator.itemgetter, types.CodeType),
        *(types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType),
        types.MemberDescriptorType,
    }
)
IMMUTABLE_CLASSES |= {typing.TypeVar, type(typing.Any), re.Pattern, fractions.Fraction, type(flatten(0)[1])}
IMMUTABLE_CLASSES |= {inspect.Signature, inspect.Parameter}
METACLASSES = frozenset({type, abc.ABCMeta, enum.EnumType, type(typing.Protocol)})
# Python classes that users subclass; all state of their instances is compared.
BASES = frozenset(
    {
        *(object, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, BaseException, Exception),
        *(collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter),
        *(typing.Generic, typing.Protocol, abc.ABC),
        *(enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag, enum.StrEnum, enum.ReprEnum),
        *(value for value in vars(collections.abc).values() if isinstance(value, type)),
    }
)
# Modules of the standard library that create functions, as the methods of a dataclass. Such functions have no name by which the
# tables could list them, and are trusted by their module.
_TRUSTED_MODULES = frozenset(
    {"contextlib", "functools", "dataclasses", "reprlib", "collections", "enum", "abc", "typing", "types"}
)
_C_DESCRIPTORS = frozenset({types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType})
# Functions of the two packages that are called for their side effects.
_CALLED_FOR_EFFECTS = frozenset({"visualize_at", "interception", "reset", "record_lines", "profile", "seed"})


_UNDISPATCHED = {spec.function: spec for spec in ops.UNDISPATCHED}


class _PureRegistry:
    """Pure callables by identity; those of a module are added once it is imported."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[Any, str]] = {}
        self._not_imported = dict(_PURE)

    def name_of(self, value: object) -> str | None:
        """Return the name of a pure callable, or None."""
        entry = self._values.get(id(value))
        if entry is None and any(name in sys.modules for name in self._not_imported):
            self._register_imported_modules()
            entry = self._values.get(id(value))
        return None if entry is None else entry[1]

    def is_pure_method(self, owner: Any, name: str) -> bool:
        """Return whether a method of an object is pure, although others may not be."""
        module = sys.modules.get("scipy.stats") if name in _DISTRIBUTION_METHODS else None
        is_listed = module is not None and any(getattr(module, listed, None) is owner for listed in _DISTRIBUTIONS.split())
        return is_listed and name not in vars(owner)

    def has_module(self, name: str) -> bool:
        """Return whether names of a module, or of its submodules, are listed."""
        return name in _PURE or any(listed.startswith(f"{name}.") for listed in _PURE)

    def _register_imported_modules(self) -> None:
        for name in [name for name in self._not_imported if name in sys.modules]:
            module, text = sys.modules[name], self._not_imported.pop(name)
            names = text.split() if text is not None else [n for n in getattr(module, "__all__", vars(module)) if n[0] != "_"]
            for member in names:
                value: Any = vars(module).get(member)
                if member in _EXCLUDED_NAMES or type(value) in IMMUTABLE_CLASSES or isinstance(value, types.ModuleType):
                    continue
                if not callable(value) and not type(value).__module__.startswith("numpy.lib."):  # np.r_ and np.mgrid are objects
                    continue
                unpatched = value.__wrapped__ if is_patch(value) else value
                self._values[id(unpatched)] = unpatched, f"{name}.{member}"
        if "numpy" not in self._not_imported:
            for name, value in vars(np).items():
                unpatched = value.__wrapped__ if is_patch(value) else value
                if type(unpatched) is np.ufunc or (type(unpatched) is not type and _is_pure_operation(unpatched)):
                    self._values[id(unpatched)] = unpatched, f"numpy.{getattr(unpatched, '__name__', name)}"
        for value in vars(builtins).values():
            if isinstance(value, type) and issubclass(value, BaseException):
                self._values[id(value)] = value, f"builtins.{value.__name__}"


def _is_pure_operation(value: Any) -> bool:
    """Return whether a value is an operation without state and side effects."""
    if type(value).__hash__ is None:
        return False
    spec = ops.SPECS.get(ops.ALIASES.get(value, value)) or _UNDISPATCHED.get(value)
    return spec is not None and spec.policy != "unsupported" and not spec.external


def is_patch(value: Callable[..., Any] | type) -> bool:
    """Return whether a function is currently a patch of NumPy or Python."""
    return (
        type(value) is types.FunctionType
        and "__wrapped__" in value.__dict__
        and value.__globals__.get("__name__", "").startswith(("compgraph.interception", "compgraph.arrays"))
    )


pure_callables = _PureRegistry()


def is_pure_function(function: types.FunctionType) -> bool:
    """Return whether a library function written in Python is trusted although it is not listed."""
    package = str(function.__globals__.get("__name__")).partition(".")[0]
    if package in ("compgraph", "autodiff"):
        return function.__code__.co_name not in _CALLED_FOR_EFFECTS
    return package in _TRUSTED_MODULES and function.__code__.co_name != "singledispatch"


@functools.lru_cache(maxsize=4096)
def is_user_object(cls: type) -> bool:
    """Return whether a class is a user's, and all bases keep their state where it can be compared."""
    return is_user_class(cls) and all(is_user_class(base) or base in BASES or base is np.ndarray for base in cls.__mro__)


@functools.lru_cache(maxsize=4096)
def is_user_class(cls: type) -> bool:
    """Return whether a class was defined in Python, by a user or a third-party package."""
    is_python_class = is_heap_type(cls) and not any(_is_c_member(part, cls) for part in vars(cls).values())
    return is_python_class and not is_own_class(cls) and not is_library_class(cls)


def _is_c_member(part: Any, cls: type) -> bool:
    """Return whether a member of a class was defined in C."""
    if type(part) is types.BuiltinFunctionType:
        return part.__self__ is cls
    is_own_descriptor = type(part) in _C_DESCRIPTORS and part.__objclass__ is cls
    return is_own_descriptor and part.__name__ not in ("__dict__", "__weakref__")


def is_own_class(cls: type) -> bool:
    """Return whether a class belongs to the two packages."""
    module = str(cls.__module__)
    return module.partition(".")[0] in ("compgraph", "autodiff") and _is_defined_in(module, cls)


def is_library_class(cls: type) -> bool:
    """Return whether a class belongs to Python, NumPy or SciPy."""
    module = str(cls.__module__)
    top = module.partition(".")[0]
    is_of_library = top in ("numpy", "scipy", "builtins") or (top in sys.stdlib_module_names and top != "__main__")
    return is_of_library and _is_defined_in(module, cls)


def _is_defined_in(module: str, cls: type) -> bool:
    """Return whether the module that a class names contains it, because ``__module__`` can be set freely."""
    value: Any = sys.modules.get(module)
    for name in cls.__qualname__.split("."):
        value = getattr(value, "__dict__", {}).get(name)
    return value is cls
