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
        self.scalar_type = elementwise_ops.type_of(self.dtype)
        self.out, self.first, self.second, work = ir.operands
        self.weights = work
        self.inputs = ir.element_address(work, sizes[0], self.scalar_type)
        self.outputs = ir.element_address(work, sizes[0] + sizes[1], self.scalar_type)
        self.sizes = sizes

    # ------------------------------------------------------------------------------------------ the three operations

    def emit_forward(self) -> Value:
        """Emit the results of images and a kernel."""
        g, ir = self.g, self.ir
        if any((*g.before, *g.after)):
            self.emit_zeros(self.inputs, self.sizes[1])
        with ir.loop(0, g.groups) as group:
            self.emit_transpose((g.out_channels, g.depth), self.weights, self.address(self.second, (group.index, g.kernel_size)))
            with ir.loop(0, g.batch) as image:
                self._copy_padded(self.address(self.first, (image.index, g.groups * g.image_size), (group.index, g.image_size)))
                taps = prod(g.window) * g.out_channels
                axes = [
                    SumAxis(g.in_channels, 1, taps),
                    SumAxis(g.window[0], g.dilation[0] * g.padded[1] * g.in_channels, g.window[1] * g.out_channels),
                    SumAxis(g.window[1], g.dilation[1] * g.in_channels, g.out_channels),
                ]
                source = self.inputs, g.strides[0] * g.padded[1] * g.in_channels, g.strides[1] * g.in_channels
                target = self.outputs, g.counts[1] * g.out_channels, g.out_channels
                self._emit_pixels(g.counts, g.out_channels, source, self.weights, axes, target)
                result = self.address(self.out, (image.index, g.groups * g.result_size), (group.index, g.result_size))
                self.emit_transpose((prod(g.counts), g.out_channels), result, self.outputs)
        return ir.number(0, INT)

    def emit_input_gradient(self) -> Value:
        """Emit the cotangents of images, from cotangents of results and a kernel."""
        g, ir = self.g, self.ir
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        line = g.counts[1] + left + right
        if top + bottom + left + right:
            self.emit_zeros(self.inputs, self.sizes[1])
        taps, initial_flag = prod(g.window), ir.number(0, INT)
        with ir.loop(0, g.groups, 1, [initial_flag]) as group:
            with ir.loop(0, g.out_channels) as result:
                kernel = self.address(self.second, (group.index, g.kernel_size), (result.index, g.depth))
                self.emit_transpose((g.in_channels, taps), self.address(self.weights, (result.index, g.depth)), kernel)
            with ir.loop(0, g.batch, 1, group.current) as image:
                source = self.address(self.first, (image.index, g.groups * g.result_size), (group.index, g.result_size))
                self._transpose_padded(source, g.out_channels, g.counts, (top, left), line)
                for phase in product(g.phases(0), g.phases(1)):
                    self._emit_phase(phase, line, (top, left))
                target = self.address(self.out, (image.index, g.groups * g.image_size), (group.index, g.image_size))
                self.emit_transpose((prod(g.lengths), g.in_channels), target, self.outputs)
                is_non_finite = ir.call(non_finite_kernel(self.module, self.scalar_type, g.image_size, self.width), INT, target)
                image.next = [ir.binary("or", image.current[0], is_non_finite)]
            group.next = image.next
        return group.next[0]

    def _emit_phase(self, phase: tuple[Phase, Phase], line: int, before: Pair) -> None:
        """Emit the elements of an input gradient that belong to one phase."""
        g, ir = self.g, self.ir
        down, across = phase
        first_pixel = down.start * g.lengths[1] + across.start
        target = ir.element_address(self.outputs, first_pixel * g.in_channels, self.scalar_type)
        axes = [SumAxis(g.out_channels, 1, g.depth)]
        if down.taps and across.taps:
            spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
            axes.append(SumAxis(len(down.taps), down.step * line * g.out_channels, spacing[0] * g.window[1] * g.in_channels))
            axes.append(SumAxis(len(across.taps), across.step * g.out_channels, spacing[1] * g.in_channels))
            start = (down.first + before[0]) * line + across.first + before[1]
            a = ir.element_address(self.inputs, start * g.out_channels, self.scalar_type)
            b = ir.element_address(self.weights, (down.taps[0] * g.window[1] + across.taps[0]) * g.in_channels, self.scalar_type)
        else:  # no kernel position meets these elements, so nothing is read and the sums are 0
            axes, a, b = [SumAxis(0, 0, 0)], self.inputs, self.weights
        source_strides = line * g.out_channels, g.out_channels
        target_strides = g.strides[0] * g.lengths[1] * g.in_channels, g.strides[1] * g.in_channels
        counts = down.count, across.count

        def write(inner: ChannelConvolution, a: Value, b: Value, target: Value) -> None:
            inner._emit_pixels(counts, g.in_channels, (a, *source_strides), b, axes, (target, *target_strides))

        self.call_shared((counts, axes), write, a, b, target)

    def emit_kernel_gradient(self) -> Value:
        """Emit the cotangent of the kernel, from images and cotangents of results."""
        g, ir = self.g, self.ir
        if any((*g.before, *g.after)):
            self.emit_zeros(self.inputs, self.sizes[1])
        with ir.loop(0, g.groups) as group:
            self.emit_zeros(self.weights, g.kernel_size)
            with ir.loop(0, g.batch) as image:
                self._copy_padded(self.address(self.first, (image.index, g.groups * g.image_size), (group.index, g.image_size)))
                cotangent = self.address(self.second, (image.index, g.groups * g.result_size), (group.index, g.result_size))
                self.emit_transpose((g.out_channels, prod(g.counts)), self.outputs, cotangent)
                self._accumulate_kernel_gradient()
            self.emit_transpose((g.depth, g.out_channels), self.address(self.out, (group.index, g.kernel_size)), self.weights)
        count = g.groups * g.kernel_size
        return ir.call(non_finite_kernel(self.module, self.scalar_type, count, self.width), INT, self.out)

    def _accumulate_kernel_gradient(self) -> None:
        """Add the contribution of one image to the cotangent of the kernel."""
        g, taps = self.g, prod(self.g.window)
        axes = [  # of the kernel: the length, and the strides of the inputs and of the result
            (g.in_channels, 1, taps * g.out_channels),
            (g.window[0], g.dilation[0] * g.padded[1] * g.in_channels, g.window[1] * g.out_channels),
            (g.window[1], g.dilation[1] * g.in_channels, g.out_channels),
        ]
        sum_axes = [
            SumAxis(g.counts[0], g.strides[0] * g.padded[1] * g.in_channels, g.counts[1] * g.out_channels),
            SumAxis(g.counts[1], g.strides[1] * g.in_channels, g.out_channels),
        ]
        for part, start, vector_type in self._channel_blocks(g.out_channels):
            b, max_rows = self.address(self.outputs, (start, 1)), max_tile_rows(len(part.within), self.width)
            if g.depth <= MAX_UNROLLED_ROWS:
                offsets = [(0, 0)]
                for length, stride_a, stride_out in axes:
                    offsets = [(i + k * stride_a, j + k * stride_out) for i, j in offsets for k in range(length)]
                size = -(-len(offsets) // -(-len(offsets) // max_rows))
                for k in range(0, len(offsets), size):
                    rows_a, rows_out = zip(*offsets[k : k + size], strict=True)
                    tile_sums = accumulate_tile(self.ir, vector_type, self.inputs, b, rows_a, part.within, sum_axes)
                    self._add_tile(tile_sums, self.address(self.weights, (start, 1)), rows_out, part.within)
                continue
            axes.sort(key=lambda axis: axis[0])
            (length, stride_a, stride_out), others = axes[-1], axes[:-1]
            with self.ir.loop(0, others[0][0]) as outer, self.ir.loop(0, others[1][0]) as inner:
                indices = outer.index, inner.index
                terms_a = [(index, axis[1]) for index, axis in zip(indices, others, strict=True)]
                terms_out = [(index, axis[2]) for index, axis in zip(indices, others, strict=True)]
                for rows_part in row_blocks(length, max_rows):
                    for row in block_starts(self.ir, rows_part):
                        a = self.address(self.inputs, (row, stride_a), *terms_a)
                        rows_a = tuple(k * stride_a for k in rows_part.within)
                        tile_sums = accumulate_tile(self.ir, vector_type, a, b, rows_a, part.within, sum_axes)
                        out = self.address(self.weights, (row, stride_out), *terms_out, (start, 1))
                        self._add_tile(tile_sums, out, [k * stride_out for k in rows_part.within], part.within)

    # ------------------------------------------------------------------------------------------ parts

    def call_shared(self, key: tuple[Any, ...], write: Callable[..., None], *addresses: Value) -> None:
        """Emit a call of a function of some addresses; `write` emits the function on the first use of a key."""
        name = f"{self.ir.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"

        def make() -> None:
            inner = copy.copy(self)
            inner.ir = self.module.function(name, None, [POINTER] * len(addresses), "noinline")
            write(inner, *inner.ir.operands)
            inner.ir.ret()

        self.ir.call_void(self.module.define_once(name, make), *addresses)

    def _channel_blocks(self, length: int) -> Iterator[tuple[Blocks, Value, Type]]:
        """Emit loops over blocks of channels; yield the blocks, the first channel, and the type of a vector."""
        lanes = lanes_for(length, self.dtype.itemsize, self.width)
        for part in column_blocks(length, lanes, self.width):
            for start in block_starts(self.ir, part):
                yield part, start, self.scalar_type.with_lanes(lanes)

    def _emit_pixels(
        self,
        counts: Pair,
        length: int,
        source: tuple[Value, int, int],
        weights: Value,
        axes: Sequence[SumAxis],
        target: tuple[Value, int, int],
    ) -> None:
        """Emit the sums for all pixels of an image, and a number of channels.

        Parameters
        ----------
        counts : tuple of int
            The rows and columns of the image.
        length : int
            The channels.
        source, target : tuple of Value and int
            The address of the first pixel, and the strides of rows and columns.
        weights : Value
            The address of the weights.
        axes : sequence of SumAxis
            The axes of the sum.
        """
        ir = self.ir
        for part, start, vector_type in self._channel_blocks(length):
            max_pixels = max_tile_rows(len(part.within), self.width)
            max_lines = max(1, min(max_pixels // counts[1], counts[0]))  # a tile has several short lines
            for down in row_blocks(counts[0], max_lines):
                for line in block_starts(ir, down):
                    for across in row_blocks(counts[1], max_pixels):
                        for pixel in block_starts(ir, across):
                            positions = list(product(down.within, across.within))
                            a = self.address(source[0], (line, source[1]), (pixel, source[2]))
                            b = self.address(weights, (start, 1))
                            out = self.address(target[0], (line, target[1]), (pixel, target[2]), (start, 1))
                            rows_a = [i * source[1] + j * source[2] for i, j in positions]
                            rows_out = [i * target[1] + j * target[2] for i, j in positions]
                            tile_sums = accumulate_tile(ir, vector_type, a, b, rows_a, part.within, axes)
                            store_tile(ir, tile_sums, out, rows_out, part.within)

    def _add_tile(self, tile_sums: list[list[Value]], target: Value, rows: Sequence[int], columns: Sequence[int]) -> None:
        """Add the sums of a tile to the values in memory."""
        ir, size = self.ir, self.dtype.itemsize
        for row, vectors in zip(rows, tile_sums, strict=True):
            for k, (column, vector) in enumerate(zip(columns, vectors, strict=True)):
                old = ir.load(ir.element_address(target, row + column, self.scalar_type), vector.type, size)
                vectors[k] = ir.binary("fadd", old, vector)
        store_tile(ir, tile_sums, target, rows, columns)

    def _copy_padded(self, image: Value) -> None:
        """Copy an image with adjacent channels and zero padding."""
        self._transpose_padded(image, self.g.in_channels, self.g.lengths, self.g.before, self.g.padded[1])

    def _transpose_padded(self, image: Value, channels: int, lengths: Pair, before: Pair, line: int) -> None:
        """Copy an image with adjacent channels into zero padding, whose lines have a length."""
        (h, w), offset = lengths, (before[0] * line + before[1]) * channels
        target = self.ir.element_address(self.inputs, offset, self.scalar_type)
        if line == w:
            self.emit_transpose((channels, h * w), target, image)
            return
        name = transpose_kernel(self.module, self.scalar_type, (channels, w), h * w, channels, self.width)
        with self.ir.loop(0, h) as loop:
            self.ir.call_void(name, self.address(target, (loop.index, line * channels)), self.address(image, (loop.index, w)))

    def emit_transpose(self, shape: Pair, target: Value, source: Value) -> None:
        """Emit the transposition of a dense matrix."""
        self.ir.call_void(transpose_kernel(self.module, self.scalar_type, shape, shape[1], shape[0], self.width), target, source)

    def emit_zeros(self, target: Value, count: int) -> None:
        """Emit a fill of memory with zeros."""
        name = self.module.declare("llvm.memset.p0.i64", None, [POINTER, BYTE, LONG, BIT])
        ir = self.ir
        ir.call_void(name, target, ir.number(0, BYTE), ir.number(count * self.dtype.itemsize, LONG), ir.number(0, BIT))

    def address(self, base: Value, *terms: tuple[Value, int]) -> Value:
        """Return an address plus indices times constants."""
        return offset_address(self.ir, base, self.scalar_type, *terms)


MIN_ACCUMULATORS = 12  # accumulators, to hide the latency of fma


class RowConvolution(ChannelConvolution):
    """Emits the body of a function that computes a step along rows; see `convolution_kernel`."""

    def emit_forward(self) -> Value:
        """Emit the results of images and a kernel."""
        g, ir = self.g, self.ir
        (height, line), taps = g.padded, prod(g.window)
        is_padded = any((*g.before, *g.after))
        if is_padded:
            self.emit_zeros(self.inputs, self.sizes[1])
        axes = [
            SumAxis(g.in_channels, taps, height * line),
            SumAxis(g.window[0], g.window[1], g.dilation[0] * line),
            SumAxis(g.window[1], 1, g.dilation[1]),
        ]
        with ir.loop(0, g.groups) as group, ir.loop(0, g.batch) as image:
            source = self.address(self.first, (image.index, g.groups * g.image_size), (group.index, g.image_size))
            if is_padded:
                self._copy_into_padding(source, g.in_channels, g.lengths, g.before, g.padded)
                source = self.inputs
            kernel = self.address(self.second, (group.index, g.kernel_size))
            target = self.address(self.out, (image.index, g.groups * g.result_size), (group.index, g.result_size))
            sizes = g.counts, g.out_channels, g.depth, prod(g.counts)
            self._emit_rows(*sizes, kernel, (source, g.strides[0] * line), axes, (target, g.counts[1]))
        return ir.number(0, INT)

    def emit_input_gradient(self) -> Value:
        """Emit the cotangents of images, from cotangents of results and a kernel."""
        g, ir, scalar_type = self.g, self.ir, self.scalar_type
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        padded = g.counts[0] + top + bottom, g.counts[1] + left + right
        is_padded = padded != g.counts
        if is_padded:
            self.emit_zeros(self.inputs, self.sizes[1])
        with ir.loop(0, g.groups, 1, [ir.number(0, INT)]) as group:
            with ir.loop(0, g.batch, 1, group.current) as image:
                source = self.address(self.first, (image.index, g.groups * g.result_size), (group.index, g.result_size))
                if is_padded:
                    self._copy_into_padding(source, g.out_channels, g.counts, (top, left), padded)
                    source = self.inputs
                target = self.address(self.out, (image.index, g.groups * g.image_size), (group.index, g.image_size))
                kernel = self.address(self.second, (group.index, g.kernel_size))
                for phase in product(g.phases(0), g.phases(1)):
                    self._emit_phase_rows(phase, kernel, source, padded, (top, left), target)
                is_non_finite = ir.call(non_finite_kernel(self.module, scalar_type, g.image_size, self.width), INT, target)
                image.next = [ir.binary("or", image.current[0], is_non_finite)]
            group.next = image.next
        return group.next[0]

    def _emit_phase_rows(
        self, phase: tuple[Phase, Phase], kernel: Value, source: Value, padded: Pair, before: Pair, image: Value
    ) -> None:
        """Emit the elements of an input gradient that belong to one phase."""
        g, ir = self.g, self.ir
        (down, across), (height, line) = phase, padded
        spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
        axes = [
            SumAxis(g.out_channels, g.depth, height * line),
            SumAxis(len(down.taps), spacing[0] * g.window[1], down.step * line),
            SumAxis(len(across.taps), spacing[1], across.step),
        ]
        if down.taps and across.taps:
            kernel = ir.element_address(kernel, down.taps[0] * g.window[1] + across.taps[0], self.scalar_type)
            source = ir.element_address(source, (down.first + before[0]) * line + across.first + before[1], self.scalar_type)
        target = ir.element_address(image, down.start * g.lengths[1] + across.start, self.scalar_type)
        sizes = (down.count, across.count), g.in_channels, prod(g.window), prod(g.lengths)

        def write(inner: RowConvolution, kernel: Value, source: Value, target: Value) -> None:
            inner._emit_rows(*sizes, kernel, (source, line), axes, (target, g.strides[0] * g.lengths[1]), g.strides[1])

        self.call_shared((sizes, axes), write, kernel, source, target)

    def _emit_rows(
        self, counts: Pair, length: int, kernel_stride: int, plane: int, kernel: Value, source: tuple[Value, int],
        axes: Sequence[SumAxis], target: tuple[Value, int], step: int = 1,
    ) -> None:  # fmt: skip
        """Emit the sums for all rows of all channels of an image.

        Parameters
        ----------
        counts : tuple of int
            The number of rows, and their length.
        length : int
            The channels.
        kernel_stride, plane : int
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
        vector_type, min_vectors = self.scalar_type.with_lanes(lanes), max(2, MIN_ACCUMULATORS // length)
        for part in column_blocks_of(counts[1], lanes, min_vectors):
            max_lines = max(1, min(counts[0], min_vectors // len(part.within)))
            for down in row_blocks(counts[0], max_lines):
                vectors = [(k * source[1] + s, k * target[1] + s * step) for k in down.within for s in part.within]
                source_vectors, target_vectors = [v for v, _ in vectors], [v for _, v in vectors]
                max_channels = max(1, max_tile_rows(len(vectors), self.width))
                for line in block_starts(ir, down):
                    for start in block_starts(ir, part):
                        b = self.address(source[0], (line, source[1]), (start, 1))
                        first_channel = self.address(target[0], (line, target[1]), (start, step))
                        for channels in row_blocks(length, max_channels):
                            for channel in block_starts(ir, channels):
                                a = self.address(kernel, (channel, kernel_stride))
                                rows_a = [k * kernel_stride for k in channels.within]
                                tile_sums = accumulate_tile(ir, vector_type, a, b, rows_a, source_vectors, axes)
                                out = self.address(first_channel, (channel, plane))
                                store_tile(ir, tile_sums, out, [k * plane for k in channels.within], target_vectors, step)

    def _copy_into_padding(self, image: Value, planes: int, lengths: Pair, before: Pair, padded: Pair) -> None:
        """Copy an image into zero padding."""
        (h, w), (height, line) = lengths, padded
        name = transpose_kernel(self.module, self.scalar_type, (1, w), w, 1, self.width)
        first = self.ir.element_address(self.inputs, before[0] * line + before[1], self.scalar_type)
        with self.ir.loop(0, planes) as plane, self.ir.loop(0, h) as loop:
            target = self.address(first, (plane.index, height * line), (loop.index, line))
            self.ir.call_void(name, target, self.address(image, (plane.index, h * w), (loop.index, w)))


def convolution_kernel(module: Module, step: Convolution, width: int) -> str:
    """Return the name of a function that computes a step; its arguments are the addresses of its result and operands.

    It returns 1 if the result may differ from NumPy's: a result that is not finite may contain products of inf or nan with
    padding, and NumPy's code skips some of these products.
    """
    type = elementwise_ops.type_of(step.out.buffer.dtype)
    shape = "_".join(str(n) for part in astuple(step.geometry) for n in (part if isinstance(part, tuple) else (part,)))
    name = f".convolution_{step.kind}_{type.mangled}_{shape}"

    def write() -> None:
        ir = module.function(name, INT, [POINTER] * 4, "noinline")
        emitter_class = RowConvolution if _vectorizes_rows(step, width) else ChannelConvolution
        emitter = emitter_class(ir, step, step.geometry.scratch_sizes(step.kind), width)
        emit = {"forward": emitter.emit_forward, "back": emitter.emit_input_gradient, "kernel": emitter.emit_kernel_gradient}
        ir.ret(emit[step.kind]())

    return module.define_once(name, write)


def _vectorizes_rows(step: Convolution, width: int) -> bool:
    """Return whether vectors are longer along rows than along channels."""
    g, size = step.geometry, step.out.buffer.dtype.itemsize
    if step.kind == "kernel" or (step.kind == "forward" and g.strides[1] != 1):
        return False
    channels, line = (g.out_channels, g.counts[1]) if step.kind == "forward" else (g.in_channels, g.lengths[1] // g.strides[1])
    return lanes_for(max(line, 1), size, width) > lanes_for(channels, size, width)
