"""Cross-correlation and convolution, and the cotangents of their operands.

``out[n, o, l] = sum over c, k of x[n, c, l * stride + k * dilation] kernel[o, c, k]`` is linear in `x` and in `kernel`.
``sum(g * out)`` is linear in `g`, `x` and `kernel`: `cross_correlate`, `cross_correlate_back` and `cross_correlate_kernel`
each compute the derivative by one of the three from the other two, so the derivatives of each are the other two.

Each is a matrix product with the windows of `x`, copied into the columns of a matrix (K. Chellapilla, S. Puri and P. Simard,
"High performance convolutional neural networks for document processing", 2006), a block at a time, so that a block stays in
the cache. If all strides are one, windows start at every element of the flattened padded array, so that contiguous memory is
copied. Results of windows that cross the end of a line are invalid and dropped (`FlattenedWindows`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from ..protocols import primitive
from .sliding_windows import Windows, compute_windows

BLOCK = 1 << 18  # elements that are copied together


@primitive
def cross_correlate(
    x: ArrayLike,
    kernel: ArrayLike,
    *,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """Cross-correlate an array with a kernel: slide the kernel over the array and sum the products at each position.

    Parameters
    ----------
    x : array_like
        A signal of shape ``(length,)``; or a batch of arrays with channels, of shape ``(batch, channels, *lengths)``.
    kernel : array_like
        For a signal of shape ``(size,)``; else ``(channels_out, channels // groups, *sizes)``.
    strides : int or sequence of int
        The steps from one position to the next, along each axis.
    padding : str, int or sequence
        The number of zeros around `x`: one number, or for each axis a number or a pair ``(before, after)``; "valid" for none;
        "same" for ``ceil(length / stride)`` results; "full" for every position where the kernel touches `x`. If "same" needs an
        odd number of zeros, a signal gets the extra one before it, as in ``np.correlate``; arrays with channels get it after,
        as in PyTorch and JAX.
    dilation : int or sequence of int
        The steps in `x` from one element under the kernel to the next.
    groups : int
        The number of groups of channels; each group of output channels is computed from one group of channels.

    Returns
    -------
    array
        Of shape ``(count,)``, or ``(batch, channels_out, *counts)``, with the number of positions along each axis; of the dtype
        of ``x * kernel``. A complex kernel is conjugated, as by ``np.correlate``.

    Raises
    ------
    ValueError
        If the shapes do not match, an option is invalid, or the kernel fits at no position. Unlike in ``np.correlate``, the
        operands are not exchanged if the kernel is longer than `x`.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.cross_correlate([1.0, 2.0, 4.0, 8.0], [-1.0, 1.0])
    array([1., 2., 4.])
    """
    x, kernel = np.asarray(x), np.asarray(kernel)
    correlation = Correlation("cross_correlate", x.shape, kernel.shape, strides, padding, dilation, groups)
    return correlation.correlate(x, kernel.conj() if kernel.dtype.kind == "c" else kernel)


@primitive
def conv(
    x: ArrayLike,
    kernel: ArrayLike,
    *,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """Convolve an array with a kernel: `cross_correlate` with the kernel reversed along the axes that it slides along.

    Parameters
    ----------
    x, kernel, strides, padding, dilation, groups
        As for `cross_correlate`, which is what neural networks call convolution.

    Returns
    -------
    array
        As for `cross_correlate`, but the kernel is not conjugated.

    Raises
    ------
    ValueError
        As for `cross_correlate`.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.conv([1.0, 2.0], [1.0, 10.0, 100.0], padding="full")
    array([  1.,  12., 120., 200.])
    """
    x, kernel = np.asarray(x), np.asarray(kernel)
    correlation = Correlation("conv", x.shape, kernel.shape, strides, padding, dilation, groups)
    return correlation.correlate(x, np.flip(kernel, kernel_axes(kernel)))


def kernel_axes(kernel: NDArray[Any]) -> tuple[int, ...]:
    """The axes of a kernel along which it slides."""
    return tuple(range(2, kernel.ndim)) if kernel.ndim > 1 else (0,)


def signal_padding(size: int, padding: str | int | Sequence[Any] = "valid", dilation: int = 1, **_: object) -> Any:
    """Convert the padding of a signal to that of arrays with channels: "same" has its extra zero on the other side."""
    if not isinstance(padding, str) or padding != "same":
        return padding
    span = int(np.ravel(dilation)[0]) * (size - 1) + 1
    return ((span // 2, span - 1 - span // 2),)


@primitive
def cross_correlate_back(
    g: NDArray[Any],
    kernel: NDArray[Any],
    like: NDArray[Any],
    *,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """The cotangent of `x` in `cross_correlate`, for a real kernel: each element of `g` times the kernel, summed over windows.

    Parameters
    ----------
    g : array
        The cotangent of the result, of its shape.
    kernel : array
        The kernel; it is not conjugated.
    like : array
        `x`, or another array of its lengths; only its shape is used.
    strides, padding, dilation, groups
        As for `cross_correlate`.

    Returns
    -------
    array
        Of the shape of `x`.
    """
    shape = like.shape[2:] if len(like.shape) > 2 else like.shape
    x_shape = (*(() if g.ndim == 1 else (g.shape[0], kernel.shape[1] * groups)), *shape)
    return Correlation("cross_correlate_back", x_shape, kernel.shape, strides, padding, dilation, groups).input_cotangent(
        g, kernel
    )


@primitive
def cross_correlate_kernel(
    x: NDArray[Any],
    g: NDArray[Any],
    like: NDArray[Any],
    *,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Any:
    """The cotangent of the kernel in `cross_correlate`, for a real kernel.

    Parameters
    ----------
    x : array
        As for `cross_correlate`.
    g : array
        The cotangent of the result, of its shape.
    like : array
        The kernel, or another array of its lengths; only its shape is used.
    strides, padding, dilation, groups
        As for `cross_correlate`.

    Returns
    -------
    array
        Of the shape of the kernel.
    """
    shape = like.shape[2:] if len(like.shape) > 2 else like.shape
    kernel_shape = (*(() if g.ndim == 1 else (g.shape[1], x.shape[1] // groups)), *shape)
    correlation = Correlation("cross_correlate_kernel", x.shape, kernel_shape, strides, padding, dilation, groups)
    return correlation.kernel_cotangent(x, g)


class Correlation:
    """A cross-correlation of operands of given shapes: its result, and the cotangents of x and of the kernel.

    Within a group, there are `channels` input channels and `results` output channels; a window has `height` elements.
    """

    def __init__(
        self, opname: str, x: tuple[int, ...], kernel: tuple[int, ...], strides: Any, padding: Any, dilation: Any, groups: int
    ) -> None:
        self.is_signal = len(x) == len(kernel) == 1
        _check_shapes(opname, x, kernel, groups)
        if self.is_signal:
            if isinstance(padding, str) and padding == "same" and kernel[0] > x[0]:
                raise ValueError(f'{opname}: padding="same" needs a kernel no longer than the signal. Exchange the two')
            padding = signal_padding(kernel[0], padding, dilation)
            x, kernel = (1, 1, *x), (1, 1, *kernel)
        self.batch, self.groups = x[0], groups
        self.channels, self.results = kernel[1], kernel[0] // groups
        self.windows = compute_windows(opname, x[2:], kernel[2:], strides, padding, dilation)
        self.height = self.channels * math.prod(self.windows.window)  # reshaped by lengths, never by -1, because any may be zero
        self.flattened = FlattenedWindows.create(self.windows)
        self.columns = self.flattened.counts if self.flattened else self.windows.counts

    def correlate(self, x: NDArray[Any], kernel: NDArray[Any]) -> Any:
        """The result, from x and the kernel."""
        view = self._view(self._pad(x))
        matrices = np.reshape(kernel, (self.groups, self.results, self.height))
        out = np.empty((self.batch, self.groups, self.results, *self.columns), np.result_type(x, kernel))
        for block in self._blocks():
            products = np.matmul(matrices, self._copy_to_columns(view[block]))
            out[block] = products.reshape(out[block].shape)
        return self._to_user_shape(out if self.flattened is None else self.flattened.select_valid(out), self.windows.counts)

    def input_cotangent(self, g: NDArray[Any], kernel: NDArray[Any]) -> Any:
        """The cotangent of x, from that of the result and the kernel."""
        g = self._to_column_layout(g)
        matrices = np.reshape(kernel, (self.groups, self.results, self.height)).swapaxes(1, 2)
        padded = np.zeros((self.batch, self.groups, self.channels, *self.windows.padded_shape), np.result_type(g, kernel))
        view = self._view(padded)
        for block in self._blocks():
            target = view[block]
            products = np.matmul(matrices, _flatten_windows(g[block])).reshape(target.shape)
            for position in np.ndindex(self.windows.window):  # at one position, no two windows share an element
                target[:, :, :, *position] += products[:, :, :, *position]
        return self._to_user_shape(padded[self.windows.interior], self.windows.lengths)

    def kernel_cotangent(self, x: NDArray[Any], g: NDArray[Any]) -> Any:
        """The cotangent of the kernel, from x and that of the result."""
        view, g = self._view(self._pad(x)), self._to_column_layout(g)
        total = np.zeros((self.groups, self.results, self.height), np.result_type(x, g))
        for block in self._blocks():
            products = np.matmul(_flatten_windows(g[block]), self._copy_to_columns(view[block]).swapaxes(2, 3))
            total += products.sum(axis=0)
        shape = self.windows.window if self.is_signal else (self.groups * self.results, self.channels, *self.windows.window)
        return total.reshape(shape)

    def _pad(self, x: NDArray[Any]) -> Any:
        return self.windows.pad(x.reshape(self.batch, self.groups, self.channels, *self.windows.lengths))

    def _view(self, padded: NDArray[Any]) -> Any:
        return self.flattened.view(padded) if self.flattened else self.windows.view(padded)

    def _copy_to_columns(self, view: NDArray[Any]) -> Any:
        """Copy the windows of a view into the columns of matrices of shape ``(batch, groups, elements, count)``."""
        count = math.prod(view.shape[3 + len(self.windows.window) :])
        return view.reshape(view.shape[0], self.groups, self.height, count)

    def _to_column_layout(self, g: NDArray[Any]) -> Any:
        """Reshape a cotangent of the result to the layout of the columns, with an axis for groups."""
        g = g.reshape(self.batch, self.groups, self.results, *self.windows.counts)
        return np.ascontiguousarray(g) if self.flattened is None else self.flattened.scatter_valid(g)

    def _to_user_shape(self, array: NDArray[Any], lengths: tuple[int, ...]) -> Any:
        """Reshape an array to the user's layout: a signal, or an array with all channels on one axis."""
        return array.reshape(lengths if self.is_signal else (self.batch, array.shape[1] * array.shape[2], *lengths))

    def _blocks(self) -> Iterator[tuple[Any, ...]]:
        """Indices of blocks: some batch elements and some windows, whose copies have about `BLOCK` elements."""
        first, *rest = self.columns
        height = self.groups * self.height
        size = height * first * math.prod(rest)
        batch_size = max(1, BLOCK // max(size, 1))
        line_count = first if size <= 16 * BLOCK else max(1, max(BLOCK // height, 512) // math.prod(rest))
        others = [slice(None)] * len(rest)
        for start in range(0, self.batch, batch_size):
            for line in range(0, first, line_count):
                yield (slice(start, start + batch_size), ..., slice(line, line + line_count), *others)


def _flatten_windows(g: NDArray[Any]) -> Any:
    """Reshape cotangents of shape ``(batch, groups, results, *counts)``: all windows on one axis."""
    return g.reshape(*g.shape[:3], math.prod(g.shape[3:]))


class FlattenedWindows:
    """Windows that start at every element of a flattened padded array.

    Results of windows that cross the end of a line are invalid; `select_valid` drops them.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        steps = [math.prod(windows.padded_shape[i + 1 :]) for i in range(len(windows.padded_shape))]
        self.steps = tuple(steps)
        self.counts = (1 + sum(step * (n - 1) for step, n in zip(steps, windows.counts, strict=True)),)

    @classmethod
    def create(cls, windows: Windows) -> FlattenedWindows | None:
        """Flatten windows. Return None if a stride is not one, or more than a fifth of the results would be invalid."""
        flattened = cls(windows)
        return flattened if set(windows.strides) == {1} and 4 * flattened.counts[0] <= 5 * math.prod(windows.counts) else None

    def view(self, padded: NDArray[Any]) -> Any:
        """All windows, as a view of the padded array, of shape ``(*batch_shape, *window, count)``."""
        batch_ndim = padded.ndim - len(self.steps)
        element_strides = [step * d * padded.itemsize for step, d in zip(self.steps, self.windows.dilation, strict=True)]
        shape = (*padded.shape[:batch_ndim], *self.windows.window, *self.counts)
        return as_strided(padded, shape, (*padded.strides[:batch_ndim], *element_strides, padded.itemsize))

    def select_valid(self, results: NDArray[Any]) -> Any:
        """The valid results, as a view of all."""
        strides = [step * results.itemsize for step in self.steps]
        return as_strided(results, (*results.shape[:-1], *self.windows.counts), (*results.strides[:-1], *strides))

    def scatter_valid(self, g: NDArray[Any]) -> Any:
        """The transpose of `select_valid`: `g` at valid results, zeros at the others."""
        results = np.zeros((*g.shape[: g.ndim - len(self.steps)], *self.counts), g.dtype)
        self.select_valid(results)[...] = g
        return results


def _check_shapes(opname: str, x: tuple[int, ...], kernel: tuple[int, ...], groups: int) -> None:
    """Raise a ValueError if the shapes or the groups do not match."""
    if len(x) == len(kernel) == 1:
        if groups != 1:
            raise ValueError(f"{opname}: a signal without channels has no groups. Leave out groups={groups!r}")
        return
    if len(x) != len(kernel) or len(x) < 3:
        raise ValueError(
            f"{opname}: x of shape {x} and a kernel of shape {kernel}. Pass both with one axis, or x of shape (batch, channels, "
            "*lengths) and a kernel of shape (channels_out, channels // groups, *sizes)"
        )
    if isinstance(groups, bool) or not isinstance(groups, (int, np.integer)) or groups < 1 or kernel[0] % groups:
        raise ValueError(f"{opname}: groups={groups!r} must be a positive integer that divides {kernel[0]} channels_out")
    if x[1] != kernel[1] * groups:
        raise ValueError(
            f"{opname}: x of shape {x} has {x[1]} channels; a kernel of shape {kernel} with groups={groups} takes "
            f"{kernel[1] * groups}. Change one of the three"
        )
