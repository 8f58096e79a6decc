"""Labelled arrays, pandas' and xarray's, as arguments: numbers go in, labels come out, and other orders are refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import autodiff as ad
import compgraph as cg

SERIES = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="s")
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["p", "q"])
ARRAY = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("x", "t"), coords={"t": [10, 20, 30]}, name="u", attrs={"unit": "m"})


def squares(x: Any) -> Any:
    return np.sum(x * x)


def test_gradients_have_the_labels_of_arguments() -> None:
    pd.testing.assert_series_equal(ad.grad(squares)(SERIES), 2 * SERIES)
    pd.testing.assert_frame_equal(ad.grad(squares)(FRAME), 2 * FRAME)
    xr.testing.assert_identical(ad.grad(squares)(ARRAY), ARRAY.copy(data=2 * ARRAY.values))
    value, found = ad.value_and_grad(squares)(SERIES)
    assert value == 14.0
    pd.testing.assert_series_equal(found, 2 * SERIES)
    (back,) = ad.vjp(squares, FRAME)[1](2.0)
    pd.testing.assert_frame_equal(back, 4 * FRAME)
    pd.testing.assert_series_equal(ad.hvp(squares)(SERIES, SERIES), 2 * SERIES)


def test_what_has_another_shape_is_a_plain_array() -> None:
    assert type(ad.jacobian(lambda x: x * 2)(SERIES)) is np.ndarray
    assert type(ad.hessian(squares)(SERIES)) is np.ndarray
    assert type(ad.vmap(np.sin)(SERIES)) is np.ndarray
    value, tangent = ad.jvp(squares, (SERIES,), (SERIES,))
    assert (value, tangent) == (14.0, 28.0)


def test_labels_come_out_of_nested_arguments() -> None:
    found = ad.grad(lambda p: np.sum(p["w"] * p["v"]))({"w": SERIES, "v": np.ones(3)})
    pd.testing.assert_series_equal(found["w"], SERIES * 0 + 1)
    assert type(found["v"]) is np.ndarray
    one, other = ad.grad(lambda a, b: np.sum(a @ b), argnums=(0, 1))(FRAME, np.ones(2))
    assert isinstance(one, pd.DataFrame)
    assert type(other) is np.ndarray


def test_single_precision_and_derivatives_of_derivatives() -> None:
    found = ad.grad(squares)(SERIES.astype(np.float32))
    assert found.dtype == np.float32
    twice = ad.grad(lambda x: np.sum(ad.grad(lambda y: np.sum(y**3))(x)))(SERIES)
    pd.testing.assert_series_equal(twice, 6 * SERIES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SERIES, SERIES[::-1]),
        (SERIES, SERIES.rename(index={"a": "b", "b": "a"})),
        (SERIES, SERIES.rename(index={"a": "z"})),
        (FRAME, FRAME[["b", "a"]]),
        (FRAME, pd.Series([1.0, 2.0], index=["b", "a"])),
        (ARRAY, ARRAY[:, ::-1]),
        (ARRAY, ARRAY.T),
        ({"w": SERIES}, [SERIES[::-1]]),
    ],
    ids=range(8),
)
def test_arguments_in_another_order_are_refused(one: Any, other: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        return np.sum(sum(map(np.sum, a.values() if isinstance(a, dict) else [a])))

    for argnums in (0, (0, 1)):
        with pytest.raises(TypeError, match=r"grad: argument 0.*argument 1.*by position"):
            ad.grad(f, argnums)(one, other)


def test_arguments_in_the_same_order_are_not() -> None:
    both = ad.grad(lambda a, b: np.sum(a * b))
    pd.testing.assert_series_equal(both(SERIES, SERIES.copy()), SERIES)
    both(SERIES, pd.Series(np.ones(3), index=list("xyz")))  # labels of other things
    both(SERIES, SERIES[::-1].to_numpy())  # where position is meant
    by_columns = ad.grad(lambda data, w: np.sum(data @ w), argnums=1)
    pd.testing.assert_series_equal(
        by_columns(FRAME, pd.Series([1.0, 2.0], index=["a", "b"])), pd.Series([3.0, 7.0], index=["a", "b"])
    )


def test_directions_in_another_order_are_refused() -> None:
    for call in (
        lambda: ad.hvp(squares)(SERIES, SERIES[::-1]),
        lambda: ad.jvp(squares, (SERIES,), (SERIES[::-1],)),
        lambda: ad.linearize(squares, SERIES)[1](SERIES[::-1]),
        lambda: ad.vmap(lambda a, b: a * b)(SERIES, SERIES[::-1]),
    ):
        with pytest.raises(TypeError, match="by position"):
            call()


def test_messages_say_what_to_do() -> None:
    dataset = xr.Dataset({"u": ARRAY, "v": ARRAY * 2})
    with pytest.raises(TypeError, match=r"is a Dataset, of several arrays; pass a dictionary of them, dict\(x.data_vars\)"):
        ad.grad(lambda d: np.sum(d))(dataset)
    found = ad.grad(lambda d: np.sum(d["u"] * d["v"]))(dict(dataset.data_vars))
    xr.testing.assert_equal(found["u"], ARRAY * 2)
    with pytest.raises(TypeError, match="dtype int64 has no derivatives; convert it"):
        ad.grad(squares)(FRAME.astype(int))
    for by_label in (lambda x: x.loc["a"] * 2, lambda x: x["a"] * 2):
        with pytest.raises((AttributeError, IndexError)) as caught:
            ad.grad(by_label)(SERIES)
        assert "the numbers of a Series as plain arrays" in caught.value.__notes__[0]


def test_labels_beside_a_node() -> None:
    w = cg.variable([1.0, 2.0, 3.0], "w")
    assert isinstance(SERIES.to_numpy() * w, cg.Node)
    # At the top level pandas takes the numbers; the gradient of what comes out has no graph, and says so.
    with pytest.raises(TypeError, match="lost its graph"):
        ad.reverse.gradient(np.sum(SERIES * w))
    # Within a function that is differentiated the values are right, or it raises.
    assert np.array_equal(ad.grad(lambda x: np.sum(SERIES * x))(np.ones(3)), SERIES)
    assert np.array_equal(ad.grad(lambda x: np.sum(x * SERIES))(np.ones(3)), SERIES)
    assert np.array_equal(ad.grad(lambda x: np.sum(x * ARRAY[0]))(np.ones(3)), ARRAY[0])
    assert np.array_equal(cg.variable(SERIES).value, SERIES)


def test_neither_library_is_imported() -> None:
    code = "import sys, autodiff, compgraph; assert not {'pandas', 'xarray'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
