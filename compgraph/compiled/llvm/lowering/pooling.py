"""Pooling as steps, element by element as `compgraph.nn.pooling` does it: one view of an array for each place in a window."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ....nn import Windows, covered, sizes, windows_of
from .. import elementwise
from ..steps import Place, dense
from .placing import Placing

UNKNOWN = "an operand is not known to the compiler"
LARGEST = 64  # elements of a window: there are several steps for each


def largest(program: Placing, item: Any) -> str:
    """`max_pool`: append its steps, or say why it has none."""
    x = program.place(item.args[0])
    if x is None or x.buffer.dtype.kind not in "iuf":
        return UNKNOWN
    pool = _Pool(program, item, x.shape)
    if why := pool.refused():
        return why
    lowest = -np.inf if x.buffer.dtype.kind == "f" else np.iinfo(x.buffer.dtype).min
    found = pool.gathered("maximum", pool.views(pool.padded(x, lowest)), x.buffer.dtype)
    return pool.result("copy", found)


def mean(program: Placing, item: Any) -> str:
    """`mean_pool`."""
    x = program.place(item.args[0])
    if x is None or x.buffer.dtype.kind not in "biuf":
        return UNKNOWN
    pool = _Pool(program, item, x.shape)
    if why := pool.refused():
        return why
    if x.buffer.dtype.kind != "f":
        x = program.copied(x, np.dtype(float))
    total = pool.gathered("add", pool.views(pool.padded(x, 0.0)), item.raw_value.dtype)
    return pool.result("divide", total, pool.sizes())


def largest_back(program: Placing, item: Any) -> str:
    """`max_pool_back`: of an adjoint, of what was pooled, and of the result."""
    g, x, best = (program.place(a) for a in item.args)
    if g is None or x is None or best is None:
        return UNKNOWN
    pool = _Pool(program, item, x.shape)
    if why := pool.refused(x, g):
        return why
    won = pool.winners(x, best)
    shares = pool.computed("divide", g.shape, g, pool.number_of(won, best.shape))
    return pool.spread(shares, won)


def largest_along(program: Placing, item: Any) -> str:
    """`max_pool_along`: of a tangent, of what is pooled, and of the result."""
    t, x, best = (program.place(a) for a in item.args)
    if t is None or x is None or best is None:
        return UNKNOWN
    pool = _Pool(program, item, x.shape)
    if why := pool.refused(x, t):
        return why
    won = pool.winners(x, best)
    total: Any = 0.0
    for view, chosen in zip(pool.views(pool.padded(t, 0.0)), won, strict=True):
        total = pool.computed("add", view.shape, total, pool.computed("where", view.shape, chosen, view, 0.0))
    return pool.result("divide", total, pool.number_of(won, best.shape))


def mean_back(program: Placing, item: Any) -> str:
    """`mean_pool_back`."""
    g = program.place(item.args[0])
    if g is None:
        return UNKNOWN
    pool = _Pool(program, item, np.shape(item.args[1]))
    if why := pool.refused(g):
        return why
    return pool.spread(pool.computed("divide", g.shape, g, pool.sizes()), [True] * pool.places)


class _Pool:
    """The windows of a pooling, and the steps that go over them."""

    def __init__(self, program: Placing, item: Any, shape: tuple[int, ...]) -> None:
        self.program, self.item, self.dtype = program, item, item.raw_value.dtype
        self.windows: Windows = windows_of(item.opname, shape, **item.options)
        self.places = prod(self.windows.window)

    def refused(self, *floating: Place) -> str:
        """Why it is not compiled, if so."""
        if self.places > LARGEST:
            return "pooling of large windows is not compiled"
        if any(p.buffer.dtype.kind != "f" for p in floating) or not elementwise.is_known(self.dtype):
            return f"pooling of {self.dtype} is not compiled"
        return "" if np.size(self.item.raw_value) else "there is nothing to pool"

    def computed(self, name: str, shape: tuple[int, ...], *operands: Any, dtype: Any = None, computed: Any = None) -> Place:
        """A new array: an operation of others."""
        own = dense(self.dtype if dtype is None else dtype, shape)
        self.program.map(name, operands, own, computed)
        return own

    def result(self, name: str, *operands: Any) -> str:
        """The operation that gives the result."""
        self.program.places[self.item] = own = dense(self.dtype, np.shape(self.item.raw_value), self.item)
        self.program.map(name, operands, own)
        return ""

    def padded(self, x: Place, value: Any) -> Place:
        """An array with its padding."""
        if not any(map(any, self.windows.pads)):
            return x
        axes = len(self.windows.lengths)
        own = dense(x.buffer.dtype, (*x.shape[: len(x.shape) - axes], *self.windows.padded))
        self.program.map("copy", (value,), own, is_write=True)
        self.program.map("copy", (x,), self.inner(own), is_write=True)
        return own

    def inner(self, padded: Place) -> Place:
        """The part of a padded array that is not padding."""
        axes = len(self.windows.lengths)
        before = sum(s * left for s, (left, _) in zip(padded.strides[-axes:], self.windows.pads, strict=True))
        shape = (*padded.shape[:-axes], *self.windows.lengths)
        return Place(padded.buffer, padded.offset + before, shape, padded.strides)

    def views(self, padded: Place) -> list[Place]:
        """For each place within a window, the elements that stand there in all windows."""
        w, axes, found = self.windows, len(self.windows.lengths), []
        steps = padded.strides[-axes:]
        shape = (*padded.shape[:-axes], *w.counts)
        strides = (*padded.strides[:-axes], *[s * n for s, n in zip(steps, w.strides, strict=True)])
        for place in np.ndindex(w.window):
            offset = sum(s * d * k for s, d, k in zip(steps, w.dilation, place, strict=True))
            found.append(Place(padded.buffer, padded.offset + offset, shape, strides))
        return found

    def gathered(self, name: str, views: list[Place], dtype: Any) -> Place:
        """An operation of two of all places of a window, one after the other."""
        total = views[0]
        for view in views[1:]:
            total = self.computed(name, view.shape, total, view, dtype=dtype)
        return total

    def winners(self, x: Place, best: Place) -> list[Place]:
        """For each place within a window, whether the largest element stands there; padding never is."""
        boolean, kind = np.dtype(bool), x.buffer.dtype
        unknown = self.computed("isnan", best.shape, best, dtype=boolean, computed=kind)
        found = []
        for view, inside in zip(self.views(self.padded(x, -np.inf)), self._inside(), strict=True):
            won = self.computed("greater_equal", best.shape, view, best, dtype=boolean, computed=kind)
            if not inside.all():
                won = self.computed("logical_and", best.shape, won, self.program.outside(inside), dtype=boolean)
            found.append(self.computed("logical_or", best.shape, won, unknown, dtype=boolean))
        return found

    def _inside(self) -> list[Any]:
        """For each place within a window, of which windows it holds an element that is not padding."""
        w, found = self.windows, []
        for place in np.ndindex(w.window):
            along = []
            for axis, k in enumerate(place):
                at = np.arange(w.counts[axis]) * w.strides[axis] + k * w.dilation[axis] - w.pads[axis][0]
                along.append((at >= 0) & (at < w.lengths[axis]))
            found.append(functools.reduce(np.logical_and.outer, along))
        return found

    def number_of(self, won: list[Place], shape: tuple[int, ...]) -> Place:
        """How many places of each window hold its largest element; 1 where none does."""
        total = self.computed("copy", shape, won[0], computed=np.dtype(bool))
        for more in won[1:]:
            one = self.computed("copy", shape, more, computed=np.dtype(bool))
            total = self.computed("add", shape, total, one)
        return self.computed("maximum", shape, total, 1.0)

    def sizes(self) -> Any:
        """How many elements that are not padding each window has."""
        counts = covered(self.windows)
        if all((count == count[0]).all() for count in counts):
            return float(prod(int(count[0]) for count in counts))
        return self.program.outside(np.ascontiguousarray(sizes(self.windows, self.dtype)))

    def spread(self, shares: Place, won: list[Any]) -> str:
        """The result: `shares`, each added at the places of its window that `won` names."""
        axes = len(self.windows.lengths)
        padded = dense(self.dtype, (*shares.shape[:-axes], *self.windows.padded), self.item)
        self.program.map("copy", (0.0,), padded, is_write=True)
        for view, chosen in zip(self.views(padded), won, strict=True):
            value = shares if chosen is True else self.computed("where", shares.shape, chosen, shares, 0.0)
            self.program.map("add", (view, value), view, is_write=True)
        self.program.places[self.item] = self.inner(padded)
        return ""
