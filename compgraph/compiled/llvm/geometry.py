"""What a cross-correlation of images is like: lengths, steps, zeros around; and how its adjoint gathers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

Pair = tuple[int, int]


@dataclass(frozen=True)
class Phase:
    """Elements of one axis of an image that meet the kernel at the same places: every `stride`-th.

    Attributes
    ----------
    start, count : int
        The first of them, and how many there are.
    taps : tuple of int
        The places in the kernel.
    first, step : int
        Of the result that met the first element at the first of the `taps`, its place; and by how many it is another for the next
        of the `taps`. For the next element it is one more.
    """

    start: int
    count: int
    taps: tuple[int, ...]
    first: int
    step: int

    @property
    def reach(self) -> Pair:
        """The least and the greatest place in the result that is asked for; those outside of it are zeros."""
        ends = self.first, self.first + self.step * (len(self.taps) - 1)
        return min(ends), max(ends) + self.count - 1


@dataclass(frozen=True)
class Geometry:
    """A cross-correlation of images of two axes.

    Attributes
    ----------
    batch, groups, channels, results : int
        How many images there are; into how many groups their channels are divided; in each group, the channels of an image and
        those of a result.
    lengths, window, counts : tuple of int
        The lengths of an image, of the kernel and of a result.
    strides, dilation : tuple of int
        The steps from one window to the next, and within a window.
    before, after : tuple of int
        How many zeros are added.
    """

    batch: int
    groups: int
    channels: int
    results: int
    lengths: Pair
    window: Pair
    counts: Pair
    strides: Pair
    dilation: Pair
    before: Pair
    after: Pair

    @property
    def padded(self) -> Pair:
        """The lengths of an image with its zeros."""
        return self.lengths[0] + self.before[0] + self.after[0], self.lengths[1] + self.before[1] + self.after[1]

    @property
    def image(self) -> int:
        """The elements of one group of an image."""
        return self.channels * prod(self.lengths)

    @property
    def result(self) -> int:
        """The elements of one group of a result."""
        return self.results * prod(self.counts)

    @property
    def depth(self) -> int:
        """How many products are summed for an element of the result."""
        return self.channels * prod(self.window)

    def phases(self, axis: int) -> list[Phase]:
        """How the elements along an axis are summed in the adjoint of an image."""
        found, stride, dilation = [], self.strides[axis], self.dilation[axis]
        for start in range(min(stride, self.lengths[axis])):
            origin = start + self.before[axis]
            taps = [tap for tap in range(self.window[axis]) if (origin - tap * dilation) % stride == 0]
            places = [(origin - tap * dilation) // stride for tap in taps] or [0]
            step = places[1] - places[0] if len(places) > 1 else 0
            found.append(Phase(start, -(-(self.lengths[axis] - start) // stride), tuple(taps), places[0], step))
        return found

    def margins(self, axis: int) -> Pair:
        """How many zeros around a result its adjoint asks for, before and after."""
        reaches = [phase.reach for phase in self.phases(axis) if phase.taps]
        least, most = min((r[0] for r in reaches), default=0), max((r[1] for r in reaches), default=0)
        return max(0, -least), max(0, most - self.counts[axis] + 1)

    def work_sizes(self, kind: str) -> tuple[int, int, int]:
        """The elements of what is copied: the kernel, and two of the images, the result and their like; see `Convolution`."""
        inputs, outputs = prod(self.padded) * self.channels, self.result
        if kind == "back":
            (top, bottom), (left, right) = self.margins(0), self.margins(1)
            inputs = (self.counts[0] + top + bottom) * (self.counts[1] + left + right) * self.results
            outputs = self.image
        sizes = (self.depth * self.results, inputs, outputs)
        return sizes[0] + -sizes[0] % 16, sizes[1] + -sizes[1] % 16, sizes[2]  # each begins with a line of the cache
