"""Replacements of the modules of autograd, by their names."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ...custom import checkpoint
from . import arrays, boxes, gamma, misc, operators, primitives, vspaces

_OPERATORS = {name: getattr(operators, name) for name in operators.__all__}
_OPERATORS |= {
    "checkpoint": checkpoint,
    "hessian_vector_product": operators.hessian_tensor_product,
    "vector_jacobian_product": operators.tensor_jacobian_product,
}
_EXTEND = {
    name: getattr(primitives, name)
    for name in (
        *("JVPNode", "VJPNode", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum"),
        *("defvjp_argnums", "notrace_primitive", "primitive", "register_notrace"),
    )
}
_EXTEND |= {"Box": boxes.Box, "SparseObject": vspaces.SparseObject, "VSpace": vspaces.VSpace, "vspace": vspaces.vspace}
_SPACES = {name: value for name, value in vars(vspaces).items() if name.endswith("VSpace")}
_BUILTINS = {"dict": dict, "isinstance": boxes.is_instance, "list": list, "tuple": tuple, "type": boxes.kind_of}
_TRACER = {"Box": boxes.Box, "getval": boxes.getval, "isbox": boxes.isbox}
_ARRAYS = {
    name: getattr(arrays, name)
    for name in (
        *("array_from_args", "balanced_eq", "concatenate_args", "make_diagonal", "match_complex", "metadata", "replace_zero"),
        *("unbroadcast", "unbroadcast_f"),
    )
}


def _subvals(x: Any, ivs: Any) -> tuple[Any, ...]:
    """Return the tuple of `x` with the values of `ivs`, pairs of a position and a value."""
    values = list(x)
    for position, value in ivs:
        values[position] = value
    return tuple(values)


def _subval(x: object, i: int, v: object) -> tuple[Any, ...]:
    """Return the tuple of `x` with the value `v` at position `i`."""
    return _subvals(x, [(i, v)])


def _wraps(fun: object, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: object) -> Any:
    """Return a decorator that sets the name and docstring, by format strings with the fields of `fun`."""
    format_fields = {"fun": getattr(fun, "__name__", "[unknown name]"), "doc": getattr(fun, "__doc__", ""), **kwargs}

    def named(f: Callable[..., Any]) -> Any:
        f.__name__, f.__doc__ = namestr.format(**format_fields), docstr.format(**format_fields)
        return f

    return named


# The names of each module. A submodule is an attribute of its package too.
NAMES: dict[str, dict[str, Any]] = {
    "autograd": {
        **{name: value for name, value in _OPERATORS.items() if name not in ("make_jvp_reversemode", "unary_to_nary")},
        "primitive": primitives.primitive,
        **_BUILTINS,
    },
    "autograd.builtins": {**_BUILTINS, "DictBox": boxes.DictBox, "SequenceBox": boxes.SequenceBox, **_SPACES},
    "autograd.core": {
        **_EXTEND,
        **_TRACER,
        "primitive_jvps": primitives.primitive_jvps,
        "primitive_vjps": primitives.primitive_vjps,
        "make_jvp": operators.make_jvp_at,
        "make_vjp": operators.make_vjp_at,
    },
    "autograd.differential_operators": _OPERATORS,
    "autograd.extend": _EXTEND,
    "autograd.misc": {"const_graph": misc.const_graph, "flatten": misc.flatten},
    "autograd.misc.fixed_points": {"fixed_point": misc.fixed_point},
    "autograd.misc.flatten": {"flatten": misc.flatten, "flatten_func": misc.flatten_func},
    "autograd.misc.optimizers": {
        "adam": misc.adam,
        "rmsprop": misc.rmsprop,
        "sgd": misc.sgd,
        "unflatten_optimizer": misc.unflatten_optimizer,
    },
    "autograd.misc.tracers": {"const_graph": misc.const_graph},
    "autograd.numpy.numpy_boxes": {"ArrayBox": boxes.ArrayBox, "Box": boxes.Box, "SequenceBox": boxes.SequenceBox},
    "autograd.numpy.numpy_vjps": _ARRAYS,
    "autograd.numpy.numpy_vspaces": _SPACES,
    "autograd.numpy.numpy_wrapper": {"_np": np, **_ARRAYS},
    "autograd.scipy": {},
    "autograd.scipy.signal": {"convolve": arrays.convolve},
    "autograd.test_util": {
        name: getattr(misc, name)
        for name in (
            *("check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "make_numerical_jvp"),
            *("scalar_close", "EPS", "RTOL", "TOL"),
        )
    },
    "autograd.tracer": {
        **_TRACER,
        **{name: _EXTEND[name] for name in ("notrace_primitive", "primitive", "register_notrace")},
    },
    "autograd.util": {"subval": _subval, "subvals": _subvals},
    "autograd.wrap_util": {"unary_to_nary": operators.unary_to_nary, "wraps": _wraps},
    "autograd_gamma": {name: getattr(gamma, name) for name in gamma.__all__},
}
# Modules that get all other names from a module of NumPy or SciPy.
_DELEGATES = {"autograd.numpy.numpy_wrapper": "numpy", "autograd.scipy": "scipy", "autograd.scipy.signal": "scipy.signal"}


class CompatModule(ModuleType):
    """A replacement of a module of autograd."""


@functools.cache
def modules() -> dict[str, ModuleType]:
    """Return the modules by name; ``autograd.numpy`` is NumPy itself."""
    modules_by_name: dict[str, ModuleType] = {}
    for name, names in NAMES.items():
        module = CompatModule(name, "The names of this module of HIPS/autograd, implemented by the package autodiff.")
        is_package = name in ("autograd", "autograd.misc", "autograd.scipy")
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=__file__, is_package=is_package)
        module.__file__ = __file__
        if is_package:
            module.__path__ = []
        vars(module).update(names)
        modules_by_name[name] = module
        if name in _DELEGATES:
            vars(module)["__getattr__"] = functools.partial(_attribute_from, _DELEGATES[name])
    modules_by_name["autograd.numpy"] = np
    for name, submodule in modules_by_name.items():
        parent, _, child = name.rpartition(".")
        if parent and modules_by_name[parent] is not np and child != "flatten":  # autograd.misc.flatten is the function
            setattr(modules_by_name[parent], child, submodule)
    return modules_by_name


def _attribute_from(source: str, name: str) -> Any:
    """Return an attribute or a submodule of a module of NumPy or SciPy."""
    attribute = getattr(importlib.import_module(source), name, None)
    if attribute is None:
        raise AttributeError(f"{source} has no attribute {name!r}")
    return attribute


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The importer of ``autograd.numpy.linalg``, ``autograd.scipy.stats`` and others, which are modules of NumPy and SciPy."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> Any:
        """Return a specification for a name of NumPy or SciPy below autograd, and None for others."""
        if self._source_of(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new module by its equivalent."""
        source = self._source_of(module.__name__)
        package, _, name = (source or "").rpartition(".")
        try:
            replacement = importlib.import_module(source or "")
        except ModuleNotFoundError:  # an object, such as autograd.scipy.stats.norm
            replacement = getattr(importlib.import_module(package), name)
        sys.modules[module.__name__] = replacement

    def _source_of(self, fullname: str) -> str | None:
        """Return the name in NumPy or SciPy of a name below autograd."""
        source = fullname.removeprefix("autograd.")
        if source == fullname or source.partition(".")[0] not in ("numpy", "scipy"):
            return None
        package, _, name = source.rpartition(".")
        if not package:
            return None
        parent = importlib.import_module(package)
        return source if hasattr(parent, name) or importlib.util.find_spec(source) else None


finder = Finder()
