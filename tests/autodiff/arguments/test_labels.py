"""Labelled arrays of pandas and xarray as arguments: functions get numbers, results get labels, and misaligned labels raise."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

pd = pytest.importorskip("pandas", reason="pandas is optional")
xr = pytest.importorskip("xarray", reason="xarray is optional")

SERIES = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="s")
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["p", "q"])
ARRAY = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("x", "t"), coords={"t": [10, 20, 30]}, name="u", attrs={"unit": "m"})


def squares(x: Any) -> Any:
    return np.sum(x * x)


def test_gradient_keeps_labels_of_argument() -> None:
    pd.testing.assert_series_equal(ad.grad(squares)(SERIES), 2 * SERIES)
    pd.testing.assert_frame_equal(ad.grad(squares)(FRAME), 2 * FRAME)
    xr.testing.assert_identical(ad.grad(squares)(ARRAY), ARRAY.copy(data=2 * ARRAY.values))
    value, gradient = ad.value_and_grad(squares)(SERIES)
    assert value == 14.0
    pd.testing.assert_series_equal(gradient, 2 * SERIES)
    (back,) = ad.vjp(squares, FRAME)[1](2.0)
    pd.testing.assert_frame_equal(back, 4 * FRAME)
    pd.testing.assert_series_equal(ad.hvp(squares)(SERIES, SERIES), 2 * SERIES)


def test_gradient_of_different_shape_is_plain_array() -> None:
    assert type(ad.jacobian(lambda x: x * 2)(SERIES)) is np.ndarray
    assert type(ad.hessian(squares)(SERIES)) is np.ndarray
    assert type(ad.vmap(np.sin)(SERIES)) is np.ndarray
    value, tangent = ad.jvp(squares, (SERIES,), (SERIES,))
    assert (value, tangent) == (14.0, 28.0)


def test_gradient_of_nested_argument_keeps_labels() -> None:
    gradient = ad.grad(lambda p: np.sum(p["w"] * p["v"]))({"w": SERIES, "v": np.ones(3)})
    pd.testing.assert_series_equal(gradient["w"], SERIES * 0 + 1)
    assert type(gradient["v"]) is np.ndarray
    one, other = ad.grad(lambda a, b: np.sum(a @ b), argnums=(0, 1))(FRAME, np.ones(2))
    assert isinstance(one, pd.DataFrame)
    assert type(other) is np.ndarray


def test_gradient_with_labels_float32_and_second_order() -> None:
    gradient = ad.grad(squares)(SERIES.astype(np.float32))
    assert gradient.dtype == np.float32
    twice = ad.grad(lambda x: np.sum(ad.grad(lambda y: np.sum(y**3))(x)))(SERIES)
    pd.testing.assert_series_equal(twice, 6 * SERIES)


@for_each(
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
def test_arguments_with_reordered_labels_raise(one: Any, other: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        return np.sum(sum(map(np.sum, a.values() if isinstance(a, dict) else [a])))

    for argnums in (0, (0, 1)):
        with pytest.raises(TypeError, match=r"grad: argument 0.*argument 1.*by position"):
            ad.grad(f, argnums)(one, other)


def test_arguments_with_equal_labels_are_accepted() -> None:
    both = ad.grad(lambda a, b: np.sum(a * b))
    pd.testing.assert_series_equal(both(SERIES, SERIES.copy()), SERIES)
    with pytest.raises(ad.DetachedGradientError, match="align by label"):
        both(SERIES, pd.Series(np.ones(3), index=list("xyz")))
    both(SERIES, SERIES[::-1].to_numpy())  # where position is meant
    by_columns = ad.grad(lambda data, w: np.sum(data @ w), argnums=1)
    pd.testing.assert_series_equal(
        by_columns(FRAME, pd.Series([1.0, 2.0], index=["a", "b"])), pd.Series([3.0, 7.0], index=["a", "b"])
    )


def test_tangents_with_reordered_labels_raise() -> None:
    for call in (
        lambda: ad.hvp(squares)(SERIES, SERIES[::-1]),
        lambda: ad.jvp(squares, (SERIES,), (SERIES[::-1],)),
        lambda: ad.linearize(squares, SERIES)[1](SERIES[::-1]),
        lambda: ad.vmap(lambda a, b: a * b)(SERIES, SERIES[::-1]),
    ):
        with pytest.raises(TypeError, match="by position"):
            call()


def test_label_errors_give_advice() -> None:
    dataset = xr.Dataset({"u": ARRAY, "v": ARRAY * 2})
    with pytest.raises(TypeError, match=r"is a Dataset, a collection of arrays\. Pass a dictionary, dict\(x.data_vars\)"):
        ad.grad(lambda d: np.sum(d))(dataset)
    gradient = ad.grad(lambda d: np.sum(d["u"] * d["v"]))(dict(dataset.data_vars))
    xr.testing.assert_equal(gradient["u"], ARRAY * 2)
    with pytest.raises(TypeError, match=r"dtype int64, which is not differentiable\. Convert it"):
        ad.grad(squares)(FRAME.astype(int))
    for by_label in (lambda x: x.loc["a"] * 2, lambda x: x["a"] * 2):
        with pytest.raises((AttributeError, IndexError)) as caught:
            ad.grad(by_label)(SERIES)
        assert "the values of a Series to the function as plain arrays" in caught.value.__notes__[0]


def test_operators_of_labeled_array_and_node() -> None:
    w = cg.variable([1.0, 2.0, 3.0], "w")
    assert isinstance(SERIES.to_numpy() * w, cg.Node)
    # At the top level pandas takes the numbers; the gradient of the result has no graph and raises.
    with pytest.raises(TypeError, match="lost its graph"):
        ad.reverse.gradient(np.sum(SERIES * w))
    # Within a function that is differentiated the values are right, or it raises.
    assert np.array_equal(ad.grad(lambda x: np.sum(SERIES * x))(np.ones(3)), SERIES)
    assert np.array_equal(ad.grad(lambda x: np.sum(x * SERIES))(np.ones(3)), SERIES)
    assert np.array_equal(ad.grad(lambda x: np.sum(x * ARRAY[0]))(np.ones(3)), ARRAY[0])
    assert np.array_equal(cg.variable(SERIES).value, SERIES)


def test_import_loads_neither_pandas_nor_xarray() -> None:
    code = "import sys, autodiff, compgraph; assert not {'pandas', 'xarray'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


MISSING = pd.Series([1.0, np.nan, 3.0], index=list("abc"))
OTHER = pd.Series([10.0, 20.0, 30.0], index=list("cba"))
DIFFERING = {
    "std": (lambda x: x.std(), SERIES),
    "sum of NaN": (lambda x: x.sum(), MISSING),
    "np.mean of NaN": (lambda x: np.mean(x), MISSING),
    "max of NaN": (lambda x: x.max(), MISSING),
    "cumsum of NaN": (lambda x: np.nansum(x.cumsum()), MISSING),
    "alignment": (lambda x: (x * OTHER).sum(), SERIES),
    "reversed": (lambda x: np.sum(x[::-1] * x), SERIES),
    "columns": (lambda x: np.sum(x.max() ** 2), FRAME),
    "equal at this point": (lambda x: np.sum(((x - x.mean()) / x.std()) ** 3), SERIES),
    "xarray, sum of NaN": (lambda x: x.sum(), ARRAY.where(ARRAY > 1)),
    "isinstance": (lambda x: x.sum() ** 2 if isinstance(x, pd.Series) else x.sum(), SERIES),
}
AGREEING = {
    "sum": (lambda x: x.sum() ** 2, SERIES),
    "np.std": (lambda x: np.std(x) * 1.0, SERIES),
    "mean": (lambda x: x.mean() + x.max(), SERIES),
    "elements": (lambda x: sum([v * v for v in x]) / len(x), SERIES),
    "arrays alone": (lambda x: np.sum(x[-1] * x[:, 0]), FRAME),
    "nan": (lambda x: np.nansum(x) + np.nanstd(x), MISSING),
    "xarray": (lambda x: (x.sum() ** 2) + x.std() + x[0].sum(), ARRAY),
}


@for_each("name", DIFFERING)
def test_label_dependent_method_raises(name: str) -> None:
    f, x = DIFFERING[name]
    ones = x.copy(data=np.ones(x.shape)) if isinstance(x, xr.DataArray) else x * 0 + 1
    calls = [lambda: ad.grad(f)(x), lambda: ad.jvp(f, (x,), (ones,)), lambda: ad.hessian(f)(x), lambda: ad.jacobian(f)(x)]
    for call in calls:
        with pytest.raises(ad.DetachedGradientError, match=r"for a (Series|DataFrame|DataArray), but .*to_numpy"):
            call()


@for_each("name", AGREEING)
def test_label_independent_method_is_differentiated(name: str) -> None:
    f, x = AGREEING[name]
    assert np.asarray(ad.grad(f)(x)).tolist() == ad.grad(f)(np.asarray(x)).tolist()


def test_vmap_label_dependent_method_raises() -> None:
    with pytest.raises(ad.DetachedGradientError, match="for a Series"):
        ad.vmap(lambda row: row.std())(FRAME)
    assert ad.vmap(lambda row: row.sum())(FRAME).tolist() == [4.0, 6.0]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_masked_arrays_and_matrices_raise() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    for x in (masked, np.matrix([[1.0, 2.0], [3.0, 4.0]])):
        calls = [
            lambda x=x: ad.grad(squares)(x),
            lambda x=x: ad.grad(lambda p: squares(p["a"][0]))({"a": [x]}),
            lambda x=x: ad.jvp(squares, (np.asarray(x),), (x,)),
            lambda x=x: ad.vjp(lambda v: v, np.asarray(x))[1](x),
            lambda x=x: ad.vmap(squares)(x),
            lambda x=x: cg.variable(x),
        ]
        for call in calls:
            with pytest.raises(TypeError, match="operators"):
                call()
