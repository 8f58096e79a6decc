"""The operators of nodes; importing this module installs them on `Value`.

Each calls `bind`. For the most frequent operands, it computes the result itself and calls the faster `record_active`.
"""

from __future__ import annotations

import array
import functools
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ops
from ..bind import bind, record_active
from ..context import is_fast_path
from ..graph import NUMBERS, OPERAND_TYPES, PLAIN_TYPES, as_operand, recover_history, to_values
from ..guards import guarded_errors, is_within_operator
from ..inplace import store
from ..storage import root_of
from ..values import (
    ACTIVE,
    ARRAYS,
    BOTH,
    LEFT,
    RIGHT,
    Value,
    VariableNode,
    require_history,
    save_operand,
    unwrap_buffer,
    with_tracers,
)
from .ufuncs import call_on_elements

ndarray = np.ndarray
_VARIABLES = with_tracers({VariableNode})


def _binary(name: str, function: Any, compute: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The operator and the reflected operator of a binary function."""
    numpy_operator, reflected_numpy_operator = (
        _ufunc_operator(function, is_reflected=False),
        _ufunc_operator(function, is_reflected=True),
    )
    is_power = not isinstance(function, np.ufunc)  # `ops.power`
    has_fast_path = is_power or (function in ops.SMOOTH_UFUNCS and function.nout == 1)
    may_repeat, may_raise = name == "mul", name in guarded_errors.RAISING_OPERATORS

    def forward(self: Value, other: Any) -> Any:
        if may_raise and getattr(self, "is_scalar", False):
            guarded_errors.check_operator(name, self, other)
        if has_fast_path and type(self) in ACTIVE and is_fast_path():
            cls = type(other)
            try:
                if cls in ARRAYS:
                    return record_active(
                        compute(self.raw_value, unwrap_buffer(other)), function, (self, save_operand(other)), LEFT
                    )
                if cls in NUMBERS:
                    return record_active(compute(self.raw_value, other), function, (self, other), LEFT)
                if cls in ACTIVE:
                    return record_active(compute(self.raw_value, other.raw_value), function, (self, other), BOTH)
            except AttributeError as error:
                recover_history(error, self, other)
            except (ArithmeticError, ValueError):
                pass  # `bind` raises it again, with a note
        is_scalar = is_power and isinstance(other, np.number) and other.dtype.kind in "iufc"
        if isinstance(other, Value) or type(other) in PLAIN_TYPES or type(other) in ARRAYS or is_scalar:
            return bind(function, (self, other))
        if _takes_precedence(other) or (may_repeat and _repeats_sequence(self, other)):
            return NotImplemented
        if name != "divmod" and _has_operator(other, f"__r{name}__"):
            if not self.ndim or (is_within_operator(self) and _has_priority(other)):
                return NotImplemented
            if is_within_operator(self):
                return call_on_elements(compute, (self, other))
        return numpy_operator(self, other)

    def reflected(self: Value, other: Any) -> Any:
        if may_raise and getattr(self, "is_scalar", False):
            guarded_errors.check_operator(name, other, self)
        if type(other) in PLAIN_TYPES or type(other) in ARRAYS:
            if has_fast_path and type(self) in ACTIVE and is_fast_path():
                try:
                    value = compute(unwrap_buffer(other), self.raw_value)
                    return record_active(value, function, (save_operand(other) if type(other) in ARRAYS else other, self), RIGHT)
                except AttributeError as error:
                    recover_history(error, self)
                except (ArithmeticError, ValueError):
                    pass  # `bind` raises it again, with a note
            return bind(function, (other, self))
        if may_repeat and _repeats_sequence(self, other):
            return NotImplemented
        if name != "divmod" and _has_operator(other, f"__{name}__") and self.ndim and is_within_operator(self):
            return call_on_elements(compute, (other, self))
        return reflected_numpy_operator(self, other)

    return forward, reflected


def _ufunc_operator(function: Callable[..., Any], is_reflected: bool) -> Callable[[Any, Any], Any]:
    """A binary operator as of arrays: it calls the ufunc, or defers to an operand whose ``__array_ufunc__`` is None."""
    ufunc = function if isinstance(function, np.ufunc) else np.power

    def operate(self: Any, other: Any) -> Any:
        if getattr(type(other), "__array_ufunc__", ufunc) is None:
            return NotImplemented
        return ufunc(other, self) if is_reflected else ufunc(self, other)

    return operate


def _takes_precedence(other: object) -> bool:
    """Whether an operand's own operator takes precedence, as that of SciPy's sparse matrices, which handles nodes."""
    return type(other).__module__.startswith("scipy.sparse")


def _has_operator(other: object, method: str) -> bool:
    """Whether an object has an operator of its own, and is not an array, number or sequence for NumPy."""
    cls: Any = type(other)
    return _class_has_operator(cls, method)


@functools.lru_cache(256)
def _class_has_operator(cls: Any, method: str) -> bool:
    is_number = issubclass(cls, _NUMBERS) or cls.__module__ == "fractions"
    return hasattr(cls, method) and not (is_number or any(hasattr(cls, name) for name in _ARRAY_LIKE))


_NUMBERS = (ndarray, np.generic, int, float, complex)
_ARRAY_LIKE = ("__array__", "__array_ufunc__", "__array_interface__", "__array_struct__", "__len__", "__buffer__")


def _has_priority(other: object) -> bool:
    """Whether NumPy's arrays defer to an object because of its ``__array_priority__``."""
    return bool(getattr(type(other), "__array_priority__", 0) > 0)


def _repeats_sequence(node: Value, other: object) -> bool:
    """Whether ``*`` repeats a sequence, as in ``[0] * n``: NumPy integers, unlike arrays, defer to the sequence."""
    return isinstance(other, _SEQUENCES) and node.is_scalar and node.dtype.kind in "iu"


_SEQUENCES = (list, tuple, str, bytes, bytearray, array.array, deque)


def _comparison(name: str, ufunc: np.ufunc) -> Any:
    ufunc_operator, array_operator = _ufunc_operator(ufunc, is_reflected=False), getattr(ndarray, f"__{name}__")

    def compare(self: Value, other: object) -> Any:
        if isinstance(other, Value) or type(other) in PLAIN_TYPES:
            return bind(ufunc, (self, other))
        if isinstance(other, (str, bytes)):
            require_history(self)
            return array_operator(np.asarray(self.raw_value), other)  # a number never equals text, so nothing is recorded
        if isinstance(other, (list, tuple)) or hasattr(other, "__array_ufunc__"):
            return ufunc_operator(self, other)
        return bind(ufunc, (self, other))

    return compare


def _in_place(name: str, forward: Callable[..., Any]) -> Any:
    """``a += b``: record the result and store it into ``a``. For a scalar, return it; Python rebinds the name ``a``.

    An update of a variable writes plain numbers in place and is not recorded.
    """
    array_operator = getattr(ndarray, f"__i{name}__")

    def in_place(self: Value, other: object) -> Any:
        if self.is_scalar:
            return forward(self, other)
        require_history(self)
        root = self if type(self) in _VARIABLES or self.level else root_of(self)
        if type(root) in _VARIABLES:
            if type(other) not in OPERAND_TYPES:
                other = as_operand(other)
            variable: Any = root
            variable.update(lambda array: array_operator(self.raw_value, to_values(other)), (other,))
            return self
        result = forward(self, other)
        if result is NotImplemented:
            return result
        if np.shape(result) != self.shape:  # also if only axes of length one are added in front
            raise ValueError(
                f"__i{name}__: the result has shape {np.shape(result)}, but its target {self.shape}. Compute a "
                "new array, as by a = a + b"
            )
        store(self, ..., result, "same_kind")
        return self

    return in_place


def _install_operators() -> None:
    for name, (function, compute) in ops.BINARY_OPERATORS.items():
        forward, reflected = _binary(name, function, compute)
        setattr(Value, f"__{name}__", forward)
        setattr(Value, f"__r{name}__", reflected)
        if name != "divmod":
            setattr(Value, f"__i{name}__", _in_place(name, forward))
    for name, ufunc in ops.COMPARISONS.items():
        setattr(Value, f"__{name}__", _comparison(name, ufunc))
    for name, ufunc in ops.UNARY_OPERATORS.items():
        setattr(Value, f"__{name}__", _unary(ufunc))


def _unary(ufunc: np.ufunc) -> Any:
    """The operator of a unary function."""
    has_fast_path = ufunc in ops.SMOOTH_UFUNCS

    def operate(self: Value) -> Any:
        if has_fast_path and type(self) in ACTIVE and is_fast_path():
            try:
                return record_active(ufunc(self.raw_value), ufunc, (self,), LEFT)
            except AttributeError as error:
                recover_history(error, self)
            except (ArithmeticError, ValueError):
                pass  # `bind` raises it again, with a note
        return bind(ufunc, (self,))

    return operate


_install_operators()
