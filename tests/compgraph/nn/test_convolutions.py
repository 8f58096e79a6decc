"""Convolutions and poolings against SciPy and PyTorch, batched directions, and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.nn import convolutions
from tests.support.arguments import complexes, real, shifted
from tests.support.cases.networks import POOLED, SLIDING
from tests.support.failures import Failures


@pytest.mark.parametrize("make", [real, complexes])
@pytest.mark.parametrize("mode", ["valid", "same", "full"])
def test_convolve_of_signals_matches_numpy_and_scipy(mode: Any, make: Any) -> None:
    for n, k in itertools.product(range(1, 7), range(1, 7)):
        x, kernel = make(n, seed=1), make(k, seed=2)
        if k > n and mode != "full":
            with pytest.raises(ValueError, match=r"Exchange|no window"):
                cg.conv(x, kernel, padding=mode)
            continue
        np.testing.assert_allclose(cg.conv(x, kernel, padding=mode), np.convolve(x, kernel, mode), atol=1e-12)
        result = cg.cross_correlate(x, kernel, padding=mode)
        np.testing.assert_allclose(result, np.correlate(x, kernel, mode), atol=1e-12)
        np.testing.assert_allclose(result, scipy.signal.correlate(x, kernel, mode), atol=1e-12)


@pytest.mark.parametrize("mode", ["valid", "full"])
@pytest.mark.parametrize("shapes", [((5,), (3,)), ((4, 5), (2, 3)), ((3, 4, 3), (2, 2, 3))])
def test_cross_correlate_of_channels_matches_scipy(shapes: Any, mode: Any) -> None:
    x, kernel = real(2, 3, *shapes[0]), shifted(4, 3, *shapes[1])
    for ours, theirs in ((cg.conv, scipy.signal.convolve), (cg.cross_correlate, scipy.signal.correlate)):
        sums = [[sum(theirs(x[n, c], kernel[o, c], mode) for c in range(3)) for o in range(4)] for n in range(2)]
        np.testing.assert_allclose(ours(x, kernel, padding=mode), np.array(sums), atol=1e-12)


@pytest.mark.parametrize("function", [cg.cross_correlate, cg.conv])
@pytest.mark.parametrize(
    ("x_shape", "k_shape", "options"),
    [
        ((1, 0, 5), (2, 0, 3), {}),
        ((0, 2, 5), (3, 2, 3), {}),
        ((1, 2, 5), (0, 2, 3), {}),
        ((2, 0, 5), (4, 0, 3), {"groups": 2}),
        ((1, 0, 5, 5), (2, 0, 3, 3), {"strides": 2, "padding": "same"}),
    ],
    ids=["no channels", "no examples", "no results", "no channels in groups", "no channels of pictures"],
)
def test_cross_correlate_of_empty_operands_is_zero(function: Any, x_shape: Any, k_shape: Any, options: Any) -> None:
    x, kernel = np.ones(x_shape), np.ones(k_shape)
    whole = (
        np.ones((max(x_shape[0], 1), 2, *x_shape[2:])),
        np.ones((max(k_shape[0], 1), 2 // options.get("groups", 1), *k_shape[2:])),
    )
    counts = function(*whole, **options).shape[2:]
    result = function(x, kernel, **options)
    assert result.shape == (x_shape[0], k_shape[0], *counts)
    assert not result.any()
    for place, argument in enumerate((x, kernel)):
        slope = ad.grad(lambda *both: np.sum(function(*both, **options)), argnums=place)(x, kernel)
        assert slope.shape == argument.shape
        assert not slope.any()
        for jacobian in (ad.jacobian, ad.jacfwd):
            table = jacobian(lambda *both: function(*both, **options), argnums=place)(x, kernel)
            assert table.shape == (*result.shape, *argument.shape)


def test_pooling_matches_scipy_filters() -> None:
    x = real(9, 8)
    largest = scipy.ndimage.maximum_filter(x, (3, 3), mode="constant", cval=-np.inf)
    np.testing.assert_array_equal(cg.max_pool(x, (3, 3), strides=1, padding=1), largest)
    mean = scipy.ndimage.uniform_filter(x, (3, 3), mode="constant") / scipy.ndimage.uniform_filter(
        np.ones_like(x), (3, 3), mode="constant"
    )
    np.testing.assert_allclose(cg.mean_pool(x, (3, 3), strides=1, padding=1), mean, rtol=1e-12)


@pytest.mark.parametrize("label", SLIDING)
def test_cross_correlate_block_size_keeps_values(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x_shape, k_shape, options = SLIDING[label]
    x, kernel = real(*x_shape), shifted(*k_shape)

    def all_three() -> list[Any]:
        value, pull = ad.vjp(lambda x, k: cg.cross_correlate(x, k, **options), x, kernel)
        return [value, *pull(real(*value.shape, seed=3))]

    expected = all_three()
    monkeypatch.setattr(convolutions, "BLOCK", 1)
    for one, other in zip(all_three(), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_cross_correlate_of_long_signal_is_chunked() -> None:
    x, kernel = real(30_000), shifted(400)
    value, pull = ad.vjp(lambda x, k: cg.cross_correlate(x, k), x, kernel)
    np.testing.assert_allclose(value, np.correlate(x, kernel), atol=1e-9)
    u = real(*value.shape, seed=2)
    np.testing.assert_allclose(pull(u)[0], np.convolve(u, kernel), atol=1e-9)
    np.testing.assert_allclose(pull(u)[1], np.correlate(x, u), atol=1e-8)


def test_cross_correlate_batches_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_sequential_directions(monkeypatch)
    with Failures("windows") as failures:
        for label, function in itertools.product(sorted(SLIDING.keys() - {"zero size"}), [cg.cross_correlate, cg.conv]):
            with failures.case(f"{function.__name__}, {label}"):
                check_directions(label, function)


def check_directions(label: str, function: Any) -> None:
    """Compare Jacobians, which batch all directions, with single rows and columns."""
    x_shape, k_shape, options = SLIDING[label]
    args = real(*x_shape), shifted(*k_shape)
    for i in range(2):
        rows = ad.jacrev(lambda x, k: function(x, k, **options), argnums=i)(*args)
        columns = ad.jacfwd(lambda x, k: function(x, k, **options), argnums=i)(*args)
        _, pull = ad.vjp(lambda x, k: function(x, k, **options), *args)
        out = np.shape(function(*args, **options))
        each = [pull(np.reshape(e, out))[i] for e in np.eye(int(np.prod(out)))]
        np.testing.assert_allclose(rows, np.reshape(each, (*out, *args[i].shape)), atol=1e-12)
        np.testing.assert_allclose(columns, rows, atol=1e-12)
    ad.hessian(lambda k: np.sum(function(args[0], k * k, **options) ** 2))(args[1])


def test_pooling_batches_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_sequential_directions(monkeypatch)
    with Failures("windows") as failures:
        for label, function in itertools.product(sorted(POOLED.keys() - {"zero size"}), [cg.max_pool, cg.mean_pool]):
            with failures.case(f"{function.__name__}, {label}"):
                check_directions_of_pools(label, function)


def check_directions_of_pools(label: str, function: Any) -> None:
    """Compare Jacobians, which batch all directions, in both modes."""
    shape, options = POOLED[label]
    x = real(*shape)
    rows = ad.jacrev(lambda x: function(x, **options))(x)
    np.testing.assert_allclose(ad.jacfwd(lambda x: function(x, **options))(x), rows, atol=1e-12)
    np.testing.assert_allclose(np.sum(rows, axis=tuple(range(rows.ndim - x.ndim, rows.ndim))), 1, rtol=1e-12)


def forbid_sequential_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise if directions are processed sequentially."""

    def refuse(rule: Any, *_: Any) -> Any:
        raise AssertionError(f"{rule} looped")

    monkeypatch.setattr("autodiff.batching.batched_derivatives._pull_per_element", refuse)
    monkeypatch.setattr("autodiff.batching.batched_derivatives._push_per_element", refuse)


def test_max_pool_splits_ties_as_max() -> None:
    x = cg.variable([1.0, 1.0, 0.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(gradient(cg.max_pool(x, 3))[x], [0.5, 0.5, 0, 1 / 3, 1 / 3, 1 / 3])
    infinite = cg.variable([-np.inf, -np.inf])
    assert gradient(cg.max_pool(infinite, 2, padding=1, strides=4))[infinite].tolist() == [1, 0]
    nan = cg.variable([np.nan, 1.0])
    assert gradient(cg.max_pool(nan, 2))[nan][0] != 0


def test_pooling_and_cross_correlate_dtypes() -> None:
    assert cg.max_pool([3, 1, 2, 5], 3, padding=1).tolist() == [3, 5]
    assert cg.max_pool(np.array([True, False]), 2).dtype == bool
    assert cg.mean_pool([1, 2], 2).tolist() == [1.5]
    assert cg.cross_correlate([1, 2, 3], [1, 1]).tolist() == [3, 5]


ERRORS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: cg.conv(x, np.ones((1, 3, 2))), "2 channels.*takes 3"),
    (lambda x: cg.conv(x, np.ones(3)), "Pass both with one axis"),
    (lambda x: cg.conv(x, np.ones((3, 1, 2)), groups=2), "divides 3"),
    (lambda x: cg.conv(x[0, 0], np.ones(2), groups=2), "no groups"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 9))), "no window of shape"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 0))), "no elements"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 2)), strides=0), "strides must be"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 2)), strides=1.5), "strides must be"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 2)), dilation=(1, 2)), "dilation must be"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 2)), padding=-1), "padding must be"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 2)), padding=(1, 2)), "padding must be"),
    (lambda x: cg.cross_correlate(x, np.ones((1, 2, 2)), padding="reflect"), "padding must be"),
    (lambda x: cg.max_pool(x, 2, padding=2), "contain only padding"),
    (lambda x: cg.max_pool(x, 2, padding="full"), "padding alone"),
    (lambda x: cg.mean_pool(x, (1, 1, 1, 1)), "more axes than x"),
    (lambda x: cg.mean_pool(x, ()), "no axis"),
    (lambda x: cg.mean_pool(x, "2"), "window must be"),
    (lambda x: cg.mean_pool(x, 2.5), "window must be"),
]


def test_sliding_windows_bad_arguments_raise() -> None:
    with Failures("calls") as failures:
        for k, (call, message) in enumerate(ERRORS):
            with failures.case(f"call {k}: {message}"):
                for x in (np.ones((2, 2, 4)), cg.variable(np.ones((2, 2, 4)))):
                    with pytest.raises(ValueError, match=message):
                        call(x)


def test_max_pool_of_complex_numbers_raises() -> None:
    with pytest.raises(TypeError, match="max_pool"):
        cg.max_pool(complexes(4), 2)


def test_sliding_windows_within_no_graph_record_nothing() -> None:
    x, kernel = cg.variable(real(2, 1, 6)), cg.variable(real(1, 1, 3))

    def model() -> Any:
        return cg.expand(cg.mean_pool(cg.max_pool(cg.conv(cg.cross_correlate(x, kernel, padding="same"), kernel), 2), 2))

    with cg.no_graph():
        inside = model()
    for result in (inside, cg.no_graph()(model)()):
        assert type(result) is np.ndarray
        assert np.array_equal(result, model().value)


def test_sliding_windows_record_one_named_node() -> None:
    x = cg.variable(real(6), "x")
    for function, args, opname in (
        (cg.conv, (real(2),), "conv"),
        (cg.cross_correlate, (real(2),), "cross_correlate"),
        (cg.max_pool, (2,), "max_pool"),
        (cg.mean_pool, (2,), "mean_pool"),
        (cg.expand, (), "expand_dims"),
    ):
        node = function(x, *args, name="n")
        assert (node.name, node.opname, node.operand_a is x) == ("n", opname, True)


@pytest.mark.parametrize("label", SLIDING)
def test_sliding_windows_match_torch(label: str) -> None:
    torch = pytest.importorskip("torch")
    x_shape, k_shape, options = SLIDING[label]
    if len(x_shape) < 3:
        return
    x, kernel = real(*x_shape), shifted(*k_shape)
    pads = options.get("padding", 0)
    if isinstance(pads, tuple):
        widths = [n for pair in reversed(pads) for n in pair]
        tensor, pads = torch.nn.functional.pad(torch.tensor(x), widths).requires_grad_(), 0
    else:
        tensor = torch.tensor(x, requires_grad=True)
    weights = torch.tensor(kernel, requires_grad=True)
    if pads == "same":  # PyTorch warns of it; of two elements the one more is behind
        tensor, pads = torch.nn.functional.pad(torch.tensor(x), (0, 1)).requires_grad_(), 0
    slide = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][len(x_shape) - 3]
    out = slide(tensor, weights, None, options.get("strides", 1), pads, options.get("dilation", 1), options.get("groups", 1))
    value, pull = ad.vjp(lambda k: cg.cross_correlate(x, k, **options), kernel)
    np.testing.assert_allclose(value, out.detach().numpy(), atol=1e-12)
    u = real(*value.shape, seed=2)
    (expected,) = torch.autograd.grad(out, weights, torch.tensor(u))
    np.testing.assert_allclose(pull(u)[0], expected.numpy(), atol=1e-12)
