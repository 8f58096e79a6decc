"""Geometry of two-dimensional cross-correlations and of their input gradients: shapes, strides, padding."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Pair = tuple[int, int]


@dataclass(frozen=True)
class Phase:
    """The elements of an image axis, a stride apart, that are multiplied by the same kernel positions.

    Attributes
    ----------
    start, count : int
        The first element, and the number of elements.
    taps : tuple of int
        The kernel positions.
    first, step : int
        The result index of the first element at the first tap, and its change per tap. It increases by one per element.
    """

    start: int
    count: int
    taps: tuple[int, ...]
    first: int
    step: int

    @property
    def bounds(self) -> Pair:
        """The smallest and largest result index that is read; indices out of range read zeros."""
        ends = self.first, self.first + self.step * (len(self.taps) - 1)
        return min(ends), max(ends) + self.count - 1


@dataclass(frozen=True)
class ConvolutionGeometry:
    """The shape of a cross-correlation of two-dimensional images.

    Attributes
    ----------
    batch, groups, in_channels, out_channels : int
        The batch size; the number of channel groups; and per group, the channels of an image and of a result.
    lengths, window, counts : tuple of int
        The lengths of an image, of the kernel and of a result.
    strides, dilation : tuple of int
        The strides of the window, and its dilation.
    before, after : tuple of int
        The padding.
    """

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    lengths: Pair
    window: Pair
    counts: Pair
    strides: Pair
    dilation: Pair
    before: Pair
    after: Pair

    @property
    def padded(self) -> Pair:
        """The lengths of a padded image."""
        return self.lengths[0] + self.before[0] + self.after[0], self.lengths[1] + self.before[1] + self.after[1]

    @property
    def image_size(self) -> int:
        """The number of elements of one group of an image."""
        return self.in_channels * prod(self.lengths)

    @property
    def result_size(self) -> int:
        """The number of elements of one group of a result."""
        return self.out_channels * prod(self.counts)

    @property
    def kernel_size(self) -> int:
        """The number of elements of one group of the kernel."""
        return self.out_channels * self.depth

    @property
    def depth(self) -> int:
        """The number of products summed per element of the result."""
        return self.in_channels * prod(self.window)

    def phases(self, axis: int) -> list[Phase]:
        """Return the phases of an axis in the input gradient."""
        phases, stride, dilation = [], self.strides[axis], self.dilation[axis]
        for start in range(min(stride, self.lengths[axis])):
            origin = start + self.before[axis]
            taps = [tap for tap in range(self.window[axis]) if (origin - tap * dilation) % stride == 0]
            positions = [(origin - tap * dilation) // stride for tap in taps] or [0]
            step = positions[1] - positions[0] if len(positions) > 1 else 0
            phases.append(Phase(start, -(-(self.lengths[axis] - start) // stride), tuple(taps), positions[0], step))
        return phases

    def margins(self, axis: int) -> Pair:
        """Return the padding of a result that its input gradient reads, before and after."""
        bounds = [phase.bounds for phase in self.phases(axis) if phase.taps]
        lowest, highest = min((b[0] for b in bounds), default=0), max((b[1] for b in bounds), default=0)
        return max(0, -lowest), max(0, highest - self.counts[axis] + 1)

    def scratch_sizes(self, kind: str) -> tuple[int, int, int]:
        """Return the sizes of the scratch copies: the kernel, the inputs, and the outputs; see `Convolution`."""
        inputs, outputs = prod(self.padded) * self.in_channels, self.result_size
        if kind == "back":
            (top, bottom), (left, right) = self.margins(0), self.margins(1)
            inputs = (self.counts[0] + top + bottom) * (self.counts[1] + left + right) * self.out_channels
            outputs = self.image_size
        sizes = (self.kernel_size, inputs, outputs)
        return sizes[0] + -sizes[0] % 16, sizes[1] + -sizes[1] % 16, sizes[2]  # each begins at a cache line
