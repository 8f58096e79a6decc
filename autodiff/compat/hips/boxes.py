"""Boxes, autograd's tracers: in this package, the tracers of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.graph import to_values
from compgraph.values import BUFFERS, INERT, Value, represented_class, unwrap_buffer

from ...arguments import flatten
from ...batching import base_of


def isbox(value: object) -> bool:
    """Whether a value is a tracer of a differentiated function.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    bool
        True for the values that a differentiated function computes from its argument.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> grad(lambda x: x * isbox(x) + 2.0 * isbox(x > 0))(3.0)
    np.float64(1.0)
    """
    if not isinstance(value, Value):
        return False
    return value.dtype.kind in "fc" and type(base_of(value)) not in INERT


def contains_box(value: object) -> bool:
    """Whether a value is a box, or a container with boxes."""
    return isbox(value) or (isinstance(value, (list, tuple, dict)) and any(map(isbox, flatten(value)[0])))


def getval(value: object) -> Any:
    """Return the numbers of a box, which have no derivative.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        A plain array or number; `value` itself if it is not a box.

    Examples
    --------
    >>> from autodiff.compat.hips.operators import grad
    >>> grad(lambda x: x * getval(x))(3.0)
    np.float64(3.0)
    """
    if not isinstance(value, Value):
        return unwrap_buffer(value)
    plain = to_values(value)
    return plain[()] if isinstance(plain, np.ndarray) and not plain.ndim else plain


def kind_of(value: object) -> type:
    """Return the class of a value, or for a box that of its numbers."""
    if isinstance(value, Value):
        return represented_class(value)
    return np.ndarray if type(value) in BUFFERS else type(value)


def is_instance(value: Any, classes: Any) -> bool:
    """Whether a value, or for a box its numbers, is an instance of one of `classes`."""
    if not isinstance(value, Value):
        return isinstance(value, classes)
    return issubclass(represented_class(value), classes)


def add_value_attribute() -> None:
    """Define the attribute ``_value`` of all boxes: their numbers, as `getval` returns them."""
    setattr(Value, "_value", property(getval))  # noqa: B010  (the class does not declare it)


class _ByContent(type):
    """A metaclass that recognizes instances by a predicate, not by their class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return bool(cls._recognizes(instance))  # type: ignore[attr-defined]


class Box(Value, metaclass=_ByContent):
    """The class of boxes, for ``isinstance``. Boxes are tracers of this package; a call of the class raises.

    It derives from `Value` so that the ``isinstance`` of traced functions does not take a tracer for a number.
    """

    __slots__ = ()

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Raise, because only operators create boxes."""
        raise TypeError(f"{cls.__name__}: this class cannot be instantiated. Operators such as grad create boxes")

    @classmethod
    def _recognizes(cls, instance: object) -> bool:
        return cls is Box and isbox(instance)

    @classmethod
    def register(cls, value_type: type) -> None:
        """Accept a class of values, as autograd does. Only arrays and containers can be differentiated."""


class ArrayBox(Box):
    """The class of arrays and numbers that are boxes, for ``isinstance``."""

    @classmethod
    def _recognizes(cls, instance: object) -> bool:
        return isbox(instance)


class SequenceBox(Box):
    """The class of lists and tuples that hold boxes, for ``isinstance``."""

    @classmethod
    def _recognizes(cls, instance: object) -> bool:
        return isinstance(instance, (list, tuple)) and contains_box(instance)


class DictBox(Box):
    """The class of dictionaries that hold boxes, for ``isinstance``."""

    @classmethod
    def _recognizes(cls, instance: object) -> bool:
        return isinstance(instance, dict) and contains_box(instance)
