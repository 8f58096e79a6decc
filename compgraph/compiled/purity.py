"""Callables and classes of Python, NumPy and SciPy that are known to be pure: no state, no effect, no external input.

This is an allow list. A function that reaches another callable of a library, or an object of another class, is not compiled.
"""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import enum
import fractions
import inspect
import operator
import re
import sys
import types
import typing
from typing import Any

import numpy as np

from ..trees import flatten

_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex delattr dict divmod enumerate filter float format
    frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min next object oct ord pow property
    range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip __build_class__
"""
_NUMPY = """
    abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes arange arccos arccosh
    arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array array_equal array_equiv
    array_split asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray asin asinh astype atan atan2 atanh
    atleast_1d atleast_2d atleast_3d average bartlett bincount blackman block bmat bool bool_ broadcast broadcast_arrays
    broadcast_shapes broadcast_to byte can_cast cbrt cdouble ceil character choose clip clongdouble column_stack common_type
    complex128 complex256 complex64 complexfloating compress concat concatenate convolve copy copyto corrcoef correlate
    count_nonzero cov cross csingle cumprod cumsum cumulative_prod cumulative_sum delete diag diag_indices diag_indices_from
    diagflat diagonal diff digitize divide dot double dsplit dstack dtype ediff1d einsum einsum_path empty empty_like errstate
    expand_dims extract eye fill_diagonal finfo fix flatnonzero flexible flip fliplr flipud float128 float16 float32 float64
    floating frombuffer fromfunction fromiter full full_like generic geomspace gradient half hamming hanning histogram histogram2d
    histogram_bin_edges histogramdd hsplit hstack i0 identity iinfo imag in1d indices inexact inner insert int16 int32 int64 int8
    int_ intc integer interp intersect1d intp isclose iscomplex iscomplexobj isdtype isfortran isin isneginf isposinf isreal
    isrealobj isscalar issubdtype iterable kaiser kron lexsort linspace logspace long longdouble longlong mask_indices
    matrix_transpose max may_share_memory mean median meshgrid min min_scalar_type mintypecode moveaxis nan_to_num nanargmax
    nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray
    ndenumerate ndim ndindex nditer nonzero number ones ones_like outer packbits pad partition percentile permute_dims piecewise
    place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval prod promote_types ptp put put_along_axis
    putmask quantile ravel ravel_multi_index real real_if_close repeat require reshape resize result_type roll rollaxis roots
    rot90 round row_stack searchsorted select setdiff1d setxor1d shape shares_memory short signedinteger sinc single size sort
    sort_complex split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid trapz tri tril
    tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from typename ubyte ufunc uint uint16 uint32 uint64
    uint8 uintc uintp ulong ulonglong union1d unique unique_all unique_counts unique_inverse unique_values unpackbits
    unravel_index unsignedinteger unstack unwrap ushort vander var vdot vectorize vsplit vstack where zeros zeros_like ix_
    c_ r_ s_ index_exp mgrid ogrid
"""
# The pure names of each module; None means all that the module defines.
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
# Exceptions among the modules that are listed as a whole.
_EXCEPTIONS = frozenset({"set_backend", "set_global_backend", "skip_backend", "register_backend", "set_workers", "seterr"})
# Functions that read or set attributes of their arguments by names that are not in the code.
BY_NAME = frozenset({"copy.copy", "copy.deepcopy", *(f"dataclasses.{n}" for n in ("replace", "asdict", "astuple", "fields"))})
# Classes whose objects never change.
CONSTANTS = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, slice),
        *(np.finfo, np.iinfo, types.GenericAlias, types.UnionType, operator.itemgetter, types.CodeType),
        *(types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType),
        types.MemberDescriptorType,
    }
)
CONSTANTS |= {typing.TypeVar, type(typing.Any), re.Pattern, fractions.Fraction, type(flatten(0)[1])}
CONSTANTS |= {inspect.Signature, inspect.Parameter}
METACLASSES = frozenset({type, abc.ABCMeta, enum.EnumType, type(typing.Protocol)})
# Python classes that users subclass; their objects have no state that is not compared.
BASES = frozenset(
    {
        *(object, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, BaseException, Exception),
        *(collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter),
        *(typing.Generic, typing.Protocol, abc.ABC),
        *(enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag, enum.StrEnum, enum.ReprEnum),
        *(value for value in vars(collections.abc).values() if isinstance(value, type)),
    }
)
# Python modules whose functions return functions or add them to classes; these functions are trusted.
_MAKERS = frozenset({"contextlib", "functools", "dataclasses", "reprlib", "collections", "enum", "abc", "typing", "types"})
# Functions of ours that are called for their effects.
_OURS = frozenset({"visualize_at", "interception", "reset", "record_lines", "profile", "seed"})


class _Known:
    """Pure callables, by identity; those of a module are added once it has been imported."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[Any, str]] = {}
        self._missing = dict(_PURE)

    def name_of(self, value: Any) -> str | None:
        """The name of a value that is known to be pure, or None."""
        found = self._values.get(id(value))
        if found is None and any(name in sys.modules for name in self._missing):
            self._enter()
            found = self._values.get(id(value))
        return None if found is None else found[1]

    def has_module(self, name: str) -> bool:
        """Whether the names of a module were added."""
        return name in _PURE or any(known.startswith(f"{name}.") for known in _PURE)

    def _enter(self) -> None:
        for name in [name for name in self._missing if name in sys.modules]:
            module, text = sys.modules[name], self._missing.pop(name)
            names = text.split() if text is not None else [n for n in getattr(module, "__all__", vars(module)) if n[0] != "_"]
            space = vars(module)
            for part in names:
                value: Any = space.get(part)
                if part in _EXCEPTIONS or type(value) in CONSTANTS or isinstance(value, types.ModuleType):
                    continue
                if not callable(value) and not type(value).__module__.startswith("numpy.lib."):  # np.r_ and np.mgrid are objects
                    continue
                original = value.__wrapped__ if is_exchanged(value) else value
                self._values[id(original)] = original, f"{name}.{part}"
        if "numpy" not in self._missing:
            for value in vars(np).values():
                if type(value) is np.ufunc:
                    self._values[id(value)] = value, f"numpy.{value.__name__}"
        for value in vars(builtins).values():
            if isinstance(value, type) and issubclass(value, BaseException):
                self._values[id(value)] = value, f"builtins.{value.__name__}"


def is_exchanged(value: Any) -> bool:
    """Whether a function currently replaces one of NumPy or Python."""
    return (
        type(value) is types.FunctionType
        and "__wrapped__" in value.__dict__
        and value.__globals__.get("__name__", "").startswith(("compgraph.interception", "compgraph.arrays"))
    )


known = _Known()


def is_pure_function(function: types.FunctionType) -> bool:
    """Whether a Python function of a library that is not known by name is trusted."""
    home = str(function.__globals__.get("__name__"))
    if home.partition(".")[0] in ("compgraph", "autodiff"):
        return function.__code__.co_name not in _OURS
    return home.partition(".")[0] in _MAKERS and function.__code__.co_name != "singledispatch"
