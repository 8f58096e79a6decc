"""Convolutions with vectors along the channels.

Each operation is a product of matrices whose columns are channels: so vectors are full whatever the lengths, the steps and the
padding of the images are. An image is copied so that its channels lie next to each other, with zeros around it; its windows are
then never copied, only looked at (E. Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
architectures", 2018). The copies of one image stay in the cache.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from ... import elementwise
from ...code import BIT, BYTE, INT, LONG, POINTER, Code, Type, Value
from ...geometry import Pair, Phase
from ...steps import Convolution
from .tiles import Along, Part, behind, blocks, columns, lanes_for, most_rows, rows, stored, summed
from .transposition import not_finite, transposition

WRITTEN_OUT = 64  # rows of tiles at places of their own, which need code of their own


class Channels:
    """Writes the body of a function that does a step; see `convolution`."""

    def __init__(self, code: Code, step: Convolution, sizes: tuple[int, int, int], width: int) -> None:
        self.code, self.module, self.g, self.width = code, code.module, step.geometry, width
        self.dtype = step.out.buffer.dtype
        self.one = elementwise.type_of(self.dtype)
        self.out, self.first, self.second, work = code.operands
        self.weights = work
        self.inputs = code.at(work, sizes[0], self.one)
        self.outputs = code.at(work, sizes[0] + sizes[1], self.one)
        self.sizes = sizes

    # ------------------------------------------------------------------------------------------ the three

    def forward(self) -> Value:
        """Images, a kernel -> results."""
        g, code = self.g, self.code
        if any((*g.before, *g.after)):
            self.zeros(self.inputs, self.sizes[1])
        with code.loop(0, g.groups) as group:
            self.transposed((g.results, g.depth), self.weights, self.at(self.second, (group.index, g.results * g.depth)))
            with code.loop(0, g.batch) as image:
                self._padded(self.at(self.first, (image.index, g.groups * g.image), (group.index, g.image)))
                taps = prod(g.window) * g.results
                axes = [
                    Along(g.channels, 1, taps),
                    Along(g.window[0], g.dilation[0] * g.padded[1] * g.channels, g.window[1] * g.results),
                    Along(g.window[1], g.dilation[1] * g.channels, g.results),
                ]
                steps = g.strides[0] * g.padded[1] * g.channels, g.strides[1] * g.channels
                to = g.counts[1] * g.results, g.results
                self._pixels(g.counts, g.results, (self.inputs, *steps), self.weights, axes, (self.outputs, *to))
                at = self.at(self.out, (image.index, g.groups * g.result), (group.index, g.result))
                self.transposed((prod(g.counts), g.results), at, self.outputs)
        return code.number(0, INT)

    def back(self) -> Value:
        """Adjoints of results, a kernel -> those of images."""
        g, code = self.g, self.code
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        line = g.counts[1] + left + right
        if top + bottom + left + right:
            self.zeros(self.inputs, self.sizes[1])
        taps, found = prod(g.window), code.number(0, INT)
        with code.loop(0, g.groups, 1, [found]) as group:
            with code.loop(0, g.results) as result:
                at = self.at(self.second, (group.index, g.results * g.depth), (result.index, g.depth))
                self.transposed((g.channels, taps), self.at(self.weights, (result.index, g.depth)), at)
            with code.loop(0, g.batch, 1, group.now) as image:
                at = self.at(self.first, (image.index, g.groups * g.result), (group.index, g.result))
                self._laid(at, g.results, g.counts, (top, left), line)
                for phase in product(g.phases(0), g.phases(1)):
                    self._phase(phase, line, (top, left))
                at = self.at(self.out, (image.index, g.groups * g.image), (group.index, g.image))
                self.transposed((prod(g.lengths), g.channels), at, self.outputs)
                wrong = code.call(not_finite(self.module, self.one, g.image, self.width), INT, at)
                image.then = [code.binary("or", image.now[0], wrong)]
            group.then = image.then
        return group.then[0]

    def _phase(self, phase: tuple[Phase, Phase], line: int, before: Pair) -> None:
        """The elements of an image that meet the kernel at the same places."""
        g, code = self.g, self.code
        down, across = phase
        to = down.start * g.lengths[1] + across.start, g.strides[0] * g.lengths[1], g.strides[1]
        target = code.at(self.outputs, to[0] * g.channels, self.one)
        axes = [Along(g.results, 1, g.depth)]
        if down.taps and across.taps:
            spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
            axes.append(Along(len(down.taps), down.step * line * g.results, spacing[0] * g.window[1] * g.channels))
            axes.append(Along(len(across.taps), across.step * g.results, spacing[1] * g.channels))
            start = (down.first + before[0]) * line + across.first + before[1]
            a = code.at(self.inputs, start * g.results, self.one)
            b = code.at(self.weights, (down.taps[0] * g.window[1] + across.taps[0]) * g.channels, self.one)
        else:  # none meets it
            axes, a, b = [Along(0, 0, 0)], self.inputs, self.weights  # nothing is read
        steps, places = (line * g.results, g.results), (to[1] * g.channels, to[2] * g.channels)
        counts = down.count, across.count

        def write(inner: Channels, a: Value, b: Value, target: Value) -> None:
            inner._pixels(counts, g.channels, (a, *steps), b, axes, (target, *places))

        self.shared((counts, axes), write, a, b, target)

    def kernel(self) -> Value:
        """Images, adjoints of results -> those of the kernel."""
        g, code = self.g, self.code
        if any((*g.before, *g.after)):
            self.zeros(self.inputs, self.sizes[1])
        with code.loop(0, g.groups) as group:
            self.zeros(self.weights, g.depth * g.results)
            with code.loop(0, g.batch) as image:
                self._padded(self.at(self.first, (image.index, g.groups * g.image), (group.index, g.image)))
                at = self.at(self.second, (image.index, g.groups * g.result), (group.index, g.result))
                self.transposed((g.results, prod(g.counts)), self.outputs, at)
                self._elements()
            self.transposed((g.depth, g.results), self.at(self.out, (group.index, g.results * g.depth)), self.weights)
        count = g.groups * g.results * g.depth
        return code.call(not_finite(self.module, self.one, count, self.width), INT, self.out)

    def _elements(self) -> None:
        """Add to the adjoints of the elements of a kernel what one image gives."""
        g, taps = self.g, prod(self.g.window)
        axes = [
            (g.channels, 1, taps * g.results),
            (g.window[0], g.dilation[0] * g.padded[1] * g.channels, g.window[1] * g.results),
            (g.window[1], g.dilation[1] * g.channels, g.results),
        ]
        along = [
            Along(g.counts[0], g.strides[0] * g.padded[1] * g.channels, g.counts[1] * g.results),
            Along(g.counts[1], g.strides[1] * g.channels, g.results),
        ]
        for part, start, kind in self._columns(g.results):
            b, most = self.at(self.outputs, (start, 1)), most_rows(len(part.within), self.width)
            if g.depth <= WRITTEN_OUT:
                every = [(0, 0)]
                for length, a, to in axes:
                    every = [(i + k * a, j + k * to) for i, j in every for k in range(length)]
                size = -(-len(every) // -(-len(every) // most))
                for k in range(0, len(every), size):
                    rows_a, rows_to = zip(*every[k : k + size], strict=True)
                    found = summed(self.code, kind, self.inputs, b, rows_a, part.within, along)
                    self._added(found, self.at(self.weights, (start, 1)), rows_to, part.within)
                continue
            axes.sort(key=lambda axis: axis[0])
            (n, a, to), others = axes[-1], axes[:-1]
            with self.code.loop(0, others[0][0]) as outer, self.code.loop(0, others[1][0]) as inner:
                indices = outer.index, inner.index
                for rows_part in rows(n, most):
                    for row in blocks(self.code, rows_part):
                        at = self.at(self.inputs, (row, a), *[(i, o[1]) for i, o in zip(indices, others, strict=True)])
                        found = summed(self.code, kind, at, b, [k * a for k in rows_part.within], part.within, along)
                        at = self.at(
                            self.weights, (row, to), *[(i, o[2]) for i, o in zip(indices, others, strict=True)], (start, 1)
                        )
                        self._added(found, at, [k * to for k in rows_part.within], part.within)

    # ------------------------------------------------------------------------------------------ parts of them

    def shared(self, key: Any, write: Callable[..., None], *addresses: Value) -> None:
        """Call a function of some addresses, that `write` writes if there is none of that key yet."""
        name = f"{self.code.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"

        def make() -> None:
            inner = copy.copy(self)
            inner.code = self.module.function(name, None, [POINTER] * len(addresses), "noinline")
            write(inner, *inner.code.operands)
            inner.code.give()

        self.code.run(self.module.made(name, make), *addresses)

    def _columns(self, length: int) -> Iterator[tuple[Part, Value, Type]]:
        """Write loops over blocks of channels."""
        lanes = lanes_for(length, self.dtype.itemsize, self.width)
        for part in columns(length, lanes, self.width):
            for start in blocks(self.code, part):
                yield part, start, self.one.with_lanes(lanes)

    def _pixels(
        self, counts: Pair, length: int, a: tuple[Value, int, int], b: Value, axes: Sequence[Along], to: tuple[Value, int, int]
    ) -> None:
        """Write the sums for all pixels of an image, and a number of channels.

        Parameters
        ----------
        counts : tuple of int
            Lines and pixels of a line.
        length : int
            The channels.
        a, to : tuple of Value and int
            Where the numbers of the first pixel lie, or go; and by how many elements those of the next line and of the next pixel
            lie behind them.
        b : Value
            The address of the weights.
        axes : sequence of Along
            What is summed along.
        """
        code = self.code
        for part, start, kind in self._columns(length):
            most = most_rows(len(part.within), self.width)
            lines = max(1, min(most // counts[1], counts[0]))  # several, if they are short
            for down in rows(counts[0], lines):
                for line in blocks(code, down):
                    for across in rows(counts[1], most):
                        for pixel in blocks(code, across):
                            places = list(product(down.within, across.within))
                            source = self.at(a[0], (line, a[1]), (pixel, a[2]))
                            target = self.at(to[0], (line, to[1]), (pixel, to[2]), (start, 1))
                            offsets = [i * a[1] + j * a[2] for i, j in places]
                            found = summed(code, kind, source, self.at(b, (start, 1)), offsets, part.within, axes)
                            stored(code, found, target, [i * to[1] + j * to[2] for i, j in places], part.within)

    def _added(self, found: list[list[Value]], at: Value, rows: Sequence[int], columns: Sequence[int]) -> None:
        code, size = self.code, self.dtype.itemsize
        for row, vectors in zip(rows, found, strict=True):
            for k, (column, vector) in enumerate(zip(columns, vectors, strict=True)):
                before = code.load(code.at(at, row + column, self.one), vector.type, size)
                vectors[k] = code.binary("fadd", before, vector)
        stored(code, found, at, rows, columns)

    def _padded(self, image: Value) -> None:
        """Copy an image so that its channels lie next to each other, with the zeros around it."""
        self._laid(image, self.g.channels, self.g.lengths, self.g.before, self.g.padded[1])

    def _laid(self, image: Value, channels: int, lengths: Pair, before: Pair, line: int) -> None:
        (h, w), to = lengths, self.code.at(self.inputs, (before[0] * line + before[1]) * channels, self.one)
        if line == w:
            self.transposed((channels, h * w), to, image)
            return
        name = transposition(self.module, self.one, (channels, w), h * w, channels, self.width)
        with self.code.loop(0, h) as loop:
            self.code.run(name, self.at(to, (loop.index, line * channels)), self.at(image, (loop.index, w)))

    def transposed(self, shape: Pair, to: Value, of: Value) -> None:
        """Write the transpose of a matrix of a shape, without gaps."""
        self.code.run(transposition(self.module, self.one, shape, shape[1], shape[0], self.width), to, of)

    def zeros(self, at: Value, count: int) -> None:
        """Write zeros."""
        name = self.module.declare("llvm.memset.p0.i64", None, [POINTER, BYTE, LONG, BIT])
        code = self.code
        code.run(name, at, code.number(0, BYTE), code.number(count * self.dtype.itemsize, LONG), code.number(0, BIT))

    def at(self, base: Value, *terms: tuple[Value, int]) -> Value:
        """The address as many elements behind another as indices times constants say."""
        return behind(self.code, base, self.one, *terms)
