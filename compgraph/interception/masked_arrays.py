"""Masked arrays in operations with traced nodes.

`numpy.ma` reads the data of its operands. With a traced node, a masked array without masked elements is replaced by its data, and
the result is a node. A masked array with masked elements raises. `numpy.ma` masks the elements of domain errors; a node holds nan
there. Operators therefore compare the value of the function with its value for plain arrays. Outside of operators such operations
raise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from .. import arrays
from ..graph import without_mask
from ..tracing import is_retraceable
from ..values import Value
from .code_patches import patch_code

Function = Callable[..., Any]
Args = tuple[Any, ...]
Options = dict[str, Any]


def adapt_masked_arrays() -> None:
    """Let the constructors and ufuncs of `numpy.ma` return nodes for traced nodes."""
    core: Any = np.ma.core
    for cls in (core._MaskedUnaryOperation, core._MaskedBinaryOperation, core._DomainedBinaryOperation):
        patch_code(cls.__call__, _call_ufunc)
    patch_code(np.ma.MaskedArray.__new__, _construct)  # type: ignore[arg-type]
    patch_code(np.ma.getdata, lambda function, original, args, kwargs: _return_data(original, args, kwargs))  # type: ignore[arg-type]
    for name in ("atleast_1d", "atleast_2d", "atleast_3d", "vstack", "hstack", "dstack", "column_stack", "stack", "dot"):
        function = getattr(np.ma, name)
        if isinstance(function, FunctionType):
            patch_code(function, _call_counterpart(getattr(np, name)))


def _call_ufunc(function: object, original: Function, args: Args, kwargs: Options) -> Any:
    """Call the ufunc of an operation of `numpy.ma`."""
    if not is_retraceable():
        return original(*args, **kwargs)
    return args[0].f(*map(without_mask, args[1:]), **kwargs)


def _call_counterpart(counterpart: Function) -> Any:
    """Return a handler that calls the function of NumPy."""

    def handle(function: object, original: Function, args: Args, kwargs: Options) -> Any:
        if not is_retraceable():
            return original(*args, **kwargs)
        return counterpart(*[_without_masks(value) for value in args], **kwargs)

    return handle


def _without_masks(value: object) -> Any:
    return type(value)(map(_without_masks, value)) if type(value) is list or type(value) is tuple else without_mask(value)


def _return_data(original: Function, args: Args, kwargs: Options) -> Any:
    """Return the node itself for ``np.ma.getdata`` of a traced node."""
    return args[0] if is_retraceable() and args and isinstance(args[0], Value) else original(*args, **kwargs)


def _construct(function: object, original: Function, args: Args, kwargs: Options) -> Any:
    """Return the node for ``np.ma.array`` of a traced node; raise if elements are masked."""
    arguments = inspect.signature(original).bind(*args, **kwargs).arguments
    data, mask = arguments.get("data"), arguments.get("mask")
    if not is_retraceable() or arguments["cls"] is not np.ma.MaskedArray:
        return original(*args, **kwargs)
    without_mask(np.ma.MaskedArray(np.zeros(np.shape(mask)), mask=np.asarray(mask, bool)) if mask is not None else data)
    options = {name: arguments[name] for name in ("dtype", "copy", "ndmin") if name in arguments}
    return arrays.array(data, **{"copy": False, **options})
