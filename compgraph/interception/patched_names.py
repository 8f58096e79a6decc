"""Patches of names such as ``np.zeros``, ``math.sin`` and ``np.random.normal`` in namespaces.

A group of names is patched in all namespaces that bind them: NumPy's own, and those of modules that imported a name directly.
"""

from __future__ import annotations

import cmath
import functools
import importlib
import math
import sys
from collections.abc import Callable, Iterable
from operator import itemgetter
from types import FunctionType
from typing import Any

import numpy as np

from .. import arrays
from ..arrays import is_compiled, register_original, shield_compiled_modules, without_patches
from ..frames import frame_up
from ..guards import note_conversion
from ..values import Value
from .callers import is_library
from .constructors import CONSTRUCTORS, LIST_CONVERTERS, POLYNOMIAL_QUADRATURES, wrap_constructor, wrap_default_rng
from .library_adapters import MEMORY_READERS, raising_reader
from .math_functions import COMPLEX_FUNCTIONS, MATH_FUNCTIONS, STATISTICS, wrap_math_function, wrap_statistic
from .random_functions import NUMPY_DRAWS, handled_draw_patches, wrap_draw
from .undispatched_functions import PatchedIndexer, wrap_fromiter, wrap_ndenumerate

Namespace = dict[str, Any]
Function = Callable[..., Any]
Patch = tuple[Namespace, str, Any]  # namespace, name, and the object that replaces the original


# -------------------------------------------------------------------------------------------- the tables of names


def _mark_patch(patch: Any, original: Any) -> Any:
    """Mark a patch, so that `patched_numpy` can distinguish it from NumPy's own function.

    The attribute ``for_compiled`` is the function that compiled modules see.
    """
    if isinstance(patch, FunctionType):
        patch.is_differentiation_patch = True  # type: ignore[attr-defined]
    patch.for_compiled = getattr(patch, "for_compiled", original)
    return patch


def _differentiation_patches() -> list[Patch]:
    """The names that are replaced while a function is differentiated."""
    patches: dict[tuple[int, str], Patch] = {}

    def add_patch(namespace: Namespace, name: str, wrap: Callable[[Any], Any]) -> None:
        if name in namespace:
            original = without_patches(namespace)[name]
            patches[id(namespace), name] = namespace, name, _mark_patch(wrap(original), original)

    numpy = vars(np)
    for name, node_function in CONSTRUCTORS.items():
        if name not in LIST_CONVERTERS:
            add_patch(numpy, name, functools.partial(wrap_constructor, node_function=node_function))
    for module_name, names in {"numpy.fft": ("fftfreq", "rfftfreq"), **POLYNOMIAL_QUADRATURES}.items():
        for name in names:
            add_patch(vars(importlib.import_module(module_name)), name, functools.partial(wrap_constructor, node_function=None))
    add_patch(vars(np.lib.stride_tricks), "as_strided", functools.partial(wrap_constructor, node_function=arrays.as_strided))
    for name in ("mgrid", "ogrid"):
        add_patch(numpy, name, lambda original: PatchedIndexer(original, None))
    add_patch(numpy, "r_", lambda original: PatchedIndexer(original, arrays.r_))
    add_patch(numpy, "c_", lambda original: PatchedIndexer(original, arrays.c_))
    add_patch(numpy, "ndenumerate", wrap_ndenumerate)
    for module, functions in ((math, MATH_FUNCTIONS), (cmath, COMPLEX_FUNCTIONS)):
        for name, node_function in functions.items():
            add_patch(vars(module), name, functools.partial(wrap_math_function, node_function=node_function))
    for name, node_function in STATISTICS.items():
        add_patch(
            vars(importlib.import_module("statistics")), name, functools.partial(wrap_statistic, node_function=node_function)
        )
    for reader, names in MEMORY_READERS.items():
        for name in names:
            add_patch(vars(reader), name, raising_reader)
    add_patch(vars(np.random), "default_rng", wrap_default_rng)
    for name in NUMPY_DRAWS:
        add_patch(vars(np.random), name, functools.partial(wrap_draw, name))
    return list(patches.values())


def _top_level_patches() -> list[Patch]:
    """The names that are replaced on import: functions that convert lists."""
    numpy = vars(np)
    patches: dict[str, Callable[[Any], Any]] = {
        name: functools.partial(wrap_constructor, node_function=CONSTRUCTORS[name], takes_nodes=takes)
        for name, takes in LIST_CONVERTERS.items()
    }
    patches["fromiter"] = wrap_fromiter
    originals = without_patches(numpy)
    return [
        (numpy, name, _mark_patch(patch(originals[name]), _with_copy_note(originals[name]))) for name, patch in patches.items()
    ]


def _with_copy_note(original: Function) -> Function:
    """Wrap a list converter of NumPy for compiled modules: it logs a leak if it copies the data of a node."""

    @functools.wraps(original)
    def convert(*args: object, **kwargs: object) -> Any:
        array = original(*args, **kwargs)
        if args and isinstance(args[0], Value) and not isinstance(array, Value):
            frame = frame_up(1)
            if not is_library(frame.f_code.co_filename):
                note_conversion(args[0], f"np.{original.__name__}()", frame)
        return array

    return convert


# ---------------------------------------------------------------------------------------------------- namespaces


class _PatchedNamespace:
    """One namespace, and the names in it whose values are in `replacements`.

    Attributes
    ----------
    replacements : dict
        By the id of an original: the original, and its patch.
    length : int
        The number of names in the namespace at the last scan.
    is_patched : bool or None
        Whether the names are bound to the patches; None if an interrupt left some of them patched.
    read_values : callable or None
        Reads the values of the names at once; None without names.
    values_by_state : dict of tuple
        The values of the names: with True the patches, with False the originals.
    """

    __slots__ = ("is_patched", "length", "namespace", "originals", "patches", "read_values", "replacements", "values_by_state")

    def __init__(self, namespace: Namespace, replacements: dict[int, tuple[Any, Any]]) -> None:
        self.namespace, self.replacements, self.length = namespace, replacements, -1
        self.is_patched: bool | None = False
        self.scan()

    def scan(self) -> None:
        """Find the names to patch; repeated if the number of names in the namespace has changed."""
        if self.length != len(self.namespace) and self.is_patched is False:
            self.length = len(self.namespace)
            items = list(without_patches(self.namespace).items())  # a copy, because another thread may import into this module
            self.originals = {name: value for name, value in items if _is_replaced(self.replacements, value)}
            self.patches = {name: self.replacements[id(value)][1] for name, value in self.originals.items()}
            times = 2 if len(self.originals) == 1 else 1  # itemgetter of a single name returns no tuple
            self.read_values = itemgetter(*[*self.originals] * times) if self.originals else None
            self.values_by_state = {False: tuple(self.originals.values()) * times, True: tuple(self.patches.values()) * times}

    def bind(self, is_patched: bool) -> None:
        """Bind the names to the patches, or to the originals again."""
        if self.read_values is None or self.is_patched is is_patched:
            return
        after, before = (self.patches, self.originals) if is_patched else (self.originals, self.patches)
        self.is_patched = None
        try:
            is_unchanged = self.read_values(self.namespace) == self.values_by_state[not is_patched]
        except KeyError:
            is_unchanged = False
        if is_unchanged:
            self.namespace.update(after)
        else:
            for name, value in before.items():  # a name that other code has rebound meanwhile is skipped
                if self.namespace.get(name) is value:
                    self.namespace[name] = after[name]
        self.is_patched = is_patched


def _is_replaced(replacements: dict[int, tuple[Any, Any]], value: object) -> bool:
    entry = replacements.get(id(value))
    return entry is not None and entry[0] is value


class NamePatches:
    """Names that are replaced together, in all namespaces that bind them.

    Parameters
    ----------
    table : callable
        Returns namespace, name and patch of each.
    """

    def __init__(self, table: Callable[[], list[Patch]]) -> None:
        self._table = table
        self._patched_namespaces: dict[int, _PatchedNamespace] = {}
        self._replacements: dict[int, tuple[Any, Any]] = {}  # by the id of an original: the original, and its patch
        self._module_count = 0
        self._is_applied = False

    def apply(self, namespaces: Iterable[Namespace]) -> None:
        """Replace the names in all known namespaces, and in these."""
        if not self._replacements:
            self._prepare()
        self._is_applied = True  # set first, because an interrupt may leave some names patched
        if len(sys.modules) != self._module_count:
            self._scan_modules()
        for namespace in namespaces:
            self._patched_namespace(namespace).scan()
        for patched in self._patched_namespaces.values():
            patched.bind(True)

    def restore(self) -> None:
        """Bind all names to their originals."""
        if self._is_applied:
            for patched in self._patched_namespaces.values():
                patched.bind(False)
            self._is_applied = False

    def reapply_to_numpy(self) -> None:
        """Patch NumPy's names again after `cg.patched_numpy` has restored them, if the patches are applied."""
        patched = self._patched_namespaces.get(id(vars(np)))
        if patched is not None and patched.is_patched:
            patched.is_patched = False
            patched.bind(True)

    def _prepare(self) -> None:
        for namespace, name, patch in self._table():
            original = without_patches(namespace)[name]
            self._replacements[id(original)] = original, patch
            self._patched_namespace(namespace)
            register_original(namespace, name, getattr(patch, "for_compiled", patch))
        shield_compiled_modules()
        for patched in self._patched_namespaces.values():
            patched.length = -1
            patched.scan()

    def _patched_namespace(self, namespace: Namespace) -> _PatchedNamespace:
        patched = self._patched_namespaces.get(id(namespace))
        if patched is None:
            patched = self._patched_namespaces[id(namespace)] = _PatchedNamespace(namespace, self._replacements)
        return patched

    def _scan_modules(self) -> None:
        """Find the names in modules that were imported since the last scan."""
        modules = list(sys.modules.items())
        for name, module in modules:
            top = name.partition(".")[0]
            namespace = getattr(module, "__dict__", None)
            if top in ("numpy", "compgraph", "autodiff") or name.startswith("scipy._lib") or namespace is None:
                continue
            if id(namespace) in self._patched_namespaces:
                continue
            if (top in sys.stdlib_module_names and top != "__main__") or is_compiled(module):
                continue
            if any(_is_replaced(self._replacements, value) for value in list(namespace.values())):
                self._patched_namespace(namespace)
        self._module_count = len(modules)


DIFFERENTIATION = NamePatches(_differentiation_patches)
DRAWS = NamePatches(handled_draw_patches)
TOP_LEVEL = NamePatches(_top_level_patches)
