"""Taking from, and writing into, places that may be others for each example."""

from __future__ import annotations

from typing import Any

import numpy as np

from compgraph.bind import bind
from compgraph.ops import getitem
from compgraph.values import BatchedValueError, Value

from ..values import is_batch
from .call import Call, OneByOneError, flat, front, lifted, shift
from .table import own

ALL = slice(None)


class Where:
    """The index of one example as an index of all of them.

    Attributes
    ----------
    index : tuple
        The parts of the index.
    shape : tuple of int
        What is there in one example.
    moved : None or tuple
        Where NumPy puts the axis of examples, if not first: the axes that it finds come as ``(source, destination)``.
    """

    __slots__ = ("index", "moved", "shape")

    def __init__(self, index: tuple[Any, ...], shape: tuple[int, ...], moved: Any = None) -> None:
        self.index, self.shape, self.moved = index, shape, moved

    def forth(self, found: Any) -> Any:
        """What was found, with the axis of examples first."""
        return found if self.moved is None else np.moveaxis(found, *self.moved)

    def back(self, pieces: Any) -> Any:
        """What is to be written, as NumPy takes it at this index."""
        return pieces if self.moved is None else np.moveaxis(pieces, *self.moved[::-1])


def located(shape: tuple[int, ...], parts: list[Any], differs: list[bool], count: int | None) -> Where:
    """An index of one example as one of all.

    Parameters
    ----------
    shape : tuple of int
        Of one example of what is indexed.
    parts : list
        The parts of the index; those that differ between examples with that axis first.
    differs : list of bool
        Which these are.
    count : int or None
        How many examples there are of what is indexed; None if it is the same for all.
    """
    full = _whole(len(shape), _as_integers(parts, differs))
    region = np.empty(shape, bool)[tuple([_some_places(i, d) for i, d in full])].shape
    advanced = [k for k, (i, _) in enumerate(full) if not (i is None or isinstance(i, slice))]
    arrays = [k for k in advanced if isinstance(full[k][0], np.ndarray)]
    before = (ALL,) if count is not None else ()
    if not arrays:
        return Where((*before, *[i for i, _ in full]), region)
    width = max(full[k][0].ndim - full[k][1] for k in arrays)
    is_apart = advanced[-1] - advanced[0] + 1 != len(advanced)
    place = 0 if is_apart else sum(1 for i, _ in full[: advanced[0]])
    if not any(d for _, d in full):  # the same places in all: NumPy puts what lies apart before the axis of examples
        return Where((*before, *[i for i, _ in full]), region, (width, 0) if is_apart else None)
    index = tuple([front(i, width) if d else i for i, d in full])
    if count is None:
        return Where(index, region, (place, 0) if place else None)
    rows = np.reshape(np.arange(count), (count, *(1,) * width))
    # The rows stand first, apart from the other arrays unless these begin the index; then the axes of the arrays come first.
    came = tuple(range(1, 1 + width)), tuple(range(1 + place, 1 + place + width))
    return Where((rows, *index), region, came if place else None)


def _some_places(part: Any, differs: bool) -> Any:
    """A part of an index of one example; of one that differs, here or between the examples of a vmap further out, zeros."""
    if differs or is_batch(part):
        return np.zeros(part.shape[differs:], np.intp)
    return part.raw_value if isinstance(part, Value) else part


def _as_integers(parts: list[Any], differs: list[bool]) -> list[tuple[Any, bool]]:
    """The parts of an index, boolean arrays as integer ones."""
    if len(parts) == 1 and isinstance(parts[0], tuple):
        parts = list(parts[0])
        differs = [False] * len(parts)
    found: list[tuple[Any, bool]] = []
    for part, d in zip(parts, differs, strict=True):
        if (d or is_batch(part)) and part.dtype.kind == "b":
            raise BatchedValueError(
                "vmap: x[mask], with a mask that differs between the examples, has a result of another shape for each; use "
                "np.where(mask, x, other), or np.sum(x, where=mask) and its kin"
            )
        if isinstance(part, (bool, np.bool_)) or (
            isinstance(part, np.ndarray) and not d and part.dtype.kind == "b" and not part.ndim
        ):
            raise OneByOneError
        if isinstance(part, list):
            part = np.array(part) if part else np.array(part, np.intp)
        if isinstance(part, np.ndarray) and not d and part.dtype.kind == "b":
            found += [(places, False) for places in np.nonzero(_some_places(part, False))]
        else:
            found.append((part, d))
    return found


def _whole(ndim: int, parts: list[tuple[Any, bool]]) -> list[tuple[Any, bool]]:
    """An index with a part for each axis."""
    used = sum(1 for i, _ in parts if i is not None and i is not Ellipsis)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    if not any(i is Ellipsis for i, _ in parts):
        parts = [*parts, (Ellipsis, False)]
    full: list[tuple[Any, bool]] = []
    for part, d in parts:
        full += [(ALL, False)] * (ndim - used) if part is Ellipsis else [(part, d)]
    return full


def has_ellipsis(parts: Any) -> bool:
    """Whether an index asks for an array where there is but a number."""
    parts = parts[0] if len(parts) == 1 and isinstance(parts[0], tuple) else parts
    return any(part is Ellipsis for part in parts)


def get(call: Call) -> Any:
    """``x[index]``."""
    x, *parts = call.values
    shape = np.shape(x)[1:] if call.batched[0] else np.shape(x)
    where = located(shape, parts, call.batched[1:], call.count if call.batched[0] else None)
    spread = any(isinstance(i, Value) for i in where.index)
    found = where.forth(bind(getitem, (x, *where.index) if spread else (x, where.index)))
    if found.ndim == 1 and not has_ellipsis(parts):
        return np.copy(found)  # of one example a number, which is no view
    return found


def scatter(call: Call) -> Any:
    """``scatter(like, piece, *index, piece, *index, ..., layout=...)``, which undoes ``like[index]``."""
    like, shape = call.values[0], call.values[0].shape[1:] if call.batched[0] else call.values[0].shape
    if not call.batched[0]:
        like = np.broadcast_to(np.zeros((), like.dtype), (call.count, *shape))
    given: list[Any] = [like]
    layout, start = [], 1
    for width in call.options["layout"]:
        stop = start + 1 + width
        where = located(shape, call.values[start + 1 : stop], call.batched[start + 1 : stop], call.count)
        pieces = call.values[start] if call.batched[start] else lifted(call.values[start], call.count)
        pieces = np.broadcast_to(front(pieces, len(where.shape)), (call.count, *where.shape))
        given += [where.back(pieces), *where.index]
        layout.append(len(where.index))
        start = stop
    return call.run(given, layout=tuple(layout))


def take(call: Call) -> Any:
    """``np.take``; without an axis of the flattened example."""
    axis, x = call.options.get("axis"), call.values[0]
    if len(call.values) < 2 or not call.batched[1]:
        return call.on_first(flat(call.first()), axis=1) if axis is None else call.on_first(x, axis=shift(axis, call.ndims[0]))
    if call.options.get("mode", "raise") != "raise":
        raise OneByOneError
    ndim = call.ndims[0]
    if axis is None:
        x, axis, ndim = flat(x) if call.batched[0] else np.ravel(x), 0, 1
    parts = [x, *[ALL] * (shift(axis, ndim) - 1), call.values[1]]
    return get(Call(getitem, parts, [call.batched[0], *[False] * (len(parts) - 2), True], {}, call.count))


def take_along(call: Call) -> Any:
    """``np.take_along_axis``."""
    x, indices = call.all_lifted()
    axis = call.options.get("axis", -1)
    if axis is None:
        return call.run((flat(x), indices), axis=1)
    return call.run((x, indices), axis=shift(axis, call.ndims[0]))


own |= {"getitem": get, "scatter": scatter, "take": take, "take_along_axis": take_along}
