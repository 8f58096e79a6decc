"""Products as contractions: which elements of their operands each element of the result depends on.

A contraction is a sum over indices, in the notation of ``einsum``. For each value of all its letters, an element of each operand
contributes to one element of the result, unless a factor that is independent of the input is zero there.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..grads.linalg import expand_subscripts, tensordot_axes

MAX_INDICES = 2**24  # index values of the largest contraction that is enumerated
_BATCH = string.ascii_uppercase
_I, _J, _K = np.indices((3, 3, 3))
_LEVI_CIVITA = (_I - _J) * (_J - _K) * (_K - _I) // 2


class Contraction(NamedTuple):
    """The subscripts of a product.

    Attributes
    ----------
    terms : list of str
        For each operand, a letter for each axis.
    target : str
        A letter for each axis of the result; of its reshape, for ``outer`` and ``kron``.
    constants : list of tuple
        Further factors, with their subscripts.
    """

    terms: list[str]
    target: str
    constants: list[tuple[str, NDArray[Any]]]


def dependences(contraction: Contraction, operands: Sequence[Any], is_active: Sequence[bool]) -> list[tuple[Any, Any]] | None:
    """Return the positions in the flat result and in a flat operand that depend on each other, for each active operand.

    Parameters
    ----------
    contraction : Contraction
        The product.
    operands : sequence of arrays
        The operands.
    is_active : sequence of bool
        Whether each operand depends on the input.

    Returns
    -------
    list of tuple or None
        A pair of arrays of positions for each active operand, with repetitions; None if there are too many.
    """
    arrays = [np.asarray(x) for x in operands]
    factors = [*zip(contraction.terms, arrays, strict=True), *contraction.constants]
    lengths: dict[str, int] = {}
    for term, array in factors:
        for letter, length in zip(term, array.shape, strict=True):
            longest = lengths.get(letter, 1)
            lengths[letter] = max(longest, length) if longest and length else 0
    if math.prod(lengths.values()) > MAX_INDICES:
        return None

    def positions(term: str, shape: tuple[int, ...]) -> Any:
        """Return the flat position of the element at all index values."""
        total, stride = np.zeros((1,) * len(lengths), np.int32), 1
        for letter, length in zip(reversed(term), reversed(shape), strict=True):
            if length > 1:
                axis = list(lengths).index(letter)
                along = np.arange(length, dtype=np.int32) * stride
                total = total + along.reshape([-1 if k == axis else 1 for k in range(len(lengths))])
            stride *= length
        return np.broadcast_to(total, tuple(lengths.values()))

    is_nonzero = np.ones(tuple(lengths.values()), bool)
    for (term, array), active in zip(factors, [*is_active, *[False] * len(contraction.constants)], strict=True):
        if not active:
            is_nonzero &= (array != 0).ravel()[positions(term, array.shape)]
    results = positions(contraction.target, tuple(lengths[letter] for letter in contraction.target))[is_nonzero]
    return [
        (results, positions(term, array.shape)[is_nonzero])
        for term, array, active in zip(contraction.terms, arrays, is_active, strict=True)
        if active
    ]


def contraction_of(opname: str, operands: Sequence[Any], options: dict[str, Any]) -> Contraction | None:
    """Return the contraction that an operation computes; None for other operations."""
    make_contraction = _CONTRACTIONS.get(opname)
    return None if make_contraction is None else make_contraction([np.asarray(x) for x in operands], **options)


def _gufunc_contraction(*cores: str, target: str) -> Callable[..., Contraction | None]:
    """Return a function that makes the contraction of a generalized ufunc with these core axes."""

    def make_contraction(operands: list[NDArray[Any]]) -> Contraction | None:
        terms = [_batch_letters(x.ndim - len(core)) + core for x, core in zip(operands, cores, strict=True)]
        longest = max(x.ndim - len(core) for x, core in zip(operands, cores, strict=True))
        return Contraction(terms, _batch_letters(longest) + target, [])

    return make_contraction


def _batch_letters(count: int) -> str:
    """Return the letters of the leading axes, the last of which are aligned."""
    return _BATCH[len(_BATCH) - count :]


def _matmul(operands: list[NDArray[Any]]) -> Contraction | None:
    a, b = operands
    cores = "j" if a.ndim == 1 else "ij", "j" if b.ndim == 1 else "jk"
    return _gufunc_contraction(*cores, target="".join(cores).replace("j", ""))(operands)


def _tensordot(operands: list[NDArray[Any]], axes: Any = 2) -> Contraction | None:
    a, b = operands
    of_a, of_b = tensordot_axes(axes, a, b)
    term_a, letters = string.ascii_lowercase[: a.ndim], iter(_BATCH)
    term_b = "".join(term_a[of_a[of_b.index(k)]] if k in of_b else next(letters) for k in range(b.ndim))
    target = "".join(c for k, c in enumerate(term_a) if k not in of_a) + "".join(c for k, c in enumerate(term_b) if k not in of_b)
    return Contraction([term_a, term_b], target, [])


def _dot(operands: list[NDArray[Any]]) -> Contraction | None:
    a, b = operands
    return _tensordot(operands, 0) if 0 in (a.ndim, b.ndim) else _tensordot(operands, ([-1], [max(b.ndim - 2, 0)]))


def _inner(operands: list[NDArray[Any]]) -> Contraction | None:
    a, b = operands
    return _tensordot(operands, 0) if 0 in (a.ndim, b.ndim) else _tensordot(operands, ([-1], [-1]))


def _einsum(operands: list[NDArray[Any]], subscripts: str, **_: object) -> Contraction | None:
    terms, target = expand_subscripts(subscripts, tuple(operands))
    return Contraction(terms, target, [])


def _cross(
    operands: list[NDArray[Any]], axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Contraction | None:
    axes = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    if any(x.shape[k] != 3 for x, k in zip(operands, axes, strict=False)):
        return None

    def insert_letter(ndim: int, axis: int, letter: str) -> str:
        letters = list(_batch_letters(ndim - 1))
        letters.insert(axis % ndim, letter)
        return "".join(letters)

    a, b = operands
    terms = [insert_letter(a.ndim, axes[0], "j"), insert_letter(b.ndim, axes[1], "k")]
    return Contraction(terms, insert_letter(max(a.ndim, b.ndim), axes[2], "i"), [("ijk", _LEVI_CIVITA)])


def _kron(operands: list[NDArray[Any]]) -> Contraction | None:
    a, b = [names[: x.ndim] for x, names in zip(operands, (string.ascii_lowercase, string.ascii_uppercase), strict=True)]
    pairs = [*itertools.zip_longest(a, b, fillvalue="")]  # the letters of each axis, the last axis first
    return Contraction([a[::-1], b[::-1]], "".join(p + q for p, q in reversed(pairs)), [])


_CONTRACTIONS: dict[str, Callable[..., Contraction | None]] = {
    "matmul": _matmul, "stacked_matmul": _matmul, "dot": _dot, "inner": _inner, "tensordot": _tensordot, "einsum": _einsum,
    "outer": lambda operands: _tensordot(operands, 0), "cross": _cross, "kron": _kron,
    "vecdot": _gufunc_contraction("j", "j", target=""), "matvec": _gufunc_contraction("ij", "j", target="i"),
    "vecmat": _gufunc_contraction("i", "ij", target="j"),
}  # fmt: skip
