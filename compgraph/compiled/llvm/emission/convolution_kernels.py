"""Convolution kernels, vectorized along the channels or along the rows of images.

Along channels, each operation is a product of matrices with channels as columns, so vectors are full for all lengths, strides
and paddings. An image is copied with adjacent channels and zero padding; its windows are read in place (E. Georganas et al.,
"Anatomy of high-performance deep learning convolutions on SIMD architectures", 2018). The copies of one image stay in the
cache. Along rows, for few channels, the kernel and unpadded images are read in place.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from itertools import product
from math import prod
from typing import Any

from .. import elementwise_ops
from ..buffer_ir import Convolution
from ..convolution_geometry import Pair, Phase
from ..ir_builder import BIT, BYTE, INT, LONG, POINTER, IRBuilder, Module, Type, Value
from .register_tiles import (
    Blocks,
    SumAxis,
    accumulate_tile,
    block_starts,
    column_blocks,
    column_blocks_of,
    lanes_for,
    max_tile_rows,
    non_finite_kernel,
    offset_address,
    row_blocks,
    store_tile,
    transpose_kernel,
)

MAX_UNROLLED_ROWS = 64  # rows of unrolled tiles with irregular offsets


class ChannelConvolution:
    """Emits the body of a function that computes a step; see `convolution_kernel`."""

    def __init__(self, ir: IRBuilder, step: Convolution, sizes: tuple[int, int, int], width: int) -> None:
        self.ir, self.module, self.g, self.width = ir, ir.module, step.geometry, width
        self.dtype = step.out.buffer.dtype
        self.one = elementwise_ops.type_of(self.dtype)
        self.out, self.first, self.second, work = ir.operands
        self.weights = work
        self.inputs = ir.element_address(work, sizes[0], self.one)
        self.outputs = ir.element_address(work, sizes[0] + sizes[1], self.one)
        self.sizes = sizes

    # ------------------------------------------------------------------------------------------ the three operations

    def forward(self) -> Value:
        """Images, a kernel -> results."""
        g, ir = self.g, self.ir
        if any((*g.before, *g.after)):
            self.zeros(self.inputs, self.sizes[1])
        with ir.loop(0, g.groups) as group:
            self.transposed((g.results, g.depth), self.weights, self.address(self.second, (group.index, g.results * g.depth)))
            with ir.loop(0, g.batch) as image:
                self._padded(self.address(self.first, (image.index, g.groups * g.image), (group.index, g.image)))
                taps = prod(g.window) * g.results
                axes = [
                    SumAxis(g.channels, 1, taps),
                    SumAxis(g.window[0], g.dilation[0] * g.padded[1] * g.channels, g.window[1] * g.results),
                    SumAxis(g.window[1], g.dilation[1] * g.channels, g.results),
                ]
                steps = g.strides[0] * g.padded[1] * g.channels, g.strides[1] * g.channels
                to = g.counts[1] * g.results, g.results
                self._pixels(g.counts, g.results, (self.inputs, *steps), self.weights, axes, (self.outputs, *to))
                at = self.address(self.out, (image.index, g.groups * g.result), (group.index, g.result))
                self.transposed((prod(g.counts), g.results), at, self.outputs)
        return ir.number(0, INT)

    def back(self) -> Value:
        """Cotangents of results, a kernel -> cotangents of images."""
        g, ir = self.g, self.ir
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        line = g.counts[1] + left + right
        if top + bottom + left + right:
            self.zeros(self.inputs, self.sizes[1])
        taps, initial_flag = prod(g.window), ir.number(0, INT)
        with ir.loop(0, g.groups, 1, [initial_flag]) as group:
            with ir.loop(0, g.results) as result:
                at = self.address(self.second, (group.index, g.results * g.depth), (result.index, g.depth))
                self.transposed((g.channels, taps), self.address(self.weights, (result.index, g.depth)), at)
            with ir.loop(0, g.batch, 1, group.current) as image:
                at = self.address(self.first, (image.index, g.groups * g.result), (group.index, g.result))
                self._transpose_padded(at, g.results, g.counts, (top, left), line)
                for phase in product(g.phases(0), g.phases(1)):
                    self._phase(phase, line, (top, left))
                at = self.address(self.out, (image.index, g.groups * g.image), (group.index, g.image))
                self.transposed((prod(g.lengths), g.channels), at, self.outputs)
                wrong = ir.call(non_finite_kernel(self.module, self.one, g.image, self.width), INT, at)
                image.next = [ir.binary("or", image.current[0], wrong)]
            group.next = image.next
        return group.next[0]

    def _phase(self, phase: tuple[Phase, Phase], line: int, before: Pair) -> None:
        """Emit one phase of an input gradient."""
        g, ir = self.g, self.ir
        down, across = phase
        to = down.start * g.lengths[1] + across.start, g.strides[0] * g.lengths[1], g.strides[1]
        target = ir.element_address(self.outputs, to[0] * g.channels, self.one)
        axes = [SumAxis(g.results, 1, g.depth)]
        if down.taps and across.taps:
            spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
            axes.append(SumAxis(len(down.taps), down.step * line * g.results, spacing[0] * g.window[1] * g.channels))
            axes.append(SumAxis(len(across.taps), across.step * g.results, spacing[1] * g.channels))
            start = (down.first + before[0]) * line + across.first + before[1]
            a = ir.element_address(self.inputs, start * g.results, self.one)
            b = ir.element_address(self.weights, (down.taps[0] * g.window[1] + across.taps[0]) * g.channels, self.one)
        else:  # no kernel position
            axes, a, b = [SumAxis(0, 0, 0)], self.inputs, self.weights  # no reads
        steps, places = (line * g.results, g.results), (to[1] * g.channels, to[2] * g.channels)
        counts = down.count, across.count

        def write(inner: ChannelConvolution, a: Value, b: Value, target: Value) -> None:
            inner._pixels(counts, g.channels, (a, *steps), b, axes, (target, *places))

        self.shared((counts, axes), write, a, b, target)

    def kernel(self) -> Value:
        """Images, cotangents of results -> cotangent of the kernel."""
        g, ir = self.g, self.ir
        if any((*g.before, *g.after)):
            self.zeros(self.inputs, self.sizes[1])
        with ir.loop(0, g.groups) as group:
            self.zeros(self.weights, g.depth * g.results)
            with ir.loop(0, g.batch) as image:
                self._padded(self.address(self.first, (image.index, g.groups * g.image), (group.index, g.image)))
                at = self.address(self.second, (image.index, g.groups * g.result), (group.index, g.result))
                self.transposed((g.results, prod(g.counts)), self.outputs, at)
                self._elements()
            self.transposed((g.depth, g.results), self.address(self.out, (group.index, g.results * g.depth)), self.weights)
        count = g.groups * g.results * g.depth
        return ir.call(non_finite_kernel(self.module, self.one, count, self.width), INT, self.out)

    def _elements(self) -> None:
        """Add the contribution of one image to the cotangent of the kernel."""
        g, taps = self.g, prod(self.g.window)
        axes = [
            (g.channels, 1, taps * g.results),
            (g.window[0], g.dilation[0] * g.padded[1] * g.channels, g.window[1] * g.results),
            (g.window[1], g.dilation[1] * g.channels, g.results),
        ]
        along = [
            SumAxis(g.counts[0], g.strides[0] * g.padded[1] * g.channels, g.counts[1] * g.results),
            SumAxis(g.counts[1], g.strides[1] * g.channels, g.results),
        ]
        for part, start, kind in self._columns(g.results):
            b, most = self.address(self.outputs, (start, 1)), max_tile_rows(len(part.within), self.width)
            if g.depth <= MAX_UNROLLED_ROWS:
                every = [(0, 0)]
                for length, a, to in axes:
                    every = [(i + k * a, j + k * to) for i, j in every for k in range(length)]
                size = -(-len(every) // -(-len(every) // most))
                for k in range(0, len(every), size):
                    rows_a, rows_to = zip(*every[k : k + size], strict=True)
                    tile_sums = accumulate_tile(self.ir, kind, self.inputs, b, rows_a, part.within, along)
                    self._added(tile_sums, self.address(self.weights, (start, 1)), rows_to, part.within)
                continue
            axes.sort(key=lambda axis: axis[0])
            (n, a, to), others = axes[-1], axes[:-1]
            with self.ir.loop(0, others[0][0]) as outer, self.ir.loop(0, others[1][0]) as inner:
                indices = outer.index, inner.index
                for rows_part in row_blocks(n, most):
                    for row in block_starts(self.ir, rows_part):
                        at = self.address(self.inputs, (row, a), *[(i, o[1]) for i, o in zip(indices, others, strict=True)])
                        tile_sums = accumulate_tile(self.ir, kind, at, b, [k * a for k in rows_part.within], part.within, along)
                        at = self.address(
                            self.weights, (row, to), *[(i, o[2]) for i, o in zip(indices, others, strict=True)], (start, 1)
                        )
                        self._added(tile_sums, at, [k * to for k in rows_part.within], part.within)

    # ------------------------------------------------------------------------------------------ parts

    def shared(self, key: Any, write: Callable[..., None], *addresses: Value) -> None:
        """Call a function of some addresses, which `write` emits on the first use of a key."""
        name = f"{self.ir.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"

        def make() -> None:
            inner = copy.copy(self)
            inner.ir = self.module.function(name, None, [POINTER] * len(addresses), "noinline")
            write(inner, *inner.ir.operands)
            inner.ir.ret()

        self.ir.call_void(self.module.define_once(name, make), *addresses)

    def _columns(self, length: int) -> Iterator[tuple[Blocks, Value, Type]]:
        """Emit loops over blocks of channels."""
        lanes = lanes_for(length, self.dtype.itemsize, self.width)
        for part in column_blocks(length, lanes, self.width):
            for start in block_starts(self.ir, part):
                yield part, start, self.one.with_lanes(lanes)

    def _pixels(
        self, counts: Pair, length: int, a: tuple[Value, int, int], b: Value, axes: Sequence[SumAxis], to: tuple[Value, int, int]
    ) -> None:
        """Emit the sums for all pixels of an image, and a number of channels.

        Parameters
        ----------
        counts : tuple of int
            The rows and columns of the image.
        length : int
            The channels.
        a, to : tuple of Value and int
            The address of the first pixel of the source and target, and the strides of rows and columns.
        b : Value
            The address of the weights.
        axes : sequence of SumAxis
            The axes of the sum.
        """
        ir = self.ir
        for part, start, kind in self._columns(length):
            most = max_tile_rows(len(part.within), self.width)
            lines = max(1, min(most // counts[1], counts[0]))  # several short rows
            for down in row_blocks(counts[0], lines):
                for line in block_starts(ir, down):
                    for across in row_blocks(counts[1], most):
                        for pixel in block_starts(ir, across):
                            places = list(product(down.within, across.within))
                            source = self.address(a[0], (line, a[1]), (pixel, a[2]))
                            target = self.address(to[0], (line, to[1]), (pixel, to[2]), (start, 1))
                            offsets = [i * a[1] + j * a[2] for i, j in places]
                            tile_sums = accumulate_tile(ir, kind, source, self.address(b, (start, 1)), offsets, part.within, axes)
                            store_tile(ir, tile_sums, target, [i * to[1] + j * to[2] for i, j in places], part.within)

    def _added(self, tile_sums: list[list[Value]], at: Value, rows: Sequence[int], columns: Sequence[int]) -> None:
        ir, size = self.ir, self.dtype.itemsize
        for row, vectors in zip(rows, tile_sums, strict=True):
            for k, (column, vector) in enumerate(zip(columns, vectors, strict=True)):
                before = ir.load(ir.element_address(at, row + column, self.one), vector.type, size)
                vectors[k] = ir.binary("fadd", before, vector)
        store_tile(ir, tile_sums, at, rows, columns)

    def _padded(self, image: Value) -> None:
        """Copy an image with adjacent channels and zero padding."""
        self._transpose_padded(image, self.g.channels, self.g.lengths, self.g.before, self.g.padded[1])

    def _transpose_padded(self, image: Value, channels: int, lengths: Pair, before: Pair, line: int) -> None:
        (h, w), to = lengths, self.ir.element_address(self.inputs, (before[0] * line + before[1]) * channels, self.one)
        if line == w:
            self.transposed((channels, h * w), to, image)
            return
        name = transpose_kernel(self.module, self.one, (channels, w), h * w, channels, self.width)
        with self.ir.loop(0, h) as loop:
            self.ir.call_void(name, self.address(to, (loop.index, line * channels)), self.address(image, (loop.index, w)))

    def transposed(self, shape: Pair, to: Value, of: Value) -> None:
        """Emit the transpose of a dense matrix."""
        self.ir.call_void(transpose_kernel(self.module, self.one, shape, shape[1], shape[0], self.width), to, of)

    def zeros(self, at: Value, count: int) -> None:
        """Emit zeros."""
        name = self.module.declare("llvm.memset.p0.i64", None, [POINTER, BYTE, LONG, BIT])
        ir = self.ir
        ir.call_void(name, at, ir.number(0, BYTE), ir.number(count * self.dtype.itemsize, LONG), ir.number(0, BIT))

    def address(self, base: Value, *terms: tuple[Value, int]) -> Value:
        """Return an address plus indices times constants."""
        return offset_address(self.ir, base, self.one, *terms)


MIN_ACCUMULATORS = 12  # accumulators, to hide the latency of fma


class RowConvolution(ChannelConvolution):
    """Emits the body of a function that computes a step along rows; see `convolution_kernel`."""

    def forward(self) -> Value:
        """Images, a kernel -> results."""
        g, ir = self.g, self.ir
        (height, line), taps = g.padded, prod(g.window)
        is_padded = any((*g.before, *g.after))
        if is_padded:
            self.zeros(self.inputs, self.sizes[1])
        axes = [
            SumAxis(g.channels, taps, height * line),
            SumAxis(g.window[0], g.window[1], g.dilation[0] * line),
            SumAxis(g.window[1], 1, g.dilation[1]),
        ]
        with ir.loop(0, g.groups) as group, ir.loop(0, g.batch) as image:
            source = self.address(self.first, (image.index, g.groups * g.image), (group.index, g.image))
            if is_padded:
                self._copied(source, g.channels, g.lengths, g.before, g.padded)
                source = self.inputs
            kernel = self.address(self.second, (group.index, g.results * g.depth))
            target = self.address(self.out, (image.index, g.groups * g.result), (group.index, g.result))
            sizes = g.counts, g.results, g.depth, prod(g.counts)
            self._sums(*sizes, kernel, (source, g.strides[0] * line), axes, (target, g.counts[1]))
        return ir.number(0, INT)

    def back(self) -> Value:
        """Cotangents of results, a kernel -> cotangents of images."""
        g, ir, one = self.g, self.ir, self.one
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        padded = g.counts[0] + top + bottom, g.counts[1] + left + right
        is_padded = padded != g.counts
        if is_padded:
            self.zeros(self.inputs, self.sizes[1])
        with ir.loop(0, g.groups, 1, [ir.number(0, INT)]) as group:
            with ir.loop(0, g.batch, 1, group.current) as image:
                source = self.address(self.first, (image.index, g.groups * g.result), (group.index, g.result))
                if is_padded:
                    self._copied(source, g.results, g.counts, (top, left), padded)
                    source = self.inputs
                whole = self.address(self.out, (image.index, g.groups * g.image), (group.index, g.image))
                kernel = self.address(self.second, (group.index, g.results * g.depth))
                for phase in product(g.phases(0), g.phases(1)):
                    self._phase_by_lines(phase, kernel, source, padded, (top, left), whole)
                wrong = ir.call(non_finite_kernel(self.module, one, g.image, self.width), INT, whole)
                image.next = [ir.binary("or", image.current[0], wrong)]
            group.next = image.next
        return group.next[0]

    def _phase_by_lines(
        self, phase: tuple[Phase, Phase], kernel: Value, source: Value, padded: Pair, before: Pair, whole: Value
    ) -> None:
        """Emit one phase of an input gradient."""
        g, ir = self.g, self.ir
        (down, across), (height, line) = phase, padded
        spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
        axes = [
            SumAxis(g.results, g.depth, height * line),
            SumAxis(len(down.taps), spacing[0] * g.window[1], down.step * line),
            SumAxis(len(across.taps), spacing[1], across.step),
        ]
        if down.taps and across.taps:
            kernel = ir.element_address(kernel, down.taps[0] * g.window[1] + across.taps[0], self.one)
            source = ir.element_address(source, (down.first + before[0]) * line + across.first + before[1], self.one)
        target = ir.element_address(whole, down.start * g.lengths[1] + across.start, self.one)
        sizes = (down.count, across.count), g.channels, prod(g.window), prod(g.lengths)

        def write(inner: RowConvolution, kernel: Value, source: Value, target: Value) -> None:
            inner._sums(*sizes, kernel, (source, line), axes, (target, g.strides[0] * g.lengths[1]), g.strides[1])

        self.shared((sizes, axes), write, kernel, source, target)

    def _sums(
        self, counts: Pair, length: int, per_row: int, plane: int, kernel: Value, source: tuple[Value, int],
        axes: Sequence[SumAxis], target: tuple[Value, int], step: int = 1,
    ) -> None:  # fmt: skip
        """Emit the sums for all rows of all channels of an image.

        Parameters
        ----------
        counts : tuple of int
            The number of rows, and their length.
        length : int
            The channels.
        per_row, plane : int
            The channel strides of the kernel and of the result.
        kernel : Value
            The address of the kernel.
        source, target : tuple of Value and int
            The addresses of the first row read and written, and the row strides.
        axes : sequence of SumAxis
            The axes of the sum.
        step : int
            The stride along a row of the result.
        """
        ir, lanes = self.ir, lanes_for(counts[1], self.dtype.itemsize, self.width)
        kind, fewest = self.one.with_lanes(lanes), max(2, MIN_ACCUMULATORS // length)
        for part in column_blocks_of(counts[1], lanes, fewest):
            lines = max(1, min(counts[0], fewest // len(part.within)))
            for down in row_blocks(counts[0], lines):
                vectors = [(k * source[1] + s, k * target[1] + s * step) for k in down.within for s in part.within]
                most = max(1, max_tile_rows(len(vectors), self.width))
                for line in block_starts(ir, down):
                    for start in block_starts(ir, part):
                        b = self.address(source[0], (line, source[1]), (start, 1))
                        to = self.address(target[0], (line, target[1]), (start, step))
                        for channels in row_blocks(length, most):
                            for channel in block_starts(ir, channels):
                                a = self.address(kernel, (channel, per_row))
                                numbers = [k * per_row for k in channels.within]
                                tile_sums = accumulate_tile(ir, kind, a, b, numbers, [v for v, _ in vectors], axes)
                                places = [k * plane for k in channels.within]
                                store_tile(
                                    ir, tile_sums, self.address(to, (channel, plane)), places, [v for _, v in vectors], step
                                )

    def _copied(self, image: Value, planes: int, lengths: Pair, before: Pair, padded: Pair) -> None:
        """Copy an image into zero padding."""
        (h, w), (height, line) = lengths, padded
        name = transpose_kernel(self.module, self.one, (1, w), w, 1, self.width)
        to = self.ir.element_address(self.inputs, before[0] * line + before[1], self.one)
        with self.ir.loop(0, planes) as plane, self.ir.loop(0, h) as loop:
            target = self.address(to, (plane.index, height * line), (loop.index, line))
            self.ir.call_void(name, target, self.address(image, (plane.index, h * w), (loop.index, w)))


def convolution_kernel(module: Module, step: Convolution, width: int) -> str:
    """Return the name of a function that computes a step; its arguments are the addresses of its result and operands.

    It returns 1 if the result may differ from NumPy's: products of inf or nan with padding differ, because NumPy's code skips
    some and adds others.
    """
    kind = elementwise_ops.type_of(step.out.buffer.dtype)
    shape = "_".join(str(n) for part in astuple(step.geometry) for n in (part if isinstance(part, tuple) else (part,)))
    name = f".convolution_{step.kind}_{kind.mangled}_{shape}"

    def write() -> None:
        ir = module.function(name, INT, [POINTER] * 4, "noinline")
        writer_class = RowConvolution if _vectorizes_rows(step, width) else ChannelConvolution
        writer = writer_class(ir, step, step.geometry.work_sizes(step.kind), width)
        ir.ret({"forward": writer.forward, "back": writer.back, "kernel": writer.kernel}[step.kind]())

    return module.define_once(name, write)


def _vectorizes_rows(step: Convolution, width: int) -> bool:
    """Return whether vectors are longer along rows than along channels."""
    g, size = step.geometry, step.out.buffer.dtype.itemsize
    if step.kind == "kernel" or (step.kind == "forward" and g.strides[1] != 1):
        return False
    channels, line = (g.results, g.counts[1]) if step.kind == "forward" else (g.channels, g.lengths[1] // g.strides[1])
    return lanes_for(max(line, 1), size, width) > lanes_for(channels, size, width)
