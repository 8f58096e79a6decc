"""NumPy's ufuncs on nodes (``__array_ufunc__``): every form of call is recorded, or raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..bind import bind, record_active
from ..context import is_fast_path
from ..frames import source_lines
from ..graph import NUMBERS, OPERAND_TYPES, as_operand, overrides_protocol, recover_history, to_values
from ..inplace import as_traced, ufunc_at, write_out, write_where
from ..tracing import LeakError, format_locations
from ..values import (
    ACTIVE,
    ARRAYS,
    BOTH,
    LEFT,
    NO_OPTIONS,
    RIGHT,
    Value,
    has_history,
    mark_python_number,
    save_operand,
    unwrap_buffer,
    variable_hooks,
)
from .binding import parameters_of, record_keywords, unsupported_message
from .class_views import call_with_views
from .functions import HANDLERS, array_function

ndarray = np.ndarray
_RECORDABLE_TYPES = OPERAND_TYPES | ARRAYS


def array_ufunc(self: Value, ufunc: np.ufunc, method: str, *inputs: Any, **options: object) -> Any:
    """``Node.__array_ufunc__``: record the call of a ufunc or ufunc method; NotImplemented for arrays of other libraries."""
    if options or method != "__call__" or ufunc not in ops.SMOOTH_UFUNCS:
        return _general_ufunc(ufunc, method, inputs, options)
    if ufunc.nout == 1 and is_fast_path():
        try:
            if len(inputs) == 1:
                if type(self) in ACTIVE:
                    return record_active(ufunc(self.raw_value), ufunc, inputs, LEFT)
            else:
                a, b = inputs
                if type(a) in ACTIVE:
                    if type(b) in ARRAYS:
                        return record_active(ufunc(a.raw_value, unwrap_buffer(b)), ufunc, (a, save_operand(b)), LEFT)
                    if type(b) in NUMBERS:
                        return record_active(ufunc(a.raw_value, b), ufunc, inputs, LEFT)
                    if type(b) in ACTIVE:
                        return record_active(ufunc(a.raw_value, b.raw_value), ufunc, inputs, BOTH)
                elif type(b) in ACTIVE:
                    if type(a) in ARRAYS:
                        return record_active(ufunc(unwrap_buffer(a), b.raw_value), ufunc, (save_operand(a), b), RIGHT)
                    if type(a) in NUMBERS:
                        return record_active(ufunc(a, b.raw_value), ufunc, inputs, RIGHT)
        except AttributeError as error:
            recover_history(error, *inputs)
        except (ArithmeticError, ValueError):
            pass  # `bind` raises it again, with a note
    if not _RECORDABLE_TYPES.issuperset(map(type, inputs)):
        if any(overrides_protocol(x, "__array_ufunc__") for x in inputs):
            return call_with_views(ufunc, "__array_ufunc__", inputs, {})
        inputs = tuple(map(as_operand, inputs))
    return bind(ufunc, inputs)


def _general_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    out: Any = options.get("out")
    if method != "__call__":  # NumPy passes the arguments of np.add.reduce(array=x) by position and by keyword
        options = {name: value for name, value in options.items() if name not in ("array", "indices")}
    out = out if out is None or isinstance(out, tuple) else (out,)  # numba calls the protocol itself
    if any(overrides_protocol(x, "__array_ufunc__") for x in (*inputs, *(out or ()))):
        return call_with_views(getattr(ufunc, method), "__array_ufunc__", inputs, options)
    options.pop("out", None)
    if ufunc not in ops.OPNAMES:  # its module (scipy.special) may have been imported after the node was created
        for hook in variable_hooks:
            hook()
    for target in out or (inputs[:1] if method == "at" else ()):
        as_traced(target, inputs)
    if out and (out[0] is Ellipsis or _is_scalar_out(out[0], source_lines.frame_up(2))):
        out = None
    if ufunc is ops.CLIP and method == "__call__":
        return np.clip(*inputs, out=out and out[0], **options)
    if _calls_python(ufunc):
        return call_on_elements(getattr(ufunc, method), inputs, options if out is None else {**options, "out": out})
    if method != "__call__":
        return _ufunc_method(ufunc, method, inputs, options, out)
    if out is not None:
        where = options.pop("where", True)
        if where is not True:
            return write_where(ufunc, inputs, options, out, where)
        return write_out(ufunc, inputs, options, out, lambda: ufunc(*inputs, **options))
    if ufunc not in ops.OPNAMES:
        raise _unrecorded_error(ufunc, "", "cg.primitive with a rule of your own")
    if options.get("where", True) is not True:
        raise TypeError(f"np.{ufunc.__name__}: where= leaves values undefined without out=; use np.where(mask, result, other)")
    nodes = [k for k, v in options.items() if isinstance(v, Value)]
    if nodes:
        raise TypeError(f"np.{ufunc.__name__}: {nodes[0]}= cannot be a node; pass node.value")
    function: Any = ufunc
    is_piecewise = ufunc in ops.PIECEWISE
    if is_piecewise and ufunc in ops.COMPLEX_FORMS and any(np.iscomplexobj(x) for x in inputs):
        function, is_piecewise = ops.COMPLEX_FORMS[ufunc], False
    ufunc_options = {k: v for k, v in options.items() if k != "where"}
    if "axes" in ufunc_options:
        if not isinstance(ufunc_options["axes"], list):
            raise TypeError("axes should be a list.")
        ufunc_options["axes"] = tuple(ufunc_options["axes"])
    operands = tuple(map(as_operand, inputs))
    if is_piecewise:
        return bind(function, operands, ufunc_options or NO_OPTIONS)
    adapter = ops.on_axes if ufunc_options.keys() & {"axes", "axis", "keepdims"} else ops.configured
    return bind(adapter(function, tuple(ufunc_options.items())) if ufunc_options else function, operands)


def _calls_python(ufunc: np.ufunc) -> bool:
    """Whether `np.frompyfunc` created a ufunc, which then calls a Python function on elements."""
    return ufunc not in ops.OPNAMES and bool(ufunc.types) and set("".join(ufunc.types)) <= set("O->")


def call_on_elements(function: Callable[..., Any], operands: tuple[Any, ...], options: dict[str, Any] | None = None) -> Any:
    """Call a function of object arrays, with nodes converted to object arrays of their elements."""
    return function(*map(_as_object_array, operands), **(options or {}))


def _as_object_array(operand: object) -> Any:
    """An object array of the elements of a node, which represent Python numbers; other values are unchanged."""
    if not isinstance(operand, Value):
        return operand
    objects = np.empty(operand.size, object)
    for k, index in enumerate(np.ndindex(operand.shape)):
        objects[k] = mark_python_number(operand[index])
    return objects.reshape(operand.shape)


def _unrecorded_error(ufunc: np.ufunc, method: str, instead: str) -> TypeError:
    """The error for a ufunc that is not recorded; a LeakError for one of another library, which accepts plain arrays only."""
    if getattr(np, ufunc.__name__, None) is ufunc:
        return TypeError(unsupported_message(f"np.{ufunc.__name__}{method}", instead))
    at = format_locations(list(source_lines.walk_frames(source_lines.frame_up(1))))
    return LeakError(unsupported_message(f"{ufunc.__name__}{method}(){at}", instead))


def _is_scalar_out(target: object, frame: Any) -> bool:
    """Whether NumPy's Python code, such as ``mean``, passes a scalar node as ``out=``; it then uses the returned object."""
    filename = frame.f_code.co_filename
    # A function of the user, defined in the folder of a package.
    is_user_code = source_lines.is_in_packages(filename) and not source_lines.is_package_code(filename)
    is_number = isinstance(target, Value) and has_history(target) and target.is_scalar
    return is_number and source_lines.is_internal(filename) and not is_user_code


def _ufunc_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], out: Any) -> Any:
    """Record a ufunc method as the equivalent function (``np.add.reduce`` as ``np.sum``), or as a `UfuncMethod`."""
    if method == "at":
        return ufunc_at(ufunc, *inputs)
    function: Any = ops.FOLDS.get((ufunc, method))
    if function in HANDLERS and options.keys() <= {*parameters_of(function)}:
        return array_function(inputs[0], function, (), inputs, {"axis": 0, **options, "out": out and out[0]})
    if out is not None:
        compute = lambda: _ufunc_method(ufunc, method, inputs, options, None)  # noqa: E731
        return write_out(ops.ufunc_method(ufunc, method), inputs, options, out, compute)
    if ufunc not in ops.SMOOTH_UFUNCS | ops.PIECEWISE_UFUNCS:
        raise _unrecorded_error(ufunc, f".{method}", "the operator or function on whole arrays")
    if method == "outer":
        a, b = map(as_operand, inputs)
        return ufunc(np.reshape(a, (*np.shape(a), *(1,) * np.ndim(b))), b, **options)
    x, *indices = map(as_operand, inputs)
    fold = ops.ufunc_method(ufunc, method)
    return record_keywords(fold, ops.operand_names(fold), (x,), {**_named_indices(indices), **options})


def _named_indices(indices: list[Any]) -> dict[str, Any]:
    """Return the indices of ``reduceat`` as an option, a plain array; no option for other methods."""
    return {"indices": np.asarray(to_values(indices[0]))} if indices else {}
