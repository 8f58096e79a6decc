"""Vector spaces: the shape, the dtype and the algebra of the values that are differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from compgraph.array_types import Array
from compgraph.values import Value

from .boxes import getval, kind_of


class VSpace:
    """The vector space of a value.

    A subclass is the space of the values of a class, for which `register` registers it. It defines ``zeros``, ``ones``,
    ``standard_basis``, ``randn`` and ``_inner_prod``; if they differ from those of arrays, also ``_add``, ``_mut_add``,
    ``_scalar_mul`` and ``_covector``.
    """

    mappings: ClassVar[dict[type, Callable[[Any], Any]]] = {}
    iscomplex = False

    def __init__(self, value: str) -> None:
        pass

    def zeros(self) -> Any:
        """The zero of the space."""
        raise NotImplementedError(f"{type(self).__name__} does not define zeros")

    def ones(self) -> Any:
        """The value whose coordinates are all one."""
        raise NotImplementedError(f"{type(self).__name__} does not define ones")

    def standard_basis(self) -> Any:
        """Yield the vectors of the standard basis."""
        raise NotImplementedError(f"{type(self).__name__} does not define standard_basis")

    def randn(self) -> Any:
        """A value whose coordinates are standard normal."""
        raise NotImplementedError(f"{type(self).__name__} does not define randn")

    def add(self, x_prev: Any, x_new: Any) -> Any:
        """The sum of two values."""
        return self._add(x_prev, x_new)

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """The sum of two values. The first may be written into; None means zero."""
        return self._mut_add(self.zeros() if x_prev is None else x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """The product of a value and a number."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product of two values."""
        return self._inner_prod(x, y)

    def covector(self, x: Any) -> Any:
        """The covector of a value: the complex conjugate."""
        return self._covector(x)

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _mut_add(self, x: Any, y: Any) -> Any:
        return x + y

    def _scalar_mul(self, x: Array, a: float) -> Any:
        return x * a

    def _inner_prod(self, x: Array, y: Array) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _inner_prod")

    def _covector(self, x: Array) -> Any:
        return x

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{self.__dict__}"

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], Any] | None = None) -> None:
        """Register this space for the values of a class, or the function that returns the space of a value."""
        VSpace.mappings[value_type] = vspace_maker or cls


def vspace(value: object) -> Any:
    """The vector space of a value.

    Parameters
    ----------
    value : array, float, complex, list, tuple, dict, box, or of a registered class
        Of any shape.

    Returns
    -------
    VSpace
        Its space.

    Raises
    ------
    TypeError
        If no space is registered for the class of the value, or of a value nested in it.

    Examples
    --------
    >>> vspace(np.ones(3)).shape
    (3,)
    >>> vspace({"a": 1.0, "b": np.ones(2)}).zeros()
    {'a': array(0.), 'b': array([0., 0.])}
    """
    maker = VSpace.mappings.get(type(value) if type(value) in VSpace.mappings else kind_of(value))
    if maker is None:
        names = ", ".join(sorted({cls.__name__ for cls in VSpace.mappings}))
        raise TypeError(f"vspace: {value!r} of class {type(value).__name__} has no vector space. Use one of the classes {names}")
    return maker(getval(value) if isinstance(value, Value) else value)


class ArrayVSpace(VSpace):
    """The space of real arrays of one shape and dtype."""

    def __init__(self, value: Any) -> None:
        value = np.asarray(value)
        self.shape, self.dtype = value.shape, value.dtype

    @property
    def size(self) -> int:
        """The number of real numbers in a value."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """The number of axes of a value."""
        return len(self.shape)

    def zeros(self) -> Any:
        """An array of zeros."""
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        """An array of ones."""
        return np.ones(self.shape, self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        """Yield the arrays with a single nonzero element, which is one."""
        for index in np.ndindex(*self.shape):
            for unit in self._units:
                vector = np.zeros(self.shape, self.dtype)
                vector[index] = unit
                yield vector

    def randn(self) -> Any:
        """An array of standard normal numbers."""
        return np.array(np.random.randn(*self.shape)).astype(self.dtype)  # noqa: NPY002  (the generator that users seed)

    _units: ClassVar[tuple[complex, ...]] = (1.0,)

    def _inner_prod(self, x: Array, y: Array) -> Any:
        return np.dot(np.ravel(x), np.ravel(y))


class ComplexArrayVSpace(ArrayVSpace):
    """The space of complex arrays of one shape and dtype, over the real numbers."""

    iscomplex = True
    _units = (1.0, 1.0j)

    @property
    def size(self) -> int:
        """The number of real numbers in a value."""
        return 2 * super().size

    def ones(self) -> Any:
        """An array of ``1 + 1j``."""
        return np.full(self.shape, 1 + 1j, self.dtype)

    def randn(self) -> Any:
        """An array of complex numbers with standard normal parts."""
        parts = [np.random.randn(*self.shape) for _ in range(2)]  # noqa: NPY002
        return np.array(parts[0] + 1j * parts[1]).astype(self.dtype)

    def _inner_prod(self, x: Array, y: Array) -> Any:
        return np.real(np.dot(np.conj(np.ravel(x)), np.ravel(y)))

    def _covector(self, x: Array) -> Any:
        return np.conj(x)


class ContainerVSpace(VSpace):
    """The space of a list, a tuple or a dictionary: the product of the spaces of its values."""

    def __init__(self, value: Any) -> None:
        self.shape = value
        self.shape = self._map(vspace)

    @property
    def size(self) -> int:
        """The number of real numbers in a value."""
        return sum(self._values(self._map(lambda vs: vs.size)))

    def zeros(self) -> Any:
        """The container of the zeros."""
        return self._map(lambda vs: vs.zeros())

    def ones(self) -> Any:
        """The container of the ones."""
        return self._map(lambda vs: vs.ones())

    def randn(self) -> Any:
        """The container of normal values."""
        return self._map(lambda vs: vs.randn())

    def standard_basis(self) -> Iterator[Any]:
        """Yield the containers with one value of a standard basis."""
        for key, vs in self._pairs(self.shape):
            for vector in vs.standard_basis():
                yield self._subval(self.zeros(), key, vector)

    def _values(self, value: Any) -> Any:
        return value

    def _pairs(self, value: Any) -> Any:
        return enumerate(value)

    def _map(self, f: Callable[..., Any], *args: object) -> Any:
        raise NotImplementedError

    def _subval(self, value: Any, key: object, part: Any) -> Any:
        raise NotImplementedError

    def _add(self, x: Any, y: Any) -> Any:
        return self._map(lambda vs, a, b: vs._add(a, b), x, y)

    def _mut_add(self, x: Any, y: Any) -> Any:
        return self._map(lambda vs, a, b: vs._mut_add(a, b), x, y)

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return self._map(lambda vs, part: vs._scalar_mul(part, a), x)

    def _inner_prod(self, x: Array, y: Array) -> Any:
        return sum(self._values(self._map(lambda vs, a, b: vs._inner_prod(a, b), x, y)))

    def _covector(self, x: Array) -> Any:
        return self._map(lambda vs, part: vs._covector(part), x)


class SequenceVSpace(ContainerVSpace):
    """The space of a sequence."""

    seq_type: type = tuple

    def _map(self, f: Callable[..., Any], *args: object) -> Any:
        return self.seq_type(map(f, self.shape, *args))

    def _subval(self, value: Any, key: object, part: Any) -> Any:
        return self.seq_type(part if k == key else old for k, old in enumerate(value))


class ListVSpace(SequenceVSpace):
    """The space of a list."""

    seq_type = list


class TupleVSpace(SequenceVSpace):
    """The space of a tuple."""

    seq_type = tuple


class NamedTupleVSpace(SequenceVSpace):
    """The space of a named tuple; a subclass states its ``seq_type``."""

    def _map(self, f: Callable[..., Any], *args: object) -> Any:
        return self.seq_type(*map(f, self.shape, *args))

    def _subval(self, value: Any, key: object, part: Any) -> Any:
        return self.seq_type(*[part if k == key else old for k, old in enumerate(value)])


class DictVSpace(ContainerVSpace):
    """The space of a dictionary."""

    def _values(self, value: Any) -> Any:
        return value.values()

    def _pairs(self, value: Any) -> Any:
        return value.items()

    def _map(self, f: Any, *args: Any) -> Any:
        return {key: f(vs, *[x[key] for x in args]) for key, vs in self.shape.items()}

    def _subval(self, value: Any, key: Any, part: Any) -> Any:
        return {**value, key: part}


class SparseObject:
    """A cotangent that is zero except for a part.

    Parameters
    ----------
    vs : VSpace
        The space of the cotangent.
    mut_add : callable
        Adds the part to a value of the space, which it may change, and returns the sum.
    """

    def __init__(self, vs: Any, mut_add: Callable[[Any], Any]) -> None:
        self.vs, self.mut_add = vs, mut_add


def dense(cotangent: object) -> Any:
    """Convert a `SparseObject` to a value of its space; return other cotangents unchanged."""
    return cotangent.mut_add(cotangent.vs.zeros()) if isinstance(cotangent, SparseObject) else cotangent


VSpace.register(SparseObject, lambda sparse: sparse.vs)
VSpace.register(np.ndarray, lambda x: (ComplexArrayVSpace if np.iscomplexobj(x) else ArrayVSpace)(x))
for _real in (float, np.longdouble, np.float64, np.float32, np.float16):
    ArrayVSpace.register(_real)
for _complex in (complex, np.clongdouble, np.complex64, np.complex128):
    ComplexArrayVSpace.register(_complex)
ListVSpace.register(list)
TupleVSpace.register(tuple)
DictVSpace.register(dict)


def _result_space(cls: type) -> type:
    return type(f"{cls.__name__}VSpace", (NamedTupleVSpace,), {"seq_type": cls})


for _kind in {
    *map(type, (np.linalg.qr(np.eye(1)), np.linalg.svd(np.eye(1)), np.linalg.eig(np.eye(1)))),
    *map(type, (np.linalg.eigh(np.eye(1)), np.linalg.slogdet(np.eye(1)))),
}:
    VSpace.register(_kind, _result_space(_kind))
