"""Convolution kernels, vectorized along the channels or along the rows of images.

Along channels, each operation is a product of matrices with channels as columns, so vectors are full for all lengths, strides
and paddings. An image is copied with adjacent channels and zero padding, and its windows are read from the copy (E. Georganas
et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures", 2018). The copies of one image stay in the
cache. Along rows, for few channels, the kernel and unpadded images are read without copies.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from itertools import product
from math import prod
from typing import Any, NamedTuple

from .. import elementwise_ops
from ..buffer_ir import Convolution
from ..convolution_geometry import Pair, Phase
from ..ir_builder import BIT, BYTE, INT, LONG, POINTER, IRBuilder, Module, Type, Value
from .register_tiles import (
    Blocks,
    PairedAxis,
    accumulate_tile,
    block_starts,
    column_blocks,
    lanes_for,
    max_tile_rows,
    non_finite_kernel,
    offset_address,
    paired_offsets,
    row_blocks,
    store_tile,
    transpose_kernel,
    vector_blocks,
)

MAX_UNROLLED_ROWS = 64  # rows of unrolled tiles with irregular offsets


class PixelGrid(NamedTuple):
    """The pixels of an image in memory.

    Attributes
    ----------
    address : Value
        The address of the first pixel.
    row_stride, column_stride : int
        The strides of rows and columns.
    """

    address: Value
    row_stride: int
    column_stride: int

    def offset(self, row: int, column: int) -> int:
        """Return the offset of a pixel."""
        return row * self.row_stride + column * self.column_stride


class ChannelConvolution:
    """Emits the body of a function that computes a step along channels; see `convolution_kernel`.

    Attributes
    ----------
    out, first_operand, second_operand : Value
        The addresses of the result and of the operands.
    weights, inputs, outputs : Value
        The addresses of scratch memory with adjacent channels: for the kernel, the padded image that is read, and the image that
        is written or, for the gradient of the kernel, the cotangents of results.
    """

    def __init__(self, ir: IRBuilder, step: Convolution, width: int) -> None:
        self.ir, self.module, self.geometry, self.width = ir, ir.module, step.geometry, width
        self.dtype = step.out.buffer.dtype
        self.scalar_type = elementwise_ops.type_of(self.dtype)
        self.out, self.first_operand, self.second_operand, scratch = ir.operands
        kernel_size, self.input_size, _ = step.geometry.scratch_sizes(step.kind)
        self.weights = scratch
        self.inputs = ir.element_address(scratch, kernel_size, self.scalar_type)
        self.outputs = ir.element_address(scratch, kernel_size + self.input_size, self.scalar_type)

    # ------------------------------------------------------------------------------------------ the three operations

    def emit_forward(self) -> Value:
        """Emit the cross-correlation of images with a kernel."""
        g, ir = self.geometry, self.ir
        self.clear_padding(any((*g.before, *g.after)))
        source = PixelGrid(self.inputs, g.strides[0] * g.padded[1] * g.in_channels, g.strides[1] * g.in_channels)
        target = PixelGrid(self.outputs, g.counts[1] * g.out_channels, g.out_channels)
        with ir.loop(0, g.groups) as group:
            kernel = self.address(self.second_operand, (group.index, g.kernel_size))
            self.emit_transpose((g.out_channels, g.depth), self.weights, kernel)
            with ir.loop(0, g.batch) as image:
                self._copy_padded(self.image_address(self.first_operand, image.index, group.index, g.image_size))
                self._emit_pixels(g.counts, g.out_channels, source, self.weights, self._kernel_axes(), target)
                result = self.image_address(self.out, image.index, group.index, g.result_size)
                self.emit_transpose((prod(g.counts), g.out_channels), result, self.outputs)
        return ir.number(0, INT)

    def emit_input_gradient(self) -> Value:
        """Emit the cotangents of images, from cotangents of results and a kernel."""
        g, ir = self.geometry, self.ir
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        row_length = g.counts[1] + left + right
        self.clear_padding(any((top, bottom, left, right)))
        tap_count = prod(g.window)
        with ir.loop(0, g.groups, 1, [ir.number(0, INT)]) as group:
            with ir.loop(0, g.out_channels) as result:
                kernel = self.address(self.second_operand, (group.index, g.kernel_size), (result.index, g.depth))
                self.emit_transpose((g.in_channels, tap_count), self.address(self.weights, (result.index, g.depth)), kernel)
            with ir.loop(0, g.batch, 1, group.current) as image:
                source = self.image_address(self.first_operand, image.index, group.index, g.result_size)
                self._transpose_padded(source, g.out_channels, g.counts, (top, left), row_length)
                for phase in product(g.phases(0), g.phases(1)):
                    self._emit_phase(phase, row_length, (top, left))
                target = self.image_address(self.out, image.index, group.index, g.image_size)
                self.emit_transpose((prod(g.lengths), g.in_channels), target, self.outputs)
                image.next = [ir.binary("or", image.current[0], self.is_non_finite(target, g.image_size))]
            group.next = image.next
        return group.next[0]

    def _emit_phase(self, phase: tuple[Phase, Phase], row_length: int, before: Pair) -> None:
        """Emit the elements of an input gradient that belong to one phase."""
        g, ir = self.geometry, self.ir
        down, across = phase
        first_pixel = down.start * g.lengths[1] + across.start
        target = ir.element_address(self.outputs, first_pixel * g.in_channels, self.scalar_type)
        axes = [PairedAxis(g.out_channels, 1, g.depth)]
        if down.taps and across.taps:
            spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
            row_spacing, column_spacing = spacing[0] * g.window[1] * g.in_channels, spacing[1] * g.in_channels
            axes.append(PairedAxis(len(down.taps), down.step * row_length * g.out_channels, row_spacing))
            axes.append(PairedAxis(len(across.taps), across.step * g.out_channels, column_spacing))
            start = (down.first + before[0]) * row_length + across.first + before[1]
            a = ir.element_address(self.inputs, start * g.out_channels, self.scalar_type)
            b = ir.element_address(self.weights, (down.taps[0] * g.window[1] + across.taps[0]) * g.in_channels, self.scalar_type)
        else:  # no kernel position contributes to these elements, so the sums are 0
            axes, a, b = [PairedAxis(0, 0, 0)], self.inputs, self.weights
        source_strides = row_length * g.out_channels, g.out_channels
        target_strides = g.strides[0] * g.lengths[1] * g.in_channels, g.strides[1] * g.in_channels
        counts = down.count, across.count

        def emit_body(inner: ChannelConvolution, a: Value, b: Value, target: Value) -> None:
            source_grid, target_grid = PixelGrid(a, *source_strides), PixelGrid(target, *target_strides)
            inner._emit_pixels(counts, g.in_channels, source_grid, b, axes, target_grid)

        self.call_shared((counts, axes), emit_body, a, b, target)

    def emit_kernel_gradient(self) -> Value:
        """Emit the cotangent of the kernel, from images and cotangents of results."""
        g, ir = self.geometry, self.ir
        self.clear_padding(any((*g.before, *g.after)))
        with ir.loop(0, g.groups) as group:
            self.emit_zeros(self.weights, g.kernel_size)
            with ir.loop(0, g.batch) as image:
                self._copy_padded(self.image_address(self.first_operand, image.index, group.index, g.image_size))
                cotangent = self.image_address(self.second_operand, image.index, group.index, g.result_size)
                self.emit_transpose((g.out_channels, prod(g.counts)), self.outputs, cotangent)
                self._accumulate_kernel_gradient()
            self.emit_transpose((g.depth, g.out_channels), self.address(self.out, (group.index, g.kernel_size)), self.weights)
        return self.is_non_finite(self.out, g.groups * g.kernel_size)

    def _accumulate_kernel_gradient(self) -> None:
        """Add the contribution of one image to the cotangent of the kernel."""
        g = self.geometry
        sum_axes = [
            PairedAxis(g.counts[0], g.strides[0] * g.padded[1] * g.in_channels, g.counts[1] * g.out_channels),
            PairedAxis(g.counts[1], g.strides[1] * g.in_channels, g.out_channels),
        ]
        for channels, start, vector_type in self._channel_blocks(g.out_channels):
            b = self.address(self.outputs, (start, 1))
            for a, out, offsets in self._kernel_tiles(start, max_tile_rows(len(channels.offsets), self.width)):
                rows_a, rows_out = zip(*offsets, strict=True)
                tile_sums = accumulate_tile(self.ir, vector_type, a, b, rows_a, channels.offsets, sum_axes)
                self._add_tile(tile_sums, out, rows_out, channels.offsets)

    def _kernel_axes(self) -> list[PairedAxis]:
        """Return the axes of the kernel, with the strides of the inputs and of the weights."""
        g = self.geometry
        return [
            PairedAxis(g.in_channels, 1, prod(g.window) * g.out_channels),
            PairedAxis(g.window[0], g.dilation[0] * g.padded[1] * g.in_channels, g.window[1] * g.out_channels),
            PairedAxis(g.window[1], g.dilation[1] * g.in_channels, g.out_channels),
        ]

    def _kernel_tiles(self, channel: Value, max_rows: int) -> Iterator[tuple[Value, Value, list[tuple[int, int]]]]:
        """Emit loops over tiles of the kernel; yield the addresses of the inputs and weights, and the offsets of the rows."""
        ir, axes = self.ir, self._kernel_axes()
        if self.geometry.depth <= MAX_UNROLLED_ROWS:
            offsets = paired_offsets(axes)
            size = -(-len(offsets) // -(-len(offsets) // max_rows))
            for k in range(0, len(offsets), size):
                yield self.inputs, self.address(self.weights, (channel, 1)), offsets[k : k + size]
            return
        *others, longest = sorted(axes, key=lambda axis: axis.length)
        with ir.loop(0, others[0].length) as outer, ir.loop(0, others[1].length) as inner:
            terms_a = [(loop.index, axis.stride_a) for loop, axis in zip((outer, inner), others, strict=True)]
            terms_out = [(loop.index, axis.stride_b) for loop, axis in zip((outer, inner), others, strict=True)]
            for rows in row_blocks(longest.length, max_rows):
                for row in block_starts(ir, rows):
                    a = self.address(self.inputs, (row, longest.stride_a), *terms_a)
                    out = self.address(self.weights, (row, longest.stride_b), *terms_out, (channel, 1))
                    yield a, out, [(k * longest.stride_a, k * longest.stride_b) for k in rows.offsets]

    # ------------------------------------------------------------------------------------------ parts

    def call_shared(self, key: tuple[Any, ...], emit_body: Callable[..., None], *addresses: Value) -> None:
        """Emit a call of a function of some addresses; `emit_body` emits the function on the first use of a key."""
        name = f"{self.ir.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"

        def define() -> None:
            inner = copy.copy(self)
            inner.ir = self.module.function(name, None, [POINTER] * len(addresses), "noinline")
            emit_body(inner, *inner.ir.operands)
            inner.ir.ret()

        self.ir.call_void(self.module.define_once(name, define), *addresses)

    def _channel_blocks(self, length: int) -> Iterator[tuple[Blocks, Value, Type]]:
        """Emit loops over blocks of channels; yield the blocks, the first channel, and the type of a vector."""
        lanes = lanes_for(length, self.dtype.itemsize, self.width)
        for channels in column_blocks(length, lanes, self.width):
            for start in block_starts(self.ir, channels):
                yield channels, start, self.scalar_type.with_lanes(lanes)

    def _emit_pixels(
        self, counts: Pair, channel_count: int, source: PixelGrid, weights: Value, axes: Sequence[PairedAxis], target: PixelGrid
    ) -> None:
        """Emit the sums for all pixels and channels of an image.

        Parameters
        ----------
        counts : tuple of int
            The rows and columns of the image.
        channel_count : int
            The channels.
        source, target : PixelGrid
            The pixels that are read and written.
        weights : Value
            The address of the weights.
        axes : sequence of PairedAxis
            The axes of the sum, with the strides of the source and of the weights.
        """
        ir = self.ir
        for channels, start, vector_type in self._channel_blocks(channel_count):
            max_pixels = max_tile_rows(len(channels.offsets), self.width)
            max_rows = max(1, min(max_pixels // counts[1], counts[0]))  # a tile has several short rows
            for rows in row_blocks(counts[0], max_rows):
                for row in block_starts(ir, rows):
                    for columns in row_blocks(counts[1], max_pixels):
                        for column in block_starts(ir, columns):
                            pixels = list(product(rows.offsets, columns.offsets))
                            a = self.pixel_address(source, row, column)
                            b = self.address(weights, (start, 1))
                            out = self.address(self.pixel_address(target, row, column), (start, 1))
                            rows_a = [source.offset(*pixel) for pixel in pixels]
                            rows_out = [target.offset(*pixel) for pixel in pixels]
                            tile_sums = accumulate_tile(ir, vector_type, a, b, rows_a, channels.offsets, axes)
                            store_tile(ir, tile_sums, out, rows_out, channels.offsets)

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
        g = self.geometry
        self._transpose_padded(image, g.in_channels, g.lengths, g.before, g.padded[1])

    def _transpose_padded(self, image: Value, channels: int, lengths: Pair, before: Pair, row_length: int) -> None:
        """Copy an image with adjacent channels into zero padding, whose rows have the length `row_length`."""
        (h, w), offset = lengths, (before[0] * row_length + before[1]) * channels
        target = self.ir.element_address(self.inputs, offset, self.scalar_type)
        if row_length == w:
            self.emit_transpose((channels, h * w), target, image)
            return
        name = transpose_kernel(self.module, self.scalar_type, (channels, w), h * w, channels, self.width)
        with self.ir.loop(0, h) as row:
            row_target = self.address(target, (row.index, row_length * channels))
            self.ir.call_void(name, row_target, self.address(image, (row.index, w)))

    def emit_transpose(self, shape: Pair, target: Value, source: Value) -> None:
        """Emit the transposition of a dense matrix."""
        self.ir.call_void(transpose_kernel(self.module, self.scalar_type, shape, shape[1], shape[0], self.width), target, source)

    def clear_padding(self, is_padded: bool) -> None:
        """Fill the copy of the inputs with zeros if it has padding."""
        if is_padded:
            self.emit_zeros(self.inputs, self.input_size)

    def emit_zeros(self, target: Value, count: int) -> None:
        """Fill memory with zeros."""
        name = self.module.declare("llvm.memset.p0.i64", None, [POINTER, BYTE, LONG, BIT])
        ir = self.ir
        ir.call_void(name, target, ir.number(0, BYTE), ir.number(count * self.dtype.itemsize, LONG), ir.number(0, BIT))

    def is_non_finite(self, address: Value, count: int) -> Value:
        """Return whether any of `count` numbers at an address is inf or nan."""
        return self.ir.call(non_finite_kernel(self.module, self.scalar_type, count, self.width), INT, address)

    def address(self, base: Value, *terms: tuple[Value, int]) -> Value:
        """Return an address plus indices times constants."""
        return offset_address(self.ir, base, self.scalar_type, *terms)

    def image_address(self, base: Value, image: Value, group: Value, size: int) -> Value:
        """Return the address of a group of channels, which has `size` elements, of an image."""
        return self.address(base, (image, self.geometry.groups * size), (group, size))

    def pixel_address(self, grid: PixelGrid, row: Value, column: Value) -> Value:
        """Return the address of a pixel."""
        return self.address(grid.address, (row, grid.row_stride), (column, grid.column_stride))


MIN_ACCUMULATORS = 12  # accumulators, to hide the latency of fma


class RowConvolution(ChannelConvolution):
    """Emits the body of a function that computes a step along rows; see `convolution_kernel`."""

    def emit_forward(self) -> Value:
        """Emit the cross-correlation of images with a kernel."""
        g, ir = self.geometry, self.ir
        height, row_length = g.padded
        is_padded = any((*g.before, *g.after))
        self.clear_padding(is_padded)
        axes = [
            PairedAxis(g.in_channels, prod(g.window), height * row_length),
            PairedAxis(g.window[0], g.window[1], g.dilation[0] * row_length),
            PairedAxis(g.window[1], 1, g.dilation[1]),
        ]
        with ir.loop(0, g.groups) as group, ir.loop(0, g.batch) as image:
            source = self.image_address(self.first_operand, image.index, group.index, g.image_size)
            if is_padded:
                self._copy_into_padding(source, g.in_channels, g.lengths, g.before, g.padded)
                source = self.inputs
            kernel = self.address(self.second_operand, (group.index, g.kernel_size))
            target = self.image_address(self.out, image.index, group.index, g.result_size)
            source_grid, target_grid = PixelGrid(source, g.strides[0] * row_length, 1), PixelGrid(target, g.counts[1], 1)
            self._emit_rows(g.counts, g.out_channels, (g.depth, prod(g.counts)), kernel, source_grid, axes, target_grid)
        return ir.number(0, INT)

    def emit_input_gradient(self) -> Value:
        """Emit the cotangents of images, from cotangents of results and a kernel."""
        g, ir = self.geometry, self.ir
        (top, bottom), (left, right) = g.margins(0), g.margins(1)
        padded = g.counts[0] + top + bottom, g.counts[1] + left + right
        is_padded = padded != g.counts
        self.clear_padding(is_padded)
        with ir.loop(0, g.groups, 1, [ir.number(0, INT)]) as group:
            with ir.loop(0, g.batch, 1, group.current) as image:
                source = self.image_address(self.first_operand, image.index, group.index, g.result_size)
                if is_padded:
                    self._copy_into_padding(source, g.out_channels, g.counts, (top, left), padded)
                    source = self.inputs
                target = self.image_address(self.out, image.index, group.index, g.image_size)
                kernel = self.address(self.second_operand, (group.index, g.kernel_size))
                for phase in product(g.phases(0), g.phases(1)):
                    self._emit_phase_rows(phase, kernel, source, padded, (top, left), target)
                image.next = [ir.binary("or", image.current[0], self.is_non_finite(target, g.image_size))]
            group.next = image.next
        return group.next[0]

    def _emit_phase_rows(
        self, phase: tuple[Phase, Phase], kernel: Value, source: Value, padded: Pair, before: Pair, image: Value
    ) -> None:
        """Emit the elements of an input gradient that belong to one phase."""
        g, ir = self.geometry, self.ir
        (down, across), (height, row_length) = phase, padded
        spacing = [p.taps[1] - p.taps[0] if len(p.taps) > 1 else 0 for p in phase]
        axes = [
            PairedAxis(g.out_channels, g.depth, height * row_length),
            PairedAxis(len(down.taps), spacing[0] * g.window[1], down.step * row_length),
            PairedAxis(len(across.taps), spacing[1], across.step),
        ]
        if down.taps and across.taps:
            kernel = ir.element_address(kernel, down.taps[0] * g.window[1] + across.taps[0], self.scalar_type)
            start = (down.first + before[0]) * row_length + across.first + before[1]
            source = ir.element_address(source, start, self.scalar_type)
        target = ir.element_address(image, down.start * g.lengths[1] + across.start, self.scalar_type)
        counts, channel_strides = (down.count, across.count), (prod(g.window), prod(g.lengths))

        def emit_body(inner: RowConvolution, kernel: Value, source: Value, target: Value) -> None:
            source_grid = PixelGrid(source, row_length, 1)
            target_grid = PixelGrid(target, g.strides[0] * g.lengths[1], g.strides[1])
            inner._emit_rows(counts, g.in_channels, channel_strides, kernel, source_grid, axes, target_grid)

        self.call_shared((counts, axes), emit_body, kernel, source, target)

    def _emit_rows(
        self,
        counts: Pair,
        channel_count: int,
        channel_strides: Pair,
        kernel: Value,
        source: PixelGrid,
        axes: Sequence[PairedAxis],
        target: PixelGrid,
    ) -> None:
        """Emit the sums for all rows of all channels of an image.

        Parameters
        ----------
        counts : tuple of int
            The rows and columns of the image.
        channel_count : int
            The channels.
        channel_strides : tuple of int
            The channel strides of the kernel and of the result.
        kernel : Value
            The address of the kernel.
        source, target : PixelGrid
            The pixels that are read and written; those of the source have adjacent columns.
        axes : sequence of PairedAxis
            The axes of the sum, with the strides of the kernel and of the source.
        """
        ir, lanes, (kernel_stride, plane) = self.ir, lanes_for(counts[1], self.dtype.itemsize, self.width), channel_strides
        vector_type, min_vectors = self.scalar_type.with_lanes(lanes), max(2, MIN_ACCUMULATORS // channel_count)
        for columns in vector_blocks(counts[1], lanes, min_vectors):
            max_rows = max(1, min(counts[0], min_vectors // len(columns.offsets)))
            for rows in row_blocks(counts[0], max_rows):
                pixels = list(product(rows.offsets, columns.offsets))  # at the starts of vectors
                source_vectors, target_vectors = ([grid.offset(*pixel) for pixel in pixels] for grid in (source, target))
                max_channels = max(1, max_tile_rows(len(pixels), self.width))
                for row in block_starts(ir, rows):
                    for column in block_starts(ir, columns):
                        b, first_channel = (self.pixel_address(grid, row, column) for grid in (source, target))
                        for channels in row_blocks(channel_count, max_channels):
                            for channel in block_starts(ir, channels):
                                a = self.address(kernel, (channel, kernel_stride))
                                rows_a = [k * kernel_stride for k in channels.offsets]
                                tile_sums = accumulate_tile(ir, vector_type, a, b, rows_a, source_vectors, axes)
                                out, planes = self.address(first_channel, (channel, plane)), [k * plane for k in channels.offsets]
                                store_tile(ir, tile_sums, out, planes, target_vectors, target.column_stride)

    def _copy_into_padding(self, image: Value, planes: int, lengths: Pair, before: Pair, padded: Pair) -> None:
        """Copy an image into zero padding."""
        (h, w), (height, row_length) = lengths, padded
        name = transpose_kernel(self.module, self.scalar_type, (1, w), w, 1, self.width)
        first = self.ir.element_address(self.inputs, before[0] * row_length + before[1], self.scalar_type)
        with self.ir.loop(0, planes) as plane, self.ir.loop(0, h) as row:
            target = self.address(first, (plane.index, height * row_length), (row.index, row_length))
            self.ir.call_void(name, target, self.address(image, (plane.index, h * w), (row.index, w)))


def convolution_kernel(module: Module, step: Convolution, width: int) -> str:
    """Return the name of a function that computes a step; its arguments are the addresses of its result and operands.

    The function returns 1 if a gradient is not finite, because it may then differ from NumPy's: NumPy skips some products of
    inf or nan with padding.
    """
    type = elementwise_ops.type_of(step.out.buffer.dtype)
    lengths = "_".join(str(n) for entry in astuple(step.geometry) for n in (entry if isinstance(entry, tuple) else (entry,)))
    name = f".convolution_{step.kind}_{type.mangled}_{lengths}"

    def emit_body() -> None:
        ir = module.function(name, INT, [POINTER] * 4, "noinline")
        emitter = RowConvolution(ir, step, width) if _vectorizes_rows(step, width) else ChannelConvolution(ir, step, width)
        emit = {"forward": emitter.emit_forward, "back": emitter.emit_input_gradient, "kernel": emitter.emit_kernel_gradient}
        ir.ret(emit[step.kind]())

    return module.define_once(name, emit_body)


def _vectorizes_rows(step: Convolution, width: int) -> bool:
    """Return whether vectors are longer along rows than along channels."""
    g, size = step.geometry, step.out.buffer.dtype.itemsize
    if step.kind == "kernel" or (step.kind == "forward" and g.strides[1] != 1):
        return False
    channels, row_length = g.out_channels, g.counts[1]
    if step.kind == "back":
        channels, row_length = g.in_channels, g.lengths[1] // g.strides[1]
    return lanes_for(max(row_length, 1), size, width) > lanes_for(channels, size, width)
