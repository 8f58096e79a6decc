"""Operators copy arguments with their memory layout, so that NumPy returns views in the same cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import compgraph as cg
from autodiff import grad, hessian, jacobian, jvp, taylor, value_and_grad, vjp
from autodiff.forward import variables
from compgraph import ops
from tests.support.for_each import for_each

Array = np.ndarray[Any, Any]
BASE = np.sin(np.arange(240.0)) + np.linspace(0, 1, 240)
LAYOUTS: dict[str, Array] = {
    "C": BASE[:24].reshape(4, 6),
    "Fortran": np.asfortranarray(BASE[:24].reshape(4, 6)),
    "steps": BASE[:96].reshape(8, 12)[::2, ::2],
    "rows with gaps": BASE[:48].reshape(4, 12)[:, :6],
    "rows left out": BASE[:48].reshape(8, 6)[::2],
    "reversed": BASE[:24].reshape(4, 6)[::-1],
    "reversed rows": BASE[:24].reshape(4, 6)[:, ::-1],
    "all reversed": BASE[:24].reshape(4, 6)[::-1, ::-1],
    "transposed steps": BASE[:96].reshape(12, 8)[::2, ::2].T,
    "a column": BASE[:48].reshape(24, 2)[:, 0],
    "a vector of steps": BASE[::10],
    "a vector reversed": BASE[23::-1],
    "three axes": BASE[:24].reshape(2, 3, 4).transpose(1, 0, 2),
    "three axes with a gap": BASE[:48].reshape(2, 6, 4)[:, ::2],
    "three axes cut": BASE[:120].reshape(4, 5, 6)[1:3, 1:4, :4],
    "an axis of one": BASE[:48].reshape(4, 1, 12)[:, :, ::2],
    "broadcast": np.broadcast_to(BASE[:6], (4, 6)),
    "float32": BASE.astype(np.float32)[:96].reshape(8, 12)[::2, ::2],
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "ravel": lambda x: np.ravel(x),
    "ravel F": lambda x: np.ravel(x, order="F"),
    "ravel K": lambda x: np.ravel(x, order="K"),
    "reshape": lambda x: x.reshape(-1),
    "reshape F": lambda x: np.reshape(x, (2, -1), order="F"),
    "reshape A": lambda x: np.reshape(x, (2, -1), order="A"),
    "T": lambda x: x.T.reshape(-1),
    "first": lambda x: np.ravel(x[0]),
    "last": lambda x: np.ravel(x[..., 0]),
    "reversed": lambda x: np.ravel(x[::-1]),
    "reversed last": lambda x: np.ravel(x[..., ::-1]),
    "two axes": lambda x: x.reshape(*x.shape[:-1], 2, -1) if x.shape[-1] % 2 == 0 else x,
    "ascontiguous": lambda x: cg.ascontiguousarray(x),
    "asfortran": lambda x: cg.asfortranarray(x),
}


def write_through_view(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that writes into what may be a view of its argument."""

    def f(x: Any) -> Any:
        y = view(x)
        y[...] = y * y + 1
        return np.sum(x * x * np.linspace(1, 2, x.size, dtype=x.dtype).reshape(x.shape)) + np.sum(y)

    return f


def copy_with_layout(x: Array) -> Array:
    """A writable copy of an array with exactly its memory layout."""
    buffer = np.zeros(1000, x.dtype)
    view = np.lib.stride_tricks.as_strided(buffer[500:], x.shape, x.strides)
    view[...] = x
    return view


@for_each("view", VIEWS)
@for_each("layout", [name for name in LAYOUTS if name != "broadcast"])
def test_argument_layout_keeps_values(layout: str, view: str) -> None:
    x, f = LAYOUTS[layout], write_through_view(VIEWS[view])
    expected, original = f(copy_with_layout(x)), x.copy()
    ones = np.ones_like(x)
    assert value_and_grad(f)(x)[0] == expected
    assert vjp(f, x)[0] == expected
    assert jvp(f, [x], [ones])[0] == expected
    assert f(variables(x)).value == expected
    assert taylor(lambda t: f(t), x, 1)[0] == expected
    slope = np.sum(grad(f)(x) * ones)
    assert np.isclose(slope, jvp(f, [x], [ones])[1], rtol=1e-5)
    if x.dtype == np.float64:
        size = 1e-6
        assert np.isclose(slope, difference(f, x, size), rtol=1e-6)
    assert np.array_equal(x, original)


def difference(f: Callable[[Any], Any], x: Array, size: float) -> Any:
    """A central difference of plain NumPy, over arrays that lie as x does."""
    above, below = copy_with_layout(x), copy_with_layout(x)
    above += size
    below -= size
    return (f(above) - f(below)) / (2 * size)


@for_each("layout", LAYOUTS)
def test_argument_copy_keeps_memory_layout(layout: str) -> None:
    """Contiguity of the whole, and of each way to see it, is that of the argument; the copy is not much larger."""
    x = LAYOUTS[layout]
    duplicate = ops.copy_with_layout(x)
    assert np.array_equal(duplicate, x)
    assert not np.shares_memory(duplicate, x)
    assert duplicate.flags.writeable
    assert (duplicate.flags.c_contiguous, duplicate.flags.f_contiguous) == (x.flags.c_contiguous, x.flags.f_contiguous)
    for order in ("C", "F"):
        assert np.shares_memory(duplicate.reshape(-1, order=order), duplicate) == np.shares_memory(x.reshape(-1, order=order), x)
    low, high = np.lib.array_utils.byte_bounds(duplicate)
    assert high - low <= 4 * x.nbytes
    if layout != "broadcast":
        assert [np.sign(s) for s in duplicate.strides] == [np.sign(s) for s in x.strides]


def test_jacobian_of_noncontiguous_arguments() -> None:
    x = LAYOUTS["steps"]
    f = write_through_view(VIEWS["ravel"])
    copied = write_through_view(lambda x: np.copy(x).reshape(-1))
    assert np.allclose(jacobian(f)(x), jacobian(copied)(x))
    assert np.allclose(hessian(f)(x), hessian(copied)(x))
