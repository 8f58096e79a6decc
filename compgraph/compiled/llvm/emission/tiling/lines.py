"""Convolutions with vectors along the lines of images, where there are few channels.

The numbers of the kernel are read as they lie, and so are images, but for the zeros around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ...code import INT, Value
from ...geometry import Pair, Phase
from .channels import Channels
from .tiles import Along, blocks, columns_by, lanes_for, most_rows, rows, stored, summed
from .transposition import not_finite, transposition

SUMS = 12  # in registers, at least: each takes some cycles, and as many others begin meanwhile


class Lines(Channels):
    """Writes the body of a function that does a step; see `convolution`."""

    def forward(self) -> Value:
        """Images, a kernel -> results."""
        g, code = self.g, self.code
        (height, line), taps = g.padded, prod(g.window)
        is_padded = any((*g.before, *g.after))
        if is_padded:
            self.zeros(self.inputs, self.sizes[1])
        axes = [
            Along(g.channels, taps, height * line),
            Along(g.window[0], g.window[1], g.dilation[0] * line),
            Along(g.window[1], 1, g.dilation[1]),
        ]
        with code.loop(0, g.groups) as group, code.loop(0, g.batch) as image:
            source = self.at(self.first, (image.index, g.groups * g.image), (group.index, g.image))
            if is_padded:
                self._copied(source, g.channels, g.lengths, g.before, g.padded)
                source = self.inputs
            kernel = self.at(self.second, (group.index, g.results * g.depth))
            target = self.at(self.out, (image.index, g.groups * g.result), (group.index, g.result))
            sizes = g.counts, g.results, g.depth, prod(g.counts)
            self._sums(*sizes, kernel, (source, g.strides[0] * line), axes, (target, g.counts[1]))
        return code.number(0, INT)

    def back(self) -> Value:
        """Adjoints of results, a kernel -> those of images."""
        g, code, one = self.g, self.code, self.one
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        padded = g.counts[0] + top + bottom, g.counts[1] + left + right
        is_padded = padded != g.counts
        if is_padded:
            self.zeros(self.inputs, self.sizes[1])
        with code.loop(0, g.groups, 1, [code.number(0, INT)]) as group:
            with code.loop(0, g.batch, 1, group.now) as image:
                source = self.at(self.first, (image.index, g.groups * g.result), (group.index, g.result))
                if is_padded:
                    self._copied(source, g.results, g.counts, (top, left), padded)
                    source = self.inputs
                whole = self.at(self.out, (image.index, g.groups * g.image), (group.index, g.image))
                kernel = self.at(self.second, (group.index, g.results * g.depth))
                for phase in product(g.phases(0), g.phases(1)):
                    self._phase_by_lines(phase, kernel, source, padded, (top, left), whole)
                wrong = code.call(not_finite(self.module, one, g.image, self.width), INT, whole)
                image.then = [code.binary("or", image.now[0], wrong)]
            group.then = image.then
        return group.then[0]

    def _phase_by_lines(
        self, phase: tuple[Phase, Phase], kernel: Value, source: Value, padded: Pair, before: Pair, whole: Value
    ) -> None:
        """The elements of an image that meet the kernel at the same places."""
        g, code = self.g, self.code
        (down, across), (height, line) = phase, padded
        spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
        axes = [
            Along(g.results, g.depth, height * line),
            Along(len(down.taps), spacing[0] * g.window[1], down.step * line),
            Along(len(across.taps), spacing[1], across.step),
        ]
        if down.taps and across.taps:
            kernel = code.at(kernel, down.taps[0] * g.window[1] + across.taps[0], self.one)
            source = code.at(source, (down.first + before[0]) * line + across.first + before[1], self.one)
        target = code.at(whole, down.start * g.lengths[1] + across.start, self.one)
        sizes = (down.count, across.count), g.channels, prod(g.window), prod(g.lengths)

        def write(inner: Lines, kernel: Value, source: Value, target: Value) -> None:
            inner._sums(*sizes, kernel, (source, line), axes, (target, g.strides[0] * g.lengths[1]), g.strides[1])

        self.shared((sizes, axes), write, kernel, source, target)

    def _sums(
        self, counts: Pair, length: int, per_row: int, plane: int, kernel: Value, source: tuple[Value, int],
        axes: Sequence[Along], target: tuple[Value, int], step: int = 1,
    ) -> None:  # fmt: skip
        """Write the sums for all lines of all channels of an image.

        Parameters
        ----------
        counts : tuple of int
            Lines, and the length of each.
        length : int
            The channels.
        per_row, plane : int
            By how many elements a channel lies behind that before it, in the kernel and in the result.
        kernel : Value
            The address of the kernel.
        source, target : tuple of Value and int
            Where the first line is read, and where it goes; and by how many elements the next lies behind it.
        axes : sequence of Along
            What is summed along.
        step : int
            By how many elements the next of a line of the result lies behind one.
        """
        code, lanes = self.code, lanes_for(counts[1], self.dtype.itemsize, self.width)
        kind, fewest = self.one.with_lanes(lanes), max(2, SUMS // length)
        for part in columns_by(counts[1], lanes, fewest):
            lines = max(1, min(counts[0], fewest // len(part.within)))
            for down in rows(counts[0], lines):
                vectors = [(k * source[1] + s, k * target[1] + s * step) for k in down.within for s in part.within]
                most = max(1, most_rows(len(vectors), self.width))
                for line in blocks(code, down):
                    for start in blocks(code, part):
                        b = self.at(source[0], (line, source[1]), (start, 1))
                        to = self.at(target[0], (line, target[1]), (start, step))
                        for channels in rows(length, most):
                            for channel in blocks(code, channels):
                                a = self.at(kernel, (channel, per_row))
                                numbers = [k * per_row for k in channels.within]
                                found = summed(code, kind, a, b, numbers, [v for v, _ in vectors], axes)
                                places = [k * plane for k in channels.within]
                                stored(code, found, self.at(to, (channel, plane)), places, [v for _, v in vectors], step)

    def _copied(self, image: Value, planes: int, lengths: Pair, before: Pair, padded: Pair) -> None:
        """Copy an image into the zeros around it."""
        (h, w), (height, line) = lengths, padded
        name = transposition(self.module, self.one, (1, w), w, 1, self.width)
        to = self.code.at(self.inputs, before[0] * line + before[1], self.one)
        with self.code.loop(0, planes) as plane, self.code.loop(0, h) as loop:
            target = self.at(to, (plane.index, height * line), (loop.index, line))
            self.code.run(name, target, self.at(image, (plane.index, h * w), (loop.index, w)))
