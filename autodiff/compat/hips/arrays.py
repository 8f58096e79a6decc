"""Names of ``autograd.numpy`` and ``autograd.scipy.signal`` that NumPy and SciPy lack, and iterators as lists of arrays."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph import ops
from compgraph.interception import patch_code

from .boxes import getval

Function = Callable[..., Any]


def metadata(value: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """The shape, the number of axes and the dtype of a value, and whether it is complex."""
    array = np.asarray(getval(value))
    return array.shape, array.ndim, array.dtype, array.dtype.kind == "c"


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """The sum of a cotangent over the axes along which its operand was broadcast.

    Parameters
    ----------
    x : array or box
        The cotangent.
    target_meta : tuple
        The `metadata` of the operand.
    broadcast_idx : int
        The axis at which broadcasting inserted axes.

    Returns
    -------
    array or box
        Of the shape of the operand, and real if that is.

    Examples
    --------
    >>> unbroadcast(np.ones((3, 2)), metadata(np.ones((1, 2))))
    array([[3., 3.]])
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Any, f: Function) -> Function:
    """The function that applies `f` to a cotangent and sums the result to the shape of `target`.

    Examples
    --------
    >>> unbroadcast_f(2.0, lambda g: 10.0 * g)(np.ones(3))
    np.float64(30.0)
    """
    target_meta = metadata(target)
    return lambda g: unbroadcast(f(g), target_meta)


def match_complex(target: Any, x: Any) -> Any:
    """`x`, real or complex as `target` is."""
    if np.iscomplexobj(x) and not np.iscomplexobj(target):
        return np.real(x)
    return x + 0j if np.iscomplexobj(target) and not np.iscomplexobj(x) else x


def replace_zero(x: Any, val: float) -> Any:
    """`x` with `val` in place of its zeros."""
    return np.where(x, x, val)


def balanced_eq(x: object, z: object, y: object) -> Any:
    """One where `x` equals `z` and `y` does not, one half where all are equal, else zero."""
    return (x == z) / (1.0 + (x == y))


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:  # noqa: N803  (autograd's name)
    """Matrices with the vectors `D` as their diagonals, in the last two axes.

    Examples
    --------
    >>> make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal only supports offset=0, axis1=-1, axis2=-2")
    return D[..., None] * np.eye(np.shape(D)[-1])


def concatenate_args(axis: int, *args: Any) -> Any:
    """``np.concatenate(args, axis)``."""
    return np.concatenate(args, axis)


def array_from_args(array_args: Any, array_kwargs: Any, *args: object) -> Any:
    """The array of the list of `args`."""
    return np.array([*args], *array_args, **array_kwargs)


def convolve(
    A: Any,  # noqa: N803  (autograd's names)
    B: Any,  # noqa: N803
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Any:
    """The convolution of two arrays along some axes. Other axes are summed over, or combined as in an outer product.

    Parameters
    ----------
    A, B : array or box
        The arrays.
    axes : pair of sequences of int, optional
        The axes of `A` and of `B` along which to convolve; by default all.
    dot_axes : pair of sequences of int
        The axes of `A` and of `B` over which to sum products.
    mode : {"full", "valid", "same"}
        As in ``scipy.signal.convolve``.

    Returns
    -------
    array or box
        Its axes are the remaining ones of `A`, the remaining ones of `B`, and those of the convolution.

    Raises
    ------
    ValueError
        If `mode` is unknown, or "valid" and neither array is the larger one along all axes.

    Examples
    --------
    >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 1., 12., 20.])
    >>> convolve(np.ones((5, 8)), np.ones((3, 2)), axes=([1], [1]), mode="valid").shape
    (5, 3, 7)
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve: mode is 'full', 'valid' or 'same', not {mode!r}")
    axes_a, axes_b = (range(A.ndim), range(A.ndim)) if axes is None else axes
    pairs = [(a % A.ndim, b % B.ndim) for a, b in zip(axes_a, axes_b, strict=True)]
    convolved_axes = [a for a, _ in pairs], [b for _, b in pairs]
    is_swapped = False
    if mode == "valid" and any(A.shape[a] < B.shape[b] for a, b in pairs):
        if any(A.shape[a] > B.shape[b] for a, b in pairs):
            raise ValueError("convolve: in mode 'valid' one array must be the larger one along all axes of the convolution")
        is_swapped = True
    unused_letters = iter(string.ascii_letters)
    letters_a, letters_b = [[next(unused_letters) for _ in range(x.ndim)] for x in (A, B)]
    for a, b in zip(*dot_axes, strict=True):
        letters_b[b] = letters_a[a]
    result_letters = [next(unused_letters) for _ in pairs]
    others = [
        [letter for k, letter in enumerate(letters) if k not in {*conv, *(d % x.ndim for d in dots)}]
        for letters, conv, dots, x in zip((letters_a, letters_b), convolved_axes, dot_axes, (A, B), strict=True)
    ]
    sliding, stationary = ((B, letters_b), (A, letters_a)) if is_swapped else ((A, letters_a), (B, letters_b))
    windows, letters = sliding[0], [*sliding[1]]
    kernel = stationary[0]
    for (a, b), result_letter in zip(pairs, result_letters, strict=True):
        axis, kernel_axis = (b, a) if is_swapped else (a, b)
        length = kernel.shape[kernel_axis]
        kernel = np.flip(kernel, kernel_axis)
        half = (length - 1) // 2
        left, right = {"full": (length - 1, length - 1), "valid": (0, 0), "same": (length - 1 - half, half)}[mode]
        where = letters.index(sliding[1][axis])  # windows have more axes than the array already
        widths = [(0, 0)] * len(letters)
        widths[where] = (left, right)
        padded = np.pad(windows, widths)
        count = padded.shape[where] - length + 1
        index = np.arange(count)[:, None] + np.arange(length)
        windows = np.take(padded, index, axis=where)
        letters[where : where + 1] = [result_letter, stationary[1][kernel_axis]]
    result = "".join([*others[0], *others[1], *result_letters])
    return np.einsum(f"{''.join(letters)},{''.join(stationary[1])}->{result}", windows, kernel)


class _ListOfArrays(list[Any]):
    """The arrays of an iterator argument of a NumPy function. NumPy's protocol calls the function with the list."""

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        return function([*self], *args[1:], **kwargs)


def accept_iterators() -> None:
    """Let ``np.stack``, ``np.vstack``, ``np.hstack``, ``np.dstack`` and ``np.column_stack`` take iterators of arrays."""
    patch_code(ops.sequence_of_arrays, _materialize_iterator, always=True)


def _materialize_iterator(function: object, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    arrays = args[0] if args else kwargs["arrays"]
    return original(arrays) if hasattr(arrays, "__getitem__") or not hasattr(arrays, "__next__") else (_ListOfArrays(arrays),)
