"""Sums of products along labelled axes, as `einsum` writes them: products of matrices where they are that, else maps and sums.

Each axis of a factor has a label. Factors are multiplied two at a time, those first whose product is summed; what no other factor
and not the result has is summed along as soon as it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .... import ops
from ..steps import Place, c_strides, dense
from .folding import reduced
from .placing import Placing
from .products import append_product

_OPTION = "an operand or an option is not known to the compiler"
_TOO_LARGE = 4  # by how many times a product on the way may be larger than all factors and the result

Labels = tuple[Hashable, ...]


class Factor(NamedTuple):
    """An array, and the labels of its axes."""

    place: Place
    labels: Labels


# --------------------------------------------------------------------------------------------- what is asked for


def _einsum(lowered: Placing, item: Any) -> str:
    if set(item.options) != {"subscripts"} or not isinstance(item.options["subscripts"], str):
        return _OPTION
    places = _places(lowered, item.args)
    if places is None:
        return _OPTION
    given, arrow, result = item.options["subscripts"].replace(" ", "").partition("->")
    labels = [_spelt(text, len(p.shape)) for text, p in zip(given.split(","), places, strict=True)]
    if arrow:
        out = _spelt(result, np.ndim(item.raw_value))
    else:
        letters = "".join(label for part in labels for label in part if isinstance(label, str))
        once = sorted(letter for letter in letters if letters.count(letter) == 1)
        out = (*range(len(once) - np.ndim(item.raw_value), 0), *once)
    return _contracted(lowered, item, list(map(Factor, places, labels)), out)


def _spelt(text: str, count: int) -> Labels:
    """The labels of so many axes: letters, and for an ellipsis numbers, of which -1 is the last."""
    before, dots, after = text.partition("...")
    return (*before, *range(len(before) + len(after) - count, 0), *after) if dots else tuple(text)


def _tensordot(lowered: Placing, item: Any) -> str:
    places = _places(lowered, item.args)
    if places is None or len(places) != 2 or not {"axes"}.issuperset(item.options):
        return _OPTION
    if any(prod(p.shape) == 1 for p in places):
        return scaled(lowered, item, places)
    a, b = places
    axes = item.options.get("axes", 2)
    if isinstance(axes, (int, np.integer)):
        axes = list(range(-int(axes), 0)), list(range(int(axes)))
    first, second = ([int(k) % max(len(p.shape), 1) for k in np.ravel(ks)] for ks, p in zip(axes, places, strict=True))
    labels = [[("a", k) for k in range(len(a.shape))], [("b", k) for k in range(len(b.shape))]]
    for i, j in zip(first, second, strict=True):
        labels[1][j] = labels[0][i]
    out = [label for part, other in (labels, labels[::-1]) for label in part if label not in other]
    return _contracted(lowered, item, [Factor(p, tuple(part)) for p, part in zip(places, labels, strict=True)], tuple(out))


def _along(first: str, second: str, result: str) -> Callable[[Placing, Any], str]:
    """A product of two arrays, whose last axes have these labels; those before are matched from the last, as NumPy broadcasts."""

    def make(lowered: Placing, item: Any) -> str:
        places = _places(lowered, item.args)
        if places is None or len(places) != 2 or item.options:
            return _OPTION
        labels = [_spelt(f"...{text}", len(p.shape)) for text, p in zip((first, second), places, strict=True)]
        return _contracted(lowered, item, list(map(Factor, places, labels)), _spelt(f"...{result}", np.ndim(item.raw_value)))

    return make


def _dot(lowered: Placing, item: Any) -> str:
    """``dot`` of more than two axes: along the last of the first operand, and the second to last of the other."""
    places = _places(lowered, item.args)
    if places is None or len(places) != 2 or item.options or not all(p.shape for p in places):
        return _OPTION
    a, b = ([(name, k) for k in range(len(p.shape) - 1)] for name, p in zip("ab", places, strict=True))
    labels = (*a, "along"), (*b[:-1], "along", *b[-1:])
    return _contracted(lowered, item, list(map(Factor, places, labels)), (*a, *b))


def _inner(lowered: Placing, item: Any) -> str:
    places = _places(lowered, item.args)
    if places is None or len(places) != 2 or item.options:
        return _OPTION
    if any(prod(p.shape) == 1 for p in places):
        return scaled(lowered, item, places)
    a, b = ([(name, k) for k in range(len(p.shape) - 1)] for name, p in zip("ab", places, strict=True))
    factors = [Factor(p, (*part, "along")) for p, part in zip(places, (a, b), strict=True)]
    return _contracted(lowered, item, factors, (*a, *b))


def scaled(lowered: Placing, item: Any, places: Sequence[Place]) -> str:
    """`dot`, `inner` or `tensordot` by one number: NumPy has BLAS add a multiple to zeros, where 0 * inf is 0."""
    dtype, shape = np.asarray(item.raw_value).dtype, np.shape(item.raw_value)
    if dtype.kind != "f" or lowered.is_exact or not prod(shape):
        return f"{item.opname} of {dtype} is not compiled"
    one, other = sorted(places, key=lambda place: prod(place.shape))
    number, flat = Place(one.buffer, one.offset, (), ()), lowered.raveled(other)
    seen = Place(flat.buffer, flat.offset, shape, c_strides(shape))
    lowered.places[item] = own = dense(dtype, shape, item)
    if flat.shape == (1,):
        lowered.map("multiply", (number, seen), own)
        return ""
    is_zero, product, total = dense(bool, ()), dense(dtype, shape), dense(dtype, shape)
    lowered.map("equal", (number, 0.0), is_zero, dtype)
    lowered.map("multiply", (number, seen), product)
    lowered.map("add", (product, 0.0), total)
    lowered.map("where", (is_zero, 0.0, total), own)
    return ""


def _vdot(lowered: Placing, item: Any) -> str:
    places = _places(lowered, item.args)
    if places is None or len(places) != 2 or item.options:
        return _OPTION
    if places[0].shape != places[1].shape:
        places = [lowered.raveled(p) for p in places]
    return _contracted(lowered, item, [Factor(p, tuple(range(len(p.shape)))) for p in places], ())


def _places(lowered: Placing, operands: Sequence[Any]) -> list[Place] | None:
    found = [lowered.place(a if isinstance(a, np.ndarray) else np.asarray(a)) for a in operands]
    known = [p for p in found if p is not None]
    return known if len(known) == len(found) else None


# --------------------------------------------------------------------------------------------- steps


def _contracted(lowered: Placing, item: Any, factors: Sequence[Factor], out: Labels) -> str:
    """Append the steps of a sum of products, whose result has the labels `out`."""
    dtype, shape = np.asarray(item.raw_value).dtype, np.shape(item.raw_value)
    if dtype.kind != "f" or lowered.is_exact:
        return f"{item.opname} of {dtype} is not compiled"
    lengths: dict[Hashable, int] = {}
    for place, labels in factors:
        for label, n in zip(labels, place.shape, strict=True):
            lengths[label] = n if lengths.get(label, 1) == 1 else lengths[label]
    if 0 in lengths.values() or tuple(lengths.get(label, 0) for label in out) != shape:
        return "there is nothing to sum"
    if len(factors) == 1 and lowered.is_mutable(factors[0].place):
        return "it is a view that only NumPy makes"
    most = _TOO_LARGE * max(prod(shape), *(prod(f.place.shape) for f in factors))
    rest = [_diagonal(lowered, f, lengths, dtype) for f in factors]
    while len(rest) > 1:
        a, b, *rest = _next_first(rest, out)
        needed = {*out, *(label for f in rest for label in f.labels)}
        if prod(lengths[label] for label in {*a.labels, *b.labels} & needed) > most:
            return "a product on the way would be large"
        rest = [_of_two(lowered, a, b, needed, out), *rest]
    found = _summed(lowered, rest[0], out)
    gone = lengths.keys() - set(out)
    if (gone or len(factors) > 1) and all(lengths[label] == 1 for label in gone):
        found = _begun_with_zero(lowered, found)
    strides = dict(zip(found.labels, found.place.strides, strict=True))
    seen = Place(found.place.buffer, found.place.offset, shape, tuple(strides[label] for label in out))
    lowered.places[item] = own = dense(dtype, shape, item) if item.memory else seen
    if item.memory:  # it will be written into
        lowered.map("copy", (seen,), own)
    return ""


def _begun_with_zero(lowered: Placing, factor: Factor) -> Factor:
    """A factor plus 0, which takes the sign of -0: NumPy's sums of products begin with 0, also those of one product."""
    place, labels = factor
    own = dense(place.buffer.dtype, place.shape)
    lowered.map("add", (place, 0.0), own)
    return Factor(own, labels)


def _next_first(factors: list[Factor], out: Labels) -> list[Factor]:
    """The factors, second the one to multiply the first by: of which a label is then summed along, if there is such a one."""
    first, *others = factors
    for k, other in enumerate(others):
        elsewhere = {*out, *(label for f in others[:k] + others[k + 1 :] for label in f.labels)}
        if any(label in first.labels and label not in elsewhere for label in other.labels):
            return [first, other, *others[:k], *others[k + 1 :]]
    return factors


def _diagonal(lowered: Placing, factor: Factor, lengths: dict[Hashable, int], dtype: Any) -> Factor:
    """A factor in which each label is there once, and none whose axis is of length 1 where others have more."""
    place, labels = factor
    place = place if place.buffer.dtype == dtype else lowered.copied(place, dtype)
    strides: dict[Hashable, int] = {}
    for label, n, stride in zip(labels, place.shape, place.strides, strict=True):
        if n == lengths[label]:
            strides[label] = strides.get(label, 0) + stride
    shape = tuple(lengths[label] for label in strides)
    return Factor(Place(place.buffer, place.offset, shape, tuple(strides.values())), tuple(strides))


def _summed(lowered: Placing, factor: Factor, needed: Collection[Hashable]) -> Factor:
    """A factor, summed along the axes whose labels are not needed."""
    place, labels = factor
    gone = frozenset(k for k, label in enumerate(labels) if label not in needed)
    if any(place.shape[k] != 1 for k in gone):
        place = reduced(lowered, "add", place, gone)
    kept = [k for k in range(len(labels)) if k not in gone]
    shape, strides = tuple(place.shape[k] for k in kept), tuple(place.strides[k] for k in kept)
    return Factor(Place(place.buffer, place.offset, shape, strides), tuple(labels[k] for k in kept))


def _of_two(lowered: Placing, a: Factor, b: Factor, needed: Collection[Hashable], out: Labels) -> Factor:
    """The product of two factors, summed along the axes whose labels are not needed."""
    a, b = _summed(lowered, a, {*needed, *b.labels}), _summed(lowered, b, {*needed, *a.labels})
    common = [label for label in a.labels if label in b.labels]
    along = [label for label in common if label not in needed]
    first, second = ([label for label in f.labels if label not in common] for f in (a, b))
    stack = [label for label in common if label in needed]
    if along and (first or second):
        if first and second and first[0] in out and second[0] in out and out.index(second[0]) < out.index(first[0]):
            a, b, first, second = b, a, second, first  # so that the result lies as it is wanted
        return _product(lowered, a, b, (stack, first, along, second))
    labels = (*stack, *along, *first, *second)
    places = [_aligned(f, labels) for f in (a, b)]
    shape = tuple(max(n, m) for n, m in zip(*(p.shape for p in places), strict=True))
    found = dense(a.place.buffer.dtype, shape)
    lowered.map("multiply", places, found)
    return _summed(lowered, Factor(found, labels), needed)


def _aligned(factor: Factor, labels: Labels) -> Place:
    """An array with an axis for each of some labels, of length 1 where it has none."""
    place = factor.place
    known = dict(zip(factor.labels, zip(place.shape, place.strides, strict=True), strict=True))
    pairs = [known.get(label, (1, 0)) for label in labels]
    return Place(place.buffer, place.offset, tuple(n for n, _ in pairs), tuple(s for _, s in pairs))


def _product(lowered: Placing, a: Factor, b: Factor, groups: tuple[list[Any], list[Any], list[Any], list[Any]]) -> Factor:
    """A product of matrices, whose rows, sums and columns each go along several axes; or a stack of such."""
    stack, first, along, second = groups
    lengths = dict(zip((*a.labels, *b.labels), (*a.place.shape, *b.place.shape), strict=True))
    left, right = _matrix(lowered, a, stack, first, along), _matrix(lowered, b, stack, along, second)
    labels = (*stack, *first, *second)
    found = dense(left.buffer.dtype, tuple(lengths[label] for label in labels))
    full = (*left.shape[:-1], right.shape[-1])
    append_product(lowered, left, right, Place(found.buffer, 0, full, c_strides(full)))
    return Factor(found, labels)


def _matrix(lowered: Placing, factor: Factor, stack: list[Any], rows: list[Any], columns: list[Any]) -> Place:
    """A factor as matrices; a copy if axes that are to be one do not lie so."""
    place = _aligned(factor, (*stack, *rows, *columns))
    ends = len(stack), len(stack) + len(rows)
    parts = (slice(ends[0], ends[1]), slice(ends[1], None))
    if not all(_is_one(place.shape[part], place.strides[part]) for part in parts):
        place = lowered.copied(place, place.buffer.dtype)
    shape = tuple(prod(place.shape[part]) for part in parts)
    strides = tuple(_step(place.shape[part], place.strides[part]) for part in parts)
    return Place(place.buffer, place.offset, (*place.shape[: ends[0]], *shape), (*place.strides[: ends[0]], *strides))


def _is_one(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether some axes can be passed through as one."""
    long = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return all(s == m * t for (_, s), (m, t) in pairwise(long))


def _step(shape: Sequence[int], strides: Sequence[int]) -> int:
    """By how many elements such axes are passed through."""
    return next((s for n, s in zip(reversed(shape), reversed(strides), strict=True) if n != 1), 0)


_np = ops.NUMPY
KINDS: dict[Any, Any] = {
    ops.einsum: _einsum, _np.tensordot: _tensordot, _np.inner: _inner, _np.vdot: _vdot, _np.dot: _dot,
    _np.vecdot: _along("i", "i", ""), _np.matvec: _along("ij", "j", "i"), _np.vecmat: _along("i", "ij", "j"),
}  # fmt: skip
