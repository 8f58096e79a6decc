"""The operators, methods and attributes of nodes.

Importing this module installs them on `Node`. Each ends in `nodes.record`; for the commonest operators the same steps
are written out, so that an operation costs little.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from . import operations as ops
from .binding import FAMILIAR, RAW, as_operand, leaves_of, refusal_to_write, settled_order, to_plain, unsupported
from .modes import is_recording
from .nodes import ACTIVE, BOTH, LEFT, RIGHT, Node, VariableNode, describe, explained, operation, record
from .protocol import HANDLERS, array_function, array_ufunc

ndarray = np.ndarray


# ------------------------------------------------------------------------------------------- operators


def _binary(name: str, function: Any, compute: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The operator and the reflected operator of a binary function."""
    by_numpy = getattr(ndarray, f"__{name}__")
    reflected_by_numpy = getattr(ndarray, f"__r{name}__")
    quick = (function in ops.SMOOTH_UFUNCS and function.nout == 1) or function is ops.power

    def forward(self: Node, other: Any) -> Any:
        if quick and self.__class__ in ACTIVE and is_recording():
            kind = other.__class__
            try:
                if kind in RAW:
                    return operation(compute(self.plain, other), function, (self, other), LEFT)
                if kind in ACTIVE:
                    return operation(compute(self.plain, other.plain), function, (self, other), BOTH)
            except AttributeError as error:
                raise explained(error, self, other) from None
        if isinstance(other, Node) or other.__class__ in RAW:
            return record(function, (self, other))
        return by_numpy(self, other)

    def reflected(self: Node, other: Any) -> Any:
        if other.__class__ in RAW:
            if quick and self.__class__ in ACTIVE and is_recording():
                try:
                    return operation(compute(other, self.plain), function, (other, self), RIGHT)
                except AttributeError as error:
                    raise explained(error, self) from None
            return record(function, (other, self))
        return reflected_by_numpy(self, other)

    return forward, reflected


def _comparison(name: str, ufunc: np.ufunc) -> Any:
    by_numpy = getattr(ndarray, f"__{name}__")

    def compare(self: Node, other: Any) -> Any:
        if isinstance(other, Node) or other.__class__ in RAW:
            return record(ufunc, (self, other))
        if isinstance(other, (str, bytes)):
            return by_numpy(self.value, other)  # never equal, whatever the numbers: no part of the graph
        if isinstance(other, (list, tuple)) or hasattr(other, "__array_ufunc__"):
            return by_numpy(self, other)
        return record(ufunc, (self, other))

    return compare


def _in_place(name: str, forward: Any) -> Any:
    """``a += b``: a variable is updated, a scalar rebinds, anything else refuses."""
    symbol = {"truediv": "/", "floordiv": "//", "matmul": "@", "lshift": "<<", "rshift": ">>"}.get(name) or {
        "add": "+", "sub": "-", "mul": "*", "mod": "%", "pow": "**", "and": "&", "or": "|", "xor": "^",
    }[name]  # fmt: skip
    by_numpy = getattr(ndarray, f"__i{name}__")

    def in_place(self: Node, other: Any) -> Any:
        if self.is_scalar:
            return forward(self, other)
        if self.__class__ is VariableNode:
            if other.__class__ not in FAMILIAR:
                other = as_operand(other)
            return self.update(lambda array: by_numpy(array, to_plain(other)), (other,))
        raise refusal_to_write(self, f"a {symbol}= b", f"a = a {symbol} b")

    return in_place


def _install_operators() -> None:
    for name, (function, compute) in ops.BINARY_OPERATORS.items():
        forward, reflected = _binary(name, function, compute)
        setattr(Node, f"__{name}__", forward)
        setattr(Node, f"__r{name}__", reflected)
        if name != "divmod":
            setattr(Node, f"__i{name}__", _in_place(name, forward))
    for name, ufunc in ops.COMPARISONS.items():
        setattr(Node, f"__{name}__", _comparison(name, ufunc))
    for name, ufunc in ops.UNARY_OPERATORS.items():
        setattr(Node, f"__{name}__", _unary(ufunc))


def _unary(ufunc: np.ufunc) -> Any:
    """The operator of a unary function."""
    quick = ufunc in ops.SMOOTH_UFUNCS

    def operate(self: Node) -> Any:
        if quick and self.__class__ in ACTIVE and is_recording():
            try:
                return operation(ufunc(self.plain), ufunc, (self,), LEFT)
            except AttributeError as error:
                raise explained(error, self) from None
        return record(ufunc, (self,))

    return operate


# ------------------------------------------------------------------------------------- array methods


def _method(function: Any) -> Any:
    @functools.wraps(function)
    def method(self: Node, *args: Any, **kwargs: Any) -> Any:
        return handler(function, (self, *args), kwargs) if handler else function(self, *args, **kwargs)

    handler = HANDLERS.get(function)
    return method


_MANY = frozenset({tuple, list})


def _getitem(self: Node, index: Any) -> Any:
    if index.__class__ in _MANY:
        index = _own_index(index)
        if index.__class__ is tuple and any(isinstance(i, Node) for i in index):
            return record(ops.getitem, (self, *index))
    if self.__class__ in ACTIVE and is_recording() and not isinstance(index, Node):
        try:
            return operation(self.plain[index], ops.getitem, (self, index), LEFT)
        except AttributeError as error:
            raise explained(error, self) from None
    return record(ops.getitem, (self, index))


def _own_index(index: Any) -> Any:
    """An index whose lists are arrays of our own: the caller may go on to change his."""
    if index.__class__ is tuple:
        return tuple([_own_index(part) if part.__class__ is list else part for part in index])
    return np.array(index) if index else index


def _setitem(self: Node, index: Any, value: Any) -> None:
    if self.__class__ is VariableNode:
        self.update(lambda array: array.__setitem__(to_plain(index), to_plain(value)), leaves_of(value))
        return
    if self.is_scalar:
        raise TypeError(f"the {describe(self)} is a scalar, which does not support item assignment; rebind its name")
    raise refusal_to_write(self, "a[index] = b", "np.where(mask, b, a) or np.concatenate")


def _reshape(self: Node, *shape: Any, **options: Any) -> Any:
    return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)


def _transpose(self: Node, *axes: Any) -> Any:
    return np.transpose(self, *axes) if len(axes) <= 1 else np.transpose(self, axes)


def _astype(self: Node, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind not in "biufc":
        raise TypeError(f"a node holds numbers; use node.value.astype({dtype}) where its graph is not needed any more")
    return record(ops.astype, (self,), {"dtype": dtype, "order": order, "casting": casting, "copy": copy})


def _view(self: Node, dtype: Any = np._NoValue, type: Any = None) -> Any:
    if type is not None or (inspect.isclass(dtype) and issubclass(dtype, ndarray)):
        raise TypeError("a view as another class of arrays is not supported on nodes: it would lose the graph; use node.value")
    if dtype is np._NoValue or np.dtype(dtype) == self.dtype:
        return self[()] if self.is_scalar else self[...]
    dtype = np.dtype(dtype)
    if {dtype.kind, self.dtype.kind} != {"f", "c"} or _native_parts(dtype) is not _native_parts(self.dtype):
        raise TypeError(
            f"view({dtype}) of a node of {self.dtype} is not supported: only complex numbers and pairs of real ones are seen "
            "as each other; x.astype converts, node.value.view is plain"
        )
    self.value.view(dtype)  # NumPy says which layouts allow it
    return record(ops.view, (self,), {"dtype": dtype})


def _native_parts(dtype: np.dtype[Any]) -> Any:
    """The type of the real part of numbers; the dtype itself if the order of its bytes is not the machine's."""
    return np.finfo(dtype).dtype.type if dtype.isnative else dtype


def _conj(self: Node) -> Any:
    return np.conjugate(self) if self.dtype.kind == "c" else self


def _clip_method(self: Node, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    return np.clip(self, min, max, out, **options)


def _contains(self: Node, element: Any) -> bool:
    return bool(np.any(self.plain == to_plain(element)))


def _round(self: Node, digits: int | None = None) -> Any:
    if self.ndim:
        raise TypeError("round takes a single number; use np.round for an array")
    return round(self.item()) if digits is None else np.round(self, digits)


def _copy(self: Node, order: Any = "C") -> Any:
    return record(ops.copy, (self,), {"order": order})


def _flatten(self: Node, order: Any = "C") -> Any:
    node, order = settled_order(self, order)
    return record(ops.flatten, (node,), {"order": order})


def _writing_method(name: str) -> Any:
    def method(self: Node, *args: Any, **kwargs: Any) -> None:
        if self.__class__ is not VariableNode:
            raise refusal_to_write(self, f"a.{name}()", f"a = np.{name}(a)" if name in {"sort", "partition"} else "a new array")
        write = getattr(ndarray, name)
        values = leaves_of((args, tuple(kwargs.values())))
        self.update(lambda array: write(array, *to_plain(args), **to_plain(kwargs)), values)

    return method


def _refused_method(name: str, instead: str) -> Any:
    def method(self: Node, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"the array method {name} is not supported on nodes, since its result would lose the graph; {instead}")

    return method


def _attribute(read: Any, name: str) -> property:
    """A property that `read` computes and that cannot be set."""

    def refuse(self: Node, value: Any) -> None:
        raise TypeError(f"setting .{name} of a node in place would bypass its graph; make a new node instead")

    return property(read, refuse)


def _flat(self: Node) -> Any:
    raise TypeError(unsupported("the array attribute flat", "x.ravel()"))


def _install_methods() -> None:
    methods = {
        **{name: _writing_method(name) for name in ops.WRITING_METHODS},
        **{name: _refused_method(name, instead) for name, instead in ops.REFUSED_METHODS.items()},
        **{name: _method(function) for name, function in ops.METHODS.items()},
        "__getitem__": _getitem,
        "__setitem__": _setitem,
        "__contains__": _contains,
        "__round__": _round,
        "clip": _clip_method,
        "conj": _conj,
        "conjugate": _conj,
        "reshape": _reshape,
        "transpose": _transpose,
        "astype": _astype,
        "copy": _copy,
        "view": _view,
        "flatten": _flatten,
        "T": _attribute(np.transpose, "T"),
        "mT": _attribute(np.matrix_transpose, "mT"),
        "real": _attribute(lambda self: np.real(self), "real"),
        "imag": _attribute(lambda self: np.imag(self), "imag"),
        "flat": _attribute(_flat, "flat"),
        **{name: _attribute(getattr(ndarray, name).__get__, name) for name in ("shape", "dtype", "strides")},
        # Above all others: where NumPy does not ask which of several array types the result has, it then becomes a node
        # without history, which refuses to be used, and not a plain array. Peers to be asked say __array_ufunc__ = None.
        "__array_priority__": 1e6,
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
    }
    for name, method in methods.items():
        setattr(Node, name, method)


_install_operators()
_install_methods()
